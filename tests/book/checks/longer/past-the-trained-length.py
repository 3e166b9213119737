# %% Longer than anything seen
import numpy as np
import torch

from posembed.encodings import FIRE, Shaw
from posembed.data import load_corpus
from posembed.stored import load_model
from posembed.training import difference, make_model

by_scheme = {name: study.by_arm[f"causal, {name}"] for name in SCHEMES}


for name in ("learned", "sinusoidal", "rope"):
    assert rise["nopos"].high < rise[name].low
assert rise["alibi"].high < 0.1 < rise["nopos"].low

small = by_scheme["nopos"][0].config
assert by_scheme["learned"][0].config.length == 64
assert rise["learned"].low > 1.5
# Holds: "One reason against positions: what a model has learned for positions 0 to 63"
# By definition: "Reading longer texts than those of the training is called {term}`extrapolation`."
# Holds: "were trained on texts of 64 characters, and tested on texts of 256 as well."
assert (small.length, small.test_length) == (64, 256)
# By definition: "Here are twelve schemes."
# By definition: "**xPos** is RoPE whose products are damped with distance, and **CoPE** counts keys, each weighted"
# By definition: "Two are new:"
# By definition: "Compared is the loss at positions 64 to 255 minus that"
# Holds: "In the picture at the top its loss rises slowly."
assert all(rise["nopos"].high < rise[name].low for name in ("learned", "sinusoidal", "rope"))
# Holds: "RoPE is better to one and three quarter times the trained length, up to position 111"
rope, nopos = by_place.loc["causal, rope"], by_place.loc["causal, nopos"]
gap = [difference(rope[k], nopos[k]) for k in range(16)]
assert all(each.high < 0 for each in gap[:7])
assert not gap[7].excludes_zero and all(each.low > 0 for each in gap[8:])

assert 0.15 < rise["fire"].mean < rise["cope"].mean < 0.35
assert rise["xpos"].low < rise["nopos"].mean < rise["xpos"].high
assert round(rise["learnable_sinusoidal"].mean) == 3

# The same of the picture.
# Holds in Past the trained length: "Of these ALiBi alone stays level."
assert rise["alibi"].high < 0.03
assert min(rise[name].low for name in SHOWN if name != "alibi") > 0.9
# Holds in Past the trained length: "NoPos rises slowly, but by a nat on average: having no positions"
assert round(rise["nopos"].mean) == 1 and rise["nopos"].low > 0.9
assert (np.diff(nopos.mean()[3:10]) < 0.3).all()
# Holds: "At 136 (128 to 143) five schemes lie below NoPos with their whole"
below = set()
for name in by_scheme:
    its, other = (by_scheme[each] for each in (name, "nopos"))
    of = [[r.metrics["loss_by_position"][8] for r in a] for a in (its, other)]
    if difference(of[0], of[1][: len(of[0])]).high < 0:
        below.add(name)
assert below == {"shaw", "alibi", "kerple", "fire", "cope"}
# By definition: "Move the position, switch on the others, or take another"

# Holds: "Three schemes are hardly disturbed: ALiBi and KERPLE"
# Holds: "Most of their two hundredths of a nat is the text's doing, for later characters are other ones"
asked = {arm: [run.metrics["longer"]["plain"] for run in runs] for arm, runs in load_study("length").by_arm.items()}
for name in ("alibi", "kerple", "shaw"):
    same = interval([its["256"] - its["64"] for its in asked[name]])
    assert same.high < 0.007 and same.mean < 0.0055 and round(rise[name].mean, 2) == 0.02
# Holds: "Full marks differ from zero over seeds, not over texts, after the correction"
assert len(study.contrasts) == 42 and len(planned) == 12
# Holds: "Three schemes stay within a few hundredths of a nat; NoPos is in the middle."
# Holds: "Shaw, KERPLE and ALiBi are within 0.03 of zero, FIRE at 0.2"
level = {name for name, each in rise.items() if round(each.mean, 2) <= 0.02}
assert level == {"alibi", "kerple", "shaw"}
# Holds: "and Shaw's vectors, where all far offsets share one"
assert Shaw(8).max_distance == 16 and not by_scheme["shaw"][0].config.scheme_options
about = {"fire": 0.2, "cope": 0.3, "nopos": 1.0, "xpos": 1.1, "t5": 1.2, "rope": 1.7, "sinusoidal": 2.1, "learned": 2.2}
assert all(round(rise[name].mean, 1) == value for name, value in about.items())
assert round(rise["learnable_sinusoidal"].mean, 1) == 3.1
assert max(rise, key=lambda name: rise[name].high - rise[name].low) == "learnable_sinusoidal"
# Holds: "The threshold starts at 512, above every text here, and came down to about 60 in training"
# Holds: "So past 64 FIRE does divide."
assert FIRE(4).start == 512
for run in by_scheme["fire"]:
    for layer in range(4):
        assert abs(512 * run.metrics["scheme"][f"layers.{layer}.multiplier"][0] - 60) < 6
# Holds in What to remember: "Past the trained length the loss of ours rises by a nat"
# Holds in Past the trained length: "**ALiBi, KERPLE and Shaw go on as before; what helps RoPE at once is to read"
# Holds in Past the trained length: "over positions 64 to 255, four times the trained length, the loss is higher by 1.0"
# Holds in Past the trained length: "**How sure:** three to five seeds, 0.2 million parameters, one text."
# Holds in Past the trained length: "Leaving positions out was not enough"
assert round(rise["nopos"].mean, 1) == 1.0
# Holds in What to remember: "less than with a table, sinusoids or RoPE, more than with ALiBi, KERPLE or Shaw's
# vectors"
assert all(rise["nopos"].high < rise[name].low for name in ("learned", "sinusoidal", "rope"))
assert all(rise[name].high < rise["nopos"].low for name in level)
assert round(rise["rope"].mean, 1) == 1.7
assert min(rise[name].mean for name in ("learned", "sinusoidal", "learnable_sinusoidal")) > 2

mean_at = {name: np.mean([run.metrics["loss_by_position"] for run in its], axis=0) for name, its in by_scheme.items()}
# Holds in Past the trained length: "ALiBi stays level at 1.3. No positions and T5 rise steadily to 3."
assert np.abs(mean_at["alibi"][4:] - 1.3).max() < 0.05
for name in ("nopos", "t5"):
    assert round(mean_at[name][-1]) == 3 and (np.diff(mean_at[name][3:]) > 0).all()
# Holds in Past the trained length: "RoPE holds to about 100 and then rises to 3.8. Learned jumps to 3.5 at once,"
assert mean_at["rope"][6] < 1.4 < 2 < mean_at["rope"][7] and round(mean_at["rope"][-1], 1) == 3.8
assert round(mean_at["learned"][4], 1) == 3.5
# Holds in Past the trained length: "sinusoidal within three groups."
assert mean_at["sinusoidal"][4] < 3 < mean_at["sinusoidal"][5] < 3.4 and round(mean_at["sinusoidal"][6], 1) == 3.5

# A table is trained in its rows 0 to 62.
start, end = (
    model.transformer.position_scheme.weight
    for model in (make_model(by_scheme["learned"][0].config, load_corpus("sotu")), load_model("causal-learned"))
)
moved = (end - start).norm(dim=1)
assert moved[:63].min() > 0.5 and moved[63:].max() < 1e-3

# Holds: "In the longer pieces of [chapter 4](chapter-relative) ALiBi and Shaw lose nothing."
# By definition: "these losses cannot tell, for they are of other characters than those before 64"
in_512 = load_study("one-start").contrasts
for name in ("alibi", "shaw"):
    assert abs(in_512.loc[f"{name}, past the trained length", "mean"]) < 0.005

# %% Buckets that no text reached
assert first > 63 and shorter.high < 0.1 < rise["t5"].low
# Holds: "Their biases were never trained."
seen = T5(4, causal=True).bucket(-torch.arange(64))
assert int(seen.max()) == 26
# Holds in What to remember: "Ask of a scheme which of its parts the training never reaches"
# Holds: "So one question to ask of any scheme is which of its parts"
assert shorter.high < rise["t5"].low
# Holds: "With buckets that end within the text T5 goes as far as ALiBi"
with_32 = study.by_arm["causal, t5 with buckets to 32"]
cost = difference(*([run.metrics["loss"] for run in of] for of in (with_32, by_scheme["t5"])))
assert str(cost) == "0.000 (-0.013 to 0.014, 3 seeds)"
assert shorter.high < rise["alibi"].high
# Holds: "T5's loss rises more than that of NoPos, to about the same height, and that needs an explanation"
curves_of = [[run.metrics["loss_by_position"] for run in by_scheme[name][:3]] for name in ("t5", "nopos")]
more = difference(*([np.mean(each[4:]) - each[3] for each in of] for of in curves_of))
assert [round(each, 2) for each in (more.mean, more.low, more.high)] == [0.19, 0.09, 0.30]
assert abs(difference(*([np.mean(each[4:]) for each in of] for of in curves_of)).mean) < 0.05
# Holds: "T5's last five buckets are for offsets that no text of 64 has."
buckets = T5(4, causal=True)
assert buckets.max_distance == 128 and buckets.n_buckets - 1 - int(buckets.bucket(torch.tensor(-63))) == 5
# Holds: "three new runs, with buckets that end at an offset of 32 instead of 128"
assert len(with_32) == 3 and with_32[0].config.scheme_options == {"t5": {"max_distance": 32}}
# Holds in What to remember: "An idea that comes after the results is tested with new runs."
assert shorter.n == 3
# Holds: "All ten, which of them were planned, and new seeds for the one."
# Holds: "Of studies with ten independent comparisons and nothing behind"
ahead, either = (1 - share**10 for share in (0.975, 0.95))
assert abs(ahead - 1 / 5) < 0.03 and round(either, 1) == 0.4
# Holds: "Nothing; the later text is harder."
assert rise["alibi"].high < 0.03 < 0.9 < rise["nopos"].low
# Holds: "How many tokens its attention reads."
assert small.length < 200 and rise["shaw"].high < 0.03 < rise["nopos"].low

# %% Or read the end alone
short = apart.contrasts
assert (short["n"] == 5).all() and apart.by_arm["rope"][0].config.length == 64
# Holds: "It then reads 63 characters, as in its training, and no position is new."
# Holds: "Five kinds of models were trained again, FIRE from two thresholds, at rates chosen in whole runs"
assert len(apart.by_arm) == 6 and len({runs[0].config.scheme for runs in apart.by_arm.values()}) == 5
for name, runs in apart.by_arm.items():
    its = [trial for trial in apart.trials if trial.config.scheme_options == runs[0].config.scheme_options]
    its = [trial.config for trial in its if trial.config.scheme == runs[0].config.scheme]
    assert {(trial.steps, trial.length) for trial in its} == {(runs[0].config.steps, 64)}, name
    rates = {trial.learning_rate for trial in its}
    assert min(rates) < runs[0].config.learning_rate < max(rates), name
# Holds: "or in blocks of 32, each with the block before it"
# Holds: "Test loss of the same characters, at positions 64 to 255 of models trained on 64"
# Holds: "Five kinds of models, three marks each."
seen = {key: interval(its).mean for key, its in losses.items()}
assert [round(seen[kind, "last"], 2) for kind in KINDS] == [1.2, 1.2, 1.26, 1.2, 1.42]
assert [round(seen[kind, "as it is"], 1) for kind in KINDS] == [2.9, 2.3, 1.3, 1.4, 2.3]
assert [round(seen[kind, "blocks"], 1) for kind in KINDS] == [1.2, 1.2, 1.3, 1.4, 3.0]
# Holds: "With the end alone RoPE and xPos are ahead of ALiBi, which reads all."
# Holds: "**With the end alone RoPE loses nothing.** Its loss is 1.196 then"
# Holds in Past the trained length: "Given the last 63 characters alone, RoPE loses nothing either"
# Holds in What to remember: "Where the near past is enough, the end of the text alone is a way out"
behind_rope = short.filter(like="as it is, minus rope, last 63", axis=0)
assert len(behind_rope) == 4 and (behind_rope["low"] > 0).all() and (behind_rope["holm"] < 0.01).all()
assert interval([a - b for a, b in zip(losses["fire, 32", "as it is"], losses["rope", "last"], strict=True)]).low > 0
assert (round(seen["rope", "last"], 3), round(seen["alibi", "as it is"], 2)) == (1.196, 1.26)
assert difference(losses["alibi", "as it is"], losses["xpos", "last"]).low > 0
ends = [run.metrics["far"]["last"] for run in apart.by_arm["rope"]]
assert all(np.mean(its[4:]) < its[3] for its in ends)
level_with = difference(losses["xpos", "blocks"], losses["rope", "last"])
assert max(abs(level_with.low), abs(level_with.high)) < 0.02
# Holds: "Level with it are xPos in its blocks, equal by the margin of 0.02 that was planned, and RoPE in blocks."
of_blocks = difference(losses["rope", "blocks"], losses["rope", "last"])
assert max(abs(of_blocks.low), abs(of_blocks.high)) < 0.02
# Holds: "So the blocks do it; xPos's damping is weak over 63 positions."
from posembed.encodings import XPos

damped = XPos(16).rotate(torch.ones(1, 1, 64, 16), torch.arange(64)).norm(dim=-1)[0, 0]
assert 0.75 < float(damped.min() / damped.max()) < 1
# Holds: "and that of ALiBi, which reads all, 1.260: as far apart as they are at the trained length"
at_trained = difference(*([run.metrics["loss"] for run in apart.by_arm[each]] for each in ("alibi", "rope")))
assert abs(at_trained.mean - (seen["alibi", "as it is"] - seen["rope", "last"])) < 0.01
# Holds in Past the trained length: "None of these models gains from what stands more than 32 characters back"
# Holds: "No model here gains from what stands more than 32 characters back"
# Holds: "With YaRN, which cuts nothing, the loss rises by 0.2 at most to four times the length"
for arm, near, far_off in (("rope, long", "256", "1024"), ("rope, base 10000", "64", "256")):
    held = [its.metrics["stretched"]["yarn"] for its in load_study("length-doses").by_arm[arm]]
    assert len(held) == 5 and sum(its[far_off] - its[near] for its in held) / 5 < 0.2
# Holds: "NoPos gains 0.89 nats by the end alone."
assert round(short.loc["none, as it is, minus none, last 63", "mean"], 2) == 0.89
# Holds: "In blocks it loses 0.65 more than as it is"
assert round(difference(losses["none", "blocks"], losses["none", "as it is"]).mean, 2) == 0.65
assert difference(losses["none", "blocks"], losses["none", "as it is"]).low > 0.5
# Holds: "in blocks it loses as much as with all the text"
# Holds: "So not what stands far back is in its way, but the query's own position, by which it divides."
for kind in ("fire, 512", "fire, 32"):
    assert max(abs(a - b) for a, b in zip(losses[kind, "blocks"], losses[kind, "as it is"], strict=True)) < 0.001
assert difference(losses["fire, 512", "as it is"], losses["fire, 512", "last"]).low > 0.1
# Holds: "A threshold that starts at 32 makes it rise by 0.046 more than one from 512, in every seed, not"
of_start = [
    [np.mean(run.metrics["far"]["as it is"][4:]) - run.metrics["far"]["as it is"][3] for run in apart.by_arm[kind]]
    for kind in ("fire, 32", "fire, 512")
]
assert all(a > b for a, b in zip(*of_start, strict=True))
assert round(short.loc["fire: rise, from 32 minus from 512", "mean"], 3) == 0.046
assert short.loc["fire: rise, from 32 minus from 512", "holm"] > 0.05
assert apart.by_arm["fire, 32"][0].config.scheme_options == {"fire": {"threshold": 32}}

# Holds in What this does not show: "What rates of whole runs would change in the twelve schemes"
from posembed.stored import load_plan

of_whole = load_study("own-rates").by_arm
for arm in load_plan("nopos").arms:
    if arm.name in ("causal, learned", "causal, sinusoidal", "causal, t5"):
        assert {trial.steps for trial in arm.trials} == {500}
        its = of_whole[f"{arm.name.removeprefix('causal, ')}, start B"]
        assert study.by_arm[arm.name][0].config.learning_rate > its[0].config.learning_rate
# By definition in What this does not show: "Whether a scheme that stays level reads far back"

# %% Exercises
assert loss_at(corpus.test, best)[1] < loss_at(corpus.test, 1.0)[1]

# Holds: "It helps a little just beyond the trained length, and costs"
as_it_is, sharper = loss_at(corpus.test, 1.0), loss_at(corpus.test, 1.2)
pairs = zip(as_it_is, sharper, strict=True)
within, just, far_out = (b - a for a, b in pairs)
assert 0 < within < 0.03 and -0.1 < just < -0.05 and 0.01 < far_out < 0.03

assert far["learned"] == 64 and far["alibi"] is None
assert far["nopos"] < far["rope"] and rise["nopos"].high < rise["rope"].low

# Holds: "RoPE holds longer than NoPos, though over all of 64 to 255"
assert far["nopos"] < far["rope"] and rise["nopos"].high < rise["rope"].low
# Holds: "NoPos and T5's buckets follow a group later, then RoPE, then xPos, FIRE and CoPE."
groups = {}
for name, position in far.items():
    groups.setdefault(position, set()).add(name)
del groups[None]
assert groups == {
    64: {"learned", "sinusoidal", "learnable_sinusoidal"},
    80: {"nopos", "t5"},
    96: {"rope"},
    112: {"xpos", "fire", "cope"},
}
