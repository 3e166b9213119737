# %% In code
# Holds in Formula: "$2i$ and $2i + 1$ in the paper, GPT-J and Llama as Meta released it"
# Holds: "the half layout"
one = torch.eye(16)[:1]  # column 0 is turned towards its partner
for layout, partner in (("interleaved", 1), ("half", 8)):
    turned = RoPE(16, layout=layout).rotate(one, torch.tensor([1]))[0]
    assert turned.nonzero().flatten().tolist() == [0, partner]
assert RoPE(16).layout == "half"
# Holds in Picture: "the same pattern over four times the distance"
# Holds in Picture: "Right: the same stripes, four times as wide."
usual, slower = RoPE(64), RoPE(64, scaling=LinearScaling(factor=4.0))
at = torch.arange(0, 64)
pair = [r.rotate(key.expand(64, 64), at) for r in (usual, slower)]
assert torch.allclose(pair[1][0::4], pair[0][:16], atol=1e-5)

# The same of the pictures' captions.
# Holds in Picture: "Each diagonal has one colour, as the offset alone counts; slower"
turned = usual.rotate(query.expand(64, 64), at) @ pair[0].T
assert torch.allclose(turned[1:, 1:], turned[:-1, :-1], atol=1e-3)
assert torch.allclose(pair[1][0::4], pair[0][:16], atol=1e-5)

# %% Tests that hold it
# And of angles.
# Holds: "angles are taken in float64, whatever the model's format"
far, columns = torch.full((32,), 1_000_000), torch.eye(64)[:32]
exact = (far.double() * usual.frequencies.double()).cos()
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    ones = RoPE(64).to(dtype).rotate(columns.to(dtype), far).diagonal()
    assert ones.dtype == dtype
    rounding = torch.finfo(dtype).eps
    assert torch.allclose(ones.double(), exact, rtol=rounding, atol=1e-6)

# %% In code
# And of scalings.
import posembed
from posembed.encodings.rope_scaling import SCALINGS

# Holds in When to use it: "It takes a mapping such as"
# Holds in When to use it: "`RoPE.from_config` reads a config."
# Holds in When to use it: "of which the last three need `original_max_position_embeddings` too"
linear, keys = {"rope_type": "linear", "factor": 4.0}, key.expand(64, 64)
same = RoPE(64, scaling=linear).rotate(keys, at), slower.rotate(keys, at)
assert torch.equal(*same)
assert list(SCALINGS) == ["linear", "ntk", "yarn", "llama3", "longrope"]
length = {"original_max_position_embeddings": 512}
llama = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1, "rope_theta": 5e5}
llama["rope_scaling"] = {"rope_type": "linear", "factor": 4.0}
read = RoPE.from_config(llama)
assert read.base == 5e5 and torch.allclose(read.frequencies, RoPE(64, base=5e5, scaling=linear).frequencies, atol=0)
divisors = {"short_factor": [1.0] * 32, "long_factor": [2.0] * 32, "length": 2048}
for kind in SCALINGS:
    given = {"rope_type": kind, "factor": 4.0} | (divisors if kind == "longrope" else {})
    try:
        RoPE(64, scaling=given)
        assert kind in ("linear", "ntk")
    except posembed.PosembedError as error:
        assert "original_max_position_embeddings" in str(error)
        assert kind in ("yarn", "llama3", "longrope") and RoPE(64, scaling=given | length)

# And of two axes.
# Holds: "With `axes`, parts of a head turn by row and column (images)."
torch.manual_seed(0)
qs, ks = torch.randn(2, 36, 16)
both = [axial.rotate(qs, grid + by) @ axial.rotate(ks, grid + by).T for by in (0, torch.tensor([3, 8]))]
assert torch.allclose(*both, atol=1e-4)
w = RoPE(8).frequencies
assert torch.equal(axial.frequencies, torch.cat([w, w])) and w[0] == 1
# Holds: "Products of a query at row 2, column 2 with keys at all places of"
assert grid[14].tolist() == [2, 2]
one, other = product(axial, grid, 14), product(by_number, torch.arange(36), 14)
# Holds: "By two axes the product is largest at the query's place and alike"
assert torch.allclose(one, one.T, atol=1e-5) and one.argmax() == 14
assert other.mean(1).argmax() == 2
assert min(other[1, 2], other[3, 2]) > other[2, [0, 4, 5]].max()
assert torch.allclose(other[1, :5], other[3, :5].flip(0), atol=1e-5)

from pathlib import Path

import transformers

# Holds in When to use it: "208 of about 545 model folders of transformers 5.23"
if transformers.__version__.startswith("5.23."):
    folders = [folder for folder in (Path(transformers.__file__).parent / "models").iterdir() if folder.is_dir()]
    words = ("rotate_half", "rotate_every_two", "apply_rotary_pos_emb", "apply_rotary_emb")
    texts = {folder: "".join(path.read_text() for path in folder.glob("modeling*.py")) for folder in folders}
    assert sum(any(word in text for word in words) for text in texts.values()) == 208
    assert abs(len(folders) - 545) < 5

# And of longer texts.
# Holds: "Linear scaling moves the whole line up by the factor 8."
# Holds: "Linear scaling stretches every wave alike; the others keep the"
# Holds: "**NTK-aware**: in equal ratios, the fastest not at all."
assert torch.allclose(waves["linear"], 8 * waves["none"]) and len(waves["none"]) == 8
for name in ("ntk", "yarn", "llama3"):
    assert torch.isclose(waves[name][0], waves["none"][0]) and torch.isclose(waves[name][-1], waves["linear"][-1])
ratios = waves["ntk"] / waves["none"]
assert torch.allclose(ratios[1:] / ratios[:-1], ratios[1] / ratios[0], rtol=1e-4)
import math

# Holds: "with a ramp to those that turn 32 times, and logits times $(0.1 \ln f + 1)^2$"
sharper = scalings["yarn"].attention_factor
assert abs(sharper - (0.1 * math.log(factor) + 1)) < 1e-6
# Holds: "**Llama 3.1**: the same with a ramp from one turn to four, and no sharpening."
sharper = [scalings[name].attention_factor for name in ("yarn", "llama3")]
assert sharper[0] > 1 == sharper[1]
stretch = [waves[name] / waves["none"] for name in ("yarn", "llama3")]
# The ramp goes over the turns that a pair makes in the training, one to four.
turns = 64 / waves["none"]
ramp = 1 + 7 * ((turns - 1) / 3).clamp(0, 1)
assert torch.allclose(8 / stretch[1], ramp, atol=1e-4)
assert all((each.diff() > -1e-6).all() for each in stretch)
