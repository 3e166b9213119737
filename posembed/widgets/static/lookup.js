// Figure 2: the one-hot row, the product and the table row meet; a gradient step changes the rows the batch used.

export const oneHot = (id, nRows) => Array.from({ length: nRows }, (_, row) => (row === id ? 1 : 0));

/** The row vector `weights` times the matrix `table`. */
export function product(weights, table) {
  return table[0].map((_, column) => weights.reduce((sum, weight, row) => sum + weight * table[row][column], 0));
}

/** The gradient of half the squared distance to the targets, summed over the batch: one row for each id in it. */
export function gradients(table, batch, targets, paddingIdx) {
  const rows = new Map();
  batch.forEach((id, k) => {
    if (id === paddingIdx) return;
    const pull = table[id].map((value, column) => value - targets[k][column]);
    rows.set(id, (rows.get(id) || pull.map(() => 0)).map((value, column) => value + pull[column]));
  });
  return rows;
}

/** The table after one step of gradient descent. */
export function step(table, batch, targets, learningRate, paddingIdx) {
  const rows = gradients(table, batch, targets, paddingIdx);
  return table.map((row, id) =>
    rows.has(id) ? row.map((value, column) => value - learningRate * rows.get(id)[column]) : row);
}

/** The row vector `weights` times the matrix `table`, as far as its first rows: what is summed so far. */
export const summedUp = (weights, table, nRows) => product(weights.map((weight, row) => (row < nRows ? weight : 0)), table);

const PAD = 0;
const shown = (value) => value.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "−");

/** The ids of the rows that differ in the numbers shown: late steps are too small to be seen. */
export const changed = (before, after) =>
  [...before.keys()].filter((id) => before[id].some((value, column) => shown(value) !== shown(after[id][column])));

function render({ model, el }) {
  const words = model.get("words");
  const [batch, targets] = [model.get("batch"), model.get("targets")];
  const first = model.get("table");
  const width = first[0].length;
  // How many rows are multiplied and summed; the last step shows the table itself again.
  const last = words.length + 1;
  const summed = () => model.get("summed");
  const whole = () => { if (summed() !== last) assign(model, "summed", last); };
  const paddingIdx = () => (model.get("padding") ? PAD : null);
  let touched = new Set();

  const cell = () => h("td", { class: "pe-number" });
  const rows = words.map((word, id) => {
    const pick = h("button", { class: "pe-pick", type: "button", onclick: () => assign(model, "selected", id) }, `${id} ${word}`);
    const mark = h("td", { class: "pe-mark" });
    const numbers = first[0].map(cell);
    const weight = h("td", { class: "pe-weight" });
    return { pick, weight, numbers, mark, row: h("tr", {}, h("th", { scope: "row" }, pick), weight, ...numbers, mark) };
  });
  rows.forEach(({ pick }, id) => pick.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by || !rows[id + by]) return;
    event.preventDefault();
    rows[id + by].pick.focus();
    assign(model, "selected", id + by);
  }));
  const result = first[0].map(cell);
  const table = h("table", { class: "pe-table" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "id"), h("th", { scope: "col" }, "one-hot"),
      h("th", { scope: "col", colspan: width }, "table"), h("th", { scope: "col" }, "step"))),
    h("tbody", {}, ...rows.map(({ row }) => row)),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row", colspan: 2 }, "product"), ...result, h("td", {}))));
  const controls = h("div", { class: "pe-controls" },
    h("button", { class: "pe-button", type: "button", onclick: takeStep }, "Take a gradient step"),
    h("button", { class: "pe-button", type: "button", onclick: reset }, "Start again"),
    toggle(model, "padding", "padding_idx=0"),
    player(model, "summed", "", () => range(0, last), { words: "The product, row by row" }));
  const sentence = h("p", { class: "pe-hint" }, `The batch: ${batch.map((id) => words[id]).join(" ")}`);
  const { say } = tries(frame(el, "Look up a row of an embedding table", controls, sentence, table),
    ["a step that changes the row of [PAD]", () => touched.has(PAD)],
    ["a step that changes other rows, and not that one", () => touched.size > 0 && !touched.has(PAD)]);

  function takeStep() {
    whole();
    const before = model.get("table");
    const reached = gradients(before, batch, targets, paddingIdx());
    const after = step(before, batch, targets, model.get("learning_rate"), paddingIdx());
    touched = new Set(changed(before, after));
    assign(model, "table", after);
    const named = (chosen) => words.filter((_, id) => chosen(id)).join(", ");
    const unseen = named((id) => reached.has(id) && !touched.has(id));
    say(`One step: ${touched.size} of ${words.length} rows changed.${unseen && ` Too little to be seen: ${unseen}.`} No gradient reached ${
      named((id) => !reached.has(id))}.`);
  }

  function reset() {
    whole();
    touched = new Set();
    assign(model, "table", first);
    say("The table is as it was at the start.");
  }

  function draw() {
    const [now, selected] = [model.get("table"), model.get("selected")];
    const weights = oneHot(selected, words.length);
    const running = summed() < last;
    const scale = Math.max(...now.flat().map(Math.abs));
    rows.forEach(({ pick, weight, numbers, mark, row }, id) => {
      pick.setAttribute("aria-pressed", String(id === selected));
      row.classList.toggle("pe-selected", id === selected);
      row.classList.toggle("pe-touched", touched.has(id));
      row.classList.toggle("pe-multiplied", running && id < summed());
      row.classList.toggle("pe-multiplying", id === summed() - 1);
      weight.textContent = weights[id];
      mark.replaceChildren(...(touched.has(id) ? [h("span", { "aria-hidden": "true" }, "●"), h("span", { class: "pe-hidden" }, "changed")] : ["–"]));
      fill(numbers, running && id < summed() ? now[id].map((value) => weights[id] * value) : now[id], scale);
    });
    fill(result, summedUp(weights, now, summed()), scale);
  }

  function fill(nodes, values, scale) {
    nodes.forEach((node, column) => {
      node.textContent = shown(values[column]);
      node.style.setProperty("--pe-tint", signedColour(values[column] / scale));
    });
  }

  function explainSum(n, id) {
    if (n === 0) return say("Each row is multiplied by its weight, and added to a sum that begins at zero.");
    if (n === words.length) return say(`All rows are multiplied and summed: what is left is row ${id}, “${words[id]}”.`);
    if (n === last) return explain(id);
    say(n - 1 === id
      ? `1 times row ${id}, “${words[id]}”: the row itself is added.`
      : `0 times row ${n - 1}, “${words[n - 1]}”: zeros are added. The sum is ${n > id ? `still row ${id}` : "still zero"}.`);
  }

  const explain = (id) =>
    say(`${words.length - 1} zeros and a one at place ${id}: the product is row ${id} of the table, “${words[id]}”.`);
  model.on("change:selected", () => { whole(); draw(); explain(model.get("selected")); });
  model.on("change:summed", () => { draw(); explainSum(summed(), model.get("selected")); });
  model.on("change:table", draw);
  model.on("change:padding", () => say(model.get("padding")
    ? "padding_idx=0: the row of [PAD] gets no gradient from now on."
    : "Without padding_idx, the row of [PAD] is trained like any other."));
  draw();
  explain(model.get("selected"));
}

export default { render };
