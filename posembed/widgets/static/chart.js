// Arms of a study along one axis, with their seeds and intervals: figures 8, 9, 11 and 12.
//
// A chart has views, of which the reader chooses one by its labels; what a view is made of is said in chart.py. Seeds and
// Student's quantiles come from the package; means and intervals are of the seeds that are switched on.

/** The mean of some values and the ends of its 95 % interval, which one value has not; nothing of none. */
export function interval(values, quantiles) {
  const n = values.length;
  if (!n) return null;
  const mean = values.reduce((sum, each) => sum + each, 0) / n;
  if (n < 2) return [mean];
  const reach = quantiles[n] * Math.sqrt(values.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (n - 1) / n);
  return [mean, mean - reach, mean + reach];
}

const less = (one, other) => (one == null || other == null ? null : one - other);

/** What is drawn and said of a view: of each series what is on, its seeds, and mean and ends at each place. */
export function chosen({ views, quantiles, view: number, minus, off, at, seeds, beside, hidden }) {
  const view = views[number];
  const zero = view.series.find(({ name }) => name === minus);
  const ends = (lines) => view.x.map((_, place) => interval(lines.map((line) => line[place]).filter((value) => value !== null), quantiles));
  const rows = view.series.map((series) => {
    // Minus itself a series is zero everywhere, which the line there says.
    const own = series === zero;
    const lines = own ? [] : series.seeds
      .map((line, k) => (zero && line ? line.map((value, place) => less(value, zero.seeds[k]?.[place])) : line))
      .filter((line, k) => line && seeds.includes(k));
    const since = view.since === null ? [] : ends(lines.map((line) => line.map((value) => less(value, line[view.since]))));
    // Series look alike from panel to panel. What a reader has yet to draw has its place and no numbers.
    const panel = series.panel ?? series.name;
    return {
      ...series, own, panel, said: series.panel ? `${panel}, ${series.name}` : series.name,
      look: view.series.filter((each) => each.panel === series.panel).indexOf(series),
      on: !own && !off.includes(series.name), hidden: series.name === hidden && !own,
      lines, ends: own ? [] : ends(lines), since, beside: beside && series.beside ? series.beside : [],
    };
  });
  return { ...view, rows, minus: zero && minus, at, place: view.x[at] };
}

/** The number of the view that has these labels: the k-th of them before all, the first of the others before the last. */
export function viewLike(views, wanted, k) {
  const alike = ({ labels }) => labels.reduce((sum, label, each) => sum + (label === wanted[each] && (each === k ? 2 : 2 ** -each / 2)), 0);
  // Of several it is the last.
  return views.reduce((best, view, each) => (alike(view) >= alike(views[best]) ? each : best), 0);
}

/** The ends of the vertical axis: given, or round numbers around means and seeds of all that is on; an interval may be cut. */
export function reach({ rows, reach: given, minus }) {
  if (given) return { from: given[0], to: given[1] };
  const all = rows.filter(({ on }) => on).flatMap(({ ends, lines, beside }) => [...ends.filter(Boolean).map(([mean]) => mean), ...lines.flat(), ...beside]).filter((value) => value !== null);
  if (!all.length) return { from: 0, to: 1 };
  const [low, most] = [Math.min(...all, ...(minus ? [0] : [])), Math.max(...all, ...(minus ? [0] : []))];
  const high = most > low ? most : low + 1;
  const [first, second] = ticks(low, high).map(({ value }) => value);
  const step = second - first || high - low;
  return { from: Math.floor(low / step + 1e-9) * step, to: Math.ceil(high / step - 1e-9) * step };
}

/** The names of the panels of a view. */
const panelsOf = ({ series }) => [...new Set(series.map(({ panel, name }) => panel ?? name))];

/** Where texts stand that would like to stand at these heights: apart by a gap at least, and between two bounds. */
export function spread(wanted, gap, low, high) {
  const order = wanted.map((_, k) => k).sort((a, b) => wanted[a] - wanted[b]);
  const placed = [];
  order.reduce((last, k) => (placed[k] = Math.max(wanted[k], last + gap)), low - gap);
  order.reduceRight((next, k) => (placed[k] = Math.min(placed[k], next - gap)), high + gap);
  return placed;
}

/** How far a guess is off on average, at the places where it was drawn; nothing where it was not. */
export function missed(drawn, ends) {
  const off = ends.flatMap((each, k) => (each && drawn[k] != null ? [Math.abs(drawn[k] - each[0])] : []));
  return off.length ? off.reduce((sum, each) => sum + each, 0) / off.length : null;
}

/** Runs of neighbours that are there. */
export const unbroken = (points) =>
  points.reduce((runs, point) => (point ? [...runs.slice(0, -1), [...runs.at(-1), point]] : [...runs, []]), [[]]).filter((run) => run.length);

/** The point of a curve with points of its own, evenly spread over the axis, that is nearest to a place. */
export const nearest = (curve, share) => curve[Math.round(share * (curve.length - 1))];

const words = (ends, digits) => ends && [short(ends[0], digits), ends.length > 1 ? `(${short(ends[1], digits)} to ${short(ends[2], digits)})` : ""];

/** The columns of numbers: a head, and what a row has there at the place. */
export function columns({ rows, x, at, since, besideName, digits }) {
  const one = (value) => (value == null ? ["", ""] : [short(value, digits), ""]);
  return [
    { head: "mean", of: ({ ends, own, hidden }) => (hidden ? ["?", ""] : own ? ["0", ""] : words(ends[at], digits) || ["", "not run"]) },
    ...(since === null ? [] : [{ head: `change from ${x[since]}`, of: (row) => (at === since || !row.since[at] ? ["", ""] : words(row.since[at], digits)) }]),
    ...(besideName ? [{ head: besideName, of: ({ beside }) => one(nearest(beside, at / (x.length - 1))) }] : []),
    ...(rows.some(({ chance }) => chance != null) ? [{ head: "constant guess", of: ({ chance }) => one(chance) }] : []),
  ];
}

/** All that stands at a place, in a sentence. */
export function sentence(now) {
  const found = now.rows.filter(({ on, ends, hidden }) => on && ends[now.at] && !hidden).map((row) => {
    const [[, ...first], ...others] = columns(now).map(({ head, of }) => [head, ...of(row).filter(Boolean)]);
    return [`${row.said} ${first.join(" ")}`, ...others.filter((each) => each.length > 1).map((each) => each.join(" "))].join(", ");
  });
  return `${now.xlabel}: ${now.place}${now.minus ? `, minus ${now.minus}` : ""}. ${found.join("; ") || "nothing is switched on"}.`;
}

/** Whose mean it is, where not all seeds are on. */
export function whose(seeds, names) {
  const on = names.filter((_, k) => seeds.includes(k));
  if (on.length === names.length) return "";
  if (on.length < 2) return on.length ? `, seed ${on[0]} alone` : ", no seed is on";
  return `, seeds ${on.slice(0, -1).join(", ")} and ${on.at(-1)}`;
}

/** Heads at the ends of an interval that goes on beyond the chart. */
const heads = (x, y, [mean, low = mean, high = mean]) =>
  `${y.cut(low) ? `M${x - 4} ${y(low) - 5}l4 5l4 -5` : ""}${y.cut(high) ? `M${x - 4} ${y(high) + 5}l4 -5l4 5` : ""}`;

const put = (d, x, y) => svg("path", { class: "pe-point", d, transform: `translate(${x.toFixed(2)} ${y.toFixed(2)})` });

/** A series where numbers are the places: its band, its seeds, its mean, and the curve beside it. */
function curves({ x, y }, { ends, lines, beside }, { dash, mark }, places, singles) {
  const path = (look, run, dashes) => svg("path", { class: look, d: lineThrough(run), "stroke-dasharray": dashes });
  const points = (values) => unbroken(values.map((value, place) => (value == null ? null : [x(places[place]), y(value)])));
  const band = (run) => [1, 2].flatMap((end) => run.map(([place, each]) => [x(places[place]), y(each[end] ?? each[0])])[end === 1 ? "slice" : "reverse"]());
  const across = (k) => x(places[0] + (k / (beside.length - 1)) * (places.at(-1) - places[0]));
  const few = places.length <= 12 ? ends.map((each, place) => [each, x(places[place])]).filter(([each]) => each) : [];
  return [
    ...unbroken(ends.map((each, place) => each && [place, each])).map((run) => path("pe-chart-band", band(run))),
    ...(beside.length ? [path("pe-chart-beside", beside.map((value, k) => [across(k), y(value)]))] : []),
    ...(singles ? lines.flatMap(points).map((run) => path("pe-seed", run)) : []),
    ...points(ends.map((each) => each && each[0])).map((run) => path("pe-mean", run, dash)),
    svg("path", { class: "pe-chart-interval", d: few.map(([each, at]) => heads(at, y, each)).join("") }),
    ...few.map(([each, at]) => put(mark(4), at, y(each[0]))),
  ];
}

/** How far from its place each series that is there stands: beside each other around it, and on it where it is alone. */
export function apart(rows, place) {
  const there = rows.filter(({ ends }) => ends[place]);
  return (row) => (0.6 * (there.indexOf(row) - (there.length - 1) / 2)) / there.length;
}

/** A series where names are the places: beside those of the others, its interval, mean and seeds. */
function marks({ x, y }, row, { mark }, rows, singles) {
  return row.ends.flatMap((each, place) => {
    const at = x(place + apart(rows, place)(row));
    return each ? [
      svg("path", { class: "pe-chart-interval", d: `M${at} ${y(each[1] ?? each[0])}V${y(each[2] ?? each[0])}${heads(at, y, each)}` }),
      ...(singles ? row.lines.filter((line) => line[place] !== null).map((line) => svg("circle", { class: "pe-chart-seed", cx: at + 5, cy: y(line[place]), r: 2.5 })) : []),
      put(mark(5), at, y(each[0])),
    ] : [];
  });
}

/** The name of an axis without what explains it. */
const shortly = (name) => name.split(/[,;(]/)[0].trim();

const named = (places) => typeof places[0] === "string";

/** Where the places stand on the horizontal axis. */
export function axisOf(places, name) {
  if (named(places)) return { from: -0.5, to: places.length - 0.5, ticks: range(0, places.length - 1), name, words: (place) => places[place] };
  const [from, to] = [places[0], places.at(-1)];
  return { from, to, ticks: places.length > 7 ? ticks(from, to).map(({ value }) => value) : places, name };
}

/** The names of lines: behind their ends, or inside, above their last marks. */
function lineNames(on, minus, { y }, inside, right, [top, bottom]) {
  const last = ({ ends }) => ends.findLast(Boolean)?.[0];
  const ends = [...on.filter(([row]) => last(row) !== undefined).map(([row, look]) => [row.name, y(last(row)), look.colour]), ...(minus ? [[minus, y(0), ""]] : [])];
  const placed = spread(ends.map(([, at]) => at - (inside ? 14 : 0)), 13, top, bottom);
  return ends.map(([name, at, colour], k) => svg("g", { class: colour },
    ...(inside ? [] : [svg("path", { class: "pe-chart-lead", d: `M${right + 1} ${at}L${right + 8} ${placed[k]}` })]),
    svg("text", { class: "pe-tick pe-chart-word", x: right + (inside ? -2 : 11), y: placed[k] + 4, "text-anchor": inside ? "end" : "start" }, name)));
}

/** A chart of a view, or of one of its panels. */
function draw(width, height, now, singles, panel) {
  const { rows, minus, at, x: places, xlabel, ylabel, levels, marks: lined } = now;
  const { from, to } = reach(now);
  const vertical = ticks(from, to);
  const called = panel ? panel : minus ? `${ylabel}, minus ${minus}` : ylabel;
  const there = rows.filter((row) => row.on && !row.hidden && (!panel || row.panel === panel));
  const longest = panel || named(places) ? 0 : Math.max(0, ...[...there.map(({ name }) => name), minus ?? ""].map((name) => name.length));
  const frame = axes(width, height, axisOf(places, panel ? shortly(xlabel) : xlabel),
    { from, to, ticks: vertical.map(({ value }) => value), words: (value) => vertical.find((each) => each.value === value).words, name: called }, 48, longest ? 14 + 7 * longest : 12);
  const x = frame.x;
  const y = Object.assign((value) => frame.y(clamp(from, value, to)), { cut: (value) => value < from || value > to });
  const [left, right] = [axisOf(places).from, axisOf(places).to].map(x);
  const across = x(named(places) ? at : places[at]);
  const on = there.map((row) => [row, lookOf(row.scheme || row.name, row.look)]);
  const text = (words, attributes) => svg("text", { class: "pe-tick pe-chart-word", ...attributes }, words);
  return [
    ...frame.parts,
    ...(minus ? [svg("path", { class: "pe-chart-zero", d: `M${left} ${y(0)}H${right}` })] : []),
    ...Object.values(levels).map((level) => svg("path", { class: "pe-chart-level", d: `M${left} ${y(level)}H${right}` })),
    ...Object.entries(lined).flatMap(([words, place]) => [
      svg("path", { class: "pe-cursor", d: `M${x(place)} ${y(from)}V${y(to)}` }), text(words, { x: x(place) + 4, y: y(to) + 12 })]),
    svg("path", { class: "pe-chart-place", d: `M${across} ${y(from)}V${y(to)}` }),
    // The first is drawn last, on top.
    ...on.map(([row, look]) => svg("g", { class: look.colour, "data-arm": row.name },
      ...(named(places) ? marks({ x, y }, row, look, on.map(([each]) => each), singles) : curves({ x, y }, row, look, places, singles)))).reverse(),
    ...(now.drawn?.some((each) => each != null) ? unbroken(now.drawn.map((value, k) => (value == null ? null : [x(named(places) ? k : places[k]), y(value)]))).flatMap((run) =>
      [svg("path", { class: "pe-chart-drawn", d: lineThrough(run) }), ...run.map(([cx, cy]) => svg("circle", { class: "pe-chart-dot", cx, cy, r: 4 }))]) : []),
    ...(panel ? [] : lineNames(on, minus, { y }, named(places), right, [26, height - 40])),
    // The lowest level is named below it, out of the way of the next.
    ...Object.entries(levels).map(([words, level], k) => text(words, { x: right - 2, y: y(level) + (k ? -5 : 14), "text-anchor": "end" })),
  ];
}

/** A row of the list, in room for the longest view: a series' switch with its look, and its numbers. */
function listRow(model) {
  let name = "";
  const input = h("input", { type: "checkbox", role: "switch", onchange: () => assign(model, "off", flip(model.get("off"), name)) });
  const [sign, label] = [legendLine(), h("span")];
  const node = h("tr", {}, h("th", { scope: "row" }, h("label", { class: "pe-toggle" }, input, sign, label)));
  const show = (row, k, its) => {
    node.classList.toggle("pe-away", !row);
    while (node.children.length > 1) node.lastChild.remove();
    const { own, on, scheme } = row ?? { own: true };
    const { colour, dash, mark } = lookOf(scheme || row?.name, k);
    name = label.textContent = row?.name ?? "\u00a0";
    input.checked = on;
    // What is zero is the line there, on or off: a switch that would do nothing is not shown.
    input.classList.toggle("pe-away", own);
    input.disabled = own;
    for (const each of [...node.classList]) if (/^pe-(scheme|series)/.test(each)) node.classList.remove(each);
    node.classList.add(colour);
    node.classList.toggle("pe-off", !on && !own);
    sign.replaceChildren(svg("path", { class: "pe-mean", "stroke-dasharray": dash, d: "M-13 0H13" }), svg("path", { class: "pe-point", d: mark(4.5) }));
    node.append(...its.map(({ of }) => {
      const [mean, ends] = row ? of(row) : ["\u00a0", "\u00a0"];
      return h("td", {}, h("span", { class: "pe-chart-mean" }, mean), h("span", { class: "pe-chart-ends" }, ends));
    }));
  };
  return { node, show };
}

/** The means at the place: a row for each panel, a column for each of its series, whose look its head has. */
function grid(views) {
  const most = Math.max(...views.map((view) => panelsOf(view).length));
  const [caption, heads, body] = [h("caption"), h("tr"), h("tbody")];
  const node = h("table", { class: "pe-table pe-chart-numbers" }, caption, h("thead", {}, heads), body);
  const head = (row) => {
    const { colour, dash, mark } = lookOf(row.name, row.look);
    return h("th", { scope: "col", class: colour }, legendLine(svg("path", { class: "pe-mean", "stroke-dasharray": dash, d: "M-13 0H13" }), svg("path", { class: "pe-point", d: mark(4.5) })), " ", row.name);
  };
  const show = (now) => {
    const panels = range(0, most - 1).map((k) => [...new Set(now.rows.map((row) => row.panel))][k]);
    const its = (panel) => now.rows.filter((row) => row.panel === panel);
    caption.textContent = `${now.ylabel}, state ${now.place}`;
    heads.replaceChildren(h("td"), ...its(panels[0]).map(head));
    body.replaceChildren(...panels.map((panel) => h("tr", { class: panel ? "" : "pe-away" }, h("th", { scope: "row" }, panel ?? "\u00a0"),
      // A row that is away is as high as the others.
      ...its(panel ?? panels[0]).map(({ ends }) => h("td", {}, panel && ends[now.at] ? short(ends[now.at][0], now.digits) : "\u00a0")))));
  };
  return { node, show };
}

/** The numbers at the place, which are the switches and the key to the chart as well. */
function list(model, views, names) {
  const rows = range(1, Math.max(...views.map(({ series }) => series.length))).map(() => listRow(model));
  const [what, where, heads] = [h("span"), h("span"), h("tr")];
  // In the room of the longest: what stands below keeps its place.
  const longest = names.reduce((most, name) => (name.length > most.length ? name : most), "");
  const room = h("span", { class: "pe-away" });
  const node = h("table", { class: "pe-table pe-chart-numbers" },
    h("caption", {}, h("span", { class: "pe-chart-head" }, what, room), where), h("thead", {}, heads), h("tbody", {}, ...rows.map((row) => row.node)));
  const show = (now, besides) => {
    const its = columns(now);
    what.textContent = now.minus ? `${now.ylabel}, minus ${now.minus}` : now.ylabel;
    room.textContent = longest && `${now.ylabel}, minus ${longest}`;
    where.textContent = `${now.xlabel}: ${now.place}${besides}`;
    heads.replaceChildren(h("td"), ...its.map(({ head }) => h("th", { scope: "col" }, head)));
    heads.parentNode.hidden = its.length < 2;
    rows.forEach((row, k) => row.show(now.rows[k], k, its));
  };
  return { node, show };
}

/** A button for each seed. */
function seedSwitches(model, names) {
  const buttons = names.map((name, k) => h("button", {
    type: "button", role: "switch", class: "pe-button pe-chart-seed-switch", "aria-label": `seed ${name}`,
    onclick: () => assign(model, "seeds", flip(model.get("seeds"), k)) }, name));
  const show = () => buttons.forEach((button, k) => button.setAttribute("aria-checked", String(model.get("seeds").includes(k))));
  return { node: h("div", { class: "pe-chart-seeds", role: "group", "aria-label": "seeds" }, h("span", {}, "seeds"), ...buttons), show };
}

/** A control for each label of a view; a later one has what there is with the earlier ones. */
function selectors(model, views, names) {
  const nodes = names.map(() => h("div", { class: "pe-chart-selector" }));
  const offered = names.map(() => "");
  const labels = () => views[model.get("view")].labels;
  function show() {
    names.forEach(({ name, runs }, k) => {
      const values = [...new Set(views.filter((each) => each.labels.slice(0, k).every((label, n) => label === labels()[n])).map((each) => each.labels[k]))];
      // What would run nowhere keeps its place, unseen.
      nodes[k].classList.toggle("pe-away", runs && values.length < 2);
      if (offered[k] === (offered[k] = JSON.stringify(values))) return;
      // To the kit's controls it is a value of the model.
      const its = {
        get: () => labels()[k],
        set: (_, value) => model.set("view", viewLike(views, labels().map((label, n) => (n === k ? value : label)), k)),
        save_changes: () => model.save_changes(),
        on: (_, listener) => model.on("change:view", listener),
      };
      nodes[k].replaceChildren(runs
        ? h("div", { class: "pe-run" }, slider(its, name, name, values), player(its, name, name, () => values, { pace: 1200 }))
        : choose(its, name, name, values.map((value) => [value, value])));
    });
  }
  return { nodes, show };
}

/** A curve to draw before it is shown: with a pointer over the chart, with a slider at a place, or not at all. */
function guessing(model, name, chart, height, now) {
  const put = (place, value) => assign(model, "drawn", now().x.map((_, k) => (k === place ? value : model.get("drawn")[k] ?? null)));
  const steps = () => {
    const { from, to } = reach(now());
    return range(0, 40).map((k) => from + (k / 40) * (to - from));
  };
  const nearestStep = () => steps().reduce((best, each) => (Math.abs(each - (model.get("drawn")[now().at] ?? 0)) < Math.abs(best - (model.get("drawn")[now().at] ?? 0)) ? each : best));
  for (const kind of ["pointerdown", "pointermove"]) chart.addEventListener(kind, (event) => {
    if (!model.get("hidden") || !event.buttons) return;
    const { from, to } = reach(now());
    // After the listener that has chosen the place.
    put(now().at, clamp(from, from + ((chart.getBoundingClientRect().top + height - 40 - event.clientY) / (height - 66)) * (to - from), to));
  });
  const input = h("input", { type: "range", min: 0, max: 40, step: 1, oninput: () => put(now().at, steps()[input.value]) });
  const label = h("label", { class: "pe-slider" }, h("span", {}, "your guess"), input);
  const words = h("span", { class: "pe-chart-task" });
  const button = h("button", { class: "pe-button", type: "button", onclick: () => {
    const again = !model.get("hidden");
    if (again) model.set("drawn", []);
    assign(model, "hidden", again ? name : "");
  } });
  const show = () => {
    const hidden = Boolean(model.get("hidden"));
    const off = missed(model.get("drawn"), now().rows.find((row) => row.name === name).ends);
    button.textContent = hidden ? "Show the curve" : "Draw it again";
    label.classList.toggle("pe-away", !hidden);
    input.value = steps().indexOf(nearestStep());
    input.setAttribute("aria-valuetext", short(nearestStep(), 2));
    words.textContent = hidden ? `Draw how ${name} goes, or show it.` : off === null ? `${name} is shown.` : `Your guess is off by ${short(off, 2)} on average.`;
    return `${words.textContent} `;
  };
  return { node: h("div", { class: "pe-controls pe-chart-guess" }, words, label, button), show };
}

/** A matrix for each place, its numbers, and one of its rows. */
function matrix(model) {
  const [SIDE, HIGH, LEFT, TOP] = [220, 150, 40, 22];
  let [rows, first] = [[], []];
  const map = drawing(SIDE + TOP + 26, (width) => {
    const [side, query, last] = [Math.min(SIDE, width - LEFT - 12), model.get("query"), rows.length - 1];
    const text = (words, attributes) => svg("text", { class: "pe-tick", ...attributes }, words);
    return [
      svg("rect", { class: "pe-blank", x: LEFT, y: TOP, width: side, height: side }),
      svg("image", { class: "pe-pixels", href: pixels(rows.flat(), [last + 1, last + 1], -Math.min(...rows.flat())), x: LEFT, y: TOP, width: side, height: side, preserveAspectRatio: "none" }),
      svg("rect", { class: "pe-chart-row", x: LEFT, y: TOP + (side / rows.length) * query, width: side, height: side / rows.length }),
      ...[0, query, last].filter((each, k) => k === 1 || Math.abs(query - each) > 2).map((each) => text(each, { x: LEFT - 5, y: TOP + (side / rows.length) * (each + 0.5) + 4, "text-anchor": "end" })),
      text("key position", { x: LEFT + side / 2, y: TOP + side + 18, "text-anchor": "middle" }), text("query", { x: 2, y: 10 }),
    ];
  });
  const chart = drawing(HIGH, (width) => {
    const [query, last, least] = [model.get("query"), rows.length - 1, Math.min(...rows.flat(), ...first.flat())];
    const { x, y, parts } = axes(width, HIGH,
      { from: -query, to: last - query, ticks: [...new Set([-query, 0, last - query])], name: "offset of the key" },
      { from: least, to: 0, ticks: [Math.round(least), 0], name: "bias" });
    const line = (look, values) => svg("path", { class: look, d: lineThrough(values.map((value, key) => [x(key - query), y(value)])) });
    return [...parts, line("pe-chart-first", first[query]), line("pe-chart-line", rows[query])];
  });
  const numbers = h("ul", { class: "pe-chart-matrix", "aria-label": "its numbers" });
  const show = ({ matrices, at, place, xlabel }) => {
    const query = model.get("query");
    [rows, first] = [unpack(matrices[at]), unpack(matrices[0])];
    numbers.replaceChildren(...matrices[at].numbers.map((each) => h("li", {}, each)));
    map.redraw(`The matrix at ${xlabel} ${place}, ${rows.length} by ${rows.length} positions; the row of query ${query} is framed`);
    chart.redraw(`The row of query ${query} against the offset, and that at ${xlabel} 0`);
    return ` Query ${query}: ${short(rows[query][0], 1)} at key 0, ${short(rows[query].at(-1), 1)} at key ${rows.length - 1}.`;
  };
  return { node: h("div", {}, map.node, numbers, chart.node, slider(model, "query", "query", range(0, model.get("views")[0].matrices[0].n - 1))), show };
}

/** The rows of a matrix, of which one that knows offsets alone keeps its first column, from below, and its first row. */
export function unpack({ values, n }) {
  if (values.length === n) return values;
  return range(0, n - 1).map((row) => values.slice(n - 1 - row, 2 * n - 1 - row));
}

function render({ model, el }) {
  const state = Object.fromEntries(["title", "views", "quantiles", "note", "minusOf", "besides", "selectors", "seedNames", "small", "guess"].map((name) => [name, model.get(name)]));
  const read = () => chosen({ ...state, ...Object.fromEntries(["view", "minus", "off", "at", "seeds", "beside", "hidden"].map((name) => [name, model.get(name)])) });
  let now = read();
  const height = state.small ? 160 : 300;
  const panelled = state.views.some(({ series }) => series.some(({ panel }) => panel));
  const most = Math.max(...state.views.map((view) => panelsOf(view).length));
  const panel = (k) => panelsOf({ series: now.rows })[k];
  const charts = (state.small ? range(0, most - 1) : [null]).map((_, k) => drawing(height, (width) =>
    (state.small && !panel(k) ? [] : draw(width, height, { ...now, drawn: model.get("drawn") }, model.get("singles"), state.small && panel(k)))));
  charts.forEach(({ node }) => pointable(node, (share) => {
    const { from, to } = axisOf(now.x);
    const away = now.x.map((place, k) => Math.abs((named(now.x) ? k : place) - from - share * (to - from)));
    const place = away.indexOf(Math.min(...away));
    if (place !== now.at) assign(model, "at", place);
  }));
  const numbers = panelled ? grid(state.views) : list(model, state.views, state.minusOf);
  const guess = state.guess ? guessing(model, state.guess, charts[0].node, height, () => now) : null;
  const [choices, seeds, places, about] = [selectors(model, state.views, state.selectors), seedSwitches(model, state.seedNames), h("div", { class: "pe-controls pe-chart-at" }), h("span")];
  const bias = now.matrices.length ? matrix(model) : null;
  const { figure, say } = frame(el, state.title,
    h("div", { class: "pe-controls" },
      ...choices.nodes.filter((_, k) => !state.selectors[k].runs),
      ...(state.minusOf.length ? [choose(model, "minus", "minus", [["", "nothing"], ...state.minusOf.map((name) => [name, name])])] : []),
      toggle(model, "singles", "single seeds"),
      ...(state.besides ? [toggle(model, "beside", state.besides)] : []),
      ...(state.seedNames.length ? [seeds.node] : []),
      ...choices.nodes.filter((_, k) => state.selectors[k].runs)),
    ...(guess ? [guess.node] : []),
    h("div", { class: `pe-chart-parts ${state.minusOf.length ? "pe-chart-paired" : panelled ? "" : "pe-chart-sided"}` },
      ...(bias ? [bias.node] : []),
      h("div", { class: `${state.small ? "pe-chart-small" : ""} ${panelled ? "pe-chart-panels" : ""}` }, ...charts.map(({ node }) => node), places),
      numbers.node),
    h("p", { class: "pe-note" }, about, state.note));
  figure.classList.add("pe-chart");
  // What it says stands in the list.
  figure.lastChild.classList.add("pe-hidden");

  let before = "";
  function show() {
    now = read();
    choices.show();
    seeds.show();
    // Views with other places have a slider of their own.
    if (before !== (before = JSON.stringify(now.x))) places.replaceChildren(slider(model, "at", shortly(now.xlabel), range(0, now.x.length - 1), (k) => String(now.x[k])));
    numbers.show(now, state.seedNames.length ? whose(model.get("seeds"), state.seedNames) : "");
    about.textContent = now.about;
    const labels = now.labels.join(", ");
    charts.forEach((chart, k) => {
      chart.node.classList.toggle("pe-away", state.small && !panel(k));
      chart.redraw(`${[state.title, labels, ...(state.small ? [panel(k)] : [])].filter(Boolean).join(". ")}. ${sentence(now)}`);
    });
    return `${labels && `${labels}. `}${guess ? guess.show() : ""}${sentence(now)}${bias ? bias.show(now) : ""}`;
  }
  const tell = () => say(show());
  model.on("change:view", () => {
    // The same part of the way along another axis.
    const at = Math.round((now.at / (now.x.length - 1)) * (read().x.length - 1));
    if (at !== now.at) assign(model, "at", at);
    tell();
  });
  // A guess is of what was shown when it was drawn.
  model.on("change:minus", () => model.set("drawn", []));
  for (const name of ["minus", "off", "at", "seeds", "query", "hidden", "drawn"]) model.on(`change:${name}`, tell);
  model.on("change:singles", () => { show(); say(`Single seeds are ${model.get("singles") ? "shown" : "hidden"}.`); });
  model.on("change:beside", () => { show(); say(`${state.besides}: ${model.get("beside") ? "shown" : "hidden"}.`); });
  tell();
}

export default { render };
