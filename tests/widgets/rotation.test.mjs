import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.POSEMBED_FIXTURES;
const { state, cases } = JSON.parse(readFileSync(join(folder, "fixtures.json"), "utf-8"));
const {
  turnedBy, apartBy, range, SCENES, HANDS, tasks, turned, pairs, rotate, sinusoid, shifted, product, offsetScene, ropeScene, spiral, quarters, fixed, apart, STATE,
  default: figure,
} = await import(pathToFileURL(join(folder, "figure.mjs")));

// Angles up to a few hundred, in double precision.
const TOLERANCE = 1e-12;
const furthest = (a, b) => {
  assert.equal(a.length, b.length);
  return Math.max(...a.map((value, k) => Math.abs(value - b[k])));
};
const close = (a, b) => assert.ok(furthest(a, b) <= TOLERANCE, `off by ${furthest(a, b)}`);

test("the module needs no page until it is rendered", () => {
  assert.equal(typeof globalThis.document, "undefined");
  assert.equal(typeof figure.render, "function");
});

test("all that the figure reads is in its state", () => {
  assert.deepEqual(STATE.filter((name) => !(name in state)), []);
  assert.ok("views" in state);
});

test("a quarter turn leads from right to up", () => {
  close(turned([1, 0], Math.PI / 2), [0, 1]);
  close(turned([0, 1], Math.PI / 2), [-1, 0]);
  close(turned([3, 4], 0), [3, 4]);
});

test("pairs", () => assert.deepEqual(pairs([1, 2, 3, 4]), [[1, 2], [3, 4]]));

for (const { base, query, key, positions, rows, queries, keys, products } of cases) {
  const name = `width ${query.length}, base ${base}`;

  test(`rows are those of posembed.sinusoidal: ${name}`, () => {
    positions.forEach((position, k) => close(sinusoid(position, query.length, base), rows[k]));
  });

  test(`an offset turns a row into the row further on: ${name}`, () => {
    positions.forEach((first, a) => positions.forEach((second, b) => close(shifted(rows[a], second - first, base), rows[b])));
  });

  test(`vectors are turned as posembed's RoPE turns them: ${name}`, () => {
    positions.forEach((position, k) => {
      close(rotate(query, position, base), queries[k]);
      close(rotate(key, position, base), keys[k]);
    });
  });

  test(`products are those of posembed's RoPE: ${name}`, () => {
    positions.forEach((m, a) => positions.forEach((n, b) => {
      const scene = ropeScene({ ...state, base, query, key, query_position: m, key_position: n, shift: 0 });
      close(scene.here, [n - m, products[a][b]]);
      assert.equal(product(rotate(query, m, base), rotate(key, n, base)), scene.here[1]);
    }));
  });
}

const rope = (query_position, key_position, shift = 0) => ropeScene({ ...state, query_position, key_position, shift });

test("a product stays when both shift, and only then", () => {
  for (const shift of [1, 7, 100]) close(rope(9, 3, shift).here, rope(9, 3).here);
  assert.ok(Math.abs(rope(10, 3).here[1] - rope(9, 3).here[1]) > 0.01);
  assert.ok(Math.abs(rope(9, 4).here[1] - rope(9, 3).here[1]) > 0.01);
});

test("the curve is the product at each offset, also where the key is ahead", () => {
  const curve = new Map(rope(0, 0).curve);
  for (const [m, n] of [[9, 3], [3, 9], [32, 0], [0, 32], [5, 5]]) {
    close([curve.get(n - m)], [rope(m, n, 40).here[1]]);
  }
  assert.deepEqual([Math.min(...curve.keys()), Math.max(...curve.keys())], [-32, 32]);
});

test("a face of RoPE: the vectors before and after, and their numbers", () => {
  const { faces, reach } = rope(9, 3, 2);
  const [query, key] = [rotate(state.query, 11, state.base), rotate(state.key, 5, state.base)].map(pairs);
  assert.equal(faces.length, 4);
  faces.forEach(({ hands, rows }, i) => {
    assert.deepEqual(hands.map(([, end]) => end), [pairs(state.query)[i], pairs(state.key)[i], query[i], key[i]]);
    assert.deepEqual(rows.slice(0, 2), [["query", ...query[i]], ["key", ...key[i]]]);
    hands.forEach(([, [a, b]]) => assert.ok(Math.hypot(a, b) <= reach + TOLERANCE));
  });
  const parts = faces.map(({ rows }) => rows[2][1]);
  close([parts.reduce((sum, part) => sum + part)], [rope(9, 3, 2).here[1]]);
});

test("a face of the sinusoids: the turned hand ends in the ring", () => {
  const scene = offsetScene({ ...state, position: 3, offset: 5 });
  const [three, eight] = [3, 8].map((position) => pairs(sinusoid(position, 8, state.base)));
  scene.faces.forEach(({ hands: [[, from], [, to]], ring, rows, arc }, i) => {
    close(to, ring);
    assert.deepEqual([...from].reverse(), three[i]);
    assert.deepEqual([...ring].reverse(), eight[i]);
    close(from, [Math.cos(arc[0]), Math.sin(arc[0])]);
    close(to, [Math.cos(arc[1]), Math.sin(arc[1])]);
    assert.deepEqual(rows.map(([name]) => name), ["row 3", "turned", "row 8"]);
    assert.deepEqual([rows[0].slice(1), rows[2].slice(1)], [three[i], eight[i]]);
    close(rows[1].slice(1), eight[i]);
  });
  assert.ok(scene.off < 1e-14);
});

test("the turn is the same wherever it starts", () => {
  const turns = (position) => offsetScene({ ...state, position, offset: 5 }).faces.map(({ arc: [from, to] }) => to - from);
  close(turns(0), turns(40));
});

test("the product of two rows is on the curve, wherever they stand", () => {
  for (const position of [0, 3, 40]) {
    const { here: [offset, value], curve } = offsetScene({ ...state, position, offset: 5 });
    assert.equal(offset, 5);
    close([value], [new Map(curve).get(5)]);
  }
});

test("curves have four points for each step", () => assert.deepEqual(quarters(-1, 0), [-1, -0.75, -0.5, -0.25, 0]));

test("an arc goes from angle to angle, wider with each round", () => {
  const points = spiral([1, 1 + 6 * Math.PI]);
  const angles = (points.map(([a, b]) => Math.atan2(b, a)));
  close([angles[0], angles.at(-1)], [1, 1]);
  const radii = points.map(([a, b]) => Math.hypot(a, b));
  radii.slice(1).forEach((radius, k) => assert.ok(radius > radii[k]));
  assert.ok(radii.at(-1) < 0.8);
  assert.equal(spiral([2, 2]).length, 2);
});

test("the longest arc of the sliders stays inside its clock", () => {
  const radii = spiral([0, state.farthest.offset]).map(([a, b]) => Math.hypot(a, b));
  assert.ok(Math.max(...radii) < 0.8);
});

test("who stands ahead", () => {
  assert.deepEqual([4, -3, 0].map(apart), ["4 ahead of", "3 behind", "at the place of"]);
});

test("numbers are shown with a real minus and no minus zero", () => {
  assert.deepEqual([1.005, -0.5, -0.001, 0].map((value) => fixed(value, 2)), ["1.00", "−0.50", "0.00", "0.00"]);
  assert.equal(fixed(-0.7936, 3), "−0.794");
});

test("a pointer turns the shorter way round, as often as it goes", () => {
  close([turnedBy(0, 1), turnedBy(3, -3), turnedBy(-3, 3), turnedBy(2, 2)], [1, 2 * Math.PI - 6, 6 - 2 * Math.PI, 0]);
  const angles = range(0, 40).map((k) => Math.atan2(Math.sin(k / 2), Math.cos(k / 2)));
  close([angles.slice(1).reduce((sum, angle, k) => sum + turnedBy(angles[k], angle), 0)], [20]);
});

test("an offset moves the key, and the query where the key has no place", () => {
  const places = ({ query_position: query, key_position: key }) => [query, key];
  assert.deepEqual(places(apartBy(16, 9, 32)), [9, 25]);
  assert.deepEqual(places(apartBy(30, 9, 32)), [2, 32]);
  assert.deepEqual(places(apartBy(-20, 9, 32)), [20, 0]);
  for (const offset of range(-32, 32)) for (const query of range(0, 32)) {
    const [q, k] = places(apartBy(offset, query, 32));
    assert.ok(k - q === offset && Math.min(q, k) >= 0 && Math.max(q, k) <= 32);
  }
});

test("the two hands that can be dragged are the last of a face, and stand where the sliders do", () => {
  for (const [view, names] of Object.entries(HANDS)) {
    const scene = SCENES[view](state);
    assert.deepEqual(scene.moves.map(({ at }) => at), names.map((name) => [state[name], state.farthest[name]]));
    for (const { hands } of scene.faces) assert.deepEqual(hands.slice(0, -2).filter(([look]) => !look.includes("pe-faint")), []);
  }
});

test("there is nothing reached at first, in either view, and each can be", () => {
  const reached = (changes) => {
    const now = { ...state, ...changes };
    return tasks(() => now, () => SCENES[now.view](now)).map(([, test]) => test());
  };
  for (const view of Object.keys(SCENES)) assert.deepEqual(reached({ view }), [false, false, false]);
  const offsets = (k) => range(0, state.farthest.offset).filter((offset) => reached({ view: "offset", offset })[k]);
  assert.deepEqual([offsets(0), offsets(1)], [[9, 10, 22], [20]]);
  assert.ok(reached({ view: "rope", query_position: 0, key_position: 7 })[2]);
});
