"""ALiBi heads: one geometric series for a number that is no power of two.

Symptom: with 8 or 16 heads all is well; a pretrained model with 12 or 40
    heads answers nonsense or scores lower, because its slopes were others.
Hint: compare the slopes for 12 heads with those for 8.
Property: n heads have the slopes of the largest power of two not above n,
    then every second slope of twice that power.
Report: ml-explore/mlx#3071; the jump in the slopes is meant:
    ofirpress/attention_with_linear_biases#17
"""

import torch
from torch import Tensor


def geometric(n_heads: int) -> Tensor:
    """Return 2^(-8 / n), 2^(-16 / n), and so on to 2^-8."""
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)


def broken(n_heads: int) -> Tensor:
    """Return the slope of each head, (heads,)."""
    return geometric(n_heads)


def mended(n_heads: int) -> Tensor:
    """Return the slope of each head, (heads,)."""
    power = 2 ** (n_heads.bit_length() - 1)
    slopes = torch.cat([geometric(power), geometric(2 * power)[::2]])
    return slopes[:n_heads]


def check(candidate):
    """Assert that slopes of 3 to 40 heads follow from powers of two."""
    for n, power in ((12, 8), (3, 2), (6, 4), (40, 32)):
        slopes, base, finer = map(candidate, (n, power, 2 * power))
        assert len(slopes) == n, f"{len(slopes)} slopes for {n} heads: give {n}"
        even = torch.allclose(base, base[:1] ** torch.arange(1, power + 1))
        why = f"{power} heads: let the slopes fall by 2^(-8/{power}), to 1/256"
        assert even and abs(base[-1] * 256 - 1) < 1e-4, why
        why = f"the first {power} of {n} slopes are not those of {power} heads"
        why += ": is one series stretched over all heads? Begin with those"
        assert torch.allclose(slopes[:power], base), why
        why = f"from slope {power} on, {n} heads lack those of {2 * power}"
        between = torch.allclose(slopes[power:], finer[::2][: n - power])
        assert between, f"{why}: take every second, from the first on"


def picture(candidate):
    """Show log2 of slopes: row = 1 to 16 heads, column = head; NaN = none."""
    image = torch.full((16, 16), torch.nan)
    for n in range(1, 17):
        image[n - 1, :n] = candidate(n).log2()
    return image
