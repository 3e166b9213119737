# %% In code
one_head = posembed.scheme("xpos", d_model=64, n_heads=1, causal=True)
zeta = (2 * torch.arange(32).double() / 64 + 0.4) / 1.4


def factor(pair, distance):
    unit = torch.eye(64)[[2 * pair]]  # a query and a key of length 1
    queries = one_head.rotate(unit, torch.tensor([distance])).norm()
    return queries * one_head.rotate_keys(unit, torch.tensor([0])).norm()


# Holds in xPos: "fast pairs of columns more than slow ones"
# Holds in Formula: "with $\zeta_i = (2i/d + 0.4) / 1.4$, where 512 is `scale_base`"
assert (zeta.diff() > 0).all() and zeta.max() < 1
for pair in (0, 8, 16, 31):
    assert abs(factor(pair, 512) - zeta[pair]) < 1e-4

# The same before the query and after it, and how far from the origin.
# Holds in Formula: "All $\zeta_i$ are below 1: each pair's factor falls with the distance"
for pair in range(32):
    at_distance = [factor(pair, distance) for distance in range(0, 2049, 128)]
    assert (torch.stack(at_distance).diff() < 0).all()
    ahead = [factor(pair, -distance) for distance in (512, 1024, 2048)]
    assert torch.allclose(ahead[0] ** 2, ahead[1], rtol=1e-3)
    assert torch.allclose(ahead[1] ** 2, ahead[2], rtol=1e-3) and ahead[0] > 1
# Holds in When to use it: "in float16 the range is ten times smaller"
for dtype, reach in ((torch.float32, 32_695), (torch.float16, 3_269)):
    x = torch.ones(1, 64, dtype=dtype)
    assert one_head.rotate(x, torch.tensor([reach])).isfinite().all()
    try:
        one_head.rotate(x, torch.tensor([reach + 1]))
        raise AssertionError(f"{reach} is not the last position")
    except posembed.PosembedError:
        pass

# The same where nothing checks it.
torch.compiler.reset()
compiled = torch.compile(one_head.rotate_keys, backend="eager")
given, far = torch.ones(60_000, 64), torch.arange(60_000)
keys = compiled(given, far)
# Holds in xPos: "compiled code does not check, and gives infinity or NaN from about"
right = keys.isfinite().all(1)
assert right[:36_000].all() and not right[36_300:].any()
assert keys.isinf().any() and keys.isnan().any()
exact = one_head.rotate_keys(given[:32_000].double(), far[:32_000])
wrong = (keys[:32_000] - exact).norm(dim=1) / exact.norm(dim=1)
assert wrong.max() < 1e-5

# And of its picture.
# Holds in Picture: "The factor of a pair's product against the distance"
# Holds in Picture: "All start at 1. Pair 0 falls to 0.29 at 512 and almost to 0"
assert all(abs(factor(pair, 0) - 1) < 1e-5 for pair in (0, 8, 16, 31))
# Holds in Picture: "Fast pairs fade first: at 512 pair 0 keeps 0.29 of its product, while"
assert abs(factor(0, 512) - 0.29) < 0.005 and factor(0, 2048) < 0.01
assert factor(8, 512) < factor(16, 512) and factor(31, 2048) > 0.9
# Holds in Picture: "Plain RoPE would be a line at 1."
rope, unit = posembed.scheme("rope", d_model=64, n_heads=1), torch.eye(64)[:1]
assert abs(rope.rotate(unit, torch.tensor([512])).norm() - 1) < 1e-5
# Holds in When to use it: "Where a library counts positions in a step from another origin"
origin = [one_head.rotate(unit, torch.tensor([599 - start])).norm() for start in (0, 599)]
assert abs(origin[0] - origin[1]) > 0.2  # the same token, two origins

import bisect


def refuses(position, dtype):
    try:
        posembed.scheme("xpos", d_model=64, n_heads=1).rotate(torch.zeros(1, 64, dtype=dtype), torch.tensor([position]))
    except posembed.PosembedError:
        return True
    return False


def reach(dtype):  # how far from its origin xPos goes
    return bisect.bisect_left(range(100_000), True, key=lambda position: refuses(position, dtype))


# Holds in xPos: "a position more than 32,695 from `origin`"
assert reach(torch.float32) == 32_695 + 1 and not refuses(32_695, torch.float32)
# Holds in When to use it: "in float16 the range is ten times smaller"
assert abs(reach(torch.float32) / reach(torch.float16) - 10) < 0.01

# Past the trained length.
from posembed import load_study

past = load_study("length").contrasts["mean"]
# Holds in When to use it: "Past the trained length ours, without that attention, lost 1.9 nats at four times of it"
assert round(past["xpos: plain minus the last 64"], 1) == 1.9
