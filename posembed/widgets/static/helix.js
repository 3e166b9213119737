// Figure 15: the rows of a table as points in space, which the reader turns about the upright axis.

const [HIGH, EDGE, DEGREES] = [300, 24, range(0, 180).map((k) => 2 * k)];

/** A point that is turned: how far it stands across, up, and towards the reader. */
export function turned([a, b, c], degrees) {
  const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return [a * cos + c * sin, b, c * cos - a * sin];
}

/** Whether it is seen along an axis, 0 from the front and 90 from the side, or nearly so. */
export const along = (degrees, axis) => Math.abs(((degrees - axis + 90) % 180) - 90) <= 6;

/** What lies across. */
export const said = (degrees) =>
  `Turned by ${degrees}°: ${along(degrees, 0) ? "component 1" : along(degrees, 90) ? "component 3" : "components 1 and 3"} across, component 2 up.`;

/** Axes, and the rows from the farthest to the nearest, each with the line from the one before. */
function draw(width, { points, positions }, degrees) {
  const [wide, high] = [points.map(([a, , c]) => Math.hypot(a, c)), points.map(([, b]) => Math.abs(b))].map((all) => Math.max(...all) || 1);
  const size = Math.min((width / 2 - EDGE) / wide, (HIGH / 2 - EDGE) / high);
  const place = (point) => {
    const [across, up, near] = turned(point, degrees);
    return { x: width / 2 + size * across, y: HIGH / 2 - size * up, near };
  };
  const line = (look, from, to, rest) => svg("line", { class: look, x1: from.x, y1: from.y, x2: to.x, y2: to.y, ...rest });
  const word = (x, y, text, anchor) => svg("text", { class: "pe-tick pe-helix-word", x, y, "text-anchor": anchor }, text);
  const axes = [wide, high, wide].map((length, k) => [length, -length].map((end) => place([0, 1, 2].map((each) => (each === k ? end : 0)))));
  const places = points.map(place);
  const order = [...points.keys()].sort((a, b) => places[a].near - places[b].near);
  const colour = (k) => `--pe-series: color-mix(in oklab, var(--pe-warm) ${Math.round((100 * k) / (points.length - 1))}%, var(--pe-accent))`;
  return [
    ...axes.map(([to, from]) => line("pe-grid", from, to)),
    ...order.flatMap((k) => [
      ...(k ? [line("pe-helix-line", places[k - 1], places[k], { style: colour(k) })] : []),
      svg("circle", { class: "pe-point", style: colour(k), cx: places[k].x, cy: places[k].y, r: 4 + 1.5 * places[k].near }),
    ]),
    ...axes.map(([{ x, y }], k) => word(x, k === 1 ? y - 8 : y + 15, k + 1, "middle")),
    ...[places[0], places.at(-1)].map(({ x, y }, k) => word(x, y - 8, positions.at(-k), k ? "end" : "start")),
  ];
}

function render({ model, el }) {
  const [title, points, positions] = ["title", "points", "positions"].map((name) => model.get(name));
  const put = (degrees) => assign(model, "turn", 2 * Math.round(degrees / 2));
  let from;
  const held = grip("pe-helix-held", "turn", ({ clientX }, begins) => {
    if (begins) from = { clientX, turn: model.get("turn") };
    // Round and round, half a degree for each pixel.
    put((((from.turn + (clientX - from.clientX) / 2) % 360) + 360) % 360);
  }, (by) => put(clamp(0, model.get("turn") + 6 * by, 360)));
  let now = model.get("turn");
  const space = drawing(HIGH, (width) => draw(width, { points, positions }, now));
  const label = `${title}, ${points.length} points from position ${positions[0]} to ${positions.at(-1)} on three axes`;
  const turnTo = (degrees) => {
    now = degrees;
    space.redraw(label);
  };
  const { say } = tries(frame(el, title,
    h("div", { class: "pe-controls" },
      player(model, "turn", "", () => DEGREES, { pace: 60, words: "A full turn", between: turnTo }),
      h("span", { class: "pe-note" }, "Drag it, or use the arrow keys.")),
    h("div", { class: "pe-held" }, space.node, held.node)),
  ["components 1 and 2 alone", () => along(model.get("turn"), 0)], ["components 2 and 3 alone", () => along(model.get("turn"), 90)]);

  function show() {
    const words = said(model.get("turn"));
    held.show(model.get("turn"), 0, 360, words);
    turnTo(model.get("turn"));
    say(words);
  }
  model.on("change:turn", show);
  show();
}

export default { render };
