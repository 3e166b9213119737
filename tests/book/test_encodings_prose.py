"""Numbers that the sentences of chapters 3 to 5 state, held against the package and the stored runs."""

import inspect
import math
import re
from dataclasses import asdict

import pytest
import torch
from prose import losses, printed, prose, said
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.whisper.modeling_whisper import sinusoids as whisper_sinusoids

from posembed import scheme, sinusoidal
from posembed.encodings import RoPE, Shaw
from posembed.training import difference, load_runs
from posembed.training.encodings import ABSOLUTE, RELATIVE, SEEDS, TRAINED, Arm, reported
from posembed.training.nopos import reported as of_nopos

SINUSOIDS, RELATIVES, MUSEUM = (
    f"encodings/{name}" for name in ("sinusoidal-and-learned", "relative-positions", "museum-of-bugs")
)
SIZES = {"d_model": 768, "n_heads": 12, "n_layers": 12, "n_positions": 512, "causal": True}


@pytest.fixture(scope="module")
def runs():
    stored = load_runs("encodings")
    return {name: reported(Arm(name), stored) for name in (*ABSOLUTE, *RELATIVE)}


def by_position(runs, name):
    return torch.tensor([run.metrics["loss_by_position"] for run in runs[name]]).double()


def test_the_first_rises():
    said(SINUSOIDS, "offset 44 at width 768 and 6 at width 64")
    for width, rise in ((768, 44), (64, 6)):
        curve = sinusoidal(4096, width, dtype=torch.float64) @ sinusoidal(1, width, dtype=torch.float64)[0]
        assert int((curve.diff() > 0).nonzero()[0]) + 1 == rise


def test_sixteen_times_as_long():
    said(SINUSOIDS, "a position would be sixteen times as long as a word")
    lengths = {
        name: float(re.search(rf"a {name} ([\d.]+)", printed(SINUSOIDS)).group(1)) for name in ("position", "word")
    }
    assert lengths["position"] / lengths["word"] == pytest.approx(16, rel=0.01)


def test_second_hand():
    said(SINUSOIDS, r"slower by the factor $10000^{2/64} \approx 1.33$")
    assert pytest.approx(1.33, abs=0.005) == 10000 ** (2 / 64)


def test_what_schemes_add_to_the_stored_model():
    said(SINUSOIDS, "its frequencies are 384 numbers, and the table is 393,216")
    counted = {name: sum(p.numel() for p in scheme(name, **SIZES).parameters()) for name in (*ABSOLUTE, *RELATIVE)}
    assert counted["learnable_sinusoidal"] == 384 and counted["learned"] == 393_216
    names = {
        "NoPos": "nopos",
        "sinusoidal": "sinusoidal",
        "learned": "learned",
        "learnable sinusoidal": "learnable_sinusoidal",
        "Shaw": "shaw",
        "T5": "t5",
        "ALiBi": "alibi",
        "RoPE": "rope",
    }
    table = prose(RELATIVES).split("{table} Position schemes compared")[1].split("\n:::")[0]
    for shown, name in names.items():
        row = re.search(rf"^\| {shown} \|.*$", table, re.MULTILINE).group().split("|")
        assert int(row[4].replace(",", "")) == counted[name], shown


def test_the_task(runs):
    said(
        SINUSOIDS,
        "a causal model of four layers, width 64, on pieces of 64 characters",
        "Now the same models are given texts of 512 characters, eight times what they were trained on",
    )
    config = runs["learned"][0].config
    assert (config.n_layers, config.d_model, config.length, config.test_length) == (4, 64, 64, 512)
    said(RELATIVES, "The heads of our models are 16 wide, so they have eight pairs")
    assert config.d_model // config.n_heads == 16


def test_fixed_and_learned(runs):
    said(
        SINUSOIDS,
        "The plan took the rate 0.03, which was ahead by four thousandths in that one run",
        "Over five seeds it is behind the rate 0.01 by more than ten times as much",
    )
    stored = {run.config.key: run.metrics for run in load_runs("encodings")}
    arm = Arm("learned")
    ahead = stored[arm.config(1e-2, 0).key]["validation_loss"] - stored[arm.config(3e-2, 0).key]["validation_loss"]
    assert ahead == pytest.approx(0.004, abs=0.0005)
    other = [stored[arm.config(1e-2, seed).key]["loss"] for seed in SEEDS]
    assert 10 * ahead < difference(losses(runs["learned"]), other).mean < 15 * ahead


def test_trained_frequencies(runs):
    said(SINUSOIDS, "in four seeds of five, and the interval just reaches zero")
    pairs = list(zip(losses(runs["learnable_sinusoidal"]), losses(runs["sinusoidal"]), strict=True))
    assert sum(a < b for a, b in pairs) == 4
    gap = difference(*map(list, zip(*pairs, strict=True)))
    assert not gap.excludes_zero and abs(gap.high) < 0.01


def test_without_positions_from_another_start(runs):
    said(
        SINUSOIDS,
        "In [chapter 11](chapter-nopos) the same model has 1.43 in place of 1.79.",
        "There two things differ: the weights are drawn with another standard deviation",
    )
    there = {run.config.seed: run for run in of_nopos("causal, nopos", load_runs("nopos"))}
    here = {run.config.seed: run for run in runs["nopos"]}
    for found, loss in ((there, 1.43), (here, 1.79)):
        assert sum(losses(list(found.values()))) / 5 == pytest.approx(loss, abs=0.005)
    # How the trained model is measured is no part of it.
    measured = {"test_length", "inspections"}
    for seed, run in here.items():
        ours, theirs = asdict(run.config), asdict(there[seed].config)
        differ = {name for name in ours if ours[name] != theirs[name]} - measured
        assert differ == {"weight_std", "scale_embeddings"}
        assert ours["scale_embeddings"] and not theirs["scale_embeddings"]


def test_past_the_trained_length(runs):
    said(
        SINUSOIDS,
        "worse than a model that knows nothing but the letters' frequencies",
        "very differently from seed to seed",
    )
    by_letter = float(re.search(r"frequencies alone: ([\d.]+)", printed(SINUSOIDS)).group(1))
    assert (by_position(runs, "learned")[:, 4:] > by_letter).all()
    said(
        RELATIVES,
        "| sinusoidal | fails within thirty positions | embeddings | 0 | none |",
        "| learnable sinusoidal | fails within thirty positions | embeddings | 384 | none |",
    )
    for name in ("sinusoidal", "learnable_sinusoidal"):
        # The group of positions 80 to 95, where 64 were trained.
        assert (by_position(runs, name)[:, 5] > by_letter).all()
        assert (by_position(runs, name)[:, 5:].mean(1) > by_letter).all()
    ends = by_position(runs, "nopos")[:, -1]
    assert ends.max() - ends.min() > 1


def test_the_norms_of_the_rows(runs):
    said(
        SINUSOIDS,
        "Row 63 and all after it are as they were drawn.",
        "form a V, much the same in all five seeds",
    )
    norms = torch.tensor([run.metrics["scheme"]["row_norms"] for run in runs["learned"]])
    drawn = 0.02 * 8
    assert (norms[:, 63:] - drawn).abs().max() < 0.08
    lowest = norms[:, :62].argmin(dim=1)
    assert lowest.min() >= 20 and lowest.max() <= 40


def test_half_distances_of_alibi():
    said(
        RELATIVES,
        r"Half of all weight lies within about $0.69 / s$ places",
        r"For 8 heads the slopes are $\tfrac12, \tfrac14, \dots, \tfrac1{256}$",
    )
    assert math.log(2) == pytest.approx(0.69, abs=0.005)
    assert scheme("alibi", n_heads=8).slopes.tolist() == [2.0**-h for h in range(1, 9)]


def test_who_carries_on(runs):
    said(
        RELATIVES,
        "Two of the relative schemes carry on as if nothing had happened, and two do not",
        "beyond its limit of 16 all keys have one vector",
        "**RoPE** goes on for some thirty characters",
    )
    for name in ("shaw", "alibi"):
        curve = by_position(runs, name)
        assert (curve[:, 4:].mean(1) - curve[:, 3]).abs().max() < 0.05, name
    assert inspect.signature(Shaw).parameters["max_distance"].default == 16
    rope = by_position(runs, "rope")
    assert ((rope[:, 4:6] - rope[:, 3:4]).abs() < 0.15).all()
    assert (rope[:, 8:].mean(1) > 3).all()


def test_the_best_relative_schemes_lie_close_together(runs):
    """Chapter 4 holds that they are better than all absolute ones, and not how close their means are."""
    means = [sum(losses(runs[name])) / 5 for name in ("shaw", "t5", "rope")]
    assert max(means) - min(means) < 0.03


def test_t5s_untrained_buckets(runs):
    said(
        RELATIVES,
        "Distances from 67 on fall into buckets that our texts never reached",
        "as they were drawn, near zero, where trained far buckets are far below",
    )
    t5 = scheme("t5", n_heads=4, causal=True)
    reached = t5.bucket(-torch.arange(TRAINED - 1)).unique()
    unreached = t5.bucket(-torch.arange(67, 512)).unique()
    assert t5.bucket(torch.tensor(-66)) in reached and not torch.isin(unreached, reached).any()
    for run in runs["t5"]:
        weight = torch.tensor(run.metrics["scheme"]["weight"]).view(32, 4)
        assert weight[unreached].abs().max() < 0.1
        assert weight[reached[-4:]].mean() < -0.5
    assert (by_position(runs, "t5")[:, 8:].mean(1) > 2).all()


def test_the_scalings(runs):
    said(
        RELATIVES,
        "Linear scaling ruins the loss at once, also within the trained length",
        "carries the models to about three times the trained length",
        "YaRN and Llama 3 hold to the end on a level between the trained one and that of guessing",
    )
    scaled = {
        name: torch.tensor([run.metrics["loss_by_position_scaled"][name] for run in runs["rope"]])
        for name in ("linear", "ntk", "yarn", "llama3")
    }
    plain = by_position(runs, "rope")
    assert (scaled["linear"][:, :4] > plain[:, :4] + 1).all()
    ntk = scaled["ntk"].mean(0)
    assert (ntk[1 : 3 * 4] < plain[:, 3].mean() + 0.25).all() and (ntk[20:] > 3).all()
    for name in ("yarn", "llama3"):
        assert (scaled[name][:, 16:].mean(0) < 3.03).all() and (scaled[name][:, 16:].mean(0) > 1.6).all()


def test_turns_within_a_text():
    said(RELATIVES, "Within the 64 trained characters the fastest turns ten times and the slowest hardly at all")
    turns = TRAINED * RoPE(16).frequencies / (2 * math.pi)
    assert round(float(turns[0])) == 10 and turns[-1] < 0.01


def test_bfloat16_in_the_museum():
    said(
        MUSEUM,
        "from 256 on it has no odd numbers, from 512 to 1,024 only every fourth",
        "The largest difference is 0.69",
    )
    assert torch.tensor(257.0).bfloat16() == 256 and torch.tensor(514.0).bfloat16() == 512
    slopes, series = scheme("alibi", n_heads=12).slopes, 2.0 ** (-8 * torch.arange(1, 13) / 12)
    assert float((slopes - series).abs().max()) == pytest.approx(0.69, abs=0.005)
    assert ((slopes - series).abs() > 1e-9).all()


def test_sinusoidal_tables_of_other_models():
    """Marian has the paper's frequencies; M2M100 and Whisper those of tensor2tensor, which end at 1/10000."""
    said(SINUSOIDS, "Marian does; M2M100 and Whisper do so with slightly other frequencies.")
    said(MUSEUM, "In M2M100 and Whisper they go to 1 itself, which is right for their weights.")
    marian = MarianSinusoidalPositionalEmbedding(100, 64).create_weight()
    assert torch.allclose(marian, sinusoidal(100, 64, layout="concat"), atol=1e-5)
    m2m100 = M2M100SinusoidalPositionalEmbedding.get_embedding(100, 64)
    for theirs in (m2m100, whisper_sinusoids(100, 64)):
        sines, cosines = theirs.double().split(32, dim=1)
        exponents = -torch.atan2(sines[1], cosines[1]).log10() / 4
        assert torch.allclose(exponents, torch.arange(32).double() / 31, atol=1e-3)
        angles = torch.arange(100).double()[:, None] * 1e4 ** -(torch.arange(32).double() / 31)
        assert torch.allclose(sines, angles.sin(), atol=1e-4) and torch.allclose(cosines, angles.cos(), atol=1e-4)
