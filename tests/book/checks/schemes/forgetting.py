# %% Picture
part = scheme("forgetting", d_model=8, n_heads=1)
at, visible = torch.arange(11), torch.ones(11, 11).tril().bool()
zeros = torch.zeros(1, 1, 11, 8)
shown = part.bias(zeros, zeros, at, at, visible=visible, gates=kept.log()[None, None])[0, 0]
# Holds: "Every token keeps 0.8 of what was before it, but token 5, which keeps a tenth."
assert torch.allclose(shown[4, :5], 4 * kept[0].log() - at[:5] * kept[0].log(), atol=1e-6)
# Holds: "Rows 0 to 4 fall evenly from the diagonal to the left."
steps = shown.diff(dim=1)
assert all(torch.allclose(steps[row, :row], -kept[0].log().expand(row), atol=1e-6) for row in range(5))
# Holds: "From row 5 on all keys before token 5 are lower at once, by 2.3;"
# Holds: "Look along a row from 5 on: behind the step stands what that token has closed."
assert torch.allclose(steps[5:, 4], torch.tensor(2.3), atol=0.01)
others = steps[5:].masked_fill(~visible[5:, 1:], 0.0)[:, [0, 1, 2, 3, 5, 6, 7, 8, 9]]
assert others.max() < 0.23

# %% In code
# Holds in Forgetting: "Where all say the same, it is ALiBi;"
# Holds in Formula: "With $\ln f_t = -s$ for every token the bias is $-s\,(m - n)$,"
slope = alibi.slopes[0].float()
same = part.bias(
    *[torch.zeros(1, 4, 9, 8)] * 2,
    *[torch.arange(9)] * 2,
    visible=torch.ones(9, 9).tril().bool(),
    gates=-alibi.slopes.float()[None, :, None].expand(1, 4, 9),
)
assert torch.allclose(same[0, 0, 8], -slope * (8 - torch.arange(9.0)), atol=1e-6)
# Holds in Formula: "So the weight of a key is multiplied by the gates of all tokens"
gates = torch.rand(1, 1, 9) + 0.1
one = scheme("forgetting", d_model=8, n_heads=1)
alone = one.bias(
    *[torch.zeros(1, 1, 9, 8)] * 2, *[torch.arange(9)] * 2, visible=torch.ones(9, 9).tril().bool(), gates=gates.log()
)
assert torch.allclose(alone[0, 0, 8, 3].exp(), gates[0, 0, 4:9].prod(), atol=1e-6)
# Holds in Formula: "The vectors start small and $\beta$ at zero, as in the authors' code: at first"
fresh = scheme("forgetting", d_model=768, n_heads=12)
# Holds in When to use it: "gates that keep half leave little of what stands ten tokens back"
half = fresh.gates(torch.randn(1, 40, 768)).exp().mean()
assert abs(half - 0.5) < 0.05 and half**10 < 0.01
# Holds in When to use it: "Put into a trained model, let it begin with a large $\beta$:"
open_gates = scheme("forgetting", d_model=32, n_heads=4)
open_gates.gate.bias.data.fill_(20.0)
layer.position_scheme = scheme("nopos")
without = layer(x)
layer.position_scheme = open_gates
assert torch.allclose(layer(x), without, atol=1e-6)
# Holds in When to use it: "models of transformers do not hand tokens on, so `use_scheme` refuses it"
from transformers import GPT2Config, GPT2Model

import posembed
from posembed.models import use_scheme

try:
    use_scheme(
        GPT2Model(
            GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
        ),
        "forgetting",
    )
except posembed.PosembedError as error:
    assert "reads the tokens that enter attention" in str(error)
else:
    raise AssertionError("a model of transformers takes forgetting")
