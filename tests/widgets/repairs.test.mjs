import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const { unpacked, changed, outline, kept, legend, said, default: figure } = await import(pathToFileURL(join(folder, "figure.mjs")));
const maps = state.maps.map((packed) => unpacked(packed, state.most));
const cells = changed(...maps, state.most);

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("the numbers of a map", () => {
  assert.equal(maps[1][0], 0);
  assert.equal(maps[1][3], null);
  assert.ok(Math.abs(maps[1][1] - 1) < state.most / 254);
});

test("what is changed, with what came back in one alone", () => {
  assert.deepEqual(cells, [false, true, false, true]);
  assert.deepEqual(changed([1, 1], [1.009, 1.02], 1), [false, true]);
});

test("a frame has the edges between what is changed and what is not, and no others", () => {
  assert.deepEqual(outline(cells, [2, 2]).match(/M[^M]+/g).sort(), ["M1 0h1", "M1 0v1", "M1 1v1", "M1 2h1", "M2 0v1", "M2 1v1"]);
  assert.equal(outline([false], [1, 1]), "");
  assert.equal(kept(cells, 2), "M0 0h1v1h-1zM0 1h1v1h-1z");
});

test("what is said of the wipe and of a line", () => {
  const say = (wipe, line) => said({ lines: state.lines, cells, columns: 2, wipe, line });
  assert.equal(say(0.5, -1), "Broken on the left, mended from column 1 on. Which line is to blame? Press it.");
  assert.match(say(0, -1), /^All is mended\./);
  assert.match(say(1, -1), /^All is broken\./);
  assert.match(say(1, 1), /Not that line: the mended code has it too\.$/);
  assert.match(say(1, 2), /This line is to blame: it changes 2 of 4 cells/);
  const two = [["def f():", false], ["  a", true], ["  b", true]];
  assert.match(said({ lines: two, cells, columns: 2, wipe: 1, line: 1 }), /This line is one of 2 to blame: they change 2 of 4 cells/);
});

test("colours that are not there are not explained", () => {
  assert.equal(legend([-1, 0]), "Blue: below zero, pale: zero");
  assert.equal(legend([1, null, -1]), "Orange: above zero, blue: below zero, pale: zero, dark grey: nothing came back");
});
