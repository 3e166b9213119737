# %% In code
def shares(query, c=0.1, threshold=512):
    reach = torch.tensor(max(threshold, query)).double()
    distance = torch.arange(query + 1).double()
    return (c * distance).log1p() / (c * reach).log1p()


# Holds in FIRE: "However long the text, it reads numbers between 0 and 1."
for query in (5, 500, 70_000):
    assert shares(query).min() >= 0 and shares(query).max() <= 1
# Holds in FIRE: "of how far back the query could look, or of $L$ (512 at the start)"
assert shares(500).max() < 1 == shares(512).max() == shares(70_000).max()
# Holds in When to use it: "512 at the start, is below the trained length, training meets shares"
trained = shares(63, threshold=60)
assert trained.min() == 0 and trained.max() == 1
for far in (shares(255, threshold=60), shares(70_000, threshold=60)):
    assert far.min() >= 0 and far.max() <= 1
assert shares(63).max() < shares(255).max()  # with the usual one

# The same of far shares, and of the parameter.
# Holds in When to use it: "far shares differ in the sixth digit (at 65,000 tokens)"
step = float(shares(65_000).diff()[-1])
assert 1e-6 < step < 1e-5
last = shares(65_000)[-9:]
assert len(last.bfloat16().unique()) == 1 and len(last.float().unique()) == 9
# Holds in When to use it: "a plain parameter of 512 would hardly move in steps of a thousandth"
assert part.multiplier.item() == 1 and 1000 * 0.001 / 512 < 0.01

# And of what it can represent.
# Holds in When to use it: "with 32 units as here it cannot take every form of T5's 32 buckets"
t5 = scheme("t5", n_heads=1, causal=True)
widths = t5.bucket(-torch.arange(512)).bincount()
# A zigzag over the buckets: a corner for each but the first one, and two where
# three distances or more share one, for there it is flat; the last goes on.
corners = int((1 + (widths[1:-1] >= 3)).sum()) + 1
units = FIRE(1).mlp[0].out_features
assert len(widths) == units == 32 < corners

# And of its picture and its code.
import math


def peaks(threshold):
    shown = half_way(threshold)
    nothing = torch.zeros(1, 1, 96, 3)
    bias = shown.bias(nothing, nothing, torch.arange(96), torch.arange(96))
    return [int(row[: m + 1].argmax()) for m, row in enumerate(bias.flatten(0, -3)[0])]


# Holds in Picture: "A network set by hand to answer to shares near one half (orange)"
# Holds in Picture: "With L = 512 an orange stripe runs beside the diagonal"
even, fan = peaks(512), peaks(16)
# Holds in Picture: "Below $L$ the stripe keeps its distance from the diagonal; beyond it"
assert len({m - key for m, key in enumerate(even) if m > 65}) == 1
share = math.log1p(0.1 * (95 - even[95])) / math.log1p(0.1 * 512)
assert abs(share - 0.5) < 0.02
assert fan[95] - fan[40] < 95 - 40  # it leaves the diagonal
# Holds: "Below the threshold the bias depends on the distance alone"
assert torch.allclose(bias[:, 6, 1], bias[:, 14, 9])
assert torch.allclose(bias[:, 30, 0], bias[:, 50, 0], atol=1e-5)

from posembed.encodings import FIRE

# Holds in Formula: "Here $c$ starts at 0.1 and $L$ at 512."
one_head = FIRE(1)
assert round(one_head.log_scale.item(), 6) == 0.1 and one_head.start * one_head.multiplier.item() == 512
# Holds in Formula: "with $c$ and $L$ 462"
assert sum(each.numel() for each in FIRE(12).parameters()) == 462

# Past the trained length.
from posembed import load_study

past = load_study("length").contrasts["mean"]
# Holds in When to use it: "Ours, with $L$ near 60, lost 0.4 nats at four times its length all the same"
assert round(past["fire: plain minus the last 64"], 1) == 0.4
