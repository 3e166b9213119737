import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { short, place, words, costs, chosen, default: figure } = await import(pathToFileURL(join(folder, "figure.mjs")));

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("numbers as the text has them", () => {
  assert.deepEqual([0.789, 1, -0.514, -0.001, 1.474].map((value) => short(value)), ["0.79", "1.00", "−0.51", "0.00", "1.47"]);
});

test("where a state stands", () => {
  assert.deepEqual([0, 1, 4].map((each) => place(each, 4)), ["what enters the first layer", "after layer 1", "after the last layer"]);
});

test("what a series says at a state", () => {
  const series = { name: "token", trained: [[0.5, 0.4, 0.6]], beside: [0.1] };
  assert.equal(words(series, 0), "token 0.50 (0.40 to 0.60), untrained 0.10");
  assert.equal(words({ ...series, chance: 0.02 }, 0), "token 0.50 (0.40 to 0.60), untrained 0.10, a constant guess 0.02");
  assert.equal(costs(series, 0, "nats"), "taking position out there costs 0.50 nats (0.40 to 0.60), its control 0.10");
});

test("every model has what is chosen, or the nearest thing to it", () => {
  state.models.forEach((its, model) => {
    for (const arm of ["none", "rope", "learned", "input"]) {
      const found = chosen(state.models, { model, arm, measure: "read", layer: 12 });
      assert.equal(found.state, found.last);
      assert.equal(found.series[0].trained.length, found.last + 1);
      const there = its.arms.some(({ name }) => name === arm);
      assert.equal(found.arm, there ? arm : its.arms.at(-1).name);
      const cost = chosen(state.models, { model, arm, measure: "read", layer: 0, taken: true });
      assert.deepEqual([cost.series.length, cost.series[0].name], [1, "cost"]);
      assert.ok(cost.to >= Math.max(...cost.series[0].trained.flat()));
      assert.match(cost.words(cost.series[0], 0), /^taking position out there costs /);
    }
  });
});
