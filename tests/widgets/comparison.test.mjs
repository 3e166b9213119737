import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { compared, reach, sentence, unbroken, beside, axisOf, ticks, short, default: figure } = await import(pathToFileURL(join(folder, "figure.mjs")));
const at = (changes) => compared({ ...state, ...changes });

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("as they are", () => {
  const { rows, place } = at({ less: "", at: 1 });
  assert.equal(place, 40);
  assert.deepEqual(rows.map(({ ends }) => ends), state.series.map(({ ends }) => ends));
  assert.deepEqual(rows.map(({ seeds }) => seeds), state.series.map(({ seeds }) => seeds));
});

test("less one of them: differences of single seeds, where both were run", () => {
  const [zero, other] = at({ less: "learned" }).rows;
  assert.ok(zero.own && !zero.ends.length && !zero.seeds.length);
  assert.deepEqual(other.ends, state.differences.learned.NoPos);
  other.seeds.forEach((line, k) => line.forEach((value, place) => {
    const [own, taken] = [state.series[1].seeds[k][place], state.series[0].seeds[k][place]];
    if (own === null || taken === null) assert.equal(value, null);
    else assert.ok(Math.abs(value - (own - taken)) < 1e-12);
  }));
});

test("the axis has room for all, and for zero where one is taken away", () => {
  for (const less of ["", "learned", "NoPos", "ALiBi"]) {
    const { rows } = at({ less });
    const { from, to } = reach(rows, Boolean(less));
    const all = rows.flatMap(({ ends, seeds }) => [...ends.filter(Boolean).map(([mean]) => mean), ...seeds.flat()]).filter((value) => value !== null);
    assert.ok(from <= Math.min(...all) && to >= Math.max(...all), less);
    assert.ok(!less || (from <= 0 && to >= 0));
    assert.ok(ticks(from, to).length >= 3);
  }
  assert.ok(reach([{ on: true, ends: [[1, 1, 1]], seeds: [] }], false).to > 1);
  // An arm that is off takes no room, and where all are off there is an axis all the same.
  assert.ok(reach(at({ shown: ["ALiBi"] }).rows, false).to < 2);
  assert.deepEqual(reach(at({ shown: [] }).rows, false), { from: 0, to: 1 });
});

test("what is said", () => {
  const said = sentence(at({ less: "learned", at: 0 }), "hidden, %");
  assert.match(said, /^hidden, %: 15, minus learned\. NoPos 1\.283 \(.*\); ALiBi −0\.400 \(.*\)\.$/);
  assert.equal(sentence(at({ less: "", at: 1, shown: ["ALiBi"] }), "hidden, %"), "hidden, %: 40. nothing is switched on.");
});

test("an arm that is alone stands on its place, others around it", () => {
  const [one, other] = [{ ends: [[1, 1, 1], [1, 1, 1]] }, { ends: [null, [2, 2, 2]] }];
  assert.equal(beside([one, other], 0)(one), 0);
  const apart = [one, other].map(beside([one, other], 1));
  assert.ok(apart[0] < 0 && apart[0] === -apart[1]);
});

test("lines end where nothing was run", () => {
  assert.deepEqual(unbroken([[0, 1], null, [2, 3], [3, 4]]), [[[0, 1]], [[2, 3], [3, 4]]]);
  assert.deepEqual(unbroken([null, null]), []);
});

test("numbers and names as places", () => {
  assert.deepEqual(axisOf([15, 40, 60], "x").ticks, [15, 40, 60]);
  const { from, to, words } = axisOf(["small", "wide"], "x");
  assert.deepEqual([from, to, words(1)], [-0.5, 1.5, "wide"]);
  assert.deepEqual([-0.0001, 0.5, -1.25].map((value) => short(value)), ["0.00", "0.50", "−1.25"]);
});
