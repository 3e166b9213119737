// Figure 13: what broken code makes, wiped over to what mended code makes, and the line that is to blame.

const [STEPS, NOTHING] = [254, 255];
const [LEFT, TOP, BOTTOM, HIGH] = [46, 24, 40, 300];

/** The numbers of a map, row after row; null where nothing came back. */
export const unpacked = (packed, most) =>
  [...atob(packed)].map((each) => each.charCodeAt(0)).map((step) => (step === NOTHING ? null : ((2 * step) / STEPS - 1) * most));

/** Of each cell whether mended code makes another number there; a step more or less is rounding. */
export const changed = (before, after, most) =>
  before.map((value, k) => (value === null) !== (after[k] === null) || Math.abs((value ?? 0) - (after[k] ?? 0)) > (1.5 * 2 * most) / STEPS);

/** The edges between cells that are changed and those that are not, as the `d` of a path with cells of size 1. */
export function outline(cells, [rows, columns]) {
  const at = (row, column) => row >= 0 && row < rows && column >= 0 && column < columns && cells[row * columns + column];
  return range(0, rows).flatMap((row) => range(0, columns).map((column) =>
    (at(row, column) === at(row - 1, column) ? "" : `M${column} ${row}h1`) + (at(row, column) === at(row, column - 1) ? "" : `M${column} ${row}v1`))).join("");
}

/** The cells that are not changed, as the `d` of a path. */
const kept = (cells, columns) => cells.map((each, k) => (each ? "" : `M${k % columns} ${Math.floor(k / columns)}h1v1h-1z`)).join("");

/** What the colours mean, of those that are there. */
export const legend = (values) => [
  ["orange: above zero", values.some((each) => each > 0)], ["blue: below zero", values.some((each) => each < 0)],
  ["pale: zero", true], ["dark grey: nothing came back", values.includes(null)],
].filter(([, there]) => there).map(([words]) => words).join(", ").replace(/^./, (letter) => letter.toUpperCase());

/** What is said: how far the picture is wiped, and what a line of the code has to do with it. */
export function said({ lines, cells, columns, wipe, line }) {
  const place = Math.round(wipe * columns);
  const wiped = place === 0 ? "All is mended." : place === columns ? "All is broken." : `Broken on the left, mended from column ${place} on.`;
  const n = cells.filter(Boolean).length;
  if (line < 0) return `${wiped} Which line is to blame? Press it.`;
  if (!lines[line][1]) return `${wiped} Not that line: the mended code has it too.`;
  const blamed = lines.filter((each) => each[1]).length;
  const blame = blamed === 1 ? "This line is to blame: it changes" : `This line is one of ${blamed} to blame: they change`;
  return `${wiped} ${blame} ${grouped(n)} of ${grouped(cells.length)} cells, which are framed.`;
}

function render({ model, el }) {
  const [title, shape, most, lines, first] = ["title", "shape", "most", "lines", "first_row"].map((name) => model.get(name));
  const [rows, columns] = shape;
  const maps = model.get("maps").map((packed) => unpacked(packed, most));
  const cells = changed(...maps, most);
  const hrefs = maps.map((values) => pixels(values, shape, most));
  const [framed, faded] = [outline(cells, shape), kept(cells, columns)];
  const found = () => lines[model.get("line")]?.[1];

  const wipe = (share) => assign(model, "wipe", clamp(0, Math.round(share * columns) / columns, 1));
  const held = grip("pe-repair-held", "wipe", ({ clientX }) => {
    const { left, width } = held.node.getBoundingClientRect();
    wipe((clientX - left) / width);
  }, (by) => wipe(model.get("wipe") + by / columns));
  const map = drawing(HIGH, (width) => {
    const [wide, high, share] = [width - LEFT - 12, HIGH - TOP - BOTTOM, model.get("wipe")];
    Object.assign(held.node.style, { left: `${LEFT}px`, top: `${TOP}px`, width: `${wide}px`, height: `${high}px` });
    const text = (attributes, words) => svg("text", { class: "pe-tick", ...attributes }, words);
    // A drawing of its own shows nothing beyond its sides.
    const side = (k, from, to) => svg("svg", { "aria-hidden": "true", x: LEFT + from * wide, y: TOP, width: (to - from) * wide, height: high },
      svg("image", { class: "pe-pixels", href: hrefs[k], x: -from * wide, width: wide, height: high, preserveAspectRatio: "none" }));
    const path = (look, d, thick = 0) => svg("path", { class: look, d, style: `stroke-width: ${thick}`, transform: `translate(${LEFT} ${TOP}) scale(${wide / columns} ${high / rows})` });
    const at = LEFT + share * wide;
    // As thick as cells leave room for.
    const frame = clamp(1.5, Math.min(wide / columns, high / rows) / 3, 3);
    return [
      svg("rect", { class: "pe-blank", x: LEFT, y: TOP, width: wide, height: high }),
      side(0, 0, share), side(1, share, 1),
      ...(found() ? [path("pe-repair-kept", faded), path("pe-halo pe-repair-framed", framed, 2 * frame), path("pe-outline pe-repair-framed", framed, frame)] : []),
      svg("rect", { class: "pe-axis", x: LEFT, y: TOP, width: wide, height: high }),
      svg("path", { class: "pe-repair-edge", d: `M${at} ${TOP}V${TOP + high}` }),
      svg("path", { class: "pe-repair-knob", d: `M${at - 3} ${TOP + high / 2 - 6}l-8 6l8 6ZM${at + 3} ${TOP + high / 2 - 6}l8 6l-8 6Z` }),
      text({ class: "pe-tick pe-repair-broken", x: LEFT, y: TOP - 8 }, "✗ broken"),
      text({ class: "pe-tick pe-repair-mended", x: LEFT + wide, y: TOP - 8, "text-anchor": "end" }, "mended ✓"),
      ...[0, rows - 1].map((row) => text({ x: LEFT - 6, y: TOP + ((row + 0.5) * high) / rows + 4, "text-anchor": "end" }, first + row)),
      ...[0, columns - 1].map((column) => text({ x: LEFT + ((column + 0.5) * wide) / columns, y: TOP + high + 16, "text-anchor": "middle" }, column)),
      text({ x: LEFT + wide / 2, y: TOP + high + 33, "text-anchor": "middle" }, model.get("columns")),
      svg("text", { class: "pe-tick", "text-anchor": "middle", transform: `translate(12 ${TOP + high / 2}) rotate(-90)` }, model.get("rows")),
    ];
  });
  const buttons = lines.map(([line], k) => h("button", {
    type: "button", class: "pe-repair-line", "aria-pressed": "false",
    onclick: () => assign(model, "line", model.get("line") === k ? -1 : k) }, line));
  const { figure, say } = frame(el, `${title}, broken and mended`,
    h("div", { class: "pe-repair-parts" },
      h("div", { class: "pe-held" }, map.node, held.node),
      h("div", { class: "pe-repair-code", role: "group", "aria-label": "lines of the broken code" }, ...buttons)),
    h("p", { class: "pe-note" }, `Drag over the picture. ${legend(maps.flat())}.`));
  figure.classList.add("pe-repair");

  function show() {
    const line = model.get("line");
    buttons.forEach((button, k) => {
      button.setAttribute("aria-pressed", String(k === line));
      button.classList.toggle("pe-repair-blamed", k === line && lines[k][1]);
    });
    const words = said({ lines, cells, columns, wipe: model.get("wipe"), line });
    held.show(Math.round(model.get("wipe") * columns), 0, columns, words);
    map.redraw(`${title}. ${model.get("alt")}`);
    say(words);
  }
  model.on("change:wipe", show);
  model.on("change:line", show);
  show();
}

export default { render };
