import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state, cases, positions } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const {
  sinusoids, wavelengths, products, firstRise, study, aboutWaves, aboutRise, comparison, inPositions, quarters,
  frequencies, scale, range, grouped, signed, tiny, lineThrough, fallsBeyond, allWithin, FARTHEST, N_OFFSETS, default: figure,
} = await import(pathToFileURL(join(folder, "figure.mjs")));

// Angles up to 2000, whose sines double precision gives to about 1e-13.
const TOLERANCE = 1e-12;
const furthest = (a, b) => {
  assert.equal(a.length, b.length);
  return Math.max(...a.map((value, k) => Math.abs(value - b[k])));
};
const close = (a, b, tolerance = TOLERANCE) => assert.ok(furthest(a, b) <= tolerance, `off by ${furthest(a, b)}`);

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("there is a case for every width and base that a reader can choose", () => {
  assert.equal(cases.length, state.widths.length * state.bases.length);
});

for (const { d_model: dModel, base, rows, products: wanted, rise, wavelengths: waves } of cases) {
  test(`rows are those of posembed.sinusoidal: width ${dModel}, base ${base}`, () => {
    const table = sinusoids(Math.max(...positions) + 1, dModel, base);
    positions.forEach((position, k) => close(table[position], rows[k]));
  });

  test(`dot products are those of its rows: width ${dModel}, base ${base}`, () => {
    const table = sinusoids(state.n_positions + N_OFFSETS, dModel, base);
    for (const [position, values] of Object.entries(wanted)) {
      close(products(table, Number(position), N_OFFSETS), values, TOLERANCE * dModel);
    }
  });

  test(`the first rise is that of its rows: width ${dModel}, base ${base}`, () => {
    assert.equal(firstRise(dModel, base), rise);
    assert.equal(firstRise(dModel, base, rise), rise);
    assert.equal(firstRise(dModel, base, rise - 1), null);
  });

  test(`wavelengths: width ${dModel}, base ${base}`, () => {
    wavelengths(dModel, base).forEach((wave, pair) => assert.ok(Math.abs(wave / waves[pair] - 1) < 1e-14));
    assert.equal(wavelengths(dModel, base).length, dModel / 2);
  });
}

test("the search for a rise goes far enough", () => assert.ok(FARTHEST >= 2048));

test("the rises that the chapter names", () => {
  assert.equal(firstRise(768, 10000), 44);
  assert.equal(firstRise(64, 10000), 6);
});

test("a study holds what is drawn", () => {
  // A page would paint the picture.
  globalThis.document = { createElement: () => ({
    setAttribute() {}, append() {}, toDataURL: () => "picture",
    getContext: () => ({ createImageData: () => ({ data: new Uint8ClampedArray(4 * 2 * 4) }), putImageData() {} }),
  }) };
  const table = study(2, 4, 100);
  delete globalThis.document;
  assert.equal(table.rows.length, 2 + N_OFFSETS);
  assert.deepEqual(table.fromRowZero, products(table.rows, 0, N_OFFSETS));
  assert.deepEqual([table.nRows, table.dModel, table.rise, table.image], [2, 4, firstRise(4, 100), "picture"]);
  assert.deepEqual(table.waves, wavelengths(4, 100));
});

test("wavelengths in words count the pairs that come round", () => {
  assert.equal(aboutWaves({ nRows: 128, waves: [6.2832, 62.832, 128, 128.01, 62831.85] }),
    "From 6.28 to 62,832 positions; 3 of 5 pairs come round within 128 rows.");
});

test("a rise in words", () => {
  assert.equal(aboutRise(44), "Falls up to offset 43, and rises for the first time from 43 to 44.");
  assert.equal(aboutRise(null), "Falls at every offset up to 4,096.");
});

test("a comparison says what it found", () => {
  const rows = sinusoids(8 + N_OFFSETS, 64, 10000);
  const fromRowZero = products(rows, 0, N_OFFSETS);
  assert.match(comparison({ rows, fromRowZero }, 7), /^Row 7 times row 7 \+ k is row 0 times row k, for k from 0 to 128: the largest difference is [1-9]e−1\d\.$/);
  assert.match(comparison({ rows, fromRowZero }, 0), /largest difference is 0\.$/);
  const other = fromRowZero.map((value, k) => value + (k === 5 ? 0.25 : 0));
  assert.match(comparison({ rows, fromRowZero: other }, 7), / is not row 0 times row k, .* difference is [23]e−1\.$/);
});

test("positions are shown with decimals only where they are few", () => {
  assert.deepEqual([6.283185, 99.994, 100.4, 62831.85].map(inPositions), ["6.28", "99.99", "100", "62,832"]);
});

test("ticks are whole", () => {
  assert.deepEqual(quarters(128), [0, 32, 64, 96]);
  assert.deepEqual(quarters(2), [0, 1]);
  assert.deepEqual(quarters(9), [0]);
});

test("frequencies begin at one and fall by one factor", () => {
  assert.deepEqual(frequencies(4, 100), [1, 0.1]);
  assert.deepEqual(frequencies(2, 7), [1]);
  assert.equal(frequencies(768, 10000).length, 384);
});

test("a place on an axis", () => {
  const linear = scale({ from: -1, to: 3 }, 100, 0);
  assert.deepEqual([-1, 0, 3].map(linear), [100, 75, 0]);
  const log = scale({ from: 1, to: 10000, log: true }, 0, 400);
  [1, 100, 10000].forEach((value, k) => assert.ok(Math.abs(log(value) - 200 * k) < 1e-12));
});

test("ranges hold both ends", () => {
  assert.deepEqual(range(2, 4), [2, 3, 4]);
  assert.deepEqual(range(-1, 1), [-1, 0, 1]);
  assert.deepEqual(range(1, 0), []);
});

test("numbers in words", () => {
  assert.deepEqual([0, -3, 999, 1000, 47117, 1000000, -12345].map(grouped),
    ["0", "−3", "999", "1,000", "47,117", "1,000,000", "−12,345"]);
  assert.equal(signed(-0.5), "−0.5");
});

test("rounding errors in words", () => assert.deepEqual([3.2e-14, 0, 0.25].map(tiny), ["3e−14", "0", "3e−1"]));

test("a line through points", () => assert.equal(lineThrough([[0, 1], [2.345, 6]]), "M0.00 1.00L2.35 6.00"));

test("what there is to try is not there at first, and some width and base have it", () => {
  const [first] = cases.filter(({ d_model: width, base }) => width === state.d_model && base === state.base);
  const reached = ({ rise, wavelengths: waves }) => [fallsBeyond({ rise }, 40), allWithin({ nRows: state.n_positions, waves })];
  assert.deepEqual(reached(first), [false, false]);
  assert.ok([0, 1].every((k) => cases.some((each) => reached(each)[k])));
  assert.ok(fallsBeyond({ rise: null }, 40));
});
