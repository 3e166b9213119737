# %% In code
# Holds in Formula: "take the slopes of the largest power of two below"
ratio = 2 ** (-8 / 12)  # of the paper's formula for 12 heads
twelve = scheme("alibi", n_heads=12).slopes
assert not torch.isclose(twelve[0], torch.tensor(ratio).double())
eight, sixteen = (scheme("alibi", n_heads=n).slopes for n in (8, 16))
assert torch.equal(twelve[:8], eight)
assert torch.allclose(twelve[8:], sixteen[0::2][:4])
# Holds in Picture: "at -64 head 1 is at -32, head 2 at -16, head 4 at -4"
ends = part.bias_by_offset(torch.tensor([-64]))[:, 0].tolist()
# Holds in Picture: "Each head has a straight line with a slope of its own: 64 tokens back"
assert (ends[0], ends[1], ends[3], ends[7]) == (-32, -16, -4, -0.25)
# Holds in Picture: "Four of eight heads."
assert len(part.slopes) == 8
# Holds in Tests that hold it: "for 8 and 16"
assert torch.allclose(sixteen, 2.0 ** -(0.5 * torch.arange(1, 17)).double())
# Holds in When to use it: "all heads prefer near keys"
assert (part.slopes > 0).all()


# %% Tests that hold it
# And of other numbers of heads, as the authors' code has them.
def authors(heads):
    whole = 2 ** (heads.bit_length() - 1)  # the largest power of two in it
    if whole < heads:
        between = authors(2 * whole)[::2]
        return authors(whole) + between[: heads - whole]
    return [2 ** (-8 * h / heads) for h in range(1, heads + 1)]


# Holds: "for 1 to 130 heads"
for heads in range(1, 131):
    theirs = torch.tensor(authors(heads), dtype=torch.float64)
    slopes = scheme("alibi", n_heads=heads).slopes
    assert torch.allclose(slopes, theirs, rtol=1e-13, atol=0)
