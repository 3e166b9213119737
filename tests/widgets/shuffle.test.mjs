import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { layer, cases, tolerance } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { outputs, changes, mean, inputs, softmax, move, derange, largest, percent, default: figure } =
  await import(pathToFileURL(join(folder, "figure.mjs")));

const orders = cases.filter(({ positions, causal }) => !positions && !causal).map(({ order }) => order);
const furthest = (a, b) => Math.max(...a.flat().map((value, k) => Math.abs(value - b.flat()[k])));
const firstOf = ({ positions, causal }) =>
  cases.find((other) => other.positions === positions && other.causal === causal && other.order.every((w, k) => w === k));

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("there is a case for each order, with and without positions and mask", () => {
  assert.equal(cases.length, 24 * 2 * 2);
  assert.equal(new Set(orders.map(String)).size, 24);
});

for (const positions of [false, true]) {
  for (const causal of [false, true]) {
    test(`outputs are those of the encoder's attention: positions ${positions}, causal ${causal}`, () => {
      for (const { order, outputs: wanted } of cases.filter((c) => c.positions === positions && c.causal === causal)) {
        const got = outputs(layer, order, positions, causal);
        assert.equal(got.length, 4);
        assert.ok(got.every((row) => row.length === 16));
        const apart = furthest(got, wanted);
        assert.ok(apart <= tolerance, `${order}: ${apart} > ${tolerance}`);
      }
    });

    test(`changes are measured from the first order: positions ${positions}, causal ${causal}`, () => {
      for (const { order } of cases.filter((c) => c.positions === positions && c.causal === causal)) {
        const now = outputs(layer, order, positions, causal);
        const first = outputs(layer, [0, 1, 2, 3], positions, causal);
        const scale = largest(first);
        const change = changes(layer, order, positions, causal);
        assert.deepEqual(change.words, order.map((word, place) => furthest([now[place]], [first[word]]) / scale));
        assert.equal(change.mean, furthest([mean(now)], [mean(first)]) / scale);
      }
    });
  }
}

test("changes agree with the encoder's", () => {
  for (const { order, positions, causal, outputs: now } of cases) {
    const { outputs: first } = firstOf({ positions, causal });
    const scale = Math.max(...first.flat().map(Math.abs));
    const wanted = order.map((word, place) => furthest([now[place]], [first[word]]) / scale);
    // A difference of two outputs, over a scale that is itself off by the tolerance.
    const allowed = (2 * tolerance + Math.max(...wanted) * tolerance) / (scale - tolerance);
    assert.ok(furthest([changes(layer, order, positions, causal).words], [wanted]) <= allowed);
  }
});

test("without positions and mask each word keeps its output in every order, and so does the mean", () => {
  for (const order of orders) {
    const change = changes(layer, order, false, false);
    // The sums run over the words in another order: a few roundings of double precision.
    assert.ok(Math.max(...change.words, change.mean) < 1e-13);
  }
});

test("in the first order nothing has changed", () => {
  for (const { positions, causal } of cases) {
    assert.deepEqual(changes(layer, [0, 1, 2, 3], positions, causal), { words: [0, 0, 0, 0], mean: 0 });
  }
});

test("with positions or a mask every other order changes something that a reader can see", () => {
  for (const { order, positions, causal } of cases.filter((c) => c.positions || c.causal)) {
    if (order.every((word, place) => word === place)) continue;
    // Below half a percent the figure says "unchanged".
    assert.ok(Math.max(...changes(layer, order, positions, causal).words) > 0.005, `${order} ${positions} ${causal}`);
  }
});

test("with a mask the first place sees itself alone", () => {
  const [alone] = outputs(layer, [2, 0, 1, 3], false, true);
  const [same] = outputs(layer, [2, 3, 1, 0], false, true);
  assert.deepEqual(alone, same);
});

test("rows of the tables: a bare word, or the word at its place", () => {
  assert.deepEqual(inputs([2, 0, 1], false), [2, 0, 1]);
  assert.deepEqual(inputs([2, 0, 1], true), [3 + 2 * 3 + 0, 3 + 0 * 3 + 1, 3 + 1 * 3 + 2]);
});

test("softmax adds up to one and keeps ratios", () => {
  const weights = softmax([0, Math.log(2), Math.log(5)]);
  [1 / 8, 2 / 8, 5 / 8].forEach((wanted, k) => assert.ok(Math.abs(weights[k] - wanted) < 1e-15));
  assert.deepEqual(softmax([-3]), [1]);
});

test("softmax of large logits is finite", () => {
  assert.deepEqual(softmax([1e4, 1e4]), [0.5, 0.5]);
  assert.deepEqual(softmax([1e300, -1e300]), [1, 0]);
  assert.deepEqual(softmax([-1e4, -1e4, -1e4]).map((w) => w.toFixed(12)), Array(3).fill((1 / 3).toFixed(12)));
});

test("mean of rows", () => assert.deepEqual(mean([[1, 2], [3, 6]]), [2, 4]));

test("move takes a word out and puts it in, and leaves its list alone", () => {
  const list = ["a", "b", "c", "d"];
  assert.deepEqual(move(list, 0, 3), ["b", "c", "d", "a"]);
  assert.deepEqual(move(list, 3, 0), ["d", "a", "b", "c"]);
  assert.deepEqual(move(list, 1, 2), ["a", "c", "b", "d"]);
  assert.deepEqual(move(list, 2, 2), list);
  assert.deepEqual(list, ["a", "b", "c", "d"]);
});

test("a shuffle is another order of the same words, whatever is drawn", (t) => {
  const draws = [0, 0.2, 0.4, 0.6, 0.8, 0.999999];
  for (const n of [2, 3, 4, 5, 6]) {
    for (const draw of draws) {
      t.mock.method(Math, "random", () => draw);
      const order = Array.from({ length: n }, (_, k) => (k * (n - 1)) % n);
      const next = derange(order);
      t.mock.restoreAll();
      assert.notDeepEqual(next, order);
      assert.deepEqual([...next].sort(), [...order].sort());
    }
  }
});

test("percent", () => assert.deepEqual([0, 0.005, 0.126, 1.2].map(percent), ["0 %", "1 %", "13 %", "120 %"]));
