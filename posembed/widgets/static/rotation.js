// Figure 4: pairs of columns as the hands of clocks. An offset turns a sinusoidal row; RoPE turns a query and a key.

/** The pair (a, b) turned by an angle, counterclockwise where a points right and b up. */
export function turned([a, b], angle) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return [a * cos - b * sin, a * sin + b * cos];
}

export const pairs = (vector) => range(0, vector.length / 2 - 1).map((pair) => vector.slice(2 * pair, 2 * pair + 2));

/** The vector with each pair turned by its speed times the position: RoPE, in the paper's interleaved layout. */
export function rotate(vector, position, base) {
  const speeds = frequencies(vector.length, base);
  return pairs(vector).flatMap((pair, i) => turned(pair, speeds[i] * position));
}

/** A row of the sinusoidal table: sin, cos, sin, cos, and so on. */
export function sinusoid(position, dModel, base) {
  return frequencies(dModel, base).flatMap((w) => [Math.sin(w * position), Math.cos(w * position)]);
}

/** A sinusoidal row turned by an offset: its pairs are (sin, cos), so the cosine points right and the sine up. */
export function shifted(row, offset, base) {
  return swapped(rotate(swapped(row), offset, base));
}

const swap = ([a, b]) => [b, a];
const swapped = (row) => pairs(row).flatMap(swap);

export const product = (a, b) => a.reduce((sum, value, column) => sum + value * b[column], 0);

/** How far a pointer has turned from one angle to another: the shorter way round. */
export const turnedBy = (from, to) => to - from - 2 * Math.PI * Math.round((to - from) / (2 * Math.PI));

/** Where a query and a key stand at another offset: the key moves, and the query where there is no place for the key. */
export function apartBy(offset, query, last) {
  const key = clamp(0, query + offset, last);
  return { query_position: key - offset, key_position: key };
}

const FACE = 132;
const CHART = 170;
const fixed = (value, digits) => signed(value.toFixed(digits).replace(/^-(0\.0+)$/, "$1"));

/** From one whole number to another in steps of a quarter, for a smooth curve. */
const quarters = (first, last) => range(4 * first, 4 * last).map((k) => k / 4);

/** Row p turned by the offset, beside row p + k. Hands are (right, up). */
function offsetScene({ base, query, position, offset, farthest }) {
  const [row, there] = [position, position + offset].map((place) => sinusoid(place, query.length, base));
  const moved = shifted(row, offset, base);
  const rowZero = sinusoid(0, query.length, base);
  return {
    faces: frequencies(query.length, base).map((w, i) => {
      const [from, to, formula] = [row, moved, there].map((each) => pairs(each)[i]);
      return {
        hands: [["pe-thin", swap(from)], ["", swap(to)]],
        ring: swap(formula),
        arc: [w * position, w * (position + offset)],
        names: ["cos", "sin"],
        header: ["sin", "cos"],
        rows: [[`row ${position}`, ...from], ["turned", ...to], [`row ${position + offset}`, ...formula]],
      };
    }),
    reach: 1,
    moves: [
      { at: [position, farthest.position], words: `position ${position}` },
      { at: [offset, farthest.offset], words: `offset ${offset}` },
    ],
    curve: quarters(0, farthest.offset).map((k) => [k, product(rowZero, sinusoid(k, query.length, base))]),
    here: [offset, product(row, there)],
    legend: "Thin: row p. Thick: row p turned by the offset k. Ring: row p + k, from the formula.",
    title: `Row ${position} times row ${position + offset}`,
    note: `The same wherever the offset is ${offset}: the position is not in it.`,
    off: Math.max(...moved.map((value, column) => Math.abs(value - there[column]))),
  };
}

/** A query and a key turned by their positions, and before. */
function ropeScene({ base, query, key, query_position, key_position, shift, farthest }) {
  const [m, n] = [query_position + shift, key_position + shift];
  const [q, k] = [rotate(query, m, base), rotate(key, n, base)];
  const far = Math.max(farthest.query_position, farthest.key_position);
  return {
    faces: pairs(q).map((ofQuery, i) => {
      const ofKey = pairs(k)[i];
      return {
        hands: [["pe-faint", pairs(query)[i]], ["pe-key pe-faint", pairs(key)[i]], ["", ofQuery], ["pe-key", ofKey]],
        names: [2 * i, 2 * i + 1].map((column) => `col. ${column}`),
        header: [2 * i, 2 * i + 1].map((column) => `col. ${column}`),
        rows: [["query", ...ofQuery], ["key", ...ofKey], ["product", product(ofQuery, ofKey)]],
      };
    }),
    reach: Math.max(...[query, key].flatMap(pairs).map(([a, b]) => Math.hypot(a, b))),
    moves: [
      { at: [query_position, farthest.query_position], words: `query at ${m}` },
      { at: [key_position, farthest.key_position], words: `key at ${n}` },
    ],
    curve: quarters(-far, far).map((offset) => [offset, product(query, rotate(key, offset, base))]),
    here: [n - m, product(q, k)],
    legend: "Solid, blue: the query. Dashed, orange: the key. Faint: both before they turn.",
    title: `Query at ${m} times key at ${n}`,
    note: `The same wherever the key is ${apart(n - m)} the query.`,
  };
}

const SCENES = { offset: offsetScene, rope: ropeScene };

const apart = (offset) => (offset === 0 ? "at the place of" : `${Math.abs(offset)} ${offset > 0 ? "ahead of" : "behind"}`);

const radiusOf = (width) => Math.min(width, FACE) / 2 - 4;

/** Where on a face the end of a hand is. */
const onFace = (width, reach) => ([a, b]) => {
  const length = (radiusOf(width) - 8) / reach;
  return [width / 2 + a * length, FACE / 2 - b * length];
};

function drawFace(width, { hands, ring, arc, names }, reach) {
  const [cx, cy, radius, place] = [width / 2, FACE / 2, radiusOf(width), onFace(width, reach)];
  const text = (x, y, anchor, words) => svg("text", { class: "pe-tick", x, y, "text-anchor": anchor }, words);
  return [
    svg("circle", { class: "pe-clock", cx, cy, r: radius }),
    svg("path", { class: "pe-grid", d: `M${cx - radius} ${cy}h${2 * radius}M${cx} ${cy - radius}v${2 * radius}` }),
    // In the corners, where no hand comes.
    text(Math.min(width, cx + radius + 14), cy + radius, "end", `→ ${names[0]}`),
    text(Math.max(0, cx - radius - 14), cy - radius + 9, "start", `↑ ${names[1]}`),
    ...(arc ? [svg("path", { class: "pe-arc", d: lineThrough(spiral(arc).map(place)) })] : []),
    ...hands.map(([look, end]) => {
      const [x, y] = place(end);
      return svg("g", { class: `pe-hand ${look}` }, svg("path", { d: `M${cx} ${cy}L${x} ${y}` }), svg("circle", { cx: x, cy: y, r: 4 }));
    }),
    ...(ring ? [svg("circle", { class: "pe-end", cx: place(ring)[0], cy: place(ring)[1], r: 7 })] : []),
  ];
}

/** From one angle to another, wider with each round so that rounds are seen apart. */
function spiral([from, to]) {
  const n = Math.ceil(Math.abs(to - from) / 0.1) + 1;
  return range(0, n).map((k) => {
    const angle = from + ((to - from) * k) / n;
    const radius = 0.4 + (0.08 * (angle - from)) / (2 * Math.PI);
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

/** The first and the last offset of the curve. */
const ends = ({ curve }) => [curve[0][0], curve.at(-1)[0]];

function drawChart(width, { curve, here: [offset, value] }) {
  const [from, to] = ends({ curve });
  const top = Math.ceil(Math.max(...curve.map(([, each]) => Math.abs(each))));
  const { x, y, parts } = axes(width, CHART, { from, to, ticks: [0, 1, 2, 3, 4].map((k) => from + (k * (to - from)) / 4), name: "offset" }, {
    from: -top, to: top, ticks: [-top, 0, top], name: "product" });
  return [
    ...parts,
    svg("path", { class: "pe-curve", d: lineThrough(curve.map(([k, each]) => [x(k), y(each)])) }),
    svg("path", { class: "pe-limit", d: `M${x(offset)} ${y(-top)}V${y(top)}` }),
    svg("circle", { class: "pe-end", cx: x(offset), cy: y(value), r: 6 }),
  ];
}

// What the last two hands of a face stand for.
const HANDS = { offset: ["position", "offset"], rope: ["query_position", "key_position"] };

/** The end of a hand to take hold of: its pair turns by `speed` from one position to the next, and so does what it moves. */
function handle(pair, speed, which, scene, turn) {
  let [angle, value] = [];
  const { node, show } = grip("pe-handle", `hand ${which + 1} of pair ${pair}`, ({ clientX, clientY }, begins) => {
    const { left, top, width } = node.parentElement.getBoundingClientRect();
    const now = Math.atan2(top + FACE / 2 - clientY, clientX - left - width / 2);
    const { at: [here, last] } = scene().moves[which];
    // Between whole places too, so that a slow hand gets on.
    value = begins ? here : clamp(0, value + turnedBy(angle, now) / speed, last);
    angle = now;
    turn(which, value);
  }, (by) => turn(which, scene().moves[which].at[0] + by));
  // One face is enough for the keys: they move the same by any of them.
  node.tabIndex = pair ? -1 : 0;
  return {
    node,
    show() {
      const { at: [here, last], words } = scene().moves[which];
      show(here, 0, last, words);
    },
    place: ([x, y]) => (node.style.translate = `${x}px ${y}px`),
  };
}

/** A clock face with its numbers in a table below. */
function clock(pair, speed, scene, turn) {
  const handles = [0, 1].map((which) => handle(pair, speed, which, scene, turn));
  const { node, redraw } = drawing(FACE, (width) => {
    const { hands } = scene().faces[pair];
    handles.forEach(({ place }, k) => place(onFace(width, scene().reach)(hands.at(k - 2)[1])));
    return drawFace(width, scene().faces[pair], scene().reach);
  });
  const [head, body] = [h("thead"), h("tbody")];
  const draw = () => redraw(`The hands of pair ${pair}; their ends are in the table below.`);
  const show = () => {
    const { header, rows } = scene().faces[pair];
    head.replaceChildren(h("tr", {}, h("td"), ...header.map((words) => h("th", { scope: "col" }, words))));
    body.replaceChildren(...rows.map(([name, ...values]) => h("tr", {}, h("th", { scope: "row" }, name),
      ...values.map((value) => h("td", { colspan: 3 - values.length }, fixed(value, 2))))));
    handles.forEach((each) => each.show());
    draw();
  };
  const title = h("p", { class: "pe-title" }, `Pair ${pair}: ω = ${speed.toFixed(3)}`);
  const parts = { class: "pe-face", role: "group", "aria-label": `pair ${pair}` };
  const dial = h("div", { class: "pe-held" }, node, ...handles.map((each) => each.node));
  return { node: h("div", parts, title, dial, h("table", { class: "pe-table" }, head, body)), draw, show };
}

/** The curve, on which an offset can be picked. */
function offsetCurve(scene, pick) {
  const { node, redraw } = drawing(CHART, (width) => drawChart(width, scene()));
  const held = grip("pe-curve-held", "offset on the curve", ({ clientX }) => {
    const axis = node.querySelector(".pe-axis").getBoundingClientRect();
    const [from, to] = ends(scene());
    pick(from + ((clientX - axis.left) / axis.width) * (to - from));
  }, (by) => pick(scene().here[0] + by));
  return {
    node: h("div", { class: "pe-held" }, node, held.node),
    redraw,
    show(label) {
      const { here: [offset, value] } = scene();
      held.show(offset, ...ends(scene()), `offset ${signed(offset)}, product ${fixed(value, 3)}`);
      redraw(label);
    },
  };
}

/** What there is to reach, in either view. */
const tasks = (read, scene) => [
  ["two rows with a negative product", () => read().view === "offset" && scene().here[1] < 0],
  ["the hands of pair 1 together again, one round further", () => {
    const { view, offset, query, base } = read();
    return view === "offset" && offset > 0 && Math.abs(turnedBy(0, frequencies(query.length, base)[1] * offset)) < 0.1;
  }],
  ["with RoPE, a product above 4", () => read().view === "rope" && scene().here[1] > 4],
];

const STATE = ["view", "base", "query", "key", "position", "offset", "query_position", "key_position", "shift", "farthest"];

function render({ model, el }) {
  const read = () => Object.fromEntries(STATE.map((name) => [name, model.get(name)]));
  const { base, query, farthest } = read();
  let scene;

  const view = () => model.get("view");
  const put = (name, value) => {
    const inside = clamp(0, Math.round(value), farthest[name]);
    if (inside !== model.get(name)) assign(model, name, inside);
  };
  const clocks = frequencies(query.length, base).map((speed, pair) =>
    clock(pair, speed, () => scene, (which, value) => put(HANDS[view()][which], value)));
  const chart = offsetCurve(() => scene, (offset) => {
    const [from, to] = ends(scene);
    const inside = clamp(from, Math.round(offset), to);
    if (view() === "offset") return put("offset", inside);
    const last = Math.min(farthest.query_position, farthest.key_position);
    Object.entries(apartBy(inside, model.get("query_position"), last)).forEach(([name, value]) => put(name, value));
  });
  const [legend, title, note] = ["pe-note pe-lines", "pe-title", "pe-note pe-lines"].map((name) => h("p", { class: name }));
  const move = (name, text) => slider(model, name, text, range(0, farthest[name]));
  const run = (name, text) => runner(model, name, text, range(0, farthest[name]), {
    between(value) {
      scene = SCENES[view()]({ ...read(), [name]: value });
      clocks.forEach((each) => each.draw());
      chart.redraw(title.textContent);
    } });
  const sliders = {
    offset: h("div", { class: "pe-controls" }, run("position", "position p"), run("offset", "offset k")),
    rope: h("div", { class: "pe-controls" },
      move("query_position", "query at"), move("key_position", "key at"), run("shift", "shift both")),
  };
  const { say } = tries(frame(el, "Turn pairs of columns",
    h("div", { class: "pe-controls" }, choose(model, "view", "view", Object.entries(model.get("views")))),
    h("div", { class: "pe-stack pe-pinned" }, ...Object.values(sliders)),
    h("p", { class: "pe-hint" }, "Drag the end of a hand, or click on the curve."),
    legend, h("div", { class: "pe-faces" }, ...clocks.map(({ node }) => node)),
    h("div", { class: "pe-chart" }, title, chart.node, note)), ...tasks(read, () => scene));

  function draw() {
    const state = read();
    scene = SCENES[state.view](state);
    for (const [view, node] of Object.entries(sliders)) node.classList.toggle("pe-away", view !== state.view);
    legend.textContent = scene.legend;
    title.textContent = `${scene.title}: ${fixed(scene.here[1], 3)}`;
    note.textContent = scene.note;
    clocks.forEach(({ show }) => show());
    chart.show(`${title.textContent}. ${scene.note}`);
    return state;
  }

  function explain({ view, base, query, position, offset }) {
    if (view === "rope") return `${scene.title}: the product is ${fixed(scene.here[1], 3)}.`;
    const turns = frequencies(query.length, base).map((w) => fixed(w * offset, 2)).join(", ");
    return `The offset ${offset} turns the pairs by ${turns} rad at any position: row ${position} becomes row ${
      position + offset} (difference: ${tiny(scene.off)}).`;
  }

  function moved(who) {
    const before = fixed(scene.here[1], 3);
    draw();
    const after = fixed(scene.here[1], 3);
    say(`${who(read())}: the product ${after === before ? `is still ${after}` : `went from ${before} to ${after}`}.`);
  }

  for (const name of ["view", "position", "offset"]) model.on(`change:${name}`, () => say(explain(draw())));
  model.on("change:query_position", () => moved((at) => `The query moved to ${at.query_position + at.shift}`));
  model.on("change:key_position", () => moved((at) => `The key moved to ${at.key_position + at.shift}`));
  model.on("change:shift", () => moved((at) => `Both moved, to ${at.query_position + at.shift} and ${at.key_position + at.shift}`));
  say(explain(draw()));
}

export default { render };
