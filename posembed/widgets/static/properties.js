// Figure 7: three properties of a matrix of positions, cell by cell: its row's order, its diagonal, its mirror cell.
//
// The package packs each matrix: three letters a cell for its value and one for its place in the order of its row, which
// rounding would lose. The numbers of the whole matrix are the package's; those of a row, of a diagonal and of two cells
// that mirror each other are computed here.

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DIGITS = Object.fromEntries([...LETTERS].map((letter, digit) => [letter, digit]));
const [MIDDLE, IN_ONE] = [2 ** 17, 2 ** 16];

/** A matrix in rows again: its values in its unit, null where nothing is seen, and the order of each row. */
export function unpack({ n, values, order }) {
  const number = (k) => [0, 1, 2].reduce((sum, place) => 64 * sum + DIGITS[values[3 * k + place]], 0);
  const square = (read) => range(0, n - 1).map((row) => range(0, n - 1).map((column) => read(n * row + column)));
  return {
    values: square((k) => (number(k) ? (number(k) - MIDDLE) / IN_ONE : null)),
    order: square((k) => DIGITS[order[k]]),
  };
}

/** The values along a diagonal, on which column less row is the offset, and the row of the first. */
export function diagonal({ n, values }, offset) {
  const first = Math.max(0, -offset);
  return { first, along: range(first, first + n - Math.abs(offset) - 1).map((row) => values[row][row + offset]) };
}

/** The mean of numbers and their standard deviation. */
export function spread(numbers) {
  const average = (list) => list.reduce((sum, each) => sum + each, 0) / list.length;
  const mean = average(numbers);
  return { mean, deviation: Math.sqrt(average(numbers.map((each) => (each - mean) ** 2))) };
}

/** All values that translation invariance looks at: those off the main diagonal that are seen. */
export const offDiagonal = (values) => values.flatMap((row, i) => row.filter((value, j) => j !== i && value !== null));

/** The columns on one side of a row, -1 or 1, from the diagonal outwards, up to a distance. */
const outwards = (n, row, side, reach = n) =>
  range(1, Math.min(reach, side < 0 ? row : n - 1 - row)).map((distance) => row + side * distance);

/** How many pairs of cells there are on one side of a row, and how many of them have the nearer one larger. */
export function pairs({ n, order }, row, side, reach) {
  const ranks = outwards(n, row, side, reach).map((column) => order[row][column]);
  const counted = (near, far) => (near > far ? 1 : near === far ? 0.5 : 0);
  const beyond = (near, k) => ranks.slice(k + 1).reduce((sum, far) => sum + counted(near, far), 0);
  return { inOrder: ranks.reduce((sum, near, k) => sum + beyond(near, k), 0), all: (ranks.length ** 2 - ranks.length) / 2 };
}

/** The neighbours on one side of a row of which the farther one is larger. */
export function rises({ n, order }, row, side, reach) {
  const columns = outwards(n, row, side, reach);
  const steps = columns.slice(1).map((far, k) => [columns[k], far]);
  return steps.filter(([near, far]) => order[row][far] > order[row][near]);
}

/** Writes values, all with the same decimals: four digits of a size or, beside an axis, as many as have room. */
export function writer(unit, size, brief = false) {
  const power = Math.floor(Math.log10(size * unit));
  const decimals = Math.max(0, (brief ? 2 - (power < 0) : 3) - power);
  const fixed = (value) => value.toFixed(decimals).replace(/^-(0\.?0*)$/, "$1");
  const digits = brief ? Number(power > 0) : 2;
  const short = (value) => (value ? value.toExponential(digits).replace("e+", "e") : "0");
  const [least, most] = brief ? [-2, 3] : [-4, 6];
  const written = power < least || power > most ? short : fixed;
  return (value) => written(value * unit).replaceAll("-", "−");
}

const share = (value) => (value === null ? "undefined" : value.toFixed(3));

/** The least and the largest of numbers, with room between them. */
function bounds(numbers) {
  const [low, high] = numbers.length ? [Math.min(...numbers), Math.max(...numbers)] : [0, 0];
  const room = high > low ? 0 : Math.abs(high) / 10 || 1;
  return [low - room, high + room];
}

/** An axis of values: a tick at each end, and at zero where it has room. */
const valueAxis = ([low, high], brief) => ({
  from: low, to: high, name: "value", words: brief,
  ticks: [low, ...(Math.min(-low, high) > 0.2 * (high - low) ? [0] : []), high],
});

/** An axis of rows or columns; its ticks are round numbers away from `zero`. */
function placeAxis(n, name, zero = 0) {
  const step = [1, 2, 5, 10].find((each) => n <= 8 * each);
  const ticks = range(0, n - 1).filter((place) => (place - zero) % step === 0);
  return { from: -0.5, to: n - 0.5, name, ticks, words: (place) => signed(place - zero) };
}

/** The address of a picture with a pixel for each value; what is not seen is clear. */
const picture = (rows, full) => pixels(rows.flat().map((value) => value ?? 0), [rows.length, rows[0].length], full);

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 12, 26, 40];
const HEIGHT = 150;

const word = (x, y, text) => svg("text", { class: "pe-tick pe-property-word", x, y, "text-anchor": "middle" }, text);

const painted = (href, place, look) =>
  [svg("rect", { class: "pe-blank", ...place }), svg("image", { class: look, href, preserveAspectRatio: "none", ...place })];

/** What stands below the frames: the axes, the cells, what is not seen, and what the colours mean. */
function backdrop(side, matrix) {
  const { n, values, full, future } = matrix;
  const rows = { ...placeAxis(n, "row i"), from: n - 0.5, to: -0.5 };
  const { parts } = axes(side + LEFT + RIGHT, side + TOP + BOTTOM, placeAxis(n, "column j"), rows, LEFT);
  const whole = { x: LEFT, y: TOP, width: side, height: side };
  return [...parts, ...painted(picture(values, full), whole, "pe-pixels"), ...(future === "open" ? [] : unseen(side, n)), ...legend(side + LEFT, matrix)];
}

/** Slanted lines over the cells ahead, which causal attention does not see. */
function unseen(side, n) {
  // From above the diagonal to the edge, on a line along which x and y have one sum.
  const stripe = (sum) => {
    const [x, edge] = [(sum + side / n) / 2, Math.min(side, sum)];
    return x < edge ? `M${LEFT + x} ${TOP + sum - x}L${LEFT + edge} ${TOP + sum - edge}` : "";
  };
  const stripes = range(1, Math.floor(side / 4.5)).map((k) => stripe(9 * k));
  return [svg("path", { class: "pe-property-unseen", d: stripes.join("") }), word(LEFT + 0.7 * side, TOP + 0.28 * side, "not seen")];
}

/** What the colours mean, for the signs that there are. */
function legend(right, { values, full, largest, brief }) {
  const any = (sign) => values.flat().some((value) => sign * value > 0);
  const [low, high] = [any(-1) ? -full : 0, any(1) || !any(-1) ? full : 0];
  // Where larger cells share the strongest colour, its end stands for them too.
  const end = (value, sign) => (value && brief(largest) !== brief(full) ? sign : "") + brief(value);
  const text = (x, anchor, words) => svg("text", { class: "pe-tick", x, y: 13, "text-anchor": anchor }, words);
  const last = text(right, "end", end(high, "≥ "));
  const place = { x: right - 8.5 * last.textContent.length - 70, y: 4, width: 70, height: 10 };
  const bar = picture([range(0, 40).map((k) => low + (k / 40) * (high - low))], full);
  return [text(place.x - 5, "end", end(low, "≤ ")), ...painted(bar, place, ""), last];
}

/** The row, the diagonal, the cell and its mirror, framed in the map: around the cells, which stay in sight. */
function frames(side, n, [row, column]) {
  const [cell, offset] = [side / n, column - row];
  const [left, right] = [(place) => LEFT + place * cell - 1.5, (place) => LEFT + (place + 1) * cell + 1.5];
  const [top, bottom] = [(place) => TOP + place * cell - 1.5, (place) => TOP + (place + 1) * cell + 1.5];
  const first = Math.max(0, -offset);
  const last = n - 1 - Math.max(0, offset);
  const slanted = `M${left(first + offset)} ${top(first)}H${right(first + offset)}L${right(last + offset)} ${top(last)}V${bottom(last)}H${left(last + offset)}L${left(first + offset)} ${bottom(first)}Z`;
  const shapes = (look) => [
    svg("rect", { class: look, x: left(0), y: top(row), width: side + 3, height: cell + 3 }),
    svg("path", { class: `${look} pe-property-diagonal`, d: slanted }),
    svg("circle", { class: `${look} pe-property-strong`, cx: left(row + 0.5) + 1.5, cy: top(column + 0.5) + 1.5, r: cell / 2 + 4 }),
    svg("rect", { class: `${look} pe-property-strong`, x: left(column) - 1, y: top(row) - 1, width: cell + 5, height: cell + 5 }),
  ];
  return [...shapes("pe-halo"), ...shapes("pe-outline")];
}

/** Let a mouse try cells out and keep one by a click; a finger keeps the cells that it comes to. */
function pointing(node, read, { hover, keep }) {
  node.addEventListener("click", (event) => keep(read(event)));
  node.addEventListener("pointermove", (event) => (event.pointerType === "mouse" && !event.buttons ? hover : keep)(read(event)));
  node.addEventListener("pointerleave", () => hover(null));
}

/** The heat map: one thing to focus, whose cells are reached by pointer and by arrow keys. */
function heatMap(hands, onkeydown) {
  const [below, above] = [svg("g"), svg("g")];
  const target = svg("rect", { class: "pe-target", x: LEFT, y: TOP });
  const drawn = svg("svg", { class: "pe-drawing", "aria-hidden": "true" }, below, above, target);
  const node = h("div", { class: "pe-property-map", role: "application", "aria-roledescription": "heat map", tabindex: 0, onkeydown }, drawn);
  let [matrix, cell, backed] = [];
  pointing(target, ({ clientX, clientY }) => {
    const { left, top, width, height } = target.getBoundingClientRect();
    return [(clientY - top) / height, (clientX - left) / width].map((part) => Math.floor(matrix.n * part));
  }, hands);
  function paint() {
    const side = drawn.clientWidth - LEFT - RIGHT;
    if (side <= 0) return;
    // The cells are painted anew only where they have changed.
    if (backed !== `${side} ${matrix.name}`) {
      backed = `${side} ${matrix.name}`;
      furnish(drawn, { viewBox: `0 0 ${side + LEFT + RIGHT} ${side + TOP + BOTTOM}`, height: side + TOP + BOTTOM }, []);
      furnish(target, { width: side, height: side }, []);
      below.replaceChildren(...backdrop(side, matrix));
    }
    above.replaceChildren(...frames(side, matrix.n, cell));
  }
  new ResizeObserver(paint).observe(drawn);
  return {
    node,
    show(label, ...content) {
      [matrix, cell] = content;
      node.setAttribute("aria-label", label);
      paint();
    },
  };
}

/** A row's columns on both sides of the diagonal, which no property compares; those that are seen. */
const sides = (row, values) =>
  [range(0, row - 1), range(row + 1, values.length - 1)].map((columns) => columns.filter((column) => values[column] !== null));

/** The axes of a chart over the columns, named by their offset from the row, with a line at the diagonal. */
function overOffsets(width, { n, brief }, row, numbers) {
  const [low, high] = bounds(numbers);
  const { x, y, parts } = axes(width, HEIGHT, placeAxis(n, "offset", row), valueAxis([low, high], brief), LEFT);
  const zone = (from, to, look) => svg("rect", { class: look, x: x(from), y: y(high), width: x(to) - x(from), height: y(low) - y(high) });
  return { x, y, zone, parts: [...parts, svg("path", { class: "pe-limit", d: `M${x(row)} ${y(low)}V${y(high)}` })] };
}

const square = (x, y) => svg("rect", { class: "pe-property-point", x: x - 4.5, y: y - 4.5, width: 9, height: 9 });
const ring = (x, y) => svg("circle", { class: "pe-property-ring", cx: x, cy: y, r: 6 });

const curve = (points, look = "") => svg("path", { class: `pe-curve ${look}`, d: lineThrough(points) });

/** A row against the offset; where it rises away from the diagonal, it is picked out. */
function rowChart(width, matrix, [row, column]) {
  const { n, values, future, reach } = matrix;
  const seen = sides(row, values[row]).slice(0, future === "open" ? 2 : 1);
  const { x, y, parts, zone } = overOffsets(width, matrix, row, seen.flat().map((each) => values[row][each]));
  const points = (columns) => columns.map((each) => [x(each), y(values[row][each])]);
  const steep = [-1, 1].slice(0, seen.length).flatMap((side) => rises(matrix, row, side, reach));
  const beyond = [[-0.5, row - reach - 0.5], [row + reach + 0.5, n - 0.5]].filter(([from, to]) => from < to);
  return [
    ...beyond.map(([from, to]) => zone(from, to, "pe-property-beyond")),
    ...(future === "open" ? [] : [zone(row, n - 0.5, "pe-property-beyond")]),
    ...parts,
    ...(seen.flat().length ? [] : [word((x(0) + x(n - 1)) / 2, HEIGHT / 2, "no cell behind")]),
    ...seen.filter((columns) => columns.length).map((columns) => curve(points(columns))),
    ...steep.map((columns) => curve(points(columns), "pe-property-rise")),
    ...(seen.flat().includes(column) ? [square(...points([column])[0])] : []),
  ];
}

/** The values along a diagonal, on the bands of its spread and of that of the whole matrix. */
function diagonalChart(width, matrix, [row, column]) {
  const { n, whole, brief } = matrix;
  const { first, along } = diagonal(matrix, column - row);
  const seen = along[0] === null ? [] : along;
  const band = ({ mean, deviation }, times = 1) => [mean - times * deviation, mean + times * deviation];
  const [low, high] = bounds([...band(whole, 1.5), ...seen]);
  const ticks = whole.deviation > (high - low) / 5 ? [...band(whole), whole.mean] : [whole.mean];
  const { x, y, parts } = axes(width, HEIGHT, placeAxis(n, "row i"), { ...valueAxis([low, high], brief), ticks }, LEFT);
  const shade = ([from, to], start, stop, look) => svg("rect", {
    class: look, x: x(start - 0.5), y: y(to), width: x(stop) - x(start), height: Math.max(1, y(from) - y(to)) });
  const around = shade(band(whole), 0, n, "pe-property-whole");
  if (!seen.length) return [around, ...parts, word(x((n - 1) / 2), y((low + high) / 2), "not seen")];
  return [
    around,
    shade(band(spread(along)), first, first + along.length, "pe-property-band"),
    ...parts,
    curve(along.map((value, k) => [x(first + k), y(value)])),
    square(x(row), y(along[row - first])),
  ];
}

/** A row and the column that mirrors it. */
function mirrorChart(width, matrix, [row, column]) {
  const lines = [matrix.values[row], matrix.values.map((each) => each[row])];
  const seen = lines.map((values) => sides(row, values));
  const { x, y, parts } = overOffsets(width, matrix, row, lines.flatMap((values, k) => seen[k].flat().map((each) => values[each])));
  const points = (k, columns) => columns.map((each) => [x(each), y(lines[k][each])]);
  const curves = (k, look) => seen[k].filter((columns) => columns.length).map((columns) => curve(points(k, columns), look));
  const ends = [0, 1].map((k) => points(k, [column].filter((each) => seen[k].flat().includes(each))));
  return [
    ...parts, ...curves(0), ...curves(1, "pe-second"),
    ...(ends.every((end) => end.length) ? [svg("path", { class: "pe-property-gap", d: lineThrough(ends.flat()) })] : []),
    ...ends[0].map((end) => square(...end)),
    ...ends[1].map((end) => ring(...end)),
  ];
}

// What stands for a row, a diagonal and a mirror cell, in the map and beside the names.
const SIGNS = {
  row: ["pe-outline", "M1 6H17V12H1Z"],
  diagonal: ["pe-outline pe-property-diagonal", "M1 1H6L17 12V17H12L1 6Z"],
  mirror: ["pe-outline pe-property-strong", "M10 2H16V8H10ZM1.5 13a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0"],
};

/** A chart under the name of a property, its number for the whole matrix, and what it is here. */
function card(sign, name, note, draw, read, hands) {
  const [look, d] = SIGNS[sign];
  const mark = svg("svg", { class: "pe-property-sign", viewBox: "0 0 18 18", "aria-hidden": "true" }, svg("path", { class: look, d }));
  const [number, words] = [h("span", { class: "pe-value" }), h("p", { class: "pe-property-words" })];
  const title = h("p", { class: "pe-property-title" }, mark, h("strong", {}, name), number);
  let content = null;
  const chart = drawing(HEIGHT, (width) => (content ? draw(width, ...content) : []));
  pointing(chart.node, ({ clientX }) => {
    const { left, width } = chart.node.getBoundingClientRect();
    const [matrix, cell] = content;
    return read(Math.floor((matrix.n * (clientX - left - LEFT)) / (width - LEFT - RIGHT)), cell, matrix);
  }, hands);
  return {
    node: h("div", { class: "pe-property" }, title, words, chart.node, h("p", { class: "pe-note" }, note)),
    show(value, text, ...next) {
      content = next;
      [number.textContent, words.textContent] = [share(value), text];
      chart.redraw(`${name}. ${text}`);
    },
  };
}

/** What there is to say of a cell: its value, its mirror cell's, its row's order, its diagonal. */
function account(matrix, [row, column]) {
  const { values, future, reach, whole, write } = matrix;
  const say = (value) => (value === null ? "not seen" : write(value));
  const side = (name, { inOrder, all }) => `${name} ${all ? share(inOrder / all) : "no pairs"}`;
  const { along } = diagonal(matrix, column - row);
  const { mean, deviation } = spread(along);
  const [value, mirrored] = [values[row][column], values[column][row]];
  return {
    value: say(value),
    mirrored: `${say(mirrored)}${value === null || mirrored === null ? "" : `, difference ${write(value - mirrored)}`}`,
    order: [side("left", pairs(matrix, row, -1, reach)), future === "open" ? side("right", pairs(matrix, row, 1, reach)) : "ahead not seen"].join(", "),
    line: column === row ? "Main diagonal" : `Diagonal ${signed(column - row)}`,
    spread: along[0] === null ? "not seen" : `mean ${write(mean)}, spread ${write(deviation)}`,
    whole: write(whole.deviation),
  };
}

/** All that the figure needs of a matrix. */
function studied(packed, maxOffset) {
  const { values, order } = unpack(packed);
  const largest = Math.max(...values.flat().map(Math.abs)) || 1;
  // Small values are written no finer than they are packed.
  const [write, brief] = [false, true].map((each) => writer(packed.unit, Math.max(packed.full, largest / 4), each));
  return { ...packed, values, order, largest, write, brief, whole: spread(offDiagonal(values)), reach: maxOffset ?? packed.n };
}

/** What there is to try among these matrices, of which the first is shown at first: only what it has not got. */
export function goals([{ properties: first }, ...others]) {
  const some = (test) => !test(first) && others.some(({ properties }) => test(properties));
  return [
    ...(some(({ monotonicity }) => monotonicity === 1) ? [["a row in which every pair is in order", inOrder]] : []),
    ...(some(({ symmetry }) => symmetry !== null && symmetry < 0.999) ? [["a cell that differs from its mirror cell", differs]] : []),
  ];
}

/** Whether every pair of a row is in order, and there is one. */
export function inOrder(matrix, [row]) {
  const sides = [-1, 1].map((side) => pairs(matrix, row, side, matrix.reach)).slice(0, matrix.future === "open" ? 2 : 1);
  return sides.some(({ all }) => all) && sides.every((side) => side.inOrder === side.all);
}

/** Whether a cell and its mirror cell are seen, and differ by more than a thousandth of the colours. */
export function differs({ values, full }, [row, column]) {
  const [value, mirrored] = [values[row][column], values[column][row]];
  return value !== null && mirrored !== null && Math.abs(value - mirrored) > full / 1000;
}

const AHEAD = {
  open: "",
  absent: "Ahead is not seen, and left out; symmetry is undefined.",
};

const STEPS = {
  ArrowLeft: ["←", "one column left", 0, -1], ArrowUp: ["↑", "one row up", -1, 0],
  ArrowDown: ["↓", "one row down", 1, 0], ArrowRight: ["→", "one column right", 0, 1],
};

/** The cell that is kept, in the model, and the one that a mouse tries out, of a matrix of n rows. */
function chosenCell(model, size, draw) {
  let tried = null;
  const inside = (place) => place.map((each) => Math.max(0, Math.min(size() - 1, each)));
  const kept = () => inside(model.get("cell"));
  const same = (a, b) => String(a) === String(b);
  const now = () => tried ?? kept();
  return {
    kept, now,
    forget: () => (tried = null),
    keep(place) {
      const [before, after] = [now(), inside(place)];
      tried = null;
      if (!same(kept(), after)) assign(model, "cell", after);
      else if (!same(before, after)) draw();
    },
    hover(place) {
      const before = now();
      tried = place && inside(place);
      if (!same(before, now())) draw();
    },
  };
}

function render({ model, el }) {
  const matrices = model.get("matrices");
  const maxOffset = model.get("max_offset");
  const studies = {};
  const study = () => {
    const name = model.get("matrix");
    return (studies[name] ??= studied(matrices.find((each) => each.name === name), maxOffset));
  };
  const cell = chosenCell(model, () => study().n, draw);
  const step = (down, right) => cell.keep([cell.kept()[0] + down, cell.kept()[1] + right]);
  function press(event) {
    if (!STEPS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step(...STEPS[event.key].slice(2));
  }
  const button = (sign, name, onclick) => h("button", { type: "button", class: "pe-button", "aria-label": name, onclick }, sign);
  const controls = h("div", { class: "pe-controls pe-property-controls" },
    choose(model, "matrix", "matrix", matrices.map(({ name }) => [name, name])),
    h("span", { class: "pe-property-steps" },
      ...Object.values(STEPS).map(([sign, name, ...way]) => button(sign, name, () => step(...way))),
      button("mirror cell", "mirror cell", () => cell.keep(cell.kept().reverse()))));
  const hint = h("p", { class: "pe-hint" }, "Point at a cell or a chart; a click or tap keeps the cell, arrow keys and buttons move it.");
  const map = heatMap(cell, press);
  const upTo = maxOffset === null ? "" : ` Offsets up to ${maxOffset}.`;
  const across = (column, [row]) => [row, column];
  const cards = [
    card("row", "Monotonicity", `In order: the nearer of two cells is the larger. Thick, orange: rises with distance.${upTo}`, rowChart, across, cell),
    card("diagonal", "Translation invariance", "Dark band: mean ± spread along the diagonal. Pale band: in the whole matrix, but for the main diagonal.", diagonalChart,
      (place, [row, column], { n }) => {
        const along = Math.max(0, row - column, Math.min(n - 1, n - 1 - (column - row), place));
        return [along, along + column - row];
      }, cell),
    card("mirror", "Symmetry", "Solid: the row. Dashed: the column of the same number, its mirror image.", mirrorChart, across, cell),
  ];
  const ahead = matrices.some(({ future }) => AHEAD[future]) ? [h("p", { class: "pe-note pe-two-lines" })] : [];
  const notes = [h("p", { class: "pe-note" }, model.get("note")), ...ahead];
  const tasks = goals(matrices).map(([words, reached]) => [words, () => reached(study(), cell.now())]);
  const { figure, say } = tries(frame(el, "Three properties, cell by cell", hint,
    h("div", { class: "pe-property-body" },
      h("div", {}, h("div", { class: "pe-property-view" }, controls, map.node), cards[0].node), h("div", {}, cards[1].node, cards[2].node, h("div", {}, ...notes)))), ...tasks);
  // What it says stands in the cards.
  figure.classList.add("pe-properties");
  figure.querySelector(".pe-status").classList.add("pe-hidden");

  function draw() {
    const [matrix, [row, column]] = [study(), cell.now()];
    const { value, mirrored, order, line, spread, whole } = account(matrix, [row, column]);
    const place = `Row ${row}, column ${column}, offset ${signed(column - row)}: value ${value}, mirror cell ${mirrored}.`;
    const { monotonicity, translation_invariance: invariance, symmetry } = matrix.properties;
    const shown = [
      [monotonicity, `Row ${row}, pairs in order: ${order}.`],
      [invariance, `${line}: ${spread}. Whole matrix: spread ${whole}.`],
      [symmetry, `Cell (${row}, ${column}): ${value}${row === column ? ", its own mirror cell" : `. Mirror (${column}, ${row}): ${mirrored}`}.`],
    ];
    map.show(`${matrix.name}. ${place} Arrow keys move the cell.`, matrix, [row, column]);
    cards.forEach((each, k) => each.show(...shown[k], matrix, [row, column]));
    ahead.forEach((line) => (line.textContent = AHEAD[matrix.future]));
    say(`${place} Pairs in order: ${order}. ${line}: ${spread}.`);
  }

  model.on("change:matrix", () => {
    cell.forget();
    draw();
  });
  model.on("change:cell", draw);
  draw();
}

export default { render };
