// Figure 14: type, move words, change positions, and see what two trained models say. `transformer.js` runs them here.

const [MOST, LIKELY, MASK] = [64, 5, 1];
const SIDES = ["left", "right"];
const CHANGES = [
  ["trained", "0, 1, 2, …: as trained"], ["stretched", "0, 2, 4, …: stretched"],
  ["repeated", "0, 0, 1, …: two share one"], ["gap", "a gap in the middle"], ["shifted", "shifted"], ["zeroed", "none: taken away"],
];
const SCHEMES = { nopos: "No positions", learned: "Learned table", alibi: "ALiBi", rope: "RoPE" };

const labelOf = ({ scheme, causal }) => `${SCHEMES[scheme]}${causal ? "" : ", masked"}`;

/** The positions of n characters; null for none at all. */
export const positionsOf = (change, n, by) =>
  change === "zeroed" ? null : range(0, n - 1).map((k) => ({ trained: k, stretched: 2 * k, repeated: Math.floor(k / 2), gap: k < n / 2 ? k : k + by, shifted: k + by })[change]);

/** By place how many of the keys, from the first on, stand where no text of the training had one: so far back, or with a
 * table all of them, where the place has no trained row. The last of 64 characters was only ever guessed. */
export function untrained(scheme, positions) {
  const far = MOST - 1;
  const keys = { nopos: () => 0, learned: (own, place) => (own < far ? 0 : place + 1) };
  return (positions ?? []).map(keys[scheme] ?? ((own) => positions.filter((other) => own - other >= far).length));
}

/** The token of each character; 0 for one that the models do not know. */
export const encoded = (characters, text) => [...text].map((each) => Math.max(0, characters.indexOf(each)));

/** What a model says of a text: the loss of each place, the chances at place `at`, and which row of its attention made them.
 *
 * A causal model guesses a place from the one before. From a masked one the place is hidden; for its losses each is in
 * turn, which takes a while: it says first what it has at once. */
export function* studied(model, ids, { change, by, causal, at }, last) {
  const n_words = model.weights.words.length / (model.weights.norm.length / 2);
  const lossAt = (logits, place, id) => -Math.log(chances(logits, place, n_words)[id]);
  if (model.causal) {
    const read = run(model, ids, positionsOf(change, ids.length, by), causal, last?.read);
    const losses = ids.map((id, place) => (place ? lossAt(read.logits, place - 1, id) : null));
    yield { read, losses, guess: at ? chances(read.logits, at - 1, n_words) : null, row: at - 1 };
    return;
  }
  const key = JSON.stringify([ids, change, by]);
  const hidden = (text, isHidden) => run(model, text.map((id, k) => (isHidden(k) ? MASK : id)), positionsOf(change, text.length, by), false);
  const read = hidden(at < ids.length ? ids : [...ids, MASK], (k) => k === at);
  const found = { key, read, losses: last?.key === key ? last.losses : ids.map(() => null), guess: chances(read.logits, at, n_words), row: at };
  yield found;
  if (last?.key === key) return;
  const losses = new Map();
  // Without positions a character is guessed alike wherever it stands.
  const keyOf = (place) => (model.scheme === "nopos" || change === "zeroed" ? ids[place] : -place);
  for (const place of ids.keys()) {
    if (losses.has(keyOf(place))) continue;
    losses.set(keyOf(place), lossAt(hidden(ids, (k) => k === place).logits, place, ids[place]));
    yield found;
  }
  yield { ...found, losses: [...ids.keys()].map((place) => losses.get(keyOf(place))) };
}

/** The mean of the losses that there are. */
export function meanOf(losses) {
  const own = losses.filter((loss) => loss !== null);
  return own.length ? own.reduce((sum, loss) => sum + loss, 0) / own.length : null;
}

/** The likeliest characters with their chances. */
export const likeliest = (guess, characters) =>
  [...guess.keys()].sort((a, b) => guess[b] - guess[a]).slice(0, LIKELY).map((id) => [characters[id], guess[id]]);

/** A character as it is shown: a blank, what is hidden and what is unknown have signs. */
const shownAs = (character) => ({ " ": "␣", "\n": "↵" })[character] ?? character;

/** A result that came with the page, for the first text alone. */
const stored = ({ attention, ...said }) => ({ ...said, shares: [...atob(attention)].map((each) => each.charCodeAt(0) / 255) });

/** The weights of a model, once for a page: from the kernel where there is one, else from a script of the book. */
function fetched(model, name) {
  const known = (globalThis.posembedUnpacked ??= {});
  // One that did not come is asked for again.
  const lost = (error) => {
    delete known[name];
    throw error;
  };
  return (known[name] ??= (model.send ? asked(model, name) : loaded(name)).then(unpacked).catch(lost));
}

const asked = (model, name) => new Promise((done) => {
  const heard = ({ model: its, file }) => {
    if (its !== name) return;
    model.off("msg:custom", heard);
    done(file);
  };
  model.on("msg:custom", heard);
  model.send({ wanted: name });
});

const loaded = (name) => new Promise((done, fail) => {
  const src = `${document.documentElement.dataset.content_root ?? ""}_static/models/${name}.js`;
  const script = Object.assign(document.createElement("script"), { src, charset: "utf-8", onerror: fail, onload: () => done(globalThis.posembedModels[name]) });
  document.head.append(script);
});

const rest = () => new Promise((done) => setTimeout(done));

/** The attention of a head as a square: rows ask, columns are seen; the row that made the guess is framed. */
function drawMap(width, high, { shares, n, row, fresh, sign }) {
  const side = Math.min(width, high);
  const cell = side / n;
  const left = (width - side) / 2;
  return [
    svg("rect", { class: "pe-blank", x: left, y: 0, width: side, height: side }),
    // The root: small shares are seen too. The colours of both sides are those of signed numbers.
    svg("image", { class: "pe-pixels", href: pixels([...shares].map((share) => sign * Math.sqrt(share)), [n, n], 1), x: left, y: 0, width: side, height: side, preserveAspectRatio: "none" }),
    svg("path", { class: "pe-models-fresh", d: fresh.map((keys, k) => (keys ? `M${left} ${k * cell}h${keys * cell}v${cell}h${-keys * cell}z` : "")).join("") }),
    ...(row < 0 ? [] : ["pe-halo", "pe-outline"].map((look) => svg("rect", { class: look, x: left, y: row * cell, width: side, height: cell }))),
  ];
}

/** Both models' losses, place after place, under their names. */
function drawLosses(width, high, both, names, at, n) {
  const most = Math.max(6, ...both.flatMap(({ losses }) => losses.map((loss) => Math.ceil(loss ?? 0))));
  const chart = axes(width, high, { from: 0, to: Math.max(n, 1), ticks: range(0, 6).map((k) => 10 * k).filter((k) => k <= n), name: "place" },
    { from: 0, to: most, ticks: ticks(0, most).map(({ value }) => value), name: "loss, nats" }, 26);
  const lines = both.map(({ losses }, k) => {
    const points = losses.flatMap((loss, place) => (loss === null ? [] : [[chart.x(place), chart.y(loss)]]));
    return points.length ? svg("path", { class: `pe-curve ${k ? "pe-second" : ""}`, d: lineThrough(points) }) : "";
  });
  const titles = svg("text", { class: "pe-tick", x: width - 12, y: 13, "text-anchor": "end" },
    ...names.map((name, k) => svg("tspan", { class: `pe-models-name-${k}`, dx: k ? 14 : 0 }, name)));
  return [...chart.parts, titles, svg("line", { class: "pe-cursor", x1: chart.x(at), x2: chart.x(at), y1: 26, y2: high - 40 }), ...lines];
}

function pane(model, side, characters) {
  const names = model.get("models");
  const picked = choose(model, side, "", names.map((each) => [each.name, labelOf(each)]));
  picked.firstChild.replaceWith(h("span", { class: "pe-hidden" }, `${side} model`));
  const [loss, likely] = [h("p", { class: "pe-models-loss" }), h("ul", { class: "pe-models-next", role: "list" })];
  const text = h("p", { class: "pe-models-text", "aria-hidden": "true" });
  text.addEventListener("pointerdown", ({ target }) => target.dataset.letter && assign(model, "at", Number(target.dataset.letter)));
  let square = null;
  const map = drawing(168, (width) => (square ? drawMap(width, 168, square) : []));
  const news = h("p", { class: "pe-models-news" });
  const node = h("section", { class: `pe-models-pane pe-models-${side}`, "aria-label": `${side} model` }, picked, loss, text,
    h("div", { class: "pe-models-parts" }, h("div", {}, likely), h("div", { class: "pe-models-map" }, map.node, news)));

  function show({ losses, next, shares, row }, { ids, at, layer, head }) {
    const mean = meanOf(losses);
    loss.replaceChildren("loss ", h("strong", {}, mean === null ? "…" : short(mean)), " nats");
    text.replaceChildren(...[...ids, null].map((id, k) => {
      const letter = h("span", { "data-letter": k, class: k === at ? "pe-models-at" : "" }, id === null ? " " : characters[id]);
      if (losses[k] != null) letter.style.background = `color-mix(in oklab, var(--pe-models-hue) ${Math.round(clamp(0, 9 * losses[k], 55))}%, transparent)`;
      return letter;
    }));
    likely.replaceChildren(...next.map(([character, chance]) => {
      const isTrue = at < ids.length && characters[ids[at]] === character;
      const bar = h("span", { class: "pe-models-bar" });
      bar.style.width = `${Math.round(100 * chance)}%`;
      return h("li", { class: isTrue ? "pe-models-true" : "" }, h("b", {}, shownAs(character)), h("span", { class: "pe-models-track" }, bar), h("span", {}, short(chance)));
    }));
    const [own, n] = [names.find(({ name }) => name === model.get(side)), Math.sqrt(shares.length)];
    const fresh = own.causal && model.get("causal") ? untrained(own.scheme, positionsOf(model.get("change"), n, model.get("by"))) : [];
    const seen = shares.slice(row * n, row * n + (fresh[row] ?? 0)).reduce((sum, each) => sum + each, 0);
    square = { shares, n, row, fresh, sign: side === "left" ? -1 : 1 };
    // With a table it is the asking place that has no trained row.
    const found = own.scheme === "learned" ? ` stands at ${fresh[row] ? "an untrained" : "a trained"} position` : `’s attention: ${Math.round(100 * seen)} % on untrained distances`;
    news.textContent = row >= 0 && fresh.some((keys) => keys) ? `The framed character${found}` : "";
    map.redraw(`${labelOf(own)}, layer ${layer}, head ${head}: attention of each place to each other`);
  }
  return { node, show };
}

/** The words as buttons that a pointer drags and the arrow keys move. */
function wordsOf(model, list) {
  const words = () => model.get("text").split(" ");
  // A word that is dragged takes the place of each that the pointer comes over.
  let [chips, over] = [[], null];
  // Where a word will lie, not where it is on its way.
  const under = ({ clientX, clientY }) => {
    const { left, top } = list.getBoundingClientRect();
    const [x, y] = [clientX - left + list.offsetLeft, clientY - top + list.offsetTop];
    return chips.find((each) => x >= each.offsetLeft && x < each.offsetLeft + each.offsetWidth && y >= each.offsetTop && y < each.offsetTop + each.offsetHeight);
  };
  const put = (from, to) => {
    const n = chips.length;
    if (to < 0 || to >= n || to === from) return;
    chips = move(chips, from, to);
    reorder(list, chips);
    assign(model, "text", move(words(), from, to).join(" "));
  };
  const chip = (word) => {
    const button = h("button", { class: "pe-word", type: "button" }, word || "␣");
    const item = h("li", {}, button);
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      put(chips.indexOf(item), chips.indexOf(item) + step);
    });
    button.addEventListener("pointerdown", (event) => {
      button.setPointerCapture(event.pointerId);
      item.classList.add("pe-lifted");
      over = item;
    });
    button.addEventListener("pointermove", (event) => {
      if (!button.hasPointerCapture(event.pointerId)) return;
      const now = under(event);
      if (now === over) return;
      if (now) put(chips.indexOf(item), chips.indexOf(now));
      // Who lies there now did not come by the pointer, or two words would change places at every move.
      over = under(event);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) button.addEventListener(end, () => item.classList.remove("pe-lifted"));
    return item;
  };
  const show = () => {
    const now = words();
    if (now.join(" ") !== chips.map((each) => each.textContent.replace("␣", "")).join(" ")) {
      chips = now.map(chip);
      list.replaceChildren(...chips);
    }
    chips.forEach((each, k) => each.firstChild.setAttribute("aria-label", `${now[k] || "blank"}, word ${k + 1} of ${now.length}; the arrow keys move it`));
  };
  model.on("change:text", show);
  show();
}

/** Words in another order; of two or more never the same. */
export function shuffled(words, random = Math.random) {
  const next = [...words];
  for (let k = next.length - 1; k > 0; k--) {
    const other = Math.floor(random() * (k + 1));
    [next[k], next[other]] = [next[other], next[k]];
  }
  return next.every((word, k) => word === words[k]) ? move(words, 0, words.length - 1) : next;
}

function render({ model, el }) {
  const [characters, first, models] = ["characters", "first", "models"].map((name) => model.get(name));
  const [start, layers, heads] = ["text", "layers", "heads"].map((name) => model.get(name));
  const about = (side) => models.find(({ name }) => name === model.get(side));
  const read = {};
  const known = (change) => Object.fromEntries(SIDES.map((side) => [side, stored(first[change][model.get(side)])]));
  let results = known("trained");

  const typed = h("input", { type: "text", maxlength: MOST, spellcheck: "false", autocomplete: "off", autocapitalize: "off", value: start });
  typed.addEventListener("input", () => assign(model, "text", typed.value));
  const list = h("ol", { class: "pe-models-words", "aria-label": "the words, in order" });
  const place = h("input", { type: "range", min: 0, step: 1 });
  const placed = h("span", { class: "pe-value", "aria-hidden": "true" });
  place.addEventListener("input", () => assign(model, "at", Number(place.value)));
  const by = slider(model, "by", "by", range(1, 64));
  const mask = toggle(model, "causal", "causal mask");
  const panes = Object.fromEntries(SIDES.map((side) => [side, pane(model, side, characters)]));
  const chart = drawing(150, (width) => drawLosses(width, 150, SIDES.map((side) => results[side]), SIDES.map((side) => labelOf(about(side))), model.get("at"), model.get("text").length));
  const made = frame(el, "Two models read what you type",
    h("label", { class: "pe-models-input" }, h("span", {}, "Type"), typed),
    h("div", { class: "pe-models-typing" },
      list,
      h("div", { class: "pe-controls pe-models-buttons" },
        ...[[" ", "Shuffle words"], ["", "Shuffle letters"]].map(([apart, words]) =>
          h("button", { class: "pe-button", type: "button", onclick: () => shuffle(apart) }, words)),
        h("button", { class: "pe-button", type: "button", onclick: reset }, "Reset"))),
    h("div", { class: "pe-controls pe-models-changes" },
      choose(model, "change", "positions", CHANGES), mask, by),
    h("div", { class: "pe-models-panes" }, panes.left.node, panes.right.node),
    h("div", { class: "pe-controls pe-models-look" },
      h("label", { class: "pe-slider" }, h("span", {}, "guess at place"), place, placed),
      slider(model, "layer", "layer", range(1, layers)), slider(model, "head", "head", range(1, heads))),
    h("p", { class: "pe-note" }, "Shades: each character’s loss. Squares: the attention of this head, from each character (row) to each (column); tinted where a position or a distance was never trained."),
    chart.node);
  const { say, figure } = tries(made,
    ["stretch the positions", () => !moving && model.get("change") === "stretched", () => assign(model, "change", "stretched")],
    ["take the positions away", () => model.get("change") === "zeroed", () => assign(model, "change", "zeroed")],
    ["shuffle the letters", () => model.get("text") !== start && [...model.get("text")].sort().join() === [...start].sort().join(), () => shuffle("")],
    ["lift the mask", () => !model.get("causal"), () => assign(model, "causal", false)]);
  figure.classList.add("pe-models");

  function shuffle(apart) {
    assign(model, "text", shuffled(model.get("text").split(apart)).join(apart));
  }

  function reset() {
    for (const [name, value] of Object.entries({ change: "trained", causal: true, text: start, at: start.length })) assign(model, name, value);
  }

  /** What a pane shows of a result: of one that was computed here, the chosen head and the likeliest characters. */
  const seen = (result) => (result.read
    ? { ...result, next: result.guess ? likeliest(result.guess, characters) : [], shares: result.read.attention[model.get("layer") - 1][model.get("head") - 1] }
    : result);

  function draw() {
    const [at, text] = [model.get("at"), model.get("text")];
    const ids = encoded(characters, text);
    for (const side of SIDES) panes[side].show(seen(results[side]), { ids, at, layer: model.get("layer"), head: model.get("head") });
    chart.redraw(`loss by place: ${SIDES.map((side) => `${labelOf(about(side))} ${said(results[side])}`).join(", ")}`);
    place.max = text.length;
    place.value = at;
    placed.textContent = at < text.length ? `${at + 1}` : "next";
    place.setAttribute("aria-valuetext", at < text.length ? `place ${at + 1}, “${text[at]}”` : "what comes next");
    by.classList.toggle("pe-away", !["gap", "shifted"].includes(model.get("change")));
  }

  const said = (result) => {
    const mean = meanOf(result.losses);
    return mean === null ? "…" : `${short(mean)} nats`;
  };
  /** Where positions or the mask are not as trained: what the loss of the text was. */
  const before = (side) => {
    if (model.get("text") !== start || (model.get("change") === "trained" && model.get("causal"))) return "";
    const [was, is] = [known("trained")[side], results[side]].map((each) => short(meanOf(each.losses) ?? 0));
    return was === is ? "unchanged, " : `${was} → `;
  };
  const guessOf = (side) => {
    const [likely] = seen(results[side]).next;
    return `${labelOf(about(side))}: ${likely ? `guesses “${shownAs(likely[0])}” (${short(likely[1])}), ` : ""}loss ${before(side)}${said(results[side])} a character.`;
  };
  const tell = (shown = "") => say([shown, ...SIDES.map(guessOf)].join(" ").trim());

  // Each change counts the ones before it out of date.
  let now = 0;
  async function update() {
    if (moving) {
      results = known(model.get("change"));
      draw();
      tell(`Shown by itself: positions ${new Map(CHANGES).get(model.get("change")).split(": ")[1]}.`);
      return;
    }
    near.disconnect();
    const mine = ++now;
    figure.setAttribute("aria-busy", "true");
    const names = SIDES.map((side) => model.get(side));
    if (names.some((name) => !read[name])) {
      say("The models are on their way, 0.24 MB each …");
      try {
        for (const name of names) read[name] ??= await fetched(model, name);
      } catch {
        say("The models could not be fetched: what is shown was computed beforehand. In a notebook, run the cell again.");
        figure.setAttribute("aria-busy", "false");
        return;
      }
      if (mine !== now) return;
    }
    const setting = Object.fromEntries(["change", "by", "causal", "at"].map((name) => [name, model.get(name)]));
    const ids = encoded(characters, model.get("text"));
    for (const side of SIDES) {
      // What is kept of the last result is of the same model.
      const last = results[side].model === model.get(side) ? results[side] : null;
      for (const found of studied(read[model.get(side)], ids, setting, last)) {
        results[side] = { ...found, model: model.get(side) };
        draw();
        await rest();
        if (mine !== now) return;
      }
    }
    tell();
    figure.setAttribute("aria-busy", "false");
  }

  model.on("change:text", () => {
    const text = model.get("text");
    if (typed.value !== text) typed.value = text;
    if (!text) return;
    // What came next goes on to come next.
    const wasNext = model.get("at") >= Number(place.max) || model.get("at") > text.length;
    if (wasNext && model.get("at") !== text.length) assign(model, "at", text.length);
    else update();
  });
  for (const name of ["left", "right", "change", "by", "causal", "at", "layer", "head"]) model.on(`change:${name}`, update);
  // Whoever touches it gets the models, before anything is changed.
  const wake = () => {
    for (const kind of ["pointerdown", "keydown", "focusin"]) figure.removeEventListener(kind, wake);
    moves.forEach(clearTimeout);
    near.disconnect();
    const moved = moving && model.get("change") !== "trained";
    moving = false;
    if (moved) assign(model, "change", "trained");
    else update();
  };
  // Where a page asks for it, the positions stretch once and go back, by what came with the page.
  let [moves, moving] = [[], false];
  const near = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    near.disconnect();
    moving = true;
    moves = ["stretched", "trained"].map((change, k) => setTimeout(() => assign(model, "change", change), 1200 + 3200 * k));
    moves.push(setTimeout(() => (moving = false), 4500));
  }, { threshold: 0.5 });
  if (el.closest("[data-moves]") && !stillness()) near.observe(panes.left.node);
  for (const kind of ["pointerdown", "keydown", "focusin"]) figure.addEventListener(kind, wake);
  wordsOf(model, list);
  draw();
  tell();
}

export default { render };
