"""Answers as students write them: right ones in other words, and wrong ones by what is wrong with them."""

# The right faults, each with the last of the properties that it breaks.
OTHERS = "{letter: {fault: those[-1] for fault, those in faults.items()} for letter, faults in drawn['faults'].items()}"
RIGHT = {
    "q1": [
        f"""
others = {OTHERS}
found_a, found_b = others['a'], others['b']
def mended_a(n_positions, width):
    pairs, rows = width // 2, []
    for p in range(n_positions):
        lengths = [2 * math.pi * 10000 ** (i / (pairs - 1) if pairs > 1 else 0) for i in range(pairs)]
        angles = [2 * math.pi * p / length for length in lengths]
        rows.append([math.sin(a) for a in angles] + [math.cos(a) for a in angles] + [0.0] * (width % 2))
    return torch.tensor(rows)
def mended_b(mask, table):
    rows = torch.ones_like(mask, dtype=torch.long)
    for text, real in zip(rows, mask.bool()):
        text[real] = torch.arange(2, 2 + int(real.sum()))
    return table[rows]
""",
        """
from posembed import sinusoidal
found_a, found_b = dict(reversed(found_a.items())), dict(reversed(found_b.items()))
def mended_a(n_positions, width):
    return sinusoidal(n_positions, width, layout="tensor2tensor")
def mended_b(mask, table):
    rows = torch.where(mask.bool(), mask.cumsum(1) + 1, torch.ones_like(mask))
    return F.embedding(rows, table)
""",
        """
def mended_a(n_positions, width):
    pairs = width // 2
    ratio = 10000.0 ** (-1 / (pairs - 1)) if pairs > 1 else 1.0
    turns = torch.polar(torch.ones(pairs), torch.tensor([ratio**i for i in range(pairs)]))
    at, rows = torch.ones(pairs, dtype=turns.dtype), []
    for _ in range(n_positions):
        rows.append(torch.cat([at.imag, at.real, torch.zeros(width % 2)]))
        at = at * turns
    return torch.stack(rows)
def mended_b(mask, table):
    place = (mask.cumsum(1) + 1) * (mask == 1) + (mask == 0)
    return torch.stack([table[text] for text in place])
""",
    ],
    "q2": [
        f"""
others = {OTHERS}
from posembed.encodings import alibi_slopes, convert_rope_layout
found_c, found_d, fewest_heads_d = others['c'], others['d'], drawn["fewest_d"]
def mended_c(weight, n_heads):
    return convert_rope_layout(weight, n_heads=n_heads, source="interleaved", target="half")
def mended_d(n_heads, n_keys):
    back = torch.arange(n_keys - 1, -1, -1)
    return -alibi_slopes(n_heads).float()[:, None, None] * back
""",
        """
def mended_c(weight, n_heads):
    out = []
    for head in weight.chunk(n_heads):
        out += [head[0::2], head[1::2]]
    return torch.cat(out)
def mended_d(n_heads, n_keys):
    def slopes(n):
        if n & (n - 1) == 0:
            return [2 ** (-8 * (i + 1) / n) for i in range(n)]
        power = 2 ** math.floor(math.log2(n))
        return slopes(power) + slopes(2 * power)[0::2][: n - power]
    return torch.tensor([[[s * j for j in range(n_keys)]] for s in slopes(n_heads)])
fewest_heads_d = next((n for n in range(1, 99) if (mended_d(n, 2) - piece_d(n, 2)).abs().max() > 1e-6), "none")
""",
        """
def mended_c(weight, n_heads):
    d_head = len(weight) // n_heads
    order = [h * d_head + 2 * i + odd for h in range(n_heads) for odd in (0, 1) for i in range(d_head // 2)]
    return weight[order]
def mended_d(n_heads, n_keys):
    power = 1 << (n_heads.bit_length() - 1)
    base = piece_d(power, 2)[:, 0, 1]
    finer = piece_d(2 * power, 2)[::2, 0, 1]
    return torch.cat([base, finer])[:n_heads].reshape(-1, 1, 1) * (torch.arange(n_keys) - n_keys)
""",
    ],
    "q3": [
        f"""
others = {OTHERS}
found_e, found_f = others['e'], others['f']
def mended_e(x, past):
    tokens, outs = past, []
    for token in x:
        tokens = torch.cat([tokens, token[None]])
        turned = turn(tokens, torch.arange(len(tokens)))
        outs.append((turned @ turned[-1] / x.shape[1] ** 0.5).softmax(0) @ tokens)
    return torch.stack(outs), tokens
def mended_f(ids, mask, words, places):
    outs = []
    for text, real in zip(ids, mask.bool()):
        x = words[text[real]]
        x = x + places[: len(x)]
        outs.append((x @ x[-1] / x.shape[1] ** 0.5).softmax(0) @ x)
    return torch.stack(outs)
""",
        """
def mended_e(x, past):
    tokens = torch.cat((past, x))
    turned = turn(tokens, torch.arange(len(tokens)))
    weights = (turned @ turned.T / x.shape[1] ** 0.5).exp().tril()
    return (weights @ tokens / weights.sum(1, keepdim=True))[len(past):], tokens
def mended_f(ids, mask, words, places):
    first = mask.argmax(dim=1, keepdim=True)
    at = torch.where(mask.bool(), torch.arange(ids.shape[1]) - first, torch.tensor(0))
    x = words[ids] + places[at]
    weights = (x[:, -1:] @ x.transpose(1, 2) / x.shape[2] ** 0.5).masked_fill(mask[:, None] == 0, -1e9).softmax(-1)
    return (weights @ x).squeeze(1)
""",
        """
def mended_e(x, past):
    tokens = torch.cat([past, x])
    at = torch.arange(len(tokens))
    q, k = turn(x, at[len(past):]), turn(tokens, at)
    seen = at[len(past):, None] >= at
    out = F.scaled_dot_product_attention(q[None], k[None], tokens[None], attn_mask=seen[None])
    return out[0], tokens
def mended_f(ids, mask, words, places):
    x = F.embedding(ids, words) + F.embedding((mask.cumsum(-1) - 1).masked_fill(mask == 0, 1), places)
    seen = mask.bool()[:, None].repeat(1, ids.shape[1], 1).tril() | torch.eye(ids.shape[1]).bool()
    return F.scaled_dot_product_attention(x, x, x, attn_mask=seen)[:, -1]
""",
    ],
    "q4": [
        """
def same_in_parts(layer, x):
    def run(sizes):
        cache, outs = None, []
        for part in x.split(sizes):
            out, cache = layer(part, cache)
            outs.append(out)
        return torch.cat(outs)
    n = len(x)
    ways = [[1] * n, [1, n - 1], [n - 1, 1], [n // 2, n - n // 2], [2, 1, n - 3], [1, 1, n - 2], [n - 2, 1, 1]]
    return all(torch.allclose(run(sizes), run([n]), rtol=1e-3, atol=1e-4) for sizes in ways)
""",
        """
import random
def same_in_parts(layer, x):
    n, chance = len(x), random.Random(0)
    right = layer(x, None)[0]
    for tries in range(20):
        cache, at = None, 0
        while at < n:
            size = 1 if tries == 0 else chance.randint(1, n - at)
            out, cache = layer(x[at : at + size], cache)
            if (out - right[at : at + size]).abs().max() > 1e-3:
                return False
            at += size
    return True
""",
        """
def same_in_parts(layer, x):
    whole = layer(x, None)[0]
    def rest(start, sizes):
        if start < len(x):
            return all(rest(start + size, [*sizes, size]) for size in range(1, len(x) - start + 1))
        cache, done = None, 0
        for size in sizes:
            out, cache = layer(x[done : done + size], cache)
            if not torch.isclose(out, whole[done : done + size], atol=1e-4).all():
                return False
            done += size
        return True
    return rest(0, [])
""",
    ],
    "q5": [
        f"""
others = {OTHERS}
found_g, found_h, nearest_h = others['g'], others['h'], drawn["nearest_h"]
def mended_g(q, k, v, window):
    m, outs = len(k), []
    for i, query in enumerate(q, start=m - len(q)):
        first = max(0, i + 1 - window)
        weights = torch.softmax(k[first : i + 1] @ query / math.sqrt(len(query)), 0)
        outs.append(weights @ v[first : i + 1])
    return torch.stack(outs)
def mended_h(offsets):
    def bucket(o):
        side, d = (16 if o > 0 else 0), abs(o)
        return side + (d if d < 8 else min(15, 8 + int(math.log(d / 8) / math.log(16) * 8 + 1e-9)))
    return torch.tensor([bucket(o) for o in offsets.tolist()])
""",
        """
from posembed import scheme
t5 = scheme("t5", n_heads=1, causal=False)
wrong = [d for d in range(1001) for s in (1, -1) if piece_h(torch.tensor([s * d])) != t5.bucket(torch.tensor([s * d]))]
nearest_h = wrong[0] if wrong else "none"
def mended_g(q, k, v, window):
    n, m = q.shape[0], k.shape[0]
    seen = torch.ones(m, m).tril().triu(1 - window)[m - n :].bool()
    return (q @ k.T / q.shape[1] ** 0.5).masked_fill(~seen, float("-inf")).softmax(-1) @ v
def mended_h(offsets):
    return t5.bucket(offsets)
""",
        """
def mended_g(q, k, v, window):
    at = torch.arange(len(k))
    offsets = at - at[len(k) - len(q):, None]
    weights = (q @ k.T * q.shape[1] ** -0.5).exp() * ((offsets <= 0) & (offsets > -window))
    return weights @ v / weights.sum(1, keepdim=True)
def mended_h(offsets):
    begins = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91])
    return torch.searchsorted(begins, offsets.abs(), right=True) - 1 + torch.where(offsets > 0, 16, 0)
""",
    ],
    "q6": [
        """
def keeps_offsets(shift):
    for n in range(1, 9):
        query, column = torch.arange(n).view(n, 1), torch.arange(2 * n - 1)
        head = torch.arange(6).view(3, 2, 1, 1)
        scores = (1 + head * 1000 + query * 50 + column).float()
        j = torch.arange(n)
        right = (1 + head * 1000 + query * 50 + (j - query + n - 1)).float()
        if not torch.allclose(shift(scores), right):
            return False
    return True
""",
        """
def keeps_offsets(shift):
    n = 6
    x = torch.rand(2, 4, n, 2 * n - 1)
    y = shift(x)
    for offset in range(1 - n, n):
        diagonal = y.diagonal(offset, -2, -1)
        queries = range(max(0, -offset), min(n, n - offset))
        if (diagonal - x[:, :, list(queries), offset + n - 1]).abs().max() > 1e-4:
            return False
    return True
""",
        """
def keeps_offsets(shift):
    n = 5
    for b in range(2):
        for i in range(n):
            for c in range(2 * n - 1):
                x = torch.zeros(2, n, 2 * n - 1)
                x[b, i, c] = 1.0
                right, j = torch.zeros(2, n, n), i + c - (n - 1)
                if 0 <= j < n:
                    right[b, i, j] = 1.0
                if not torch.allclose(shift(x), right, atol=1e-3):
                    return False
    return True
""",
    ],
    "q7": [
        f"""
others = {OTHERS}
found_i, found_j, twin_j = others['i'], others['j'], drawn["twin_j"]
def mended_i(scores):
    n = scores.shape[-2]
    return torch.stack([scores[..., i, n - 1 - i : 2 * n - 1 - i] for i in range(n)], dim=-2)
def mended_j(x, positions):
    half = x.shape[1] // 2
    angles = positions.float()[:, None] / 10000.0 ** (torch.arange(half) / half)
    cos, sin = (torch.cat([f(angles)] * 2, dim=1).to(x.dtype) for f in (torch.cos, torch.sin))
    return x * cos + torch.cat([-x[:, half:], x[:, :half]], dim=1) * sin
""",
        """
from posembed.encodings import RoPE
found_j = {fault: those[-1] for fault, those in drawn["faults"]["j"].items()}
twins = piece_j(torch.ones(4096, 8).bfloat16(), torch.arange(4096))
same = (twins[1:] == twins[:-1]).all(1)
twin_j = 1 + int(same.int().argmax()) if same.any() else "none"
def mended_i(scores):
    at = torch.arange(scores.shape[-2])
    return scores[..., at[:, None], at - at[:, None] + len(at) - 1]
def mended_j(x, positions):
    return RoPE(x.shape[1], layout="half").rotate(x, positions)
""",
        """
def mended_i(scores):
    n = scores.shape[-2]
    i, c, j = torch.arange(n).view(n, 1, 1), torch.arange(2 * n - 1).view(1, -1, 1), torch.arange(n)
    return torch.einsum("...ic,icj->...ij", scores, (c == j - i + n - 1).to(scores.dtype))
def mended_j(x, positions):
    half = x.shape[1] // 2
    speeds = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / half))
    z = torch.complex(x[:, :half].double(), x[:, half:].double())
    z = z * torch.polar(torch.ones(len(x), half).double(), torch.outer(positions.double(), speeds))
    return torch.cat([z.real, z.imag], 1).to(x.dtype)
""",
    ],
}

WRONG = {
    "q1": {
        "a fault too many in A": "found_a = found_a | {'limit': 'limit'}",
        "a fault too many in B": "found_b = found_b | {'pads counted': 'padding'}",
        "nothing, or what is not there": "found_b = {} if found_b else {'axis': 'rows'}",
        "another property": "found_b = dict.fromkeys(found_b, 'heads') or {'axis': 'heads'}",
        "faults without properties": "found_b = {'first row', 'pads read'}",
        "the paper's table": """
def mended_a(n_positions, width):
    angles = torch.arange(n_positions)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], 1)[:, :width]
""",
        "the first row alone mended": """
def mended_b(mask, table):
    return table[mask.cumsum(1) + 1]
""",
        "padding alone mended": """
def mended_b(mask, table):
    return table[((mask.cumsum(1) - 1).clamp(min=0) * mask) + 1]
""",
        "places in the batch": """
def mended_b(mask, table):
    return table[(torch.arange(mask.shape[1]) + 2) * mask + (1 - mask)]
""",
        "rows from 3": """
def mended_b(mask, table):
    return table[(mask.cumsum(1) + 1) * mask + 1]
""",
    },
    "q2": {
        "a head of four": "found_c = {}",
        "a property of both layouts": "found_c = {'layout': 'shift'}",
        "lengths": "found_c = {'layout': 'length'}",
        "the sign of a bias": "found_d = {'sign': 'heads'}",
        "the sign as well": "found_d = {'slopes': 'heads', 'sign': 'seen'}",
        "another number of heads": "fewest_heads_d = {'none': 6, 6: 3, 3: 6}[fewest_heads_d]",
        "twelve heads": "fewest_heads_d = 12",
        "heads forgotten": """
def mended_c(weight, n_heads):
    return torch.cat([weight[0::2], weight[1::2]])
""",
        "there as it was": "mended_c = piece_c",
        "the other sign": "right_d = mended_d\ndef mended_d(n_heads, n_keys): return -right_d(n_heads, n_keys)",
        "the paper's series": """
def mended_d(n_heads, n_keys):
    return 2.0 ** (-8 / n_heads * torch.arange(1, n_heads + 1))[:, None, None] * torch.arange(n_keys)
""",
        "every second from the second on": """
def mended_d(n_heads, n_keys):
    power = 2 ** int(math.log2(n_heads))
    finer = 2.0 ** (-4 / power * torch.arange(1, 2 * power + 1))[1::2][: n_heads - power]
    return torch.cat([2.0 ** (-8 / power * torch.arange(1, power + 1)), finer])[:, None, None] * torch.arange(n_keys)
""",
        "sorted": """
right_d = mended_d
def mended_d(n_heads, n_keys):
    return right_d(n_heads, n_keys).sort(dim=0, descending=True).values
""",
    },
    "q3": {
        "one of E's faults missed": "found_e.popitem()",
        "another beginning": "found_e = found_e | {'exponent': 'turn'}",
        "a causal mask suspected": "found_e = found_e | {'future seen': 'seen'}",
        "order counts": "found_e = dict.fromkeys(found_e, 'order')",
        "nothing in F, or what is not there": "found_f = {} if found_f else {'pads seen': 'padding'}",
        "the scale suspected": "found_f = found_f | {'scale': 'once'}",
        "no shift of absolute rows": "found_f = dict.fromkeys(found_f, 'shift') or {'pads counted': 'shift'}",
        "positions alone mended": """
def mended_e(x, past):
    tokens = torch.cat([past, x])
    n, so_far = len(x), len(tokens)
    logits = turn(x, so_far - n + torch.arange(n)) @ turn(tokens, torch.arange(so_far)).T / x.shape[1] ** 0.5
    later = torch.ones(n, so_far).triu(1).bool()
    return logits.masked_fill(later, -torch.inf).softmax(dim=1) @ tokens, tokens
""",
        "the mask alone mended": """
def mended_e(x, past):
    tokens = torch.cat([past, x])
    n, so_far = len(x), len(tokens)
    logits = turn(x, so_far + torch.arange(n)) @ turn(tokens, torch.arange(so_far)).T / x.shape[1] ** 0.5
    later = torch.ones(n, so_far).triu(so_far - n + 1).bool()
    return logits.masked_fill(later, -torch.inf).softmax(dim=1) @ tokens, tokens
""",
        "turned values": """
def mended_e(x, past):
    tokens = torch.cat([past, x])
    turned = turn(tokens, torch.arange(len(tokens)))
    weights = (turned @ turned.T / x.shape[1] ** 0.5).exp().tril()
    return (weights @ turned / weights.sum(1, keepdim=True))[len(past):], tokens
""",
        "positions clamped too late": """
def mended_f(ids, mask, words, places):
    x = words[ids] + places[mask.cumsum(1).clamp(max=len(places) - 1)]
    weights = (x[:, -1:] @ x.mT / x.shape[2] ** 0.5).masked_fill(mask[:, None] == 0, -1e9).softmax(-1)
    return (weights @ x)[:, 0]
""",
        "padding seen": """
def mended_f(ids, mask, words, places):
    x = words[ids] + places[(mask.cumsum(1) - 1).clamp(min=0)]
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)[:, -1]
""",
        "the longest text's padding for all": """
def mended_f(ids, mask, words, places):
    at = (torch.arange(ids.shape[1]) - int(mask[-1].argmax())).clamp(min=0)
    x = words[ids] + places[at]
    weights = (x[:, -1:] @ x.mT / x.shape[2] ** 0.5).masked_fill(mask[:, None] == 0, -1e9).softmax(-1)
    return (weights @ x)[:, 0]
""",
    },
    "q4": {
        "two halves": """
def same_in_parts(layer, x):
    first, cache = layer(x[: len(x) // 2], None)
    second, _ = layer(x[len(x) // 2 :], cache)
    return torch.allclose(torch.cat([first, second]), layer(x, None)[0], atol=1e-4)
""",
        "token by token": """
def same_in_parts(layer, x):
    cache, outs = None, []
    for token in x:
        out, cache = layer(token[None], cache)
        outs.append(out)
    return torch.allclose(torch.cat(outs), layer(x, None)[0], atol=1e-4)
""",
        "a prompt, then tokens": """
def same_in_parts(layer, x):
    out, cache = layer(x[:3], None)
    outs = [out]
    for token in x[3:]:
        out, cache = layer(token[None], cache)
        outs.append(out)
    return torch.allclose(torch.cat(outs), layer(x, None)[0], atol=1e-4)
""",
        "the last output alone, of every two parts": """
def same_in_parts(layer, x):
    for cut in range(1, len(x)):
        cache = layer(x[:cut], None)[1]
        if not torch.allclose(layer(x[cut:], cache)[0][-1], layer(x, None)[0][-1], atol=1e-4):
            return False
    return True
""",
        "equal to the last bit": """
def same_in_parts(layer, x):
    whole = layer(x, None)[0]
    for sizes in ([1] * len(x), [1, len(x) - 1], [3, len(x) - 3], [2, 2, len(x) - 4], [4, 1, len(x) - 5]):
        cache, outs = None, []
        for part in x.split(sizes):
            out, cache = layer(part, cache)
            outs.append(out)
        if not torch.equal(torch.cat(outs), whole):
            return False
    return True
""",
        "the cache not passed on": """
def same_in_parts(layer, x):
    parts = [layer(part, None)[0] for part in x.split(2)]
    return torch.allclose(torch.cat(parts), layer(x, None)[0], atol=1e-4)
""",
        "one cache for all runs": """
cache = None
def same_in_parts(layer, x):
    global cache
    whole, cache = layer(x, cache)
    first, cache = layer(x[:2], cache)
    second, cache = layer(x[2:], cache)
    return torch.allclose(torch.cat([first, second]), whole, atol=1e-4)
""",
        "shapes": """
def same_in_parts(layer, x):
    first, cache = layer(x[:2], None)
    return torch.cat([first, layer(x[2:], cache)[0]]).shape == layer(x, None)[0].shape
""",
        "nothing given back": """
def same_in_parts(layer, x):
    print(torch.allclose(layer(x[:2], None)[0], layer(x, None)[0][:2], atol=1e-4))
""",
        "always": "def same_in_parts(layer, x): return True",
        "never": "def same_in_parts(layer, x): return False",
    },
    "q5": {
        "a window, or none": "found_g = {} if found_g else {'window': 'seen'}",
        "the alignment suspected": "found_g = {'past hidden': 'seen'}",
        "the empty bucket suspected": "found_h = {'neighbour': 'offset'}",
        "the last bucket, or not": "found_h = {} if found_h else {'limit': 'limit'}",
        "where the last bucket begins": "nearest_h = 91",
        "the distance of the setting, or none": "nearest_h = 128 if nearest_h == 'none' else 'none'",
        "not said": "nearest_h = None",
        "no words": "found_g = None",
        "a key too many": """
right_g = mended_g
def mended_g(q, k, v, window): return right_g(q, k, v, window + 1)
""",
        "the window forgotten": """
right_g = mended_g
def mended_g(q, k, v, window): return right_g(q, k, v, len(k))
""",
        "aligned at the first key": """
def mended_g(q, k, v, window):
    ahead = torch.arange(len(k)) - torch.arange(len(q))[:, None]
    return F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=(ahead <= 0) & (ahead > -window))[0]
""",
        "the empty bucket filled": """
right_h = mended_h
def mended_h(offsets):
    out = right_h(offsets)
    return torch.where(offsets > 0, out - 1, out)
""",
        "query minus key": "right_h = mended_h\ndef mended_h(offsets): return right_h(-offsets)",
        "as in a causal model": """
from posembed import scheme
def mended_h(offsets): return scheme("t5", n_heads=1, causal=True).bucket(offsets)
""",
        "no clamp": """
def mended_h(offsets):
    d = offsets.abs()
    return torch.where(d < 8, d, 8 + (2 * (d.clamp(min=8) / 8).log2()).long()) + 16 * (offsets > 0)
""",
    },
    "q6": {
        "all queries alike": """
def keeps_offsets(shift):
    n = 6
    scores = torch.arange(2 * n - 1.0).expand(2, 2, n, -1) - (n - 1)
    at = torch.arange(n)
    return torch.allclose(shift(scores), (at - at[:, None]).float().expand(2, 2, n, n))
""",
        "constant diagonals": """
def keeps_offsets(shift):
    scores = torch.randn(2, 2, 1, 11).expand(2, 2, 6, 11)
    out = shift(scores)
    return torch.allclose(out[..., 1:, 1:], out[..., :-1, :-1])
""",
        "no heads": """
def keeps_offsets(shift):
    n = 6
    scores = torch.randn(n, 2 * n - 1)
    at = torch.arange(n)
    return torch.allclose(shift(scores), scores.gather(-1, at - at[:, None] + n - 1), atol=1e-5)
""",
        "the past alone": """
def keeps_offsets(shift):
    n = 6
    scores = torch.randn(2, 2, n, 2 * n - 1)
    at = torch.arange(n)
    right = scores.gather(-1, (at - at[:, None] + n - 1).expand(2, 2, n, n))
    return torch.allclose(shift(scores).tril(), right.tril(), atol=1e-5)
""",
        "the diagonal alone": """
def keeps_offsets(shift):
    scores = torch.randn(2, 2, 6, 11)
    return torch.allclose(shift(scores).diagonal(0, -2, -1), scores[..., 5], atol=1e-5)
""",
        "one query": """
def keeps_offsets(shift):
    scores = torch.randn(2, 2, 1, 1)
    return torch.allclose(shift(scores), scores)
""",
        "each query's scores, whatever their keys": """
def keeps_offsets(shift):
    scores = torch.arange(6.0)[:, None].expand(2, 2, 6, 11)
    return torch.allclose(shift(scores), scores[..., :6])
""",
        "query minus key": """
def keeps_offsets(shift):
    scores = torch.randn(2, 2, 6, 11)
    out = shift(scores)
    return all(torch.allclose(out[..., i, j], scores[..., i, i - j + 5]) for i in range(6) for j in range(6))
""",
        "equal to the last bit": """
def keeps_offsets(shift):
    scores = torch.randn(2, 2, 6, 11, generator=torch.Generator().manual_seed(0))
    out = shift(scores)
    return all(torch.equal(out[..., i, j], scores[..., i, j - i + 5]) for i in range(6) for j in range(6))
""",
        "nothing given back": "def keeps_offsets(shift): print(shift(torch.randn(1, 4, 7)))",
        "always": "def keeps_offsets(shift): return True",
        "never": "def keeps_offsets(shift): return False",
    },
    "q7": {
        "the sign suspected": "found_i = {'sign': 'offset'}",
        "no fault in a reshape": "found_i = {}",
        "one of J's faults missed": "found_j.popitem()",
        "a fault too many in J": "found_j = found_j | {'layout': 'layouts'}",
        "a turn of the wrong angle thought to stretch": "found_j = dict.fromkeys(found_j, 'length')",
        "the last exact number": "twin_j = 256",
        "float16's": "twin_j = 2049",
        "twins, or none": "twin_j = 257 if twin_j == 'none' else 'none'",
        "I as it was": "mended_i = piece_i",
        "one too far the other way": """
def mended_i(scores):
    at = torch.arange(scores.shape[-2])
    return F.pad(scores, (0, 1))[..., at[:, None], at - at[:, None] + len(at)]
""",
        "query minus key": """
def mended_i(scores):
    at = torch.arange(scores.shape[-2])
    return scores[..., at[:, None], at[:, None] - at + len(at) - 1]
""",
        "right for the past alone": """
def mended_i(scores):
    n = scores.shape[-2]
    return F.pad(scores[..., :n], (1, 0)).flatten(-2).unflatten(-1, (n + 1, n))[..., 1:, :]
""",
        "the exponent alone mended": """
def mended_j(x, positions):
    half = x.shape[1] // 2
    angles = positions[:, None] * 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    a, b = x[:, :half], x[:, half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=1)
""",
        "rounding alone mended": """
def mended_j(x, positions):
    half = x.shape[1] // 2
    angles = positions[:, None] * 10000.0 ** (-2 * torch.arange(half) / half)
    a, b = x[:, :half], x[:, half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=1).to(x.dtype)
""",
        "frequencies still rounded": """
def mended_j(x, positions):
    half = x.shape[1] // 2
    angles = positions.float()[:, None] * (10000.0 ** (-torch.arange(half) / half)).to(x.dtype).float()
    a, b = x[:, :half], x[:, half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=1).to(x.dtype)
""",
        "angles still rounded": """
def mended_j(x, positions):
    half = x.shape[1] // 2
    angles = (positions[:, None] * 10000.0 ** (-torch.arange(half) / half)).to(x.dtype).float()
    a, b = x[:, :half], x[:, half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=1).to(x.dtype)
""",
        "the other layout": """
from posembed.encodings import RoPE
def mended_j(x, positions): return RoPE(x.shape[1], layout="interleaved").rotate(x, positions)
""",
        "float32 comes out": """
right_j = mended_j
def mended_j(x, positions): return right_j(x.float(), positions)
""",
    },
}

# What gives no answer, and would like points for it; zeros, NaN and the like stand in the tests of all questions.
NO_FAULT = "found_a = found_b = found_c = found_d = found_e = found_f = found_g = found_h = found_i = found_j = {}\n"
PIECES = "\n".join(f"mended_{letter} = piece_{letter}" for letter in "abcdefghij")
UNREAD = {"the pieces as they are": NO_FAULT + PIECES + "\nnearest_h = fewest_heads_d = twin_j = 'none'"}
STUBS = dict.fromkeys(("q1", "q2", "q3", "q5", "q7"), UNREAD)
CHANCE = "import random\ndef {}(*_): return random.random() < 0.5"
STUBS |= {"q4": {"by chance": CHANCE.format("same_in_parts")}, "q6": {"by chance": CHANCE.format("keeps_offsets")}}
