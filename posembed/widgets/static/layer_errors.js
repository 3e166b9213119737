// Figure 9: how far off a probe reads positions from each layer, by scheme, seed and step; the paper's beside.
//
// All errors, and their intervals over all seeds, come from the package. The mean over the seeds that are switched on is
// computed here, and every error as a share of that of always guessing the middle.

const mean = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

/** What is drawn and said: the chosen group, step and layer, and of each scheme what is switched on. */
export function studied({ groups, known, published, group: key, schemes, seeds, step, depth, paper }) {
  const group = groups.find((each) => each.key === key);
  // A step that these models were not probed at is kept for those that were.
  const at = group.steps.includes(step) ? group.steps.indexOf(step) : group.steps.length - 1;
  const shown = group.seeds.filter((seed) => seeds.includes(seed));
  const whole = shown.length === group.seeds.length;
  const rows = known.map(({ key, name }) => {
    const own = group.schemes.find((scheme) => scheme.key === key);
    const on = Boolean(own) && schemes.includes(key);
    const lines = on ? own.errors[at].filter((_, k) => shown.includes(group.seeds[k])) : [];
    return {
      key, name, on, lines, probed: Boolean(own),
      means: lines.length ? lines[0].map((_, layer) => mean(lines.map((line) => line[layer]))) : [],
      intervals: on && whole ? own.intervals[at].map(([, low, high]) => [low, high]) : null,
      paper: on && paper ? published.shares[key] ?? [] : [],
    };
  });
  return { group, rows, shown, whole, step: group.steps[at], layer: Math.round(depth * group.n_layers) };
}

/** How high the chart is: room for every error of every group, so that it is the same for all. */
export function reach(groups) {
  const shares = groups.flatMap(({ schemes, middle }) => schemes.flatMap(({ errors }) => errors.flat(2)).map((error) => error / middle));
  return Math.max(1.5, Math.ceil(2 * Math.max(...shares)) / 2);
}

/** The layer of the paper's models that is as deep, and the error there. */
export const asDeep = (curve, depth) => curve[Math.round(depth * (curve.length - 1))];

/** An error in positions, as exact as a few seeds can tell; never minus zero. */
function errorWords(error) {
  const text = error.toFixed(Math.abs(error) < 0.995 ? 2 : 1);
  return /[1-9]/.test(text) ? signed(text) : text.replace("-", "");
}

const intervalWords = ([low, high]) => `(${errorWords(low)} to ${errorWords(high)})`;

/** A list of words as English has it: 1, 2 and 4. */
const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : `${words[0]}`);

const place = ({ group, layer, step }) => `${layer} of ${group.n_layers}, ${step ? `after ${step} steps` : "untrained"}`;

/** Whose errors are shown. */
function whose({ shown, whole }) {
  if (!shown.length) return "no seed is switched on";
  if (whole) return `mean of ${shown.length} seeds`;
  return shown.length > 1 ? `mean of seeds ${listed(shown)}` : `seed ${shown[0]} alone`;
}

/** What stands above the numbers. */
const heading = (now) => `Error at layer ${place(now)}: ${whose(now)}${now.whole ? ", 95\u00a0% interval" : ""}`;

/** All numbers of a layer in a sentence. */
function sentence(now) {
  const { rows, shown, layer, group } = now;
  const on = rows.filter((row) => row.on);
  if (!shown.length) return "No seed is switched on.";
  if (!on.length) return "No scheme is switched on.";
  const words = on.map(({ name, means, intervals }, k) => {
    const error = k ? `by ${errorWords(means[layer])}` : `off by ${errorWords(means[layer])} positions`;
    return `${name} ${error}${intervals ? ` ${intervalWords(intervals[layer])}` : ""}`;
  });
  return `Layer ${place(now)}, ${whose(now)}: ${words.join("; ")}; always the middle by ${errorWords(group.middle)}.`;
}

const HEIGHT = 340;

/** What one scheme draws: the paper's curve, a thin line a seed, and their mean with a mark at each layer. */
function curves({ x, y }, { key, lines, means, paper }, { group, layer }) {
  const n = group.n_layers;
  const { colour, dash, mark: outline } = lookOf(key);
  const path = (look, shares, dashes) => svg("path", {
    class: look, "stroke-dasharray": dashes, d: lineThrough(shares.map((share, k) => [x(k / (shares.length - 1)), y(share)])) });
  const mark = (look, radius, depth, share) => svg("path", {
    class: `pe-point ${look}`, d: outline(radius), transform: `translate(${x(depth).toFixed(2)} ${y(share).toFixed(2)})` });
  const ours = (errors) => errors.map((error) => error / group.middle);
  return svg("g", { class: colour, "data-scheme": key },
    ...(paper.length ? [path("pe-layers-paper", paper), mark("pe-layers-theirs", 4, layer / n, asDeep(paper, layer / n))] : []),
    ...lines.map((line) => path("pe-seed", ours(line))),
    ...(means.length ? [path("pe-mean", ours(means), dash)] : []),
    ...ours(means).map((share, k) => mark("", k === layer ? 6 : 4, k / n, share)));
}

/** Whether the name of a line stands above it, where fewer of the curves that end near it are in its way than below. */
export function isNamedAbove(share, ends) {
  const between = (low, high) => ends.filter((end) => end > low && end < high).length;
  return between(share, share + 0.15) < between(share - 0.15, share);
}

/** The lines of the two guesses that know nothing, and their names at the right. */
function guesses({ x, y }, { rows, group: { n_layers: n, middle, random } }) {
  const ends = rows.flatMap(({ means }) => means.filter((_, k) => k / n > 0.6)).map((error) => error / middle);
  const line = (look, share) => svg("path", { class: look, d: `M${x(0)} ${y(share)}H${x(1)}` });
  const words = (share, text) => svg("text", {
    class: "pe-tick pe-layers-word", x: x(1) - 2, y: y(share) + (isNamedAbove(share, ends) ? -6 : 15), "text-anchor": "end" }, text);
  return {
    lines: [line("pe-layers-middle", 1), line("pe-layers-random", random / middle)],
    words: [words(1, "always the middle"), words(random / middle, "at random")],
  };
}

function draw(width, top, now) {
  const { group, rows, layer } = now;
  const n = group.n_layers;
  const frame = axes(width, HEIGHT,
    { from: 0, to: 1, ticks: range(0, n).map((k) => k / n), name: "depth: layer / number of layers", words: (depth) => `${Math.round(depth * n)}/${n}` },
    { from: 0, to: top, ticks: range(0, 2 * top).map((k) => k / 2), name: "error, as a share of always the middle" });
  const { lines, words } = guesses(frame, now);
  const across = frame.x(layer / n);
  return [
    ...frame.parts, ...lines,
    svg("path", { class: "pe-cursor", d: `M${across} ${frame.y(0)}V${frame.y(top)}` }),
    // The first scheme is drawn last, on top.
    ...rows.map((row) => curves(frame, row, now)).reverse(),
    ...words,
  ];
}

/** A row of the list: a scheme's switch with its look, and its numbers at the chosen layer. */
function schemeRow(model, { key, name }) {
  const input = h("input", { type: "checkbox", role: "switch", onchange: () => assign(model, "schemes", flip(model.get("schemes"), key)) });
  const [error, span, share, paper] = ["pe-layers-error", "pe-layers-interval", "", ""].map((look) => h("span", { class: look }));
  const { colour, dash, mark } = lookOf(key);
  const sign = legendLine(svg("path", { class: "pe-mean", "stroke-dasharray": dash, d: "M-13 0H13" }), svg("path", { class: "pe-point", d: mark(4.5) }));
  const node = h("tr", { class: colour },
    h("th", { scope: "row" }, h("label", { class: "pe-toggle" }, input, sign, h("span", {}, name))),
    h("td", {}, error, span), h("td", {}, share), h("td", {}, paper));
  const show = ({ on, probed, means, intervals, paper: curve }, { group, layer }) => {
    input.checked = on;
    input.classList.toggle("pe-away", !probed);
    node.classList.toggle("pe-off", !on);
    error.textContent = means.length ? errorWords(means[layer]) : "";
    span.textContent = intervals ? intervalWords(intervals[layer]) : probed ? "" : "not probed";
    share.textContent = means.length ? (means[layer] / group.middle).toFixed(2) : "";
    paper.textContent = curve.length ? asDeep(curve, layer / group.n_layers).toFixed(2) : "";
  };
  return { node, show };
}

/** A row of what knows nothing. */
function guessRow(name, look, error) {
  const [number, share] = [h("td"), h("td")];
  const node = h("tr", {},
    h("th", { scope: "row" }, h("span", { class: "pe-layers-guess" }, legendLine(svg("path", { class: look, d: "M-13 0H13" })), name)), number, share, h("td"));
  const show = (_, { group }) => {
    number.textContent = errorWords(group[error]);
    share.textContent = (group[error] / group.middle).toFixed(2);
  };
  return { node, show };
}

/** The numbers of the chosen layer, which are the switches of the schemes and the key to the chart as well. */
function numberTable(model) {
  const rows = [
    ...model.get("known").map((scheme) => schemeRow(model, scheme)),
    guessRow("always the middle", "pe-layers-middle", "middle"), guessRow("at random", "pe-layers-random", "random"),
  ];
  const caption = h("caption");
  const heads = ["", "positions", "share", "paper"].map((words) => (words ? h("th", { scope: "col" }, words) : h("td")));
  const node = h("table", { class: "pe-table pe-layers-numbers" }, caption,
    h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows.map((row) => row.node)));
  const show = (now) => {
    caption.textContent = heading(now);
    rows.forEach((row, k) => row.show(now.rows[k], now));
  };
  return { node, show };
}

/** A switch for each seed of any group. */
function seedSwitches(model, groups) {
  const seeds = [...new Set(groups.flatMap((group) => group.seeds))].sort((a, b) => a - b);
  const buttons = seeds.map((seed) => h("button", {
    type: "button", role: "switch", class: "pe-button pe-layers-seed-switch", "aria-label": `seed ${seed}`,
    onclick: () => assign(model, "seeds", flip(model.get("seeds"), seed)) }, seed));
  const show = ({ group, shown }) => buttons.forEach((button, k) => {
    button.classList.toggle("pe-away", !group.seeds.includes(seeds[k]));
    button.setAttribute("aria-checked", String(shown.includes(seeds[k])));
  });
  return { node: h("div", { class: "pe-layers-seeds", role: "group", "aria-label": "seeds" }, h("span", {}, "seeds"), ...buttons), show };
}

/** A slider over values that depend on the group; `pick(k)` is called with the place of the chosen one. */
function places(name, longest, pick) {
  const input = h("input", { type: "range", min: 0, step: 1, oninput: () => pick(Number(input.value)) });
  const shown = h("span", { class: "pe-value", "aria-hidden": "true" });
  shown.style.minWidth = `${longest}ch`;
  const show = (n, chosen, words) => {
    input.max = n - 1;
    input.value = chosen;
    shown.textContent = words;
    input.setAttribute("aria-valuetext", words);
  };
  return { node: h("label", { class: "pe-slider" }, h("span", {}, name), input, shown), show };
}

const stepWords = (step, { steps }) => (step ? `${step} of ${steps.at(-1)}` : "untrained");

const TRAITS = ["group", "schemes", "seeds", "step", "depth", "paper"];

function render({ model, el }) {
  const groups = model.get("groups");
  const published = model.get("published");
  const fixed = { groups, published, known: model.get("known") };
  const read = () => studied({ ...fixed, ...Object.fromEntries(TRAITS.map((name) => [name, model.get(name)])) });
  let now = read();
  const chooseLayer = (layer) => {
    if (layer !== now.layer) assign(model, "depth", layer / now.group.n_layers);
  };

  const top = reach(groups);
  const chart = drawing(HEIGHT, (width) => draw(width, top, now));
  pointable(chart.node, (depth) => chooseLayer(Math.round(depth * now.group.n_layers)));
  const layers = places("layer", 6, chooseLayer);
  const longest = Math.max(...groups.flatMap((group) => group.steps.map((step) => stepWords(step, group).length)));
  const steps = places("steps", longest, (k) => assign(model, "step", now.group.steps[k]));
  const running = h("div", { class: "pe-run" }, steps.node, player(model, "step", "steps", () => now.group.steps, { pace: 1200 }));
  const paper = toggle(model, "paper", "the paper’s curves");
  const seeds = seedSwitches(model, groups);
  const numbers = numberTable(model);
  const about = h("span");
  const { figure, say } = frame(el, "Probe error by layer",
    h("div", { class: "pe-controls pe-layers-controls" },
      choose(model, "group", "models", groups.map(({ key, name }) => [key, name])), paper, seeds.node, running),
    h("div", { class: "pe-layers-parts" },
      h("div", {}, chart.node, h("div", { class: "pe-controls pe-layers-layer" }, layers.node)), numbers.node),
    h("p", { class: "pe-note" }, about, ` Thin lines: one seed each; thick: their mean. Dotted, and in the last column at the same depth: ${published.about}.`));
  figure.classList.add("pe-layers");
  // What it says can be read in other places of the figure.
  figure.lastChild.classList.add("pe-hidden");

  function show() {
    now = read();
    const { group, step, layer } = now;
    layers.show(group.n_layers + 1, layer, `${layer} of ${group.n_layers}`);
    steps.show(group.steps.length, group.steps.indexOf(step), stepWords(step, group));
    seeds.show(now);
    // What would do nothing is not there; its place is, so that nothing jumps.
    running.classList.toggle("pe-away", group.steps.length < 2);
    paper.classList.toggle("pe-away", !now.rows.some(({ key, on }) => on && key in published.shares));
    numbers.show(now);
    about.textContent = group.about;
    chart.redraw(`Probe error by layer: ${group.name}. ${sentence(now)}`);
  }

  for (const name of ["schemes", "seeds", "step", "depth"]) model.on(`change:${name}`, () => { show(); say(sentence(now)); });
  model.on("change:paper", () => { show(); say(`The paper’s curves are ${model.get("paper") ? "shown" : "hidden"}.`); });
  model.on("change:group", () => { show(); say(`${now.group.about} ${sentence(now)}`); });
  show();
  say(sentence(now));
}

export default { render };
