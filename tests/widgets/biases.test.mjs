import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state, buckets, clips, shares, cases, rounding } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { bucket, clip, share, sharing, biases, softmax, halfWithin, vertical, ticks, shown, percent, span, account, range, default: figure } =
  await import(pathToFileURL(join(folder, "figure.mjs")));

const furthest = (a, b) => Math.max(...a.map((value, k) => Math.abs(value - b[k])));
const formOf = (name, objective) => {
  const { forms } = state.panels.find((panel) => panel.name === name);
  return forms.both ?? forms[objective];
};

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

for (const { title, rule, offsets, wanted } of buckets) {
  test(`buckets are those of ${title}`, () => {
    assert.deepEqual(offsets.map((offset) => bucket(offset, rule)), wanted);
  });

  test(`offsets that share a bucket of ${title}`, () => {
    const [from, to] = [offsets[0], offsets.at(-1)];
    offsets.forEach((offset, k) => {
      const [first, last] = sharing(offset, rule, from, to);
      const same = offsets.filter((_, other) => wanted[other] === wanted[k]);
      assert.deepEqual([first, last], [same[0], same.at(-1)], `${offset}`);
    });
  });
}

for (const { limit, offsets, wanted } of clips) {
  test(`offsets are clipped as Shaw's are: ${limit}`, () => {
    assert.deepEqual(offsets.map((offset) => clip(offset, limit)), wanted);
    const rule = { kind: "clip", limit };
    for (const offset of offsets) {
      const beyond = Math.abs(offset) >= limit;
      const wanted = !beyond ? [offset, offset] : offset < 0 ? [offsets[0], -limit] : [limit, offsets.at(-1)];
      assert.deepEqual(sharing(offset, rule, offsets[0], offsets.at(-1)), wanted);
    }
  });
}

test("without a rule every offset stands for itself", () => {
  for (const kind of ["line", "log", "power", "share", undefined]) assert.deepEqual(sharing(-3, { kind }, -9, 0), [-3, -3]);
});

for (const { rule, position, wanted } of shares) {
  test(`what FIRE's network reads: ${JSON.stringify(rule)}, query at ${position}`, () => {
    const got = wanted.map((_, key) => share(key - position, position, rule));
    // Two logarithms and a quotient, of numbers near 1, in double precision on both sides.
    assert.ok(furthest(got, wanted) < 1e-14);
  });
}

test("there is a case for each scheme, objective and position", () => {
  const expected = state.positions.length * state.objectives.length * state.panels.length;
  assert.equal(cases.length, expected - state.positions.length); // FIRE is causal only
});

for (const { name, objective, position, from, to, biases: wanted, weights } of cases) {
  test(`${name}, ${objective}, query at ${position}`, () => {
    assert.equal(wanted.length, state.n_heads);
    wanted.forEach((row, k) => {
      const got = biases(formOf(name, objective), state.positions, k + 1, position, from, to);
      assert.equal(got.length, to - from + 1);
      assert.ok(furthest(got, row) <= rounding, "biases");
      // A logit that is off by at most e changes a weight by at most the factor exp(2 e).
      assert.ok(furthest(softmax(got), weights[k]) <= Math.expm1(2 * rounding), "weights");
    });
  });

  test(`softmax of the biases themselves: ${name}, ${objective}, query at ${position}`, () => {
    // Sums of up to 257 terms in another order than torch's.
    wanted.forEach((row, k) => assert.ok(furthest(softmax(row), weights[k]) < 1e-14));
  });

  test(`half of the weight: ${name}, ${objective}, query at ${position}`, () => {
    for (const row of weights) {
      const distance = halfWithin(row, from);
      const within = (most) => row.reduce((sum, weight, k) => sum + (Math.abs(from + k) <= most ? weight : 0), 0);
      assert.ok(within(distance) > 0.5 - 1e-8);
      assert.ok(within(distance - 1) < 0.5);
      assert.equal(halfWithin(row.map((weight) => 100 * weight), from), distance, "in percent");
    }
  });
}

test("weights stand on a logarithmic axis, biases on one with zero", () => {
  const { from, to, log, ticks: marks } = vertical([60, 40], true);
  assert.ok(log);
  assert.deepEqual([from, to, marks.map(({ words }) => words).join(" ")], [0.01, 100, "0.01 0.1 1 10 100"]);
  assert.deepEqual([vertical([-3, -1], false).from, vertical([-3, -1], false).to], [-3, 0]);
  assert.equal(vertical([0, 0], false).to, 1);
});

test("softmax of large logits is finite", () => {
  assert.deepEqual(softmax([1e4, 1e4]), [0.5, 0.5]);
  assert.deepEqual(softmax([0, -1e300]), [1, 0]);
});

test("half of the weight, counted by hand", () => {
  assert.equal(halfWithin([0.2, 0.2, 0.6], -2), 0);
  assert.equal(halfWithin([0.25, 0.25, 0.25, 0.25], -3), 1);
  assert.equal(halfWithin([0.1, 0.2, 0.4, 0.2, 0.1], -2), 1);
  assert.equal(halfWithin([0.9, 0.05, 0.05], -2), 2);
});

test("ticks are round numbers inside the bounds", () => {
  assert.deepEqual(ticks(-64, 0).map(({ words }) => words), ["−60", "−40", "−20", "0"]);
  assert.deepEqual(ticks(-0.055, 0.07).map(({ words }) => words), ["−0.05", "0.00", "0.05"]);
  assert.deepEqual(ticks(0, 1).map(({ words }) => words), ["0.0", "0.5", "1.0"]);
  for (const [from, to] of [[-64, 0], [-32, 0], [-7.66, 0], [-0.78, 0.63], [0, 39.4], [0, 1.6], [0, 0.8], [-1e-3, 2e-3], [-3e4, 1]]) {
    const found = ticks(from, to);
    assert.ok(found.length >= 2 && found.length <= 5, `${from} ${to}: ${found.length}`);
    found.forEach(({ value, words }) => {
      assert.ok(from - 1e-9 <= value && value <= to + 1e-9);
      assert.ok(Math.abs(Number(words.replace("−", "-")) - value) < 1e-9 * (to - from), `${value} is written ${words}`);
    });
    assert.ok(found.some(({ value }) => value === 0), "zero");
    assert.equal(new Set(found.map(({ words }) => words)).size, found.length);
  }
});

test("numbers are shown with a real minus and no minus zero", () => {
  assert.deepEqual([0, -0, -0.00004, -0.0213, 0.5, -2.5, 9.9994, -10, -64].map(shown),
    ["0.0000", "0.0000", "0.0000", "−0.0213", "0.5000", "−2.500", "9.999", "−10.00", "−64.00"]);
  assert.deepEqual([0, 0.001, 0.005, 1.234, 100].map(percent), ["0.00 %", "< 0.01 %", "0.01 %", "1.23 %", "100.00 %"]);
  assert.deepEqual([span(-3, -3), span(-3, 4)], ["−3", "−3 to 4"]);
});

test("what a scheme makes of an offset, in words", () => {
  const now = { head: 2, position: 64, from: -64, to: 0 };
  const of = (name, offset) => account(formOf(name, "causal").rule, { ...now, offset });
  assert.equal(of("T5", -20), "bucket 17: −20 to −19");
  assert.equal(of("T5", -3), "bucket 3: −3");
  assert.equal(of("Shaw", -20), "clipped to −16");
  assert.equal(of("Shaw", -16), "not clipped");
  assert.equal(of("ALiBi", -20), "s = 1/4");
  assert.equal(account({ kind: "line", slopes: [1, Math.SQRT1_2] }, now), "s = 0.707");
  assert.match(of("KERPLE", -20), /^r₁ = \d\.\d\d, r₂ = \d\.\d\d$/);
  assert.equal(of("FIRE", -64), "L = 16, f reads 1.00");
  assert.equal(of("FIRE", 0), "L = 16, f reads 0.00");
  assert.equal(account({}, now), "");
});

test("a range has both its ends", () => assert.deepEqual(range(-2, 1), [-2, -1, 0, 1]));
