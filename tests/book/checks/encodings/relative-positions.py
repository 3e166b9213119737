# %% Relative positions
import pandas as pd
import torch

by_place = {name: torch.tensor(its) for name, its in of_each("loss_by_position").items()}
final = of_each("loss")
RELATIVE, ABSOLUTE = ("shaw", "t5", "alibi", "rope"), ("sinusoidal", "learned", "learnable_sinusoidal")
gains = -study.contrasts.loc[[f"{name} minus nopos, start B" for name in RELATIVE], "mean"]
# Holds: "From start B, after 1500 steps, Shaw, T5 and RoPE are ahead of every absolute scheme, by 0.056"
# Holds: "Up to 64 the relative schemes are lowest."
lowest = min(min(final[name]) for name in (*ABSOLUTE, "nopos"))
LEAD = ("shaw", "t5", "rope")
assert max(max(final[name]) for name in LEAD) < lowest
assert gains.min() > 0.12
ahead = study.contrasts.loc[[f"{one} minus {other}, start B" for one in LEAD for other in ABSOLUTE]]
assert round(ahead["mean"].max(), 3) == -0.056 and (ahead["holm"] < 0.05).all()
# Holds: "ALiBi, which learns nothing, is level with a learned table."
# Holds in Train short, test long: "ALiBi and the table are level, within the margin of 0.02 that the plan had named"
from posembed import scheme
from posembed.stats import interval

within = interval([a - b for a, b in zip(final["alibi"], final["learned"], strict=True)], level=0.9)
assert -0.02 < within.low < within.high < 0.02 and "lies within 0.02 nats of zero" in " ".join(study.about.split())
assert not list(scheme("alibi", n_heads=4).parameters())
# Holds: "But knowing distances is not enough to read past the trained length"
# Holds: "Shaw and ALiBi stay flat to the end."
# Holds: "Beyond it, relative is not enough"
# Holds: "Shaw and ALiBi keep their loss to the end, that of T5 and RoPE more than doubles."
for name in ("shaw", "alibi"):
    assert (by_place[name][:, 4:] - by_place[name][:, 3:4]).abs().max() < 0.06
for name in ("t5", "rope"):
    assert (by_place[name][:, -1] > 2 * by_place[name][:, 3]).all()
assert (by_place["rope"][:, 5] < 1.25).all() and abs(by_place["rope"][:, 12:].mean() - 3.8) < 0.1
assert abs(by_place["t5"][:, -1].mean() - 3.4) < 0.1 and abs(by_place["nopos"][:, -1].mean() - 3.2) < 0.06
assert all(by_place[name][:, 5].mean() > 3.2 for name in ABSOLUTE)
# By definition: "Relative schemes act in every layer, absolute ones at the input: that was not separated here"
# Holds: "**How sure:** five seeds each, one text."
# Holds: "With more steps, at another rate, RoPE leads a table by 0.03; at twice the size three"
assert {len(its) for its in by_scheme.values()} == {5} and len(by_scheme) == 8
assert (study.contrasts.filter(like=" minus nopos, start B", axis=0)["holm"] < 0.05).all()
assert 190_000 < by_scheme["nopos"][0].metrics["parameters"] < 230_000
# Holds in What this does not show: "On a ladder with more steps and rates by a rule"
of_ladder = load_study("ladder").by_arm["rope, width 64"][0].config
assert of_ladder.steps > by_scheme["rope"][0].config.steps and of_ladder.d_model == 64
rungs = load_study("ladder").runs.pivot(index="seed", columns="arm", values="loss")
lead = [rungs[f"learned, width {w}"] - rungs[f"rope, width {w}"] for w in (64, 88)]
assert round(lead[0].mean(), 2) == 0.03 and len(lead[1]) == 3 and not interval(lead[1]).excludes_zero
assert {run.config.steps for run in study.trials} == {by_scheme["rope"][0].config.steps}
# Holds in What this does not show: "From start A ({doc}`../evidence/encodings`), with rates that one run each chose"
# Holds in Train short, test long: "From start A T5 leads in four of five seeds."
from posembed.stats import difference

of_a = load_study("encodings").runs.groupby("arm")["loss"].agg(list)
# Holds in Relative positions: "All from start B; chapter 3 draws start A, where the table ends highest."
from statistics import fmean

ends_in_a = {
    arm.removesuffix(", start A"): fmean(each for run in its for each in run.metrics["loss_by_position"][-8:])
    for arm, its in load_study("own-rates").by_arm.items()
    if arm.endswith(", start A")
}
assert max(ends_in_a, key=ends_in_a.get) == "learned", ends_in_a
first_in_a = load_study("encodings").runs.pivot(index="seed", columns="arm", values="loss").idxmin(axis=1)
assert (first_in_a == "t5").sum() == 4
assert sorted(("shaw", "t5", "rope"), key=lambda name: sum(of_a[name])) == ["t5", "shaw", "rope"]
assert max(max(of_a[name]) for name in ("shaw", "t5", "rope")) < min(min(of_a[name]) for name in ABSOLUTE)
assert max(of_a["alibi"]) > min(of_a["learnable_sinusoidal"])
assert not difference(of_a["alibi"], of_a["learnable_sinusoidal"]).excludes_zero
assert sum(of_a["learnable_sinusoidal"]) == min(sum(of_a[name]) for name in ABSOLUTE)
# By definition in What to remember: "Shaw has a vector for each offset up to a limit"

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
# The same of what moves.
# By definition: "Vectors are columns in this chapter"
# Holds in What to remember: "Its attention does not change when a text is moved as a whole."
relative = ("shaw", "t5", "alibi", "rope")
assert all(change_when_moved(name) < 1e-5 for name in relative)

# %% Four ways to put the offset in
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

from transformers import DebertaConfig, DebertaModel, XLNetConfig, XLNetModel

xlnet = XLNetModel(XLNetConfig(vocab_size=50, d_model=8, n_layer=1, n_head=2, d_inner=16))
# Holds: "Transformer-XL, XLNet after it, and DeBERTa make the four parts relative in other ways: the first two with"
assert not xlnet.relative_positional_encoding(qlen=4, klen=4, bsz=1).requires_grad
# Holds: "It has them in the two mixed parts, and no part of positions alone."
sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
deberta = DebertaModel(DebertaConfig(vocab_size=50, relative_attention=True, pos_att_type=["c2p", "p2c"], **sizes))
assert {"rel_embeddings.weight"} <= {name.removeprefix("encoder.") for name in deberta.state_dict()}
parts = {name.split(".")[0] for name, _ in deberta.encoder.layer[0].attention.self.named_modules()}
assert {"pos_proj", "pos_q_proj"} <= parts

# %% Shaw: a vector for each offset
# The same of the picture.
# Holds: "Around the diagonal runs a band of nine colours, one for"
# Holds: "Follow a row: near the diagonal every offset has a number of its own;"
assert all(len(row.unique()) == 9 for row in bias[4:20])
for k, row in enumerate(bias):
    assert len(row[k + 4 :].unique()) <= 1 >= len(row[: max(k - 3, 0)].unique())
# Holds: "a query treats all far keys on one side alike"
assert bias[12, 0] == bias[12, 8] != bias[12, 16] == bias[12, 23]

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

# Holds: "All layers of a stack share the numbers, so positions cost $32$ numbers"
assert t5.weight.shape == (32, 4) and t5.layer(0) is t5.layer(1)
# %% ALiBi: a straight line
# Holds: "head 1 falls below one in ten thousand within 17 places"
assert by_distance[0, 17] < 1e-4 < by_distance[0, 15]
assert abs(by_distance[6, 127] / by_distance[6, 0] - 0.37) < 0.005
# Holds: "A longer text changes little for a steep head, which may be why ALiBi goes on."
longer = (-slopes * torch.arange(2000)).softmax(dim=1)[:, :128]
assert (longer[:5] - by_distance[:5]).abs().max() < 0.001
# Holds: "A flat head does spread its weight over what is new."
# Holds: "In a text of 512, where contents do not matter, the places 64"
new = (-slopes * torch.arange(512)).softmax(dim=1)[:, 64:].sum(dim=1)
assert slopes[3] == 1 / 16 and abs(new[3] - 0.02) < 0.005
assert slopes[7] == 1 / 256 and abs(new[7] - 0.75) < 0.01
# The same of the picture.
# Holds: "Each falls exponentially, at a rate of its own: head 1 is below one"
ratios = by_distance[:, 1:] / by_distance[:, :-1]
assert torch.allclose(ratios, (-slopes).exp().expand(8, 127))
assert by_distance[0, 17] < 1e-4
assert by_distance[6, 127] > by_distance[6, 0] / 3


# Holds: "Half of all weight lies within about $0.69 / s$ places"
assert round(math.log(2), 2) == 0.69
# Holds: "For 8 heads the slopes are $\tfrac12, \tfrac14, \dots, \tfrac1{256}$"
eight = [2.0**-h for h in range(1, 9)]
assert scheme("alibi", n_heads=8).slopes.tolist() == eight
# Holds: "For 12 heads: those eight, then the 1st, 3rd, 5th and 7th of the sixteen"
more = scheme("alibi", n_heads=16).slopes[0::2][:4]
assert torch.allclose(scheme("alibi", n_heads=12).slopes, torch.cat([torch.tensor(eight), more]))
assert [round(slope, 2) for slope in more.tolist()] == [0.71, 0.35, 0.18, 0.09]

# %% RoPE: turn both
# The same of the figure.
# Holds: "Move one alone: the product changes."
alone = turn(q, here + 1) @ turn(k, here).T
assert (alone - score).abs().median() > 0.5
# Holds: "Shift both together: the hands turn and the product stays."
assert torch.allclose(score, moved, atol=1e-3)
assert not torch.allclose(turn(q, here + 1000), turn(q, here), atol=0.1)

# Holds: "The vector $(1, 0)$ is the query at 3 and the key at 1"
# Holds: "At 13 and 11 they are $(0.91, 0.42)$ and $(0.00, -1.00)$, and the product is the same."
# Holds: "At 13 and 11 they are $(0.91, 0.42)$ and $(0.00, -1.00)$, and the product is the same."
unit = torch.tensor([[1.0, 0.0]])
at_3, at_1, at_13, at_11 = (turn(unit, torch.tensor([place]))[0] for place in (3, 1, 13, 11))
for hand, written in ((at_3, (-0.99, 0.14)), (at_1, (0.54, 0.84)), (at_13, (0.91, 0.42)), (at_11, (0.0, -1.0))):
    assert all(abs(a - b) < 0.005 for a, b in zip(hand.tolist(), written, strict=True))
for product in (at_3 @ at_1, at_13 @ at_11):
    assert abs(product - math.cos(2)) < 1e-4 and round(float(product), 2) == -0.42

# Holds: "turned values would be added up in different orientations, and the sum"
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
# Holds: "a dot product does not mind the order of its terms"
assert torch.allclose(q[:, order] @ k[:, order].T, q @ k.T, atol=1e-5)
# Holds: "For a key equal to its query, with pairs of one length, the logit does fall"
ones, places = torch.ones(1, 64), torch.arange(120)
falls = turn(ones.expand(120, 64), places) @ turn(ones, torch.tensor([0]))[0]
assert torch.allclose(falls / 2, sinusoidal(120, 64) @ sinusoidal(120, 64)[0], atol=1e-3)
# Holds: "a key that is turned beforehand by five places has its peak five places"
beforehand = turn(ones, torch.tensor([5])).expand(120, 64)
logits = turn(beforehand, places) @ turn(ones, torch.tensor([60]))[0]
assert logits.argmax() == 55
# Holds: "Some models turn a part of each head alone: GPT-NeoX a quarter."
from transformers import GPTNeoXConfig

assert GPTNeoXConfig().rope_parameters["partial_rotary_factor"] == 0.25
# Holds: "a base above 10000 slows all pairs but the first"
slower = RoPE(16, base=500_000.0).frequencies / RoPE(16).frequencies
assert slower[0] == 1 and (slower[1:] < 1).all()

# %% Five biases side by side
# Holds: "a small network learns the curve, as a function of $\log(1 + c\,(i - j)) / \log(1 + c \max(i, L))$"
fire, q = scheme("fire", n_heads=4, causal=True), torch.zeros(1, 4, 2, 16)
import numpy as np

part, (i, j) = fire.layer(0), (600, 250)
c = part.log_scale.item()
share = np.log1p(c * (i - j)) / np.log1p(c * max(i, part.start))
of_share = part.mlp(torch.tensor([share], dtype=torch.float32))
here = part.bias(q[:, :, :1], q[:, :, :1], torch.tensor([i]), torch.tensor([j]))
assert torch.allclose(here.flatten(), of_share, atol=1e-5)
starts = torch.tensor([0, 300])
late = fire.layer(0).bias(q, q, torch.tensor([600, 900]), starts)
assert torch.allclose(late[..., 0, 0], late[..., 1, 0], atol=1e-5)
early = fire.layer(0).bias(q, q, torch.tensor([100, 101]), torch.arange(2))
assert torch.allclose(early[..., 0, 0], early[..., 1, 1])  # distance 100
assert not torch.allclose(early[..., 0, 0], late[..., 0, 0], atol=1e-5)
# Holds: "So beyond $L$ FIRE's bias depends on where the query stands"
assert not torch.allclose(late[..., 0, 0], late[..., 1, 1])  # distance 600
# KERPLE is relative, FIRE is not.
assert change_when_moved("kerple") < 1e-5 < 1e-4 < change_when_moved("fire")

# %% Five biases side by side > trained
from posembed.encodings import FIRE
from posembed.widgets.biases import THRESHOLD

# Holds: "Then put the query at 128, where the models were trained on 64 characters"
# Holds: "T5's buckets from distance 67 on are near zero, where they began."
panels = {each["name"]: each["learned"]["causal"] for each in trained.panels}
table = torch.tensor(panels["T5"]["tables"][0])  # "heads keys", up to 128
assert table[:, : 128 - 67 + 1].abs().max() < 0.1
assert table[:, 128 - 66 : 128 - 40].abs().min() > 2
assert "texts of 64 characters" in trained.learned_note
assert "distance 67 on" in trained.learned_note
fire = FIRE(4, threshold=THRESHOLD)
places, q = torch.arange(33), torch.zeros(1, 4, 33, 16)
curve = fire.bias(q, q, places, places).detach().view(4, 33, 33)[0]
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

t5_runs = [torch.tensor(run.metrics["scheme"]["weight"]).view(32, 4) for run in by_scheme["t5"]]
# Holds: "Nobody told the heads to prefer near characters, and all four heads of all"
# Holds: "Buckets beyond the longest distance of the training are near zero, where they"
for weight in t5_runs:
    curve = weight[t5.bucket(-torch.arange(129))].T  # "heads distances"
    assert all(peak in (1, 2, 3) for peak in curve[:, :63].argmax(dim=1))
    near, mid, late = curve[:, 2], curve[:, 15], curve[:, 45]
    assert ((near - mid) / 13 > (mid - late) / 30).all() and (mid > late).all()
    in_bins = torch.stack([curve[:, a:b].mean(1) for a, b in ((1, 4), (4, 10), (10, 20), (20, 41))])
    assert (in_bins.diff(dim=0) < 0).all()
    assert curve[:, 67:].abs().max() < 0.1
    assert ((curve[:, 70:71] > curve[:, 12:59]).all(dim=1)).all()
# Holds: "Each has a peak of 2 or more at distance 1 or 2"
# Holds: "Every head has its peak at distance 1 or 2; from distance 67 on"
assert (by_head.max(dim=1).values >= 2).all()  # the run in the picture
assert all(peak in (1, 2) for peak in by_head[:, :63].argmax(dim=1))
assert ((by_head[:, 45] < -4) & (by_head[:, 45] > -5)).all()
assert all(0.9 < jump < 1.4 for jump in by_head[:, 59] - by_head[:, 58])
assert by_head[:, 67:].abs().max() < 0.1

# %% Train short, test long
mean = {name: sum(each) / 5 for name, each in final.items()}
# Holds: "With each scheme the same model is trained on texts of 64 characters"
# Holds: "all chose 0.01"
assert {run.config.learning_rate for its in by_scheme.values() for run in its} == {0.01}
configs = [run.config for its in by_scheme.values() for run in its]
sizes = {(c.steps, c.length, c.n_layers, c.d_model, c.test_length) for c in configs}
assert sizes == {(1500, 64, 4, 64, 512)} and len(by_place["rope"][0]) * 16 == 512
assert {(c.weight_std, c.scale_embeddings) for c in configs} == {(64**-0.5, False)}
assert all(len({run.config.learning_rate for run in its}) == 1 for its in by_scheme.values())
# Holds in What this does not show: "What a large model prefers, or one of another text"
assert {c.steps for c in configs} == {1500}
# Holds: "NoPos near 1.43, learnable sinusoidal 1.34, sinusoidal 1.33"
about = {"nopos": 1.43, "learnable_sinusoidal": 1.34, "sinusoidal": 1.33, "learned": 1.31}
about |= {"alibi": 1.31, "rope": 1.25, "t5": 1.24, "shaw": 1.24}
assert all(abs(mean[name] - value) < 0.006 for name, value in about.items())
# Holds: "Shaw, T5 and RoPE lie below every absolute scheme in every seed; ALiBi stands where the table does."
assert max(max(final[name]) for name in LEAD) < min(min(final[name]) for name in ABSOLUTE)
# Holds: "In every {term}`seed` Shaw and T5 are ahead of RoPE, by 0.012 and 0.007 in the mean, and RoPE of all others."
assert [round(mean["rope"] - mean[name], 3) for name in ("shaw", "t5")] == [0.012, 0.007]
# Holds: "This order was not planned, and another rate could turn it."
of_seed = pd.DataFrame(final)
for _, row in of_seed.iterrows():
    assert max(row["shaw"], row["t5"]) < row["rope"] < row.drop(["shaw", "t5", "rope"]).min()
    assert max(row["alibi"], row["learned"]) < min(row["sinusoidal"], row["learnable_sinusoidal"])
assert mean["shaw"] < mean["t5"] < mean["rope"]

# By definition: "Past the trained length each line is the mean loss at positions 64 to 511 minus that at 48"
assert (past["n"] == 5).all() and len(past) == 8
# Holds: "The rise of the loss past the trained length for eight schemes."
# Holds: "Shaw and ALiBi stay where they were; T5 and RoPE fail like the absolute"
rises = {name.split(",")[0]: line for name, line in past.iterrows()}
for name in ("shaw", "alibi"):
    assert abs(rises[name]["mean"]) < 0.005 and rises[name]["holm"] > 0.05
about = {"nopos": 1.43, "t5": 1.81, "learned": 2.16, "rope": 2.21, "sinusoidal": 3.02, "learnable_sinusoidal": 3.25}
for name, value in about.items():
    assert abs(rises[name]["mean"] - value) < 0.006 and rises[name]["holm"] < 0.05
# Holds in What to remember: "Relative alone does not carry a model past its trained length."
assert rises["t5"]["mean"] > 1 and rises["rope"]["mean"] > 1

# Holds: "**Shaw** meets nothing new at a new distance: beyond its limit of 16"
assert scheme("shaw", d_model=64, n_heads=4).layer(0).max_distance == 16 < 64
for run in by_scheme["shaw"]:
    for weight in run.metrics["scheme"].values():
        used = torch.tensor(weight).view(33, 16).norm(dim=1)
        # The first vector is that of far keys; the last, of the future, is never used.
        assert used[0] > 2 * used[-1]
# Holds: "What **ALiBi** meets there is more of the same"
line = scheme("alibi", n_heads=4).bias_by_offset(-torch.arange(512))
assert torch.allclose(line.diff()[:, 64:], line.diff()[:, :1], rtol=1e-3)
assert (line.diff() < 0).all()
# Holds: "**T5** fails for a reason that a learned table has too."
# Holds: "Distances from 67 on fall into buckets that our texts never reached"
reached = t5.bucket(-torch.arange(63)).unique()
unreached = t5.bucket(-torch.arange(67, 512)).unique()
assert t5.bucket(torch.tensor(-66)) in reached and not torch.isin(unreached, reached).any()
for weight in t5_runs:
    assert weight[unreached].abs().max() < 0.1 and weight[reached[-4:]].mean() < -0.5
assert bool((t5.bucket(-torch.arange(200)) == 31).any())
# Holds: "**RoPE** goes on for some thirty characters"
assert ((by_place["rope"][:, 4:6] - by_place["rope"][:, 3:4]).abs() < 0.15).all()
assert (by_place["rope"][:, 8:].mean(1) > 3).all()
# Holds: "From position 176 on RoPE does worse than the learned table, in every seed."
worse = by_place["rope"] > by_place["learned"]
assert worse[:, 11:].all() and not worse[:, 10].all()

# %% Stretching RoPE
by_recipe = {recipes[name]: torch.tensor(losses) for name, losses in stretched.items()}
ends = {name: curve[:, 26:].mean() for name, curve in by_recipe.items()}
# Holds: "None of the recipes makes these models as good on texts of 512"
# Holds: "None of the scalings keeps the loss to 512."
assert all(end > by_place["rope"][:, 3].mean() + 0.6 for end in ends.values())
# Holds: "YaRN rises to 1.9 and stays, Llama 3 rises to 2.3 and stays, linear is near 3.7"
about = {"yarn": 1.9, "llama3": 2.3, "ntk": 3.8, "linear": 3.7}
assert all(abs(ends[name] - value) < 0.06 for name, value in about.items())
assert abs(by_recipe["linear"][:, 1:].mean() - 3.7) < 0.1
# Holds: "Linear scaling ruins the loss at once, also within the trained length"
assert (by_recipe["linear"][:, :4] > by_place["rope"][:, :4] + 1).all()
# Holds: "The NTK-aware one costs least within it and carries the models to about three times"
cost = {name: float(curve[:, :4].mean() - by_place["rope"][:, :4].mean()) for name, curve in by_recipe.items()}
assert min(cost, key=cost.get) == "ntk" and max(cost, key=cost.get) == "linear"
ntk = by_recipe["ntk"].mean(dim=0)
assert (ntk[1:12] < by_place["rope"][:, 3].mean() + 0.15).all() and (ntk[20:] > 3).all()
# Holds: "YaRN and Llama 3.1 rise to 1.9 and 2.3 nats and stay there."
llama = by_recipe["llama3"].mean(dim=0)
assert (llama[12:] - llama[12:].mean()).abs().max() < 0.15
yarn = by_recipe["yarn"].mean(dim=0)
assert (yarn[12:] - yarn[12:].mean()).abs().max() < 0.1 and yarn[12:].mean() > yarn[:4].mean() + 0.3
# Holds: "The NTK-aware one holds longest, to about 200, and YaRN ends lowest."
assert min(ends, key=ends.get) == "yarn" and ntk[:12].max() < 1.5
assert all(curve[:, 11].mean() > 1.6 for name, curve in by_recipe.items() if name != "ntk")

# The same of wavelengths.
from posembed import encodings

factor, trained = 8.0, {"original_max_position_embeddings": 64}
scalings = {
    "none": None,
    "linear": encodings.LinearScaling(factor=factor),
    "ntk": encodings.NTKScaling(factor=factor),
    "yarn": encodings.YaRNScaling(factor=factor, **trained),
    "llama3": encodings.Llama3Scaling(factor=factor, **trained),
}
waves = {name: 2 * torch.pi / RoPE(16, scaling=scaling).frequencies for name, scaling in scalings.items()}
# Holds: "*Linear* divides all speeds by 8."
# Holds: "*NTK-aware* divides that of hand $i$, of 0 to 7, by $8^{i/7}$: the fastest is not slowed."
assert torch.allclose(waves["ntk"], 8 ** (torch.arange(8) / 7) * waves["none"], rtol=1e-4)
# Holds: "*YaRN* and *Llama 3.1* divide by 1 at the fast end and by 8 at the slow one."
assert torch.allclose(waves["linear"], 8 * waves["none"])
for name in ("ntk", "yarn", "llama3"):
    assert torch.isclose(waves[name][0], waves["none"][0]) and torch.isclose(waves[name][-1], waves["linear"][-1])
assert torch.allclose(waves["linear"], 8 * waves["none"])
# Holds in What to remember: "Scalings of RoPE turn its pairs slower"
for name in ("ntk", "yarn", "llama3"):
    assert torch.isclose(waves[name][0], waves["none"][0])
    assert torch.isclose(waves[name][-1], waves["linear"][-1])

# And of single recipes.
# Holds in Exercises: "That is why YaRN and Llama 3's recipe treat the pairs apart"
slow = waves["none"] > 64
# Holds: "Past 64 some hands come to angles that training never showed."
assert slow.sum() >= 4 and not slow[0]
# Holds: "and a text of 512 keeps to known angles"
assert torch.allclose(512 * 2 * math.pi / waves["linear"], 64 * 2 * math.pi / waves["none"])
for name in ("yarn", "llama3"):
    assert torch.allclose(waves[name][slow], waves["linear"][slow])
assert ((waves["ntk"] / waves["none"]).diff() > 0).all()

# Holds: "At four times the length YaRN loses 0.2 nats and less"
for arm, near, far in (("rope, long", "256", "1024"), ("rope, base 10000", "64", "256")):
    held = [its.metrics["stretched"]["yarn"] for its in load_study("length-doses").by_arm[arm]]
    assert len(held) == 5 and sum(its[far] - its[near] for its in held) / 5 < 0.2

# %% Which scheme where
# Holds: "| sinusoidal | fails within thirty positions | embeddings | 0 | none |"
# Holds: "| learnable sinusoidal | fails within thirty positions | embeddings | 384 | none |"
from posembed.data import frequency_loss

# By definition: "Parameters are counted for a model of twelve layers"
for name in ("sinusoidal", "learnable_sinusoidal"):
    # From the group of positions 80 to 95 on, where 64 were trained.
    assert (by_place[name][:, 5:].mean(0) > frequency_loss()).all()

# %% Exercises
# Holds: "and 16 would be its distance 0"
# Holds: "But an offset of 0 is not in the future: it has bucket 0."
assert two_sided.bucket(torch.tensor([0, 1])).tolist() == [0, 17]
# Holds: "No gradient reaches the row of bucket 16."
two_sided.bias_by_offset(torch.arange(-500, 501)).sum().backward()
untouched = (two_sided.weight.grad == 0).all(dim=1).nonzero().flatten()
assert untouched.tolist() == [16]
