// Helpers that every figure uses. Concatenated in front of each figure's module, so nothing is imported.

/** Make an element: h("button", { class: "x", onclick: f }, "text", child). */
function h(tag, attributes, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** Make an element of a drawing: svg("circle", { r: 4 }). */
function svg(tag, attributes, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(node, attributes = {}, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** A labelled switch bound to a boolean of the model. */
function toggle(model, name, text) {
  const input = h("input", {
    type: "checkbox",
    role: "switch",
    onchange: () => assign(model, name, input.checked),
  });
  const show = () => (input.checked = model.get(name));
  model.on(`change:${name}`, show);
  show();
  return h("label", { class: "pe-toggle" }, input, h("span", {}, text));
}

/** A labelled slider bound to a value of the model, one of `values` in order; `words` writes a value as it is shown. */
function slider(model, name, text, values, words = String) {
  const input = h("input", { type: "range", min: 0, max: values.length - 1, step: 1 });
  const shown = h("span", { class: "pe-value", "aria-hidden": "true" });
  // Room for the longest value, so that the slider keeps its length.
  shown.style.minWidth = `${Math.max(...values.map((value) => words(value).length))}ch`;
  input.addEventListener("input", () => assign(model, name, values[input.value]));
  const show = () => {
    input.value = values.indexOf(model.get(name));
    shown.textContent = words(model.get(name));
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  model.on(`change:${name}`, show);
  show();
  return h("label", { class: "pe-slider" }, h("span", {}, text), input, shown);
}

// The player that runs, of all figures of a page: one at a time.
let playing = null;

/** A button that lets a value of the model run through `values()` in order, and stop at the last.
 *
 * It pauses where the reader takes the value in hand, starts another, or no longer sees the button. Frames of the page
 * count its time, so that a hidden page stands still. `between(value)` draws the way from a number to the next; who wants
 * no motion sees the steps alone. */
function player(model, name, text, values, { pace = 700, words = "", between = () => {} } = {}) {
  let [frame, since, own] = [0, null, false];
  const sign = svg("path", {});
  const button = h("button", { class: "pe-button pe-play", type: "button", onclick: () => (playing === pause ? pause() : play()) },
    svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, sign), words);
  // Whoever cannot see a figure run is not told of each step, but of the last.
  const status = () => button.closest(".pe-figure").querySelector("[role=status]");
  const away = new IntersectionObserver((seen) => seen.at(-1).isIntersecting || pause());
  function show() {
    const runs = playing === pause;
    button.setAttribute("aria-label", `${runs ? "pause" : "play"} ${words || text}`);
    sign.setAttribute("d", runs ? "M2.5 2h3.2v10H2.5zM8.3 2h3.2v10H8.3z" : "M3 1.5L12.5 7L3 12.5z");
  }
  const put = (value) => {
    own = true;
    assign(model, name, value);
    own = false;
  };
  function play() {
    playing?.();
    [playing, since] = [pause, null];
    if (model.get(name) === values().at(-1)) put(values()[0]);
    status().setAttribute("aria-live", "off");
    away.observe(button);
    frame = requestAnimationFrame(tick);
    show();
  }
  function pause() {
    if (playing !== pause) return;
    playing = null;
    cancelAnimationFrame(frame);
    away.disconnect();
    status().setAttribute("aria-live", "polite");
    // Where it stopped is drawn and told.
    between(model.get(name));
    status().replaceChildren(...status().childNodes);
    show();
  }
  function tick(time) {
    since ??= time;
    const [value, next] = [model.get(name), values()[values().indexOf(model.get(name)) + 1]];
    if (next === undefined || !button.checkVisibility({ visibilityProperty: true })) return pause();
    frame = requestAnimationFrame(tick);
    const share = (time - since) / pace;
    if (share < 1) return stillness() || between(value + share * (next - value));
    since = time;
    put(next);
  }
  model.on(`change:${name}`, () => own || pause());
  show();
  return button;
}

/** A slider whose value can also run by itself: see `slider` and `player`. */
const runner = (model, name, text, values, { words, ...play } = {}) =>
  h("div", { class: "pe-run" }, slider(model, name, text, values, words), player(model, name, text, () => values, play));

/** Something to take hold of: `drag(event, begins)` follows a pointer, `step(by)` a key, Home and End as far as it goes.
 *
 * It is a slider to those who do not see it; `show(value, low, high, words)` says where it stands. */
function grip(look, name, drag, step) {
  const node = h("div", { class: `pe-grip ${look}`, role: "slider", tabindex: 0, "aria-label": name });
  node.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    node.setPointerCapture(event.pointerId);
    drag(event, true);
  });
  node.addEventListener("pointermove", (event) => node.hasPointerCapture(event.pointerId) && drag(event, false));
  node.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step(by);
  });
  const show = (value, low, high, words) => furnish(node, {
    "aria-valuenow": value, "aria-valuemin": low, "aria-valuemax": high, "aria-valuetext": words }, []);
  return { node, show };
}

/** A number, kept between two others. */
const clamp = (low, value, high) => Math.max(low, Math.min(high, value));

/** A labelled choice bound to a value of the model; `options` are pairs of a value and its text. */
function choose(model, name, text, options) {
  const select = h("select", {}, ...options.map(([, words], k) => h("option", { value: k }, words)));
  select.addEventListener("change", () => assign(model, name, options[select.value][0]));
  const show = () => (select.value = options.findIndex(([value]) => value === model.get(name)));
  model.on(`change:${name}`, show);
  show();
  return h("label", { class: "pe-choice" }, h("span", {}, text), select);
}

/** Whole numbers from the first to the last, both included. */
const range = (first, last) => Array.from({ length: last - first + 1 }, (_, k) => first + k);

function assign(model, name, value) {
  model.set(name, value);
  model.save_changes();
}

/** The colour of a signed number between -1 and 1: blue below zero, orange above. */
function signedColour(value) {
  const share = Math.round(100 * Math.min(1, Math.abs(value)));
  return `color-mix(in oklab, var(${value < 0 ? "--pe-negative" : "--pe-positive"}) ${share}%, var(--pe-zero))`;
}

/** The address of a picture with a pixel for each number: the clearer, the nearer to zero; grey for nothing. */
function pixels(values, [rows, columns], most) {
  const canvas = h("canvas", { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  values.forEach((value, k) => image.data.set(value === null ? [138, 145, 153, 230] : [...(value < 0 ? BELOW : ABOVE), (255 * Math.abs(value)) / most], 4 * k));
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

/** How a scheme is drawn: the class of its colour, its dashes, and the outline of its mark; one without a look of its own
 * as the k-th of other series. */
function lookOf(scheme, k = 0) {
  const { dash, mark } = LOOKS[scheme] ?? { dash: ["none", "7 3", "2 3", "9 3 2 3", "14 3"][k % 5], mark: "M-.8 -.8H.8V.8H-.8Z" };
  return {
    colour: scheme in LOOKS ? `pe-scheme-${scheme}` : `pe-series-${k % 5}`,
    dash,
    mark: (radius) => mark.replace(/-?[\d.]+/g, (number) => Number((number * radius).toFixed(2))),
  };
}

/** The line and mark of a series, for a list beside the chart. */
const legendLine = (...parts) => svg("svg", { class: "pe-swatch", viewBox: "-13 -7 26 14", "aria-hidden": "true" }, ...parts);

/** A list with a value, or without it if it is there. */
const flip = (list, value) => (list.includes(value) ? list.filter((each) => each !== value) : [...list, value]);

/** The frame of a figure: its parts and a line that screen readers announce when it changes. */
function frame(el, label, ...parts) {
  const status = h("p", { class: "pe-status", role: "status", "aria-live": "polite" });
  const figure = h("div", { class: "pe-figure", role: "group", "aria-label": label }, ...parts, status);
  // JupyterLab takes the arrow keys for itself while a cell is selected, and the letters that pick in a select.
  figure.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow") || event.target.matches("select, input")) event.stopPropagation();
  });
  el.classList.add("posembed-root");
  el.replaceChildren(figure);
  // What is seen elsewhere is only told.
  const say = (text, told = "") => {
    if (status.textContent !== text + told) status.replaceChildren(text, ...(told && [h("span", { class: "pe-hidden" }, told)]));
  };
  return { figure, say };
}

/** A frame with things to try below it, each ticked the first time that what is said has reached it.
 *
 * A task is its words, a test, and what does it where a press shall. A tick is told once, behind what the figure says,
 * and kept in the page alone. */
function tries({ figure, say: tell }, ...tasks) {
  const items = tasks.map(([words, reached, act]) => ({ words, reached, node: h("li", {}, act ? h("button", { type: "button", onclick: act }, words) : words) }));
  if (items.length) figure.append(h("div", { class: "pe-try" }, h("span", {}, "Try:"), h("ul", { role: "list" }, ...items.map(({ node }) => node))));
  const say = (text) => {
    const now = items.filter(({ node, reached }) => !node.matches(".pe-done") && reached());
    for (const { node } of now) {
      node.classList.add("pe-done");
      node.prepend(h("span", { class: "pe-hidden" }, "Done: "));
    }
    tell(text, now.map(({ words }) => ` Done: ${words}.`).join(""));
  };
  return { figure, say };
}

/** A drawing as wide as its place: `draw(width)` returns its parts, in pixels, again whenever the width changes.
 *
 * Returns the node and `redraw(label)`, which draws it anew under a text for those who do not see it. */
function drawing(height, draw) {
  const node = svg("svg", { class: "pe-drawing", role: "img", height, "aria-label": "" });
  let width = 0;
  const paint = () => {
    node.setAttribute("viewBox", `0 0 ${width} ${height}`);
    node.replaceChildren(...draw(width));
  };
  new ResizeObserver(() => {
    if (!node.clientWidth || node.clientWidth === width) return;
    width = node.clientWidth;
    paint();
  }).observe(node);
  return {
    node,
    redraw(label) {
      node.setAttribute("aria-label", label);
      if (width) paint();
    },
  };
}

/** The axes of a chart: x and y, which say where a value stands, and their lines, ticks and names as `parts`.
 *
 * An axis is { from, to, ticks, name, log, words }; the chart fills width by height up to its margins. */
function axes(width, height, xAxis, yAxis, left = 44, gap = 12) {
  const [right, top, bottom] = [width - gap, 26, height - 40];
  const [x, y] = [scale(xAxis, left, right), scale(yAxis, bottom, top)];
  const text = (attributes, words) => svg("text", { class: "pe-tick", ...attributes }, words);
  return {
    x, y,
    parts: [
      ...yAxis.ticks.map((value) => svg("line", { class: "pe-grid", x1: left, x2: right, y1: y(value), y2: y(value) })),
      ...xAxis.ticks.map((value) => svg("line", { class: "pe-grid", x1: x(value), x2: x(value), y1: top, y2: bottom })),
      svg("path", { class: "pe-axis", d: `M${left} ${top}V${bottom}H${right}` }),
      ...yAxis.ticks.map((value) => text({ x: left - 6, y: y(value) + 4, "text-anchor": "end" }, (yAxis.words || signed)(value))),
      ...xAxis.ticks.map((value) => text({ x: x(value), y: bottom + 17, "text-anchor": "middle" }, (xAxis.words || signed)(value))),
      text({ x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, xAxis.name),
      text({ x: 2, y: 13 }, yAxis.name),
    ],
  };
}

/** Round numbers between two bounds, about four of them. */
function ticks(from, to) {
  const rough = (to - from) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough * (1 - 1e-9));
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const inside = range(Math.ceil(from / step - 1e-9), Math.floor(to / step + 1e-9));
  return inside.map((each) => ({ value: each * step, words: signed((each * step).toFixed(places).replace(/^-(0\.?0*)$/, "$1")) }));
}

/** Let a pointer over a chart choose a place: a share of the way along its horizontal axis. */
function pointable(node, choosePlace) {
  const at = (event) => {
    const axis = node.querySelector(".pe-axis")?.getBoundingClientRect();
    if (axis) choosePlace(clamp(0, (event.clientX - axis.left) / axis.width, 1));
  };
  for (const kind of ["pointerdown", "pointermove"]) node.addEventListener(kind, at);
}

/** Where a value stands between `start` and `end`, on a linear or logarithmic axis. */
function scale({ from, to, log }, start, end) {
  const share = log
    ? (value) => Math.log(value / from) / Math.log(to / from)
    : (value) => (value - from) / (to - from);
  return (value) => start + share(value) * (end - start);
}

/** A line through points, as the `d` of a path. */
const lineThrough = (points) => `M${points.map(([x, y]) => `${x.toFixed(2)} ${y.toFixed(2)}`).join("L")}`;

/** A number as axes and tables have it: 0.79, 1.00, −0.51; never minus zero. */
const short = (value, decimals = 2) =>
  (Number(value.toFixed(decimals)) || 0).toFixed(decimals).replace("-", "−");

/** A number with a real minus sign. */
const signed = (value) => String(value).replace("-", "−");

/** A whole number with its thousands apart. */
const grouped = (value) => signed(value).replace(/\B(?=(\d{3})+$)/g, ",");

/** The size of a rounding error, such as 3e−14. */
const tiny = (value) => (value ? signed(value.toExponential(0)) : "0");

/** The angle by which each pair of columns turns from one position to the next: base^(-2i / width) for pair i. */
const frequencies = (width, base) => range(0, width / 2 - 1).map((pair) => base ** ((-2 * pair) / width));

const stillness = () =>
  typeof matchMedia !== "undefined" && matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Re-order the children of a parent; each glides from its old place to the new one.
 *
 * The child that is being dragged, or else has the focus, stays in the document and the others move around it: an element
 * that is taken out loses the pointer, which cannot be given back, and the focus. */
function reorder(parent, children) {
  const before = children.map((child) => child.getBoundingClientRect());
  const focused = document.activeElement;
  const anchor = children.find((child) => child.matches(".pe-lifted")) || children.find((child) => child.contains(focused));
  const split = children.indexOf(anchor);
  if (anchor) anchor.before(...children.slice(0, split));
  parent.append(...children.slice(split + 1));
  if (parent.contains(focused)) focused.focus({ preventScroll: true });
  if (stillness()) return;
  children.forEach((child, k) => {
    const after = child.getBoundingClientRect();
    const [dx, dy] = [before[k].left - after.left, before[k].top - after.top];
    if (dx || dy) child.animate([{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }], 160);
  });
}

function move(list, from, to) {
  const copy = [...list];
  copy.splice(to, 0, ...copy.splice(from, 1));
  return copy;
}
