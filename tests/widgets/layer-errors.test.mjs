import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state, cases, published, depths } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const {
  studied, reach, asDeep, flip, isNamedAbove, errorWords, listed, whose, heading, sentence, stepWords, lookOf, LOOKS, range, default: figure,
} = await import(pathToFileURL(join(folder, "figure.mjs")));

// Sums of at most five numbers below a hundred, in double precision on both sides; published ones have four decimals.
const [TOLERANCE, ROUNDING] = [1e-12, 0.5e-4 + 1e-12];
const close = (got, wanted, tolerance, words) => {
  assert.equal(got.length, wanted.length, words);
  got.forEach((value, k) => assert.ok(Math.abs(value - wanted[k]) <= tolerance, `${words}: ${got}, not ${wanted}`));
};
const at = (changes) => studied({ ...state, schemes: state.known.map(({ key }) => key), ...changes });
const row = (now, key) => now.rows.find((each) => each.key === key);
const group = (key) => state.groups.find((each) => each.key === key);

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

for (const { choice, layer, shown, whole, lines, means } of cases) {
  test(`what NumPy makes of ${JSON.stringify(choice)}`, () => {
    const now = at(choice);
    assert.deepEqual([now.layer, now.step, now.whole, now.shown], [layer, choice.step, whole, shown]);
    const { steps, schemes } = group(choice.group);
    for (const each of now.rows) {
      const own = schemes.find(({ key }) => key === each.key);
      assert.equal(each.probed, Boolean(own));
      assert.equal(each.on, each.key in lines);
      assert.deepEqual(each.lines, lines[each.key] ?? []);
      close(each.means, means[each.key] ?? [], TOLERANCE, each.key);
      const wanted = each.on && whole ? own.intervals[steps.indexOf(choice.step)].map((found) => found.slice(1)) : null;
      assert.deepEqual(each.intervals, wanted);
    }
  });
}

test("over all seeds the means are those of the package", () => {
  for (const { key, steps } of state.groups) for (const [k, step] of steps.entries()) {
    for (const { key: scheme, means } of at({ group: key, step }).rows.filter((each) => each.probed)) {
      const own = group(key).schemes.find((each) => each.key === scheme);
      close(means, own.intervals[k].map(([mean]) => mean), ROUNDING, `${key}, ${scheme}, ${step}`);
    }
  }
});

test("a step that a group was not probed at gives way to its last", () => {
  const step = group("watched").steps[2];
  for (const { key, steps } of state.groups) assert.equal(at({ group: key, step }).step, key === "watched" ? step : steps.at(-1));
});

test("a depth is the same part of models with other numbers of layers", () => {
  assert.deepEqual([0, 1 / 4, 1 / 2, 3 / 4, 1].map((depth) => at({ group: "larger", depth }).layer), [0, 2, 3, 5, 6]);
  for (const { key, n_layers: n } of state.groups)
    for (const layer of range(0, n)) assert.equal(at({ group: key, depth: layer / n }).layer, layer);
});

test("the paper's curves stand where the switch and the scheme are on", () => {
  for (const [key, wanted] of Object.entries(published)) {
    close(row(at({}), key).paper, wanted, ROUNDING, key);
    assert.deepEqual(row(at({ paper: false }), key).paper, []);
    assert.deepEqual(row(at({ schemes: [] }), key).paper, []);
  }
  assert.deepEqual(row(at({}), "rope").paper, []);
  assert.deepEqual(row(at({ group: "masked" }), "alibi").paper, []);
  assert.equal(row(at({ seeds: [] }), "nopos").paper.length, published.nopos.length);
});

test("the paper's layer of the same depth", () => {
  depths.forEach((depth, k) => assert.equal(asDeep(published.nopos, depth), published.nopos[k]));
  assert.equal(asDeep(published.alibi, 1 / 3), published.alibi[8]);
});

test("the chart has room for every error, and is the same for all groups", () => {
  const top = reach(state.groups);
  const shares = state.groups.flatMap(({ schemes, middle }) => schemes.flatMap(({ errors }) => errors.flat(2).map((error) => error / middle)));
  assert.ok(Math.max(...shares) <= top && top < Math.max(...shares) + 0.5);
  const of = (...errors) => reach([{ middle: 10, schemes: [{ errors: [[errors]] }] }]);
  assert.deepEqual([of(1), of(15), of(15.1), of(20, 1), of(3, 27.7)], [1.5, 1.5, 2, 2, 3]);
});

test("a switch takes a value out and puts it back", () => {
  assert.deepEqual(flip([1, 2, 3], 2), [1, 3]);
  assert.deepEqual(flip([1, 3], 2), [1, 3, 2]);
  assert.deepEqual(at({ seeds: flip([1, 3], 2) }).shown, [1, 2, 3]);
});

test("a line is named on its clear side", () => {
  assert.equal(isNamedAbove(1, []), false);
  assert.equal(isNamedAbove(1, [1.1]), false);
  assert.equal(isNamedAbove(1, [0.9]), true);
  assert.equal(isNamedAbove(1, [0.9, 1.1]), false);
  assert.equal(isNamedAbove(1, [0.8, 1.2]), false);
});

test("errors have as many decimals as a few seeds can tell", () => {
  const errors = [0, 0.004, -0.004, 0.126, -0.2, 0.994, 0.996, 3.25001, 17.94, 21.328125];
  assert.deepEqual(errors.map(errorWords), ["0.00", "0.00", "0.00", "0.13", "−0.20", "0.99", "1.0", "3.3", "17.9", "21.3"]);
});

test("lists are as English has them", () => {
  assert.deepEqual([[1], [1, 4], [1, 2, 5]].map(listed), ["1", "1 and 4", "1, 2 and 5"]);
});

test("whose errors are shown", () => {
  const of = (seeds, key = "causal") => whose(at({ seeds, group: key }));
  assert.equal(of([1, 2, 3, 4, 5]), "mean of 5 seeds");
  assert.equal(of([5, 3, 1]), "mean of seeds 1, 3 and 5");
  assert.equal(of([3]), "seed 3 alone");
  assert.equal(of([]), "no seed is switched on");
  assert.equal(of([3, 2, 1], "watched"), "mean of 3 seeds");
  assert.equal(of([4, 5], "watched"), "no seed is switched on");
});

test("steps are counted up to the last", () => {
  const steps = [0, 10, 200, 800];
  assert.deepEqual(steps.map((step) => stepWords(step, { steps })), ["untrained", "10 of 800", "200 of 800", "800 of 800"]);
});

// Errors that are easy to read, for the sentences.
const plain = {
  ...state, group: "one", schemes: ["nopos", "learned"], seeds: [1, 2], step: 300, depth: 0.5,
  groups: [{
    key: "one", n_layers: 2, steps: [0, 300], seeds: [1, 2], middle: 16, random: 21.3,
    schemes: ["nopos", "learned"].map((key, k) => ({
      key,
      errors: [[[20, 10, 9], [20, 10, 9]], [[18 + k, 3, 5], [18 + k, 4, 5]]],
      intervals: [[[20, 20, 20], [10, 10, 10], [9, 9, 9]], [[18, 18, 18], [3.5, -2.85, 9.85], [5, 5, 5]]],
    })),
  }],
};
const said = (changes) => sentence(studied({ ...plain, ...changes }));

test("all numbers of a layer in a sentence", () => {
  assert.equal(said({}),
    "Layer 1 of 2, after 300 steps, mean of 2 seeds: no positions off by 3.5 positions (−2.9 to 9.8); learned by 3.5 (−2.9 to 9.8); " +
    "always the middle by 16.0.");
  assert.equal(said({ seeds: [2], schemes: ["learned"], depth: 0 }),
    "Layer 0 of 2, after 300 steps, seed 2 alone: learned off by 19.0 positions; always the middle by 16.0.");
  assert.equal(said({ step: 0, schemes: ["nopos"], depth: 1 }),
    "Layer 2 of 2, untrained, mean of 2 seeds: no positions off by 9.0 positions (9.0 to 9.0); always the middle by 16.0.");
});

test("where nothing is switched on, it says so", () => {
  assert.equal(said({ seeds: [] }), "No seed is switched on.");
  assert.equal(said({ schemes: [] }), "No scheme is switched on.");
});

test("what stands above the numbers", () => {
  const of = (changes) => heading(studied({ ...plain, ...changes }));
  assert.equal(of({}), "Error at layer 1 of 2, after 300 steps: mean of 2 seeds, 95\u00a0% interval");
  assert.equal(of({ seeds: [1], step: 0 }), "Error at layer 1 of 2, untrained: seed 1 alone");
});

test("each scheme has a colour and a mark of its own", () => {
  const known = state.known.map(({ key }) => key);
  assert.deepEqual(known.filter((key) => !(key in LOOKS)), []);
  for (const look of [({ colour }) => colour, ({ mark }) => mark(4)])
    assert.equal(new Set(known.map((key) => look(lookOf(key)))).size, known.length);
  assert.equal(lookOf("alibi").colour, "pe-scheme-alibi");
});

test("a mark has the size that it is asked for", () => {
  const reach = (path) => Math.max(...path.match(/-?[\d.]+/g).map((number) => Math.abs(number)));
  for (const key of Object.keys(LOOKS)) {
    assert.ok(reach(lookOf(key).mark(4)) >= 3.8 && reach(lookOf(key).mark(4)) < 5.7, key);
    assert.match(lookOf(key).mark(4), /^M(-?[\d.]+ ?|[LCQ])+Z$/);
  }
});

test("a scheme without a look of its own is one of the other series", () => {
  const others = range(0, 4).map((k) => lookOf("mine", k));
  assert.deepEqual(others.map(({ colour }) => colour), range(0, 4).map((k) => `pe-series-${k}`));
  assert.equal(new Set(others.map(({ dash }) => dash)).size, 5);
  assert.equal(lookOf("mine", 5).colour, "pe-series-0");
});
