# %% Once enough: images
def of(name, digits=2):
    return study.contrasts.loc[name, ["mean", "low", "high"]].astype(float).round(digits).tolist()


def layers_of_arm(name, kind):
    return of_arm(name, "patches", "layers", "shares", kind).mean(0)


def contents(name):
    return layers_of_arm(name, "contents beyond place")


ROPES = ("RoPE, running number", "RoPE, two axes")
place = {name: of_arm(name, *PLACE).mean(0) for name in CALLED}
right = {name: of_arm(name, "accuracy").mean() for name in CALLED}
# Holds: "With learned rows, drawn as large as ours, position is 0.65 of what differs between the states at the input"
# Holds: "With RoPE it is next to nothing in early states, and the model names no fewer digits."
assert place["learned rows"][:2].round(2).tolist() == [0.65, 0.46]
assert all(abs(place[name][:2] - (0, 0.04)).max() < 0.006 for name in ROPES)
# Holds: "The learned rows were drawn with a standard deviation of 0.7, which pilots chose."
of_rows = study.by_arm["images, learned"][0].config.scheme_options
assert round(of_rows["learned"]["std"], 1) == 0.7 and "pilot" in study.about
assert max(place[name][1] for name in ROPES) < 0.05
assert min(right[name] for name in ROPES) > right["learned rows"]
# Holds: "On images of twice the side RoPE on two axes, with *interpolated* positions, names 0.80"
# Holds in What to remember: "To count on is not to extrapolate: on images of twice the side"
# Holds in A larger image than trained: "the model must have been trained near it"
# Holds in A larger image than trained: "at a side of 7 patches, where 6 were trained, RoPE on two axes still names"
patch = 12 // round(study.by_arm["images, none"][0].config.length ** 0.5)  # in pixels, as sizes are
assert (12 // patch, 14 // patch) == (6, 7)
assert round(of_arm("RoPE, two axes", "patches", "sizes", "14", "as it is").mean(), 2) == 0.77
twice = {
    (name, how): of_arm(name, "patches", "sizes", "24", how).mean()
    for name in CALLED
    for how in ("as it is", "interpolated")
}
assert round(twice["RoPE, two axes", "interpolated"], 2) == 0.8 and round(right["RoPE, two axes"], 2) == 0.95
assert np.isnan(twice["learned rows", "as it is"])
counted_on = [twice[name, "as it is"] for name in CALLED if name not in ("NoPos", "learned rows")]
assert max(counted_on) < 0.17
# Holds: "**How sure:** five seeds each, small models of our own on digits of"
assert all(len(of_arm(name, "accuracy")) == 5 for name in CALLED)
# Holds: "With learned rows place is large at first and falls; with RoPE it"
# Holds: "Share of place from state 0 to 6. Learned rows fall from 0.65"
assert np.round(place["learned rows"][[0, 6]], 2).tolist() == [0.65, 0.09]
assert (np.diff(place["learned rows"]) < 0).all()
assert np.round(place["sinusoids, two axes"][[0, 1, 6]], 2).tolist() == [0.2, 0.32, 0.05]
for name in ROPES:
    assert abs(place[name][0]) < 0.01 and place[name].argmax() in (3, 4) and 0.08 < place[name].max() < 0.12
assert abs(place["NoPos"]).max() < 0.02

# %% Five ways to say where a patch is
config = study.by_arm["images, none"][0].config
# Holds: "The model reads 36 patches of 2 × 2, has six layers, width 64, and"
assert (config.length, config.n_layers, config.d_model) == (36, 6, 64)
# Holds: "A digit of 8 × 8 pixels stands somewhere on a ground of 12 × 12."
from studies.training.digits import images as all_digits

assert all_digits(12)["test"].ids.shape[1:] == (12, 12)
# By definition: "Two of the arms know that an image has two axes."
# By definition: "**Sinusoids, two axes** give half of the columns to the row"
# By definition: "**RoPE, two axes** turns half of each head by the row and half"
# Holds: "Without positions two thirds of the digits are named"
assert round(right["NoPos"], 2) == 0.67
# Holds: "Every scheme adds 0.27 to 0.30."
# Holds: "Each scheme adds more than a quarter to what a bag of patches knows"
gains = [of(f"images: {CALLED[name]} minus none")[0] for name in CALLED if name != "NoPos"]
assert (min(gains), max(gains)) == (0.27, 0.3)
assert max(right.values()) - min(right[name] for name in CALLED if name != "NoPos") < 0.03
# Holds: "Share of right answers. NoPos near 0.67; learned rows near 0.94"
assert [round(right[name], 2) for name in CALLED] == [0.67, 0.94, 0.95, 0.97, 0.95]
# Holds: "To know the two axes did not help RoPE at this size"
assert of("images: rope, 2-D minus rope, 1-D", 3)[1:] == [-0.036, 0.001]
assert of("images: rope, 2-D minus rope, 1-D")[0] < 0
assert study.contrasts.loc["images: rope, 2-D minus rope, 1-D", "holm"] > 0.05
# By definition: "Right. Corners, strokes and ends occur in some digits more than"
# By definition: "These models have none: each patch sees all others."
assert config.causal is False if hasattr(config, "causal") else config.objective != "causal"

# %% First place, then meaning?
# Holds: "With learned rows place has 0.46 after the first layer, and what a"
assert [round(each[1], 2) for each in (place["learned rows"], contents("learned rows"))] == [0.46, 0.36]
# Holds: "With sinusoids, which are added as well, contents are ahead in the mean"
assert contents("sinusoids, two axes")[1] > place["sinusoids, two axes"][1]
# Holds: "With RoPE place has 0.04 there, and contents 0.65."
for name in ROPES:
    assert round(place[name][1], 2) == 0.04 and abs(contents(name)[1] - 0.65) < 0.015
# Holds: "Learned rows differ most from each other, and what differs most has"
assert max(place, key=lambda name: place[name][0]) == "learned rows"
# Holds: "The second part holds in all five arms."
# Holds: "It rises from layer to layer in every arm."
# Holds in What to remember: "The share of the digit rises from layer to layer in every arm"
of_class = {name: of_arm(name, *CLASS).mean(0) for name in CALLED}
assert all((np.diff(each) > 0).all() for each in of_class.values())
# Holds: "Share of the digit from state 0 to 6. All five curves rise from 0"
ends = [round(of_class[name][6], 2) for name in CALLED]
assert (ends[0], ends[1], ends[2]) == (0.27, 0.51, 0.6) and all(abs(each - 0.55) < 0.02 for each in ends[3:])
# Holds in What to remember: "That position dominates early layers is a statement on how positions"
lost = {
    (name, key): of_arm(name, "patches", "ablations", "shuffle", key).mean(0)
    for name in TRAINED
    for key in ("cost", "control")
}
# Holds: "shuffled after the first, they cost 0.53 of all answers, the control 0.11, and NoPos, which"
# Holds: "So some 0.3 can be place, what they lose beyond NoPos; beyond RoPE, which follows, it is half of that."
assert round(lost["learned rows", "cost"][1] - lost["RoPE, two axes", "cost"][1], 2) == 0.16
assert [round(lost["learned rows", key][1], 2) for key in ("cost", "control")] == [0.53, 0.11]
assert round(lost["learned rows", "cost"][1] - lost["NoPos", "cost"][1], 1) == 0.3
# Holds: "At the input they have none, and the shuffle costs 0.36 of the answers all the same"
# Holds: "So the 0.37 after the first layer need not be place."
from posembed.stats import difference

at_input, after_first = of_arm("RoPE, two axes", "patches", "ablations", "shuffle", "cost")[:, :2].T
assert round(at_input.mean(), 2) == 0.36 and not difference(after_first, at_input).excludes_zero
assert abs(of_arm("RoPE, two axes", *PLACE)[:, 0]).max() < 0.01
# Holds: "After the first layer RoPE loses more than NoPos, which has no places to lose, and at the input less"
assert lost["RoPE, two axes", "cost"][1] > lost["NoPos", "cost"][1]
assert lost["RoPE, two axes", "cost"][0] < lost["NoPos", "cost"][0]
assert [round(lost["RoPE, two axes", key][1], 2) for key in ("cost", "control")] == [0.37, 0.01]
# Holds: "after the first layer NoPos, which has no places, loses 0.21 by it"
# Holds: "Only what goes beyond that can be place."
# Holds in What to remember: "A shuffle needs an arm that has no positions beside it"
assert round(lost["NoPos", "cost"][1], 2) == 0.21
# Holds: "Share of answers lost from state 0 to 6. RoPE on two axes"
assert np.round(lost["RoPE, two axes", "cost"][:4], 2).tolist() == [0.36, 0.37, 0.22, 0.17]
assert np.round(lost["learned rows", "cost"][:4], 2).tolist() == [0.8, 0.53, 0.26, 0.1]
assert np.round(lost["learned rows", "control"][:3], 2).tolist() == [0.51, 0.11, 0.05]
assert np.round(lost["NoPos", "cost"][:3], 2).tolist() == [0.45, 0.21, 0.11]
assert np.round(lost["NoPos", "control"][:3], 2).tolist() == [0.21, 0.08, 0.02]
# Holds: "RoPE's early layers show hardly more of places than contents give"
assert round(right["RoPE, two axes"] - right["NoPos"], 2) == 0.28
# By definition: "Right, or they have become small, or lie in directions"

# %% A larger image than trained
from studies.training.digits import enlarged

# By definition: "Stretch the image to twice the side, and the digit with it."

# Holds: "There are 144 patches in place of 36, and each shows a quarter of the"
digits = all_digits(12)["test"].ids[:4]
stretched = enlarged(digits, 24)
assert stretched.shape[1:] == (24, 24) and (24 // 2) ** 2 == 144
# By definition: "Learned rows have none for them; ViT's way is to *interpolate*"
# By definition: "To interpolate sinusoids and RoPE is to divide the positions by two"
# Holds: "As they are, all schemes fail: sinusoids name 0.16 of the digits"
assert [round(twice[name, "as it is"], 2) for name in ("sinusoids, two axes", "RoPE, two axes")] == [0.16, 0.08]
assert round(twice["NoPos", "as it is"], 2) == 0.21
# Holds: "Schemes that count on name hardly more than a guess; interpolated"
# Holds: "Interpolated, RoPE on two axes names 0.80 and is significantly ahead"
grown = study.contrasts.loc["images twice as long: rope, 2-D, interpolated minus as it is"]
assert grown["holm"] < 0.05 and round(grown["mean"], 2) == 0.72
interpolated = {name: twice[name, "interpolated"] for name in CALLED}
assert max(interpolated, key=interpolated.get) == "RoPE, two axes"
# Holds: "Share of right answers. NoPos 0.21. Learned rows, interpolated, 0.63."
assert [round(interpolated[name], 2) for name in CALLED] == [0.21, 0.63, 0.65, 0.13, 0.8]
# By definition: "RoPE by the running number was asked only as it is"
# By definition: "On the trained image the patch below has a number larger by 6."
# By definition: "On the larger image the same step is two rows of 12 patches, 24 numbers; halved, it is"
assert twice["RoPE, running number", "as it is"] == twice["RoPE, running number", "interpolated"]

from transformers import Qwen2VLTextConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding

import torch

rotary = Qwen2VLRotaryEmbedding(Qwen2VLTextConfig(hidden_size=128, num_attention_heads=1))
x, at = torch.zeros(1, 9, 128), torch.arange(9)
# Holds: "The tokens of a text have the same number three times, and for them M-RoPE *is* RoPE."
same = rotary(x, at.expand(3, 1, 9))[0][0]
assert torch.allclose(same, (at[:, None] * rotary.inv_freq).cos().repeat(1, 2), atol=1e-6)
# Holds: "Each of them turns a part of the pairs of columns of one RoPE: 16, 24 and 24 pairs of a head of 128 in the"
assert (rotary.inv_freq.diff() < 0).all()  # the parts divide one range of frequencies
for axis, pairs in enumerate((range(16), range(16, 40), range(40, 64))):
    alone = torch.zeros(3, 1, 9, dtype=torch.long)
    alone[axis] = 1000 * at
    turned = (rotary(x, alone)[0][0, :, :64] != 1).any(0).nonzero().flatten()
    assert turned.tolist() == [*pairs]
# By definition: "Right. What lay three columns apart now lies six apart, and what the weights know of six lay twice"
# Holds: "It has an angle for any column. That a position exists does not mean that the model was trained near it."
assert interpolated["RoPE, two axes"] > 5 * twice["RoPE, two axes", "as it is"]
# Holds: "On texts, where nothing is stretched, the same did not rescue it"
on_text = load_study("length").by_arm["rope"]
rescued = [run.metrics["remedies"]["interpolated"]["128"] - run.metrics["longer"]["plain"]["128"] for run in on_text]
assert min(rescued) > 0

# %% What this does not show
# Holds: "What a large vision Transformer does: six layers, width 64"
assert (config.n_layers, config.d_model) == (6, 64)
# Holds: "Of the four planned differences between schemes on the trained size none is"
between = study.contrasts.filter(regex="^images: .* minus (learned|sinusoidal, 2-D|rope, 1-D)$", axis=0)
assert len(between) == 4 and (between["holm"] > 0.05).all()
# Holds: "One that was not planned stands in every seed:"
# Holds: "RoPE by the running number is ahead of learned rows, by 0.028 in the mean"
ahead = of_arm("RoPE, running number", "accuracy") - of_arm("learned rows", "accuracy")
assert (ahead > 0).all() and round(ahead.mean(), 3) == 0.028
assert not any("rope, 1-D minus learned" in name for name in between.index)

# %% Exercises
# By definition: "The old place 0 has its centre at 0, half a patch from"
# Holds: "The first new centre is a quarter of an old patch from the edge"
# Holds: "All but the first and the last lie between trained places."
assert centres[0] == -0.25 and ((centres < 0) | (centres > 5)).sum() == 2
# Holds: "Twelve offsets are new as they are."
# Holds: "Divided by two, only the two largest lie beyond what was trained"
assert (never, beyond) == (12, 2)
