// Figure 8: position and content in the states of each layer, by model and scheme, and what it costs to take it out.
//
// All numbers come from the package; the module chooses among them and draws.

/** Where a state stands in a model. */
export const place = (state, last) => (state === 0 ? "what enters the first layer" : state === last ? "after the last layer" : `after layer ${state}`);

/** One series at a state, in words. */
export function words({ name, trained, beside, chance }, state) {
  const [mean, low, high] = trained[state];
  const guess = chance == null ? "" : `, a constant guess ${short(chance)}`;
  return `${name} ${short(mean)} (${short(low)} to ${short(high)}), untrained ${short(beside[state])}${guess}`;
}

/** What it costs to take position out of a state, in words. */
export function costs({ trained, beside }, state, unit) {
  const [mean, low, high] = trained[state];
  return `taking position out there costs ${short(mean)} ${unit} (${short(low)} to ${short(high)}), its control ${short(beside[state])}`;
}

const HEIGHT = 230;
const SERIES = ["pe-depth-first", "pe-depth-second", "pe-depth-third"];
const MEASURES = { shares: "share of the variance", read: "read from one state" };

function drawLines(width, { series, last, state, name, to, looks }) {
  const { x, y, parts } = axes(width, HEIGHT,
    { from: 0, to: last, ticks: range(0, last), name: "state (0 enters the first layer)" },
    { from: 0, to, ticks: [0, to / 2, to], name });
  const at = (value) => y(Math.max(0, Math.min(to, value)));
  const path = (look, values) => svg("path", { class: look, d: lineThrough(values.map((value, k) => [x(k), at(value)])) });
  return [
    ...parts,
    svg("path", { class: "pe-depth-cursor", d: lineThrough([[x(state), y(0)], [x(state), y(to)]]) }),
    ...series.flatMap(({ trained, beside }, k) => [
      svg("path", {
        class: `pe-depth-band ${looks[k]}`,
        d: lineThrough([...trained.map(([, low], each) => [x(each), at(low)]), ...trained.map(([, , high], each) => [x(each), at(high)]).reverse()]),
      }),
      path(`pe-depth-beside ${looks[k]}`, beside),
      path(`pe-depth-line ${looks[k]}`, trained.map(([mean]) => mean)),
      svg("circle", { class: `pe-depth-mark ${looks[k]}`, cx: x(state), cy: at(trained[state][0]), r: 5 }),
    ]),
  ];
}

/** The least round number above all values. */
const above = (values) => [0.1, 0.2, 0.5, 1, 2, 5, 10].find((each) => each >= Math.max(...values)) ?? Math.max(...values);

/** What is shown, curves of one measure or the cost of a change; what the chosen model has not is one of its own. */
export function chosen(models, { model, arm, measure, layer, taken }) {
  const its = models[model];
  const found = its.arms.find(({ name }) => name === arm) ?? its.arms.at(-1);
  const last = found.shares[0].trained.length - 1;
  const shown = { its, arm: found.name, last, state: Math.min(layer, last) };
  if (!taken) return { ...shown, series: found[measure], name: MEASURES[measure], to: 1, looks: SERIES, words };
  return {
    ...shown, series: [found.cost], name: `cost of taking position out, ${its.unit}`,
    to: above(found.cost.trained.flat()), looks: ["pe-depth-fourth"], words: (series, state) => costs(series, state, its.unit),
  };
}

function render({ model, el }) {
  const models = model.get("models");
  const read = () => chosen(models, Object.fromEntries(["model", "arm", "measure", "layer", "taken"].map((name) => [name, model.get(name)])));
  let now = read();
  const chart = drawing(HEIGHT, (width) => drawLines(width, now));
  const lines = range(0, 2).map(() => h("li", {}));

  // Arms and layers differ between models, so their controls are made anew with each.
  const rest = h("div", { class: "pe-controls pe-depth-rest" });
  const armed = () => rest.replaceChildren(
    choose(model, "arm", "positions", now.its.arms.map(({ name }) => [name, name])),
    slider(model, "layer", "state", range(0, now.last)));
  const { figure, say } = frame(el, "Position and content by layer",
    h("div", { class: "pe-controls" },
      choose(model, "model", "model", models.map(({ name }, k) => [k, name])),
      choose(model, "measure", "measure", Object.entries(MEASURES)),
      toggle(model, "taken", "take position out")),
    rest,
    chart.node,
    h("ul", { class: "pe-depth-list" }, ...lines),
    h("p", { class: "pe-note" }, "Line and band: mean and 95\u00a0% interval of five seeds. Dashed: the untrained models, or the control of the change."));
  figure.classList.add("pe-depth");
  figure.lastChild.classList.add("pe-hidden");

  function show() {
    now = read();
    const { its, arm, series, last, state, name, looks } = now;
    const texts = series.map((each) => now.words(each, state));
    lines.forEach((line, k) => {
      line.className = `pe-depth-item ${looks[k] ?? ""} ${texts[k] ? "" : "pe-depth-off"}`;
      line.textContent = texts[k] ?? "";
    });
    const said = `${its.name}, ${arm}, ${place(state, last)}: ${texts.join("; ")}.`;
    chart.redraw(`${name} by state. ${said}`);
    return said;
  }

  const tell = () => say(show());
  model.on("change:model", () => {
    now = read();
    assign(model, "arm", now.arm);
    assign(model, "layer", now.state);
    armed();
    tell();
  });
  for (const name of ["arm", "measure", "layer", "taken"]) model.on(`change:${name}`, tell);
  armed();
  tell();
}

export default { render };
