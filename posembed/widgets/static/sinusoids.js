// Figure 3: the sinusoidal table, the wavelengths of its pairs, and the dot product of two rows against their offset.

/** Rows 0 to nRows - 1 of the table: sin, cos, sin, cos, and so on, as in the 2017 paper. */
export function sinusoids(nRows, dModel, base) {
  const speeds = frequencies(dModel, base);
  return range(0, nRows - 1).map((position) => speeds.flatMap((w) => [Math.sin(position * w), Math.cos(position * w)]));
}

export const wavelengths = (dModel, base) => frequencies(dModel, base).map((w) => (2 * Math.PI) / w);

/** The dot products of a row with those 0, 1, ... nOffsets places further on. */
export function products(rows, position, nOffsets) {
  const dot = (a, b) => a.reduce((sum, value, column) => sum + value * b[column], 0);
  return range(0, nOffsets).map((offset) => dot(rows[position], rows[position + offset]));
}

/** The first offset with a larger dot product than the one before it, or null where none up to `most` has. */
export function firstRise(dModel, base, most = FARTHEST) {
  const speeds = frequencies(dModel, base);
  const product = (offset) => speeds.reduce((sum, w) => sum + Math.cos(w * offset), 0);
  return range(1, most).find((offset) => product(offset) > product(offset - 1)) ?? null;
}

const FARTHEST = 4096;
const N_OFFSETS = 128;
// What a sum of up to a thousand products may be off by.
const ROUNDING = 1e-9;
const [HIGH, LOW] = [210, 150];

const picture = (rows) => pixels(rows.flat(), [rows.length, rows[0].length], 1);

/** What is drawn of a table, whatever the position. */
function study(nRows, dModel, base) {
  const rows = sinusoids(nRows + N_OFFSETS, dModel, base);
  return {
    nRows, dModel, rows,
    image: picture(rows.slice(0, nRows)),
    waves: wavelengths(dModel, base),
    fromRowZero: products(rows, 0, N_OFFSETS),
    rise: firstRise(dModel, base),
  };
}

/** Four even ticks from zero, as far as they are whole numbers. */
const quarters = (n) => [0, n / 4, n / 2, (3 * n) / 4].filter(Number.isInteger);
const cellAxis = (n, name) => ({ from: -0.5, to: n - 0.5, ticks: quarters(n), name });

function heatMap(width, { nRows, dModel, rows, image }, position, pick) {
  const { x, y, parts } = axes(width, HIGH, cellAxis(dModel, "column"), {
    from: nRows - 0.5, to: -0.5, ticks: quarters(nRows), name: "position" });
  const [left, right, top] = [x(-0.5), x(dModel - 0.5), y(-0.5)];
  const whole = { x: left, y: top, width: right - left, height: y(nRows - 0.5) - top };
  // A row can be less than a pixel high: it is drawn again, larger.
  const row = { ...whole, y: y(position) - 4, height: 8 };
  // Cells larger than a pixel keep their edges; smaller ones are mixed.
  const sharp = dModel < whole.width ? "pe-pixels" : "";
  const painted = (href, place, look) =>
    [svg("rect", { class: "pe-blank", ...place }), svg("image", { class: look, href, preserveAspectRatio: "none", ...place })];
  const pickRow = (event) => {
    const { top, height } = event.target.getBoundingClientRect();
    pick(Math.min(nRows - 1, Math.floor((nRows * (event.clientY - top)) / height)));
  };
  return [
    ...parts,
    ...painted(image, whole, sharp),
    svg("rect", { class: "pe-halo", ...row }),
    ...painted(picture([rows[position]]), row, sharp),
    svg("rect", { class: "pe-outline", ...row }),
    svg("path", { class: "pe-pointer", d: `M${right + 3} ${y(position)}l9 -5v10z` }),
    svg("rect", { class: "pe-target", onclick: pickRow, ...whole }),
    ...legend(right, painted),
  ];
}

function legend(right, painted) {
  const colours = picture([range(-20, 20).map((value) => value / 20)]);
  const text = (x, anchor, words) => svg("text", { class: "pe-tick", x, y: 13, "text-anchor": anchor }, words);
  return [text(right - 92, "end", "−1"), ...painted(colours, { x: right - 87, y: 4, width: 74, height: 10 }, ""), text(right, "end", "1")];
}

/** A curve; its points too, where they have room. */
function series(points, second = "") {
  const dots = points.length > 32 ? [] : points.map(([cx, cy]) => svg("circle", { class: `pe-bullet ${second}`, cx, cy, r: 2.5 }));
  return [svg("path", { class: `pe-curve ${second}`, d: lineThrough(points) }), ...dots];
}

function rowChart(width, { dModel, rows }, position) {
  const { x, y, parts } = axes(width, LOW, cellAxis(dModel, "column"), { from: -1, to: 1, ticks: [-1, 0, 1], name: "value" });
  const points = rows[position].map((value, column) => [x(column), y(value)]);
  const half = (rest) => points.filter((_, column) => column % 2 === rest);
  return [...parts, ...series(half(1), "pe-second"), ...series(half(0))];
}

function productChart(width, { dModel, rows, fromRowZero, rise }, position) {
  const top = dModel / 2;
  const bottom = [0, -top / 2, -top].find((low) => low <= Math.min(...fromRowZero) + ROUNDING);
  const { x, y, parts } = axes(width, HIGH, { from: 0, to: N_OFFSETS, ticks: [...quarters(N_OFFSETS), N_OFFSETS], name: "offset k" }, {
    from: bottom, to: top, ticks: [...new Set([bottom, 0, top / 2, top])], name: "dot product" });
  const line = (values) => lineThrough(values.map((value, offset) => [x(offset), y(value)]));
  return [
    ...parts,
    svg("path", { class: "pe-ghost", d: line(fromRowZero) }),
    svg("path", { class: "pe-curve", d: line(products(rows, position, N_OFFSETS)) }),
    ...(rise && rise <= N_OFFSETS ? endOfFall(x(rise - 1), y(fromRowZero[rise - 1]), y(top), `falls to ${rise - 1}`) : []),
  ];
}

function endOfFall(x, y, top, words) {
  return [
    svg("path", { class: "pe-limit", d: `M${x} ${top}V${y}` }),
    svg("circle", { class: "pe-end", cx: x, cy: y, r: 5 }),
    svg("text", { class: "pe-tick", x: x + 6, y: top + 14 }, words),
  ];
}

function waveChart(width, { nRows, waves }, longest) {
  const { x, y, parts } = axes(width, LOW, cellAxis(waves.length, "pair of columns"), {
    from: 1, to: longest, ticks: [1, 100, 1e4, 1e6], name: "positions", log: true, words: grouped }, 68);
  const [left, right] = [x(-0.5), x(waves.length - 0.5)];
  return [
    ...parts,
    svg("path", { class: "pe-limit", d: `M${left} ${y(nRows)}H${right}` }),
    // The curve begins below this line, so that there is room on the left.
    svg("text", { class: "pe-tick", x: left + 5, y: y(nRows) - 5 }, `${nRows} rows`),
    ...series(waves.map((wave, pair) => [x(pair), y(wave)])),
  ];
}

const inPositions = (wave) => (wave < 100 ? wave.toFixed(2) : grouped(Math.round(wave)));

function aboutWaves({ nRows, waves }) {
  const within = waves.filter((wave) => wave <= nRows).length;
  return `From ${inPositions(waves[0])} to ${inPositions(waves.at(-1))} positions; ${within} of ${waves.length} pairs come round within ${nRows} rows.`;
}

const aboutRise = (rise) => (rise
  ? `Falls up to offset ${rise - 1}, and rises for the first time from ${rise - 1} to ${rise}.`
  : `Falls at every offset up to ${grouped(FARTHEST)}.`);

// What there is to try.
const fallsBeyond = ({ rise }, offset) => rise === null || rise - 1 > offset;
const allWithin = ({ nRows, waves }) => Math.max(...waves) <= nRows;

/** How the dot products of a row differ from those of row 0, in words. */
function comparison({ rows, fromRowZero }, position) {
  const apart = Math.max(...products(rows, position, N_OFFSETS).map((value, k) => Math.abs(value - fromRowZero[k])));
  const same = apart < ROUNDING ? "is" : "is not";
  return `Row ${position} times row ${position} + k ${same} row 0 times row k, for k from 0 to ${N_OFFSETS}: the largest difference is ${tiny(apart)}.`;
}

/** A chart with a title above it and a note below it, which are also its text for those who do not see it. */
function panel(height, draw, room = "") {
  const [title, note] = ["pe-title", `pe-note ${room}`].map((name) => h("p", { class: name }));
  const { node, redraw } = drawing(height, draw);
  const show = (titleText, noteText) => {
    title.textContent = titleText;
    note.textContent = noteText;
    redraw(`${titleText}. ${noteText}`);
  };
  return { node: h("div", { class: "pe-chart" }, title, node, note), show };
}

function render({ model, el }) {
  const [nRows, widths, bases] = [model.get("n_positions"), model.get("widths"), model.get("bases")];
  const longest = 10 ** Math.ceil(Math.log10(2 * Math.PI * Math.max(...bases)));
  const position = () => model.get("position");
  let table;

  const panels = [
    panel(HIGH, (width) => heatMap(width, table, position(), (row) => assign(model, "position", row))),
    panel(LOW, (width) => rowChart(width, table, position())),
    panel(HIGH, (width) => productChart(width, table, position()), "pe-two-lines"),
    panel(LOW, (width) => waveChart(width, table, longest), "pe-two-lines"),
  ];
  const controls = h("div", { class: "pe-controls pe-pinned" },
    slider(model, "d_model", "width", widths, grouped),
    slider(model, "base", "base", bases, grouped),
    runner(model, "position", "position", range(0, nRows - 1), { pace: 150 }));
  const { say } = tries(
    frame(el, "Explore the sinusoidal table", controls, h("div", { class: "pe-charts" }, ...panels.map(({ node }) => node))),
    ["dot products that fall beyond offset 40", () => fallsBeyond(table, 40)],
    [`wavelengths that all come round within ${nRows} rows`, () => allWithin(table)]);

  function draw() {
    const texts = [
      ["The table", `Row ${position()} is framed, and drawn below.`],
      [`Row ${position()}`, "Sines: solid, blue. Cosines: dashed, orange."],
      [`Row ${position()} times row ${position()} + k`, aboutRise(table.rise)],
      ["Wavelength of each pair", aboutWaves(table)],
    ];
    panels.forEach(({ show }, k) => show(...texts[k]));
  }

  function change() {
    const [dModel, base] = [model.get("d_model"), model.get("base")];
    table = study(nRows, dModel, base);
    draw();
    say(`Width ${dModel}, base ${grouped(base)}: the longest wavelength is ${inPositions(table.waves.at(-1))} positions, and the dot product ${
      table.rise ? `first rises from offset ${table.rise - 1} to ${table.rise}` : `falls up to offset ${grouped(FARTHEST)}`}.`);
  }

  model.on("change:position", () => {
    draw();
    say(comparison(table, position()));
  });
  model.on("change:d_model", change);
  model.on("change:base", change);
  change();
}

export default { render };
