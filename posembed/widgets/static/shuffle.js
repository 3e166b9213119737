// Figure 1: shuffle the words, and the outputs of a real attention layer move with them, until positions are added.
//
// The layer's logits and values are tables over its possible inputs: row `word` is the bare word vector, row
// `n + word * n + place` the word vector with that place's position row added. What softmax and the weighted sum make
// of them for an order is computed here.

function inputs(order, positions) {
  const n = order.length;
  return order.map((word, place) => (positions ? n + word * n + place : word));
}

function softmax(logits) {
  const top = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - top));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** The layer's output at each place: an array of places, each an array of channels. */
export function outputs(layer, order, positions, causal) {
  const rows = inputs(order, positions);
  return rows.map((query, place) => {
    const keys = causal ? rows.slice(0, place + 1) : rows;
    const out = [...layer.bias];
    layer.logits.forEach((logits, head) => {
      softmax(keys.map((key) => logits[query][key])).forEach((weight, k) => {
        layer.values[head][keys[k]].forEach((value, channel) => (out[channel] += weight * value));
      });
    });
    return out;
  });
}

const largest = (rows) => Math.max(...rows.flat().map(Math.abs));

/** How far each word's output is from its output in the first order, in units of the largest output. */
export function changes(layer, order, positions, causal) {
  const first = outputs(layer, order.map((_, place) => place), positions, causal);
  const now = outputs(layer, order, positions, causal);
  const scale = largest(first);
  const apart = (a, b) => Math.max(...a.map((value, channel) => Math.abs(value - b[channel]))) / scale;
  return { words: order.map((word, place) => apart(now[place], first[word])), mean: apart(mean(now), mean(first)) };
}

export function mean(rows) {
  return rows[0].map((_, channel) => rows.reduce((sum, row) => sum + row[channel], 0) / rows.length);
}

const percent = (share) => `${Math.round(100 * share)} %`;

function cells(node, values, scale) {
  node.replaceChildren(...values.map((value) => {
    const cell = h("span", { class: "pe-cell" });
    cell.style.background = signedColour(value / scale);
    return cell;
  }));
}

function verdict(node, change) {
  const same = change < 0.005;
  node.textContent = same ? "unchanged" : `changed ${percent(change)}`;
  node.classList.toggle("pe-changed", !same);
}

function render({ model, el }) {
  const words = model.get("words");
  const layer = model.get("layer");
  const start = words.map((_, place) => place);
  const setOrder = (order) => assign(model, "order", order);
  const moveWord = (word, to) => {
    const from = model.get("order").indexOf(word);
    if (to >= 0 && to < words.length && to !== from) setOrder(move(model.get("order"), from, to));
  };

  const columns = words.map((text, word) => {
    const button = h("button", { class: "pe-word", type: "button" }, text);
    const column = h("li", { class: "pe-column" }, button, h("div", { class: "pe-cells" }), h("span", { class: "pe-verdict" }));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      moveWord(word, model.get("order").indexOf(word) + step);
    });
    button.addEventListener("pointerdown", (event) => {
      button.setPointerCapture(event.pointerId);
      column.classList.add("pe-lifted");
    });
    button.addEventListener("pointermove", (event) => {
      if (!button.hasPointerCapture(event.pointerId)) return;
      const width = list.clientWidth / words.length;
      const to = Math.floor((event.clientX - list.getBoundingClientRect().left) / width);
      moveWord(word, Math.max(0, Math.min(words.length - 1, to)));
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"])
      button.addEventListener(end, () => column.classList.remove("pe-lifted"));
    return column;
  });
  const list = h("ol", { class: "pe-columns", "aria-label": "the words, in order" }, ...columns);
  const average = h("div", { class: "pe-average" }, h("span", {}, "mean of all outputs"), h("div", { class: "pe-cells" }), h("span", { class: "pe-verdict" }));
  const controls = h("div", { class: "pe-controls" },
    toggle(model, "positions", "add positions"),
    toggle(model, "causal", "causal mask"),
    h("button", { class: "pe-button", type: "button", onclick: () => setOrder(derange(model.get("order"))) }, "Shuffle"),
    h("button", { class: "pe-button", type: "button", onclick: () => setOrder(start) }, "First order"));
  const { say } = frame(el, "Shuffle the words of a sentence", controls, list, average);

  function show(node, values, change, scale) {
    cells(node.querySelector(".pe-cells"), values, scale);
    verdict(node.querySelector(".pe-verdict"), change);
  }

  function draw() {
    const [order, positions, causal] = ["order", "positions", "causal"].map((name) => model.get(name));
    const now = outputs(layer, order, positions, causal);
    const change = changes(layer, order, positions, causal);
    const scale = largest(now);
    order.forEach((word, place) => {
      show(columns[word], now[place], change.words[place], scale);
      columns[word].querySelector("button").setAttribute(
        "aria-label", `${words[word]}, place ${place + 1} of ${words.length}; the arrow keys move it`);
    });
    show(average, mean(now), change.mean, scale);
    const worst = Math.max(...change.words);
    const sentence = order.map((word) => words[word]).join(" ");
    say(worst < 0.005
      ? `“${sentence}”: each word has the output it had in the first order${order.every((w, k) => w === k) ? "." : "; the outputs moved with the words."}`
      : `“${sentence}”: outputs changed by up to ${percent(worst)} of the largest one.`);
  }

  model.on("change:order", () => { reorder(list, model.get("order").map((word) => columns[word])); draw(); });
  model.on("change:positions", draw);
  model.on("change:causal", draw);
  if (!model.get("order").every((word, place) => word === place)) list.append(...model.get("order").map((word) => columns[word]));
  draw();
}

/** A rotation by one and a swap: always another order, never far from what the reader can follow. */
export function derange(order) {
  const next = move(order, 0, order.length - 1);
  const k = Math.floor(Math.random() * (next.length - 1));
  return move(next, k, k + 1).every((word, place) => word === order[place]) ? next : move(next, k, k + 1);
}

export default { render };
