# %% From a counter to waves
import pandas as pd

# Holds: "From 7 to 8, 0111 to 1000, all four digits change"
# Holds: "The last digit, drawn leftmost, changes at every step, the one before it half as often, and so on."
# Holds: "Four columns tell sixteen positions apart."
assert counter[7].flip(0).tolist() == [0, 1, 1, 1] and (counter[7] != counter[8]).all()
assert len(counter.unique(dim=0)) == 16
# Holds: "each column switches between two values"
assert [int((column.diff() != 0).sum()) for column in counter.T] == [15, 7, 3, 1]
# Holds: "each column swings between the"
# Holds: "lowest digit first, with a wave of the same pace on each column"
# Holds: "Where the counter switches, a wave passes zero."
near = (down - torch.arange(16)[:, None]).abs().argmin(dim=1)
assert torch.allclose(waves[near], torch.arange(4) + 0.4 * swings, atol=0.05)
assert ((swings > 0) == (counter == 1)).all() and swings.abs().max() <= 1

omega = 10000.0 ** (-torch.arange(0, 64, 2).double() / 64)
# Holds: "The first pair has $\omega_0 = 1$"
# By definition: "with equal factors in between"
assert omega[0] == 1 and (omega[1:] / omega[:-1] - omega[1]).abs().max() < 1e-9
# Holds: "It stands at twelve o'clock at position 0 and turns clockwise."
assert (table[0].view(32, 2) == torch.tensor([0, 1])).all()
assert (table[1, 0::2] > 0).all()  # clockwise: the tips go to the right

apart = (table[1:] - table[:-1]).view(-1, 32, 2).square().sum(-1)
assert (apart.argmax(dim=1) == 0).all()
# Holds: "All hands together show each position differently"
closest = torch.cdist(table, table) + 9 * torch.eye(128)
assert closest.min() > 1
# Holds: "and the last quarter hardly changes over 128 positions"
swing = table.max(0).values - table.min(0).values
assert (swing[48:] < 0.15).all() and (swing[:24] > 1.7).all()

# The same of the picture.
# Holds: "Follow a column down: the first pair turns twenty times, each later"
assert round(float(127 * omega[0] / (2 * torch.pi))) == 20
assert (omega.diff() < 0).all() and (swing[48:] < 0.15).all()


# Holds: "here it is $10000^{2/d}$, 1.33 at width 64"
assert round(10000 ** (2 / 64), 2) == 1.33
# Holds: "how alike two rows are no longer tells their distance"
small, usual = (posembed.sinusoidal(128, 64, base=base, dtype=torch.float64) for base in (10, 10_000))
tells = [torch.corrcoef(torch.stack([torch.arange(20.0, 128).double(), (r @ r[0])[20:]]))[0, 1] for r in (small, usual)]
assert tells[0] > 0 and tells[1] < -0.7
# Holds: "With too large a one most hands stand still in any text."
assert (1e30 ** (-torch.arange(0, 64, 2).double() / 64) * 10_000 < 0.1).double().mean() > 0.5

# %% An offset is a rotation
three, four = offset_matrix(3, 64), offset_matrix(4, 64)
# Holds: "Turning by $4\omega_i$ and then by $3\omega_i$ turns by $7\omega_i$"
assert torch.allclose(three @ four, offset_matrix(7, 64))
assert torch.allclose(offset_matrix(-3, 64), three.T)
assert torch.allclose(three.T, three.inverse())
# Holds: "they do not multiply"
assert not torch.allclose(three @ four, offset_matrix(12, 64), atol=0.1)
# Holds: "Move the offset $k$: every hand turns by an angle of its own."
assert len(omega.unique()) == 32
# Holds: "Move the position $p$: the turn from one row to the other stays."
# By definition: "The cosine is drawn to the right, so hands start at three o'clock and turn the other way round"
assert torch.allclose(table[5:], table[:-5] @ M.T, atol=1e-5)
# By definition: "None of the matrices contains the position"

# %% The dot product is a sum of cosines

# The same of the figure and of the picture above it.
from posembed.widgets.sinusoids import BASES, WIDTHS


def curve_at(width, base):
    table = sinusoidal(129, width, base=base, dtype=torch.float64)
    return table @ table[0] / (width / 2)


def first_rise(width):
    table = sinusoidal(4096, width, dtype=torch.float64)
    similarity = table @ table[0]
    return int((similarity[1:] > similarity[:-1]).nonzero()[0]) + 1


# Holds: "Both curves fall to about 0.6 within twenty positions; the narrow"
assert [first_rise(width) for width in (64, 768)] == [6, 44]
assert all((curve_at(d, 10000.0)[20] - 0.6).abs() < 0.02 for d in (64, 768))
# Holds: "Move the position: the curve is the same around every row."
assert torch.allclose(products[20, 20:], curve[: 2048 - 20])
# Holds: "Lower the base: the curve falls sooner."
for width in WIDTHS:
    sums = [float(curve_at(width, base)[:9].sum()) for base in BASES]
    assert sums == sorted(sums)

# By definition: "where every cosine is 1"
# Holds: "With few pairs it is not smooth"
assert (curve[:44].diff() < 0).all()
# Holds: "Both curves fall steeply to about 0.6 within twenty positions"
short = sinusoidal(2048, 64, dtype=torch.float64)
narrow = (short @ short[0] / 32)[:129]
assert (curve[20] / 384 - 0.6).abs() < 0.02 and (narrow[20] - 0.6).abs() < 0.02
# Holds: "at width 64 it first rises at offset 6, where the fastest hand comes round"
rounds = [round(2 * torch.pi * n) for n in range(1, 7)]
assert all(curve[at] < curve[at - 1] for at in rounds)
assert abs(6 - 2 * torch.pi) < 0.5 and 0 < 44 - 7 * 2 * torch.pi < 1
# Holds: "The dot product of row 0 with each later one says it."
assert first_rise(768) == 44 and torch.allclose(curve, wide @ wide[0])
# Holds: "the wide one's at 44, by too little to be seen"
# Holds: "has ripples from offset 6 on that are easy to see, that of width 768 is"
assert 0 < curve[44] - curve[43] < 384 * 2e-5
# Holds: "with each tenfold of the offset one more quarter of the pairs has come round, and the product falls by a"
# Holds: "The fall is roughly logarithmic"
euler = -torch.special.digamma(torch.tensor(1.0).double())
law = 1 - (torch.arange(3, 129).double().log() + euler) / torch.tensor(10000.0).log()
assert (curve[3:129] / 384 - law).abs().max() < 0.022
assert abs(torch.tensor(10.0).log() / torch.tensor(10000.0).log() - 0.25) < 1e-6
assert narrow.diff().max() > 0.08 and curve[:129].diff().max() / 384 < 0.0005
# And of its question.
# Holds: "It can, up to the first rise strictly and beyond it roughly."
near, far = torch.triu_indices(129, 129, offset=1)
assert (narrow[near] > narrow[far]).double().mean() > 0.8
# Holds: "A head can, because its matrices stand between the rows"
assert torch.allclose(curve[1:40], products[40, :40].flip(0)[:39])  # the same to both sides
back = (table @ offset_matrix(1, 64) @ table.T).argmax(dim=1)
assert torch.equal(back[1:], torch.arange(127))
# %% A table that is trained
from transformers import BertConfig

# Holds: "What does each add to a stored model of BERT's sizes, 512 positions of width 768?"
bert = BertConfig()
assert (bert.max_position_embeddings, bert.hidden_size) == (512, 768)
# Holds: "Between the two stands a third: *learnable sinusoidal* positions"
# Holds: "The formula costs nothing, and even the table is little in a model of a hundred million parameters."
of_scheme = {name: scheme(name, **sizes) for name in ("learnable_sinusoidal", "learned")}
numbers = [sum(each.numel() for each in one.parameters()) for one in of_scheme.values()]
assert numbers == [384, 393_216]
assert not list(scheme("sinusoidal", **sizes).parameters())
# Holds: "But a table ends: position 512 has no row."
try:
    of_scheme["learned"].add(torch.zeros(1, 1, 768), torch.tensor([512]))
    ended = False
except posembed.PosembedError:
    ended = True
assert ended

# %% Which is better?
# Holds: "The two panels have scales of their own."
assert (
    loss.filter(like="start A").min().min() > 1.4
    and loss.filter(like="start B").drop(columns="nopos, start B").max().max() < 1.4
)
# By definition: "Each difference is the mean over seeds with Student's 95 %"
planned = study.contrasts
by_start = losses_by_start = {start: pd.DataFrame(its) for start, its in losses.items()}
of_a, of_b = by_start["start A"], by_start["start B"]
# Holds: "start A: learnable sinusoidal near 1.43, sinusoidal and learned near 1.47"
about = {"learnable_sinusoidal": 1.43, "sinusoidal": 1.47, "learned": 1.47}
assert all(abs(of_a[name].mean() - value) < 0.006 for name, value in about.items())
assert min(of_a["nopos"]) >= 1.71 and max(of_a["nopos"]) < 1.88
# Holds: "From start B: learned near 1.31, sinusoidal near 1.33, learnable sinusoidal near"
about = {"learnable_sinusoidal": 1.34, "learned": 1.31, "sinusoidal": 1.33, "nopos": 1.43}
assert all(abs(of_b[name].mean() - value) < 0.006 for name, value in about.items())
# Holds: "Three differences with their intervals, table minus sines."
# Holds in Sinusoidal or learned?: "From another five seeds have the two level, and eight later ones the sines ahead by"
# Holds in Sinusoidal or learned?: "Both leads are significant; the planned test of their difference, on five seeds"
# Holds: "But we had seen these five pairs when we wrote the plan, so they test nothing."
# Holds: "They have the sines ahead by 0.034, in seven of eight."
# Holds: "Over all thirteen the lead is 0.021."
# Holds: "Five seeds can mislead, also where their interval is narrow; the lead from B rests on five."
# Holds in What to remember: "From one start the table is ahead and from another the sines, by 0.02 nats each"
# Holds in What to remember: "The planned test of their difference, on five seeds, is not significant."
assert planned.loc[f"{GAP}, start B minus A", "holm"] > 0.05
later = planned.loc[f"{GAP}, start A, later seeds"]
assert round(later["mean"], 3) == 0.034 and later["holm"] < 0.05 and later["n"] == 8
by_seed = study.runs.pivot(index="seed", columns="arm", values="loss").filter(like="later seeds").dropna()
behind = by_seed["learned, start A, later seeds"] - by_seed["sinusoidal, start A, later seeds"]
assert (len(behind), (behind > 0).sum()) == (8, 7)
from posembed.stats import interval

first_five = study.runs.pivot(index="seed", columns="arm", values="loss")
first_five = (first_five["learned, start A"] - first_five["sinusoidal, start A"]).dropna()
thirteen = interval([*first_five, *behind])
assert (round(thirteen.mean, 3), thirteen.n) == (0.021, 13) and thirteen.low > 0
assert "were taken over from *encodings* and known" in " ".join(study.about.split())
# Holds in Sinusoidal or learned?: "From one start of the weights a trained table is ahead of the sines by 0.020 nats"
# Holds: "In these seeds the sines and the learned table are level from start A, and from start B the table is"
in_a, in_b = (planned.loc[f"{GAP}, start {start}"] for start in "AB")
assert round(in_b["mean"], 3) == -0.02 and abs(in_a["mean"]) < 0.002
# Holds: "From start A the first five seeds have the two level, within the margin of 0.02 that the plan had named."
# Holds: "two are level where the 90 % interval, narrower than the line drawn"
# By definition: "Left of zero the table is better."
within = interval(of_a["learned"] - of_a["sinusoidal"], level=0.9)
assert -0.02 < within.low < within.high < 0.02 and "lies within 0.02 nats of zero" in " ".join(study.about.split())
# Holds: "From start B the table is ahead by 0.020, in every seed."
assert in_b["holm"] < 0.05 and (of_b["learned"] < of_b["sinusoidal"]).all()
change = planned.loc[f"{GAP}, start B minus A"]
assert round(change["mean"], 2) == -0.02 and change["holm"] > 0.05
# Holds in Sinusoidal or learned?: "**How sure:** five seeds from the first start, one text, 0.2 million parameters"
# Holds: "Each small mark is a model, each large one the mean of five"
assert len(rows) == 3 and all(len(each) == 5 for each in by_start.values())
assert round(study.by_arm["nopos, start B"][0].metrics["parameters"] / 1e6, 1) == 0.2
# Holds: "The model without positions, NoPos, gains most"
gains = (of_a - of_b).mean()
assert gains.idxmax() == "nopos" and (of_a > of_b).all().all()
# Holds: "From B the loss of the sines is 0.14 nats lower than from A, and that of the table 0.16."
assert [round(gains[name], 2) for name in ("sinusoidal", "learned")] == [0.14, 0.16]
# Holds: "The start does."
# Holds in What to remember: "How the weights start moved the loss of either by several times as much."
most = max(abs(its["mean"]) for its in (in_a, in_b, later))
assert 4 * most < gains["sinusoidal"] < gains["learned"]
# Holds: "alike but for how the weights start"
from dataclasses import asdict

for name in ABSOLUTE:
    for one, other in zip(study.by_arm[f"{name}, start A"], study.by_arm[f"{name}, start B"], strict=True):
        ours, theirs = asdict(one.config), asdict(other.config)
        differ = {each for each in ours if ours[each] != theirs[each]} - {"preset"}
        assert differ <= {"weight_std", "scale_embeddings", "scheme_options"}
# Holds: "draws weights with a standard deviation of 0.02, as GPT-2 does"
# Holds: "which is 0.125 here."
a_run, b_run = (study.by_arm[f"learned, start {start}"][0].config for start in "AB")
assert (a_run.weight_std, a_run.scale_embeddings) == (0.02, True)
assert (b_run.weight_std, b_run.scale_embeddings) == (0.125, False)
assert b_run.scheme_options == {"learned": {"std": 0.125}}
# Holds: "The model is causal, has four layers of width 64, and reads pieces of 64 characters."
assert (a_run.n_layers, a_run.d_model, a_run.length) == (4, 64, 64)
# Holds: "a learning rate of its own, chosen among three by two runs as long as these"
assert {run.config.steps for run in study.trials} == {a_run.steps}
assert {run.config.learning_rate for runs in study.by_arm.values() for run in runs} == {0.01}
assert not {run.config.seed for run in study.trials} & {run.config.seed for run in study.by_arm["learned, start A"]}
# %% Waves that may be trained
# Holds: "Trained frequencies are ahead of fixed ones by 0.04 from A and behind by 0.01 from B"
TRAINED = "learnable_sinusoidal minus sinusoidal"
trained_a, trained_b = (planned.loc[f"{TRAINED}, start {start}"] for start in "AB")
assert [round(each["mean"], 2) for each in (trained_a, trained_b)] == [-0.04, 0.01]
assert min(trained_a["holm"], trained_b["holm"]) > 0.05
# Holds: "nearly half of those are waves longer than ten texts of 64 characters"
assert round(float((2 * torch.pi / start > 640).double().mean()), 2) == 0.47
# Holds: "It speeds them up."
assert (waves > 640).double().mean() < 0.02

first_waves = 2 * torch.pi / start
# Holds: "After training the two fastest pairs are about where they were"
assert ((waves[:, :2] / first_waves[:2] - 1).abs() < 0.25).all()
# Holds: "Sorted by their speed again, all but two of the 80 in the slower half"
slower = waves[:, 16:]
assert int(((slower > 64) & (slower < 512)).sum()) == slower.numel() - 2 == 78
assert slower.min() > 90
# Holds: "In the models of start B only half of the slower pairs became such waves."
of_b = [torch.tensor(run.metrics["scheme"]["frequencies"]) for run in study.by_arm["learnable_sinusoidal, start B"]]
slower_b = torch.stack([2 * torch.pi / each.abs().sort(descending=True).values for each in of_b])[:, 16:]
assert 36 <= int(((slower_b > 64) & (slower_b < 512)).sum()) <= 44
# The same of the pictures.
# Holds: "The two fastest pairs stay about where they were; most of the slower"
assert ((waves[:, :2] / first_waves[:2] - 1).abs() < 0.25).all()
assert ((slower > 90) & (slower < 512)).double().mean() > 0.9
# Holds in What this does not show: "A sine row has 0.7 of a word vector's length in start A"
lengths = [(64 / 2) ** 0.5 / word for word in (64**0.5, 1.0)], [0.02 * 64**0.5 / 64**0.5, 1.0]
assert [round(each, 1) for each in lengths[0]] == [0.7, 5.7] and lengths[1] == [0.02, 1.0]

# %% Past the trained length
from posembed.data import frequency_loss

by_letter = frequency_loss()
from studies import encodings

past = {name: encodings.past_the_trained_length(study.by_arm[f"{name}, start A"]) for name in ABSOLUTE}
losses = {name: torch.tensor(by_position[name]) for name in ABSOLUTE}
norms = torch.tensor([r.metrics["scheme"]["row_norms"] for r in study.by_arm["learned, start A"]])
# Holds: "Beyond 64 the learned table jumps to 3.7 at once"
assert all(each[:, :4].max() < 2 for each in losses.values())
assert (losses["learned"][:, 4:].mean(dim=0) - 3.7).abs().max() < 0.12
for name in ("sinusoidal", "learnable_sinusoidal"):
    assert all(3.2 < each < 3.5 for each in losses[name][:, 5:7].mean(dim=0))
ends = losses["nopos"][:, -1]
assert ends.min() > 2.5 and ends.max() < 3.7
# Holds: "within thirty positions it is lost as well"
for name in ("sinusoidal", "learnable_sinusoidal"):
    assert (losses[name][:, 5:] > by_letter).all()  # from position 80 on
# Holds: "The hope of 2017 that sines"
# Holds in What to remember: "Past the trained length all of them fail"
assert all(each.low > 0 for each in past.values())
# Holds: "The learned table has 512 rows"
assert norms.shape == (5, 512)


from posembed.data import load_corpus
from posembed.training import Causal, make_model

# Holds: "of which training used the first 63"
config, shown = study.by_arm["learned, start A"][0].config, []
corpus = load_corpus()
model, text = make_model(config, corpus), corpus.test[None, : config.length]
model.register_forward_pre_hook(lambda _, given: shown.append(given[0]))
asked = ~Causal().losses(model, text, torch.Generator()).isnan()
assert shown[0].equal(text[:, :63]) and asked[0].nonzero().flatten().tolist() == [*range(1, 64)]
# Holds: "Nothing makes them."
assert (norms[:, 64:].max(dim=1).values < norms[:, :63].min(dim=1).values).all()
# Holds: "What they were at the start, random numbers."
assert abs(norms[:, 64:].mean() - 0.02 * 64**0.5) < 0.002

# The same of the pictures.
# Holds: "None carries on: the learned table fails at once, the sinusoids"
assert (losses["learned"][:, 4] > 3.5).all()  # positions 64 to 79
for name in ("sinusoidal", "learnable_sinusoidal"):
    assert (losses[name][:, 6] > by_letter).all()  # positions 96 to 111
slow = losses["nopos"].mean(dim=0)
assert slow[4] - slow[3] < 0.2 and slow[6] < 2.2 and slow[-1] > 2.8
assert losses["nopos"][:, -1].max() - losses["nopos"][:, -1].min() > 1

# Holds: "The models of start A are given texts of 512 characters, eight times what they were trained on"
assert study.by_arm["learned, start A"][0].config.test_length == 512 == 8 * 64
# Holds: "From start B the sines end worse than the table."
last = {
    name: [run.metrics["loss_by_position"][-1] for run in study.by_arm[f"{name}, start B"]]
    for name in ("sinusoidal", "learned")
}
assert min(last["sinusoidal"]) > max(last["learned"])
of_seeds = {
    name: torch.tensor([run.metrics["loss_by_position"] for run in study.by_arm[f"{name}, start A"]])
    for name in ("learned", "nopos")
}
# Holds: "worse than a model that knows nothing but the letters' frequencies"
assert (of_seeds["learned"][:, 4:] > by_letter).all()
# %% What this does not show
# Holds: "What is better in a large model, in another language or in translation"
assert {run.config.steps for start in "AB" for run in study.by_arm[f"learned, start {start}"]} == {1500}
# Holds: "With 0.03 for the table, which single runs had chosen, the first five seeds had the sines ahead from A"
single = load_study("encodings")
assert round(single.contrasts.loc[GAP, "mean"], 3) == 0.045
assert [single.by_arm[name][0].config.learning_rate for name in ("learned", "sinusoidal")] == [0.03, 0.01]
tried = [run.config.learning_rate for run in single.trials if run.config.scheme == "learned"]
assert len(tried) == len(set(tried))
pd.testing.assert_series_equal(
    losses_by_start["start A"]["sinusoidal"],
    single.runs.pivot(index="seed", columns="arm", values="loss")["sinusoidal"],
    check_names=False,
)

# %% Exercises
bases = [sinusoidal(64, 64, base=base, dtype=torch.float64) for base in (10, 100, 1_000, 10_000, 1_000_000)]
next_to = [float(rows[0] @ rows[1]) for rows in bases]
assert next_to == sorted(next_to)  # neighbours get more alike
# Holds in What to remember: "one wave for each pair of columns, with wavelengths from $2\pi$"
# Holds in From a counter to waves: "The first is $2\pi$, the last $2\pi \cdot 10000^{1 - 2/d}$"
for width, share in ((64, 0.75), (768, 0.98)):
    exponents = torch.arange(0, width, 2).double() / width
    lengths = 2 * torch.pi * 10000**exponents
    assert abs(lengths[0] - 6.2832) < 1e-4
    assert abs(lengths[-1] / 62832 - share) < 0.005
# Holds in What to remember: "An offset turns each pair by a fixed angle"
assert torch.allclose(table[9:], table[:-9] @ offset_matrix(9, 64).T, atol=1e-6)
# Holds in What to remember: "falling by a quarter with each tenfold of the offset"
assert abs((curve[10] - curve[100]) / 384 - 0.25) < 0.01

# And of the bases.
from itertools import pairwise


def first_below_zero(base):
    rows = sinusoidal(11_000, 64, base=base, dtype=torch.float64)
    return int((rows @ rows[0] < 0).nonzero()[0])


# Holds: "Expect the offset to grow by a factor of between 3 and 10 when the"
found = [first_below_zero(10**power) for power in range(1, 6)]
assert all(3 < b / a < 10 for a, b in pairwise(found))
# Holds: "with base 500,000 it first falls below zero at 9,937"
assert first_below_zero(500_000) == 9937
assert first_below_zero(1_000_000) == 6235

from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.whisper.modeling_whisper import sinusoids as whisper_sinusoids

# Holds: "Marian does; M2M100 and Whisper do so with slightly other frequencies."
marian = MarianSinusoidalPositionalEmbedding(100, 64).create_weight()
assert torch.allclose(marian, sinusoidal(100, 64, layout="concat"), atol=1e-5)
m2m100 = M2M100SinusoidalPositionalEmbedding.get_embedding(100, 64)
for theirs in (m2m100, whisper_sinusoids(100, 64)):
    sines, cosines = theirs.double().split(32, dim=1)
    # Those of tensor2tensor, which end at 1/10000.
    angles = torch.arange(100).double()[:, None] * 1e4 ** -(torch.arange(32).double() / 31)
    assert torch.allclose(sines, angles.sin(), atol=1e-4) and torch.allclose(cosines, angles.cos(), atol=1e-4)

# %% What to remember

assert (first_rise(768), first_rise(64)) == (44, 6)
