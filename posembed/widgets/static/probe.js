// Figure 6: what a probe reads off the rows of a table, against the true positions, beside what knows nothing of it.
//
// All errors and points come from the package's studies. Counted and measured here: which points lie beyond the chart,
// how long the bars are, and how far the chosen point is off.

/** Where predictions are drawn: from an eighth of the table below its first position to an eighth above its last. */
export const reach = (n) => [-n / 8, (9 * n) / 8];

/** Ticks from 0 up to n: its quarters where they are round in the way of computers, else multiples of 1, 2 or 5. */
export function places(n) {
  const power = 10 ** Math.floor(Math.log10(n / 4));
  const round = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= n / 4);
  const step = n % 32 ? Math.max(1, round) : n / 4;
  return range(0, Math.floor(n / step)).map((k) => k * step);
}

/** Where a prediction stands: -1 below the chart, 1 above it, 0 in it. */
export function beyond(predicted, n) {
  const [low, high] = reach(n);
  return predicted < low ? -1 : predicted > high ? 1 : 0;
}

/** The place in a list of rising positions that is nearest to a position; of two, the first. */
export const nearest = (positions, position) =>
  positions.reduce((best, each, k) => (Math.abs(each - position) < Math.abs(positions[best] - position) ? k : best), 0);

/** What a bar shows of an error: its share of the width, which is twice the constant guess, and whether it is cut. */
export function bar(error, { constant }) {
  const share = error / (2 * constant);
  return { share: Math.min(1, share), cut: share > 1 };
}

/** An error in three digits or so. */
const shown = (error) => (error < 9.995 ? error.toFixed(2) : error < 99.95 ? error.toFixed(1) : error.toFixed(0));

/** How many rows are drawn, and how many of them lie beyond the chart. */
function drawn(predictions, { n_tested: nTested, held_out: heldOut }, n) {
  const count = (side) => predictions.filter((each) => beyond(each, n) === side).length;
  const sides = [[count(1), "above"], [count(-1), "below"]].filter(([number]) => number);
  const rows = `Drawn: ${predictions.length} of ${nTested} ${heldOut ? "tested " : ""}rows`;
  if (!sides.length) return `${rows}, all within the chart.`;
  return `${rows}; triangles: ${sides.map((side) => side.join(" ")).join(" and ")} the chart.`;
}

/** What a row is predicted to be, and how far off that is. */
function readout(position, predicted) {
  const off = Math.abs(predicted - position).toFixed(1);
  const side = predicted > position ? "too high" : "too low";
  return `predicted ${signed(predicted.toFixed(1))}, ${Number(off) ? `${off} ${side}` : "less than 0.1 off"}`;
}

/** The headline of a split and the points that are chosen, and what belongs to it. */
function headline(score, control = "table") {
  if (control !== "table") {
    const [found, own] = [score[control], score.error].map(shown);
    return score.held_out
      ? { title: `${CHOSEN[control]}: error ${found}`, rest: `Positions, the mean of several runs. The table itself: ${own}.` }
      : { title: `${CHOSEN[control]}: no test`, rest: `Error on the rows it was fitted to: ${found}, the mean of several runs. The table itself: ${own}.` };
  }
  const interval = `95\u00a0% interval ${shown(score.low)} to ${shown(score.high)}`;
  return score.held_out
    ? { title: `Test error ${shown(score.error)} positions`, rest: `${interval}. On the rows it was fitted to: ${shown(score.train)}.` }
    : { title: "No test", rest: `Error on the rows it was fitted to: ${shown(score.error)} (${interval}).` };
}

const HEIGHT = 340;
// As long as the place of the headline allows.
const CHOSEN = { "permuted labels": "Permuted", "random table": "Random" };
const OTHERS = ["constant guess", "permuted labels", "random table"];
const SHAPES = {
  table: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  "permuted labels": (r) => `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0Z`,
  "random table": (r) => `M${-r} ${-r}H${r}V${r}H${-r}Z`,
};
const TRIANGLE = { 1: "M0 -5L5 4H-5Z", "-1": "M0 5L5 -4H-5Z" };
const COLOURS = { table: 0, "permuted labels": 1, "random table": 4 };

/** The chart's places: x and y in pixels, where a prediction beyond the chart is at its edge. */
function frameOf(width, { n, control }) {
  const [from, to] = reach(n);
  const ticks = places(n);
  const { x, y, parts } = axes(width, HEIGHT,
    { from: 0, to: n, ticks, name: control.key === "permuted labels" ? "position dealt out" : "true position" },
    { from, to, ticks, name: "predicted position" });
  const inside = (predicted) => y(Math.max(from, Math.min(to, predicted)));
  return { x, y, inside, parts, ends: [from, to] };
}

/** The rows that the probe was fitted to where they are a stretch, the exact line and the constant guess. */
function background({ x, y, ends: [from, to] }, { n, score }) {
  const [first, last] = score.fitted;
  return [
    ...(score.fitted.length ? [
      svg("rect", { class: "pe-probe-fitted", x: x(first), y: y(to), width: x(last) - x(first), height: y(from) - y(to) }),
      svg("text", { class: "pe-tick", x: x((first + last) / 2), y: y(to) + 16, "text-anchor": "middle" }, "fitted here"),
    ] : []),
    svg("path", { class: "pe-probe-exact", d: `M${x(0)} ${y(0)}L${x(n)} ${y(n)}` }),
    svg("path", { class: "pe-probe-constant", d: `M${x(0)} ${y(score.guess)}H${x(n)}` }),
  ];
}

/** A point of a control, or a triangle at the edge for one that is beyond the chart. */
function mark(place, position, predicted, { n, control }) {
  const side = beyond(predicted, n);
  return svg("path", {
    class: side ? "pe-probe-point pe-probe-beyond" : "pe-probe-point",
    d: side ? TRIANGLE[side] : SHAPES[control.key](2.7),
    transform: `translate(${place.x(position).toFixed(2)} ${(place.inside(predicted) + 5 * side).toFixed(2)})`,
  });
}

/** The chart of one table, split and control, with the chosen row and its distance from the exact line. */
function plot(width, content) {
  const { score, predicted, chosen } = content;
  const place = frameOf(width, content);
  const [position, value] = [score.positions[chosen], predicted[chosen]];
  return [
    ...place.parts,
    ...background(place, content),
    ...score.positions.map((each, k) => mark(place, each, predicted[k], content)),
    svg("path", { class: "pe-probe-off", d: `M${place.x(position)} ${place.y(position)}V${place.inside(value)}` }),
    svg("circle", { class: "pe-probe-chosen", cx: place.x(position), cy: place.inside(value) + 5 * beyond(value, content.n), r: 6.5 }),
  ];
}

/** What stands for a row of the list of errors: a control's point, or the line of the constant guess. */
const swatch = (name) => svg("svg", { class: "pe-probe-swatch", viewBox: "-7 -7 14 14", "aria-hidden": "true" },
  SHAPES[name] ? svg("path", { class: "pe-probe-point", d: SHAPES[name](4) }) : svg("path", { class: "pe-probe-constant", d: "M-7 0H7" }));

/** The error of a row of the list, by its name. */
const errorOf = (score, name) => score[{ table: "error", "constant guess": "constant" }[name] ?? name];

/** A row of the list of errors: name, bar and number; the table's own has its interval too. */
function errorRow(name, words) {
  const [fill, whisker] = [h("div", { class: "pe-probe-fill" }), h("div", { class: "pe-probe-whisker" })];
  const number = h("td", { class: "pe-probe-number" });
  const node = h("tr", { class: name in COLOURS ? `pe-series-${COLOURS[name]}` : "" },
    h("th", { scope: "row" }, swatch(name), words),
    h("td", { class: "pe-probe-bars" }, h("div", { class: "pe-probe-bar", "aria-hidden": "true" }, fill, whisker)), number);
  const show = (score, chosen) => {
    const own = name === "table";
    const error = errorOf(score, name);
    const { share, cut } = bar(error, score);
    fill.style.width = `${100 * share}%`;
    fill.classList.toggle("pe-probe-cut", cut);
    whisker.hidden = !own;
    const [low, high] = [score.low, score.high].map((each) => 100 * bar(each, score).share);
    [whisker.style.left, whisker.style.width] = [`${low}%`, `${high - low}%`];
    number.textContent = shown(error);
    node.classList.toggle("pe-selected", chosen);
  };
  return { name, node, show };
}

/** The four errors on one scale. */
function errorList() {
  const rows = ["table", ...OTHERS].map((name) => errorRow(name, name === "table" ? "this table" : name));
  const node = h("table", { class: "pe-table pe-probe-errors" },
    h("caption", {}, "Mean error in positions"), h("tbody", {}, ...rows.map((row) => row.node)));
  return { node, show: (score, control) => rows.forEach((row) => row.show(score, row.name === control)) };
}

/** Texts of which one is shown, in the room of the longest: what stands below keeps its place. */
function oneOf(texts, look = "") {
  const parts = [...new Set(texts)].map((text) => h("span", { class: "pe-away" }, text));
  return {
    node: h("p", { class: `pe-note pe-probe-one ${look}` }, ...parts),
    show: (text) => parts.forEach((part) => part.classList.toggle("pe-away", part.textContent !== text)),
  };
}

/** The notes of the figure, in all the words that they can have. */
function notes(tables, splits, controls, probe) {
  const method = ({ says }) => `Probe: ${probe}. ${says}`;
  const scores = tables.flatMap((table) => Object.values(table.scores).map((score) => [score, table.n_positions]));
  const parts = {
    rest: oneOf(scores.flatMap(([score]) => controls.map(({ key }) => headline(score, key).rest)), "pe-probe-rest"),
    split: oneOf(splits.map(method)),
    drawn: oneOf(scores.flatMap(([score, n]) => Object.values(score.predicted).map((each) => drawn(each, score, n))), "pe-probe-drawn"),
    control: oneOf(controls.map(({ says }) => says)),
    about: oneOf(tables.map(({ about }) => about), "pe-probe-about"),
  };
  const show = ({ table, split, control, score, predicted, n }) => {
    const words = [headline(score, control.key).rest, method(split), drawn(predicted, score, n), control.says, table.about];
    Object.values(parts).forEach((part, k) => part.show(words[k]));
  };
  return { ...parts, show };
}

/** A slider over the rows that have a point, which depend on the table and the split. */
function rowSlider(model, positions) {
  const input = h("input", { type: "range", min: 0, step: 1 });
  input.addEventListener("input", () => assign(model, "position", positions()[input.value]));
  const words = h("span", { class: "pe-value", "aria-hidden": "true" });
  const widest = Math.max(...model.get("tables").map(({ n_positions: n }) => String(n).length));
  words.style.minWidth = `${widest}ch`;
  const show = (chosen, text) => {
    input.max = positions().length - 1;
    input.value = chosen;
    words.textContent = positions()[chosen];
    input.setAttribute("aria-valuetext", `${positions()[chosen]}: ${text}`);
  };
  return { node: h("label", { class: "pe-slider" }, h("span", {}, "position"), input, words), show };
}

function render({ model, el }) {
  const [tables, splits, controls] = ["tables", "splits", "controls"].map((name) => model.get(name));

  function view() {
    const table = tables.find(({ name }) => name === model.get("table"));
    const split = splits.find(({ key }) => key === model.get("split"));
    const control = controls.find(({ key }) => key === model.get("control"));
    const score = table.scores[split.key];
    const chosen = nearest(score.positions, model.get("position"));
    return { table, split, control, score, chosen, predicted: score.predicted[control.key], n: table.n_positions };
  }

  let now = null;
  const chart = drawing(HEIGHT, (width) => (now ? plot(width, now) : []));
  const positions = () => view().score.positions;
  pointable(chart.node, (share) => {
    const position = positions()[nearest(positions(), share * view().n)];
    if (position !== model.get("position")) assign(model, "position", position);
  });
  const rows = rowSlider(model, positions);
  const [title, point] = ["pe-probe-title", "pe-probe-readout"].map((look) => h("p", { class: look }));
  const errors = errorList();
  const said = notes(tables, splits, controls, model.get("probe"));
  const options = (list) => list.map(({ key, name }) => [key, name]);
  const area = h("div", { class: "pe-probe-chart" }, chart.node, rows.node, point);
  const { figure, say } = frame(el, "Predicted against true position",
    h("div", { class: "pe-controls pe-probe-controls" },
      ...(tables.length > 1 ? [choose(model, "table", "table", tables.map(({ name, short }) => [name, short]))] : []),
      choose(model, "split", "split", options(splits)),
      choose(model, "control", "points", options(controls))),
    h("div", { class: "pe-probe-parts" },
      h("div", { class: "pe-probe-head" }, title, said.rest.node, said.split.node), errors.node, area,
      h("div", { class: "pe-probe-notes" }, said.drawn.node, said.control.node, h("p", { class: "pe-note" }, "Line: exact. Dashed: the constant guess."))),
    said.about.node);
  figure.classList.add("pe-probe");
  // What it says can be read in other places of the figure.
  figure.lastChild.classList.add("pe-hidden");

  function draw() {
    now = view();
    const { table, split, control, score, chosen, predicted, n } = now;
    title.textContent = headline(score, control.key).title;
    title.classList.toggle("pe-probe-untested", !score.held_out);
    point.textContent = readout(score.positions[chosen], predicted[chosen]);
    rows.show(chosen, point.textContent);
    errors.show(score, control.key);
    said.show(now);
    area.className = `pe-probe-chart pe-series-${COLOURS[control.key]}`;
    chart.redraw(`Predicted against true position: ${table.short}, ${split.name}, ${control.name}. ${drawn(predicted, score, n)}`);
  }

  function summary({ table, split, control, score, predicted, n }) {
    const baselines = OTHERS.map((name) => `${name} ${shown(errorOf(score, name))}`).join(", ");
    const { title, rest } = headline(score, control.key);
    return `${table.short}, ${split.name}. ${title}. ${rest} Beside it: ${baselines}. Points: ${control.name}. ${drawn(predicted, score, n)}`;
  }

  const chosen = () => { draw(); say(summary(now)); };
  for (const name of ["table", "split", "control"]) model.on(`change:${name}`, chosen);
  model.on("change:position", () => { draw(); say(`Position ${now.score.positions[now.chosen]}: ${point.textContent}.`); });
  chosen();
}

export default { render };
