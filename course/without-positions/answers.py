"""Answers as students write them: right ones in other words, and wrong ones by what is wrong with them."""

# Functions of the key read the key's own names, so an answer brings what it changes.
REPORT = """
def reported(losses, plan):
    report = {}
    for arm in plan["arms"][1:]:
        found = difference([losses[arm][s] for s in plan["seeds"]], [losses["nopos"][s] for s in plan["seeds"]])
        low, high = found.low, found.high
        report[arm] = {"mean": found.mean, "low": low, "high": high, "p": found.p}
        report[arm]["verdict"] = verdict(low, high, plan["matters"])
    (_, a), (_, b) = sorted((each["p"], arm) for arm, each in report.items())
    report[a]["holm"] = min(2 * report[a]["p"], 1.0)
    report[b]["holm"] = max(report[a]["holm"], report[b]["p"])
    return report
"""
FLOOR = """
def floor(ids, hidden):
    from collections import Counter, defaultdict
    groups = defaultdict(Counter)
    for text, gaps in zip(ids.tolist(), hidden.tolist()):
        key = KEY
        groups[key].update(t for t, gap in zip(text, gaps) if gap)
    nats = -sum(n * math.log(n / sum(of.values())) for of in groups.values() for n in of.values())
    return nats / float(hidden.sum())
"""
VISIBLE = "tuple(sorted(t for t, gap in zip(text, gaps) if not gap))"

RIGHT = {
    "q1": [
        """
plan = {"arms": ["nopos", "alibi", "t5"], "seeds": [11, 12, 13, 14], "measure": "loss", "matters": 0.05}
plan["expected"] = {"alibi": "cannot tell", "t5": "too small to matter"}
def settings(scheme, seed):
    return dict(SIZES, scheme=scheme, seed=seed)
""",
        """
plan["expected"] = dict.fromkeys(plan["arms"][1:], "higher")
def settings(scheme, seed):
    told = dict(SIZES)
    told["scheme"], told["seed"] = scheme, seed
    return told
""",
        """
plan["seeds"] = list(range(3, 7))
plan["matters"] = 0.1
def settings(scheme, seed):
    from dataclasses import asdict
    return asdict(RunConfig(**SIZES, scheme=scheme, seed=seed))
""",
    ],
    "q2": [
        """
from math import log
loss_same, loss_even, loss_best = round(drawn["loss_same"], 3), round(drawn["loss_even"], 3), 1.386
def frequency_loss(train_ids, test_ids, n):
    shares = [1 + int((train_ids == k).sum()) for k in range(n)]
    total = sum(shares)
    return -sum(log(shares[k] / total) for k in test_ids.tolist()) / len(test_ids)
""",
        """
import numpy as np
shares = np.array([int(each) / 16 for each in drawn["shares"].replace("/16", "").replace(" and", ",").split(", ")])
pairs = (shares, shares), (0.25, shares), (shares, 0.25)
loss_same, loss_even, loss_best = (float(-(p * np.log(q)).sum()) for p, q in pairs)
def frequency_loss(train_ids, test_ids, n):
    counts = np.bincount(train_ids.numpy(), minlength=n) + 1
    of_test = np.bincount(test_ids.numpy(), minlength=n) / len(test_ids)
    return float(-(of_test * np.log(counts / counts.sum())).sum())
by_frequency = frequency_loss(corpus.train, corpus.test, len(corpus.vocabulary))
""",
        """
import torch.nn.functional as F
def frequency_loss(train_ids, test_ids, n):
    logits = torch.log1p(torch.bincount(train_ids, minlength=n).double())
    return F.cross_entropy(logits.expand(len(test_ids), n), test_ids)
by_frequency = round(by_frequency, 3)
""",
    ],
    "q3": [
        """
low_by_hand, high_by_hand, seeds_wanted = round(drawn["low"], 3), round(drawn["high"], 3), drawn["seeds_wanted"]
def paired(losses, others):
    import numpy as np
    both = sorted(set(losses) & set(others))
    gaps = np.array([losses[s] for s in both]) - np.array([others[s] for s in both])
    half = T95[len(both) - 1] * gaps.std(ddof=1) / np.sqrt(len(both))
    return gaps.mean(), gaps.mean() - half, gaps.mean() + half
""",
        """
import statistics
a, b = ([float(each) for each in drawn[name].replace(" and", ",").split(", ")] for name in ("losses_a", "losses_b"))
s = statistics.stdev([y - x for x, y in zip(a, b)])
low_by_hand, high_by_hand = (statistics.mean(b) - statistics.mean(a) + k * 4.303 * s / 3**0.5 for k in (-1, 1))
seeds_wanted = min(n for n in range(2, 17) if T95[n - 1] * s / n**0.5 <= 0.01)
def paired(losses, others):
    gaps = [loss - others[seed] for seed, loss in losses.items() if others.get(seed) is not None]
    half = T95[len(gaps) - 1] * statistics.stdev(gaps) * len(gaps) ** -0.5
    return [statistics.fmean(gaps), statistics.fmean(gaps) - half, statistics.fmean(gaps) + half]
""",
        """
def paired(losses, others):
    gaps = torch.tensor([losses[s] - others[s] for s in losses.keys() & others.keys()], dtype=torch.float64)
    n, mean = len(gaps), gaps.mean()
    error = ((gaps.square().sum() - n * mean**2).clamp(min=0) / (n - 1) / n).sqrt()
    return float(mean), float(mean - T95[n - 1] * error), float(mean + T95[n - 1] * error)
""",
    ],
    "q4": [
        """
holm_by_hand = {name: round(p, 3) for name, p in drawn["holm"].items()}
found_of_five, found_of_four = float(drawn["of_five"]), drawn["of_four"]
""",
        """
def corrected(ps):
    out, so_far = {}, 0
    for left, name in zip(range(len(ps), 0, -1), sorted(ps, key=ps.get)):
        out[name] = so_far = max(so_far, min(1, left * ps[name]))
    return out
ps = drawn["chances"]
holm_by_hand = corrected(ps)
found_of_five = sum(p < 0.05 for p in holm_by_hand.values())
found_of_four = sum(p < 0.05 for p in corrected({k: p for k, p in ps.items() if k != drawn["dropped"]}).values())
""",
        """
from posembed.stats import Interval, family
ps = drawn["chances"]
holm_by_hand = family({k: Interval(0.0, 0.0, 0.0, 3, p) for k, p in ps.items()})["holm"].to_dict()
""",
    ],
    "q5": [
        # Another arm, and seeds in another order.
        REPORT
        + """
plan["arms"], plan["seeds"], plan["matters"] = ["nopos", "rope", "alibi"], (3, 1, 2), 0.03
plan["expected"] = dict.fromkeys(["rope", "alibi"], "cannot tell")
losses = {arm: {seed: losses[arm][seed] for seed in (2, 3, 1)} for arm in ("rope", "nopos")}
losses["alibi"] = {seed: train(RunConfig(**settings("alibi", seed))).metrics["loss"] for seed in (1, 2, 3)}
report = reported(losses, plan)
""",
        # The rule in other words.
        REPORT
        + """
def verdict(low, high, matters):
    if max(-low, high) < matters: return "too small to matter"
    if low <= 0 <= high: return "cannot tell"
    return "lower" if low < 0 else "higher"
report = reported(losses, plan)
""",
        # A larger difference matters; numbers of other libraries, rounded, of which two may be the same.
        REPORT
        + """
import numpy as np
def verdict(low, high, matters):
    if abs(low) < matters and abs(high) < matters:
        return "too small to matter"
    elif low > 0:
        return "higher"
    elif high < 0:
        return "lower"
    else:
        return "cannot tell"
plan["matters"] = np.float32(0.5)
losses = {arm: {seed: np.round(loss, 3) for seed, loss in runs.items()} for arm, runs in losses.items()}
report = reported(losses, plan)
report = {
    arm: {name: said if name == "verdict" else round(said, 3) for name, said in each.items()}
    for arm, each in report.items()
}
assert {each["verdict"] for each in report.values()} == {"too small to matter"}
""",
    ],
    "q6": [
        "def constant_error(n): return (n**2 // 4) / n",
        "def constant_error(n): return sum(abs(i - n // 2) for i in range(n)) / n",
        """
def constant_error(n):
    positions = torch.arange(n).double()
    return float((positions - positions.median()).abs().mean())
change = [round(each, 4) for each in change]
""",
    ],
    "q7": [
        """
alike, variance_5 = round(drawn["alike"], 3), round(drawn["variance_5"], 4)
limit, spread = round(drawn["limit"], 3), round(drawn["spread"], 3)
""",
        """
alike = (drawn["near"] / drawn["far"]) ** 0.5
own = 1 / int(drawn["own"][2:])
variance_5 = sum(w**2 for w in [own] + [(1 - own) / 4] * 4)
limit, spread = own**2, (2 / drawn["channels"]) ** 0.5
""",
        """
random = torch.Generator().manual_seed(0)
squares = torch.randn(200_000, drawn["channels"], generator=random).square().mean(dim=1)
spread = round(float(squares.std() / squares.mean()), 3)
""",
    ],
    "q8": [
        FLOOR.replace("KEY", VISIBLE),
        """
rows, least = float(drawn["rows"]), round(drawn["least"], 4)
same_everywhere = {name: "learned" not in name and "sinusoidal" not in name for name in same_everywhere}
def floor(ids, hidden):
    n = int(ids.max()) + 1
    picks = (ids[..., None] == torch.arange(n)).double()
    seen, gone = ((picks * mask[..., None]).sum(1) for mask in (~hidden, hidden))
    _, group = seen.unique(dim=0, return_inverse=True)
    counts = torch.zeros(int(group.max()) + 1, n).double().index_add(0, group, gone)
    shares = counts / counts.sum(1, keepdim=True).clamp(min=1)
    return -float(torch.xlogy(counts, shares).sum() / hidden.sum())
""",
        """
def floor(ids, hidden):
    keys = [str(sorted(text[~gaps].tolist())) for text, gaps in zip(ids, hidden)]
    total = torch.zeros(())
    for key in set(keys):
        of = torch.cat([ids[i][hidden[i]] for i, each in enumerate(keys) if each == key])
        if len(of):
            counts = of.unique(return_counts=True)[1].float()
            total = total + len(of) * torch.distributions.Categorical(counts / counts.sum()).entropy()
    return total / hidden.sum()
""",
    ],
}

RISING = "rising = sorted(drawn['chances'].items(), key=lambda each: each[1])\n"
WRONG = {
    "q1": {
        "the seed that chose the rate": "plan['seeds'] = [0, 1, 2]",
        "one seed": "plan['seeds'] = [1]",
        "a seed three times": "plan['seeds'] = [4, 4, 4]",
        "the text that chose the rate": "plan['measure'] = 'validation_loss'",
        "the training loss": "plan['measure'] = 'curve'",
        "two arms": "plan['arms'], plan['expected'] = ['nopos', 'rope'], {'rope': 'lower'}",
        "seeds of their own for each arm": """
def settings(scheme, seed):
    return SIZES | {"scheme": scheme, "seed": seed + 10 * len(scheme)}
""",
        "one seed for all runs": """
def settings(scheme, seed):
    return SIZES | {"scheme": scheme, "seed": 1}
""",
        "more steps for one arm": """
def settings(scheme, seed):
    return SIZES | {"scheme": scheme, "seed": seed, "steps": 150 if scheme == "nopos" else 200}
""",
        "a learning rate for each arm": """
def settings(scheme, seed):
    rates = {"nopos": 0.01, "learned": 0.03}
    return SIZES | {"scheme": scheme, "seed": seed, "learning_rate": rates.get(scheme, 0.01)}
""",
        "the scheme ignored": """
def settings(scheme, seed):
    return SIZES | {"scheme": "rope", "seed": seed}
""",
        "nothing given back": "def settings(scheme, seed): print(SIZES | {'scheme': scheme, 'seed': seed})",
    },
    "q2": {
        "bits": """
loss_same, loss_even, loss_best = (each / math.log(2) for each in (loss_same, loss_even, loss_best))
def frequency_loss(train_ids, test_ids, n):
    counts = torch.bincount(train_ids, minlength=n).double() + 1
    return float(-(counts / counts.sum()).log2()[test_ids].mean())
""",
        "the test text's own shares": """
def frequency_loss(train_ids, test_ids, n):
    counts = torch.bincount(test_ids, minlength=n).double() + 1
    return float(-(counts / counts.sum()).log()[test_ids].mean())
""",
        "the entropy of the training text": """
def frequency_loss(train_ids, test_ids, n):
    shares = (torch.bincount(train_ids, minlength=n).double() + 1) / (len(train_ids) + n)
    return float(-(shares * shares.log()).sum())
""",
        "the mean over kinds": """
def frequency_loss(train_ids, test_ids, n):
    counts = torch.bincount(train_ids, minlength=n).double() + 1
    return float(-(counts / counts.sum()).log().mean())
""",
        "the sum": """
def frequency_loss(train_ids, test_ids, n):
    counts = torch.bincount(train_ids, minlength=n).double() + 1
    return float(-(counts / counts.sum()).log()[test_ids].sum())
""",
        "nothing added": """
def frequency_loss(train_ids, test_ids, n):
    counts = torch.bincount(train_ids, minlength=n).double()
    return float(-(counts / counts.sum()).log()[test_ids].mean())
""",
        "one added to the sum alone": """
def frequency_loss(train_ids, test_ids, n):
    counts = torch.bincount(train_ids, minlength=n).double() + 1
    return float(-(counts / (len(train_ids) + 1)).log()[test_ids].mean())
""",
        "the even text guessed best": "loss_even = loss_best",
        "the two texts exchanged": "loss_even, loss_best = loss_best, loss_even",
        "the corpus's texts exchanged": "by_frequency = frequency_loss(corpus.test, corpus.train, 83)",
        "another text": "by_frequency = frequency_loss(corpus.train, corpus.validation, 83)",
    },
    "q3": {
        "n below the fraction": """
low_by_hand, high_by_hand = low_by_hand + 0.007, high_by_hand - 0.007
def paired(losses, others):
    gaps = [losses[s] - others[s] for s in losses if s in others]
    n, mean = len(gaps), sum(gaps) / len(gaps)
    half = T95[n - 1] * (sum((g - mean) ** 2 for g in gaps) / n / n) ** 0.5
    return mean, mean - half, mean + half
""",
        "1.96 for t": """
def paired(losses, others):
    gaps = torch.tensor([losses[s] - others[s] for s in losses if s in others]).double()
    mean, half = float(gaps.mean()), 1.96 * float(gaps.std()) / len(gaps) ** 0.5
    return mean, mean - half, mean + half
""",
        "the standard deviation for that of a mean": """
def paired(losses, others):
    gaps = torch.tensor([losses[s] - others[s] for s in losses if s in others]).double()
    mean, half = float(gaps.mean()), T95[len(gaps) - 1] * float(gaps.std())
    return mean, mean - half, mean + half
""",
        "t of n degrees of freedom": """
def paired(losses, others):
    gaps = torch.tensor([losses[s] - others[s] for s in losses if s in others]).double()
    mean, half = float(gaps.mean()), T95[len(gaps)] * float(gaps.std()) / len(gaps) ** 0.5
    return mean, mean - half, mean + half
""",
        "paired as they stand": """
def paired(losses, others):
    gaps = torch.tensor([a - b for a, b in zip(losses.values(), others.values())]).double()
    mean, half = float(gaps.mean()), T95[len(gaps) - 1] * float(gaps.std()) / len(gaps) ** 0.5
    return mean, mean - half, mean + half
""",
        "not paired": """
def paired(losses, others):
    both = losses.keys() & others.keys()
    a, b = (torch.tensor([each[s] for s in both]).double() for each in (losses, others))
    mean, half = float(a.mean() - b.mean()), T95[2 * len(a) - 2] * float((a.var() + b.var()) / len(a)) ** 0.5
    return mean, mean - half, mean + half
""",
        "the other way round": """
def paired(losses, others):
    gaps = torch.tensor([others[s] - losses[s] for s in losses if s in others]).double()
    mean, half = float(gaps.mean()), T95[len(gaps) - 1] * float(gaps.std()) / len(gaps) ** 0.5
    return mean, mean - half, mean + half
""",
        "a seed that both must have": """
def paired(losses, others):
    gaps = torch.tensor([losses[s] - others[s] for s in others]).double()
    mean, half = float(gaps.mean()), T95[len(gaps) - 1] * float(gaps.std()) / len(gaps) ** 0.5
    return mean, mean - half, mean + half
""",
        "A minus B": "low_by_hand, high_by_hand = -high_by_hand, -low_by_hand",
        "2 s / sqrt(n)": "seeds_wanted -= 2",
        "one seed too few": "seeds_wanted -= 1",
    },
    "q4": {
        "Bonferroni": "holm_by_hand = {name: min(1, 5 * p) for name, p in drawn['chances'].items()}",
        "no running maximum": RISING + "holm_by_hand = {name: (5 - i) * p for i, (name, p) in enumerate(rising)}",
        "found by it": "found_of_five = found_of_four",
        "from the largest on": RISING + "holm_by_hand = {name: (1 + i) * p for i, (name, p) in enumerate(rising)}",
        "nothing corrected": "holm_by_hand = drawn['chances']",
        "what is left out changes nothing": "found_of_four = found_of_five",
    },
    "q5": {
        "zero not looked at": """
def verdict(low, high, matters):
    if -matters < low and high < matters: return "too small to matter"
    return "lower" if low + high < 0 else "higher"
""",
        "no difference, where one cannot tell": """
def verdict(low, high, matters):
    if low <= 0 <= high: return "too small to matter"
    return "lower" if high < 0 else "higher"
""",
        "what matters not looked at": """
def verdict(low, high, matters):
    return "lower" if high < 0 else "higher" if low > 0 else "cannot tell"
""",
        "one side is enough": """
def verdict(low, high, matters):
    if high < 0: return "lower"
    if low > 0: return "higher"
    return "too small to matter" if -matters < low and high < matters else "cannot tell"
""",
        "the mean must matter": """
def verdict(low, high, matters):
    mean = (low + high) / 2
    if abs(mean) < matters: return "too small to matter"
    return "lower" if high < 0 else "higher" if low > 0 else "cannot tell"
""",
        "an end at zero counts": """
def verdict(low, high, matters):
    if -matters < low and high < matters: return "too small to matter"
    return "lower" if high <= 0 else "higher" if low >= 0 else "cannot tell"
""",
        "the verdict that was expected": """
report = {arm: each | {"verdict": plan["expected"][arm]} for arm, each in report.items()}
""",
        "the best seed of each": """
losses = {arm: {min(runs, key=runs.get): min(runs.values())} for arm, runs in losses.items()}
""",
        "one seed left out of the report": """
seeds = plan["seeds"][:2]
found = difference([losses["rope"][s] for s in seeds], [losses["nopos"][s] for s in seeds])
report["rope"] = report["rope"] | {"mean": found.mean, "low": found.low, "high": found.high}
""",
        "nopos minus the others": """
report = {
    arm: each | {"mean": -each["mean"], "low": -each["high"], "high": -each["low"]} for arm, each in report.items()
}
""",
        "one comparison left out": "report.pop('learned')",
        "not corrected": "report = {arm: each | {'holm': each['p']} for arm, each in report.items()}",
        "an arm that was not planned": "losses['alibi'] = {1: 2.4, 2: 2.41, 3: 2.42}",
        "a model that learned nothing": "losses['nopos'] = {1: 3.3, 2: 3.31, 3: 3.32}",
        "perplexities": "losses = {arm: {s: math.exp(x) for s, x in runs.items()} for arm, runs in losses.items()}",
        "the seed was not used": "losses = {arm: dict.fromkeys(runs, 2.4) for arm, runs in losses.items()}",
        "not paired": """
from scipy.stats import ttest_ind
a, b = (list(losses[arm].values()) for arm in ("rope", "nopos"))
low, high = map(float, ttest_ind(a, b).confidence_interval())
report["rope"] = report["rope"] | {"low": low, "high": high, "verdict": verdict(low, high, plan["matters"])}
""",
    },
    "q6": {
        "the random guess": "def constant_error(n): return (n**2 - 1) / (3 * n)",
        "even n alone": "def constant_error(n): return 0 if n == 1 else n / 4",
        "the first position guessed": "def constant_error(n): return (n - 1) / 2",
        "nothing leaks": "leaks = dict.fromkeys(leaks, False)",
        "everything leaks": "leaks = dict.fromkeys(leaks, True)",
        "one seed": "errors = {name: {1: of[1]} for name, of in errors.items()}",
        "without layer 0": "errors = {name: {s: e[1:] for s, e in of.items()} for name, of in errors.items()}",
        "the same model three times": "errors = {name: errors['trained'] for name in errors}",
        "the other way round": "change = [-change[0], -change[2], -change[1]]",
        "the last layer in place of the lowest": """
change = paired(*({s: e[2] + 0.1 * s for s, e in errors[name].items()} for name in ("trained", "both ways")))
""",
    },
    "q7": {
        "not the root": "alike = alike**2",
        "weights, not their squares": "variance_5 = 0.75 + variance_5 / 9",
        "an even mean": "variance_5 = 0.2",
        "nothing is left": "limit = 0",
        "the half itself": "limit = variance_5 - 0.01",
        "the variance for the standard deviation": "spread = spread**2",
        "of one channel": "spread = 2**0.5",
    },
    "q8": {
        "each place a row": "rows = 8",
        "hidden places differ": "rows = 6",
        "bits": "least /= math.log(2)",
        "no better than even": "least = math.log(2)",
        "one guess for all texts": FLOOR.replace("KEY", "None"),
        "a guess for each text": FLOOR.replace("KEY", "len(groups)"),
        "the order kept": FLOOR.replace("KEY", VISIBLE.replace("sorted(", "[").replace("gap))", "gap])")),
        "where it is hidden": FLOOR.replace("KEY", "tuple(-1 if gap else t for t, gap in zip(text, gaps))"),
        "a set in place of counts": FLOOR.replace("KEY", VISIBLE.replace("sorted(", "set(")),
        "what is hidden is told": FLOOR.replace("KEY", "tuple(sorted(text))"),
        "in bits": FLOOR.replace("KEY", VISIBLE).replace("math.log(", "math.log2("),
        "a sum": FLOOR.replace("KEY", VISIBLE).replace(" / float(hidden.sum())", ""),
        "a mean over texts": FLOOR.replace("KEY", VISIBLE).replace("float(hidden.sum())", "len(ids)"),
        "RoPE thought to mark places": "same_everywhere['both ways, rope'] = False",
        "the mask thought to be enough": "same_everywhere['causal, nopos'] = False",
        "a table thought to do nothing": "same_everywhere['both ways, learned'] = True",
    },
}

INVENTED = {
    "numbers that were made up": REPORT
    + """
losses = {"nopos": {1: 2.41, 2: 2.42, 3: 2.45}, "learned": {1: 2.421, 2: 2.411, 3: 2.44}}
losses["rope"] = {1: 2.37, 2: 2.47, 3: 2.39}
report = reported(losses, plan)
""",
    "fewer steps than the plan says": REPORT
    + """
def short(arm, seed):
    return train(RunConfig(**settings(arm, seed) | {"steps": 40})).metrics["loss"]
losses = {arm: {seed: short(arm, seed) for seed in plan["seeds"]} for arm in plan["arms"]}
report = reported(losses, plan)
""",
}
WRONG["q5"] |= INVENTED
# What gives no answer, and would like points for it; zeros, NaN and the like stand in the tests of all questions.
STUBS = {
    "q5": {what: f"{source}\ndef verdict(low, high, matters): return 'lower'\n" for what, source in INVENTED.items()},
    "q6": {
        "errors that were made up": """
def constant_error(n): return n / 10
errors = {"trained": {seed: [8.0, 5.0, 4.0] for seed in plan["seeds"]}}
errors |= {"untrained": {seed: [8.0, 6.0, 6.0] for seed in plan["seeds"]}}
errors |= {"both ways": {seed: [8.0, 8.0, 8.0] for seed in plan["seeds"]}}
leaks, change = {"trained": True, "untrained": True, "both ways": False}, [-2.0, -2.0, -2.0]
"""
    },
}
