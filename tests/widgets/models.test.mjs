import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state, scripts, cases, ids, hidden } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const {
  unpacked, run, chances, studied, positionsOf, encoded, meanOf, likeliest, shuffled, untrained, range, default: figure,
} = await import(pathToFileURL(join(folder, "figure.mjs")));

// The script of each model, as a page runs it.
for (const script of scripts) (0, eval)(script);
const models = {};
for (const [name, file] of Object.entries(globalThis.posembedModels)) models[name] = await unpacked(file);
const apart = (a, b) => {
  const wanted = [...b].flat();
  return Math.max(...[...a].map((value, k) => Math.abs(value - wanted[k])));
};

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

for (const { name, change, by, causal, logits, attention } of cases) {
  test(`what torch computes: ${name}, ${change}, ${causal ? "with" : "without"} the mask`, () => {
    const found = run(models[name], ids, positionsOf(change, ids.length, by), causal);
    assert.equal(found.logits.length, logits.length * logits[0].length);
    assert.ok(apart(found.logits, logits) < 1e-3, `logits off by ${apart(found.logits, logits)}`);
    assert.ok(apart(found.attention[1][2], attention) < 1e-4);
  });
}

for (const name of Object.keys(globalThis.posembedModels).filter((each) => models[each].causal)) {
  test(`what is kept of the beginning of a text is what is computed anew: ${name}`, () => {
    let last;
    // Typed, taken back, changed in the middle, with a gap, and without the mask.
    const texts = [[1], [5], [ids.length], [9], [20, 3], [20, 3, "gap"], [20, 3, "gap", false], [24, 0, "zeroed"]];
    for (const [n, at = 0, change = "trained", causal = true] of texts) {
      const own = ids.slice(0, n).map((id, k) => (k === at ? id : ids[(k * 7) % n]));
      const positions = positionsOf(change, n, 9);
      last = run(models[name], own, positions, causal, last);
      const anew = run(models[name], own, positions, causal);
      assert.deepEqual(last.logits, anew.logits);
      assert.deepEqual(last.attention, anew.attention);
    }
  });
}

test("the losses of a causal model are those of the place before, and the guess is the chosen place's", () => {
  const setting = { change: "trained", by: 1, causal: true, at: 4 };
  const [found] = [...studied(models["causal-rope"], ids, setting)];
  const n = state.characters.length;
  assert.equal(found.losses[0], null);
  assert.ok(Math.abs(found.losses[4] + Math.log(found.guess[ids[4]])) < 1e-12);
  assert.equal(found.row, 3);
  assert.ok(apart(found.guess, [...chances(found.read.logits, 3, n)]) < 1e-12);
  assert.equal([...studied(models["causal-rope"], ids, { ...setting, at: 0 })][0].guess, null);
});

test("a masked model's losses are of each place hidden in turn", () => {
  const setting = { change: "trained", by: 1, causal: true, at: 5 };
  const found = [...studied(models["masked-nopos"], ids, setting)];
  assert.ok(found[0].losses.every((loss) => loss === null), "what is there at once");
  assert.ok(apart(found.at(-1).losses, hidden) < 1e-3);
  // Another place asks for no losses anew.
  const next = [...studied(models["masked-nopos"], ids, { ...setting, at: ids.length }, found.at(-1))];
  assert.equal(next.length, 1);
  assert.deepEqual(next[0].losses, found.at(-1).losses);
  assert.equal(next[0].row, ids.length);
});

test("positions", () => {
  assert.deepEqual(positionsOf("trained", 3, 9), [0, 1, 2]);
  assert.deepEqual(positionsOf("stretched", 3, 9), [0, 2, 4]);
  assert.deepEqual(positionsOf("gap", 5, 9), [0, 1, 2, 12, 13]);
  assert.deepEqual(positionsOf("shifted", 2, 9), [9, 10]);
  assert.equal(positionsOf("zeroed", 2, 9), null);
  // No change asks a table for a row that does not come with it.
  for (const change of ["trained", "stretched", "gap", "shifted"]) assert.ok(Math.max(...positionsOf(change, 64, 64)) < 128);
});

test("what no training text had", () => {
  const gap = positionsOf("gap", 4, 61);
  assert.deepEqual(gap, [0, 1, 63, 64]);
  assert.deepEqual(untrained("rope", gap), [0, 0, 1, 2]);
  assert.deepEqual(untrained("alibi", positionsOf("shifted", 4, 64)), [0, 0, 0, 0]);
  assert.deepEqual(untrained("learned", positionsOf("shifted", 3, 62)), [0, 2, 3]);
  assert.deepEqual(untrained("nopos", gap), [0, 0, 0, 0]);
  assert.deepEqual(untrained("rope", null), []);
});

test("characters", () => {
  assert.deepEqual(encoded(state.characters, "ab💡"), [state.characters.indexOf("a"), state.characters.indexOf("b"), 0]);
  assert.equal(meanOf([null, 1, 3]), 2);
  assert.equal(meanOf([null]), null);
  assert.deepEqual(likeliest([0.1, 0.5, 0.15, 0.05, 0.12, 0.08], [..."abcdef"]).map(([each]) => each), [..."bceaf"]);
});

test("a shuffle is another order of the same words", () => {
  const words = ["a", "b", "c", "a"];
  for (const _ of range(1, 30)) {
    const next = shuffled(words);
    assert.deepEqual([...next].sort(), [...words].sort());
    assert.notDeepEqual(next, words);
  }
  assert.notDeepEqual(shuffled(words, () => 1 - 2 ** -53), words);
  assert.deepEqual(shuffled(["a"]), ["a"]);
});
