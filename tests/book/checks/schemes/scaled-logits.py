# %% Picture
# Holds: "A first key whose logit is 2 among others of 1, without positions and scaled."
# Holds: "As they are, every row is 2 for the first key and 1 for the others."
at = torch.arange(20)
turned = scaled.rotate(torch.ones(1, 1, 20, 1), at)[0, 0].detach() @ scaled.rotate_keys(keys, at).T
# Holds: "Scaled, row 0 is zero and rows grow with the logarithm of their number:"
assert torch.equal(turned[0], torch.zeros(20))
assert torch.allclose(turned[:, 1], 0.43 * (at + 1.0).log(), atol=1e-6)
assert (round(float(turned[19, 0]), 1), round(float(turned[19, 1]), 1)) == (2.6, 1.3)
# Holds: "Read down the first column: scaled, its lead over the others grows with the"
assert ((turned[:, 0] - turned[:, 1]).diff() > 0).all()

# %% In code
# Holds in Scaled logits: "logits grow with the logarithm of the number of keys, so that the largest"
# Holds in Formula: "If one logit is above all others by $a$, softmax gives it at least"
# Holds in Formula: "scaled it is $1 / (1 + n^{1 - s a})$, which goes to one if $s a > 1$."
a, s = 5.0, 0.43
for n in (10, 1000, 100_000):
    row = torch.zeros(n, dtype=torch.float64)
    row[0] = a
    first, sharp = (float((by * row).softmax(0)[0]) for by in (1.0, s * math.log(n)))
    assert first > 1 / (1 + n * math.exp(-a)) and abs(first - 1 / (1 + n * math.exp(-a))) < 0.01
    assert sharp > 1 / (1 + n ** (1 - s * a)) and abs(sharp - 1 / (1 + n ** (1 - s * a))) < 0.01
assert first < 0.002 and sharp > 0.999
# Holds in Formula: "It starts at 0.43, the value of the paper's first figure: ten keys then"
start = scheme("scaled_logits", n_heads=1).scale.item()
assert round(start, 2) == 0.43 and abs(start * math.log(10) - 1) < 0.02
# Holds: "The query of ten keys stays as it is when $s = 1 / \ln 10$;"
# Holds in Tests that hold it: "`tests/encodings/test_scaled_logits.py::test_the_largest_weight_does_not_fade`"
assert plain < 0.03 and sharper > 0.8
# Holds in When to use it: "keys are counted from position 0."
# Holds in When to use it: "In a text that begins elsewhere, and in a sliding window, the count is larger"
for first in (0, 100):
    there = one.rotate(q.expand(1, 1, 3, 8), torch.arange(first, first + 3))
    counts = torch.arange(first, first + 3) + 1.0
    assert torch.allclose(there.detach(), q * counts.log()[:, None] * one.scale.item(), atol=1e-5)
# Holds in When to use it: "It costs one product of each query with a number."
k = torch.randn(1, 1, 5, 8)
assert torch.equal(one.rotate_keys(k, torch.arange(5)), k)
# Holds in When to use it: "It acts on products of queries and keys, and on what is read off the query"
for name, scales in (("shaw", True), ("alibi", False)):
    torch.manual_seed(0)
    both = scheme(f"scaled_logits+{name}", d_model=8, n_heads=1)
    for parameter in both.parts[1].parameters():
        torch.nn.init.normal_(parameter)
    q, here = torch.randn(1, 1, 5, 8), torch.arange(5)
    bias = both.bias(both.rotate(q, here), q, here, here)
    assert torch.allclose(bias, both.parts[1].bias(q, q, here, here)) != scales
# Holds in When to use it: "Llama 4 multiplies by another factor, $1 + c \ln(1 + \lfloor (m + 1) / 8192"
from transformers import Llama4TextConfig

assert (Llama4TextConfig().floor_scale, Llama4TextConfig().attn_scale) == (8192, 0.1)
# Holds in Scaled logits: "the logarithm goes on; negative ones are refused"
import posembed

try:
    one.rotate(q, here - 1)
except posembed.PosembedError as error:
    assert "negative" in str(error)
else:
    raise AssertionError("a negative position is taken")
