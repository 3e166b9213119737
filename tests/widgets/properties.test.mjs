import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { cases } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { unpack, diagonal, spread, offDiagonal, pairs, rises, writer, bounds, valueAxis, placeAxis, sides, studied, account, range, goals, inOrder, differs, default: figure } =
  await import(pathToFileURL(join(folder, "figure.mjs")));

const close = (got, wanted, off, words) => assert.ok(Math.abs(got - wanted) <= off, `${words}: ${got}, not ${wanted}`);
const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
const squares = (numbers) => sum(numbers.map((each) => each ** 2));

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

for (const { packed, values, max_offset: maxOffset, reach, properties, rows, diagonals } of cases) {
  const { name, n, unit, future } = packed;
  const matrix = { ...packed, ...unpack(packed) };
  // What a packed value may be off by, in units: half a step, and a whole one at the very end.
  const off = 2 ** -16;
  const title = `${name}, offsets up to ${maxOffset}`;

  test(`values are unpacked: ${title}`, () => {
    assert.deepEqual([matrix.values.length, matrix.order.length], [n, n]);
    matrix.values.forEach((row, i) => row.forEach((value, j) => {
      if (values[i][j] === null) assert.equal(value, null);
      else close(value, values[i][j], off, `cell ${i}, ${j}`);
    }));
  });

  test(`mirror cells: ${title}`, () => {
    for (const i of range(0, n - 1)) for (const j of range(0, n - 1)) {
      // Cells that are equal are so when they are packed, and none changes places with another.
      const [a, b, x, y] = [values[i][j], values[j][i], matrix.values[i][j], matrix.values[j][i]];
      if (a !== null && b !== null) assert.ok(a === b ? x === y : a > b ? x >= y : x <= y);
    }
  });

  test(`pairs in order are those of the package: ${title}`, () => {
    rows.forEach(({ left, right }, row) => {
      assert.deepEqual(pairs(matrix, row, -1, reach), left, `left of ${row}`);
      if (future === "open") assert.deepEqual(pairs(matrix, row, 1, reach), right, `right of ${row}`);
    });
    const all = range(0, n - 1).flatMap((row) => (future === "open" ? [-1, 1] : [-1]).map((side) => pairs(matrix, row, side, reach)));
    const there = sum(all.map((each) => each.all));
    if (there === 0) assert.equal(properties.monotonicity, null);
    else close(sum(all.map((each) => each.inOrder)) / there, properties.monotonicity, 1e-12, "monotonicity");
  });

  test(`neighbours that rise: ${title}`, () => {
    for (const row of range(0, n - 1)) for (const side of [-1, 1]) {
      const found = new Set(rises(matrix, row, side, reach).map(String));
      for (const distance of range(1, n)) {
        const [near, far] = [row + side * distance, row + side * (distance + 1)];
        const there = far >= 0 && far < n && distance + 1 <= reach;
        if (!there || values[row][far] !== null) assert.equal(found.has(`${near},${far}`), there && values[row][far] > values[row][near]);
      }
    }
  });

  test(`mean and spread of each diagonal: ${title}`, () => {
    diagonals.forEach(({ offset, first, values: wanted, mean, deviation }) => {
      const got = diagonal(matrix, offset);
      assert.deepEqual([got.first, got.along.length], [first, wanted.length]);
      if (wanted.includes(null)) return assert.ok(got.along.every((value) => value === null));
      close(spread(got.along).mean, mean, off, `mean of ${offset}`);
      close(spread(got.along).deviation, deviation, off, `spread of ${offset}`);
    });
  });

  test(`the diagonals and the whole give translation invariance: ${title}`, () => {
    const chosen = diagonals.filter(({ offset, values: [value] }) => offset !== 0 && value !== null);
    const within = sum(chosen.map(({ offset, values: each }) => each.length * spread(diagonal(matrix, offset).along).deviation ** 2));
    const count = sum(chosen.map(({ values: each }) => each.length));
    assert.equal(offDiagonal(matrix.values).length, count);
    const total = count * spread(offDiagonal(matrix.values)).deviation ** 2;
    if (properties.translation_invariance === null) return close(total, 0, count * off ** 2, "nothing varies");
    // Both roots are lengths of vectors that packing moves by at most this.
    const moved = off * Math.sqrt(count);
    assert.ok(moved < Math.sqrt(total) / 100, "packing is finer than what varies");
    close(1 - within / total, properties.translation_invariance, (5 * moved) / Math.sqrt(total), "translation invariance");
  });

  test(`the mirror cells give symmetry: ${title}`, () => {
    if (future === "absent") return assert.equal(properties.symmetry, null);
    const all = matrix.values.flat();
    const apart = squares(all.map((value, k) => value - matrix.values[k % n][Math.floor(k / n)]));
    const total = n * n * spread(all).deviation ** 2;
    if (properties.symmetry === null) return close(total, 0, n * n * off ** 2, "nothing varies");
    close(1 - apart / (4 * total), properties.symmetry, (5 * off * n) / Math.sqrt(total), "symmetry");
  });

  test(`what is said of a cell: ${title}`, () => {
    const study = studied(packed, maxOffset);
    assert.equal(study.reach, maxOffset ?? n);
    for (const [i, j] of [[0, 0], [n - 1, 0], [0, n - 1], [n >> 1, n >> 2]]) {
      const said = account(study, [i, j]);
      const number = (text) => Number(text.replaceAll("−", "-"));
      // Four digits of the largest value, or of a quarter of it, or three of each number.
      const written = (text, wanted) => close(number(text) / unit, wanted, Math.max(0.001 * study.largest, 0.006 * Math.abs(wanted)), text);
      if (values[i][j] === null) assert.equal(said.value, "not seen");
      else written(said.value, values[i][j]);
      if (values[j][i] === null) assert.equal(said.mirrored, "not seen");
      else written(said.mirrored.split(",")[0], values[j][i]);
      assert.equal(said.mirrored.includes("difference"), values[i][j] !== null && values[j][i] !== null);
      assert.equal(said.line, i === j ? "Main diagonal" : `Diagonal ${String(j - i).replace("-", "−")}`);
      const side = ({ inOrder, all }) => (all ? (inOrder / all).toFixed(3) : "no pairs");
      assert.equal(said.order, `left ${side(rows[i].left)}, ${future === "open" ? `right ${side(rows[i].right)}` : "ahead not seen"}`);
    }
  });
}

test("numbers are written with the same decimals, a real minus and no minus zero", () => {
  const written = (values, ...size) => values.map(writer(...size));
  assert.deepEqual(written([0, -0, -0.00004, 0.0125, -5.875, 1], 1, 5), ["0.000", "0.000", "0.000", "0.013", "−5.875", "1.000"]);
  assert.deepEqual(written([31, 0.25], 2, 31), ["62.00", "0.50"]);
  assert.deepEqual(written([0, 1234.6, 12], 1, 1234), ["0", "1235", "12"]);
  assert.deepEqual(written([0.0512, 0], 1, 0.0512), ["0.05120", "0.00000"]);
  assert.deepEqual(written([0, -1.5, 2e-5], 1e-9, 1), ["0", "−1.50e−9", "2.00e−14"]);
  assert.deepEqual(written([0, -1.5], 1e9, 1), ["0", "−1.50e9"]);
});

test("numbers beside an axis have room for at most five digits or signs, and a minus", () => {
  for (const power of range(-12, 12)) for (const digits of [1, 2.345, 9.999]) {
    const text = writer(10 ** power, digits, true)(-digits);
    assert.ok(text.replace(".", "").length <= 6, text);
    assert.ok(Math.abs(Number(text.replaceAll("−", "-")) / 10 ** power + digits) <= (power < -2 ? 0.5 : 0.05) + 1e-9, text);
  }
});

test("bounds have room between them", () => {
  assert.deepEqual(bounds([3, 1, 2]), [1, 3]);
  assert.deepEqual(bounds([2, 2]), [1.8, 2.2]);
  assert.deepEqual(bounds([0]), [-1, 1]);
  assert.deepEqual(bounds([]), [-1, 1]);
});

test("zero is marked where it has room", () => {
  const ticks = (low, high) => valueAxis([low, high], String).ticks;
  assert.deepEqual(ticks(-1, 1), [-1, 0, 1]);
  assert.deepEqual(ticks(1, 2), [1, 2]);
  assert.deepEqual(ticks(-0.1, 2), [-0.1, 2]);
});

test("places have round names, also where they are counted from another one", () => {
  assert.deepEqual(placeAxis(48, "row").ticks, [0, 10, 20, 30, 40]);
  const offsets = placeAxis(64, "offset", 33);
  assert.deepEqual(offsets.ticks.map(offsets.words), ["−30", "−20", "−10", "0", "10", "20", "30"]);
  assert.deepEqual(placeAxis(2, "row").ticks, [0, 1]);
});

test("a row has two sides without the diagonal, and what is not seen is on neither", () => {
  assert.deepEqual(sides(1, [5, 6, 7, 8]), [[0], [2, 3]]);
  assert.deepEqual(sides(0, [5, null]), [[], []]);
});

test("rows in order and cells that differ are found by their numbers", () => {
  for (const { packed, max_offset: maxOffset } of cases) {
    const matrix = studied(packed, maxOffset);
    const { n, future, properties: { monotonicity, symmetry } } = matrix;
    const places = range(0, n - 1).flatMap((row) => range(0, n - 1).map((column) => [row, column]));
    if (monotonicity === 1 && n > 2) assert.ok(places.some((place) => inOrder(matrix, place)), packed.name);
    if (places.every((place) => inOrder(matrix, place))) assert.equal(monotonicity, 1);
    if (symmetry === 1 && future === "open") assert.ok(!places.some((place) => differs(matrix, place)), packed.name);
    if (future === "open" && symmetry !== null && symmetry < 0.999) assert.ok(places.some((place) => differs(matrix, place)), packed.name);
  }
});

test("nothing is asked for that the first matrix has, or none", () => {
  const of = (...all) => goals(all.map(([monotonicity, symmetry]) => ({ properties: { monotonicity, symmetry } }))).length;
  assert.equal(of([0.9, 1], [1, 0.5]), 2);
  assert.equal(of([0.9, 1], [0.8, 1], [0.5, null]), 0);
  assert.equal(of([1, 0.5], [1, 0.5]), 0);
  assert.equal(of([0.9, 1]), 0);
});
