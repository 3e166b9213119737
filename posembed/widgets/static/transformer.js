// A small Transformer in the reader's browser: pre-norm, as `posembed.models.LanguageModel`, from weights of eight bits.

const EPSILON = 1e-5;

/** The weights of a file: its bytes are whole numbers, row after row, and behind all of them a scale for each row. */
export async function unpacked([about, text]) {
  const bytes = await inflated(sevens(text));
  const places = bytes.length - 2 * about.tensors.reduce((sum, [, rows]) => sum + rows, 0);
  const scales = new DataView(bytes.buffer, bytes.byteOffset + places);
  const numbers = new Int8Array(bytes.buffer, bytes.byteOffset, places);
  const weights = {};
  let [at, row] = [0, 0];
  for (const [name, rows, columns] of about.tensors) {
    const tensor = (weights[name] = new Float64Array(rows * columns));
    for (let k = 0; k < tensor.length; k += columns) {
      const scale = half(scales.getUint16(2 * row++, true));
      for (let column = 0; column < columns; column++) tensor[k + column] = scale * numbers[at++];
    }
  }
  return { ...about, weights };
}

/** Bytes of a text whose characters hold seven bits each; what may not stand in a string is 128 further on. */
export function sevens(text) {
  const bytes = new Uint8Array(Math.floor((7 * text.length) / 8));
  let [held, n, at] = [0, 0, 0];
  for (let k = 0; at < bytes.length; k++) {
    held = (held << 7) | (text.charCodeAt(k) & 127);
    n += 7;
    if (n >= 8) {
      n -= 8;
      bytes[at++] = held >> n;
      held &= (1 << n) - 1;
    }
  }
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A number of 16 bits, which is not subnormal. */
const half = (bits) => 2 ** ((bits >> 10) - 15) * (1 + (bits & 1023) / 1024);

/** What a model says of a text: its logits, "place character", and the attention of each layer and head, "query key".
 *
 * `positions` are those of the characters, null for none at all; `causal` is whether a place sees no later one. Of an
 * earlier result, `last`, what it says of the same beginning is kept. */
export function run(model, ids, positions, causal, last) {
  const { weights, scheme, heads, layers } = model;
  const [width, n_words] = [weights.norm.length / 2, weights.words.length / (weights.norm.length / 2)];
  const [n, from] = [ids.length, shared({ ids, positions, causal }, last)];
  const x = new Float64Array((n - from) * width);
  range(from, n - 1).forEach((place, k) => {
    const row = x.subarray(k * width, (k + 1) * width);
    row.set(weights.words.subarray(ids[place] * width, (ids[place] + 1) * width));
    if (scheme === "learned" && positions) add(row, weights.position.subarray(positions[place] * width, (positions[place] + 1) * width));
  });
  const begun = (rows, columns) => {
    const whole = new Float64Array(n * columns);
    if (from) whole.set(rows.subarray(0, from * columns));
    return whole;
  };
  const states = range(0, layers - 1).map((layer) => {
    const its = (name) => weights[`${layer}.${name}`];
    const given = normalised(x, its("attention_norm"), width);
    const [query, key, value] = ["query", "key", "value"].map((name) => linear(given, its(name), its(`${name}.bias`)));
    if (scheme === "rope" && positions) for (const rows of [query, key]) turn(rows, positions.slice(from), width / heads, heads);
    const [keys, values] = ["keys", "values"].map((name) => begun(last?.states[layer][name], width));
    keys.set(key, from * width);
    values.set(value, from * width);
    const slopes = scheme === "alibi" && positions ? range(1, heads).map((head) => 2 ** ((-8 * head) / heads)) : null;
    const { mixed, shares } = attend({ query, keys, values, from, n, heads, causal, slopes, positions, last: last?.states[layer].shares });
    add(x, linear(mixed, its("output"), its("output.bias")));
    const inner = linear(normalised(x, its("feed_forward_norm"), width), its("in"), its("in.bias"));
    for (let k = 0; k < inner.length; k++) inner[k] = gelu(inner[k]);
    add(x, linear(inner, its("out"), its("out.bias")));
    return { keys, values, shares };
  });
  const logits = begun(last?.logits, n_words);
  logits.set(linear(normalised(x, weights.norm, width), weights.words, null, n_words), from * n_words);
  return { ids, positions, causal, states, logits, attention: states.map(({ shares }) => shares) };
}

/** How many places at the beginning no change has reached: none where a place sees later ones. */
function shared(now, last) {
  if (!last || !now.causal || !last.causal || !now.positions !== !last.positions) return 0;
  const most = Math.min(now.ids.length, last.ids.length);
  const changed = range(0, most - 1).find((k) => now.ids[k] !== last.ids[k] || now.positions?.[k] !== last.positions?.[k]);
  return changed ?? most;
}

function add(x, y) {
  for (let k = 0; k < x.length; k++) x[k] += y[k];
}

/** Rows brought to mean zero and variance one, and then to the norm's own scale and shift, which stand side by side. */
function normalised(x, norm, width) {
  const y = new Float64Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    let [mean, square] = [0, 0];
    for (let k = start; k < start + width; k++) mean += x[k] / width;
    for (let k = start; k < start + width; k++) square += (x[k] - mean) ** 2 / width;
    const scale = 1 / Math.sqrt(square + EPSILON);
    for (let k = 0; k < width; k++) y[start + k] = (x[start + k] - mean) * scale * norm[k] + norm[width + k];
  }
  return y;
}

/** Rows times a matrix "out in". Four rows and two of the matrix at a time, so that each number is read once for many. */
function linear(x, matrix, bias, out = bias.length) {
  const width = matrix.length / out;
  const n = x.length / width;
  const y = new Float64Array(n * out);
  for (let first = 0; first < n; first += 4) {
    // Of fewer than four rows, or two of the matrix, the last is taken again.
    const [a, b, c, d] = [0, 1, 2, 3].map((k) => Math.min(first + k, n - 1));
    const [ax, bx, cx, dx] = [a * width, b * width, c * width, d * width];
    for (let one = 0; one < out; one += 2) {
      const two = Math.min(one + 1, out - 1);
      const [m, o] = [one * width, two * width];
      // No list is taken apart in here, which would be slow.
      let a1 = 0, b1 = 0, c1 = 0, d1 = 0, a2 = 0, b2 = 0, c2 = 0, d2 = 0;
      for (let k = 0; k < width; k++) {
        const v = matrix[m + k], w = matrix[o + k], p = x[ax + k], q = x[bx + k], r = x[cx + k], s = x[dx + k];
        a1 += v * p; b1 += v * q; c1 += v * r; d1 += v * s;
        a2 += w * p; b2 += w * q; c2 += w * r; d2 += w * s;
      }
      const [i, j] = bias ? [bias[one], bias[two]] : [0, 0];
      y[a * out + one] = a1 + i; y[b * out + one] = b1 + i; y[c * out + one] = c1 + i; y[d * out + one] = d1 + i;
      y[a * out + two] = a2 + j; y[b * out + two] = b2 + j; y[c * out + two] = c2 + j; y[d * out + two] = d2 + j;
    }
  }
  return y;
}

/** Turn the pairs of each head, columns i and i + half, by position times 10000^(-2i / width of a head). */
function turn(rows, positions, own, heads) {
  const angles = frequencies(own, 10000);
  positions.forEach((position, place) => {
    for (let pair = 0; pair < own / 2; pair++) {
      const [cos, sin] = [Math.cos(position * angles[pair]), Math.sin(position * angles[pair])];
      for (const head of range(0, heads - 1)) {
        const one = (place * heads + head) * own + pair;
        const [x, y] = [rows[one], rows[one + own / 2]];
        rows[one] = x * cos - y * sin;
        rows[one + own / 2] = x * sin + y * cos;
      }
    }
  });
}

/** The mean of the values that each query takes, and the shares of each head; those before `from` are the last ones. */
function attend({ query, keys, values, from, n, heads, causal, slopes, positions, last }) {
  const width = keys.length / n;
  const own = width / heads;
  const mixed = new Float64Array(query.length);
  const shares = range(0, heads - 1).map((head) => {
    const whole = new Float64Array(n * n);
    const before = last && Math.sqrt(last[head].length);
    for (let q = 0; q < from; q++) whole.set(last[head].subarray(q * before, q * before + q + 1), q * n);
    for (let q = from; q < n; q++) {
      const [seen, asks] = [causal ? q + 1 : n, (q - from) * width];
      const row = whole.subarray(q * n, q * n + seen);
      let [most, sum] = [-Infinity, 0];
      for (let k = 0; k < seen; k++) {
        let product = 0;
        for (let c = head * own; c < (head + 1) * own; c++) product += query[asks + c] * keys[k * width + c];
        row[k] = product / Math.sqrt(own) - (slopes ? slopes[head] * Math.abs(positions[q] - positions[k]) : 0);
        most = Math.max(most, row[k]);
      }
      for (let k = 0; k < seen; k++) sum += row[k] = Math.exp(row[k] - most);
      for (let k = 0; k < seen; k++) {
        row[k] /= sum;
        for (let c = head * own; c < (head + 1) * own; c++) mixed[asks + c] += row[k] * values[k * width + c];
      }
    }
    return whole;
  });
  return { mixed, shares };
}

/** x times the share of a normal distribution below x; Abramowitz and Stegun's formula 7.1.26, off by 1.5e-7 at most. */
function gelu(x) {
  const z = Math.abs(x) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * z);
  const above = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-z * z);
  return (x * (x < 0 ? above : 2 - above)) / 2;
}

/** The chances of a row of logits. */
export function chances(logits, row, n) {
  const its = logits.subarray(row * n, (row + 1) * n);
  const most = Math.max(...its);
  const powers = its.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
