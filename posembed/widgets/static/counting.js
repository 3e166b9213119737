// Figure 10: a causal mask becomes a position. Even attention gives token t the share 1/t of a mark, and a feed-forward
// network makes t of it.
//
// The weights are those of posembed's CountingTransformer. What they make of a text is computed here.

/** What arrives of the marks at a token, counted from 1, that spreads itself evenly over what it sees. */
export function arriving(marks, token, causal) {
  const seen = causal ? marks.slice(0, token) : marks;
  return seen.reduce((sum, mark) => sum + mark / seen.length, 0);
}

/** What the rectified units hold where a share arrives. */
export const units = ({ slopes, biases }, share) => slopes.map((slope, k) => Math.max(0, slope * share + biases[k]));

/** What comes out: the terms of the sum, first the bias, then one for each unit. */
export const terms = (network, share) => [network.bias, ...units(network, share).map((unit, k) => network.weights[k] * unit)];

const total = (numbers) => numbers.reduce((sum, each) => sum + each, 0);
export const count = (network, share) => total(terms(network, share));

/** The corners of what a network makes of the shares from 0 to 1: where a unit begins, and both ends. */
export function corners(network) {
  const shares = [0, ...network.slopes.map((slope, k) => -network.biases[k] / slope).reverse(), 1];
  return shares.map((share) => [share, count(network, share)]);
}

/** Another order of the same words, in which the first stays and no other is where it was (Sattolo's algorithm). */
export function shuffled(order, random = Math.random) {
  const next = [...order];
  for (let k = next.length - 1; k > 1; k--) {
    const other = 1 + Math.floor(random() * (k - 1));
    [next[k], next[other]] = [next[other], next[k]];
  }
  return next;
}

/** A whole number that float64 has rounded, or a number with two decimals. */
const shown = (value) => signed(Math.abs(value - Math.round(value)) < 1e-9 ? Math.round(value) : value.toFixed(2));

/** A share of one, two, three ... equal parts. */
const fraction = (share) => (share === 0 ? "0" : share === 1 ? "1" : `1/${Math.round(1 / share)}`);

const right = (value, place) => Math.abs(value - place) < 1e-6;

/** What happens at each token, and more of the chosen one. Places are counted from 1. */
function studied({ words, marks, networks, order, n_positions: nPositions, token, causal }) {
  const network = networks.find((each) => each.n_positions === nPositions);
  const placed = order.map((word) => marks[word]);
  const shares = placed.map((_, k) => arriving(placed, k + 1, causal));
  const counts = shares.map((share) => count(network, share));
  const name = `Token ${token}, ${token > 1 ? `“${words[order[token - 1]]}”` : words[0]}`;
  const at = { share: shares[token - 1], count: counts[token - 1] };
  const n = words.length;
  return { network, causal, token, name, shares, counts, at, n, sees: causal ? token : n, marked: words[order[0]] };
}

/** How the chosen token comes by its share. */
function aboutAttention({ name, token, causal, sees, marked, at: { share } }) {
  const part = fraction(share);
  if (causal && token === 1) return `${name}, sees itself alone. It carries the mark 1, and all of it arrives.`;
  const sight = causal ? `sees ${sees} tokens` : `sees all ${sees} tokens, as any other does,`;
  return `${name}, ${sight} and gives each ${part} of its attention. Only ${marked} carries the mark 1, so ${part} arrives.`;
}

/** The sum that the network is, and its parts where the share arrives. */
function aboutNetwork({ network, at }) {
  const T = network.n_positions;
  const values = terms(network, at.share);
  const [last, others] = [Math.abs(values.at(-1)), total(values.slice(1, -1))];
  const more = T === 2 ? "" : T === 3 ? " + 2 relu(2u − 1)" : ` + 2 Σ relu(su − 1), s = 2 to ${T - 1}`;
  const formula = `${T - 1} rectified unit${T === 2 ? "" : "s"}: ${T} − ${T === 2 ? "" : `${T - 1} `}relu(${T}u − 1)${more}`;
  return [`${formula}.`, `At u = ${fraction(at.share)}: ${shown(network.bias)} − ${shown(last)}${T === 2 ? "" : ` + ${shown(others)}`} = ${shown(at.count)}.`];
}

/** What came of it. */
function verdict({ token, causal, network, at }) {
  const [part, out, T] = [fraction(at.share), shown(at.count), network.n_positions];
  if (!causal) return `Token ${token}: ${part} arrives and ${out} comes out, as at every token. Nothing tells them apart.`;
  if (token > T) return `Token ${token}: ${part} arrives. Up to 1/${T} all units are at zero: ${out} comes out, not ${token}.`;
  return `Token ${token}: ${part} arrives and ${out} comes out, its position.`;
}

const [FAN, STRIP, CHART, LEFT, RIGHT] = [44, 26, 262, 44, 12];
const HEIGHT = FAN + STRIP + CHART;

/** Attention: from each token that is seen to its equal part of a strip of length 1. */
function drawAttention(width, x, { n, sees }) {
  const parts = range(0, sees - 1).map((k) => [k / sees, (k + 1) / sees].map(x));
  const chip = (k) => [(k * width) / n + 2, ((k + 1) * width) / n - 2];
  const look = (k) => (k ? "pe-count-part" : "pe-count-part pe-count-mark");
  return [
    ...parts.map(([from, to], k) => svg("path", { class: `pe-count-fan ${look(k)}`, d: `M${chip(k)[0]} 0L${from} ${FAN}H${to}L${chip(k)[1]} 0Z` })),
    ...parts.map(([from, to], k) => svg("rect", { class: look(k), x: from, y: FAN, width: to - from, height: STRIP })),
    ...parts.filter(([from, to]) => to - from > 32).map(([from, to]) =>
      svg("text", { class: "pe-tick pe-count-ink", x: (from + to) / 2, y: FAN + 17, "text-anchor": "middle" }, fraction(1 / sees))),
  ];
}

/** Those of the ticks that leave room for the value that is written among them. */
const besides = (ticks, value, place, room) => ticks.filter((tick) => Math.abs(place(tick) - place(value)) > room);

/** The feed-forward network: the line that it makes, the tokens, and the way of the chosen one over the line. */
function drawNetwork(width, { network, n, token, shares, counts, at }) {
  const step = Math.ceil(n / 4);
  const yTicks = range(0, Math.floor(n / step)).map((k) => k * step);
  const ends = axes(width, CHART, { from: 0, to: 1, ticks: [] }, { from: 0, to: n, ticks: [] }, LEFT);
  const { x, y, parts } = axes(width, CHART,
    { from: 0, to: 1, ticks: besides([0, 1 / 4, 1 / 2, 1], at.share, ends.x, 26), name: "u, what arrives of the mark", words: fraction },
    { from: 0, to: n, ticks: besides(yTicks, at.count, ends.y, 13), name: "count" }, LEFT);
  const here = (attributes, words) => svg("text", { class: "pe-tick pe-count-here", ...attributes }, words);
  const [across, up] = [x(at.share), y(at.count)];
  return [
    ...parts,
    svg("path", { class: "pe-count-way pe-count-in", d: `M${across} 0V${up}` }),
    svg("path", { class: "pe-count-way", d: `M${across} ${up}H${LEFT}` }),
    svg("path", { class: "pe-curve", d: lineThrough(corners(network).map(([share, value]) => [x(share), y(value)])) }),
    ...shares.map((share, k) => svg("circle", {
      class: right(counts[k], k + 1) ? "pe-bullet" : "pe-count-missed", cx: x(share), cy: y(k + 1), r: 3.5 })),
    ...(right(at.count, token) ? [] : [svg("path", { class: "pe-count-gap", d: `M${across} ${up}V${y(token)}` })]),
    svg("circle", { class: "pe-end pe-count-point", cx: across, cy: up, r: 6 }),
    here({ x: across, y: y(0) + 17, "text-anchor": "middle" }, fraction(at.share)),
    here({ x: LEFT - 6, y: up + 4, "text-anchor": "end" }, shown(at.count)),
  ];
}

function draw(width, now) {
  const x = scale({ from: 0, to: 1 }, LEFT, width - RIGHT);
  return [...drawAttention(width, x, now), svg("g", { transform: `translate(0 ${FAN + STRIP})` }, ...drawNetwork(width, now))];
}

/** The words as buttons, one of which is chosen; the arrow keys choose its neighbours. */
function tokenRow(model, words, choose) {
  const marks = model.get("marks");
  const chips = words.map((word, k) => h("button", { class: `pe-count-chip ${marks[k] ? "pe-count-marked" : ""}`, type: "button", role: "radio" },
    h("span", {}, word), h("span", { class: "pe-count-value" }, shown(marks[k]))));
  const order = () => model.get("order");
  const list = h("div", { class: "pe-count-row", role: "radiogroup", "aria-label": "the tokens, in order" }, ...order().map((word) => chips[word]));
  chips.forEach((chip, word) => chip.addEventListener("click", () => choose(order().indexOf(word) + 1)));
  list.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(model.get("token") + step);
    chips[order()[model.get("token") - 1]].focus();
  });
  const show = ({ token, sees, n }) => order().forEach((word, k) => {
    const chosen = k + 1 === token;
    chips[word].setAttribute("aria-label", `${words[word]}, token ${k + 1} of ${n}${k < sees ? ", seen" : ""}`);
    chips[word].setAttribute("aria-checked", String(chosen));
    chips[word].tabIndex = chosen ? 0 : -1;
    chips[word].classList.toggle("pe-count-unseen", k >= sees);
  });
  return { node: list, show, arrange: () => reorder(list, order().map((word) => chips[word])) };
}

function render({ model, el }) {
  const words = model.get("words");
  const n = words.length;
  const lengths = model.get("networks").map((network) => network.n_positions);
  const read = () => studied({
    words, marks: model.get("marks"), networks: model.get("networks"), order: model.get("order"),
    n_positions: model.get("n_positions"), token: model.get("token"), causal: model.get("causal"),
  });
  const choose = (token) => {
    const inside = Math.max(1, Math.min(n, token));
    if (inside !== model.get("token")) assign(model, "token", inside);
  };
  const step = (sign, name, by) => h("button", {
    type: "button", class: "pe-button", "aria-label": name, onclick: () => choose(model.get("token") + by) }, sign);
  let now = read();

  const tokens = tokenRow(model, words, choose);
  const places = h("div", { class: "pe-count-row pe-count-places", "aria-hidden": "true" }, ...range(1, n).map((k) => h("span", {}, k)));
  const results = h("div", { class: "pe-count-row pe-count-results", role: "img" }, ...range(1, n).map(() => h("span", {})));
  const [attention, formula, sum] = ["pe-count-attention", "pe-count-formula", ""].map((look) => h("p", { class: `pe-note ${look}` }));
  const picture = drawing(HEIGHT, (width) => draw(width, now));
  const { figure, say } = tries(frame(el, "Count the tokens with a causal mask",
    h("div", { class: "pe-controls pe-pinned pe-count-steps" },
      runner(model, "token", "token", range(1, n)), step("‹", "previous token", -1), step("›", "next token", 1)),
    h("div", { class: "pe-controls" },
      toggle(model, "causal", "causal mask"),
      h("button", { class: "pe-button", type: "button", onclick: () => assign(model, "order", shuffled(model.get("order"))) }, "Shuffle the words"),
      slider(model, "n_positions", "network counts up to", lengths)),
    h("p", { class: "pe-hint" }, "Step through the tokens, or click one. Then shuffle the words, take the mask away, and let the network count less far."),
    h("p", { class: "pe-title" }, "Attention"), attention, places, tokens.node, picture.node,
    h("p", { class: "pe-note" }, "Dots: the tokens at their positions; hollow where something else comes out."),
    h("p", { class: "pe-title" }, "Feed-forward network"), formula, sum,
    h("p", { class: "pe-title" }, "What comes out at each token"), results),
  ["a token with a wrong count, under the causal mask", () => now.causal && !right(now.at.count, now.token)],
  ["the same count at every token", () => now.counts.every((each) => right(each, now.counts[0]))]);
  figure.classList.add("pe-counting");

  function show() {
    now = read();
    attention.textContent = aboutAttention(now);
    [formula.textContent, sum.textContent] = aboutNetwork(now);
    tokens.show(now);
    [...places.children].forEach((node, k) => node.classList.toggle("pe-count-chosen", k + 1 === now.token));
    [...results.children].forEach((node, k) => {
      node.textContent = shown(now.counts[k]);
      node.classList.toggle("pe-count-chosen", k + 1 === now.token);
      node.classList.toggle("pe-count-wrong", !right(now.counts[k], k + 1));
    });
    const all = now.counts.map(shown).join(", ");
    results.setAttribute("aria-label", `In order: ${all}`);
    picture.redraw(`${attention.textContent} ${sum.textContent}`);
    return all;
  }

  for (const name of ["token", "n_positions", "causal"]) model.on(`change:${name}`, () => { show(); say(verdict(now)); });
  model.on("change:order", () => {
    tokens.arrange();
    say(`The words moved, the counts did not: ${show()}.`);
  });
  show();
  say(verdict(now));
}

export default { render };
