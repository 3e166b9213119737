"""Answers as students write them: right ones in other words, and wrong ones by what is wrong with them."""

RIGHT = {
    "q1": [
        """
def read(x, y, train, test):
    centre = x[train].mean(0)
    weights = np.linalg.pinv(x[train] - centre, rcond=1e-10) @ (y[train] - y[train].mean())
    return (x[test] - centre).dot(weights) + y[train].mean()
""",
        """
import torch
def read(x, y, train, test):
    X, Y = torch.from_numpy(x[train]).double(), torch.from_numpy(y[train]).double()
    m = X.mean(dim=0)
    w = torch.linalg.lstsq(X - m, (Y - Y.mean())[:, None], driver="gelsd").solution
    return ((torch.from_numpy(x[test]).double() - m) @ w)[:, 0] + Y.mean()
""",
        """
def read(x, y, train, test):
    rows = x[train] - np.mean(x[train], axis=0)
    U, s, V = np.linalg.svd(rows, full_matrices=False)
    keep = s > 1e-10 * s[0]
    w = V[keep].T @ ((U[:, keep].T @ (y[train] - np.mean(y[train]))) / s[keep])
    return np.array([float((row - np.mean(x[train], axis=0)) @ w + np.mean(y[train])) for row in x[test]])
""",
    ],
    "q2": [
        """
from posembed.probing import permuted_labels, random_tables_like
n, d = table.shape
by_heart = d + 1
certain = dict(zip(certain, [n <= d + 1, (n + 1) // 2 <= d + 1, True, False]))
result = probe_table(table, probe="ols", split="all")
left_over = {
    "the file": result.train_mae,
    "labels dealt out": result.baselines.permuted_labels,
    "random rows": result.baselines.random_table,
}
""",
        """
by_heart = np.int64(129)
certain["its even rows"] = len(range(0, len(table), 2)) < 130
at = np.arange(len(table)).astype(float)
ones = lambda x: np.column_stack([x, np.ones(len(x))])
fit = lambda x, y: np.mean(np.abs(ones(x) @ np.linalg.lstsq(ones(x), y, rcond=None)[0] - y))
left_over["the file"] = fit(table, at)
left_over["labels dealt out"] = fit(table, np.random.permutation(at))
left_over["random rows"] = fit(np.random.randn(*table.shape), at)
""",
        """
sizes = {"all rows of the file": len(table), "its even rows": -(-len(table) // 2)}
sizes |= {"the longest stretch": 58, "the first three quarters of the file": len(table) * 3 // 4}
certain = {name: size - 1 <= 128 for name, size in sizes.items()}
at = np.arange(len(table))
np.random.seed(7)
def mean_left(make, times=4):
    return sum(np.abs(read(x, y, at, at) - y).mean() for x, y in (make() for _ in range(times))) / times
left_over = {
    "the file": round(mean_left(lambda: (table, at), 1), 2),
    "labels dealt out": mean_left(lambda: (table, np.random.permutation(at))),
    "random rows": mean_left(lambda: (np.random.uniform(-1, 1, table.shape), at)),
}
""",
    ],
    "q3": [
        """
lengths = np.linalg.norm(table, axis=1)
apart = np.linalg.norm(table[:, None] - table[None], axis=-1)
np.fill_diagonal(apart, np.inf)
alone = apart.min(axis=1) > 3 * np.median(apart.min(axis=1))
untrained = [i for i in range(len(table)) if alone[i] and lengths[i] < 2 * np.median(lengths)]
""",
        """
import torch
rows = torch.tensor(table)
rows = rows - rows.mean(0)
cosines = torch.nn.functional.cosine_similarity(rows[:, None], rows[None], dim=-1).fill_diagonal_(-1)
untrained = set(torch.where((cosines.amax(1) < 0.5) & (rows.norm(dim=1) < 0.5))[0].tolist())
""",
        """
step = np.linalg.norm(np.diff(table, axis=0), axis=1)
smooth = np.flatnonzero(step < 2 * np.median(step))
first, last = smooth[0], smooth[-1] + 1
long = np.linalg.norm(table, axis=1) > 2 * np.median(np.linalg.norm(table, axis=1))
first, last = np.flatnonzero(long)[0], np.flatnonzero(long)[-1]
untrained = np.array([*range(first), *range(last + 1, len(table))])
""",
    ],
    "q4": [
        """
start, cut, stop = np.flatnonzero(np.linalg.norm(table, axis=1) > 2 * np.median(np.linalg.norm(table, axis=1)))
offset, n_positions, cut_at = start, stop - start + 1, cut - start + 1
""",
        """
norms = load_table(table).norms
long = (norms > 2 * norms.median()).nonzero().flatten().tolist()
offset = long[0]
positions = load_table(table, offset=offset)
n_positions = long[2] + 1 - offset
cut_at = int(positions.norms[1 : n_positions - 1].argmax()) + 1 + 1
""",
        """
offset = 0
while offset in untrained:
    offset += 1
n_positions = len(table) - len(untrained)
inside = table[offset + 5 : offset + n_positions - 5]
cut_at = 5 + int(np.abs(inside - inside.mean(0)).sum(1).argmax()) + 1
""",
    ],
    "q5": [
        """
def is_read(x):
    r = probe_table(np.asarray(x), probe="ridge")
    b = r.baselines
    return all(r.interval.high < c / 2 for c in (b.constant, b.permuted_labels, b.random_table))
""",
        """
def is_read(x):
    at, rng = np.arange(len(x)), np.random.default_rng(5)
    even, odd = at[::2], at[1::2]
    error = lambda x, y: np.abs(read(x, y, even, odd) - y[odd])
    constant = np.abs(odd - np.median(even)).mean()
    permuted = np.mean([error(x, rng.permutation(at)).mean() for _ in range(10)])
    drawn = np.mean([error(rng.normal(size=x.shape), at).mean() for _ in range(10)])
    return bool(mean_interval(error(x, at)).high * 2 < min(constant, permuted, drawn))
""",
        """
def is_read(x):
    n, rng = len(x), np.random.default_rng(0)
    even, odd = np.arange(0, n, 2), np.arange(1, n, 2)
    off = np.abs(read(x, np.arange(n), even, odd) - odd)
    size = int(np.ceil(len(off) ** 0.5))
    means = []
    for _ in range(2000):
        starts = rng.integers(0, len(off) - size + 1, -(-len(off) // size))
        means.append(np.concatenate([off[s : s + size] for s in starts])[: len(off)].mean())
    baselines = probe_table(x, probe="ols").baselines
    bound = min(baselines.constant, *baselines.permuted_labels_runs, *baselines.random_table_runs) / 2
    return bool(np.quantile(means, 0.975) < bound)
""",
    ],
    "q6": [
        """
def nearest(x, y, train, test):
    return np.array([y[train[np.argmin(np.linalg.norm(x[train] - row, axis=1))]] for row in x[test]])
""",
        """
from sklearn.neighbors import KNeighborsRegressor
def nearest(x, y, train, test):
    return KNeighborsRegressor(1).fit(x[train], y[train]).predict(x[test])
""",
        """
import torch
def nearest(x, y, train, test):
    apart = torch.cdist(torch.tensor(x[test]), torch.tensor(x[train]), compute_mode="donot_use_mm_for_euclid_dist")
    return torch.tensor(y)[torch.tensor(train)][apart.argmin(dim=1)].tolist()
""",
    ],
    "q7": [
        """
for name, x in stretches.items():
    result = probe_table(x, probe="ridge")
    between[name] = result.interval.high < result.baselines.constant / 2
    result = probe_table(x, probe="ridge", split="half")
    onward[name] = result.test_mae < np.abs(result.positions - result.positions.mean()).mean()
    at = np.arange(len(x))
    by_nearest[name] = bool(np.mean(np.abs(nearest(x, at, at[::2], at[1::2]) - at[1::2])) < len(x) / 8)
""",
        """
for name, (start, stop) in report["stretches"].items():
    rows = np.arange(start, stop)
    even, odd = rows[rows % 2 == 0], rows[rows % 2 == 1]
    first, second = np.array_split(rows, 2)
    guess = np.abs(odd - odd.mean()).mean()
    between[name] = bool(np.abs(read(table, np.arange(len(table)), even, odd) - odd).mean() < guess / 2)
    off = np.abs(read(table, np.arange(len(table)), first, second) - second).mean()
    onward[name] = bool(off < len(rows) / 8)
    apart = np.linalg.norm(table[odd][:, None] - table[even], axis=-1)
    by_nearest[name] = bool(np.abs(even[apart.argmin(1)] - odd).mean() < guess / 2)
""",
        """
wide = {name: np.linalg.norm(np.diff(x, 2, axis=0), axis=1).mean() for name, x in stretches.items()}
between = {name: bool(is_read(x)) for name, x in stretches.items()}
onward = {name: between[name] and wide[name] < max(wide.values()) for name in stretches}
alike = {}
for name, x in stretches.items():
    apart = np.linalg.norm(x[:, None] - x[None], axis=-1)
    at = np.arange(len(x))
    alike[name] = apart[np.abs(at[:, None] - at) > 8].min() < np.median(np.diagonal(apart, 2)) / 2
by_nearest = {name: not bool(each) for name, each in alike.items()}
""",
    ],
    "q8": [
        """
from posembed import properties_of_matrix
for name, x in stretches.items():
    as_stored[name] = properties_of_matrix(x @ x.T).translation_invariance
    x = x - x.mean(0, keepdims=True)
    less_mean[name] = properties_of_matrix(x @ x.T).translation_invariance
name = max(less_mean, key=less_mean.get)
x = stretches[name] - stretches[name].mean(0)
along = [np.diagonal(x @ x.T, k).mean() for k in range(26)]
period = 6 + int(np.argmax(along[6:]))
monotone_to_5 = properties_of_matrix(x @ x.T, max_offset=5).monotonicity
monotone = properties_of_matrix(x @ x.T).monotonicity
""",
        """
def invariance(x):
    A = x @ x.T
    n = len(A)
    k = np.subtract.outer(np.arange(n), np.arange(n))
    off = A[k != 0]
    inside = sum(A[k == j].var() * (k == j).sum() for j in range(1 - n, n) if j)
    return float(1 - inside / (off.var() * off.size))
as_stored = {name: invariance(x) for name, x in stretches.items()}
less_mean = {name: invariance(x - x.mean(0)) for name, x in stretches.items()}
""",
        """
bounds = report["stretches"].items()
as_stored = {n: round(properties(table, rows=(a, b)).translation_invariance, 3) for n, (a, b) in bounds}
less_mean = {n: round(properties(x - x.mean(0)).translation_invariance, 3) for n, x in stretches.items()}
x = stretches[max(less_mean, key=less_mean.get)]
score = np.linalg.svd(x - x.mean(0))[0][:, 0]
best = {}
for length in range(8, 25):
    errors = score[length:] - score[:-length]
    best[length] = float((errors**2).mean())
period = min(best, key=best.get)
monotone_to_5, monotone = (round(properties(x - x.mean(0), max_offset=k).monotonicity, 3) for k in (5, len(x)))
""",
    ],
    "q9": [
        """
phrases = {"1": "dealt out", "4": "not all of the fit", "6": "That says nothing", "7": "finds the same error"}
phrases |= {"8": "may never have moved", "9": "does not show", "10": "are read better"}
for number, phrase in phrases.items():
    holds[number] = phrase in report["claims"][number]
p, row = [int(word) for word in report["claims"]["3"].replace(".", "").split() if word.isdigit()]
holds["3"] = bool(row == p + offset)
x = stretches[report["claims"]["2"].split("stretch ")[1][0]]
at = np.arange(len(x))
holds["2"] = not np.abs(nearest(x, at, at[::2], at[1::2]) - at[1::2]).mean() < len(x) / 8
x = stretches[report["claims"]["5"].split("stretch ")[1][0]]
holds["5"] = probe_table(x, split="half").test_mae < len(x) / 8
""",
        """
def says(number, *words):
    return all(word in report["claims"][str(number)] for word in words)
doubtful = {1: "knows", 4: "by heart, and the table", 6: "So the model", 7: "larger by"}
doubtful |= {8: "So training", 9: "So the model can", 10: "So positions"}
holds |= {str(number): not says(number, words) for number, words in doubtful.items()}
position, row = (int(each.strip(".")) for each in report["claims"]["3"].split() if each.strip(".").isdigit())
holds["3"] = row - position == offset
""",
        """
verdicts = [holds[str(k)] for k in range(1, 11)]
holds = {str(k): np.bool_(each) for k, each in enumerate(verdicts, 1)}
""",
    ],
}

WRONG = {
    "q1": {
        "without an intercept": """
def read(x, y, train, test):
    return x[test] @ np.linalg.lstsq(x[train], y[train], rcond=None)[0]
""",
        "the intercept among the weights": """
def read(x, y, train, test):
    x = np.column_stack([x, np.ones(len(x))])
    return x[test] @ np.linalg.lstsq(x[train], y[train], rcond=None)[0]
""",
        "centred by the mean of all rows, labels not": """
def read(x, y, train, test):
    x = x - x.mean(axis=0)
    return x[test] @ np.linalg.lstsq(x[train], y[train], rcond=None)[0]
""",
        "fitted to all rows": """
def read(x, y, train, test):
    m = x.mean(axis=0)
    return (x[test] - m) @ np.linalg.lstsq(x - m, y - y.mean(), rcond=None)[0] + y.mean()
""",
        "predictions of the fitted rows": """
def read(x, y, train, test):
    m = x[train].mean(axis=0)
    w = np.linalg.lstsq(x[train] - m, y[train] - y[train].mean(), rcond=None)[0]
    return (x[train] - m) @ w + y[train].mean()
""",
        "by the inverse of the products": """
def read(x, y, train, test):
    m = x[train].mean(axis=0)
    X = x[train] - m
    w = np.linalg.inv(X.T @ X + 1e-3 * np.eye(X.shape[1])) @ X.T @ (y[train] - y[train].mean())
    return (x[test] - m) @ w + y[train].mean()
""",
        "errors in place of predictions": """
def read(x, y, train, test):
    m = x[train].mean(axis=0)
    w = np.linalg.lstsq(x[train] - m, y[train] - y[train].mean(), rcond=None)[0]
    return np.abs((x[test] - m) @ w + y[train].mean() - y[test])
""",
        "columns scaled one by one": """
def read(x, y, train, test):
    m, s = x[train].mean(axis=0), x[train].std(axis=0)
    w = np.linalg.lstsq((x[train] - m) / s, y[train] - y[train].mean(), rcond=None)[0]
    return (x[test] - m) / s @ w + y[train].mean()
""",
    },
    "q2": {
        "the intercept forgotten": "by_heart = 128",
        "one too many": "by_heart = 130",
        "as many as rows": "by_heart = len(table)",
        "every fit of a wide table": "certain = dict.fromkeys(certain, True)",
        "a stretch thought to be able to fail": "certain['the longest stretch'] = False",
        "even rows tested on odd ones": """
at = np.arange(len(table))
left_over["the file"] = float(np.abs(read(table, at, at[::2], at[1::2]) - at[1::2]).mean())
""",
        "squared errors": """
at = np.arange(len(table))
left_over["the file"] = float(np.square(read(table, at, at, at) - at).mean())
""",
        "a constant guess": "left_over['random rows'] = len(table) / 4",
        "random rows of twice the width": """
at = np.arange(len(table))
x = np.random.default_rng(0).normal(size=(len(table), 256))
left_over["random rows"] = float(np.abs(read(x, at, at, at) - at).mean())
""",
    },
    "q3": {
        "the tool's word on the file as it is": "untrained = load_table(table).untrained_rows",
        "those in front forgotten": "untrained = [row for row in untrained if row > 50]",
        "those at the end forgotten": "untrained = [row for row in untrained if row < 50]",
        "all that is like no other": """
rows = load_table(table - table.mean(0))
untrained = (rows.nearest < rows.random_bound).nonzero().flatten().tolist()
""",
        "long rows": """
norms = np.linalg.norm(table, axis=1)
untrained = np.flatnonzero(norms > 2 * np.median(norms)).tolist()
""",
        "one short": "untrained = untrained[:-1]",
        "rows counted from one": "untrained = [row + 1 for row in untrained[:-1]]",
        "the shortest": "untrained = np.argsort(np.linalg.norm(table, axis=1))[: len(untrained)].tolist()",
        "positions": "untrained = [row - offset for row in untrained if row >= offset]",
    },
    "q4": {
        "one too few in front": "offset = offset - 1",
        "RoBERTa's two, or one more": "offset = 2 if offset != 2 else 3",
        "all rows are positions": "n_positions = len(table) - offset",
        "the number of the last row": "n_positions = int(trained[-1])",
        "the last position": "n_positions = n_positions - 1",
        "the row": "cut_at = cut_at + offset - 1",
        "the position": "cut_at = cut_at - 1",
        "the row, counted from one": "cut_at = cut_at + offset",
    },
    "q5": {
        "the fitted rows": """
def is_read(x):
    r = probe_table(x, probe="ols", split="all")
    return r.interval.high < r.baselines.constant / 2
""",
        "the mean alone": """
def is_read(x):
    r = probe_table(x, probe="ols")
    return r.test_mae < min(r.baselines.constant, r.baselines.permuted_labels, r.baselines.random_table) / 2
""",
        "independent errors": """
def is_read(x):
    r = probe_table(x, probe="ols")
    off = np.abs(r.predictions - r.positions)
    return bool(off.mean() + 1.96 * off.std(ddof=1) / len(off) ** 0.5 < r.baselines.constant / 2)
""",
        "rows drawn one by one": """
def is_read(x):
    r, rng = probe_table(x, probe="ols"), np.random.default_rng(0)
    off = np.abs(r.predictions - r.positions)
    means = off[rng.integers(len(off), size=(2000, len(off)))].mean(1)
    return bool(np.quantile(means, 0.975) < r.baselines.constant / 2)
""",
        "the lower end": """
def is_read(x):
    r = probe_table(x, probe="ols")
    return r.interval.low < r.baselines.constant / 2
""",
        "the second half": """
def is_read(x):
    r = probe_table(x, probe="ols", split="half")
    return r.interval.high < r.baselines.constant / 2
""",
        "the share of variance": "def is_read(x): return probe_table(x, probe='ols').r2 > 0.5",
        "a column's correlation": """
def is_read(x):
    return max(abs(np.corrcoef(np.arange(len(x)), column)[0, 1]) for column in x.T) > 0.9
""",
        "a threshold of its own": "def is_read(x): return probe_table(x, probe='ols').test_mae < len(x) / 40",
        "a network": """
def is_read(x):
    r = probe_table(np.column_stack([x, (x * x).sum(1)]), probe="mlp")
    return r.test_mae < r.baselines.constant
""",
        "always": "def is_read(x): return True",
    },
    "q6": {
        "the largest product": """
def nearest(x, y, train, test):
    return y[train][(x[test] @ x[train].T).argmax(axis=1)]
""",
        "the largest cosine": """
def nearest(x, y, train, test):
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    return y[train][(u[test] @ u[train].T).argmax(axis=1)]
""",
        "itself among the candidates": """
def nearest(x, y, train, test):
    apart = np.linalg.norm(x[test][:, None] - x[None], axis=-1)
    return y[apart.argmin(axis=1)]
""",
        "the number of the training row": """
def nearest(x, y, train, test):
    return np.linalg.norm(x[test][:, None] - x[train], axis=-1).argmin(axis=1)
""",
        "its row in place of its label": """
def nearest(x, y, train, test):
    return train[np.linalg.norm(x[test][:, None] - x[train], axis=-1).argmin(axis=1)]
""",
        "the farthest": """
def nearest(x, y, train, test):
    return y[train][np.linalg.norm(x[test][:, None] - x[train], axis=-1).argmax(axis=1)]
""",
        "the mean of the two nearest": """
def nearest(x, y, train, test):
    two = np.linalg.norm(x[test][:, None] - x[train], axis=-1).argsort(axis=1)[:, :2]
    return y[train][two].mean(axis=1)
""",
        "the nearest label": """
def nearest(x, y, train, test):
    return y[train][np.abs(y[test][:, None] - y[train]).argmin(axis=1)]
""",
    },
    "q7": {
        "no error on the fitted rows": "between = dict.fromkeys(between, True)",
        "what is read between goes on": "onward = dict(between)",
        "what a line misses is not there": "by_nearest = dict(between)",
        "beside the constant of the fitted rows": """
onward = {}
for name, x in stretches.items():
    result = probe_table(x, probe="ols", split="half")
    onward[name] = result.test_mae < result.baselines.constant
""",
        "neighbours are alike, so it is read": "by_nearest = dict.fromkeys(by_nearest, True)",
        "translation invariance for reading": """
by_invariance = {name: properties(x - x.mean(0)).translation_invariance for name, x in stretches.items()}
between = {name: each > 0.83 for name, each in by_invariance.items()}
""",
        "nothing goes on": "onward = dict.fromkeys(onward, False)",
    },
    "q8": {
        "the mean of all rows": """
less_mean = {}
for name, (start, stop) in report["stretches"].items():
    less_mean[name] = properties(table - table.mean(0), rows=(start, stop)).translation_invariance
""",
        "cosines": """
less_mean = {
    name: properties(x - x.mean(0), similarity="cosine").translation_invariance for name, x in stretches.items()
}
""",
        "the same twice": "as_stored = dict(less_mean)",
        "symmetry": "as_stored = {name: properties(x).symmetry for name, x in stretches.items()}",
        "half a turn": "period = round(period / 2)",
        "two turns": "period = 2 * period",
        "near for far": "monotone = monotone_to_5",
        "up to half of the rows": """
x = stretches[max(less_mean, key=less_mean.get)]
monotone_to_5 = properties(x - x.mean(0), max_offset=len(x) // 2).monotonicity
""",
        "of another stretch": """
x = stretches[min(less_mean, key=less_mean.get)]
monotone_to_5 = properties(x - x.mean(0), max_offset=5).monotonicity
""",
    },
    "q9": {
        "no error is knowledge, and control no evidence": "holds['1'] = 'knows' in report['claims']['1']",
        "what a line misses is not there": "holds['2'] = not holds['2']",
        "row is position": """
position, row = (int(each.strip(".")) for each in report["claims"]["3"].split() if each.strip(".").isdigit())
holds["3"] = not (row == position + offset)
""",
        "every fit of many columns is by heart": "holds['4'] = 'says nothing' in report['claims']['4']",
        "a walk goes on": "holds['5'] = not holds['5']",
        "symmetric products, symmetric attention": "holds['6'] = 'So the model' in report['claims']['6']",
        "a probe sees the offset": "holds['7'] = 'larger by' in report['claims']['7']",
        "what is alike was trained": "holds['8'] = 'So training' in report['claims']['8']",
        "what is read is counted": "holds['9'] = 'can count' in report['claims']['9']",
        "invariance is readability": "holds['10'] = 'So positions' in report['claims']['10']",
        "all hold": "holds = dict.fromkeys(holds, True)",
        "none holds": "holds = dict.fromkeys(holds, False)",
    },
}

# What gives no answer, and would like points for it; zeros, NaN and the like stand in the tests of all questions.
STUBS = {
    "q3": {"a row that is always one": "untrained = [0]", "all rows": "untrained = range(len(table))"},
    "q5": {
        "by the width": "def is_read(x): return x.shape[1] < 4",
        "by the length": "def is_read(x): return len(x) % 2 == 0",
        "a coin": "import random\ndef is_read(x): return random.random() < 0.5",
        "a coin that remembers": "def is_read(x): return hash(np.abs(x).sum().round(6)) % 2 == 0",
    },
    "q6": {
        "the nearest by number": """
def nearest(x, y, train, test):
    return y[train][np.abs(np.asarray(test)[:, None] - np.asarray(train)).argmin(axis=1)]
""",
        "the first": "def nearest(x, y, train, test): return np.full(len(test), y[train[0]])",
    },
}
