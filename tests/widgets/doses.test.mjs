import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state, biases } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { unpack, short, costs, default: figure } = await import(pathToFileURL(join(folder, "figure.mjs")));

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

for (const [name, dosed] of Object.entries(biases)) {
  test(`the biases against ${name}`, () => {
    dosed.forEach((wanted, k) => {
      const rows = unpack(state.biases[name][k]);
      assert.equal(rows.length, wanted.length);
      rows.forEach((row, i) => row.forEach((value, j) => assert.ok(Math.abs(value - wanted[i][j]) < 0.0051, `${k} ${i} ${j}`)));
    });
  });
}

test("shares as the text has them", () => {
  assert.deepEqual([0.789, 1, -0.514, -0.001, 0].map((value) => short(value)), ["0.79", "1.00", "−0.51", "0.00", "0.00"]);
});

test("what a dose cost", () => {
  const task = { name: "order", right: { symmetry: [[0.789], [0.998]] }, lost: { symmetry: [[0.209, 0.159, 0.258]] } };
  assert.equal(costs(task, "symmetry", 0), "order: 0.79 right without a dose");
  assert.equal(costs(task, "symmetry", 1), "order: 0.79 right without a dose, 1.00 with it; difference 0.21 (0.16 to 0.26)");
});
