import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { unpacked, seen, about, default: figure } = await import(pathToFileURL(join(folder, "figure.mjs")));
const [clock, padding] = state.repairs;

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("the numbers of a map", () => {
  const values = unpacked(clock.mended, clock.most);
  assert.equal(values[0], 0);
  assert.equal(values[3], null);
  assert.ok(Math.abs(values[1] - 1) < clock.most / 254);
});

test("broken, mended, and where they differ", () => {
  assert.equal(seen(clock, "broken").verdict, "The property is violated: both tokens are alike");
  assert.equal(seen(clock, "mended").verdict, "The property holds: by place");
  const { values, verdict, most } = seen(clock, "difference");
  assert.equal(verdict, "2 of 4 cells differ, by about 1/127 of the largest number or more.");
  assert.equal(values[0], 0);
  // Where one has nothing, all of the other is the difference.
  assert.equal(values[3], 2);
  assert.equal(most, 2);
  assert.match(seen(padding, "difference").verdict, /^15 of 15 cells differ, /);
});

test("a number is said with as many places as it has steps", () => {
  assert.equal(about(null, 1), "nothing");
  assert.equal(about(-0.531, 1), "about −0.53");
  assert.equal(about(12.4, 100), "about 12");
  assert.equal(about(0.00531, 0.01), "about 0.0053");
});
