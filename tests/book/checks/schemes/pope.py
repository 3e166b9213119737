# %% Picture
def logits(name, q, k, delta=None, n=32):
    one, at = scheme(name, **sizes), torch.arange(n)
    if delta is not None:
        one.delta.data.fill_(delta)
    turned, keys = (each.expand(1, 1, n, 64) for each in (q, k))
    return (one.rotate(turned, at) @ one.rotate_keys(keys, at).mT)[0, 0].detach() / 8


def by_offset(name, *given):
    found = logits(name, *given)
    return {offset: float(found.diagonal(offset).mean()) for offset in range(-31, 32)}


rope, pope = by_offset("rope", query, key), by_offset("pope", query, key)
# Holds in PoPE: "In [RoPE](scheme-rope) both set the angle."
# A change of what a token says turns RoPE's pair, and changes nothing but the length of PoPE's column.
said, other = torch.zeros(1, 1, 1, 64), torch.zeros(1, 1, 1, 64)
said[..., 0], other[..., 32] = 1.0, 1.0  # RoPE's first pair, in its half layout
at = torch.tensor([3])
pairs = [scheme("rope", **sizes).rotate(each, at)[0, 0, 0, [0, 32]] for each in (said, other)]
angles = [torch.atan2(*pair.flip(0)) for pair in pairs]
assert abs(float(angles[1] - angles[0])) > 1
both = [scheme("pope", **sizes).rotate(each, at)[0, 0, 0].detach().view(2, 64) for each in (said, -3 * said, other)]
phases = [torch.atan2(each[1], each[0]) for each in both]
# Holds in PoPE: "what a token says sets the length of each column of a query or a key,"
assert all(torch.allclose(each, phases[0], atol=1e-5) for each in phases)
assert not torch.allclose(both[0].norm(dim=0), both[1].norm(dim=0))
# Holds: "PoPE's are largest where the two stand at one position, whatever they say;"
generator = torch.Generator().manual_seed(0)
for q, k in torch.randn(200, 2, 64, generator=generator):
    drawn = by_offset("pope", 3 * q, 3 * k)
    assert max(drawn, key=drawn.get) == 0
# Holds: "RoPE's are largest where their contents put it: for these two where the key is 16 ahead."
# Holds: "RoPE: stripes of both signs, below zero on the main diagonal, highest 16 to its"
# Holds: "RoPE's are below zero there."
assert rope[0] < -1 and rope[16] > 1.5 and max(rope, key=rope.get) == 16
places = {max(each, key=each.get) for each in (by_offset("rope", *pair) for pair in torch.randn(9, 2, 64))}
assert len(places) > 3
# Holds: "PoPE: all above zero, highest on the main diagonal, falling alike to both"
# Holds: "PoPE's fall from the diagonal to both sides;"
assert min(pope.values()) > 0 and max(pope, key=pope.get) == 0
assert all(abs(pope[offset] - pope[-offset]) < 1e-4 for offset in range(32))
assert all(pope[offset + 1] < pope[offset] for offset in range(4))

# %% When to use it
# Holds: "In our models of 0.2 million its loss is that of RoPE at the trained length; at four times it RoPE loses 2.6"
from posembed import load_study

doses = load_study("length-doses")
beside = doses.contrasts.loc["pope minus rope: loss at 64"]
assert max(abs(beside["low"]), abs(beside["high"])) < 0.02
for name, lost in (("pope", 0.7), ("rope, base 10000", 2.6)):
    plain = [run.metrics["longer"]["plain"] for run in doses.by_arm[name]]
    assert round(sum(its["256"] - its["64"] for its in plain) / 5, 1) == lost
    assert round(doses.by_arm[name][0].metrics["parameters"] / 1e6, 1) == 0.2

# %% In code
import posembed
from posembed import PosembedError
from posembed.models import attend

fresh = scheme("pope", d_model=64, n_heads=1)
# Holds in Formula: "Column $c$ of $d$, counted from 0, turns by $\omega_c = 10000^{-c/d}$"
speeds = 10000.0 ** (-torch.arange(64).double() / 64)
assert torch.allclose(fresh.frequencies, speeds, rtol=1e-12)
assert len(scheme("rope", d_model=64, n_heads=1).frequencies) == 32
# Holds in Formula: "the softplus, which is above zero"
assert (softplus(torch.linspace(-50, 50, 101)) > 0).all()
# Holds in Formula: "Each head has its own $\delta$, learned from zero on and held between"
assert tuple(scheme("pope", d_model=64, n_heads=4).delta.shape) == (4, 16) and not fresh.delta.any()
assert torch.allclose(logits("pope", query, key, 1.0), logits("pope", query, key, 0.0))
assert torch.allclose(logits("pope", query, key, -9.0), logits("pope", query, key, -2 * torch.pi))
assert not torch.allclose(logits("pope", query, key, -1.0), logits("pope", query, key, 0.0), atol=0.1)
# Holds in Formula: "Written as cosines and then sines, a query or key of width $d$ has $2d$"
one, x = torch.arange(5), torch.randn(1, 1, 5, 64)
wide = fresh.rotate(x, one).detach()
assert tuple(wide.shape) == (1, 1, 5, 128)
turned = torch.outer(one.double(), speeds)
parts = [softplus(x) * each.float() for each in (turned.cos(), turned.sin())]
assert torch.allclose(wide, torch.cat(parts, -1), atol=1e-6)
# Holds in Formula: "Here the query is turned back by $\delta$, which gives the same logit,"
delta = -6 * torch.rand(64)
fresh.delta.data = delta[None]
keys = torch.randn(1, 1, 5, 64)
phases = torch.outer(one.double(), speeds) + delta  # of keys, as in the formula
by_hand = torch.cat([softplus(keys) * each.float() for each in (phases.cos(), phases.sin())], -1)
assert torch.allclose(fresh.rotate(x, one) @ fresh.rotate_keys(keys, one).mT, wide @ by_hand.mT, atol=1e-4)

# What it costs, and its traps.
# Holds in When to use it: "queries and keys have twice the columns, and a cache of keys and values grows by a half"
plain, grown = KeyValueCache(), KeyValueCache()
for each, kept in (("rope", plain), ("pope", grown)):
    MultiHeadAttention(64, 4, each, causal=True)(torch.randn(1, 3, 64), cache=kept)
numbers = [sum(each.numel() for each in kept._parts[:2]) for kept in (plain, grown)]
assert numbers[1] == 1.5 * numbers[0]
# Holds in When to use it: "torch's own attention divides by $\sqrt{2d}$ unless it is given"
turned = fresh.rotate(x, one), fresh.rotate_keys(keys, one)
v, where = torch.randn(1, 1, 5, 64), {"positions": one, "key_positions": one}
ours = attend(*turned, v, scheme=fresh, causal=True, **where)
torchs = torch.nn.functional.scaled_dot_product_attention
assert torch.allclose(ours, torchs(*turned, v, is_causal=True, scale=64**-0.5), atol=1e-5)
assert torch.allclose(torchs(*turned, v, is_causal=True), torchs(*turned, v, is_causal=True, scale=128**-0.5))
# Holds in When to use it: "schemes that are made for the width of a head (RoPE, xPos, Shaw, CoPE) cannot be joined"
refused = set()
for name in posembed.schemes():
    try:
        scheme(f"{name}+pope" if name != "pope" else "pope", d_model=64, n_heads=4, n_positions=9, causal=True)
    except PosembedError:
        refused.add(name)
assert refused == {"rope", "xpos", "shaw", "cope"}
# Holds in When to use it: "ALiBi and T5 can."
for name in ("alibi+pope", "t5+pope"):
    assert MultiHeadAttention(64, 4, name, causal=True)(x[0]).isfinite().all()
# Holds in When to use it: "with $\delta$ at zero a key behind the query and one as far ahead get the same"
# Holds in When to use it: "In a bidirectional model only a learned $\delta$ tells them apart."
for at_zero, delta in ((True, 0.0), (False, -1.0)):
    found = logits("pope", query, key, delta)
    assert torch.allclose(found, found.T, atol=1e-4) == at_zero
# Holds: "Products depend on the offset alone, and a cache changes nothing, also where query heads share"
assert layer.n_kv_heads == 2 < layer.n_heads
