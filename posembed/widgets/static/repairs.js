// Figure 13: what broken code does, what mended code does, where they differ, and what a property finds.

const [STEPS, NOTHING] = [254, 255];
const VIEWS = [["broken", "broken"], ["mended", "mended"], ["difference", "where they differ"]];
const [LEFT, TOP, BOTTOM, HIGH] = [46, 8, 40, 260];

/** The numbers of a map, row after row; null where nothing came back. */
export const unpacked = (packed, most) =>
  [...atob(packed)].map((each) => each.charCodeAt(0)).map((step) => (step === NOTHING ? null : ((2 * step) / STEPS - 1) * most));

/** What is shown of a repair: a map, and what is said of it. */
export function seen({ broken, mended, most, finds, holds }, view) {
  const [before, after] = [broken, mended].map((packed) => unpacked(packed, most));
  if (view !== "difference") {
    return { values: view === "broken" ? before : after, most, verdict: view === "broken" ? `The property is violated: ${finds}` : `The property holds: ${holds}` };
  }
  // Where one of the two is nothing, all of the other is the difference.
  const values = before.map((value, k) => (value === null && after[k] === null ? null : (after[k] ?? 0) - (value ?? 0)));
  const changed = before.filter((value, k) => (value === null) !== (after[k] === null) || Math.abs((value ?? 0) - (after[k] ?? 0)) > (1.5 * most) / STEPS);
  const largest = Math.max(...values.filter((value) => value !== null).map(Math.abs)) || 1;
  return { values, most: largest, verdict: `${changed.length} of ${values.length} cells differ, by about 1/127 of the largest number or more.` };
}

/** A number of a map, which has 254 steps. */
export const about = (value, most) => (value === null ? "nothing" : `about ${short(value, clamp(0, 2 - Math.floor(Math.log10(most)), 4))}`);

function drawMap(width, repair, shown, at) {
  const [rows, columns] = repair.shape;
  const cell = Math.min((width - LEFT - 12) / columns, (HIGH - TOP - BOTTOM) / rows);
  const [wide, high] = [cell * columns, cell * rows];
  const text = (attributes, words) => svg("text", { class: "pe-tick", ...attributes }, words);
  const frame = (look, row, column, n, m) => svg("rect", { class: look, x: LEFT + column * cell, y: TOP + row * cell, width: n * cell, height: m * cell });
  return [
    frame("pe-blank", 0, 0, columns, rows),
    svg("image", { class: "pe-pixels", href: pixels(shown.values, repair.shape, shown.most), x: LEFT, y: TOP, width: wide, height: high, preserveAspectRatio: "none" }),
    frame("pe-axis", 0, 0, columns, rows),
    frame("pe-halo", at.row, at.column, 1, 1), frame("pe-outline", at.row, at.column, 1, 1),
    ...[0, rows - 1].map((row) => text({ x: LEFT - 6, y: TOP + (row + 0.5) * cell + 4, "text-anchor": "end" }, row)),
    ...[0, columns - 1].map((column) => text({ x: LEFT + (column + 0.5) * cell, y: TOP + high + 16, "text-anchor": "middle" }, column)),
    text({ x: LEFT + wide / 2, y: TOP + high + 33, "text-anchor": "middle" }, repair.columns),
    svg("text", { class: "pe-tick", "text-anchor": "middle", transform: `translate(12 ${TOP + high / 2}) rotate(-90)` }, repair.rows),
  ];
}

function render({ model, el }) {
  const repairs = model.get("repairs");
  const read = () => {
    const repair = repairs[model.get("repair")];
    const [row, column] = ["row", "column"].map((name, k) => Math.min(model.get(name), repair.shape[k] - 1));
    return { repair, view: model.get("view"), at: { row, column }, ...seen(repair, model.get("view")) };
  };
  let now = read();
  const map = drawing(HIGH, (width) => drawMap(width, now.repair, now, now.at));
  const point = (event) => {
    const box = map.node.querySelector(".pe-blank")?.getBoundingClientRect();
    if (!box || event.clientX < box.left || event.clientX >= box.right || event.clientY < box.top || event.clientY >= box.bottom) return;
    const [rows, columns] = now.repair.shape;
    const [row, column] = [Math.floor(((event.clientY - box.top) / box.height) * rows), Math.floor(((event.clientX - box.left) / box.width) * columns)];
    if (row !== now.at.row) assign(model, "row", row);
    if (column !== now.at.column) assign(model, "column", column);
  };
  for (const kind of ["pointerdown", "pointermove"]) map.node.addEventListener(kind, point);
  const verdict = h("p", { class: "pe-repair-verdict" });
  const value = h("p", { class: "pe-repair-value" });
  const cells = h("div", { class: "pe-controls pe-repair-cells" });
  const { figure, say } = frame(el, "Broken and mended",
    h("div", { class: "pe-controls" },
      choose(model, "repair", "exhibit", repairs.map(({ name }, k) => [k, name])),
      choose(model, "view", "code", VIEWS)),
    h("div", { class: "pe-repair-parts" }, h("div", {}, map.node), h("div", {}, verdict, value, cells)),
    h("p", { class: "pe-note" }, "Orange above zero, blue below, by one scale for both; grey: nothing came back."));
  figure.classList.add("pe-repair");
  // What it says stands beside the map.
  figure.lastChild.classList.add("pe-hidden");
  const steps = () => cells.replaceChildren(...now.repair.shape.map((n, k) => slider(model, ["row", "column"][k], ["row", "column"][k], range(0, n - 1))));

  function show() {
    now = read();
    const { repair, at, view, values, most } = now;
    verdict.textContent = now.verdict;
    verdict.dataset.view = view;
    const words = `${repair.rows} ${at.row}, ${repair.columns} ${at.column}: ${about(values[at.row * repair.shape[1] + at.column], most)}`;
    value.textContent = words;
    const what = VIEWS.find(([name]) => name === view)[1];
    map.redraw(`${repair.name}, ${what}: ${repair.shape.join(" by ")} cells. ${now.verdict}`);
    return `${repair.name}, ${what}. ${now.verdict} ${words}.`;
  }
  const tell = () => say(show());
  model.on("change:repair", () => {
    now = read();
    for (const name of ["row", "column"]) if (model.get(name) !== now.at[name]) assign(model, name, now.at[name]);
    steps();
    tell();
  });
  for (const name of ["view", "row", "column"]) model.on(`change:${name}`, tell);
  steps();
  tell();
}

export default { render };
