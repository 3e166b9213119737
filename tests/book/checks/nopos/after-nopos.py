# %% Longer than anything seen
import numpy as np

from posembed.data import frequency_loss

by_scheme = {name: study.by_arm[f"causal, {name}"] for name in SCHEMES}


def loss_past(run):
    return np.mean(run.metrics["loss_by_position"][4:])


def rise_past(runs):
    return interval([loss_past(run) - run.metrics["loss_by_position"][3] for run in runs])


for name in ("learned", "sinusoidal", "rope"):
    assert rise["nopos"].high < rise[name].low
assert rise["alibi"].high < 0.1 < rise["nopos"].low

assert first > 63 and shorter.high < 0.1 < rise["t5"].low

from scipy.stats import t

small = by_scheme["nopos"][0].config
# Holds in After NoPos: "One reason against them: what a model has learned for positions 0"
assert by_scheme["learned"][0].config.length == 64
assert rise["learned"].low > 1.5
# Holds: "The small causal models of this part's study were trained on texts"
assert (small.length, small.test_length) == (64, 256)
# Holds: "Intervals are Student's 95 %"
assert abs(interval([1.0, 2.0]).high - (1.5 + 0.5 * t.ppf(0.975, 1))) < 1e-6

# By definition: "The numbers are the loss at positions 64 to 255 minus that"
# Holds: "Without positions the loss rises slowly, and over all of 64 to 255"
assert all(rise["nopos"].high < rise[name].low for name in ("learned", "sinusoidal", "rope"))
# Holds: "Up to position 111 RoPE is the better one"
gap = [difference(rope[k], nopos[k]) for k in range(16)]
assert all(each.high < 0 for each in gap[:7])
assert not gap[7].excludes_zero and all(each.low > 0 for each in gap[8:])

# Holds: "Their biases were never trained, like the rows of a table"
seen = T5(4, causal=True).bucket(-torch.arange(64))
assert int(seen.max()) == 26
# Holds: "So one question to ask of any scheme is which of its parts"
assert shorter.high < rise["t5"].low
# Holds: "With buckets that end within the text T5 goes as far as ALiBi"
with_32 = study.by_arm["causal, t5 with buckets to 32"]
cost = difference(*([run.metrics["loss"] for run in of] for of in (with_32, by_scheme["t5"])))
assert str(cost) == "0.000 (-0.013 to 0.014, 3 seeds)"
assert shorter.high < rise["alibi"].high
# Holds: "FIRE and CoPE lose two or three tenths, xPos about as much as NoPos"
assert 0.15 < rise["fire"].mean < rise["cope"].mean < 0.35
assert rise["xpos"].low < rise["nopos"].mean < rise["xpos"].high
assert round(rise["learnable_sinusoidal"].mean) == 3
# Holds: "Nothing; the later text is harder."
assert rise["alibi"].high < 0.03 < 0.9 < rise["nopos"].low
# Holds: "How many tokens its attention reads."
assert small.length < 200 and rise["shaw"].high < 0.03 < rise["nopos"].low

# The same of the picture.
# Holds: "ALiBi alone stays level."
assert rise["alibi"].high < 0.03
assert min(rise[name].low for name in SHOWN if name != "alibi") > 0.9
# Holds: "NoPos rises slowly, but by a nat on average, so it depends on"
assert round(rise["nopos"].mean) == 1 and rise["nopos"].low > 0.9
assert (np.diff(nopos.mean()[3:10]) < 0.3).all()
# Holds: "At 136 (128 to 143) five schemes lie below NoPos with their whole"
below = {8: set(), 6: set()}
for k, name in ((k, name) for k in below for name in by_scheme):
    its, other = (by_scheme[each] for each in (name, "nopos"))
    of = [[r.metrics["loss_by_position"][k] for r in a] for a in (its, other)]
    if difference(of[0], of[1][: len(of[0])]).high < 0:
        below[k].add(name)
assert below[8] == {"shaw", "alibi", "kerple", "fire", "cope"}
assert below[6] == below[8] | {"rope", "xpos"}
# By definition: "Move the position, switch on the others, or take another"

from posembed.encodings import Shaw
from posembed.data import load_corpus
from posembed.training import make_model
from posembed.stored import load_model

# Holds: "Three schemes do not notice, or by two hundredths of a nat: ALiBi and KERPLE"
level = {name for name, each in rise.items() if round(each.mean, 2) <= 0.02}
assert level == {"alibi", "kerple", "shaw"}
# Holds: "where all offsets from 16 on share one"
assert Shaw(8).max_distance == 16 and not by_scheme["shaw"][0].config.scheme_options
# Holds: "FIRE and CoPE lose two or three tenths, xPos"
assert [round(rise[name].mean, 1) for name in ("fire", "cope")] == [0.2, 0.3]
# Holds: "T5's buckets lose more than NoPos, by 0.19 nats in the same three seeds (0.09 to 0.30)"
curves_of = ([run.metrics["loss_by_position"] for run in by_scheme[name][:3]] for name in ("t5", "nopos"))
more = difference(*([np.mean(each[4:]) - each[3] for each in of] for of in curves_of))
assert [round(each, 2) for each in (more.mean, more.low, more.high)] == [0.19, 0.09, 0.30]
# Holds in What to remember: "Past the trained length the loss of ours rises by a nat"
assert round(rise["nopos"].mean, 1) == 1.0
# Holds in What to remember: "less than with a table, sinusoids or RoPE, more than with ALiBi, KERPLE or Shaw's
# vectors"
assert all(rise["nopos"].high < rise[name].low for name in ("learned", "sinusoidal", "rope"))
assert all(rise[name].high < rise["nopos"].low for name in level)

mean_at = {name: np.mean([run.metrics["loss_by_position"] for run in its], axis=0) for name, its in by_scheme.items()}
# Holds: "ALiBi stays level at 1.3. No positions and T5 rise steadily to 3."
assert np.abs(mean_at["alibi"][4:] - 1.3).max() < 0.05
for name in ("nopos", "t5"):
    assert round(mean_at[name][-1]) == 3 and (np.diff(mean_at[name][3:]) > 0).all()
# Holds: "RoPE holds to about 100 and then rises to 3.8. Learned jumps to 3.5 at once,"
assert mean_at["rope"][6] < 1.4 < 2 < mean_at["rope"][7] and round(mean_at["rope"][-1], 1) == 3.8
assert round(mean_at["learned"][4], 1) == 3.5
# Holds: "sinusoidal within three groups."
assert mean_at["sinusoidal"][4] < 3 < mean_at["sinusoidal"][5] < 3.4 and round(mean_at["sinusoidal"][6], 1) == 3.5

# Holds: "T5's last five buckets are for offsets that no text of 64 has."
buckets = T5(4, causal=True)
assert buckets.max_distance == 128 and buckets.n_buckets - 1 - int(buckets.bucket(torch.tensor(-63))) == 5
# Holds: "three more seeds, with buckets that end at an offset of 32 instead of 128"
assert len(with_32) == 3 and with_32[0].config.scheme_options == {"t5": {"max_distance": 32}}
# Holds: "The training of a table reaches the rows 0 to 62, as the last character of a text is only guessed."
# Holds: "The character at position 64 is guessed from row 63, and from row 63 on all are as they were drawn."
start, end = (
    model.transformer.position_scheme.weight
    for model in (make_model(by_scheme["learned"][0].config, load_corpus("sotu")), load_model("causal-learned"))
)
moved = (end - start).norm(dim=1)
assert moved[:63].min() > 0.5 and moved[63:].max() < 1e-3

# %% Taking positions away
of_dropped, further = without, {label: study.by_arm[arm] for label, arm in kinds.items()}
assert all(its.mean > frequency_loss() for its in of_dropped.values())

for name, (to_63, past_it) in gaps.items():
    assert to_63.low > 0.2
    assert past_it.high < -0.2 or name.endswith("NoPos")

from studies.training.runs import rate_factor

# Holds: "In the mean over the seeds none of them is better than guessing"
assert all(its.mean > frequency_loss() for its in of_dropped.values())
# Holds: "In both cases the learning rate rises to its full height"
config = further["table dropped"][0].config
assert (config.study["further_steps"], config.warmup, config.steps) == (300, 100, 1500)
for label in ("table dropped", "table kept"):
    config = further[label][0].config
    rate = [rate_factor(k, config) for k in (1499, 1500, 1599, 1799)]
    assert rate[0] < 0.11 and rate[1] < 0.02 and rate[2] == 1 and rate[3] < 0.11
changed = {
    label: difference(
        [run.metrics["loss"] for run in further[label]],
        [run.metrics["loss"] for run in by_scheme[name][:3]],
    )
    for label, name in kept.items()
}

# Holds: "NoPos is where it was, and the models that *kept* their positions"
assert not changed["NoPos"].excludes_zero
assert round(changed["table kept"].mean, 2) == 0.05 and changed["table kept"].low > 0

assert round(changed["RoPE kept"].mean, 2) == 0.03 and changed["RoPE kept"].low > 0
# Holds: "Their training loss climbs as the rate returns to its full height"
for label in ("table kept", "RoPE kept"):
    curve = np.mean([run.metrics["curve"] for run in further[label]], axis=0)
    before, *during = curve[-7:]
    assert max(during) > before + 0.1 and during[-1] > before
# Holds: "Yes: 0.5 and 0.9 nats are a lot."
# Holds: "No: ALiBi is a nat better there, and NoPos from the start as good."
past_64 = {label: past[arm].mean() for label, arm in kinds.items()}
assert round(past_64["table kept"] - past_64["table dropped"], 1) == 0.9
assert round(past_64["RoPE kept"] - past_64["RoPE dropped"], 1) == 0.5
alibi = np.mean([loss_past(run) for run in by_scheme["alibi"]])
assert past_64["NoPos"] - alibi > 0.9

assert all(abs(past_64[f"{s} dropped"] - past_64["NoPos"]) < 0.06 for s in ("table", "RoPE"))

# The same of how much it rises.
# Holds: "In the mean over 64 to 255 it rises by less, by 0.2 and 0.4 nats"
ends = ["table dropped", "RoPE dropped", "NoPos", "RoPE kept", "table kept"]
rises = [round(rise_past(further[label]).mean, 1) for label in ends]
assert rises == [0.2, 0.4, 0.9, 1.5, 1.9]
from_there_to_111 = [
    np.diff(np.mean([r.metrics["loss_by_position"] for r in further[label]], 0)[[3, 6]])
    for label in ("RoPE kept", "RoPE dropped")
]
assert from_there_to_111[0] < from_there_to_111[1]

of_groups = {
    label: np.array([run.metrics["loss_by_position"] for run in of_kind]) for label, of_kind in further.items()
}


def groups(label, other):
    pair = of_groups[label].T, of_groups[other].T
    return [difference(a, b) for a, b in zip(*pair, strict=True)]


# Holds: "Against NoPos both are worse up to 143 and better from 160 on"
for label in ("table dropped", "RoPE dropped"):
    gap = groups(label, "NoPos")
    assert all(each.low > 0 for each in gap[4:9]) and not gap[9].excludes_zero
    assert all(each.high < 0 for each in gap[10:])

# Holds: "against RoPE kept, RoPE dropped is worse by 0.7 to 0.8 nats at"
# Holds: "No: ALiBi is a nat better there, and NoPos from the start as good."
gap = groups("RoPE dropped", "RoPE kept")
assert all(each.low > 0 for each in gap[:7])
assert {round(each.mean, 1) for each in gap[4:7]} <= {0.7, 0.8}
assert not gap[7].excludes_zero and all(each.high < 0 for each in gap[8:])
assert all(0.6 <= -round(each.mean, 1) <= 1.2 for each in gap[8:])
# Holds: "Only against the table kept is the sign the same all the way from"
gap = groups("table dropped", "table kept")
assert all(each.low > 0 for each in gap[:4])
assert all(each.high < 0 for each in gap[4:])

# The same of the picture.
# Holds: "Models whose positions were dropped are worse up to 63 and better"
for label in ("table", "RoPE"):
    gap = groups(f"{label} dropped", f"{label} kept")
    assert all(each.low > 0 for each in gap[:4])
    assert all(each.high < 0 for each in gap[8:])

gained = {
    label: difference(
        [loss_past(run) for run in by_scheme[name][:3]],
        [loss_past(run) for run in further[label]],
    )
    for label, name in kept.items()
}
# Holds: "Past it they did: by 0.19 nats for NoPos (0.08 to 0.30)"
# Holds: "So at positions 64 to 255 a comparison with a model that did not"
assert gained["NoPos"].low > 0 and gained["RoPE kept"].low > 0
rounded = {label: tuple(round(float(x), 2) for x in (g.mean, g.low, g.high)) for label, g in gained.items()}
assert rounded["NoPos"] == (0.19, 0.08, 0.3)
assert rounded["RoPE kept"] == (0.19, 0.11, 0.26)
assert rounded["table kept"][1:] == (-0.18, 0.7)

# Holds: "and their loss was still falling"
for label in ("table dropped", "RoPE dropped"):
    curve = np.mean([run.metrics["curve"] for run in further[label]], axis=0)
    assert curve[-1] < curve[-2] - 0.05 < curve[-3] - 0.1

# Holds: "three hundred further steps, a fifth of the training"
config = further["NoPos"][0].config
assert (config.study["further_steps"], config.study["further_steps"] / config.steps) == (300, 1 / 5)
at_64 = {label: loss[arm].mean() for label, arm in kinds.items()}
# Holds: "The models are 0.6 and 0.4 nats behind NoPos trained as long"
assert [round(at_64[f"{s} dropped"] - at_64["NoPos"], 1) for s in ("table", "RoPE")] == [0.6, 0.4]
# Holds: "In the mean over 64 to 255 it rises by less, by 0.2 and 0.4 nats, where that of NoPos rises by 0.9"
rises = {label: rise_past(its) for label, its in further.items()}
assert all(rises[f"{s} dropped"].high < rises["NoPos"].low for s in ("table", "RoPE"))
# Holds: "Over all of 64 to 255 they are about as good as NoPos"
assert all(abs(past_64[f"{s} dropped"] - past_64["NoPos"]) < 0.05 for s in ("table", "RoPE"))
# Holds: "better than the models that kept their positions, by 0.9 nats for the table and 0.5 for RoPE"
assert [round(past_64[f"{s} kept"] - past_64[f"{s} dropped"], 1) for s in ("table", "RoPE")] == [0.9, 0.5]
# Holds: "At 64 to 255 ALiBi has 1.3 nats; those whose positions were dropped have 2.30 and 2.27"
assert round(np.mean([loss_past(run) for run in by_scheme["alibi"]]), 1) == 1.3
assert [round(past_64[f"{s} dropped"], 2) for s in ("table", "RoPE")] == [2.30, 2.27]
# Holds: "and NoPos, after as many further steps, 2.25."
assert round(past_64["NoPos"], 2) == 2.25

further_at = {
    label: np.mean([run.metrics["loss_by_position"] for run in its], axis=0) for label, its in further.items()
}
# Holds: "lie at 1.2 to 1.6, those whose positions were dropped at 1.8 to 2.1."
for label, its in further_at.items():
    low, high = (1.8, 2.1) if "dropped" in label else (1.2, 1.6)
    assert low - 0.05 < its[:4].min() and its[:4].max() <= high + 0.01
# Holds: "the table kept jumps to 3.2, RoPE kept rises to 3.6 from about 110 on"
assert round(further_at["table kept"][4], 1) == 3.2 and round(further_at["RoPE kept"][-1], 1) == 3.6
assert further_at["RoPE kept"][6] < 1.4 < 2 < further_at["RoPE kept"][7]
# Holds: "rise slowly to between 2.4 and 2.8."
assert all(2.35 < further_at[label][-1] < 2.85 for label in ("NoPos", "table dropped", "RoPE dropped"))

# %% Positions in some layers
assert not at_63.excludes_zero and not past_63.excludes_zero

# Holds: "Leaving positions out of the last layer, the only arrangement"
assert {run.config.layers_with_positions for run in study.by_arm[three]} == {(0, 1, 2)}
assert str(at_63).startswith("0.004 (-0.001 to 0.010") and past_63.low > -0.03
# By definition: "No offset in them is ever larger than the window"
# By definition: "It makes the rotations cheaper."

# Holds: "In our study RoPE acts in three layers of four, and the last has none."
assert study.by_arm[three][0].config.n_layers == 4

# %% What the models of today do
configs = {each: each() for each in (Llama4TextConfig, Cohere2Config, Exaone4Config)}
# Holds: "In SmolLM3 these layers differ from the others in nothing else."
assert set(SmolLM3Config().layer_types) == {"full_attention"}
# Holds: "In the other three, which are those of Llama 4"
llama = configs[Llama4TextConfig]
whole = [k for k, kind in enumerate(llama.layer_types) if "full" in kind]
assert whole == layers_without(llama)
# Holds: "An option named `no_rope_layers`, whose 1 means"
assert configs[Llama4TextConfig].no_rope_layers[:4] == [1, 1, 1, 0]
assert configs[Llama4TextConfig].attn_temperature_tuning
# By definition: "It reads tokens one after the other"
# By definition: "It has its own position table."

# The same of two whose configuration does not say it: which layers turn.
from transformers.models.cohere2 import modeling_cohere2 as cohere
from transformers.models.exaone4 import modeling_exaone4 as exaone


def turning(code, model, called):
    turn, calls = code.apply_rotary_pos_emb, []
    code.apply_rotary_pos_emb = lambda *of: calls.append(1) or turn(*of)
    for layer in model.eval().layers:
        layer.register_forward_hook(lambda *_: called.append(len(calls)))
    model(torch.arange(3, 9)[None])
    code.apply_rotary_pos_emb = turn
    return np.diff([0, *called])


# Holds: "The configurations in the `transformers` library say which layers"
tiny = {"vocab_size": 20, "hidden_size": 16, "intermediate_size": 16}
tiny |= {"num_attention_heads": 2, "num_key_value_heads": 2}
tiny |= {"num_hidden_layers": 8, "pad_token_id": 0}
tiny |= {"bos_token_id": 1, "eos_token_id": 2}

# The same, measured.
# Holds: "All four leave RoPE out of every fourth layer, counted from the"
for code, kind, config in (
    (cohere, cohere.Cohere2Model, Cohere2Config(**tiny)),
    (exaone, exaone.Exaone4Model, Exaone4Config(**tiny)),
):
    n_turned = turning(code, kind(config), [])
    assert n_turned.tolist() == [1, 1, 1, 0] * 2
    assert layers_without(config) == [3, 7]

from unittest.mock import patch

from transformers.masking_utils import create_chunked_causal_mask
from transformers.models.exaone4 import modeling_exaone4

# Holds: "All four leave RoPE out of every fourth layer, counted from the fourth."
for make in (SmolLM3Config, Llama4TextConfig, Cohere2Config, Exaone4Config):
    of_config = layers_without(make())
    assert of_config[:3] == [3, 7, 11] and len(of_config) == make().num_hidden_layers / 4

# Holds: "EXAONE 4 with its window (without one it has RoPE in all layers)"
small = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 32}
small |= {"num_hidden_layers": 4, "vocab_size": 50, "max_position_embeddings": 64}
no_window = {"sliding_window": None, "layer_types": ["full_attention"] * 4}
for window, n_turned in (({}, 3), (no_window, 4)):
    turn = modeling_exaone4.apply_rotary_pos_emb
    with patch.object(modeling_exaone4, "apply_rotary_pos_emb", side_effect=turn) as turned:
        modeling_exaone4.Exaone4Model(Exaone4Config(**small, **window)).eval()(torch.arange(6)[None])
    assert turned.call_count == n_turned

# Holds: "or in Llama 4 what comes before it in its piece of 8192 tokens."
assert Llama4TextConfig().attention_chunk_size == 8192
config = Llama4TextConfig(attention_chunk_size=4, hidden_size=32, num_attention_heads=2, num_key_value_heads=1)
config._attn_implementation = "eager"
given = {"inputs_embeds": torch.zeros(1, 8, 32), "attention_mask": None, "past_key_values": None}
mask = create_chunked_causal_mask(config=config, **given)[0, 0]
visible = mask if mask.dtype == torch.bool else mask == 0
place = torch.arange(8)
assert torch.equal(visible, (place[:, None] >= place) & (place[:, None] // 4 == place // 4))

# %% All 42 comparisons
from collections import Counter

planned = study.contrasts
apart = (planned["low"] > 0) | (planned["high"] < 0)
kept = planned["holm"] < 0.05
# Holds: "Before the runs the study wrote down what it would compare."
# Holds: "(T5's buckets to 32 came later, and are not among them.)"
assert not any("buckets" in name for name in planned.index)
# Holds: "Here is every one of these differences, whichever way it came out"
assert set(planned["n"]) == {3, 5} and len(planned) == 42

# The letters are those of the plan.
planned_of = {"a": 4, "b": 4, "c": 5, "d": 12, "e": 2, "f": 8, "g": 5, "h": 2}
assert sum(planned_of.values()) == len(planned)
for letter in planned_of:
    assert f"\n{letter}. " in study.about
kinds = {"past the trained length: ": "d", "rope in three": "e", "further": "f"}
kinds |= {
    "probe: ": "g",
    "prefix: ": "h",
    "masked": "c",
    "larger": "b",
    "causal": "a",
}
by_letter = Counter(next(letter for words, letter in kinds.items() if words in name) for name in planned.index)
assert by_letter == planned_of

# Holds: "Losses are in nats; errors of probes in positions"
for size, guess in (("causal", 16), ("larger", 32)):
    one = study.by_arm[f"{size}, nopos"][0].metrics["layers"]
    assert one["middle_guess"] == guess
assert abs(planned["mean"].drop(planned.filter(like="probe", axis=0).index)).max() < 4

# The same of the correction.
# Holds: "Of 42 intervals about two would leave out zero by chance if there"
assert len(planned) == 42 and round(0.05 * len(planned)) == 2
by_p = planned["p"].sort_values()
by_hand = (by_p * np.arange(42, 0, -1)).cummax().clip(upper=1)
assert (by_hand - planned["holm"]).abs().max() < 1e-12

from scipy.stats import ttest_1samp

# Holds: "Of 42 intervals about two would leave out zero by chance if there"
for n in (3, 5):
    drawn = np.random.default_rng(0).standard_normal((n, 42, 4000))
    left_out = (ttest_1samp(drawn, 0).pvalue < 0.05).sum(axis=0)
    assert round(left_out.mean()) == 2

# By definition: "There is no such difference."
# Holds: "The interval, and that among so many comparisons"
assert (apart & (planned["holm"].round(1) == 0.1) & (planned["n"] == 3)).any()
# Holds: "Alone, 33 of the intervals leave out zero; after the correction 25"
assert (apart.sum(), kept.sum()) == (33, 25) and (apart | ~kept).all()
# Holds: "The main findings of this part are among them"
first = [f"causal: {name} minus nopos" for name in ("learned", "sinusoidal", "alibi", "rope")]
first += ["larger: alibi minus nopos", "masked: learned minus nopos"]
first += [f"{s}, probe: nopos, trained minus untrained" for s in ("causal", "larger")]
assert kept[first].all()
# Holds: "Among the eight that are not left are four schemes past the trained"
lost = planned[apart & ~kept]
assert len(lost) == 8
assert sum(name.startswith("past the trained length") for name in lost.index) == 4
of_three = lost[lost.index.str.startswith("past the trained length")]

assert (of_three["n"] == 3).all()
for name in (
    "rope, further: without minus with, past the trained length",
    "causal, probe: nopos minus learned",
):
    assert name in lost.index

# Holds: "The masked models' probe is off by 5 more only because it names the most probable position; by the median
# it"
layers = [run.metrics["layers"] for run in study.by_arm["masked, nopos"]]
assert round(np.mean([min(each["mae"][1:]) for each in layers]) - 16) == 5
assert round(np.mean([min(each["median_mae"][1:]) for each in layers]), 1) == 16.0

# %% What is open, and a study of your own
# Holds: "three seeds tell NoPos from ALiBi, and not from a table"
of_larger = loss[["larger, nopos", "larger, alibi", "larger, learned"]].dropna()
apart = {other: difference(of_larger["larger, nopos"], of_larger[f"larger, {other}"]) for other in ("alibi", "learned")}
assert apart["alibi"].low > 0.05 and not apart["learned"].excludes_zero
# Holds: "For one that asks no more than losses, such as that of [chapter 3](chapter-sinusoidal)"
for arm in load_plan("encodings").arms:
    assert not any(config.study for config in (*arm.runs, *arm.trials))

# %% Exercises
assert loss_at(corpus.test, best)[1] < loss_at(corpus.test, 1.0)[1]

# Holds: "It helps a little just beyond the trained length, and costs"
as_it_is, sharper = loss_at(corpus.test, 1.0), loss_at(corpus.test, 1.2)
pairs = zip(as_it_is, sharper, strict=True)
within, just, far_out = (b - a for a, b in pairs)
assert 0 < within < 0.03 and -0.1 < just < -0.05 and 0.01 < far_out < 0.03

assert far["learned"] == 64 and far["alibi"] is None
assert far["nopos"] < far["rope"] and rise["nopos"].high < rise["rope"].low

# Holds: "Between 6 and 15 by this rule; with Student's factor in place"
needed = with_student.values()
assert (min(needed), max(needed)) == (9, 17)
# The exercise takes the table's number by either rule.
assert 10 <= with_student["learned"] <= 16
# Holds: "With the three seeds of most schemes here, a difference of a few"
few = [name for name, of in by_scheme.items() if len(of) == 3]
assert len(few) > len(by_scheme) / 2
half = []
for name in few:
    its = interval((loss[f"causal, {name}"] - loss["causal, rope"]).dropna())
    half.append((its.high - its.low) / 2)
assert 0 < sum(each < 0.005 for each in half) < len(few) / 2
assert str(at_63) == "0.004 (-0.001 to 0.010, 3 seeds)"

# Holds: "RoPE holds longer than NoPos, though over all of 64 to 255"
assert far["nopos"] < far["rope"] and rise["nopos"].high < rise["rope"].low
# Holds in What is open, and a study of your own: "All ten, which of them were planned, and new seeds for the one."
# Holds in What is open, and a study of your own: "Of studies with ten independent comparisons and nothing behind"
ahead, either = (1 - share**10 for share in (0.975, 0.95))
assert abs(ahead - 1 / 5) < 0.03 and round(either, 1) == 0.4
# Holds in What to remember: "Ask of a scheme which of its parts the training never reaches"
assert shorter.high < 0.1 < rise["t5"].low
# Holds in What to remember: "Our models rely on the positions that they were given."
assert all(its.mean > frequency_loss() for its in of_dropped.values())
# Holds in What to remember: "Four configurations of today's large models leave RoPE out"
for make in (SmolLM3Config, Llama4TextConfig, Cohere2Config, Exaone4Config):
    assert layers_without(make())[:2] == [3, 7]
# Holds in What to remember: "An idea that comes after the results is tested with new runs."
assert shorter.n == 3
# Holds in What to remember: "All that was planned is reported, in one table"
assert len(planned) == 42

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
# Holds: "Between 6 and 15 by this rule; with Student's factor in place of the 2, between 9 and 17."
spread = [(loss["causal, nopos"] - loss[f"causal, {name}"]).std() for name in with_student]
by_rule = [round((2 * s / 0.005) ** 2) for s in spread]
assert (min(by_rule), max(by_rule)) == (6, 15)
