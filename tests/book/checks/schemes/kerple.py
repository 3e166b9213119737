# %% In code
# Holds in KERPLE: "ALiBi is one of the curves, for slopes of 0.01 and more."
# Holds in Formula: "A power with $r_2 = 1$ is ALiBi with learned slopes, of 0.01 and"
steep = alibi.slopes >= 0.01
of_both = power.bias_by_offset(offsets), alibi.bias_by_offset(offsets)
assert torch.allclose(*(each[steep] for each in of_both)) and not steep.all()
assert not torch.allclose(*(each[~steep] for each in of_both))
curves = [part.bias_by_offset(torch.arange(-64, 1))[0].flip(0).detach() for part in schemes.values()]

# Holds in Picture: "fall fast at first and then ever more slowly"
# Holds in Picture: "The logarithm and the power of a half flatten, so they part near keys"
for curve in curves[:2]:
    assert (curve.diff().diff() > -1e-6).all() and (curve.diff() < 0).all()
# Holds in Picture: "The straight line of power 1 ends at -8."
ends = [round(float(curve[-1]), 1) for curve in curves]
assert ends == [-4.2, -4.0, -8.0]
assert curves[2].diff().std() < 1e-5
# Holds in When to use it: "It costs 24 numbers at the sizes above, where T5's buckets cost 384"
for name, numbers in (("kerple", 24), ("t5", 384)):
    shared = scheme(name, n_heads=12, causal=True)
    assert sum(p.numel() for p in shared.parameters()) == numbers
assert log.bias_by_offset(offsets).shape == (4, len(offsets))


# And of far distances: where the first two neighbours have one bias. Twice the
# r1 is twice every bias, exactly, so r1 from 1 to 2 stand for all.
def first_tie(kernel, r2):
    part, nearest = KERPLE(1, kernel=kernel).requires_grad_(False), 560_000
    part.shape.fill_(r2)
    for r1 in (*torch.linspace(1, 2, 41).tolist(), 1.995, 1.9975):
        part.scale.fill_(r1)
        ties = part.bias_by_offset(torch.arange(nearest + 1))[0].diff() >= 0
        nearest = min([nearest, *ties.nonzero().flatten().tolist()])
    return nearest


# Holds in KERPLE: "the curve goes on; in float32 neighbouring distances differ in their"
# Holds in When to use it: "the bias of a nearer key is the larger (up to the distances above)"
log = {r2: first_tie("log", r2) for r2 in (0.01, 0.1, 0.9, 4, 9, 14, 16, 17)}
assert min(log.values()) > 500_000 and max(log.values()) < 530_000
log = [first_tie("log", r2) for r2 in (17, 18, 20, 24, 28, 34)]
assert log == sorted(log, reverse=True) and 350_000 < log[3] < 400_000

# The same of steep logarithms, and of powers.
for r2 in (34, 40, 50, 64, 100, 300, 1_000, 100_000):
    assert 250_000 < first_tie("log", r2) < 280_000
flattest, next_one = (first_tie("power", r2) for r2 in (0.01, 0.011))
assert 45_000 < flattest < 50_000 < next_one

# Holds in When to use it: "$r_1$ and $r_2$ are kept at 0.01 or more"
flat = scheme("kerple", n_heads=1, options={"kerple": {"kernel": "power"}}).requires_grad_(False)
flat.scale.zero_(), flat.shape.fill_(1)
assert abs(flat.bias_by_offset(torch.tensor([1])).item() + 0.01) < 1e-6

# Past the trained length.
from posembed import load_study

past = load_study("length").contrasts["mean"]
# Holds in When to use it: "Past the trained length ours lost nothing at four times of it"
assert abs(past["kerple: plain minus the last 64"]) < 0.01
