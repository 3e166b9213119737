# %% How does it know?
# Holds: "**It has them, and they come from the mask: what a token averages over depends on its place.**"
import numpy as np

by_state = {
    when: np.array([run.metrics[when]["median_mae"] for run in of_nopos]).mean(axis=0)
    for when in ("layers", "untrained")
}
import torch
import torch.nn.functional as F

from posembed.data import Characters
from posembed.widgets.eight_bit import rounded
from posembed.probing.attention_maps import attention_maps


def loss_of_text(name, ids):
    """What the page's model loses on a text: of the masked one each character hidden in turn."""
    its, causal = rounded(models[name]), name.startswith("causal")
    given = ids[None] if causal else ids.repeat(len(ids), 1).fill_diagonal_(Characters.mask_id)
    with torch.no_grad():
        logits = its(given)
    return F.cross_entropy(*(logits[0, :-1], ids[1:]) if causal else (logits.diagonal().T, ids)).item()


# Holds: "Shuffle the letters: the loss of the causal model rises, that of the masked one stays."
its_text = corpus.vocabulary.encode(live.text)
mixed = its_text[torch.randperm(len(its_text), generator=torch.Generator().manual_seed(1))]
assert [live.left, live.right] == ["causal-nopos", "masked-nopos"]
assert loss_of_text("causal-nopos", mixed) > loss_of_text("causal-nopos", its_text) + 1
assert abs(loss_of_text("masked-nopos", mixed) - loss_of_text("masked-nopos", its_text)) < 1e-4
# By definition: "Then lift the mask of the causal one."
# Holds: "In this head it looks most at the nearest characters, though"
shares = attention_maps(rounded(models[live.left]), its_text[None], live.layer - 1)[0, live.head - 1]
# Itself and the two before it, of up to fifty.
assert sum(shares.diagonal(-k)[10:].mean() for k in range(3)) > 0.8

# Holds: "Error of the probe by state, five seeds."
# Holds: "After two layers a probe is off by 3 of 64 characters"
# Holds: "One layer tells positions before any training; two trained ones tell them best."
assert len(of_nopos) == 5 and of_nopos[0].metrics["layers"]["middle_guess"] == 16
assert abs(by_state["untrained"][0] - 16) < 0.1 and np.allclose(by_state["untrained"][1:], 7.5, rtol=0, atol=0.15)
assert [round(float(each)) for each in by_state["layers"]] == [16, 8, 3, 3, 6]
# By definition in What this does not show: "What larger models hold: the paper's largest has one run."

# %% Reading the position out of a layer
assert min(found.errors[1:]) < 0.3 * found.middle_guess
assert found.errors[0] > found.middle_guess

import torch

from posembed.probing import middle_guess_error, random_guess_error

T = 64
before, after = found.layers[0], found.layers[2]
# Holds: "The package ships one of the small causal models"
assert model.transformer.config.scheme == "nopos"
# Holds: "fit a small network, a {term}`probe`, to say which"
assert after.by_position and len(after.by_position) == texts.shape[1] == T
assert after.interval.level == 0.95
# Holds: "Layer 0 is what enters the first layer: the vector of the character"
with torch.no_grad():
    layer_0 = model.transformer.words(texts[:2])
    moved = model.transformer.words(texts[:2].flip(1)).flip(1)
assert torch.equal(layer_0, moved)
# Holds: "So an error of 18 would be "
assert random_guess_error(T) > 18 > middle_guess_error(T)
# Holds: "A little: it is better than random."
# Holds: "This does not show that it does."
assert random_guess_error(T) > 17 > middle_guess_error(T) == 16

# Holds: "There the probe knows nothing, says the middle, and is off by 16."
# Holds: "A probe that knows nothing can score above 16 there"
assert before.mae > 18 and abs(before.median_mae - 16) < 0.3
# Holds: "Two layers later the positions are read to within a few characters."
assert after.mae < 5
# Holds in How does it know?: "As long as what they see is not all alike, this can make"
with torch.no_grad():
    alike, other = model(torch.stack([torch.full((64,), 9), texts[0]]))
    assert (alike - alike[0]).abs().max() < 1e-3 < (other - other[0]).abs().max()
# By definition: "The probe gives each position a probability."
# By definition: "We take the position that halves it, its *median*, and give its mean distance to the true one"
# By definition: "The first number of each line is that of the paper, which takes the most probable position."
# Holds: "The paper's plot compares with a guess at random, which is off by a third of the length, 21.33 here."
assert round(random_guess_error(T), 2) == 21.33 and abs(random_guess_error(T) - T / 3) < 0.01

# %% Before any training
assert laws["GPT-2's start"].low < -0.95 and laws["GPT-2's start"].high > -1.05
assert laws["our start"].high < -0.5
assert abs(laws["both ways"].slope) < 0.05

assert max(each.median_mae for each in again.values()) < found.middle_guess

from posembed.probing.attention_maps import attention_maps

even = torch.ones(64, 64).tril()
even /= even.sum(dim=1, keepdim=True)
with torch.no_grad():
    uneven = {
        name: float((attention_maps(each, words[:64], 0) - even).abs().sum(-1).mean() / 2)
        for name, each in untrained.items()
        if name != "both ways"
    }
# Holds: "With weights and words of 0.02, as GPT-2 starts (start C of"
small = untrained["GPT-2's start"].config
assert (small.weight_std, small.scale_embeddings) == (0.02, False)
assert uneven["GPT-2's start"] < 0.02 and uneven["our start"] > 0.2
# Holds: "Attention takes a mean of the values it sees, and a mean of many"
# Holds: "Variance of the attention output against the tokens seen"
fall = {name: law.variance / law.variance[0] for name, law in laws.items()}
assert abs(np.log(fall["GPT-2's start"] * t)).max() < 0.2

assert (fall["our start"][8:] > 1.5 / t[8:]).all() and fall["our start"][-1] < 0.2
# Holds: "Its means are over the same number of tokens at every position."
# Holds: "It has no variance."
assert abs(fall["both ways"] - 1).max() < 0.05 and laws["both ways"].variance[0] > 0

# Holds: "But a state has 64 channels, each with a draw of its own"
assert out.shape[-1] == 64
# By definition: "Here is the size of what attention gives in the model"
# Holds: "At first the size halves each time the number of tokens doubles"
of_all_texts = size.mean(0)
halves = [float(of_all_texts[2 * k - 1] / of_all_texts[k - 1]) for k in (1, 2, 4, 32)]

assert all(0.42 < each < 0.65 for each in halves[:3]) and halves[3] > 0.75
# Holds: "from the size alone the probe is off by about 11, from the direction alone by about 9"
assert abs(again["size alone"].median_mae - 11) < 2
assert abs(again["scaled to one size"].median_mae - 9) < 1
# Holds: "all outputs share the mean of all words, which does not shrink, while what is special to a text does"
turned = (F.normalize(out, dim=-1) @ F.normalize(mean, dim=0)).mean(0)
assert turned[63] > turned[15] > turned[3] > turned[0] and turned[63] > 0.85
# Holds: "Take both away and little is left: it is off by about 15, the constant guess by 16."
assert 14 < again["less the mean, scaled"].median_mae < 15.9
assert again["less the mean, scaled"].mae > 17

# The same of the picture.
# Holds: "Where attention is causal it falls, from GPT-2's start as $1/t$, and"
assert abs(np.log(fall["GPT-2's start"] * t)).max() < 0.2
assert (fall["our start"][1:] < 0.9).all() and fall["our start"][-1] < 0.2
assert abs(fall["both ways"] - 1).max() < 0.05

# Holds: "The untrained causal model already leaks its positions: an error of about 8, where the constant guess has
# 16."
assert abs(by_state["untrained"][1] - 8) < 0.7
at_first, at_last = (
    np.mean([run.metrics[when]["mae"] for run in of_nopos], axis=0) for when in ("untrained", "layers")
)
assert np.allclose(at_first[1:], 9, atol=0.5)

# %% Layer by layer, and the paper's curve
assert interval(fresh).high < found.middle_guess
assert interval(trained).high < interval(fresh).low
# Holds: "that one gives away about as much before as after; in the second the error falls to a third of it"
assert abs(at_last[1] - at_first[1]) < 0.5 and abs(at_last[2] / at_last[1] - 1 / 3) < 0.05


def of_best(name, by="mae"):
    return interval(lowest(f"causal, {name}", by))


nopos = errors["nopos"].mean(axis=0)
assert nopos[2] < nopos[1] < nopos[0] and nopos[4] > nopos[3]
assert of_best("nopos").high < of_best("learned").low
assert 13 < of_best("alibi", "median_mae").low < 14
assert 14 < of_best("rope", "median_mae").high < 15

import torch

from posembed.encodings import RoPE

mean = {name: of.mean(axis=0) / 16 for name, of in errors.items()}
assert all(len(mean[name]) == 5 and len(published[name]) == 25 for name in shown)
# Holds: "Error of the probe by depth, ours in four layers beside the paper's in 24."
assert [round(mean["nopos"][k], 1) for k in (0, 2, 3)] == [1.3, 0.2, 0.2]
assert abs(mean["nopos"][4] - 0.45) < 0.05 and mean["learned"][0] < 0.01
assert abs(mean["learned"][4] - 0.7) < 0.05
assert abs(mean["alibi"][1:] - 1.1).max() < 0.05
assert round(mean["alibi"][0], 1) == 1.3

settings = {
    "small, length 64": "causal, {}",
    "larger, length 32": "larger, {}, length 32",
    "larger, length 128": "larger, {}",
    "larger, length 256": "larger, {}, length 256",
}
lowest_of = {
    setting: difference(*(lowest(arm.format(name)) for name in ("nopos", "learned")))
    for setting, arm in settings.items()
}
by_layer = {
    setting: [
        np.array([run.metrics["layers"]["mae"] for run in study.by_arm[arm.format(name)]])
        for name in ("nopos", "learned")
    ]
    for setting, arm in settings.items()
}

# Holds: "At the input the table is read without error."
assert by_layer["small, length 64"][1][:, 0].max() < 0.05
# Holds: "Of the layers behind it the best is off by 6.5 in these runs, and NoPos's best by 3.2, less in"
# Holds: "In ours it is open."
assert [round(of[:, 1:].min(axis=1).mean(), 1) for of in by_layer["small, length 64"]] == [3.2, 6.5]
nopos, learned = (of.mean(axis=0) for of in by_layer["small, length 64"])
assert (nopos[2:] < learned[2:]).all()
lowest_of_each = [of[:, 1:].min(axis=1) for of in by_layer["small, length 64"]]
assert (lowest_of_each[0] < lowest_of_each[1]).all()
# Holds: "and this table was trained at a rate, 0.03, that whole runs reject."
assert study.by_arm["causal, learned"][0].config.learning_rate == 0.03
assert load_study("own-rates").by_arm["learned, start B"][0].config.learning_rate == 0.01
# Holds: "In the larger models at length 32, from the {ref}`starts <section-starts>` A and D and at twice the width"
# Holds: "In three more the sign is open."
# Holds: "One more setting was planned, larger models at length 128, and is open too."
# Holds in What this does not show: "of nine settings the table does in every seed of four, and NoPos in every seed of"
best_of = {
    arm: [min(run.metrics["layers"]["mae"][1:]) for run in runs]
    for arm, runs in load_study("starts").by_arm.items()
    if "layers" in runs[0].metrics
}
pairs = {
    arm.removesuffix(", nopos"): difference(its, best_of[arm.replace("nopos", "learned")])
    for arm, its in best_of.items()
    if arm.endswith("nopos")
}
ahead = {"small, scaled": "A", "large, scaled": "D", "wider": "wider"}
assert {arm for arm, its in pairs.items() if its.low > 0} == {*ahead}
assert {arm for arm, its in pairs.items() if not its.excludes_zero} == {"small", "longer"}
# Nine with those of the first study; its base, which is "large" here, and the larger models at 128 were planned.
assert len({*pairs} - {"large"}) + len(settings) == 9
for arm in ahead:
    assert min(x - y for x, y in zip(best_of[f"{arm}, nopos"], best_of[f"{arm}, learned"], strict=True)) > 0
nopos, learned = by_layer["larger, length 32"]
assert (learned < nopos).all() and lowest_of["larger, length 32"].low > 0
assert not lowest_of["larger, length 128"].excludes_zero
assert not lowest_of["larger, length 256"].excludes_zero
planned = study.contrasts
assert len(planned) == 42
assert round(planned["holm"]["causal, probe: nopos minus learned"], 2) == 0.06

probes = [name for name in planned.index if "probe: nopos minus learned" in name]
assert probes == [f"{size}, probe: nopos minus learned" for size in ("causal", "larger")]

# Holds: "RoPE has the lowest loss of the five all the same: its states need not"
loss = {n: [r.metrics["loss"] for r in of] for n, of in by_scheme.items()}
assert max(loss["rope"]) < min(min(loss[n]) for n in SCHEMES[:-1])
assert 14 < of_best("rope", "median_mae").low < 15 < 16 < of_best("rope").low
q, k = torch.randn(2, 1, 16, dtype=torch.float64)
turn, at = RoPE(16).rotate, torch.tensor
near, far = ((turn(q, at([i])) * turn(k, at([i - 5]))).sum() for i in (7, 40))
assert abs(near - far) < 1e-6

for name, few in (("alibi", 6), ("rope", 3)):
    of_runs = [run.metrics["layers"] for run in by_scheme[name]]
    median = np.mean([of["median_mae"] for of in of_runs], axis=0)
    each = np.mean([of["by_position"] for of in of_runs], axis=0)
    # Holds: "With ALiBi and RoPE our layers give little away: by the median"
    best = 13.5 if name == "alibi" else 14.5
    assert abs(of_best(name, "median_mae").mean - best) < 0.05
    assert (median[1:] < 15).all() and each[1:, :2].max() < 2
    # The first few read as they are, and the middle for all others.
    of_guess = abs(np.arange(64) - 32)[few:].sum()
    assert abs((each[3, :few].sum() + of_guess) / 64 - median[3]) < 0.2
    # Holds in Reading the position out of a layer: "This does not show that it does. Right. The constant guess"
    assert of_best(name).low > 16 > 15 > of_best(name, "median_mae").high

# The same of the picture.
# Holds: "Without positions it is lowest in the middle and rises again at the"
mean_error = {name: of.mean(axis=0) for name, of in errors.items()}
assert mean_error["nopos"].argmin() in (2, 3)
assert mean_error["nopos"][4] > 2 * mean_error["nopos"][3]
assert mean_error["learned"][0] < 0.1
assert (np.diff(mean_error["learned"]) > 0).all()

watched = {
    (name, when): np.array([run.metrics[when]["median_mae"] for run in study.by_arm[f"causal, {name}, watched"]])
    for name in ("nopos", "alibi")
    for when in ("untrained", "layers")
}
# Holds: "and move the steps from 0 on, or let them run"
assert abs(watched["nopos", "untrained"][:, 1] - 7.5).max() < 0.1
assert abs(watched["nopos", "layers"].min(axis=1).mean() - 3) < 0.3

# The same of the figure, by the most probable position.
drawn = np.array([r.metrics["untrained"]["mae"] for r in study.by_arm["causal, nopos, watched"]])
assert abs(drawn[:, 0] - 20).max() < 3 and abs(drawn[:, 1] - 9).max() < 0.3
# Holds: "it starts with a causal model's leak, and trains most of it away"
assert abs(watched["alibi", "untrained"][:, 1:] - 8.5).max() < 0.5
assert abs(watched["alibi", "layers"][:, 1:] - 13.9).max() < 0.4

# The same of the figure, which shows the error of the likeliest position.
# Holds: "Choose step by step and step 0: without positions one untrained layer"
never, after = (
    np.array([r.metrics[when]["mae"] for r in study.by_arm[part]])
    for part, when in (
        ("causal, nopos, watched", "untrained"),
        ("causal, alibi, watched", "layers"),
    )
)
assert (never[:, 1] < never[:, 0] / 2).all()
# Holds: "At the last step ALiBi's layers have lost most of what they gave away"
part = study.by_arm["causal, alibi, watched"]
first = np.array([r.metrics["untrained"]["mae"] for r in part])
assert first[:, 1:].max() < 11 < 16 < after[:, 1:].min()
kept = 16 - watched["alibi", "layers"][:, 1:]
assert kept.max() < 0.4 * (16 - watched["alibi", "untrained"][:, 1:]).min()

from posembed.stored import PUBLISHED_PROBE
from posembed.stored.published import PUBLISHED_LENGTH

least = {name: round(of_best(name).mean, 1) for name in ("nopos", "learned")}
assert least == {"nopos": 3.2, "learned": 6.5}
# Holds in What to remember: "to within about 3 of 64 characters, where always guessing the middle is off by 16"
mean_error = {name: by_seed.mean(axis=0) for name, by_seed in errors.items()}
assert mean_error["nopos"][1] > mean_error["learned"][1] and round(mean_error["nopos"].min()) == 3
assert found.middle_guess == 16
none, table, alibi = (np.array(PUBLISHED_PROBE[name]) for name in ("nopos", "learned", "alibi"))
# Holds: "**For ALiBi the paper finds the opposite**: in the picture its error falls to a fifth of a constant guess's."
assert round(alibi.min() / (PUBLISHED_LENGTH / 4), 1) == 0.2 and mean["alibi"].min() > 1
assert alibi.min() < PUBLISHED_LENGTH / 4 / 4 and alibi[12] > 2 * max(none[12], table[12])
# Holds: "it falls from 337 of 1024 positions to 16.5 in layer 6 of 24, and goes back to 133"
assert (round(none[0]), none.min(), none[6], round(none[-1])) == (337, 16.5, 16.5, 133)

assert none[: 24 // 4].min() > none[24 // 4] == none.min()
# Holds: "In the paper it does not: the table has the lower error in every layer"
assert (table < none).all() and (table / none)[12:].min() > 0.8
# By definition: "To stand beside them, errors here are those of the most probable position."
# Holds: "The paper's models have 24 layers and texts of 1024 tokens"
assert len(none) == 24 + 1 and PUBLISHED_LENGTH == 1024

by_place = {
    name: np.array([run.metrics["layers"]["by_position"] for run in by_scheme[name]])[:, 1:]
    for name in ("nopos", "learned")
}
assert by_place["learned"][..., 63].mean() < by_place["learned"][..., 62].mean() / 3
all_rows, reached = (
    difference(*(by_place[name][..., :n].mean(axis=-1).min(axis=-1).tolist() for name in by_place)) for n in (64, 63)
)
assert reached.high < 0 and abs(reached.mean - all_rows.mean) < 0.1

watched = {name: study.by_arm[f"causal, {name}, watched"] for name in ("nopos", "alibi")}
by_median = {
    name: np.mean([run.metrics["untrained"]["median_mae"] for run in its], axis=0) for name, its in watched.items()
}
assert round(by_median["nopos"][1], 1) == 7.5
for when, about in (("untrained", 10), ("layers", 18)):
    drawn = np.array([run.metrics[when]["mae"] for run in watched["alibi"]])
    assert np.allclose(drawn[:, 1:], about, rtol=0, atol=1)
after = np.mean([run.metrics["layers"]["median_mae"] for run in watched["alibi"]], axis=0)
assert np.allclose(by_median["alibi"][1:], 8.5, rtol=0, atol=0.5) and np.allclose(after[1:], 14, rtol=0, atol=0.4)

# %% One text, token by token
assert interval(off[:, :16].mean(axis=1)).high < off[:, 32:].mean() / 2

from fractions import Fraction

# Holds: "with the second token it falls by a half, with the 64th by one part"
share = {t: Fraction(1, t) for t in range(1, 65)}
assert 1 - share[2] / share[1] == share[2] and 1 - share[64] / share[63] == share[64]

# Holds: "Predicted against true position for one text of 64 characters."
wrong = [abs(np.array(predicted[k]) - np.arange(64)) for k in (3, 0)]
assert wrong[0][:5].max() == 0 and wrong[0].mean() < 5
# Holds: "In this text the first eight are right to the character."
assert wrong[0][:8].max() == 0 < wrong[0][8]
assert abs(np.diff(predicted[0])).mean() > 5 > abs(np.diff(predicted[3])).mean()

# Holds: "Over all test texts the second is off by 0.1 and the eighth by 1.1"
along = off.mean(axis=0)
assert (round(along[1], 1), round(along[7], 1)) == (0.1, 1.1)
# By tens of positions they get vaguer up to 49.
assert (np.diff(along[:50].reshape(5, 10).mean(axis=1)) > 0).all()
assert 45 <= along.argmax() <= 55
assert interval(off[:, -4:].mean(axis=1) - off[:, 48:56].mean(axis=1)).high < 0
# Holds: "Before the first layer the predictions jump about; after the third"
assert wrong[0][:8].max() == 0 and wrong[0].mean() < 5
assert abs(np.diff(predicted[0])).mean() > 5

# Holds: "from the third layer of the first seed"
# Holds: "In this text the first eight are right to the character."
assert predicted[3][:8] == list(range(8)) and predicted[3][8] != 8
# Holds: "Over all test texts the second is off by 0.1 and the eighth by 1.1, and the predictions get vaguer"
by_position = off.mean(axis=0)
assert (round(by_position[1], 1), round(by_position[7], 1)) == (0.1, 1.1)
assert (np.diff(by_position.reshape(4, 16).mean(axis=1)) > 0).all()
# Holds: "and the predictions get vaguer up to about position 50; the last few are closer again."
assert (np.diff(by_position[:50].reshape(5, 10).mean(axis=1)) > 0).all() and 45 <= by_position.argmax() <= 55
assert by_position[-4:].max() < by_position.max() - 1


# %% Counting, exactly
# Holds: "Equal weights on $t$ tokens, one of them with a mark of 1, give $1/t$."
assert torch.allclose(share, 1 / torch.arange(1.0, T + 1).double())
# Holds: "Make the network for fewer positions than the text has"
# Holds: "A network built for $T$ positions says $T$ for ever after."
told = CountingTransformer(8)(torch.tensor([[0] + [1] * 11]))[0]
assert told.round().tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8]
steps = CountingTransformer(8).steps(torch.tensor([[0] + [1] * 11]))
assert steps.hidden[0, 7:].abs().max() < 1e-12

# The same of the figure.
ids = torch.tensor([[0] + [1] * 10])
model_of_11 = CountingTransformer(11)
steps = model_of_11.steps(ids)
# Holds: "With such a mark in front even a text of one repeated token is counted."
# Holds: "Step on: token $t$ receives $1/t$, and $t$ comes out."
assert torch.allclose(steps.share[0], 1 / torch.arange(1.0, 12).double())
assert torch.allclose(steps.count[0], torch.arange(1.0, 12).double())
model_of_11.attention.causal = False
# Holds: "Take the mask away: all tokens receive the same."
assert (model_of_11.steps(ids).share[0].diff().abs() < 1e-12).all()

# %% A mark at the beginning
from posembed.training import difference, interval

# Holds: "How far off the best layer lets a probe be, in positions; always guessing the middle is off by 16."
# Holds: "Lowest errors of the probe, five seeds each."
lowest_by = {name: interval(errors_of) for name, errors_of in off_by.items()}
told = (8.5, 6.5, 3, 0.75, 19, 10)
for each, number in zip(lowest_by.values(), told, strict=True):
    assert each.n == 5 and abs(each.mean - number) < 0.08 * number + 0.1, each
# Holds: "With the mark a probe is off by less than one position, and after the first layer already."
# Holds: "With a mark before the texts it is off by less than one, and has something to read even where one letter is"
assert max(off_by["trained, mark"]) < 1 and max(its["probe"][1] for its in heads["nopos, mark"]) < 1
assert lowest_by["one letter, mark"].high < 16 - 3
# Holds: "On one letter, repeated, it is off by about 10: these models do not count as the construction does."
assert lowest_by["one letter, mark"].low > 5
# Holds: "The loss of characters with 16 and more before them falls by 0.044 nats; over all characters 0.126"
late_of = {arm: [its["late"] for its in its_heads] for arm, its_heads in heads.items()}
gain = difference(late_of["nopos"], late_of["nopos, mark"]).mean
assert round(gain, 3) == 0.044
assert round(load_study("own-rates").contrasts.loc["learned minus nopos, start B", "mean"], 3) == -0.126
# Holds: "When that token leaves the first layer with the state of a middle token of another text, the loss"
of_marks = load_study("beginning").contrasts
assert round(of_marks.loc["nopos: loss, first token alike minus as it is", "mean"], 2) == 1.27
assert of_marks.loc["nopos: loss, first token alike minus as it is", "low"] > 1
# Holds: "At other places the same costs one of these models next to nothing."
from posembed.data import windows_in_order
from posembed.layers import changed, layers_of
from posembed.stored import load_model

blind, its_texts = load_model("causal-nopos").eval(), windows_in_order(corpus.test, 64, 64).long()


def lost_at(*places):
    """The late loss with the state of another text's middle in these places, behind the first layer."""

    def exchange(states):
        states = states.clone()
        states[:, places] = states[:, 31:32].roll(1, 0)
        return states

    with torch.no_grad(), changed(layers_of(blind), 1, exchange):
        logits = blind(its_texts[:, :-1])[:, 16:]
    return float(torch.nn.functional.cross_entropy(logits.mT, its_texts[:, 17:]))


usual_loss = lost_at()
assert lost_at(0) - usual_loss > 1 and max(abs(lost_at(place) - usual_loss) for place in (1, 3, 8, 12)) < 0.03
# Holds: "A model with a table does not notice."
assert max(its["first alike"] - its["late"] for its in heads["learned"]) < 0.002
# Holds: "With a table one head gives it 0.99 of its attention."
assert abs(of_marks.loc["learned: most attention to the token before", "mean"] - 0.99) < 0.005
# Holds: "Without positions the best head gives it 0.37, in the mean over seeds."
assert round(of_marks.loc["nopos: most attention to the token before", "mean"], 2) == 0.37
# Holds: "Silence the two heads that mattered most on validation texts: swapping the last two characters still costs"
assert min(its["pair"]["swap"] / its["swap"] for each in heads.values() for its in each) > 0.5
lost_without = [its["pair"]["late"] - its["late"] for each in heads.values() for its in each]
assert (round(min(lost_without), 1), round(max(lost_without), 1)) == (0.8, 1.9)

# Holds in How does it know?: "With a mark before every text it is off by less than one."
assert max(off_by["trained, mark"]) < 1

# %% Does the model use the order?
assert interval(lost("causal, nopos")).low > 3

# Holds: "Models with positions lose about as much"
of_shuffling = planned.filter(like="shuffled prefix", axis=0)
assert len(of_shuffling) == 2 and (of_shuffling["low"] < 0).all() and (of_shuffling["high"] > 0).all()
assert all(4 < interval(lost(f"causal, {name}")).mean < 5 for name in SCHEMES)
# Holds: "So nearly all that the model has of the order"
near = interval(lost("causal, nopos", "shuffled but for the last 8"))
assert near.high < interval(lost("causal, nopos")).low / 50
# Holds: "More seeds. All five seeds lose more than 4 nats."
assert min(lost("causal, nopos")) > 4
kept_8 = "shuffled but for the last 8"
for name in ("learned", "sinusoidal", "rope"):
    more = difference(lost("causal, nopos", kept_8), lost(f"causal, {name}", kept_8))
    assert more.low > 0 and abs(more.mean - 0.03) < 0.005

# Holds: "An experiment that changes absolute positions and leaves the order"
# A shuffle parts nearly all neighbours; a cut parts none of those it leaves.
assert (order[1:] == order[:-1] + 1).double().mean() < 0.1
kept = torch.arange(56, 64)
assert (kept[1:] == kept[:-1] + 1).all()
with torch.no_grad():
    whole, cut = model(test)[:, -1], model(test[:, kept])[:, -1]
assert (whole - cut).abs().max() > 1

from posembed.data import frequency_loss

# Holds: "the model without positions loses more than 4 nats"
assert min(lost("causal, nopos")) > 4
assert np.mean([run.metrics["prefix"]["shuffled"] for run in by_scheme["nopos"]]) > frequency_loss() + 1
# Holds: "With the last eight characters in place hardly anything is lost."
assert max(lost("causal, nopos", "shuffled but for the last 8")) < 0.06

# Holds in What this does not show: "That every start leaks: from three of our four starts one untrained layer shows"
of_starts = load_study("starts").by_arm
for arm in ("large, nopos", "small, nopos", "large, scaled, nopos"):
    assert max(run.metrics["untrained"]["median_mae"][1] for run in of_starts[arm]) < 10

# %% What this does not show
# Holds: "from start A of [chapter 11](section-starts) no untrained layer reads better than the constant guess"
from posembed import load_study

from_a = load_study("starts").by_arm["small, scaled, nopos"]
assert min(min(run.metrics["untrained"]["median_mae"]) for run in from_a) > found.middle_guess - 0.1
assert max(min(run.metrics["layers"]["median_mae"]) for run in from_a) < found.middle_guess / 2

# %% Exercises
assert real.high < -1
assert twice < shares.square().sum()

assert max(each.median_mae for each in ours_again.values()) < 12

# Holds: "it takes context away as well"
with torch.no_grad():
    whole, cut = model(test)[:, -1], model(test[:, -8:])[:, -1]
    assert (whole - cut).abs().max() > 1

# Holds in Before any training: "That explains most of it in GPT-2's start, and hardly any in ours"
# Holds: "The last one: without size and mean the model with GPT-2's start"
assert ours_again["less the mean, scaled"].mae < ours_again["as it is"].mae + 3
explained = ours_again["less the mean, scaled"].mae - ours_again["as it is"].mae
assert explained < 0.2 * (16 - ours_again["as it is"].mae)
# Holds: "Neighbouring characters are less often the same than by chance"
space, vowels = (torch.isin(text, corpus.vocabulary.encode(t)) for t in (" ", "aeiou"))
assert not (space[1:] & space[:-1]).any()
pairs = (vowels[1:] & vowels[:-1]).double().mean()
assert pairs < vowels.double().mean() ** 2 / 2
# Holds: "At distances of one and two their values are *negatively* correlated"
first = untrained["GPT-2's start"].layers[0]
with torch.no_grad():
    values = first.attention.value(first.attention_norm(untrained["GPT-2's start"].words(texts)))
values = values - values.mean(dim=(0, 1))

# Holds: "With the last 31, 15 or 7 characters alone neither model is worse off by more than a hundredth of a nat"
assert all(mean + within < 0.01 for mean, within in changes_of_last.values())
# Holds: "NoPos by about 0.05 nats and the table by about 0.02"
gains = {key: -mean for key, (mean, within) in changes_of_last.items() if mean < -within}
assert set(gains) == {(name, n) for name in ("causal-nopos", "causal-learned") for n in (31, 15)}
assert all(abs(gain - (0.05 if name == "causal-nopos" else 0.02)) < 0.006 for (name, _), gain in gains.items())

# %% What to remember
for k in (1, 2):
    together = (values[:, k:] * values[:, :-k]).sum(-1).mean()
    assert together < -0.02 * values.square().sum(-1).mean()

# Holds: "Models trained with a mark are read to within one position, and their loss is lower; whether they count"
assert max(off_by["trained, mark"]) < 1 and gain > 0.03
# Holds: "From three of our four starts they leak before any training, by way of the causal mask"
assert interval(fresh).high < found.middle_guess and laws["our start"].high < -0.5
# Holds: "Training sharpens them, from our start from the second layer on."
assert (first_error := errors["nopos"][:, 1].mean()) > 2 * errors["nopos"][:, 2].mean()
assert abs(first_error - np.mean(at_start)) < 1
# Holds: "The curve over the layers is a U, in the paper's largest model"
curve = np.array(published_probe("nopos"))
of_ours = errors["nopos"].mean(axis=0)
assert all(u[0] > u[-1] > 2 * u.min() for u in (curve, of_ours))

# Holds: "Whether NoPos or a table gives its positions away more exactly"
assert lowest_of["small, length 64"].high < 0 < lowest_of["larger, length 32"].low
# Holds: "The order of the nearest tokens is what the guesses depend on."
assert near.high < interval(lost("causal, nopos")).low / 50
