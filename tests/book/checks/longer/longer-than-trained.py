# %% Longer than it was trained
# By definition: "**The question:** what does the harm when a text is longer than in training, new offsets"
# The same of the figure.
import torch

from posembed.probing.attention_maps import own_attention

# Holds: "squares are tinted where no text of the training had such a row or offset."
# Holds: "The table's loss rises by a nat, and ALiBi's does not, though this head of it looks there."
ids = corpus.vocabulary.encode(text)[None]
closed = torch.arange(len(text))
apart = closed + 64 * (closed >= len(text) / 2)


def read_at(name, positions):
    logits = models[name](ids, positions)[0, :-1]
    return float(torch.nn.functional.cross_entropy(logits, ids[0, 1:]))


with torch.no_grad():
    rises = [read_at(name, apart) - read_at(name, closed) for name in ("causal-learned", "causal-alibi")]
    looks = own_attention(models["causal-alibi"].transformer, ids, 0, apart)[0, 3][apart[:, None] - apart >= 63]
assert 0.8 < rises[0] < 1.3 and rises[1] < 0.05 and looks.mean() > 0.005

# Holds: "Let two characters share a position: nothing is new, nothing is tinted, and both lose."
with torch.no_grad():
    both_lose = [read_at(name, closed // 2) - read_at(name, closed) for name in ("causal-learned", "causal-alibi")]
assert min(both_lose) > 0.4 and int(closed.max()) < 63

# %% Two causes, and how to tell them apart
# The same of the picture.
import numpy as np

# Holds: "Three panels, token against position. As it stands: a diagonal to 255, most of it above the grey band of 0 to"
# Holds: "Gap: 32 tokens low in the band, 32 at the top. Stack: seven short slopes from 0 to 31 side by side"
# Holds: "The positions that 256 characters are given as they stand, 64 with a gap, and 256 in a stack; those of the"
from studies.training import longer

drawn = {"plain": np.arange(256), "gap": np.r_[low, low + 224], "stack": np.r_[np.tile(low, 7), low + 32]}
asked_ways = {
    "plain": longer.plain(texts, 256),
    "gap": longer.gap(texts, 64, 256),
    "stack": longer.stack(texts, 64, 256),
}
for way, positions in drawn.items():
    found = asked_ways[way][1]
    assert (found is None and way == "plain") or np.array_equal(positions, found)
# Holds: "In the gap the new offsets lie between the two halves; in the stack there are none, and four times the keys."
offsets = np.subtract.outer(drawn["gap"], drawn["gap"])
assert offsets[:32, :32].max() == 31 and offsets[32:, :32].min() > 63
from posembed import load_study
from studies.training import longer

small = load_study("length").by_arm["nopos"][0]

whole = windows_in_order(corpus.test, 512, 4)
# Holds: "When a text grows from 64 characters to 256, two things happen at once."
# Holds: "The offset from a query to a key can be 200, where the training had at most 62."
# By definition: "The second would hurt a model even if all offsets looked familiar"
# Holds: "And a query chooses among 255 keys, where it had at most 63."
assert small.config.length == 64
assert longer.plain(whole, 256)[0][:, :-1].shape[1] == 255
# Holds: "A **gap**: the last 64 characters, one half of them at the first 32 of 256 positions and the other at the"
ids, positions, _ = longer.gap(whole, 64, 256)
assert torch.equal(ids, whole[:, -64:])
assert torch.equal(positions, torch.cat([torch.arange(32), torch.arange(224, 256)]))
# Holds: "A **stack**: the last 256 characters in blocks of 32."
# Holds: "All blocks but the last are given the same positions, 0 to 31, and none of them sees another."
# Holds: "The last block has the positions 32 to 63 and sees all."
# Holds: "It chooses among up to 255 keys, and no offset is new."
ids, positions, mask = longer.stack(whole, 64, 256)
assert torch.equal(ids, whole[:, -256:])
assert torch.equal(positions, torch.cat([torch.arange(32).repeat(7), torch.arange(32, 64)]))
far = torch.arange(63)
# Holds: "The loss is that of the last 16 characters, the same ones in every row."
by_gap = {
    name: [loss_of_last(name, far + g * (far >= 32)) for g in (0, 32, 64, 128, 192)]
    for name in ("causal-rope", "causal-alibi")
}
# Holds: "ALiBi does not mind where the first half stands; why, is asked below."
assert max(by_gap["causal-alibi"]) - min(by_gap["causal-alibi"]) < 0.02
# Holds: "With a gap of 64 it is lost, and with one of 192 nearly as good as without."
rope_by = by_gap["causal-rope"]
assert rope_by[2] > rope_by[0] + 1 and rope_by[3] > rope_by[2] and abs(rope_by[4] - rope_by[0]) < 0.05

# By definition: "{cite:t}`han2024` name both for large models."
# Holds: "Which of its eight pairs mind?"
rope = models["causal-rope"].transformer.layers[0].attention.position_scheme
waves = 2 * torch.pi / rope.frequencies
assert len(waves) == 8
# With all pairs, or none, it is the model as it is.
for g in (64, 192):
    assert abs(loss_with([*range(8)], g) - loss_of_last("causal-rope", far + g * (far >= 32))) < 1e-4
assert abs(loss_with([8], 64) - rope_by[0]) < 1e-4
# Holds: "**One pair does the harm.** It is the fourth, a wave of 199 positions"
assert round(float(waves[3])) == 199
for g, whole_of in zip((64, 128), rope_by[2:4], strict=True):
    fourth, other = loss_with([3], g) - rope_by[0], loss_with([0, 1, 2, 4, 5, 6, 7], g) - rope_by[0]
    assert fourth > 0.8 * (whole_of - rope_by[0]) and abs(other) < 0.02
# Holds: "at gaps of 64 and 128 its angles are untrained ones, and at 192 it has nearly come round."
for its_gap in (64, 128, 192):
    turns_of = (torch.arange(1, 63) + its_gap) / waves[3] % 1
    assert ((turns_of > 62 / waves[3]).double().mean() > 0.99) == (its_gap < 192)
turned_by = torch.tensor([64.0, 192.0]) / waves[3]
assert 0.25 < turned_by[0] < 0.5 and 0.95 < turned_by[1] < 1
# Holds: "The four slower ones stand at new angles at every gap, and cost nothing."
assert ((192 + 62) / waves[4:] < 1).all()
for g in (64, 128, 192):
    assert abs(loss_with([4, 5, 6, 7], g) - rope_by[0]) < 0.02

# %% What each of them costs
from posembed import schemes
from studies import length

mean = rise.groupby("arm", sort=False).mean()

# Holds: "We trained 16 kinds of models on pieces of 64 characters: the twelve schemes of [chapter 15]"
kinds = {runs[0].config.scheme for runs in study.by_arm.values()}
variants = [arm for arm, runs in study.by_arm.items() if "rope" in runs[0].config.scheme_options]
assert len(kinds) == 13 and len(variants) == 3 and kinds <= {*schemes()}
assert kinds - {"forgetting"} == {
    arm.removeprefix("causal, ")
    for arm in load_study("nopos").by_arm
    if arm.startswith("causal, ") and arm[8:] in schemes()
}
# Holds: "In the two of *p-RoPE* only the fastest quarter of the pairs turn, two of eight, or the fastest half"
# Holds: "One has a base of 100."
from posembed.encodings import RoPE

told_of = [study.by_arm[arm][0].config.scheme_options["rope"] for arm in variants]
speeds = [RoPE(64 // 4, **options).frequencies for options in told_of]
assert sorted(int((each > 0).sum()) for each in speeds) == [2, 4, 8] and {len(each) for each in speeds} == {8}
# Holds: "Each has five seeds, and each was then asked for the last 16 characters of the same 256 texts"
assert {len(runs) for runs in study.by_arm.values()} == {5}
assert (longer.TEXTS, longer.GUESSED) == (256, 16)
# By definition: "Here is twice the trained length: `gap.128` is the gap of 64 above."
assert longer.gap(whole, 64, 128)[1].diff().max() == 65
at_twice, blind_ones = mean[at_128], ["nopos", "cope"]
# Holds: "The stack costs NoPos and CoPE, which take no positions; forgetting, which takes none either, loses nothing."
# By definition: "To CoPE, which counts keys, more of them may be higher counts than it had."
assert (at_twice.loc[blind_ones, "stack.128"] > 0.6 * at_twice.loc[blind_ones, "plain.128"]).all()
assert (at_twice.loc[blind_ones, "stack.128"] > 0.05).all()
# Holds: "The 14 other kinds lose at most 0.02, here at twice the length."
seeing = mean.drop(blind_ones)
# Holds: "And a stack has many beginnings, of which NoPos makes marks"
# Holds: "At 256 it costs NoPos 1.67 nats."
# Holds: "Without the first tokens of the six added blocks it costs 0.75; with these six as the only added keys, 2.3."
veils = pd.DataFrame([run.metrics["beginnings"] for run in load_study("length-doses").by_arm["nopos"]])
costs_of = veils.sub(veils["none"], axis=0)
assert len(veils) == 5 and costs_of["all"].between(1.5, 1.8).all()
assert (costs_of["first"] / costs_of["all"]).between(0.35, 0.6).all() and (costs_of["middle"] > costs_of["all"]).all()
assert [round(costs_of[each].mean(), 2) for each in ("all", "first")] == [1.67, 0.75]
assert round(costs_of["but the first"].mean(), 1) == 2.3
assert (costs_of["but the first"] > costs_of["all"]).all()
assert (seeing[[f"stack.{n}" for n in (96, 128)]] < 0.02).all().all()
# Holds: "**Four lose next to nothing by either:** Shaw's limit, ALiBi's slopes, KERPLE's curve, and the gates of the"
neither = ["shaw", "alibi", "kerple", "forgetting"]
assert (
    (mean.loc[neither, [f"{way}.{n}" for way in ("plain", "gap", "stack") for n in (128, 256)]].abs() < 0.03)
    .all()
    .all()
)
# Holds: "**New positions or offsets** cost ten others. In the gap alone they lose 60 % or more of what the longer"
others_lose = at_twice.drop([*blind_ones, *neither])
assert len(others_lose) == 10 and (others_lose["gap.128"] > 0.6 * others_lose["plain.128"]).all()
assert (others_lose["plain.128"] > 0.1).all()
# Holds: "they lose 60 % or more of what the longer text costs them, RoPE and its variants nearly all."
turning = others_lose.loc[["rope", *variants]]
assert (turning["gap.128"] > 0.9 * turning["plain.128"]).all()
# Holds: "At 256 the gap, of 192, costs RoPE, xPos and p-RoPE, half, nothing, and yet the text as it stands costs"
turned = mean.loc[["rope", "xpos", "p-rope, half"]]
assert (turned["gap.256"].abs() < 0.02).all() and (turned["plain.256"] > 1.7).all()
assert mean.loc["rope", "plain.256"] > 2
# Holds: "But this gap has only a third of the new offsets, the largest, at which the fourth pair has come round."
assert 192 / waves[3] > 0.95
of_gap = {i + 224 - j for i in range(31) for j in range(32)}
assert min(of_gap) == 193 and max(of_gap) == 254 and len(of_gap) / len(range(63, 255)) < 0.34
assert 0.8 < mean.loc["rope", "gap.128"] < 1.4
# Holds: "The comparisons were planned at four times the trained length:"
planned = " ".join(length.__doc__.split())
assert "minus the last 64 alone unless it is said otherwise" in planned and "each arm at 256 = 4 times 64" in planned
# Holds: "Spread over all the far places, it costs the stored model with RoPE 1.4 nats and more, that with"
for seed in range(4):
    places = torch.randperm(224, generator=torch.Generator().manual_seed(seed))[:32].sort().values
    spread = torch.cat([places, near[32:] + 192])
    assert loss_of_last("causal-rope", spread) - loss_of_last("causal-rope", near) > 1.3
    assert abs(loss_of_last("causal-alibi", spread) - loss_of_last("causal-alibi", near)) < 0.02

# The same of the picture.
# By definition: "Small marks are seeds, bars 95 % intervals."
# Holds: "Three panels of dots, sixteen rows. As it stands: Shaw, ALiBi, KERPLE and forgetting at zero"
half_a_nat = mean.loc[["fire", "cope"], "plain.256"]
assert half_a_nat.between(0.35, 0.7).all()
dear_ones = mean.drop([*neither, "fire", "cope"])["plain.256"]
assert dear_ones.between(1.4, 3.1).all()
assert (mean.loc[["nopos", "cope", "shaw", "alibi", "kerple", "rope", "xpos"], "gap.256"].abs() < 0.03).all()
assert abs(mean.loc["nopos", "stack.256"] - 1.7) < 0.1 and abs(mean.loc["cope", "stack.256"] - 0.5) < 0.15
costs = mean[["plain.256", "gap.256", "stack.256"]] > 0.1
assert {*costs.index[costs["stack.256"]]} == {"nopos", "cope"}


# Holds: "More keys cost two kinds more than 0.1 nats in the mean, this gap seven, the whole text all but four."
assert (costs["gap.256"].sum(), (~costs["plain.256"]).sum()) == (7, 4)
# %% One knob at a time
from studies import length_doses

of_doses = doses.contrasts.query("family == 'planned'")
told_before = " ".join(length_doses.__doc__.split())
# Holds: "So we turned one number of one scheme, with five seeds a dose."
# Holds: "Three doses were known; of others we wrote down what to expect"
assert "have RoPE's bases 100 and 10000, FIRE from 512 and none as they are here" in told_before
assert all(len(doses.by_arm[arm]) == 5 for arm in turned.index) and "What we expect: T5 to 32 and to 64" in told_before
# Holds: "Guess first: T5's buckets end at an offset of 128."
from posembed.encodings import T5

assert T5(4, causal=True).max_distance == 128 == length_doses.DOSES["t5"][2]
# The same of the picture.
# Holds: "Two panels of the rise of the loss against the length. T5: buckets to 128, 256 and 512 rise alike to 2.2"
at_512 = turned[512]
far_ends = [f"t5, max_distance {end}" for end in (128, 256, 512)]
assert (at_512[far_ends] - 2.2).abs().max() < 0.06
assert (turned.loc["t5, max_distance 64"] < 0.5).all() and (turned.loc["t5, max_distance 32"].abs() < 0.03).all()
# Holds: "RoPE: all bases rise above 2; 100,000 first, 10,000 and 1,000,000 last; PoPE rises slowly, to 1.4."
assert (
    round(turned.loc["pope", 512], 1) == 1.4 and (turned.loc["pope", 128:] < turned.loc["rope, base 1000", 128:]).all()
)
bases = turned[turned.index.str.startswith("rope, base")].rename(lambda arm: int(arm.removeprefix("rope, base ")))
assert list(bases.index) == [100, 1_000, 10_000, 100_000, 1_000_000] and (bases[256] > 2).all()
assert bases[80].idxmax() == 100_000 == bases[96].idxmax()
assert {*bases.index[bases[96] < 0.05]} == {10_000, 1_000_000}
starts = turned[turned.index.str.startswith("fire, threshold")]
assert len(starts) == 3 and (starts.max() - starts.min()).max() < 0.08 and (starts[512] - 0.75).abs().max() < 0.05
# Holds: "T5 is mended by buckets that end well within its training."
# Holds: "FIRE's start changes nothing significantly, and is not drawn."
# Holds: "RoPE's base moves where its loss begins to rise; PoPE, beside it, rises less."
# Holds: "With buckets to 32 or 64 training reaches all of them."
# Holds: "To 32 nothing is lost at 256 characters; to 64 it is 0.1 nats, and 0.4 at 512."
assert abs(turned.loc["t5, max_distance 32", 256]) < 0.02
assert [round(turned.loc["t5, max_distance 64", n], 1) for n in (256, 512)] == [0.1, 0.4]
for end in (32, 64):
    buckets_to = T5(4, causal=True, max_distance=end).bucket(-torch.arange(256))
    assert {*buckets_to[:63].tolist()} == {*buckets_to.tolist()}
    gone = of_doses.loc[f"t5, max_distance {end} minus 128: rise at 256"]
    assert gone["holm"] < 0.001 and turned.loc[f"t5, max_distance {end}", 256] < 0.06 * turned.loc[far_ends[0], 256]
# Holds: "**One number mends T5.**"
# Holds: "Ends of 256 and 512 change nothing significantly."
assert (of_doses.loc[[f"t5, max_distance {end} minus 128: rise at 256" for end in (256, 512)], "holm"] > 0.9).all()
# Holds: "**RoPE's base** moves its waves."
waves_of = {base: 2 * torch.pi / RoPE(16, base=base).frequencies for base in (1e4, 1e5, 1e6)}
assert [round(float(waves_of[base][pair])) for base, pair in ((1e4, 3), (1e6, 2), (1e5, 2))] == [199, 199, 112]
# Holds: "Of two bases we had written what to expect at 128."
foretold = (
    "at 128 the base of 100000, whose third pair has a wave of 112, loses more than 10000, whose fourth has one of 199"
)
assert foretold in told_before and "and 1000000, whose third has that of 199, as much." in told_before
# Holds: "100,000 has a wave of 112 in place of the harmful 199, and was to lose more than the usual 10,000: it loses"
# Holds: "A million has 199 too, and was to lose as much: it loses 0.15 more, not significantly, and nothing shows"
hundred, million = (of_doses.loc[f"rope, base {base} minus 10000: rise at 128"] for base in (100_000, 1_000_000))
assert (round(hundred["mean"], 1), round(million["mean"], 2)) == (1.5, 0.15)
assert hundred["holm"] < 0.001 and million["holm"] > 0.1 and million["high"] > 0.02
# Holds: "In 96 characters, seen afterwards, the bases with a wave between 63 and 199 have lost."
between = {base: 2 * torch.pi / RoPE(16, base=base).frequencies for base in bases.index}
between = {base for base, its in between.items() if ((its > 64) & (its < 198)).any()}
assert between == {*bases.index[bases[96] > 0.2]}
assert {*bases.index[bases[96] < 0.02]} == {10_000, 1_000_000} and (bases.loc[[100, 1_000, 100_000], 96] > 0.2).all()
# Holds: "Trained with any of the five, RoPE loses 2 nats at 256."
assert (of_doses.filter(like="fire", axis=0)["holm"] > 0.9).all()
# Holds: "**PoPE loses less than we thought.**"
# Holds: "but at 96 it has lost something, and RoPE nothing."
assert turned.loc["pope", 96] > 0.03 > 0.01 > turned.loc["rope, base 10000", 96]
# Holds: "Some of its waves are as long, so we foretold more than half a nat at 128."
from posembed.encodings import PoPE

of_pope = (2 * torch.pi / PoPE(16, n_heads=4).frequencies).round().tolist()
assert {112, 199} <= {*of_pope}
assert "it loses more than half a nat at 128" in told_before and "We expect the first." in told_before
# Holds: "It lost 0.26 there, and 0.72 at 256, where RoPE loses 2.6; but at 96 it has lost something, and"
assert [round(turned.loc["pope", n], 2) for n in (128, 256)] == [0.26, 0.72]
assert round(turned.loc["rope, base 10000", 256], 1) == 2.6
beside = doses.contrasts.query("family == 'pope'")
assert (beside.loc[[f"pope minus rope: rise at {n}" for n in (128, 256)], "holm"] < 0.01).all()
# %% What is said to help
of = study.contrasts.query("family == 'planned'")


def helps(remedy, arm, n):
    """By how much a remedy lowers the loss, in the mean over seeds."""
    its = [(run.metrics["longer"]["plain"][n], run.metrics["remedies"][remedy][n]) for run in study.by_arm[arm]]
    return np.mean([as_it_is - with_it for as_it_is, with_it in its])


helped = {
    what: of[of.index.str.endswith(f": {what} minus plain")]["mean"].rename(lambda name: name.split(":")[0])
    for what in ("sharper", "interpolated", "ntk", "shared")
}
# By definition: "Printed is what each adds to the loss, where it is more than 0.12."
# Holds: "The shared bucket takes nearly all of T5's loss."
assert -helped["shared"]["t5"] > 0.9 * mean.loc["t5", "plain.256"]
# Holds: "Sharper logits help CoPE, and NoPos up to twice the length; at four times they help no other kind, and cost"
assert round(helped["sharper"]["fire"], 1) == 0.4
assert helped["sharper"]["cope"] < -0.2 and (helped["sharper"].drop("cope") > -0.1).all()
assert helps("sharper", "nopos", "96") > 0.02 and helps("sharper", "nopos", "128") > 0.05

# Holds: "**YaRN takes most of the harm.**"
# Holds: "It slows down the pairs that do not go round in training, leaves the fastest alone, shades between"
# Holds: "Here the scalings are asked of RoPE trained on 64 characters, and on 256, at two and four times the length."
from posembed.encodings import YaRNScaling

for its_length in (64, 256):
    yarn_of = YaRNScaling(factor=4, original_max_position_embeddings=its_length)
    slow, plain_speeds = (RoPE(16, scaling=how).frequencies for how in (yarn_of, None))
    turns = (its_length - 2) * plain_speeds / (2 * torch.pi)
    assert yarn_of.attention_factor > 1 and slow[0] == plain_speeds[0]
    assert torch.allclose((slow / plain_speeds)[turns < 0.9], torch.tensor(0.25, dtype=slow.dtype))
    assert (((slow / plain_speeds)[1:3] > 0.25) & ((slow / plain_speeds)[1:3] < 1)).all()
# Holds: "At four times the length YaRN loses 0.18 and 0.08 nats, without further training."
rises_of = {}
for arm, n in (("rope, base 10000", 64), ("rope, long", 256)):
    its = [run.metrics["stretched"] for run in doses.by_arm[arm]]
    assert len(its) == 5 and doses.by_arm[arm][0].config.length == n
    rises_of[arm] = {how: np.mean([each[how][str(4 * n)] - each[how][str(n)] for each in its]) for how in its[0]}
assert [round(each["yarn"], 2) for each in rises_of.values()] == [0.18, 0.08]
in_short = doses.contrasts.query("family == 'short'")
assert in_short.loc["yarn minus none, trained on 64: loss at 256", "holm"] < 0.01
assert of_doses.loc["yarn minus none, trained on 256: loss at 1024", "holm"] < 0.01
# Holds: "At eight times it loses more ([chapter 4](chapter-relative))."
of_64 = [run.metrics["loss_by_position_scaled"]["yarn"] for run in load_study("own-rates").by_arm["rope, start B"]]
assert all(np.mean(its[4:]) > 1.25 + 0.3 for its in of_64)
# Holds: "Whether such a model finds what stands far back was not asked; on this text the end alone would do."
# Holds: "Positions can be *drawn* in training, 63 of 256 in order"
assert (length_doses.DRAWN_FROM, doses.by_arm["rope, drawn"][0].config.length) == (256, 64)
# Holds: "At 256 characters a table so trained is 1.2 nats better than a plain one, and RoPE 2.2; at 64 they are worse"
by_draws = {
    (scheme, n): of_doses.loc[f"{scheme}, drawn minus not: loss at {n}"]
    for scheme in ("learned", "rope")
    for n in (64, 256)
}
assert [round(by_draws[scheme, 256]["mean"], 1) for scheme in ("learned", "rope")] == [-1.2, -2.2]
assert [round(by_draws[scheme, 64]["mean"], 2) for scheme in ("learned", "rope")] == [0.06, 0.07]
assert all(each["holm"] < 0.05 for each in by_draws.values())
# Holds: "Scaled logits in training {cite:p}`nakanishi2025` lower nothing significantly, for T5 and RoPE."
grown = of_doses.filter(like="scaled minus not", axis=0)
assert len(grown) == 6 and (grown["holm"] > 0.05).all()

# %% Does a longer text help anyone?
# By definition: "So compare the last 256 characters with the last 64 alone, and those with the last 32."
# Holds: "No kind gains from 256, ALiBi included."
use = of[of.index.str.contains("again minus plain|plain minus the last")]
assert kinds["256"].min() > -0.02 and len(kinds) == 16
gains = use[(use["mean"] < 0) & (use["holm"] < 0.05)]
assert gains.empty
# Holds: "But the last 32 alone do as well as the 64 of the training, in every kind, so nothing else could be expected."
assert kinds["32"].max() < 0.005
# Holds: "Even where the same text stood 32 places back, word for word, none gained 0.02 nats"
ids, positions, _ = longer.again(whole, 64, 64)
assert torch.equal(ids[:, :32], whole[:, -32:]) and torch.equal(ids[:, 32:], whole[:, -32:])
near_copies = of[of.index.str.endswith("again minus plain, 64")]
assert len(near_copies) == 16 and (near_copies["mean"] > -0.02).all()

# %% Can the far past be read?
from studies.training import questions

# Holds: "We trained eight kinds of models, of two layers, on made texts of at most 64 tokens."
of_far = [run.config for runs in distant.by_arm.values() for run in runs]
assert len(distant.by_arm) == 8 and {(its.n_layers, its.length) for its in of_far} == {(2, 64)}
# Holds: "Among random letters a text has a *needle* with a letter behind it, and four *names*"
sample = questions.draw(4, 256, torch.Generator().manual_seed(0))
assert ((sample.ids == questions.KEY).sum(1) == 2).all() and questions.NAMED == 4
assert ((sample.ids >= questions.NAMES) & (sample.ids < questions.COUNTS)).sum(1).eq(4 + 1).all()
# Holds: "At its end a model is asked for the letter of the needle, and for that of a name."
# Holds: "Then we asked in texts of 256."
# Holds: "More than 120 tokens back is *far*: two layers, each reaching as far as in training, do not get there."
assert questions.RELAYED == 120 and 256 in questions.LENGTHS
asked_at_256 = questions._asked(256)
assert (len(asked_at_256.ids), int((asked_at_256.back[:, 0] > 120).sum())) == (512, 250)
by_arm = answers.assign(nearer=nearer).groupby("arm").mean()
four = ["shaw", "alibi", "fire", "forgetting"]
# Holds: "**Four of the eight read on, near and far.**"
# Holds: "At 64 all eight found at least 98 % of the needles."
assert (by_arm["plain.64.needle"] > 0.98).all()
# Holds: "At 256 Shaw, ALiBi, FIRE and forgetting still find nearly all of them."
assert (by_arm.loc[four, ["far.256.needle", "nearer"]] > 0.98).all().all()
assert ((by_arm["plain.64.induction"] - by_arm["plain.256.induction"])[four] < 0.03).all()
others = by_arm.drop(four)
assert (others["plain.256.needle"] < 0.62).all()
# Holds: "RoPE guesses where the needle is far, and finds in the mean half of the nearer ones."
assert by_arm.loc["rope", "far.256.needle"] < 0.08 and 0.45 < by_arm.loc["rope", "nearer"] < 0.6
# Holds: "T5 finds the far ones, and loses three of four nearer ones."
# Holds: "At 512 it finds 0.46 of the far ones, though all have one bucket: it is not distance alone."
assert round(by_arm.loc["t5", "far.512.needle"], 2) == 0.46
from posembed.encodings import T5

buckets_of = T5(4, causal=True).bucket(-torch.arange(256))
assert set(buckets_of[120:].tolist()) == {31} and int(buckets_of[:63].max()) < 31
assert by_arm.loc["t5", "far.256.needle"] > 0.95 and 0.2 < by_arm.loc["t5", "nearer"] < 0.3
at_512 = by_arm["far.512.needle"] / by_arm["far.256.needle"]
assert (at_512[["nopos", "learned"]] < 0.5).all()
assert [round(by_arm.loc[arm, "far.256.needle"], 2) for arm in ("nopos", "learned")] == [0.65, 0.49]
assert (by_arm.loc[["nopos", "learned"], "nearer"] < 0.12).all()
assert (others.loc[["nopos", "learned"], "far.256.needle"] > 5 * others.loc[["nopos", "learned"], "nearer"]).all()
assert [round(by_arm.loc[arm, "gap.128.needle"], 2) for arm in ("rope", "learned", "t5")] == [0.83, 0.95, 1.0]
by_gap_seed = answers["gap.128.needle"] - answers["plain.64.needle"]
assert (by_gap_seed.loc["rope"] < 0).all()
of_gaps = distant.contrasts.filter(like="needle: gap minus none", axis=0)
assert len(of_gaps) == 8 and (of_gaps["holm"] > 0.05).all()
assert (by_arm["plain.256.needle"] - by_arm["plain.64.needle"])[["t5", "rope", "nopos", "learned"]].max() < -0.3
assert abs(mean.loc["alibi", "plain.256"]) < 0.02 and kinds.loc["alibi", "32"] < 0.005
# The same of the picture.
# Holds: "Shaw, ALiBi, FIRE and forgetting stand at 1 in both."
# Holds: "T5 is near 1 for the far and near a quarter for the nearer, RoPE at a guess and near a half; NoPos and"
assert (others[["far.256.needle", "nearer"]].loc[["nopos", "learned"]] < 0.7).all().all()
# Holds: "Small marks are five seeds, bars 95 % intervals, the line is 1 in 16, a guess."
assert questions.N_LETTERS == 16

# %% Can one say beforehand how much?
lengths = longer.LENGTHS

told_at = {key: [said(its, n) for n in lengths] for key, its in reach.items()}
told_at = pd.DataFrame(told_at, index=lengths).T.groupby(level=0, sort=False).mean()
seen_at = rise[[f"plain.{n}" for n in lengths]].groupby("arm", sort=False).mean()
assert np.allclose(told_at[256], told) and np.allclose(seen_at["plain.256"], seen)
# Holds: "Past the trained length its biases, too, are lower than any in training."
alibi = models["causal-alibi"].transformer.position_scheme
assert (
    alibi.bias_by_offset(torch.tensor([-200])) < alibi.bias_by_offset(-torch.arange(63)).amin(1, keepdim=True)
).all()
# Holds: "Its two flattest heads even give such keys a third and more of their attention."
at_256 = np.mean([its["256"]["new"] for its in reach["alibi"]], 0)
assert (at_256[:, 2:] > 0.3).all() and (at_256[:, 0] < 0.01).all()
# Holds: "But nothing depends on them."
# Holds: "The head that the model cannot do without has the steepest slope, and does not look that far."
worths = np.mean([its["worth"] for its in reach["alibi"]], 0)
assert (worths[:, 2:] < 0.03).all() and worths[0, 0] > 1.5 and worths[0, 0] == worths.max()
# Holds: "For each head, of 4 layers with 4 heads each:"
assert (small.config.n_layers, small.config.n_heads) == (4, 4)
# Holds: "*far*: the share that falls further back than any key of the training."
# Holds: "All three are read off texts of 64 characters, with keys taken to where they would stand in a longer text."
# Holds: "This gives a formula that foretells long texts from short ones alone"
from studies.training import reach as reach_of

assert int(reach_of.longer(63, 255).max()) == 62
from studies import length, length_law

# Holds: "The numbers $a$ and $b$ were fitted to six of the schemes, one seed each, and came out near one."
fitted = [run for arm in length_law.FITTED for run in study.by_arm[arm] if run.config.seed == 1]
assert length_law.fit(fitted)["law"] == length_law.COEFFICIENTS["law"] == (A, B) and len(fitted) == 6
assert abs(A - 1) < 0.15 and abs(B - 1) < 0.15
assert np.isclose(said(fitted[0].metrics["reach"], 256), length_law.predicted(fitted[0], "law")[6])

# Holds: "And it must beat a guess that may look at long texts: each kind loses what the most similar fitted scheme"
law = study.contrasts.query("family == 'law'")
# Holds: "By our rule, written down before, a formula holds if it explains 0.7 of the differences between schemes"
words = " ".join(length_law.__doc__.split())
assert 'held from 0.7 on, if no rival is better; not held below 0.3, or where "name" is better' in words
# Holds: "For six other schemes the formula has 0.52 and the guess 0.71, significantly more; for the three"
behind = law.loc[["asked: law minus name", "new: law minus name"]]
assert (behind["mean"] < 0).all() and (behind["holm"] < 0.05).all()
assert law.loc["new: law", "mean"] < 0
# Holds: "Over all doses it explains 0.48, over T5's alone 0.76."
# Holds: "For RoPE's bases and FIRE's thresholds it is better, significantly, to say that a dose changes nothing."
over = doses.contrasts.query("family == 'law'")
assert round(over.loc["t5: law", "mean"], 2) == 0.76 and over.loc["t5: law minus as usual", "mean"] > 0
lags = over.loc[["rope: law minus as usual", "fire: law minus as usual"]]
assert (lags["mean"] < 0).all() and (lags["holm"] < 0.05).all()
# Holds: "For PoPE, not planned, the formula gives 0.62 nats at 256, where 0.72 came, and 0.91 at 512, where 1.36 came."
said_of = np.mean([length_law.predicted(run, "law") for run in doses.by_arm["pope"]], 0)
said_of = [round(said_of[lengths.index(n)], 2) for n in (256, 512)]
assert said_of == [0.62, 0.91] and [round(turned.loc["pope", n], 2) for n in (256, 512)] == [0.72, 1.36]
# Holds: "A head that is led astray costs more than one that is silent, and *worth* measures silence."
large = seen_at.index[(told_at[512] > 1) & (seen_at["plain.512"] > 2)]
assert (seen_at.loc[large, "plain.512"] > told_at.loc[large, 512]).mean() > 0.8
# Holds: "P-RoPE, a quarter, meets no new angle, for both pairs go round within the trained length."
assert "Of p-RoPE a quarter loses less than a tenth of what RoPE does." in " ".join(length.__doc__.split())
speeds = RoPE(16, pairs="proportional", fraction=0.25).frequencies
turning = speeds[speeds > 0].double()
assert len(turning) == 2 and (turning * 62 > 2 * torch.pi).all()
# Holds: "We expected it to lose next to nothing, and at 256 it loses 2.34."
of_quarter = [its["256"] for its in reach["p-rope, a quarter"]]
assert max(float(np.max(its["new"])) for its in of_quarter) == 0
assert round(told["p-rope, a quarter"], 2) == 1.16 and round(seen["p-rope, a quarter"], 2) == 2.34
assert round(mean.loc["p-rope, a quarter", "stack.256"], 2) == 0.04
quarter = seen_at.loc["p-rope, a quarter"]
assert quarter["plain.256"] > 2 and quarter["plain.80"] > 0.1
# Holds: "Values that training had, at places where it never had them. Right. FIRE divides by a function of the query's"
fire = mean.loc["fire"]
assert abs(fire["moved.256"] - fire["plain.256"]) < 0.05 < fire["plain.256"] and (told_at.loc["fire"] < 0.05).all()
# Holds: "The number of keys. That is its second sum, and in the stack FIRE loses nothing."
assert abs(fire["stack.256"]) < 0.02

# The same of the picture.
# Holds: "Sixteen rows of a ring and a dot each"
# Holds: "In seven of the nine kinds that lose most it is 0.8 to 1.5 nats more than was said."
beyond = (seen - told)[seen > 1.8]
assert len(beyond) == 9 and beyond.between(0.75, 1.5).sum() == 7, beyond
assert {*seen.index[seen < 0.02]} == {*neither} and told[neither].max() < 0.2
# %% What this does not show
# Holds: "At 0.2 million parameters models copy little even from nearby, so on text these do not use a longer past"
assert (near_copies["mean"] > -0.02).all()
# Holds: "That the stack adds nothing but keys: it adds beginnings, and its blocks have read less before them than"
mask = longer.stack(whole, 64, 256)[2][0]
assert not mask[64:96, :64].any()
# Holds: "What further training on longer texts would do, or one scaling for all lengths: each length had its own"
# %% Exercises
# Holds: "The slowest pair has the angle $b^{-7/8}$ a position, so it goes round once in 62 positions where"
assert round(base, 1) == 13.7 and np.isclose(62 / (2 * np.pi) * base ** (-7 / 8), 1)
# Holds: "With a gap of 192 no offset between the halves was in the training either, and the cost is gone."
# Holds: "But none of them tells two keys apart that are a whole turn from each other, and p-RoPE, a quarter, which"
assert mean.loc["p-rope, a quarter", "plain.128"] > mean.loc["rope", "plain.128"] + 1
its_pairs = RoPE(16, pairs="proportional", fraction=0.25).frequencies
assert (its_pairs[its_pairs > 0] * 62 > 2 * torch.pi).all()
# Holds: "It is 63, but nothing begins there: the cost climbs from 0.1 nats at a gap of 48 to 2 at 80, as the fourth"
assert lost == 63 and [round(cost_of(gap), 1) for gap in (48, 80)] == [0.1, 2.0] and abs(cost_of(192)) < 0.02
# Holds: "Those from 52 to 112 fall into the buckets 25 to 30 and all beyond into 31: seven numbers"
# Holds: "Bucket 24 ends at offset 51. Those from 52 to 112 fall into the buckets 25 to 30 and all beyond into 31"
assert last == 24 and {*buckets[:52]} == {*range(25)}
assert {*buckets[52:113]} == {*range(25, 31)} and {*buckets[113:]} == {31}

# %% What to remember
# Holds in Longer than it was trained: "Four times the keys cost only NoPos and CoPE over a tenth of a nat."
dear = mean.index[mean["stack.256"] > 0.1]
assert len(mean) == 16 and {*dear} == {"nopos", "cope"} and (mean["stack.256"] > -0.01).all()
# Holds in Longer than it was trained: "Half of a text moved 64 places away, with no key more, costs a model with RoPE"
moved_away = mean.loc[["rope", "sinusoidal", "learnable_sinusoidal", "learned"], "gap.128"]
assert (moved_away > 1).all()
# Holds in Longer than it was trained: "**Both, for different schemes; how much, our formula could not say.**"
# Holds in Longer than it was trained: "Of the differences between six schemes that it was not fitted to, our formula"
of_others = law.loc["asked: law", "mean"], law.loc["asked: law minus name", "mean"]
assert [round(float(each), 2) for each in (of_others[0], of_others[0] - of_others[1])] == [0.52, 0.71]
assert law.loc["asked: law minus name", "holm"] < 0.05
# Holds in Longer than it was trained: "YaRN keeps RoPE's loss low: trained on 256 characters and asked in 1024, it"
assert [round(rises_of["rope, long"][how], 2) for how in ("yarn", "none")] == [0.08, 2.66]
# Holds in What this does not show: "This one was written down once, when the losses of all but the three variants were"
assert "Known from earlier studies were the losses of plainly longer texts" in planned
assert law.loc["asked: law minus name", "mean"] < 0
# Holds in Longer than it was trained: "**How sure:** five seeds, small models, one text and one kind of made text."
assert {len(runs) for runs in distant.by_arm.values()} == {5}
assert {len(runs) for runs in study.by_arm.values()} == {len(length.SEEDS)}
assert round(small.metrics["parameters"] / 1e6, 1) == 0.2 and small.config.data == "sotu"
# Holds in Longer than it was trained: "On the text none gains from beyond 32: keys were added where most"
assert (mean["plain.256"] > -0.02).all() and gains.empty
# Holds: "A longer text brings new offsets and more keys. Positions given from outside tell the two apart"
assert abs(by_gap["causal-rope"][3] - by_gap["causal-rope"][0]) > 1
# Holds: "On text a gap of 64 alone harms ten of 16 kinds, RoPE among them; one of 192 harms seven in"
assert (mean["gap.128"] > 0.1).sum() == 10 and costs["gap.256"].sum() == 7 and abs(mean.loc["rope", "gap.256"]) < 0.02
# Holds: "The stack harms NoPos and CoPE, whose positions it cannot hold fixed."
assert {*dear} == {"nopos", "cope"}
# Holds: "A base of 100,000 loses more at twice the length, as we had written before; others do not."
assert hundred["holm"] < 0.001 and foretold in told_before
# Holds: "Buckets that end well within the training mend T5. YaRN takes most of what RoPE loses at four times the"
assert abs(turned.loc["t5, max_distance 32", 512]) < 0.03 and rises_of["rope, base 10000"]["yarn"] < 0.3
# Holds: "In a model with RoPE one pair of eight did most of the harm of a gap."
assert abs(loss_with([0, 1, 2, 4, 5, 6, 7], 128) - rope_by[0]) < 0.02
# Holds: "A formula of worth and attention did not say how far the loss would rise: a guess by the kind of scheme was"
assert law.loc["asked: law minus name", "mean"] < 0
# Holds: "A flat loss says that a model survives a longer text. It does not say that it reads it."
assert gains.empty
# Holds: "Of eight kinds that were taught to look far back, four found nearly every needle past their trained length."
assert {*by_arm.index[by_arm["plain.256.needle"] > 0.98]} == {*four}
# Holds in What this does not show: "What had not learned the names at 64 is left out there, as planned"
at_64 = {arm: [run.metrics["asked"]["plain"]["64"]["induction"] for run in its] for arm, its in distant.by_arm.items()}
assert {arm: sum(each < 0.5 for each in its) for arm, its in at_64.items() if min(its) < 0.5} == {
    "nopos": 5,
    "forgetting": 1,
    "learned": 1,
}
# Holds in What this does not show: "And rates were chosen in shorter runs; on text these took too high ones"
of_whole = load_study("own-rates").by_arm
for name in ("learned", "sinusoidal", "t5"):
    assert study.by_arm[name][0].config.learning_rate > of_whole[f"{name}, start B"][0].config.learning_rate
assert {run.config.steps for run in distant.trials} == {1000}
