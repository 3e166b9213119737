import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { comparison, layers, doses, depth, intervals, differences, lost, biases } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const {
  interval, chosen, spread, missed, viewLike, reach, unbroken, nearest, sentence, whose, apart, axisOf, unpack, ticks, flip, lookOf, LOOKS, range, short, default: figure,
} = await import(pathToFileURL(join(folder, "figure.mjs")));

// Student's quantiles have five decimals.
const close = (got, wanted, words) => {
  assert.equal(got.length, wanted.length, words);
  got.forEach((value, k) => assert.ok(Math.abs(value - wanted[k]) <= 2e-5, `${words}: ${got}, not ${wanted}`));
};
const of = (state, changes) => chosen({ ...state, ...changes });
const labelled = (state, ...labels) => state.views.findIndex((view) => labels.every((label, k) => view.labels[k] === label));

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("means and intervals are the package's", () => {
  for (const [values, wanted] of intervals) close(interval(values, doses.quantiles), wanted, values);
  assert.equal(interval([], comparison.quantiles), null);
  // One of them alone where a single seed was run.
  const [learned, , alibi] = of(comparison).rows;
  assert.deepEqual(learned.ends[2], [2.1]);
  assert.equal(alibi.ends[1], null);
});

test("minus one of them: differences of single seeds, where both were run", () => {
  const [zero, other, alibi] = of(comparison, { minus: "learned" }).rows;
  assert.ok(zero.own && !zero.on && !zero.ends.length && !zero.lines.length);
  differences.forEach((wanted, place) => close(other.ends[place], wanted, place));
  assert.equal(other.lines[1][2], null);
  assert.equal(alibi.ends[1], null);
});

test("seeds and series can be switched off", () => {
  const [one] = of(comparison, { seeds: [1], off: ["learned"] }).rows;
  assert.deepEqual([one.on, one.lines, one.ends[0]], [false, [[1.7, 1.8, null]], [1.7]]);
  assert.deepEqual(of(comparison, { seeds: [] }).rows[0].ends, [null, null, null]);
  // A seed that a series was not run with is none of its own.
  assert.equal(of(layers, { view: 0 }).rows[1].lines.length, 2);
  assert.deepEqual([flip([1, 2, 3], 2), flip([1, 3], 2)], [[1, 3], [1, 3, 2]]);
});

test("changes from a place are of single seeds", () => {
  const [order] = of(doses).rows;
  close(order.since[2], lost, "from 0 to 48");
  assert.deepEqual(order.since[0].map((value) => value + 0), [0, 0, 0]);
});

test("the axis has room for all that is on, and for zero where one is taken away", () => {
  for (const minus of ["", "learned", "NoPos", "ALiBi"]) {
    const now = of(comparison, { minus });
    const { from, to } = reach(now);
    const all = now.rows.flatMap(({ ends, lines }) => [...ends.filter(Boolean).map(([mean]) => mean), ...lines.flat()]).filter((value) => value !== null);
    assert.ok(from <= Math.min(...all) && to >= Math.max(...all), minus);
    assert.ok(!minus || (from <= 0 && to >= 0));
    assert.ok(ticks(from, to).length >= 3);
  }
  assert.ok(reach(of(comparison, { off: ["learned", "NoPos"] })).to < 2);
  assert.deepEqual(reach(of(comparison, { off: ["learned", "NoPos", "ALiBi"] })), { from: 0, to: 1 });
  assert.deepEqual(reach(of(layers)), { from: 0, to: 32 });
});

test("the view is that with the chosen label, and as much of the others as there is", () => {
  const { views } = layers;
  const steps = (model, step, k = 0) => views[viewLike(views, [views.find(({ labels }) => labels[0].startsWith(model)).labels[0], step], k)].labels;
  assert.deepEqual(steps("watched", "47 of 2000", 1), ["watched: 4 layers, width 64", "47 of 2000"]);
  assert.equal(steps("small", "untrained")[1], "untrained");
  // A step that the others were not probed at gives way to their last.
  assert.equal(steps("small", "47 of 2000")[1], "2000 of 2000");
  assert.deepEqual(depth.views[viewLike(depth.views, ["texts, 12 layers", "read from one state"], 0)].labels, ["texts, 12 layers", "read from one state"]);
});

test("all that stands at a place, in a sentence", () => {
  const said = sentence(of(comparison, { minus: "learned", at: 0 }));
  assert.match(said, /^hidden, %: 15, minus learned\. NoPos 1\.283 \(.*\); ALiBi −0\.500 \(.*\)\.$/);
  assert.equal(sentence(of(comparison, { at: 1, off: ["learned", "NoPos"] })), "hidden, %: 40. nothing is switched on.");
  assert.match(sentence(of(layers)), /^layer: 2\. NoPos 2\.20 \(−0\.28 to 4\.68\), paper 8\.00\.$/);
  assert.doesNotMatch(sentence(of(layers, { beside: false })), /paper/);
  assert.match(sentence(of(doses)), /^dose, degrees: 48\. order .* \(.*\), change from 0 .* \(.*\), constant guess 0\.04; lookup /);
  assert.doesNotMatch(sentence(of(doses, { at: 0 })), /change/);
  assert.match(sentence(of(depth, { view: labelled(depth, "texts, 12 layers", "read from one state"), at: 1 })),
    /^state \(0 enters the first layer\): 1\. none, position 0\.23 \(.*\), untrained 0\.23, constant guess 0\.1[23]; .*; input, position /);
});

test("whose mean it is, where not all seeds are on", () => {
  const names = [1, 2, 5];
  assert.deepEqual([[0, 1, 2], [0, 2], [2], []].map((seeds) => whose(seeds, names)), ["", ", seeds 1 and 5", ", seed 5 alone", ", no seed is on"]);
});

test("a series that is alone stands on its place, others around it", () => {
  const [one, other] = [{ ends: [[1, 1, 1], [1, 1, 1]] }, { ends: [null, [2, 2, 2]] }];
  assert.equal(apart([one, other], 0)(one), 0);
  const both = [one, other].map(apart([one, other], 1));
  assert.ok(both[0] < 0 && both[0] === -both[1]);
});

test("names of lines keep apart, in their order and within their bounds", () => {
  assert.deepEqual(spread([50, 10, 90], 10, 0, 100), [50, 10, 90]);
  assert.deepEqual(spread([50, 51, 49], 10, 0, 100), [59, 69, 49]);
  assert.deepEqual(spread([99, 98], 10, 0, 100), [100, 90]);
  assert.deepEqual(spread([1, 0], 10, 0, 100), [10, 0]);
});

test("a series looks the same in every panel", () => {
  const { rows } = of(depth, { view: labelled(depth, "texts, 12 layers", "share of the variance") });
  assert.deepEqual(rows.map(({ panel, look }) => [panel, look]), ["none", "input"].flatMap((panel) => [0, 1].map((look) => [panel, look])));
});

test("what is to be drawn first has no numbers, and a guess is off by what is between", () => {
  const now = of(comparison, { hidden: "NoPos", at: 0, minus: "" });
  assert.deepEqual(now.rows.map(({ hidden }) => hidden), now.rows.map(({ name }) => name === "NoPos"));
  assert.doesNotMatch(sentence(now), /NoPos/);
  assert.equal(missed([null, 2], [[1], [1.5]]), 0.5);
  assert.equal(missed([], [[1], null]), null);
});

test("lines end where nothing was run", () => {
  assert.deepEqual(unbroken([[0, 1], null, [2, 3], [3, 4]]), [[[0, 1]], [[2, 3], [3, 4]]]);
  assert.deepEqual(unbroken([null, null]), []);
});

test("a curve with points of its own is read where it is as far along", () => {
  assert.deepEqual([0, 0.2, 0.5, 1].map((share) => nearest([1, 2, 3], share)), [1, 1, 2, 3]);
});

test("numbers and names as places", () => {
  assert.deepEqual(axisOf([15, 40, 60], "x").ticks, [15, 40, 60]);
  const { from, to, words } = axisOf(["small", "wide"], "x");
  assert.deepEqual([from, to, words(1)], [-0.5, 1.5, "wide"]);
  assert.deepEqual([-0.0001, 0.5, -1.25].map((value) => short(value)), ["0.00", "0.50", "−1.25"]);
});

test("biases are the package's", () => {
  Object.values(biases).forEach((dosed, number) => dosed.forEach((wanted, k) => {
    const rows = unpack(doses.views[number].matrices[k]);
    assert.equal(rows.length, wanted.length);
    rows.forEach((row, i) => row.forEach((value, j) => assert.ok(Math.abs(value - wanted[i][j]) < 0.0051, `${number} ${k} ${i} ${j}`)));
  }));
});

test("each scheme has a colour and a mark of its own, of the size that it is asked for", () => {
  const known = Object.keys(LOOKS);
  for (const look of [({ colour }) => colour, ({ mark }) => mark(4)]) assert.equal(new Set(known.map((key) => look(lookOf(key)))).size, known.length);
  const size = (path) => Math.max(...path.match(/-?[\d.]+/g).map((number) => Math.abs(number)));
  for (const key of known) {
    assert.ok(size(lookOf(key).mark(4)) >= 3.8 && size(lookOf(key).mark(4)) < 5.7, key);
    assert.match(lookOf(key).mark(4), /^M(-?[\d.]+ ?|[LCQ])+Z$/);
  }
});

test("a scheme without a look of its own is one of the other series", () => {
  const others = range(0, 4).map((k) => lookOf("mine", k));
  assert.deepEqual(others.map(({ colour }) => colour), range(0, 4).map((k) => `pe-series-${k}`));
  assert.equal(new Set(others.map(({ dash }) => dash)).size, 5);
  assert.equal(lookOf("mine", 5).colour, "pe-series-0");
});
