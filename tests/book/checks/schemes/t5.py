# %% In code
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

# Holds in Formula: "T5 does not divide its logits by $\sqrt d$"
sizes = {"d_model": 32, "d_kv": 8, "num_heads": 4, "dropout_rate": 0.0}
sizes["attn_implementation"] = "eager"
t5, x16 = T5Attention(T5Config(**sizes)).eval(), torch.randn(1, 5, 32)
q, k, v = (W(x16[0]).view(5, 4, 8).transpose(0, 1) for W in (t5.q, t5.k, t5.v))
by_hand = ((q @ k.mT).softmax(-1) @ v).transpose(0, 1).reshape(5, 32)
assert torch.allclose(t5(x16)[0][0], t5.o(by_hand), atol=1e-6)
plain, scaled = (MultiHeadAttention(32, 4, part, causal=True, logit_scale=scale).eval() for scale in (None, 8**-0.5))
scaled.load_state_dict(plain.state_dict())
assert torch.allclose(plain(x16), scaled(x16), atol=1e-6)

# Holds in Picture: "with steps of 2 to 14 offsets, the last from -113 on"
stairs = part.bias_by_offset(torch.arange(-144, 1))[0].flip(0).detach()
edges = (stairs.diff() != 0).nonzero().flatten() + 1
# Holds in Picture: "Look at the stairs, not at their random heights: each offset to 15"
assert edges[:16].tolist() == list(range(1, 17)) and edges[-1] == 113
widths = edges.diff()[15:]
# Holds in Picture: "then come steps of 3, 2, 3, 3, 4 offsets and so on up to 14"
assert widths[:5].tolist() == [3, 2, 3, 3, 4]
assert widths.min() == 2 and widths[4:].diff().min() >= 0 and widths[-1] == 14
# Holds in T5: "far ones share buckets that widen about as the distance does"
assert ((widths / edges[15:-1] - 0.15).abs() < 0.05).all()

# And of both directions.
# Holds in Formula: "A bidirectional model uses half of the buckets in this way"
both = scheme("t5", n_heads=1, causal=False)
far = torch.arange(-200, 201)
steps = both.bias_by_offset(far)[0].detach()
assert len(steps[far <= 0].unique()) == 32 / 2
# Holds in Tests that hold it: "bucket 16 of 32; the token itself has bucket 0, the next one 17"
assert both.bucket(torch.tensor([0, 1])).tolist() == [0, 17]
assert set(range(32)) - set(both.bucket(far).tolist()) == {16}

sizes = {"d_model": 768, "n_heads": 12, "n_layers": 12, "n_positions": 512}
one_way, both_ways = (scheme("t5", **sizes, causal=causal) for causal in (True, False))
# Holds in T5: "distances from 113 on in a causal model, from 91 on to either side in a bidirectional one"
assert [int(each.first_distances[-1]) for each in (one_way, both_ways)] == [113, 91]
# Holds in Picture: "Up to a distance of 15 each offset has its own number; then come steps of 3, 2, 3, 3, 4 offsets"
assert one_way.bucket(-torch.arange(32)).bincount().tolist() == [1] * 16 + [3, 2, 3, 3, 4, 1]

# Past the trained length.
from posembed import load_study

past = load_study("length").contrasts["mean"]
# Holds in When to use it: "Trap: training texts shorter than about 115 leave far buckets untrained."
assert int(one_way.bucket(torch.tensor([-113]))) == 31 > int(one_way.bucket(torch.tensor([-112])))
# Holds in When to use it: "Given the last trained number, ours lost 0.03 nats at four times their length"
lost = past["t5: plain minus the last 64"]
assert round(lost, 1) == 1.9 and abs(lost + past["t5: shared minus plain"] - 0.03) < 0.015
