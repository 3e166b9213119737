// Figure 12: arms of a study along one axis, with seeds and intervals, and how far each is from the arm of choice.
//
// Means and intervals, of differences too, come from the package; differences of single seeds are taken here.

const HEIGHT = 300;
const DECIMALS = 3;

/** What is drawn and said: of each arm its mean, interval and seeds at each place, less those of the arm of choice. */
export function compared({ series, differences, less, shown, at, x }) {
  const zero = series.find(({ name }) => name === less);
  const rows = series.map(({ name, scheme, seeds, ends }) => {
    const minus = (value, k, place) => (value === null || zero.seeds[k][place] === null ? null : value - zero.seeds[k][place]);
    const lines = zero ? seeds.map((line, k) => line.map((value, place) => minus(value, k, place))) : seeds;
    // Less itself an arm is zero everywhere, which the line says.
    const own = name === less;
    return { name, scheme, own, on: shown.includes(name), ends: own ? [] : zero ? differences[less][name] : ends, seeds: own ? [] : lines };
  });
  return { rows, less, at, place: x[at] };
}

/** The ends of the vertical axis: round numbers around means and seeds of all arms that are on; an interval may be cut. */
export function reach(rows, zero) {
  const all = rows.filter(({ on }) => on).flatMap(({ ends, seeds }) => [...ends.filter(Boolean).map(([mean]) => mean), ...seeds.flat()]).filter((value) => value !== null);
  if (!all.length) return { from: 0, to: 1 };
  const [low, most] = [Math.min(...all, ...(zero ? [0] : [])), Math.max(...all, ...(zero ? [0] : []))];
  const high = most > low ? most : low + 1;
  const [first, second] = ticks(low, high).map(({ value }) => value);
  const step = second - first || high - low;
  return { from: Math.floor(low / step + 1e-9) * step, to: Math.ceil(high / step - 1e-9) * step };
}

const words = ([mean, low, high]) => [short(mean, DECIMALS), `(${short(low, DECIMALS)} to ${short(high, DECIMALS)})`];

/** All that stands at a place, in a sentence. */
export function sentence({ rows, less, at, place }, xlabel) {
  const on = rows.filter(({ on, ends }) => on && ends[at]);
  const what = less ? `, minus ${less}` : "";
  const found = on.map(({ name, ends }) => `${name} ${words(ends[at]).join(" ")}`);
  return `${xlabel}: ${place}${what}. ${found.join("; ") || "nothing is switched on"}.`;
}

/** Runs of neighbours that are there. */
export const unbroken = (points) =>
  points.reduce((runs, point) => (point ? [...runs.slice(0, -1), [...runs.at(-1), point]] : [...runs, []]), [[]]).filter((run) => run.length);

/** Heads at the ends of an interval that goes on beyond the chart. */
const heads = (x, y, [, low, high]) =>
  `${y.cut(low) ? `M${x - 4} ${y(low) - 5}l4 5l4 -5` : ""}${y.cut(high) ? `M${x - 4} ${y(high) + 5}l4 -5l4 5` : ""}`;

/** An arm where numbers are the places: its band, its seeds, its mean. */
function lines({ x, y }, { name, scheme, ends, seeds }, k, places, singles, few) {
  const { colour, dash, mark } = lookOf(scheme || name, k);
  const points = (values) => unbroken(values.map((value, place) => (value === null ? null : [x(places[place]), y(value)])));
  const path = (look, run, dashes) => svg("path", { class: look, d: lineThrough(run), "stroke-dasharray": dashes });
  const there = unbroken(ends.map((each, place) => each && [place, each]));
  const band = (run) => [...run.map(([place, [, low]]) => [x(places[place]), y(low)]), ...run.map(([place, [, , high]]) => [x(places[place]), y(high)]).reverse()];
  return svg("g", { class: colour, "data-arm": name },
    ...there.map((run) => path("pe-compare-band", band(run))),
    ...(singles ? seeds.flatMap(points).map((run) => path("pe-seed", run)) : []),
    ...points(ends.map((each) => each && each[0])).map((run) => path("pe-mean", run, dash)),
    ...(few ? [svg("path", { class: "pe-compare-interval", d: ends.map((each, place) => (each ? heads(x(places[place]), y, each) : "")).join("") })] : []),
    ...(few ? ends.map((each, place) => each && svg("path", { class: "pe-point", d: mark(4), transform: `translate(${x(places[place]).toFixed(2)} ${y(each[0]).toFixed(2)})` })).filter(Boolean) : []));
}

/** How far from its place each arm that is there stands: beside each other around it, and on it where it is alone. */
export function beside(rows, place) {
  const there = rows.filter(({ ends }) => ends[place]);
  return (row) => (0.6 * (there.indexOf(row) - (there.length - 1) / 2)) / there.length;
}

/** An arm where names are the places: beside those of the others, its interval, mean and seeds. */
function marks({ x, y }, row, k, rows, singles) {
  const { name, scheme, ends, seeds } = row;
  const { colour, mark } = lookOf(scheme || name, k);
  const at = (place) => x(place + beside(rows, place)(row));
  return svg("g", { class: colour, "data-arm": name }, ...ends.flatMap((each, place) => (each ? [
    svg("path", { class: "pe-compare-interval", d: `M${at(place)} ${y(each[1])}V${y(each[2])}${heads(at(place), y, each)}` }),
    ...(singles ? seeds.filter((line) => line[place] !== null).map((line) => svg("circle", { class: "pe-compare-seed", cx: at(place) + 5, cy: y(line[place]), r: 2.5 })) : []),
    svg("path", { class: "pe-point", d: mark(5), transform: `translate(${at(place).toFixed(2)} ${y(each[0]).toFixed(2)})` }),
  ] : [])));
}

const named = (places) => typeof places[0] === "string";

/** Where the places stand on the horizontal axis. */
function axisOf(places, name) {
  if (named(places)) return { from: -0.5, to: places.length - 0.5, ticks: range(0, places.length - 1), name, words: (place) => places[place] };
  const [from, to] = [places[0], places.at(-1)];
  return { from, to, ticks: places.length > 6 ? ticks(from, to).map(({ value }) => value) : places, name };
}

function draw(width, { x: places, xlabel, ylabel, marks: lined }, now, singles) {
  const { rows, less, at } = now;
  const { from, to } = reach(rows, Boolean(less));
  const vertical = ticks(from, to);
  const frame = axes(width, HEIGHT, axisOf(places, xlabel),
    { from, to, ticks: vertical.map(({ value }) => value), words: (value) => vertical.find((each) => each.value === value).words, name: less ? `${ylabel}, minus ${less}` : ylabel }, 48);
  const x = frame.x;
  const y = Object.assign((value) => frame.y(clamp(from, value, to)), { cut: (value) => value < from || value > to });
  const across = x(named(places) ? at : places[at]);
  const on = rows.map((row, k) => [row, k]).filter(([row]) => row.on && row.ends.length);
  return [
    ...frame.parts,
    ...(less ? [svg("path", { class: "pe-compare-zero", d: `M${x(axisOf(places).from)} ${y(0)}H${x(axisOf(places).to)}` })] : []),
    ...Object.entries(lined).flatMap(([text, place]) => [
      svg("path", { class: "pe-cursor", d: `M${x(place)} ${y(from)}V${y(to)}` }),
      svg("text", { class: "pe-tick pe-compare-word", x: x(place) + 4, y: y(to) + 12 }, text)]),
    svg("path", { class: "pe-compare-place", d: `M${across} ${y(from)}V${y(to)}` }),
    ...on.map(([row, k]) => (named(places) ? marks({ x, y }, row, k, on.map(([each]) => each), singles) : lines({ x, y }, row, k, places, singles, places.length <= 12))).reverse(),
  ];
}

/** A row of the list: an arm's switch with its look, and its numbers at the chosen place. */
function armRow(model, { name, scheme }, k) {
  const input = h("input", { type: "checkbox", role: "switch", onchange: () => assign(model, "shown", flip(model.get("shown"), name)) });
  const { colour, dash, mark } = lookOf(scheme || name, k);
  const [mean, ends] = [h("span", { class: "pe-compare-mean" }), h("span", { class: "pe-compare-ends" })];
  const sign = legendLine(svg("path", { class: "pe-mean", "stroke-dasharray": dash, d: "M-13 0H13" }), svg("path", { class: "pe-point", d: mark(4.5) }));
  const node = h("tr", { class: colour }, h("th", { scope: "row" }, h("label", { class: "pe-toggle" }, input, sign, h("span", {}, name))), h("td", {}, mean, ends));
  const show = ({ on, own, ends: its }, { at }) => {
    input.checked = on;
    // What is zero is the line there, on or off: a switch that would do nothing is not shown.
    input.classList.toggle("pe-away", own);
    input.disabled = own;
    node.classList.toggle("pe-off", !on && !own);
    [mean.textContent, ends.textContent] = own ? ["0", ""] : its[at] ? words(its[at]) : ["", "not run"];
  };
  return { node, show };
}

function render({ model, el }) {
  const fixed = Object.fromEntries(["title", "x", "xlabel", "ylabel", "marks", "series", "differences"].map((name) => [name, model.get(name)]));
  const { series, x: places, xlabel } = fixed;
  const read = () => compared({ ...fixed, less: model.get("less"), shown: model.get("shown"), at: model.get("at") });
  let now = read();
  const chart = drawing(HEIGHT, (width) => draw(width, fixed, now, model.get("singles")));
  pointable(chart.node, (share) => {
    const [from, to] = [axisOf(places).from, axisOf(places).to];
    const wanted = from + share * (to - from);
    const away = places.map((place, k) => Math.abs((named(places) ? k : place) - wanted));
    const nearest = away.indexOf(Math.min(...away));
    if (nearest !== now.at) assign(model, "at", nearest);
  });
  const rows = series.map((each, k) => armRow(model, each, k));
  // In the room of the longest: what stands below keeps its place.
  const head = (less) => `${fixed.ylabel}${less ? `, minus ${less}` : ""}`;
  const longest = series.map(({ name }) => head(name)).reduce((most, each) => (each.length > most.length ? each : most));
  const [what, where] = [h("span"), h("span")];
  const caption = h("caption", {}, h("span", { class: "pe-compare-head" }, what, h("span", { class: "pe-away" }, longest)), where);
  const numbers = h("table", { class: "pe-table pe-compare-numbers" }, caption, h("tbody", {}, ...rows.map(({ node }) => node)));
  const { figure, say } = frame(el, fixed.title,
    h("div", { class: "pe-controls" },
      choose(model, "less", "minus", [["", "nothing"], ...series.map(({ name }) => [name, name])]),
      toggle(model, "singles", "single seeds")),
    h("div", { class: "pe-compare-parts" },
      h("div", {}, chart.node, h("div", { class: "pe-controls pe-compare-at" }, slider(model, "at", xlabel.split(/[,;]/)[0], range(0, places.length - 1), (k) => String(places[k])))),
      numbers),
    h("p", { class: "pe-note" }, "Means over seeds with their 95\u00a0% intervals; differences are taken seed by seed."));
  figure.classList.add("pe-compare");
  // What it says stands in the list.
  figure.lastChild.classList.add("pe-hidden");

  function show() {
    now = read();
    [what.textContent, where.textContent] = [head(now.less), `${xlabel}: ${now.place}`];
    rows.forEach((row, k) => row.show(now.rows[k], now));
    chart.redraw(`${fixed.title}. ${sentence(now, xlabel)}`);
  }
  for (const name of ["less", "shown", "at"]) model.on(`change:${name}`, () => { show(); say(sentence(now, xlabel)); });
  model.on("change:singles", () => { show(); say(`Single seeds are ${model.get("singles") ? "shown" : "hidden"}.`); });
  show();
  say(sentence(now, xlabel));
}

export default { render };
