import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { points, cases } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { turned, along, said, default: figure } = await import(pathToFileURL(join(folder, "figure.mjs")));

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("points turn about the upright axis, and none leaves its place on it", () => {
  for (const { degrees, wanted } of cases)
    points.forEach((point, k) => turned(point, degrees).forEach((value, axis) =>
      assert.ok(Math.abs(value - wanted[k][axis]) < 1e-12)));
});

test("what is seen alone, from the front, from behind and from either side", () => {
  assert.deepEqual([0, 6, 8, 90, 172, 174, 180, 270, 354, 360].map((degrees) => along(degrees, 0)),
    [true, true, false, false, false, true, true, false, true, true]);
  assert.deepEqual([0, 82, 84, 96, 98, 180, 264, 270, 277].map((degrees) => along(degrees, 90)),
    [false, false, true, true, false, false, true, true, false]);
});

test("what is said", () => {
  assert.equal(said(180), "Turned by 180°: component 1 across, component 2 up.");
  assert.match(said(270), /: component 3 across/);
  assert.match(said(36), /: components 1 and 3 across/);
});
