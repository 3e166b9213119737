// Figure 5: what each relative scheme adds to the logits of a head, by offset, or the weights that attention makes of it.
//
// The package's tables have a bias for each offset: one table for all queries or, where the query's position matters,
// one for each that the slider offers. Buckets, clipped offsets, what FIRE reads and the softmax are computed here.

/** T5's bucket of an offset: the last one whose first distance is not beyond it, the future behind the past. */
export function bucket(offset, { first_distances: firsts, two_sided: twoSided }) {
  const distance = twoSided ? Math.abs(offset) : Math.max(0, -offset);
  const place = firsts.filter((first) => first <= distance).length - 1;
  return twoSided && offset > 0 ? firsts.length + place : place;
}

/** The offset whose vector Shaw uses. */
export const clip = (offset, limit) => Math.max(-limit, Math.min(limit, offset));

/** What FIRE's network reads: the distance as a share of how far the query could look, both behind a logarithm. */
export function share(offset, position, { threshold, log_scale: c, epsilon }) {
  const psi = (distance) => Math.log1p(c * distance);
  return psi(Math.abs(offset)) / (psi(Math.max(threshold, position)) + epsilon);
}

/** The first and the last offset between two bounds that have the same number as this one, because the scheme says so. */
export function sharing(offset, rule, from, to) {
  const same = { buckets: (each) => bucket(each, rule), clip: (each) => clip(each, rule.limit) }[rule.kind];
  if (!same) return [offset, offset];
  let [first, last] = [offset, offset];
  while (first > from && same(first - 1) === same(offset)) first--;
  while (last < to && same(last + 1) === same(offset)) last++;
  return [first, last];
}

/** A head's biases at the offsets from one to another, for a query at a position. */
export function biases(form, positions, head, position, from, to) {
  const varies = form.tables.length > 1;
  const row = form.tables[varies ? positions.indexOf(position) : 0][head - 1];
  const first = varies ? -position : -positions.at(-1);
  return range(from, to).map((offset) => row[offset - first]);
}

export function softmax(logits) {
  const top = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - top));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** The distance within which half of the weight lies; the first weight is that of the offset `from`. */
export function halfWithin(weights, from) {
  const within = (distance) =>
    weights.reduce((sum, weight, k) => (Math.abs(from + k) <= distance ? sum + weight : sum), 0);
  // Half, but for the rounding of the sums.
  const half = within(Infinity) * (0.5 - 1e-9);
  let distance = 0;
  while (within(distance) < half) distance++;
  return distance;
}

/** A bias in about four digits. */
const shown = (bias) =>
  signed(bias.toFixed(Math.abs(bias) < 1 ? 4 : Math.abs(bias) < 10 ? 3 : 2).replace(/^-(0\.0*)$/, "$1"));

const percent = (share) => (share > 0 && share < 0.005 ? "< 0.01 %" : `${share.toFixed(2)} %`);

const span = (first, last) => (first === last ? signed(first) : `${signed(first)} to ${signed(last)}`);

// As in the book: t for the distance, m for the query's position, s for a slope, d for the width of a head.
const FORMULAS = {
  buckets: "one number a bucket", clip: "q · a(clip(offset)) / √d", line: "−s t",
  log: "−r₁ log(1 + r₂ t)", power: "−r₁ t^r₂", share: "f(ψ(t) / ψ(max(L, m)))",
};
const SHARED = ["buckets", "clip"];

/** A slope, as a share where it is one. */
const slope = (s) => (Number.isInteger(1 / s) ? `1/${1 / s}` : String(Number(s.toPrecision(3))));

/** What a scheme makes of an offset, in a few words. */
function account(rule, { head, position, offset, from, to }) {
  const own = (name) => rule[name][head - 1];
  switch (rule.kind) {
    case "buckets": return `bucket ${bucket(offset, rule)}: ${span(...sharing(offset, rule, from, to))}`;
    case "clip": return clip(offset, rule.limit) === offset ? "not clipped" : `clipped to ${signed(clip(offset, rule.limit))}`;
    case "line": return `s = ${slope(own("slopes"))}`;
    case "log":
    case "power": return `r₁ = ${own("scale").toFixed(2)}, r₂ = ${own("shape").toFixed(2)}`;
    case "share": return `L = ${Number(rule.threshold.toFixed(1))}, f reads ${share(offset, position, rule).toFixed(2)}`;
    default: return "";
  }
}

// In percent: lighter keys lie on the ground of the chart.
const LIGHTEST = 0.01;

/** The vertical axis: for weights in percent a logarithmic one, on which a far key is seen beside a near one. */
export function vertical(values, weights) {
  if (weights) return { from: LIGHTEST, to: 100, log: true, ticks: [LIGHTEST, 0.1, 1, 10, 100].map((value) => ({ value, words: String(value) })) };
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const to = high === low ? low + 1 : high;
  return { from: low, to, ticks: ticks(low, to) };
}

const HEIGHT = 158;
const MARGINS = { left: 46, right: 9, top: 9, bottom: 36 };

/** The parts of one chart: a line for each series, over the offsets that the query sees. */
function plot(width, { series, from, to, offset, weights, band }) {
  const [left, right, top, bottom] = [MARGINS.left, width - MARGINS.right, MARGINS.top, HEIGHT - MARGINS.bottom];
  const text = (x, y, anchor, words) => svg("text", { class: "pe-tick", x, y, "text-anchor": anchor }, words);
  const x = scale({ from: from - 0.5, to: to + 0.5 }, left, right);
  const across = [from, Math.round((from + to) / 2), to];
  const below = [
    ...across.map((value, k) => text([left, x(value), right][k], bottom + 15, ["start", "middle", "end"][k], signed(value))),
    text((left + right) / 2, HEIGHT - 4, "middle", "offset"),
  ];
  if (!series.length) return [...below, text((left + right) / 2, (top + bottom) / 2, "middle", "not defined")];

  const axis = vertical(series.flatMap((each) => each.values), weights);
  const place = scale(axis, bottom, top);
  const y = (value) => place(Math.max(axis.from, value));
  const path = ({ values, rule, colour, chosen, dash }) => svg("path", {
    class: `pe-bias-line ${colour}${chosen ? "" : " pe-bias-other"}`,
    "stroke-dasharray": dash,
    // Where offsets share a number the line is one of steps, each as wide as an offset.
    d: lineThrough(values.flatMap((value, n) =>
      (SHARED.includes(rule.kind) ? [-0.5, 0.5] : [0]).map((aside) => [x(from + n + aside), y(value)]))),
  });
  const chosen = series.filter((each) => each.chosen);
  return [
    ...(band && band[0] < band[1] ? [svg("rect", { class: "pe-bias-band", x: x(band[0] - 0.5), y: top, width: x(band[1] + 1) - x(band[0]), height: bottom - top })] : []),
    ...axis.ticks.flatMap(({ value, words }) => [
      svg("line", { class: value === (weights ? axis.from : 0) ? "pe-axis" : "pe-grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
      text(left - 5, y(value) + 4, "end", weights ? `${words}%` : words),
    ]),
    ...below,
    svg("line", { class: "pe-bias-cursor", x1: x(offset), x2: x(offset), y1: top, y2: bottom }),
    ...series.filter((each) => !each.chosen).map(path),
    ...chosen.map(path),
    ...chosen.map(({ values, colour }) =>
      svg("circle", { class: `pe-bias-dot ${colour}`, cx: x(offset), cy: y(values[offset - from]), r: 4 })),
  ];
}

/** The part of a chart's width at which a pointer is, from 0 at the first offset's edge to 1 at the last one's. */
function partAt(node, event) {
  const { left, width } = node.getBoundingClientRect();
  return (event.clientX - left - MARGINS.left) / (width - MARGINS.left - MARGINS.right);
}

/** A chart with its name, the value at the offset, the scheme's formula, and what it makes of the offset. */
function card(name, look, point) {
  const [value, formula, words] = ["pe-bias-value", "pe-bias-words", "pe-bias-words"].map((part) => h("span", { class: part }));
  let content = null;
  const chart = drawing(HEIGHT, (width) => (content ? plot(width, content) : []));
  for (const kind of ["pointerdown", "pointermove"])
    chart.node.addEventListener(kind, (event) => point(partAt(chart.node, event)));
  const swatch = look === null ? [] : [svg("svg", { class: "pe-bias-swatch", viewBox: "0 0 22 8", "aria-hidden": "true" },
    svg("line", { class: "pe-bias-line", x2: 22, y1: 4, y2: 4, "stroke-dasharray": look.dash }))];
  const node = h("div", { class: `pe-bias ${look === null ? "" : look.colour}` },
    h("div", { class: "pe-bias-title" }, ...swatch, h("strong", {}, name), value), formula, chart.node, words);
  return {
    node,
    show(next, label, ...texts) {
      content = next;
      [value.textContent, formula.textContent, words.textContent] = texts;
      chart.redraw(label);
    },
  };
}

/** A slider over the offsets that there are, which depend on the query's position and on the objective. */
function offsetSlider(model, bounds, widest) {
  const input = h("input", { type: "range", step: 1, oninput: () => assign(model, "offset", Number(input.value)) });
  const words = h("span", { class: "pe-value", "aria-hidden": "true" });
  words.style.minWidth = `${widest}ch`;
  const show = () => {
    [input.min, input.max] = bounds();
    input.value = model.get("offset");
    words.textContent = signed(model.get("offset"));
    input.setAttribute("aria-valuetext", words.textContent);
  };
  return { node: h("label", { class: "pe-slider" }, h("span", {}, "offset"), input, words), show };
}

function render({ model, el }) {
  const panels = model.get("panels");
  const positions = model.get("positions");
  const heads = range(1, model.get("n_heads"));
  const objectives = model.get("objectives");

  function view() {
    const [head, position, offset, weights] = ["head", "position", "offset", "weights"].map((name) => model.get(name));
    // The trained models are causal.
    const objective = objectives.at(model.get("bidirectional") && !model.get("trained") ? -1 : 0);
    return { head, position, offset, weights, objective, trained: model.get("trained"), from: -position, to: objective === "causal" ? 0 : position };
  }

  function setOffset(offset) {
    const { from, to } = view();
    const inside = Math.max(from, Math.min(to, offset));
    if (inside !== model.get("offset")) assign(model, "offset", inside);
  }

  const point = (part) => {
    const { from, to } = view();
    setOffset(Math.round(from - 0.5 + part * (to - from + 1)));
  };
  const offsets = offsetSlider(model, () => [view().from, view().to], String(positions.at(-1)).length + 1);
  const ahead = toggle(model, "bidirectional", "bidirectional");
  const aheadSwitch = ahead.querySelector("input");
  const controls = h("div", { class: "pe-controls pe-pinned pe-bias-controls" },
    slider(model, "head", "head", heads),
    slider(model, "position", "query at", positions),
    offsets.node,
    ...(panels[0].learned ? [toggle(model, "trained", "trained")] : []),
    toggle(model, "weights", "attention weights"), ahead);
  const heading = h("p", { class: "pe-hint" });
  const looks = panels.map(({ scheme }, k) => lookOf(scheme, k));
  const cards = panels.map(({ name }, k) => card(name, looks[k], point));
  const together = card("Together", null, point);
  const grid = h("div", { class: "pe-bias-panels" }, ...[...(cards.length > 1 ? [together] : []), ...cards].map(({ node }) => node));
  const legends = [model.get("note"), model.get("learned_note")].filter(Boolean).map((note) =>
    h("p", { class: "pe-hint" }, `Thin lines: the other heads. Shaded: offsets that share a number. ${note}`));
  const legend = h("div", { class: "pe-stack" }, ...legends);
  const { figure, say } = frame(el, "Relative biases by head and offset", controls, heading, grid, legend);
  figure.classList.add("pe-biases");

  /** The lines of a panel, one for each head; none where the scheme is not defined. Weights are in percent. */
  function lines(form, k, { position, from, to, weights, head }) {
    return heads.map((each) => {
      const values = biases(form, positions, each, position, from, to);
      return { values: weights ? softmax(values).map((weight) => 100 * weight) : values, rule: form.rule, colour: looks[k].colour, chosen: each === head };
    });
  }

  /** Draw a panel; return its chosen line and what there is to say of it. */
  function drawPanel({ name, forms: drawn, learned }, k, now) {
    const forms = now.trained ? learned : drawn;
    const form = forms.both ?? forms[now.objective];
    if (!form) {
      const only = now.objective === "causal" ? "bidirectional only" : "causal only";
      cards[k].show({ ...now, series: [] }, `${name} is ${only}`, "", only, "");
      return { series: [], said: `${name} is ${only}` };
    }
    const { head, offset, from, to, weights } = now;
    const series = lines(form, k, now);
    const { values } = series[head - 1];
    const words = weights ? percent : shown;
    const at = words(values[offset - from]);
    const why = account(form.rule, now);
    const label = `${name}, head ${head}: ${words(values[0])} at offset ${signed(from)}, ${words(values.at(-1))} at ${signed(to)}, ${at} at ${signed(offset)}`;
    cards[k].show({ ...now, series, band: sharing(offset, form.rule, from, to) }, label,
      at, FORMULAS[form.rule.kind] ?? "", weights ? `half within distance ${halfWithin(values, from)}` : why);
    return { series: [series[head - 1]], said: `${name} ${at}${!weights && SHARED.includes(form.rule.kind) ? ` (${why})` : ""}` };
  }

  function draw() {
    const now = view();
    const { head, position, offset, weights } = now;
    heading.textContent = weights
      ? "Weight of each key if contents are equal; a line is ten times the next."
      : "Bias added to the logit of each key, by offset (key minus query).";
    offsets.show();
    // Of the trained models there is one kind: the switch keeps its place, and cannot be used.
    aheadSwitch.disabled = now.trained;
    aheadSwitch.checked = now.objective !== objectives[0];
    ahead.title = now.trained ? "The trained models are causal." : "";
    legends.forEach((each, k) => each.classList.toggle("pe-away", Boolean(k) !== now.trained));
    const drawn = panels.map((panel, k) => drawPanel(panel, k, now));
    // The first on top, whose line has gaps, so that what lies below it shows.
    const series = drawn.flatMap((each, k) => each.series.map((line) => ({ ...line, dash: looks[k].dash }))).reverse();
    together.show({ ...now, series }, `All schemes on one scale, head ${head}`, "", "on one scale", `head ${head}, query at ${position}`);
    const said = drawn.map((each) => each.said).join(", ");
    say(weights
      ? `Head ${head}, query at ${position}, contents equal, weight at offset ${signed(offset)}: ${said}.`
      : `${now.trained ? "Trained, head" : "Head"} ${head}, offset ${signed(offset)}: ${said}.`);
  }

  const moved = () => { setOffset(model.get("offset")); draw(); };
  model.on("change:position", moved);
  model.on("change:bidirectional", moved);
  model.on("change:trained", moved);
  model.on("change:head", draw);
  model.on("change:offset", draw);
  model.on("change:weights", draw);
  draw();
}

export default { render };
