import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state, counts, places: asked } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { reach, places, beyond, nearest, bar, shown, drawn, readout, headline, range, SHAPES, COLOURS, default: figure } =
  await import(pathToFileURL(join(folder, "figure.mjs")));

const tableOf = (name) => state.tables.find((table) => table.name === name);
const scores = state.tables.flatMap(({ name, scores }) => Object.entries(scores).map(([split, score]) => ({ name, split, score })));

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("there is a case for each table, split and control", () => {
  assert.equal(counts.length, state.tables.length * state.splits.length * state.controls.length);
  assert.ok(counts.some(({ above, below }) => above && below));
  assert.ok(counts.some(({ above, below }) => !above && !below));
});

for (const { name, split, control, above, below, drawn: nDrawn } of counts) {
  test(`points beyond the chart: ${name}, ${split}, ${control}`, () => {
    const { n_positions: n, scores } = tableOf(name);
    const score = scores[split];
    const sides = score.predicted[control].map((each) => beyond(each, n));
    assert.equal(sides.filter((side) => side === 1).length, above);
    assert.equal(sides.filter((side) => side === -1).length, below);
    const words = drawn(score.predicted[control], score, n);
    const said = [above && `${above} above`, below && `${below} below`].filter(Boolean).join(" and ");
    assert.ok(words.startsWith(`Drawn: ${nDrawn} of ${score.n_tested} ${score.held_out ? "tested " : ""}rows`), words);
    assert.ok(words.endsWith(said ? `; triangles: ${said} the chart.` : ", all within the chart."), words);
  });
}

test("the chart has room for an eighth on each side", () => {
  assert.deepEqual(reach(512), [-64, 576]);
  assert.deepEqual([-64.1, -64, 0, 576, 576.1].map((each) => beyond(each, 512)), [-1, 0, 0, 0, 1]);
});

for (const { name, nearest: wanted } of asked) {
  test(`the nearest of the rows that are drawn: ${name}`, () => {
    for (const [split, each] of Object.entries(wanted)) {
      const { positions } = tableOf(name).scores[split];
      assert.deepEqual(each.map((_, position) => positions[nearest(positions, position)]), each, split);
    }
  });
}

test("ticks begin at zero, are apart alike and do not leave the table", () => {
  assert.deepEqual(places(1024), [0, 256, 512, 768, 1024]);
  assert.deepEqual(places(448), [0, 112, 224, 336, 448]);
  assert.deepEqual(places(100), [0, 50, 100]);
  assert.deepEqual(places(77), [0, 20, 40, 60]);
  assert.deepEqual(places(514), [0, 200, 400]);
  for (const n of range(2, 5000)) {
    const found = places(n);
    assert.ok(found.length >= 2 && found.length <= 5, `${n}: ${found}`);
    assert.ok(found.every((each, k) => Number.isInteger(each) && each === k * found[1] && each <= n), `${n}: ${found}`);
  }
});

test("bars share one scale, on which the constant guess is one half", () => {
  for (const { score } of scores) {
    assert.deepEqual(bar(score.constant, score), { share: 0.5, cut: false });
    for (const error of [score.error, score.low, score.high, score["permuted labels"], score["random table"]]) {
      const { share, cut } = bar(error, score);
      assert.equal(cut, error > 2 * score.constant);
      assert.ok(Math.abs(share - Math.min(1, error / (2 * score.constant))) < 1e-12);
    }
  }
  assert.deepEqual(bar(0, { constant: 3 }), { share: 0, cut: false });
});

test("errors are shown in about three digits", () => {
  assert.deepEqual([0, 0.0004, 2.094, 9.994, 9.996, 67.7, 99.94, 99.96, 471.35, 2438.6, 50705.1].map(shown),
    ["0.00", "0.00", "2.09", "9.99", "10.0", "67.7", "99.9", "100", "471", "2439", "50705"]);
});

test("a row is read out with a real minus and the side that it is off", () => {
  assert.equal(readout(507, 509.8), "predicted 509.8, 2.8 too high");
  assert.equal(readout(511, -1409.8), "predicted −1409.8, 1920.8 too low");
  assert.equal(readout(0, -0), "predicted 0.0, less than 0.1 off");
  assert.equal(readout(3, 3), "predicted 3.0, less than 0.1 off");
  assert.equal(readout(3, 2.9), "predicted 2.9, 0.1 too low");
});

test("only a split with held-out rows has a test error", () => {
  for (const { split, score } of scores) {
    const { title, rest } = headline(score);
    assert.equal(score.held_out, split !== "all");
    assert.equal(title, split === "all" ? "No test" : `Test error ${shown(score.error)} positions`);
    assert.ok(rest.includes(`95\u00a0% interval ${shown(score.low)} to ${shown(score.high)}`));
    assert.ok(rest.includes(shown(split === "all" ? score.error : score.train)));
    assert.ok(rest.includes("n the rows it was fitted to: "));
  }
});

test("the headline is that of the points", () => {
  for (const { split, score } of scores) for (const [key, name] of [["permuted labels", "Permuted"], ["random table", "Random"]]) {
    const { title, rest } = headline(score, key);
    assert.equal(title, split === "all" ? `${name}: no test` : `${name}: error ${shown(score[key])}`);
    assert.ok(rest.includes(`The table itself: ${shown(score.error)}.`));
    assert.ok(split !== "all" || rest.includes(`fitted to: ${shown(score[key])}, `));
  }
});

test("each control has a shape and a colour of its own", () => {
  const keys = state.controls.map(({ key }) => key);
  assert.deepEqual(Object.keys(SHAPES), keys);
  assert.deepEqual(Object.keys(COLOURS), keys);
  assert.equal(new Set(keys.map((key) => SHAPES[key](3))).size, keys.length);
  assert.equal(new Set(Object.values(COLOURS)).size, keys.length);
});
