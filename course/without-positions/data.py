"""The numbers of one course: of questions that are answered on paper."""

import itertools
import math
import statistics

# Of Student's distribution, 95 %, by degrees of freedom from 1 on.
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def make(draws):
    """No files, and what is true."""
    truth = shares(draws) | draws.until(interval, lambda found: found["clear"])
    return {}, truth | draws.until(holm, lambda found: found["tells"]) | means(draws) | hidden(draws)


def shares(draws):
    """Four letters with other shares, in sixteenths, and what guessing by them costs."""
    counts = draws.until(
        lambda draws: sorted((draws.whole(1, 9) for _ in range(4)), reverse=True),
        lambda found: sum(found) == 16 and found[0] > found[3] + 2,
    )
    nats = [-math.log(count / 16) for count in counts]
    return {
        "shares": ", ".join(f"{count}/16" for count in counts[:3]) + f" and {counts[3]}/16",
        "loss_same": sum(count / 16 * each for count, each in zip(counts, nats, strict=True)),
        "loss_even": sum(nats) / 4,
    }


def interval(draws):
    """Losses of three seeds, the interval of their differences, and how many seeds would make it narrow."""
    losses = [draws.whole(225, 250) for _ in range(3)]
    gaps = [draws.whole(-9, -1) for _ in range(3)]
    mean, deviation = statistics.mean(gaps) / 100, statistics.stdev(gaps) / 100
    half = T95[1] * deviation / math.sqrt(3)
    halves = [t * deviation / math.sqrt(n) for n, t in enumerate(T95, 2)]
    wanted = next((n for n, each in enumerate(halves, 2) if each <= 0.01), 0)
    # What is rounded on the way shall not decide, nor shall two seeds have one loss.
    near = min(abs(each - 0.01) for each in halves)
    others = [loss + gap for loss, gap in zip(losses, gaps, strict=True)]
    return {
        "losses_a": "{:.2f}, {:.2f} and {:.2f}".format(*(loss / 100 for loss in losses)),
        "losses_b": "{:.2f}, {:.2f} and {:.2f}".format(*(loss / 100 for loss in others)),
        "low": mean - half,
        "high": mean + half,
        "seeds_wanted": wanted,
        "clear": wanted >= 5 and near > 2e-4 and len(set(losses)) == 3 and abs(abs(mean) - half) > 0.003,
    }


def corrected(chances):
    """Holm's correction, by name."""
    found, least = {}, 0.0
    for left, name in zip(range(len(chances), 0, -1), sorted(chances, key=chances.get), strict=True):
        found[name] = least = max(least, min(1.0, left * chances[name]))
    return found


def holm(draws):
    """Five chances of which the correction takes some and the running maximum changes one, and the largest of them."""
    values = [draws.whole(2, 30) / 1000 for _ in range(4)] + [draws.whole(15, 60) / 100]
    chances = dict(zip("abcde", draws.order(values), strict=True))
    most = max(chances, key=chances.get)
    of_five, of_four = corrected(chances), corrected({name: p for name, p in chances.items() if name != most})
    five, four = (sum(p < 0.05 for p in each.values()) for each in (of_five, of_four))
    rising = sorted(chances.values())
    lifted = any((5 - i) * p > (4 - i) * after for i, (p, after) in enumerate(itertools.pairwise(rising)))
    clear = min(abs(p - 0.05) for each in (of_five, of_four) for p in each.values()) > 0.002
    told = [f"{p:.3f}".lstrip("0").rstrip("0") + f" ({name})" for name, p in chances.items()]
    return {
        "chances": chances,
        "told": ", ".join(told[:4]) + f" and {told[4]}",
        "dropped": most,
        "holm": of_five,
        "of_five": five,
        "of_four": four,
        "tells": len(set(values)) == 5 and lifted and clear and 1 <= five < four,
    } | {f"holm_{name}": round(p, 6) for name, p in of_five.items()}


def means(draws):
    """Means of independent draws."""
    near = draws.one((4, 9, 16))
    far = draws.one([each for each in (25, 36, 49, 64, 100) if abs((near / each) ** 0.5 - 0.5) > 0.01])
    below, channels = draws.one((2, 3, 4)), draws.one((18, 32, 50, 72, 128))
    own, others = 1 / below, (1 - 1 / below) / 4
    return {
        "near": near,
        "far": far,
        "alike": (near / far) ** 0.5,
        "own": f"1/{below}",
        "variance_5": own**2 + 4 * others**2,
        "limit": own**2,
        "channels": channels,
        "spread": (2 / channels) ** 0.5,
    }


def hidden(draws):
    """A text of eight places with hidden tokens, and the least loss of one guess for all of them."""
    counts = draws.one(({"a": 2, "b": 1}, {"a": 3, "b": 1}, {"a": 1, "b": 3}, {"a": 1, "b": 2}))
    visible = draws.until(
        lambda draws: [draws.one("abc") for _ in range(8 - sum(counts.values()))], lambda found: len(set(found)) > 1
    )
    n = sum(counts.values())
    gone = [letter for letter, count in counts.items() for _ in range(count)]
    return {
        "text": " ".join(draws.order(["M"] * n + visible)),
        "gone": f"{', '.join(gone[:-1])} and {gone[-1]}",
        "n_gone": {3: "three", 4: "four"}[n],
        "rows": len(set(visible)) + 1,
        "least": -sum(count / n * math.log(count / n) for count in counts.values()),
    }
