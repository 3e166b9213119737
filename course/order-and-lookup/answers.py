"""Answers as students write them: right ones in other words, and wrong ones by what is wrong with them."""

RIGHT = {
    "q1": [
        "equivariant = drawn['equivariant']",
        "equivariant = {letter: bool(int(drawn['equivariant'][letter])) for letter in 'abcdef'}",
        "equivariant = dict(reversed(drawn['equivariant'].items()))",
    ],
    "q2": [
        """
import itertools
def is_equivariant(f, x):
    n = x.shape[1]
    swaps = [[j if k == i else i if k == j else k for k in range(n)] for i, j in itertools.combinations(range(n), 2)]
    return all((f(x[:, swap]) - f(x)[:, swap]).abs().max() < 1e-4 for swap in swaps)
""",
        """
def is_equivariant(f, x, tries=30):
    out = f(x)
    for _ in range(tries):
        p = torch.randperm(x.size(1))
        if not torch.isclose(f(x.index_select(1, p)), out.index_select(1, p), rtol=1e-3, atol=1e-4).all():
            return False
    return True
""",
        """
def is_equivariant(f, x):
    n, worst = x.shape[1], 0.0
    for seed in range(25):
        torch.manual_seed(seed)
        order = torch.argsort(torch.rand(n))
        back = torch.argsort(order)
        worst = max(worst, float((f(x[:, order])[:, back] - f(x)).abs().max()))
    return worst < 1e-4 * float(x.abs().max())
""",
    ],
    "q3": [
        "without_mask, with_mask = round(drawn['without_mask'], 2), round(drawn['with_mask'], 2)",
        """
weights = [drawn['first_share'], 1, drawn['third_share']]
values = drawn['values']
without_mask = sum(w * v for w, v in zip(weights, values)) / sum(weights)
with_mask, first_token = sum(w * v for w, v in zip(weights[:2], values)) / sum(weights[:2]), values[0]
""",
        """
from math import log
logits = torch.tensor([log(drawn['first_share']), 0.0, log(drawn['third_share'])])
values = torch.tensor(drawn['values']).float()
without_mask, with_mask = float(logits.softmax(0) @ values), float(logits[:2].softmax(0) @ values[:2])
first_token = float(values[0])
""",
    ],
    "q4": [
        """
def attention(x, wq, wk, wv, causal=False):
    q, k, v = (torch.einsum("btw,wd->btd", x, w) for w in (wq, wk, wv))
    logits = torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5
    if causal:
        logits = logits + torch.full(logits.shape[1:], -torch.inf).triu(1)
    return torch.einsum("bij,bjd->bid", logits.softmax(-1), v)
""",
        """
def attention(x, wq, wk, wv, causal=False):
    out = []
    for text in x:
        q, k, v = text @ wq, text @ wk, text @ wv
        rows = []
        for i in range(len(text)):
            end = i + 1 if causal else len(text)
            logits = k[:end] @ q[i] / torch.tensor(float(len(q[i]))).sqrt()
            rows.append(torch.softmax(logits, 0) @ v[:end])
        out.append(torch.stack(rows))
    return torch.stack(out)
""",
        """
def attention(x, wq, wk, wv, causal=False):
    q, k, v = x @ wq, x @ wk, x @ wv
    weights = (q @ k.mT / wq.shape[1] ** 0.5).exp()
    if causal:
        weights = weights.tril()
    return weights @ v / weights.sum(-1, keepdim=True)
""",
    ],
    "q5": [
        "def one_hot(ids, n): return torch.eye(n)[ids]",
        """
def one_hot(ids, n):
    out = torch.zeros(*ids.shape, n)
    return out.scatter(-1, ids.unsqueeze(-1), 1.0)
""",
        """
def one_hot(ids, n):
    flat = ids.reshape(-1)
    out = torch.zeros(len(flat), n)
    out[torch.arange(len(flat)), flat] = 1
    return out.reshape(*ids.shape, n)
""",
    ],
    "q6": [
        """
def gradient_of_table(ids, g, n):
    picks = (ids.reshape(-1, 1) == torch.arange(n)).float()
    return picks.T @ g.reshape(-1, g.shape[-1])
""",
        """
def gradient_of_table(ids, g, n):
    out = torch.zeros(n, g.shape[-1])
    for i, row in zip(ids.flatten().tolist(), g.flatten(0, -2)):
        out[i] += row
    return out
""",
        """
def gradient_of_table(ids, g, n):
    out = torch.zeros(n, g.shape[-1])
    return out.index_put((ids,), g, accumulate=True)
""",
    ],
    "q7": [
        """
row_after_three_steps = drawn['moved']
moves_in_step_2 = dict.fromkeys(["SGD with momentum", "SGD with weight decay", "Adam"], True)
moves_in_step_2 |= dict.fromkeys(["SGD", "SparseAdam, nn.Embedding(sparse=True)"], False)
""",
        """
w = v = 0.0
for g in (drawn['gradient'], 0.0, 0.0):
    v = drawn['momentum'] * v + g
    w = w - drawn['rate'] * v
row_after_three_steps = w
""",
        """
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=drawn['rate'], momentum=drawn['momentum'])
for g in (float(drawn['gradient']), 0.0, 0.0):
    weight.grad = torch.tensor([g])
    optimizer.step()
row_after_three_steps = round(weight.item(), 5)
""",
    ],
    "q8": [
        """
def position_ids(mask):
    out = torch.zeros_like(mask, dtype=torch.long)
    for row, m in zip(out, mask):
        row[m == 1] = torch.arange(int(m.sum()))
    return out
""",
        """
def position_ids(mask):
    counted = torch.cumsum(mask, 1) - 1
    return counted.masked_fill(mask == 0, 0).to(torch.int64)
""",
        """
def position_ids(mask):
    start = mask.argmax(dim=1, keepdim=True)
    return torch.where(mask.bool(), torch.arange(mask.shape[1]) - start, torch.tensor(0))
""",
    ],
}

SHARES = "import math\nshares, values = (drawn['first_share'], 1, drawn['third_share']), drawn['values']\n"
WRONG = {
    "q1": {
        "the first thought otherwise": "equivariant['a'] = not drawn['equivariant']['a']",
        "the second thought otherwise": "equivariant['b'] = not drawn['equivariant']['b']",
        "the third thought otherwise": "equivariant['c'] = not drawn['equivariant']['c']",
        "the fourth thought otherwise": "equivariant['d'] = not drawn['equivariant']['d']",
        "the sixth thought otherwise": "equivariant['f'] = not drawn['equivariant']['f']",
        "all alike": "equivariant = dict.fromkeys('abcdef', True)",
        "words for truth": "equivariant = {letter: 'yes' for letter in 'abcdef'}",
    },
    "q2": {
        "one order at random": """
torch.manual_seed(0)
def is_equivariant(f, x):
    order = torch.randperm(x.shape[1])
    return torch.allclose(f(x[:, order]), f(x)[:, order], atol=1e-5)
""",
        "invariance": """
def is_equivariant(f, x):
    order = torch.randperm(x.shape[1])
    return torch.allclose(f(x[:, order]), f(x), atol=1e-5)
""",
        "equal to the last bit": """
def is_equivariant(f, x):
    orders = [torch.randperm(x.shape[1]) for _ in range(30)]
    return all(torch.equal(f(x[:, p]), f(x)[:, p]) for p in orders)
""",
        "the reversed order alone": """
def is_equivariant(f, x):
    return torch.allclose(f(x.flip(1)), f(x).flip(1), atol=1e-5)
""",
        "the batch in another order": """
def is_equivariant(f, x):
    p = torch.arange(len(x)).flip(0)
    return torch.allclose(f(x[p]), f(x)[p], atol=1e-5)
""",
        "cyclic shifts alone": """
def is_equivariant(f, x):
    return all(torch.allclose(f(x.roll(k, 1)), f(x).roll(k, 1), atol=1e-5) for k in range(x.shape[1]))
""",
        "nothing given back": """
def is_equivariant(f, x):
    print(torch.allclose(f(x.flip(1)), f(x).flip(1)))
""",
        "always": "def is_equivariant(f, x): return True",
        "never": "def is_equivariant(f, x): return False",
    },
    "q3": {
        "the mask forgotten": "with_mask = drawn['without_mask']",
        "logits taken for weights": SHARES + "without_mask = sum(math.log(w) * v for w, v in zip(shares, values))",
        "not divided by the sum": SHARES + "without_mask = sum(w * v for w, v in zip(shares, values))",
        "weights not made to add up to 1 again": SHARES + "with_mask *= sum(shares[:2]) / sum(shares)",
        "the first token sees all": "first_token = drawn['without_mask']",
        "the last taken": "without_mask = drawn['value_3']",
    },
    "q4": {
        "softmax over the queries": """
def attention(x, wq, wk, wv, causal=False):
    logits = (x @ wq) @ (x @ wk).mT / wq.shape[1] ** 0.5
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -1e9)
    return logits.softmax(dim=1) @ (x @ wv)
""",
        "not divided": """
def attention(x, wq, wk, wv, causal=False):
    logits = (x @ wq) @ (x @ wk).mT
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -1e9)
    return logits.softmax(dim=-1) @ (x @ wv)
""",
        "divided by d": """
def attention(x, wq, wk, wv, causal=False):
    logits = (x @ wq) @ (x @ wk).mT / wq.shape[1]
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -1e9)
    return logits.softmax(dim=-1) @ (x @ wv)
""",
        "divided by the root of the width": """
def attention(x, wq, wk, wv, causal=False):
    logits = (x @ wq) @ (x @ wk).mT / x.shape[-1] ** 0.5
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -1e9)
    return logits.softmax(dim=-1) @ (x @ wv)
""",
        "the mask one too far": """
def attention(x, wq, wk, wv, causal=False):
    logits = (x @ wq) @ (x @ wk).mT / wq.shape[1] ** 0.5
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits).triu(2).bool(), -1e9)
    return logits.softmax(dim=-1) @ (x @ wv)
""",
        "masked after the softmax": """
def attention(x, wq, wk, wv, causal=False):
    weights = ((x @ wq) @ (x @ wk).mT / wq.shape[1] ** 0.5).softmax(dim=-1)
    return (weights.tril() if causal else weights) @ (x @ wv)
""",
        "the mask ignored": """
def attention(x, wq, wk, wv, causal=False):
    logits = (x @ wq) @ (x @ wk).mT / wq.shape[1] ** 0.5
    return logits.softmax(dim=-1) @ (x @ wv)
""",
        "texts of a batch meet": """
def attention(x, wq, wk, wv, causal=False):
    flat = x.flatten(0, 1)
    logits = (flat @ wq) @ (flat @ wk).T / wq.shape[1] ** 0.5
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -1e9)
    return (logits.softmax(dim=-1) @ (flat @ wv)).view(*x.shape[:2], -1)
""",
    },
    "q5": {
        "whole numbers": "def one_hot(ids, n): return (ids[..., None] == torch.arange(n)).long()",
        "transposed": "def one_hot(ids, n): return (torch.arange(n)[:, None] == ids.flatten()).float()",
        "one axis lost": "def one_hot(ids, n): return torch.eye(n)[ids.flatten()]",
        "rows counted from one": "def one_hot(ids, n): return torch.eye(n)[(ids - 1) % n]",
        "twice as much": "def one_hot(ids, n): return 2 * torch.eye(n)[ids]",
        "which occur": """
def one_hot(ids, n):
    return torch.zeros(n).index_fill(0, ids.flatten(), 1).expand(*ids.shape, n)
""",
    },
    "q6": {
        "the last one wins": """
def gradient_of_table(ids, g, n):
    out = torch.zeros(n, g.shape[-1])
    out[ids] = g
    return out
""",
        "added once by fancy indexing": """
def gradient_of_table(ids, g, n):
    out = torch.zeros(n, g.shape[-1])
    out[ids] += g
    return out
""",
        "the mean of both": """
def gradient_of_table(ids, g, n):
    picks = (ids.reshape(-1, 1) == torch.arange(n)).float()
    return picks.T @ g.reshape(-1, g.shape[-1]) / picks.sum(0).clamp(min=1)[:, None]
""",
        "all rows": """
def gradient_of_table(ids, g, n):
    return g.reshape(-1, g.shape[-1]).sum(0).expand(n, -1)
""",
        "of the ids alone": """
def gradient_of_table(ids, g, n):
    return g
""",
        "the first text alone": """
def gradient_of_table(ids, g, n):
    ids, g = (ids[0], g[0]) if ids.dim() > 1 else (ids, g)
    return torch.zeros(n, g.shape[-1]).index_add(0, ids, g)
""",
    },
    "q7": {
        "no momentum": "row_after_three_steps = -drawn['rate'] * drawn['gradient']",
        "the sign": "row_after_three_steps = -drawn['moved']",
        "one step short": "row_after_three_steps = -drawn['rate'] * drawn['gradient'] * (1 + drawn['momentum'])",
        "as if looked up each time": "row_after_three_steps = -3 * drawn['rate'] * drawn['gradient']",
        "only rows with a gradient move": "moves_in_step_2['SGD with momentum'] = False",
        "Adam skips them": "moves_in_step_2['Adam'] = False",
        "SparseAdam moves them": "moves_in_step_2['SparseAdam, nn.Embedding(sparse=True)'] = True",
        "plain SGD moves them": "moves_in_step_2['SGD'] = True",
    },
    "q8": {
        "where they stand": """
def position_ids(mask):
    return torch.arange(mask.shape[1]).expand_as(mask) * mask
""",
        "from one": "def position_ids(mask): return mask.long().cumsum(1) * mask.long()",
        "padding is minus one": "def position_ids(mask): return mask.long().cumsum(1) * mask.long() - 1",
        "padding counts": "def position_ids(mask): return torch.arange(mask.shape[1]).expand_as(mask)",
        "floats": "def position_ids(mask): return ((mask.float().cumsum(1) - 1) * mask).clamp(min=0)",
        "the first text's for all": """
def position_ids(mask):
    one = (mask[0].long().cumsum(0) - 1).clamp(min=0) * mask[0].long()
    return one.expand_as(mask)
""",
    },
}

# What gives no answer, and would like points for it; zeros, NaN and the like stand in the tests of all questions.
STUBS = {
    "q2": {
        "by the width of what is asked": "def is_equivariant(f, x): return x.shape[1] > 6",
        "by chance": "import random\ndef is_equivariant(f, x): return random.random() < 0.5",
        "by a name in it": "def is_equivariant(f, x): return 'softmax' in f.__code__.co_names",
        "by the lack of one": "def is_equivariant(f, x): return 'cumsum' not in f.__code__.co_names",
    },
    "q4": {
        "an even mean": """
def attention(x, wq, wk, wv, causal=False):
    v = x @ wv
    if causal:
        return v.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]
    return v.mean(dim=1, keepdim=True).expand(v.shape)
""",
        "the token's own value": "def attention(x, wq, wk, wv, causal=False): return x @ wv",
    },
    "q5": {"the first row": "def one_hot(ids, n): return torch.eye(n)[torch.zeros_like(ids)]"},
    "q6": {
        "where it was looked up": """
def gradient_of_table(ids, g, n): return torch.zeros(n, g.shape[-1]).index_fill(0, ids.flatten(), 1)
""",
    },
}
