import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state, cases } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { oneHot, product, summedUp, gradients, step, changed, shown, PAD, default: figure } =
  await import(pathToFileURL(join(folder, "figure.mjs")));
const { table, batch, targets, learning_rate: learningRate } = state;

const furthest = (a, b) => Math.max(...a.flat().map((value, k) => Math.abs(value - b.flat()[k])));
// Both sides are double precision; a sum or a step may be rounded in another order, of numbers below 10.
const TOLERANCE = 1e-14;

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("a one-hot row", () => {
  assert.deepEqual(oneHot(2, 4), [0, 0, 1, 0]);
  assert.deepEqual(oneHot(0, 1), [1]);
});

test("the product of a one-hot row and the table is the row, exactly", () => {
  table.forEach((row, id) => assert.deepEqual(product(oneHot(id, table.length), table), row));
});

test("a product in general", () => {
  assert.deepEqual(product([2, -1], [[1, 10, 0], [3, 5, 7]]), [-1, 15, -7]);
});

for (const { padding, tables, gradients: wanted } of cases) {
  const paddingIdx = padding ? PAD : null;

  test(`gradients are those of nn.Embedding: padding ${padding}`, () => {
    wanted.forEach((dense, n) => {
      const rows = gradients(tables[n], batch, targets, paddingIdx);
      dense.forEach((row, id) => {
        assert.equal(rows.has(id), row.some((value) => value !== 0), `row ${id}`);
        assert.ok(furthest([rows.get(id) ?? row.map(() => 0)], [row]) <= TOLERANCE);
      });
    });
  });

  test(`steps are those of SGD: padding ${padding}`, () => {
    let now = table;
    for (const after of tables.slice(1)) {
      now = step(now, batch, targets, learningRate, paddingIdx);
      assert.ok(furthest(now, after) <= TOLERANCE);
    }
  });

  test(`rows that no id names stay as they are: padding ${padding}`, () => {
    const after = step(table, batch, targets, learningRate, paddingIdx);
    const used = new Set(batch.filter((id) => id !== paddingIdx));
    after.forEach((row, id) => assert.equal(JSON.stringify(row) === JSON.stringify(table[id]), !used.has(id), `row ${id}`));
  });
}

test("padding is the first row, and the batch has one", () => {
  assert.equal(PAD, 0);
  assert.ok(batch.includes(PAD));
  assert.deepEqual([...gradients(table, batch, targets, PAD).keys()].sort(), [...new Set(batch)].filter((id) => id).sort());
});

test("a word that stands twice is pulled twice", () => {
  const rows = gradients([[1], [5]], [1, 1, 0], [[2], [4], [1]], null);
  assert.deepEqual([rows.get(1), rows.get(0)], [[(5 - 2) + (5 - 4)], [0]]);
});

test("nothing given is changed", () => {
  const kept = JSON.stringify([table, batch, targets]);
  step(table, batch, targets, learningRate, null);
  assert.equal(JSON.stringify([table, batch, targets]), kept);
});

test("steps come closer to the best table", () => {
  const loss = (rows) => batch.reduce((sum, id, k) => sum + rows[id].reduce((s, v, c) => s + (v - targets[k][c]) ** 2, 0), 0);
  let now = table;
  for (let n = 0; n < 5; n++) {
    const next = step(now, batch, targets, 0.4, null);
    assert.ok(loss(next) < loss(now));
    now = next;
  }
});

test("changed are the rows whose numbers are shown otherwise, at first all that a gradient reaches", () => {
  assert.deepEqual(changed([[1, 2], [3, 4], [5, 6]], [[1, 2.004], [3, 4 + 1e-16], [5.01, 6]]), [2]);
  for (const paddingIdx of [null, PAD]) {
    const used = [...new Set(batch.filter((id) => id !== paddingIdx))].sort();
    let now = table;
    for (let n = 0; n < 100; n++) {
      const after = step(now, batch, targets, learningRate, paddingIdx);
      if (n < 5) assert.deepEqual(changed(now, after), used, `step ${n}`);
      if (n > 50) assert.deepEqual(changed(now, after), []);
      now = after;
    }
  }
});

test("numbers are shown with two decimals, a real minus and no minus zero", () => {
  assert.deepEqual([1.005, -0.5, 0, -0.001, -12].map(shown), ["1.00", "−0.50", "0.00", "0.00", "−12.00"]);
});

test("row by row the sum is zero, and from the word's row on that row", () => {
  const zeros = table[0].map(() => 0);
  table.forEach((row, id) => [...table.keys(), table.length, table.length + 1].forEach((n) =>
    assert.deepEqual(summedUp(oneHot(id, table.length), table, n).map((value) => value + 0), n > id ? row : zeros)));
  assert.equal(state.summed, table.length + 1);
});
