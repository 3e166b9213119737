"""Answers as students write them: right ones in other words, and wrong ones by what is wrong with them."""

RIGHT = {
    "q1": [
        """
def sinusoids(positions, d_model, base=10000.0):
    column = torch.arange(d_model)
    speeds = torch.exp(-math.log(base) * 2 * (column // 2).double() / d_model)
    angles = positions.unsqueeze(-1) * speeds
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())
""",
        """
def sinusoids(positions, d_model, base=10000.0):
    rows = []
    for p in positions.flatten().tolist():
        row = []
        for c in range(d_model):
            angle = p / base ** (2 * (c // 2) / d_model)
            row.append(math.sin(angle) if c % 2 == 0 else math.cos(angle))
        rows.append(row)
    return torch.tensor(rows).reshape(*positions.shape, d_model)
""",
        """
def sinusoids(positions, d_model, base=10000.0):
    # A hand that turns is a power of one complex number: the square, the square of that, and so on.
    speeds = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    hand = torch.polar(torch.ones_like(speeds), speeds)
    out, left = torch.ones(*positions.shape, len(speeds), dtype=torch.complex128), positions.clone()
    while left.any():
        out = torch.where((left % 2 == 1)[..., None], out * hand, out)
        hand, left = hand * hand, left // 2
    table = torch.zeros(*positions.shape, d_model)
    table[..., 0::2] = out.imag.float()
    table[..., 1::2] = out.real.float()[..., : d_model // 2]
    return table
""",
    ],
    "q2": [
        "longest, turning, base_wanted = round(drawn['longest'], 1), drawn['turning'], round(drawn['base_wanted'])",
        """
width, head = drawn["width"], drawn["head"]
upto, once = (int(drawn[name].replace(",", "")) for name in ("upto", "once"))
longest = max(2 * math.pi * drawn["base"] ** (2 * i / width) for i in range(width // 2))
turning = sum(2 * math.pi * 10000 ** (2 * i / head) <= upto for i in range(head // 2))
low, high = 1.0, 1e6
while high - low > 1:
    middle = (low + high) / 2
    low, high = (middle, high) if 2 * math.pi * middle ** ((head - 2) / head) < once else (low, middle)
base_wanted = low
""",
        """
upto, once, head = (int(str(drawn[name]).replace(",", "")) for name in ("upto", "once", "head"))
longest = 2 * math.pi * math.exp(math.log(drawn["base"]) * (1 - 2 / drawn["width"]))
turning = math.floor(head / 2 * math.log(upto / (2 * math.pi)) / math.log(10000)) + 1
base_wanted = math.exp(math.log(once / (2 * math.pi)) * head / (head - 2))
""",
    ],
    "q3": [
        """
first_twins = {"bfloat16": 2**8, "float16": 2**11, "float32": 2**24}
different, largest_group, too_far = drawn["different"], float(drawn["largest_group"]), drawn["too_far"]
""",
        """
def twin(dtype, low):
    p = torch.arange(low, low + 600)
    return int(p[:-1][p[1:].to(dtype) == p[:-1].to(dtype)][0])
first_twins = {"bfloat16": twin(torch.bfloat16, 0), "float16": twin(torch.float16, 1900)}
first_twins["float32"] = twin(torch.float32, 2**24 - 300)
n, far = (int(drawn[name].replace(",", "")) for name in ("n", "far"))
numbers, counts = torch.arange(n).bfloat16().float().unique(return_counts=True)
different, largest_group = len(numbers), int(counts.max())
too_far = float(torch.tensor(far).bfloat16()) - far
""",
        """
def rounded(p, bits):
    gap = max(1, 2 ** (p.bit_length() - bits))
    return round(p / gap) * gap  # Python's round takes the even one of two, as the formats do
first_twins = {}
for name, bits in {"bfloat16": 8, "float16": 11, "float32": 24}.items():
    first_twins[name] = next(p for k in range(30) for p in [2**k] if rounded(p, bits) == rounded(p + 1, bits))
n, far = (int(drawn[name].replace(",", "")) for name in ("n", "far"))
of = [rounded(p, 8) for p in range(n)]
different, largest_group = len(set(of)), max(of.count(each) for each in set(of))
too_far = rounded(far, 8) - float(far)
""",
    ],
    "q4": [
        """
def rope(x, positions, layout, base=10000.0):
    # Each pair is a complex number, and turning is a product.
    d = x.shape[-1]
    speeds = base ** (-torch.arange(0, d, 2).double() / d)
    turn = torch.polar(torch.ones(len(positions), d // 2).double(), positions[:, None] * speeds)
    pairs = x.double().unflatten(-1, (2, d // 2)).mT if layout == "half" else x.double().unflatten(-1, (d // 2, 2))
    out = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    return (out.mT if layout == "half" else out).flatten(-2).to(x.dtype)
""",
        """
def rope(x, positions, layout, base=10000.0):
    # A matrix for each position.
    d = x.shape[-1]
    matrices = torch.zeros(len(positions), d, d, dtype=torch.float64)
    for i in range(d // 2):
        a, b = (i, i + d // 2) if layout == "half" else (2 * i, 2 * i + 1)
        angle = positions.double() * base ** (-2 * i / d)
        matrices[:, a, a] = matrices[:, b, b] = angle.cos()
        matrices[:, a, b], matrices[:, b, a] = -angle.sin(), angle.sin()
    return torch.einsum("tij,...tj->...ti", matrices, x.double()).to(x.dtype)
""",
        """
def rope(x, positions, layout, base=10000.0):
    # As libraries have it: a vector a quarter turn ahead, weighted by the sine; cosines are rounded to x's format.
    half = x.shape[-1] // 2
    angles = torch.outer(positions.float(), base ** (-torch.arange(half) / half))
    if layout == "half":
        angles = torch.cat([angles, angles], -1)
        ahead = torch.cat([-x[..., half:], x[..., :half]], -1)
    else:
        angles = angles.repeat_interleave(2, -1)
        ahead = torch.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    return x * angles.cos().to(x.dtype) + ahead * angles.sin().to(x.dtype)
""",
    ],
    "q5": [
        """
def convert(weight, n_heads, source, target):
    if source == target:
        return weight.clone()
    d = len(weight) // n_heads
    grid = (2, d // 2) if source == "half" else (d // 2, 2)
    return weight.reshape(n_heads, *grid, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)
""",
        """
def convert(weight, n_heads, source, target):
    d = len(weight) // n_heads
    def row(layout, pair, side):
        return pair + side * (d // 2) if layout == "half" else 2 * pair + side
    out = torch.zeros_like(weight)
    for h in range(n_heads):
        for pair in range(d // 2):
            for side in (0, 1):
                out[h * d + row(target, pair, side)] = weight[h * d + row(source, pair, side)]
    return out
""",
        """
def convert(weight, n_heads, source, target):
    # The product with a matrix of zeros and ones, the same for every head.
    d = len(weight) // n_heads
    P = torch.zeros(d, d)
    for i in range(d // 2):
        P[i, 2 * i] = P[i + d // 2, 2 * i + 1] = 1
    P = torch.eye(d) if source == target else P if target == "half" else P.T
    return torch.block_diag(*[P] * n_heads) @ weight
""",
    ],
    "q6": [
        """
moves = {"weight of the queries", "bias of the keys", "gain of the queries", "turned keys in the cache"}
reorder = {name: name in moves for name in reorder}
""",
        "reorder = dict(zip(reorder, [True, True, True, False, False, True, False]))",
        """
reorder = {name: "values" not in name and "output" not in name for name in reorder}
""",
    ],
    "q7": [
        """
def slopes(n_heads):
    p = 1
    while 2 * p <= n_heads:
        p *= 2
    exponents = [-8 * (h + 1) / p for h in range(p)]
    exponents += [-4 * (2 * h + 1) / p for h in range(n_heads - p)]
    return torch.tensor([2.0**e for e in exponents])

def alibi(n_heads, queries, keys):
    return torch.stack([-s * (queries[:, None] - keys[None]).abs() for s in slopes(n_heads)])
""",
        """
def slopes(n_heads):
    # As the authors write it: the function calls itself.
    if math.log2(n_heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n_heads) - 3)))
        return torch.tensor([start * start**i for i in range(n_heads)])
    closest = 2 ** math.floor(math.log2(n_heads))
    return torch.cat([slopes(closest), slopes(2 * closest)[0::2][: n_heads - closest]])

def alibi(n_heads, queries, keys):
    farther = torch.maximum(queries[:, None], keys) - torch.minimum(queries[:, None], keys)
    return torch.einsum("h,qk->hqk", -slopes(n_heads), farther.float())
""",
        """
def slopes(n_heads):
    finest = 2 ** math.ceil(math.log2(n_heads)) if n_heads > 1 else 1
    series = torch.logspace(-8 / finest, -8, finest, base=2.0, dtype=torch.float64)
    if finest == n_heads:
        return series
    return torch.cat([series[1::2], series[0::2]])[:n_heads]

def alibi(n_heads, queries, keys):
    out = torch.zeros(n_heads, len(queries), len(keys), dtype=torch.float64)
    for i, q in enumerate(queries.tolist()):
        for j, k in enumerate(keys.tolist()):
            out[:, i, j] = -abs(q - k) * slopes(n_heads)
    return out
""",
    ],
    "q8": [
        """
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    side = n_buckets if causal else n_buckets // 2
    h = side // 2
    def one(offset):
        t = max(-offset, 0) if causal else abs(offset)
        if t >= h:
            t = min(side - 1, h + int(math.log(t / h) / math.log(max_distance / h) * h))
        return t + side if offset > 0 and not causal else t
    return torch.tensor([one(o) for o in offsets.flatten().tolist()]).reshape(offsets.shape)

def t5_bias(weight, queries, keys, causal):
    out = torch.zeros(weight.shape[1], len(queries), len(keys))
    for i, q in enumerate(queries):
        out[:, i] = weight[bucket(keys - q, causal, n_buckets=len(weight))].T
    return out
""",
        """
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    # The first distance of every bucket, and a search among them.
    h = (n_buckets if causal else n_buckets // 2) // 2
    first = [*range(h), *(h * (max_distance / h) ** (k / h) for k in range(h))]
    t = torch.relu(-offsets) if causal else abs(offsets)
    out = torch.searchsorted(torch.tensor(first).double() - 1e-9, t.double(), right=True) - 1
    return out if causal else torch.where(offsets > 0, out + n_buckets // 2, out)

def t5_bias(weight, queries, keys, causal):
    return weight.T[:, bucket(keys[None, :] - queries[:, None], causal, weight.shape[0])]
""",
        """
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    # As T5's own code: the sign is turned, and the far ones are computed for all and then chosen.
    back, out = -offsets, torch.zeros_like(offsets)
    if causal:
        back = torch.maximum(back, torch.zeros_like(back))
    else:
        n_buckets //= 2
        out = out + (back < 0).long() * n_buckets
        back = back.abs()
    exact = n_buckets // 2
    far = torch.log(back.float() / exact) / math.log(max_distance / exact) * (n_buckets - exact)
    far = torch.clamp(exact + far.clamp(min=0).long(), max=n_buckets - 1)
    return out + torch.where(back < exact, back, far)

def t5_bias(weight, queries, keys, causal):
    which = bucket(keys - queries.reshape(-1, 1), causal, len(weight))
    return torch.nn.functional.embedding(which, weight).movedim(-1, 0)
""",
    ],
    "q9": [
        "ahead, sharing, untrained_both = float(drawn['ahead']), drawn['sharing'], float(drawn['untrained_both'])",
        """
both = bucket(torch.arange(-300, 301), False)
ahead, sharing = int(both[300 + drawn["ahead_by"]]), int((both == both[300 - drawn["behind_by"]]).sum())
untrained_causal = 32 - len(bucket(torch.arange(1 - drawn["causal_tokens"], 1), True).unique())
untrained_both = 32 - len(bucket(torch.arange(1 - drawn["both_tokens"], drawn["both_tokens"]), False).unique())
""",
        """
def of_side(distance, half):
    return half + math.floor(half * math.log(distance / half) / math.log(128 / half) + 1e-9)
ahead = 16 + of_side(drawn["ahead_by"], 8)
sharing = sum(of_side(t, 8) == of_side(drawn["behind_by"], 8) for t in range(8, 500))
untrained_causal = 31 - of_side(drawn["causal_tokens"] - 1, 16)
untrained_both = 2 * (15 - of_side(drawn["both_tokens"] - 1, 8)) + 1
""",
    ],
}

WRONG = {
    "q1": {
        "a column's number in the place of its pair's": """
def sinusoids(positions, d_model, base=10000.0):
    c = torch.arange(d_model)
    angles = positions[..., None].double() * base ** (-2 * c.double() / d_model)
    return torch.where(c % 2 == 0, angles.sin(), angles.cos())
""",
        "the exponent halved": """
def sinusoids(positions, d_model, base=10000.0):
    pair = torch.arange((d_model + 1) // 2).double()
    angles = positions[..., None].double() * base ** (-pair / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :d_model]
""",
        "all sines, then all cosines": """
def sinusoids(positions, d_model, base=10000.0):
    angles = positions[..., None].double() * base ** (-torch.arange(0, d_model, 2).double() / d_model)
    return torch.cat([angles.sin(), angles.cos()], -1)[..., :d_model]
""",
        "cosine first": """
def sinusoids(positions, d_model, base=10000.0):
    angles = positions[..., None].double() * base ** (-torch.arange(0, d_model, 2).double() / d_model)
    return torch.stack([angles.cos(), angles.sin()], -1).flatten(-2)[..., :d_model]
""",
        "float32 for the angles": """
def sinusoids(positions, d_model, base=10000.0):
    angles = positions[..., None].float() * base ** (-torch.arange(0, d_model, 2).float() / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :d_model]
""",
        "float32 for the frequencies alone": """
def sinusoids(positions, d_model, base=10000.0):
    angles = positions[..., None].double() * base ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :d_model]
""",
        "an odd width crashes": """
def sinusoids(positions, d_model, base=10000.0):
    angles = positions[..., None].double() * base ** (-torch.arange(0, d_model, 2).double() / d_model)
    table = torch.zeros(*positions.shape, d_model)
    table[..., 0::2], table[..., 1::2] = angles.sin().float(), angles.cos().float()
    return table
""",
        "an odd width is rounded up": """
def sinusoids(positions, d_model, base=10000.0):
    even = d_model + d_model % 2
    angles = positions[..., None].double() * base ** (-torch.arange(0, even, 2).double() / even)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :d_model]
""",
        "an odd width ends with zero": """
def sinusoids(positions, d_model, base=10000.0):
    angles = positions[..., None].double() * base ** (-torch.arange(0, d_model - 1, 2).double() / d_model)
    table = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)
    return torch.nn.functional.pad(table, (0, d_model - table.shape[-1]))
""",
        "positions counted again": """
def sinusoids(positions, d_model, base=10000.0):
    count = torch.arange(positions.numel()).view(positions.shape)
    angles = count[..., None].double() * base ** (-torch.arange(0, d_model, 2).double() / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :d_model]
""",
        "counted from one": """
def sinusoids(positions, d_model, base=10000.0):
    angles = (positions[..., None].double() + 1) * base ** (-torch.arange(0, d_model, 2).double() / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :d_model]
""",
        "the base fixed": """
def sinusoids(positions, d_model, base=10000.0):
    angles = positions[..., None].double() * 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :d_model]
""",
        "degrees": """
def sinusoids(positions, d_model, base=10000.0):
    angles = positions[..., None].double() * base ** (-torch.arange(0, d_model, 2).double() / d_model)
    angles = angles * math.pi / 180
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :d_model]
""",
        "nothing given back": "def sinusoids(positions, d_model, base=10000.0): positions.double().sin()",
    },
    "q2": {
        "the limit in place of the last pair": "longest = 2 * math.pi * drawn['base']",
        "without two pi": "longest /= 2 * math.pi",
        "the tensor2tensor series": "longest = 2 * math.pi * drawn['base'] ** 1.0",
        "one pair too few": "turning -= 1",
        "columns for pairs": "turning *= 2",
        "those that do not turn": "turning = drawn['head'] // 2 - turning + 0.5",
        "without two pi, pairs": "turning += 7",
        "the exponent forgotten": "base_wanted **= 1 - 2 / drawn['head']",
        "the exponent turned over": "base_wanted **= (1 - 2 / drawn['head']) ** 2",
        "not divided by two pi": "base_wanted *= (2 * math.pi) ** (drawn['head'] / (drawn['head'] - 2))",
        "in proportion": "base_wanted = 10000 * base_wanted / 47117",
        "words": "longest = '6283 positions'",
    },
    "q3": {
        "the first that is lost": "first_twins = {'bfloat16': 257, 'float16': 2049, 'float32': 2**24 + 1}",
        "the bits that are stored": "first_twins = {'bfloat16': 2**7, 'float16': 2**10, 'float32': 2**23}",
        "the largest number": "first_twins['float16'] = 65504",
        "the last one left out": "different -= 1",
        "bits of one doubling": "different = 128",
        "the spacing for the group": "largest_group -= 1",
        "half of it": "largest_group //= 2",
        "cut off, not rounded": "too_far -= 16",
        "the sign": "too_far *= -1",
        "in turns": "too_far /= 2 * math.pi",
        "nothing happens": "too_far = 0",
    },
    "q4": {
        "half's angles on neighbours": """
def rope(x, positions, layout, base=10000.0):
    d = x.shape[-1]
    angles = positions[:, None].double() * base ** (-torch.arange(0, d, 2).double() / d)
    angles = torch.cat([angles, angles], -1)
    if layout == "half":
        ahead = torch.cat([-x[..., d // 2:], x[..., : d // 2]], -1)
    else:
        ahead = torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    return (x * angles.cos() + ahead * angles.sin()).to(x.dtype)
""",
        "the layouts exchanged": """
_right = rope
def rope(x, positions, layout, base=10000.0):
    return _right(x, positions, "half" if layout == "interleaved" else "interleaved", base)
""",
        "one layout for both": """
_right = rope
def rope(x, positions, layout, base=10000.0):
    return _right(x, positions, "half", base)
""",
        "pairs that do not go back to their columns": """
def rope(x, positions, layout, base=10000.0):
    d = x.shape[-1]
    angles = positions[:, None].double() * base ** (-torch.arange(0, d, 2).double() / d)
    a, b = x.chunk(2, -1) if layout == "half" else (x[..., 0::2], x[..., 1::2])
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1).to(x.dtype)
""",
        "the other way round": """
_right = rope
def rope(x, positions, layout, base=10000.0):
    return _right(x, -positions, layout, base)
""",
        "a sign": """
def rope(x, positions, layout, base=10000.0):
    d = x.shape[-1]
    angles = positions[:, None].double() * base ** (-torch.arange(0, d, 2).double() / d)
    a, b = x.chunk(2, -1) if layout == "half" else (x[..., 0::2], x[..., 1::2])
    cos, sin = angles.cos(), angles.sin()
    out = a * cos + b * sin, a * sin + b * cos
    return (torch.cat(out, -1) if layout == "half" else torch.stack(out, -1).flatten(-2)).to(x.dtype)
""",
        "the exponent of a table twice as wide": """
_right = rope
def rope(x, positions, layout, base=10000.0):
    return _right(x, positions, layout, base**0.5)
""",
        "always from the beginning": """
_right = rope
def rope(x, positions, layout, base=10000.0):
    return _right(x, torch.arange(len(positions)), layout, base)
""",
        "angles in the format of x": """
def rope(x, positions, layout, base=10000.0):
    d = x.shape[-1]
    angles = positions[:, None].to(x.dtype) * (base ** (-torch.arange(0, d, 2) / d)).to(x.dtype)
    a, b = x.chunk(2, -1) if layout == "half" else (x[..., 0::2], x[..., 1::2])
    cos, sin = angles.cos(), angles.sin()
    out = a * cos - b * sin, a * sin + b * cos
    return torch.cat(out, -1) if layout == "half" else torch.stack(out, -1).flatten(-2)
""",
        "frequencies in the format of x": """
def rope(x, positions, layout, base=10000.0):
    d = x.shape[-1]
    angles = positions[:, None].float() * (base ** (-torch.arange(0, d, 2) / d)).to(x.dtype).float()
    a, b = x.chunk(2, -1) if layout == "half" else (x[..., 0::2], x[..., 1::2])
    cos, sin = angles.cos(), angles.sin()
    out = a * cos - b * sin, a * sin + b * cos
    return (torch.cat(out, -1) if layout == "half" else torch.stack(out, -1).flatten(-2)).to(x.dtype)
""",
        "float32 comes out": """
_right = rope
def rope(x, positions, layout, base=10000.0):
    return _right(x.float(), positions, layout, base)
""",
        "a row is added, not turned": """
def rope(x, positions, layout, base=10000.0):
    return (x + sinusoids(positions, x.shape[-1], base)).to(x.dtype)
""",
        "the base fixed": """
_right = rope
def rope(x, positions, layout, base=10000.0):
    return _right(x, positions, layout)
""",
    },
    "q5": {
        "the two ways exchanged": """
_right = convert
def convert(weight, n_heads, source, target):
    return _right(weight, n_heads, target, source)
""",
        "one way for both": """
def convert(weight, n_heads, source, target):
    if source == target:
        return weight
    return weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
""",
        "as if there were one head": """
_right = convert
def convert(weight, n_heads, source, target):
    return _right(weight, 1, source, target)
""",
        "columns for rows": """
_right = convert
def convert(weight, n_heads, source, target):
    return _right(weight.transpose(0, -1), n_heads, source, target).transpose(0, -1)
""",
        "the pair exchanged": """
def convert(weight, n_heads, source, target):
    if source == target:
        return weight
    return weight.unflatten(0, (n_heads, 2, -1)).flip(1).flatten(0, 2)
""",
        "the second columns come first": """
_right = convert
def convert(weight, n_heads, source, target):
    if source == target:
        return weight
    if target == "half":
        return _right(weight, n_heads, source, target).unflatten(0, (n_heads, 2, -1)).flip(1).flatten(0, 2)
    return _right(weight.unflatten(0, (n_heads, 2, -1)).flip(1).flatten(0, 2), n_heads, source, target)
""",
        "heads counted in the rows' steps": """
_right = convert
def convert(weight, n_heads, source, target):
    by_head = weight.unflatten(0, (-1, n_heads)).transpose(0, 1).flatten(0, 1)
    return _right(by_head, n_heads, source, target).unflatten(0, (n_heads, -1)).transpose(0, 1).flatten(0, 1)
""",
        "no bias": """
_right = convert
def convert(weight, n_heads, source, target):
    rows, columns = weight.shape
    return _right(weight, n_heads, source, target)
""",
        "moved also where the layouts are one": """
def convert(weight, n_heads, source, target):
    grid = (2, -1) if source == "half" else (-1, 2)
    return weight.unflatten(0, (n_heads, *grid)).transpose(1, 2).flatten(0, 2)
""",
        "nothing moves": "def convert(weight, n_heads, source, target): return weight",
    },
    "q6": {
        "weights alone": "reorder = {name: name == 'weight of the queries' for name in reorder}",
        "all": "reorder = dict.fromkeys(reorder, True)",
        "values too": "reorder['weight of the values'] = True",
        "the output layer too": "reorder['weight of the output layer'] = True",
        "a bias thought to cancel": "reorder['bias of the keys'] = False",
        "the gain forgotten": "reorder['gain of the queries'] = False",
        "the cache forgotten": "reorder['turned keys in the cache'] = False",
    },
    "q7": {
        "one series stretched over all heads": """
def slopes(n_heads): return 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
""",
        "the first ones of the next power": """
def slopes(n_heads):
    power = 1 << (n_heads - 1).bit_length()
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1) / power)
""",
        "the others without every second": """
def slopes(n_heads):
    def geometric(n):
        return 2.0 ** (-8 * torch.arange(1, n + 1) / n)
    power = 2 ** (n_heads.bit_length() - 1)
    return torch.cat([geometric(power), geometric(2 * power)])[:n_heads]
""",
        "every second from the wrong one on": """
def slopes(n_heads):
    def geometric(n):
        return 2.0 ** (-8 * torch.arange(1, n + 1) / n)
    power = 2 ** (n_heads.bit_length() - 1)
    return torch.cat([geometric(power), geometric(2 * power)[1::2]])[:n_heads]
""",
        "sorted": """
_right = slopes
def slopes(n_heads): return _right(n_heads).sort(descending=True).values
""",
        "counted from zero": """
def slopes(n_heads): return 2.0 ** (-8 * torch.arange(n_heads) / n_heads)
""",
        "halved from head to head": "def slopes(n_heads): return 0.5 ** torch.arange(1, n_heads + 1)",
        "the sign": """
def alibi(n_heads, queries, keys):
    return slopes(n_heads)[:, None, None] * (keys - queries[:, None]).abs()
""",
        "the key alone": """
def alibi(n_heads, queries, keys):
    return (slopes(n_heads)[:, None, None] * keys).expand(-1, len(queries), -1)
""",
        "keys ahead are lifted": """
def alibi(n_heads, queries, keys):
    return slopes(n_heads)[:, None, None] * (keys - queries[:, None])
""",
        "keys ahead are free": """
def alibi(n_heads, queries, keys):
    return slopes(n_heads)[:, None, None] * (keys - queries[:, None]).clamp(max=0)
""",
        "queries counted from zero": """
def alibi(n_heads, queries, keys):
    distance = (keys - torch.arange(len(queries))[:, None]).abs()
    return -slopes(n_heads)[:, None, None] * distance
""",
        "in bfloat16": """
def alibi(n_heads, queries, keys):
    keys, queries = keys.bfloat16(), queries.bfloat16()
    return -slopes(n_heads)[:, None, None] * (keys - queries[:, None]).abs()
""",
        "keys and queries exchanged": """
def alibi(n_heads, queries, keys):
    return -slopes(n_heads)[:, None, None] * (keys[:, None] - queries).abs()
""",
        "the heads last": """
def alibi(n_heads, queries, keys):
    return -slopes(n_heads) * (keys - queries[:, None]).abs()[..., None]
""",
    },
    "q8": {
        "query minus key": """
_right = bucket
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    return _right(-offsets, causal, n_buckets, max_distance)
""",
        "the future has the first half": """
_right = bucket
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    return _right(offsets if causal else -offsets, causal, n_buckets, max_distance)
""",
        "not bounded": """
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    side = n_buckets if causal else n_buckets // 2
    h = side // 2
    t = (-offsets).clamp(min=0) if causal else offsets.abs()
    far = h + (h * (t.clamp(min=1) / h).log() / math.log(max_distance / h)).long()
    return torch.where(t < h, t, far) + (0 if causal else side * (offsets > 0))
""",
        "rounded to the nearest": """
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    side = n_buckets if causal else n_buckets // 2
    h = side // 2
    t = (-offsets).clamp(min=0) if causal else offsets.abs()
    far = h + (h * (t.clamp(min=h) / h).log() / math.log(max_distance / h)).round().long()
    return torch.where(t < h, t, far.clamp(max=side - 1)) + (0 if causal else side * (offsets > 0))
""",
        "all buckets for each side": """
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    h = n_buckets // 2
    t = (-offsets).clamp(min=0) if causal else offsets.abs()
    far = h + (h * (t.clamp(min=h) / h).log() / math.log(max_distance / h)).long()
    out = torch.where(t < h, t, far.clamp(max=n_buckets - 1))
    return out if causal else out // 2 + n_buckets // 2 * (offsets > 0)
""",
        "causal with half of the buckets": """
_right = bucket
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    return _right(offsets.clamp(max=0) if causal else offsets, False, n_buckets, max_distance)
""",
        "offset 0 in the future": """
_right = bucket
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    out = _right(offsets, causal, n_buckets, max_distance)
    return out if causal else torch.where(offsets == 0, n_buckets // 2, out)
""",
        "the empty bucket filled": """
_right = bucket
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    return _right(offsets if causal else offsets - (offsets > 0).long(), causal, n_buckets, max_distance)
""",
        "distances from max_distance on share alone": """
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    side = n_buckets if causal else n_buckets // 2
    h = side // 2
    t = ((-offsets).clamp(min=0) if causal else offsets.abs()).clamp(max=max_distance)
    far = h + ((h - 1) * (t.clamp(min=h) / h).log() / math.log(max_distance / h) + 1e-6).long()
    return torch.where(t < h, t, far) + (0 if causal else side * (offsets > 0))
""",
        "max_distance fixed": """
_right = bucket
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    return _right(offsets, causal, n_buckets)
""",
        "equal widths": """
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    side = n_buckets if causal else n_buckets // 2
    t = ((-offsets).clamp(min=0) if causal else offsets.abs()).clamp(max=max_distance - 1)
    return t * side // max_distance + (0 if causal else side * (offsets > 0))
""",
        "the future of a causal model by its distance": """
_right = bucket
def bucket(offsets, causal, n_buckets=32, max_distance=128):
    return _right(-offsets.abs() if causal else offsets, causal, n_buckets, max_distance)
""",
        "the bias of query minus key": """
def t5_bias(weight, queries, keys, causal):
    return weight[bucket(queries[:, None] - keys, causal, len(weight))].permute(2, 0, 1)
""",
        "the bias with queries counted from zero": """
def t5_bias(weight, queries, keys, causal):
    offsets = keys - torch.arange(len(queries))[:, None]
    return weight[bucket(offsets, causal, len(weight))].permute(2, 0, 1)
""",
        "the bias with 32 buckets whatever the weight has": """
def t5_bias(weight, queries, keys, causal):
    offsets = keys - queries[:, None]
    return weight[bucket(offsets, causal).clamp(max=len(weight) - 1)].permute(2, 0, 1)
""",
        "the bias always causal": """
def t5_bias(weight, queries, keys, causal):
    return weight[bucket(keys - queries[:, None], True, len(weight))].permute(2, 0, 1)
""",
        "the bias with heads last": """
def t5_bias(weight, queries, keys, causal):
    return weight[bucket(keys - queries[:, None], causal, len(weight))]
""",
    },
    "q9": {
        "the past's bucket": "ahead -= 16",
        "the causal model's": "ahead = 17 + drawn['ahead'] % 2 / 2",
        "counted past the half": "ahead += 1",
        "one of each distance": "sharing = 1.0",
        "both ends": "sharing += 1",
        "a distance of 48": "untrained_causal, untrained_both = untrained_causal - 1, untrained_both - 2",
        "the empty bucket forgotten": "untrained_both -= 1",
        "of one side": "untrained_both //= 2",
        "of the causal model": "untrained_both = untrained_causal + (untrained_causal == untrained_both)",
        "those that occur": "untrained_causal = 31.5 - untrained_causal",
        "a bucket for each distance": "untrained_causal = -1",
    },
}

# What gives no answer, and would like points for it; zeros, NaN and the like stand in the tests of all questions.
STUBS = {
    "q7": {
        "slopes of zero": """
def slopes(n_heads): return torch.zeros(n_heads)
def alibi(n_heads, queries, keys): return torch.zeros(n_heads, len(queries), len(keys))
""",
    },
    "q8": {
        "one bucket": """
def bucket(offsets, causal, n_buckets=32, max_distance=128): return torch.zeros_like(offsets)
def t5_bias(weight, queries, keys, causal): return weight[bucket(keys - queries[:, None], causal)].permute(2, 0, 1)
""",
    },
}
