# %% What becomes of the offset in a logit
# Holds in What to remember: "nothing makes a logit depend on the offset alone"
# Holds: "Left, the dot products of sinusoidal rows: stripes"
# Holds: "along one diagonal, at a fixed offset, the values differ"
# Holds: "Plain, each diagonal has one colour: the product depends on the"
assert torch.allclose(plain[1:, 1:], plain[:-1, :-1], atol=1e-4)
# Holds: "Through a matrix, such as attention has, it no longer does."
assert through.diagonal(1).std() > 0.5 * through.std()
# Holds: "and two of the four parts mix a word with a position"
w, at = x[0, :4].double(), rows[:4].double()
parts = [a @ W.double() @ b.T for a in (w, at) for b in (w, at)]
whole = (w + at) @ W.double() @ (w + at).T
assert len(parts) == 4 and torch.allclose(sum(parts), whole)
# Holds: "Softmax divides each row by a sum of its own, over the offsets"
places = torch.arange(48)
offsets = places - places[:, None]
of_steep = (-0.5 * offsets.abs()).softmax(1).diagonal()
of_flat = (-0.1 * offsets).softmax(1).diagonal()
assert of_steep[[0, 47]].min() > 1.2 * of_steep[12:36].max()
assert of_steep[12:36].std() < 1e-3 and of_flat[12] > 5 * of_flat[35]

# The same of what moves.
# By definition: "Positions are counted from 0, and vectors are columns"
# Holds in What to remember: "Its attention does not change when a text is moved as a whole."
relative = ("shaw", "t5", "alibi", "rope")
assert all(change_when_moved(name) < 1e-5 for name in relative)
# Holds: "The learned table looks nearly relative only because"
assert change_when_moved("learned") < 0.05 and large > 0.5
# Holds: "Here they are as large as those of the sines, 0.7."
assert abs(rows.square().mean().sqrt() - 0.7) < 0.01

# %% Five logits side by side
# Biases for two sets of contents.
some, others = torch.randn(2, 1, 4, 24, 16)
# Holds: "Their bias is the same whatever the words are."
# Holds: "something that belongs to the offset, so one word may look far back"
for name, options in (("t5", {}), ("alibi", {}), ("shaw", {"std": 1.0})):
    sizes = {"d_model": 64, "n_heads": 4, "causal": True}
    part = scheme(name, **sizes, options={name: options}).layer(0)
    one, other = (part.bias(q, q, here, here).detach() for q in (some, others))
    assert torch.equal(one, other) == (name != "shaw")
part, key = scheme("rope", d_model=64, n_heads=4), torch.randn(16)
keys = part.rotate(key.expand(24, 16), here)
profiles = [part.rotate(q[0, 0, :1], here[-1:]) @ keys.T for q in (some, others)]
assert torch.corrcoef(torch.cat(profiles))[0, 1] < 0.9

# %% Shaw: a vector for each offset
from transformers import XLNetConfig, XLNetModel

sizes = {"d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 16}
xlnet = XLNetModel(XLNetConfig(vocab_size=50, **sizes))
stored = {name.split(".")[0] for name in xlnet.state_dict()}
# Holds: "and has none: the sinusoids are computed"
assert stored == {"mask_emb", "word_embedding", "layer"}
computed = xlnet.relative_positional_encoding(qlen=4, klen=4, bsz=1)
assert not computed.requires_grad and len(computed) == 8
# Holds: "the sine is odd, so the sine of each pair changes its sign"
# Holds: "a sum of cosines, since the cosine is even"
assert not torch.equal(before, after)

# The same of the picture.
# Holds: "Around the diagonal runs a band of nine different colours, one for"
# Holds: "Follow a row: near the diagonal every offset has a number of its own;"
assert all(len(row.unique()) == 9 for row in bias[4:20])
for k, row in enumerate(bias):
    assert len(row[k + 4 :].unique()) <= 1 >= len(row[: max(k - 3, 0)].unique())
# Holds: "As far as positions go, a query treats all far keys on one side"
assert bias[12, 0] == bias[12, 8] != bias[12, 16] == bias[12, 23]
# Holds: "both have the vector of offset $-4$"
# Holds: "The clip removes just that difference."
assert clipped[20, 15] == clipped[20, 0] == -4

# %% T5: a number for each bucket
# Holds: "A causal model has all 32 buckets for the past"
assert set(causal) == set(range(32)) and set(past) == set(range(16))
# Holds: "where a bucket after the last would begin"
assert 16 + int(math.log(128 / 16) / math.log(128 / 16) * 16) == 32
# Holds: "So the last bucket begins at 113 in a causal model"
# Holds: "Near offsets have a bucket each, far ones share; the last bucket"
assert (causal.index(31), past.index(15), future.index(31)) == (113, 91, 91)
# Holds: "Far ones share, in **buckets** that are wide far away, as on a"
assert [causal.count(b) for b in range(16)] == [1] * 16
assert min(causal.count(b) for b in range(25, 32)) > 6
# Holds: "The causal one climbs from 0 at offset 0 to 31 far in the past"
assert causal[0] == 0 and causal[160] == 31 and t5.bucket(torch.tensor(9)) == 0
assert past[160] == 15 and (future[1], future[160]) == (17, 31)

# Holds: "T5's positions cost $32$ numbers a head"
assert t5.weight.shape == (32, 4) and t5.layer(0) is t5.layer(1)
# Holds: "The bias is the same, but the words are not."
# Holds: "A bias adds to the logit, it does not replace it."
far = t5.bias_by_offset(torch.tensor([-64, -65])).detach()
assert torch.equal(far[:, 0], far[:, 1])
layer, words = (
    MultiHeadAttention(16, 4, t5, causal=True),
    torch.randn(1, 70, 16),
)
other = words.clone()
other[:, 5] = torch.randn(16)  # 64 before the last
assert (layer(words) - layer(other))[0, -1].abs().max() > 1e-4

from transformers import T5Config, T5Model

# Holds: "T5 itself has two stacks, an encoder and a decoder"
small = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 3, "num_heads": 2}
biases = {
    name: tensor.shape
    for name, tensor in T5Model(T5Config(vocab_size=9, **small)).state_dict().items()
    if "relative_attention_bias" in name
}
assert sorted(name.split(".")[0] for name in biases) == ["decoder", "encoder"]
assert all(shape == (32, 2) for shape in biases.values())

# %% ALiBi: a straight line
# Holds: "head 1 falls below one in ten thousand within 17 places"
assert by_distance[0, 17] < 1e-4 < by_distance[0, 15]
assert abs(by_distance[6, 127] / by_distance[6, 0] - 0.37) < 0.005
# Holds: "since what is far has little weight anyway"
longer = (-slopes * torch.arange(2000)).softmax(dim=1)[:, :128]
assert (longer[:5] - by_distance[:5]).abs().max() < 0.001
# Holds: "A flat head spreads its weight over what is new."
# Holds: "In a text of 512, where contents do not matter, the places 64"
new = (-slopes * torch.arange(512)).softmax(dim=1)[:, 64:].sum(dim=1)
assert slopes[3] == 1 / 16 and abs(new[3] - 0.02) < 0.005
assert slopes[7] == 1 / 256 and abs(new[7] - 0.75) < 0.01
line = -slope * distance[:64]
# Holds: "Nothing different: softmax ignores signs."
assert torch.allclose((line + 3).softmax(0), line.softmax(0))
# Holds: "Prefer the farthest word."
assert (-line).softmax(0).argmax() == 63
# Holds: "The slope fixes this profile over the distance and no more"
contents = torch.zeros(64, dtype=torch.float64).index_fill(0, here[9:10], 9.0)
assert (line + contents).argmax() == 9 and line.argmax() == 0

# The same of the picture.
# Holds: "Each falls exponentially, at a rate of its own: head 1 is below one"
ratios = by_distance[:, 1:] / by_distance[:, :-1]
assert torch.allclose(ratios, (-slopes).exp().expand(8, 127))
assert by_distance[0, 17] < 1e-4
assert by_distance[6, 127] > by_distance[6, 0] / 3


# One b among eleven a.
def output_of_b(place, name, causal):
    torch.manual_seed(1)
    a, b = torch.randn(2, 64)
    text = torch.where(torch.arange(12)[:, None] == place, b, a)[None]
    part = scheme(name, d_model=64, n_heads=4, causal=causal)
    attention = MultiHeadAttention(64, 4, part, causal=causal).eval()
    return attention(text, torch.arange(12))[0, place].detach()


# Holds: "The causal mask shows the beginning, as in NoPos, the model without"
# Holds: "Without a mask the bias shows an end, since a token there has near"
for name in ("nopos", "alibi"):
    for causal in (False, True):
        first, inner = (output_of_b(place, name, causal) for place in (0, 6))
        shows = (first - inner).abs().max() > 0.01 * inner.abs().max()
        assert shows == (causal or name == "alibi")

# Holds: "Half of all weight lies within about $0.69 / s$ places"
assert round(math.log(2), 2) == 0.69
# Holds: "For 8 heads the slopes are $\tfrac12, \tfrac14, \dots, \tfrac1{256}$"
assert scheme("alibi", n_heads=8).slopes.tolist() == [2.0**-h for h in range(1, 9)]

# %% RoPE: turn both
# The same of the figure.
# Holds: "Move one alone: the product changes."
alone = turn(q, here + 1) @ turn(k, here).T
assert (alone - score).abs().median() > 0.5
# Holds: "Shift both together: the hands turn and the product stays."
assert torch.allclose(score, moved, atol=1e-3)
assert not torch.allclose(turn(q, here + 1000), turn(q, here), atol=0.1)

# Holds: "the sum would depend on absolute positions unless it were turned back"
# Holds in What becomes of the offset in a logit: "turn the values as RoPE below turns queries and keys"
values, even = torch.randn(24, 16), torch.full((24,), 1 / 24)
sums = [even @ turn(values, here + t) for t in (0, 1000)]
assert not torch.allclose(*sums, atol=0.05)
turned_back = turn(sums[1][None], torch.tensor([-1000]))
assert torch.allclose(turned_back, sums[0][None], atol=1e-3)
# Holds: "$2i$ and $2i + 1$ in the paper"
one = torch.eye(16)[:1]  # column 0 is turned towards its partner
for layout, partner in (("interleaved", 1), ("half", 8)):
    moved = RoPE(16, layout=layout).rotate(one, torch.tensor([1]))[0]
    assert moved.nonzero().flatten().tolist() == [0, partner]
# Holds: "They have the width of a head, like the other two."
part = scheme("rope", d_model=64, n_heads=4)
attention = MultiHeadAttention(64, 4, part, causal=True)
widths = {p.shape for n, p in attention.named_parameters() if n.count("weight")}
assert len(widths) == 1

# %% Five biases side by side
# Holds: "from a late query the first word is at 1 however long the text"
fire, q = scheme("fire", n_heads=4, causal=True), torch.zeros(1, 4, 2, 16)
starts = torch.tensor([0, 300])
late = fire.layer(0).bias(q, q, torch.tensor([600, 900]), starts)
assert torch.allclose(late[..., 0, 0], late[..., 1, 0], atol=1e-5)
# Holds: "of the farthest one that the query could see, or of $L$ (512 at"
early = fire.layer(0).bias(q, q, torch.tensor([100, 101]), torch.arange(2))
assert torch.allclose(early[..., 0, 0], early[..., 1, 1])  # distance 100
assert not torch.allclose(early[..., 0, 0], late[..., 0, 0], atol=1e-5)
# Holds: "So beyond $L$ the bias depends on the query's position too"
assert not torch.allclose(late[..., 0, 0], late[..., 1, 1])  # distance 600
# KERPLE is relative, FIRE is not.
assert change_when_moved("kerple") < 1e-5 < 1e-4 < change_when_moved("fire")

# %% Five biases side by side > trained
from posembed.encodings import FIRE
from posembed.widgets.biases import THRESHOLD

# Holds: "Then put the query at 128: the models were trained on 64"
panels = {each["name"]: each["learned"]["causal"] for each in trained.panels}
table = torch.tensor(panels["T5"]["tables"][0])  # "heads keys", up to 128
assert table[:, : 128 - 67 + 1].abs().max() < 0.1
assert table[:, 128 - 66 : 128 - 40].abs().min() > 3
assert "texts of 64 characters" in trained.learned_note
assert "distance 67 on" in trained.learned_note
# Holds: "In the layer shown, the first, FIRE's $L$ has come down"
assert round(panels["FIRE"]["rule"]["threshold"]) == 59
assert FIRE(4).start == 512
# Holds: "With *trained* off you see the schemes as they start"
fire = FIRE(4, threshold=THRESHOLD)
at, q = torch.arange(33), torch.zeros(1, 4, 33, 16)
curve = fire.bias(q, q, at, at).detach().view(4, 33, 33)[0]
assert torch.allclose(curve[8, :9], curve[16, 8:17], atol=1e-6)
assert not torch.allclose(curve[16, :17], curve[32, 16:], atol=1e-6)

# %% Five biases side by side
# The same of the caption.
# Holds: "Shaw's offsets beyond 16 share a number, and so do those of a T5"
part = scheme("shaw", d_model=64, n_heads=4).layer(0)
assert part.max_distance == 16 and t5.bucket(torch.tensor(-17)) == 16
assert t5.bucket(torch.tensor(-18)) == 16
# Holds: "With the schemes as they start, move the query beyond 16: the curve"
for name in ("shaw", "t5", "alibi", "kerple"):
    assert change_when_moved(name) < 1e-5

t5_runs = [torch.tensor(run.metrics["scheme"]["weight"]).view(32, 4) for run in study.by_arm["t5"]]
# Holds: "All four heads of all five runs learned it"
# Holds: "Each has a peak of 3 or more at distance 1 or 2"
assert (by_head.max(dim=1).values >= 3).all()  # the run in the picture
for weight in t5_runs:
    curve = weight[t5.bucket(-torch.arange(129))].T  # "heads distances"
    assert all(peak in (1, 2) for peak in curve[:, :63].argmax(dim=1))
    assert (curve[:, :63].max(dim=1).values > 2.8).all()
    near, mid, late = curve[:, 2], curve[:, 15], curve[:, 45]
    assert ((near - mid) / 13 > (mid - late) / 30).all()
    assert ((late > -5) & (late < -3)).all() and (curve[:, 62] > late).all()
    assert curve[:, 67:].abs().max() < 0.1

# The same of where it is lowest, and of the jump.
for weight in t5_runs:
    curve = weight[t5.bucket(-torch.arange(129))].T
    # Holds: "From there it rises by up to 0.7, and at 59 every head jumps up"
    low = curve[:, :59].argmin(dim=1)
    assert low.min() >= 27 and low.max() <= 51
    risen = curve[:, 58] - curve.gather(1, low[:, None])[:, 0]
    assert ((risen > 0.05) & (risen < 0.7)).all()
    jump = curve[:, 59] - curve[:, 58]
    assert ((jump > 0.7) & (jump < 1.4)).all()
# Holds: "Few pairs of a text are in the bucket of 59 to 66: ten, where that"
pairs = [sum(63 - d for d in t) for t in (range(59, 63), range(52, 59))]
assert pairs == [10, 56] and study.by_arm["t5"][0].config.length == 64
buckets = t5.bucket(-torch.arange(67)).tolist()
assert len({*buckets[59:67]}) == len({*buckets[52:59]}) == 1

# The same of the question.
# Holds: "Each head has its own numbers"
assert len({tuple(head.tolist()) for head in t5_runs[0].T}) == 4
# By definition: "They have the same biases, not the same weights"
# Holds: "Every head has its peak at distance 1 or 2; from distance 67 on"
assert all(peak in (1, 2) for peak in by_head[:, :63].argmax(dim=1))
assert by_head[:, 67:].abs().max() < 0.1

# %% Train short, test long
ABSOLUTE, planned = ("nopos", "sinusoidal", "learned", "learnable_sinusoidal"), study.contrasts
# Holds: "Weights and tables start with a standard deviation of 0.02"
for run in (run for its in study.by_arm.values() for run in its):
    assert (run.config.weight_std, run.config.scale_embeddings) == (0.02, True)

at = {name: torch.tensor([run.metrics["loss_by_position"] for run in its]) for name, its in study.by_arm.items()}
mean = {name: sum(each) / 5 for name, each in loss.items()}
# Holds: "With each scheme the same model is trained on texts of 64 characters"
# Holds: "All models have the same number of steps."
configs = [run.config for its in study.by_arm.values() for run in its]
sizes = {(c.steps, c.length, c.n_layers, c.d_model) for c in configs}
assert sizes == {(1500, 64, 4, 64)} and len(at["rope"][0]) * 16 == 512
# Holds: "NoPos near 1.79, learned 1.51, sinusoidal 1.47, learnable sinusoidal"
about = {"nopos": 1.79, "learned": 1.51, "sinusoidal": 1.47, "alibi": 1.42}
about["learnable_sinusoidal"] = 1.43
assert all(abs(mean[name] - value) < 0.006 for name, value in about.items())
# Holds: "Shaw, T5 and RoPE are better than all absolute schemes"
three = [value for name in ("shaw", "t5", "rope") for value in loss[name]]
assert min(three) > 1.29 and max(three) < 1.325 < min(loss["alibi"])
assert max(three) < min(value for name in ABSOLUTE for value in loss[name])

from posembed.stats import difference

# Holds: "ALiBi is 0.014 nats better than the best absolute one"
best = min(ABSOLUTE, key=mean.get)
gap = difference(loss["alibi"], loss[best])
assert best == "learnable_sinusoidal" and not gap.excludes_zero
assert [round(x, 3) for x in (gap.mean, gap.low, gap.high)] == [
    -0.014,
    -0.045,
    0.016,
]
assert f"alibi minus {best}" not in planned.index

# The same of the second place back.
# Holds: "What it adds never favours the second place back over the first"
assert (scheme("alibi", n_heads=4).slopes > 0).all()
assert any((weight[2] > weight[1]).any() for weight in t5_runs)
key = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
rope, shaw = (scheme(n, d_model=4, n_heads=1) for n in ("rope", "shaw"))
query = rope.rotate(rope.rotate(key, torch.tensor([-2])), torch.tensor([5]))
second, first = (query @ rope.rotate(key, torch.tensor([n])).T for n in (3, 4))
shaw.weight.data = torch.zeros_like(shaw.weight)
shaw.weight.data[14] = 1  # the vector of the offset -2
six, ones = torch.arange(6), torch.ones(1, 1, 6, 4)
row = shaw.bias(ones, ones, six, six)[0, 0, 5]
assert second > first and row[3] > row[4]

# By definition: "for each scheme the mean loss at positions 64 to 511 minus"
# By definition: "Each line has the mean difference over five seeds"
assert len(planned) == 21 and (planned["n"] == 5).all()
# Holds: "Shaw and ALiBi stay flat to the end."
for name, rise in (("shaw", 0.006), ("alibi", -0.002)):
    # Holds: "The rise is 0.006 and -0.002 nats"
    line = planned.loc[f"{name}, past the trained length"]
    assert abs(line["mean"] - rise) < 0.0005 and line["holm"] > 0.05
    assert (at[name][:, 4:] - at[name][:, 3:4]).abs().max() < 0.05
assert (at["rope"][:, 5] < 1.4).all() and at["t5"][:, -1].mean() > 3.3
assert all(at[name][:, 5].mean() > 3.2 for name in ABSOLUTE[1:])
assert abs(at["nopos"][:, -1].mean() - 2.9) < 0.05
# Holds: "and in every group of 16 positions from 176 on it does worse"
worse = at["rope"] > at["learned"]
assert worse[:, 11:].all() and not worse[:, 10].all()
# Holds: "A model whose training texts are much longer than 113 trains"
assert bool((t5.bucket(-torch.arange(200)) == 31).any())

# Holds: "Neither has any."
for name in ("alibi", "rope"):
    part = scheme(name, d_model=64, n_heads=4)
    assert sum(p.numel() for p in part.parameters()) == 0
# Holds in What to remember: "Relative alone does not carry a model past its trained length."
for name, fails in (("shaw", 0), ("alibi", 0), ("t5", 1), ("rope", 1)):
    line = planned.loc[f"{name}, past the trained length"]
    assert (line["mean"] > 1) == fails
# Holds: "The same models are given texts of 512 characters."
assert {config.test_length for config in configs} == {512}
# Holds: "In RoPE a slow pair that turned by at most a third of a circle"
turns = RoPE(16).frequencies / (2 * torch.pi)
assert 0.3 < 62 * turns[3] < 1 / 3 and abs(100 * turns[3] - 0.5) < 0.01

# Holds: "**Shaw** meets nothing new at a new distance: beyond its limit of 16"
assert scheme("shaw", d_model=64, n_heads=4).layer(0).max_distance == 16 < 64
for run in study.by_arm["shaw"]:
    for weight in run.metrics["scheme"].values():
        used = torch.tensor(weight).view(33, 16).norm(dim=1)
        # The first vector is that of far keys; the last, of the future, is
        # never used.
        assert used[0] > 2 * used[-1]
# Holds: "What **ALiBi** meets there is more of the same"
# Holds: "Right. At a new offset of 100 ALiBi's bias is lower than at any"
line = scheme("alibi", n_heads=4).bias_by_offset(-torch.arange(512))
assert torch.allclose(line.diff()[:, 64:], line.diff()[:, :1], rtol=1e-3)
assert (line.diff() < 0).all()

# The same of the pictures.
# Holds: "Shaw, T5 and RoPE lie close together, below every absolute scheme in"
assert max(three) - min(three) < 0.04
assert max(three) < min(value for name in ABSOLUTE for value in loss[name])
assert min(loss["alibi"]) - max(three) > 0.07
# Holds: "Being relative is not enough, for while Shaw and ALiBi keep their"
for name in ("shaw", "alibi"):
    assert (at[name][:, 4:] - at[name][:, 3:4]).abs().max() < 0.05
for name in ("t5", "rope"):
    assert (at[name][:, -1] > 2 * at[name][:, 3]).all()

import inspect

curve = {
    name: torch.tensor([run.metrics["loss_by_position"] for run in of_scheme]).double()
    for name, of_scheme in study.by_arm.items()
}
# Holds: "Two of the relative schemes carry on as if nothing had happened, and two do not"
for name in ("shaw", "alibi"):
    assert (curve[name][:, 4:].mean(1) - curve[name][:, 3]).abs().max() < 0.05
# Holds: "beyond its limit of 16 all keys have one vector"
assert inspect.signature(Shaw).parameters["max_distance"].default == 16
# Holds: "**RoPE** goes on for some thirty characters"
assert ((curve["rope"][:, 4:6] - curve["rope"][:, 3:4]).abs() < 0.15).all()
assert (curve["rope"][:, 8:].mean(1) > 3).all()
# How close the best lie together.
means = [sum(run.metrics["loss"] for run in study.by_arm[name]) / 5 for name in ("shaw", "t5", "rope")]
assert max(means) - min(means) < 0.03
# Holds: "Distances from 67 on fall into buckets that our texts never reached"
reached = t5.bucket(-torch.arange(63)).unique()
unreached = t5.bucket(-torch.arange(67, 512)).unique()
assert t5.bucket(torch.tensor(-66)) in reached and not torch.isin(unreached, reached).any()
# Holds: "as they were drawn, near zero, where trained far buckets are far below"
for run in study.by_arm["t5"]:
    weight = torch.tensor(run.metrics["scheme"]["weight"]).view(32, 4)
    assert weight[unreached].abs().max() < 0.1 and weight[reached[-4:]].mean() < -0.5
assert (curve["t5"][:, 8:].mean(1) > 2).all()

# %% Stretching RoPE
from itertools import combinations

curves_of = {
    name: torch.tensor([r.metrics["loss_by_position_scaled"][name] for r in study.by_arm["rope"]]) for name in scaled
}
ends = {name: curve[:, 26:].mean() for name, curve in curves_of.items()}
# Holds: "None of the recipes makes our models as good on texts of 512"
assert all(end > at["rope"][:, 3].mean() + 0.9 for end in ends.values())
past = {name: curve[:, 4:].mean(dim=1).tolist() for name, curve in curves_of.items()}

unclear = [{a, b} for a, b in combinations(past, 2) if not difference(past[a], past[b]).excludes_zero]
assert unclear == [{"ntk", "llama3"}]
# Holds: "YaRN rises to 2.3 and stays, Llama 3 rises to 2.7 and stays"
about = {"yarn": 2.3, "llama3": 2.7, "ntk": 4, "linear": 3.9}
assert all(abs(ends[name] - value) < 0.1 for name, value in about.items())
assert abs(curves_of["linear"][:, 1:].mean() - 3.8) < 0.1
ntk = curves_of["ntk"].mean(dim=0)
assert ntk[:12].max() - ntk[:12].min() < 0.2 and ntk[20] > 3
# Holds: "past it, it cannot be told from no scaling after Holm's correction"
holm = planned["holm"]
assert holm[lines[0]] > 0.05 and max(holm[line] for line in lines[1:]) < 0.001

# The rest of it.
# By definition: "it can be given other angles"
# Holds: "Within the trained length the NTK-aware one costs 0.13 nats, YaRN"
# Holds: "The other recipes keep the fastest pair, and cost less within"
cost = {n: c[:, :4].mean() - at["rope"][:, :4].mean() for n, c in curves_of.items()}
for name, value in {"ntk": 0.13, "yarn": 0.42, "llama3": 0.89}.items():
    assert abs(cost[name] - value) < 0.006 and cost[name] < cost["linear"] / 2
# Holds: "Llama 3 is on it before the trained length ends"
assert abs(curves_of["llama3"][:, 3].mean() - ends["llama3"]) < 0.1
# Holds: "None of the scalings keeps the loss to 512."
assert min(ends.values()) > 2.2
# Holds: "The NTK-aware one holds longest, to about 200, and YaRN ends lowest."
assert min(ends, key=ends.get) == "yarn" and ntk[:12].max() < 1.6
assert all(c[:, 11].mean() > 2 for n, c in curves_of.items() if n != "ntk")

# The same of wavelengths.
# Holds: "Linear scaling moves the whole line up by the factor 8."
# Holds: "Every pair, the fastest too, turns an eighth as far from one"
# Holds: "Linear scaling stretches every wave alike; the others keep the"
assert torch.allclose(waves["linear"], 8 * waves["none"])
# Holds in What to remember: "Scalings of RoPE slow down the slow pairs"
for name in ("ntk", "yarn", "llama3"):
    assert torch.isclose(waves[name][0], waves["none"][0])
    assert torch.isclose(waves[name][-1], waves["linear"][-1])
# Holds: "with eight pairs where a head of width 128 has 64"
assert len(waves["none"]) == 8 and len(RoPE(128).frequencies) == 64
# Holds in Which scheme where: "At the trained length it was among the best three of the eight"
assert sorted(mean, key=mean.get).index("rope") < 3
# Holds in Which scheme where: "its bias lowers far words in every head"
assert (scheme("alibi", n_heads=8).slopes > 0).all()

# And of single recipes.
# Holds: "Linear scaling keeps every pair inside its trained range, to within"
trained_turns = 62 / waves["none"]  # the longest offset in training
assert (511 / waves["linear"] < 1.031 * trained_turns).all()
assert all((511 / waves[name][0] > trained_turns[0]) for name in scaled[1:])
# Holds in Exercises: "That is why YaRN and Llama 3's recipe treat the pairs apart"
slow = waves["none"] > 64
for name in ("yarn", "llama3"):
    assert torch.allclose(waves[name][slow], waves["linear"][slow])
assert ((waves["ntk"] / waves["none"]).diff() > 0).all()

# Holds: "Logits are also sharpened, by the square of $0.1 \ln f + 1$, here"
assert round((0.1 * math.log(factor) + 1) ** 2, 2) == 1.46
# Holds: "**Llama 3.1**, in the code released with the models: the same idea"
sharper = [scalings[name].attention_factor for name in ("yarn", "llama3")]
assert sharper[0] > 1 == sharper[1]
stretch = [waves[name] / waves["none"] for name in ("yarn", "llama3")]
# The ramp goes over the turns that a pair makes in the training, one to four.
turns = 64 / waves["none"]
ramp = 1 + 7 * ((turns - 1) / 3).clamp(0, 1)
assert torch.allclose(8 / stretch[1], ramp, atol=1e-4)
assert all((each.diff() > -1e-6).all() for each in stretch)

# Holds: "The heads of our models are 16 wide, so they have eight pairs"
config = study.by_arm["rope"][0].config
assert config.d_model // config.n_heads == 16
stretched = {
    name: torch.tensor([run.metrics["loss_by_position_scaled"][name] for run in study.by_arm["rope"]])
    for name in scaled
}
plain = torch.tensor([run.metrics["loss_by_position"] for run in study.by_arm["rope"]])
# Holds: "Linear scaling ruins the loss at once, also within the trained length"
assert (stretched["linear"][:, :4] > plain[:, :4] + 1).all()
# Holds: "carries the models to about three times the trained length"
ntk = stretched["ntk"].mean(0)
assert (ntk[1 : 3 * 4] < plain[:, 3].mean() + 0.25).all() and (ntk[20:] > 3).all()
# Holds: "YaRN and Llama 3 hold to the end on a level between the trained one and that of guessing"
for name in ("yarn", "llama3"):
    assert (stretched[name][:, 16:].mean(0) < 3.03).all() and (stretched[name][:, 16:].mean(0) > 1.6).all()
# Holds: "Within the 64 trained characters the fastest turns ten times and the slowest hardly at all"
turns = 64 * RoPE(16).frequencies / (2 * math.pi)
assert round(float(turns[0])) == 10 and turns[-1] < 0.01

# %% Which scheme where
# Holds: "| sinusoidal | fails within thirty positions | embeddings | 0 | none |"
# Holds: "| learnable sinusoidal | fails within thirty positions | embeddings | 384 | none |"
by_letter = 3.03  # what letters' frequencies alone give
for name in ("sinusoidal", "learnable_sinusoidal"):
    of_seeds = torch.tensor([run.metrics["loss_by_position"] for run in study.by_arm[name]])
    # From the group of positions 80 to 95 on, where 64 were trained.
    assert (of_seeds[:, 5] > by_letter).all() and (of_seeds[:, 5:].mean(1) > by_letter).all()

# %% Exercises
# Holds: "and 16 would be its distance 0"
# Holds: "But an offset of 0 is not in the future: it has bucket 0."
assert two_sided.bucket(torch.tensor([0, 1])).tolist() == [0, 17]
# Holds: "No gradient reaches the row of bucket 16."
two_sided.bias_by_offset(torch.arange(-500, 501)).sum().backward()
untouched = (two_sided.weight.grad == 0).all(dim=1).nonzero().flatten()
assert untouched.tolist() == [16]
# By definition in Which scheme where: "Parameters are counted for a model of twelve layers"
# By definition in Relative positions: "This chapter builds four of them by hand"
# By definition in What to remember: "Shaw has a vector for each offset up to a limit"
