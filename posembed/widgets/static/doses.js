// Figure 11: a bias that violates one property by a dose, its three numbers, and what the dose cost on each task.
//
// All numbers come from the package; the module chooses among them and draws.

/** A bias in rows again. */
export function unpack({ by_offset: byOffset, values }) {
  if (!byOffset) return values;
  const n = (values.length + 1) / 2;
  return range(0, n - 1).map((row) => range(0, n - 1).map((column) => values[n - 1 + column - row]));
}

/** What a dose cost on a task, in a sentence. */
export function costs({ name, right, lost }, violated, k) {
  const [none, now] = [right[violated][0][0], right[violated][k][0]];
  if (!k) return `${name}: ${short(none)} right without a dose`;
  const [mean, low, high] = lost[violated][k - 1];
  return `${name}: ${short(none)} right without a dose, ${short(now)} with it; difference ${short(mean)} (${short(low)} to ${short(high)})`;
}

const [SIDE, HEIGHT] = [220, 150];
const [LEFT, TOP] = [40, 22];

/** The address of a picture with a pixel for each value: the clearer, the nearer to zero. */
function picture(rows) {
  const canvas = h("canvas", { width: rows.length, height: rows.length });
  const context = canvas.getContext("2d");
  const image = context.createImageData(rows.length, rows.length);
  const least = Math.min(...rows.flat());
  rows.flat().forEach((value, k) => image.data.set([...BELOW, (255 * value) / least], 4 * k));
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

/** The bias as a map, with the query's row framed. */
function drawMap(width, rows, query) {
  const side = Math.min(SIDE, width - LEFT - 12);
  const cell = side / rows.length;
  const text = (attributes, words) => svg("text", { class: "pe-tick", ...attributes }, words);
  return [
    svg("rect", { class: "pe-dose-blank", x: LEFT, y: TOP, width: side, height: side }),
    svg("image", { class: "pe-dose-pixels", href: picture(rows), x: LEFT, y: TOP, width: side, height: side, preserveAspectRatio: "none" }),
    svg("rect", { class: "pe-dose-row", x: LEFT, y: TOP + cell * query, width: side, height: cell }),
    ...[0, query, rows.length - 1].map((place) => text({ x: LEFT - 5, y: TOP + cell * (place + 0.5) + 4, "text-anchor": "end" }, place)).filter((_, k) => k === 1 || Math.abs(query - [0, 0, rows.length - 1][k]) > 2),
    text({ x: LEFT + side / 2, y: TOP + side + 18, "text-anchor": "middle" }, "key position"),
    text({ x: 2, y: 10 }, "query"),
  ];
}

/** The query's row against the offset, and that of no dose. */
function drawRow(width, rows, undosed, query) {
  const least = Math.min(...rows.flat(), ...undosed.flat());
  const last = rows.length - 1;
  const { x, y, parts } = axes(width, HEIGHT,
    { from: -query, to: last - query, ticks: [-query, 0, last - query].filter((each, k, all) => all.indexOf(each) === k), name: "offset of the key" },
    { from: least, to: 0, ticks: [Math.round(least), 0], name: "bias" });
  const line = (look, values) => svg("path", { class: look, d: lineThrough(values.map((value, key) => [x(key - query), y(value)])) });
  return [...parts, line("pe-dose-undosed", undosed[query]), line("pe-dose-line", rows[query])];
}

/** The share of right answers against the dose: seeds, interval, mean, and the guess of a constant. */
function drawTask(width, task, doses, violated, k) {
  const of = task.right[violated];
  const { x, y, parts } = axes(width, HEIGHT,
    { from: 0, to: doses.at(-1), ticks: doses, name: "degrees" },
    { from: 0, to: 1, ticks: [0, 0.5, 1], name: `${task.name}: right answers` });
  const at = (value) => y(Math.max(0, Math.min(1, value)));
  const path = (look, points) => svg("path", { class: look, d: lineThrough(points) });
  const band = [...of.map(([, low], each) => [x(doses[each]), at(low)]), ...of.map(([, , high], each) => [x(doses[each]), at(high)]).reverse()];
  return [
    ...parts,
    path("pe-dose-guess", [[x(0), y(task.guess)], [x(doses.at(-1)), y(task.guess)]]),
    path("pe-dose-chosen", [[x(doses[k]), y(0)], [x(doses[k]), y(1)]]),
    path("pe-dose-band", band),
    ...of.flatMap(([, , , ...seeds], each) => seeds.map((seed) => svg("circle", { class: "pe-dose-seed", cx: x(doses[each]), cy: y(seed), r: 2.5 }))),
    path("pe-dose-line", of.map(([mean], each) => [x(doses[each]), y(mean)])),
    svg("circle", { class: "pe-dose-mark", cx: x(doses[k]), cy: y(of[k][0]), r: 5 }),
  ];
}

function render({ model, el }) {
  const [names, doses, biases, tasks] = [model.get("names"), model.get("doses"), model.get("biases"), model.get("tasks")];
  const undosed = unpack(biases.symmetry[0]);
  const read = () => {
    const [violated, dose, query] = [model.get("violated"), model.get("dose"), model.get("query")];
    const k = doses.indexOf(dose);
    const bias = biases[violated][k];
    return { violated, dose, query, k, numbers: bias.numbers, rows: unpack(bias) };
  };
  let now = read();
  const map = drawing(SIDE + TOP + 26, (width) => drawMap(width, now.rows, now.query));
  const row = drawing(HEIGHT, (width) => drawRow(width, now.rows, undosed, now.query));
  const numbers = Object.keys(names).map((name) => h("li", { "data-property": name }));
  const charts = tasks.map((task) => {
    const [chart, words] = [drawing(HEIGHT, (width) => drawTask(width, task, doses, now.violated, now.k)), h("p", { class: "pe-dose-words" })];
    return { task, chart, words, node: h("div", { class: "pe-dose-task" }, chart.node, words) };
  });
  const { figure, say } = frame(el, "A dose of one property",
    h("div", { class: "pe-controls" },
      choose(model, "violated", "violated", Object.entries(names)),
      slider(model, "dose", "dose", doses, (degrees) => (degrees ? `${degrees}°` : "none")),
      slider(model, "query", "query", range(0, undosed.length - 1))),
    h("div", { class: "pe-dose-parts" },
      h("div", {}, map.node, h("ul", { class: "pe-dose-numbers", "aria-label": "its three numbers" }, ...numbers), row.node),
      h("div", { class: "pe-dose-tasks" }, ...charts.map((each) => each.node))),
    h("p", { class: "pe-note" }, "Dots: one seed each. Band: the 95\u00a0% interval of their mean. Dashed: a constant guess. Thin line in the row: no dose."));
  // What it says stands beside each chart.
  figure.classList.add("pe-dose");
  figure.lastChild.classList.add("pe-hidden");

  function show() {
    now = read();
    const { violated, dose, query, k } = now;
    const words = dose ? `${names[violated]} violated by ${dose} degrees` : "no dose";
    map.redraw(`The bias, ${words}, 32 by 32 positions; the row of query ${query} is framed`);
    row.redraw(`The row of query ${query} against the offset, and that of no dose`);
    for (const line of numbers) {
      const name = line.dataset.property;
      line.textContent = `${names[name]} ${now.numbers[name].toFixed(3)}`;
      line.classList.toggle("pe-dose-violated", Boolean(dose) && name === violated);
    }
    for (const { task, chart, words: place } of charts) {
      place.textContent = costs(task, violated, k);
      chart.redraw(`Right answers on ${task.name} against the dose. ${costs(task, violated, k)}`);
    }
    const ends = [now.rows[query][0], now.rows[query].at(-1)].map((value) => value.toFixed(1).replace("-", "−"));
    const asked = `Query ${query}: bias ${ends[0]} at key 0, ${ends[1]} at key ${now.rows.length - 1}`;
    return `${words[0].toUpperCase()}${words.slice(1)}. ${tasks.map((task) => costs(task, violated, k)).join(". ")}. ${asked}.`;
  }

  const tell = () => say(show());
  model.on("change:violated", tell);
  model.on("change:dose", tell);
  model.on("change:query", tell);
  tell();
}

export default { render };
