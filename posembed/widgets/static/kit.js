// Helpers that every figure uses. Concatenated in front of each figure's module, so nothing is imported.

/** Make an element: h("button", { class: "x", onclick: f }, "text", child). */
function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
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

function assign(model, name, value) {
  model.set(name, value);
  model.save_changes();
}

/** The colour of a signed number between -1 and 1: blue below zero, orange above. */
function signedColour(value) {
  const share = Math.round(100 * Math.min(1, Math.abs(value)));
  return `color-mix(in oklab, var(${value < 0 ? "--pe-negative" : "--pe-positive"}) ${share}%, var(--pe-zero))`;
}

/** The frame of a figure: its parts and a line that screen readers announce when it changes. */
function frame(el, label, ...parts) {
  const status = h("p", { class: "pe-status", role: "status", "aria-live": "polite" });
  const figure = h("div", { class: "pe-figure", role: "group", "aria-label": label }, ...parts, status);
  // JupyterLab takes the arrow keys for itself while a cell is selected: keep them in the figure.
  figure.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow")) event.stopPropagation();
  });
  el.classList.add("posembed-root");
  el.replaceChildren(figure);
  return { figure, say: (text) => { if (status.textContent !== text) status.textContent = text; } };
}

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
