"""The numbers of one course: of questions that are answered on paper."""

import math
from collections import Counter


def make(draws):
    """No files, and what is true."""
    truth = draws.until(waves, lambda found: found["margin"] > 0.02)
    return {}, truth | draws.until(rounding, lambda found: 3 <= found["too_far"] <= 7) | buckets(draws)


def waves(draws):
    """Wavelengths: of a table's slowest pair, of a head's, and the base by which a head's slowest is so long."""
    width, base = draws.one((6, 8, 10, 12, 16)), draws.one((5000, 10000, 20000, 50000))
    head, upto = draws.one((48, 64, 96, 128)), 100 * draws.whole(3, 30)
    once = draws.one((32768, 49152, 65536, 98304, 131072))
    lengths = [2 * math.pi * 10000 ** (2 * i / head) for i in range(head // 2)]
    return {
        "width": width,
        "base": base,
        "longest": 2 * math.pi * base ** ((width - 2) / width),
        "head": head,
        "upto": f"{upto:,}",
        "turning": sum(length <= upto for length in lengths),
        "margin": min(abs(length / upto - 1) for length in lengths),
        "once": f"{once:,}",
        "base_wanted": (once / (2 * math.pi)) ** (head / (head - 2)),
    }


def rounded(position, bits=8):
    """To so many significant bits, from the middle between two to the one whose last bit is 0."""
    gap = max(1, 2 ** (position.bit_length() - bits))
    return round(position / gap) * gap


def rounding(draws):
    """What positions become in bfloat16."""
    n, far = draws.one((1024, 2048, 4096, 8192)), draws.whole(2100, 4000)
    found = Counter(rounded(position) for position in range(n))
    return {
        "n": f"{n:,}",
        "last": f"{n - 1:,}",
        "different": len(found),
        "largest_group": max(found.values()),
        "far": f"{far:,}",
        "too_far": rounded(far) - far,
    }


def bucket(distance, half):
    """T5's bucket of a distance on a side with 2 * half buckets and the distance 128, in whole numbers."""
    if distance < half:
        return distance
    # As many steps as fit: (128 / half) ** (step / half) <= distance / half, without a logarithm.
    steps = sum(128**step * half ** (half - step) <= distance**half for step in range(1, half + 1))
    return min(2 * half - 1, half + steps)


def buckets(draws):
    """Buckets of T5 with 32 of them and the distance 128."""
    ahead, behind = draws.order(range(11, 80))[:2]
    causal, both = draws.order(range(30, 100))[:2]
    return {
        "ahead_by": ahead,
        "behind_by": behind,
        "ahead": 16 + bucket(ahead, 8),
        "sharing": sum(bucket(each, 8) == bucket(behind, 8) for each in range(1000)),
        "causal_tokens": causal,
        "untrained_causal": 31 - bucket(causal - 1, 16),
        "both_tokens": both,
        # Bucket 16, of the offset 0 on the side of the future, occurs in no text.
        "untrained_both": 2 * (15 - bucket(both - 1, 8)) + 1,
    }
