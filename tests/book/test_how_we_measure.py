"""The page that says how to read the numbers: those on it are computed here."""

import math

from prose import BOOK

from posembed import load_study
from posembed.data import frequency_loss
from posembed.stats import difference

PAGE = (BOOK / "how-we-measure.md").read_text(encoding="utf-8")


def losses(study):
    return load_study(study).runs.pivot(index="seed", columns="arm", values="loss").loc[1:5]


def test_losses_and_perplexities():
    means = losses("own-rates").mean()
    rows = [frequency_loss(), means["learned, start B"], means["rope, start B"]]
    for loss in rows:
        shown, perplexity = f"{loss:.3f}", f"{math.exp(loss):.1f}"
        assert f"| {shown} | {perplexity} |" in PAGE
        assert f"{math.exp(float(shown)):.1f}" == perplexity  # so that a reader comes out at the same


def test_a_difference_that_stands():
    of = losses("own-rates")
    rope, table = (of[f"{name}, start B"] for name in ("rope", "learned"))
    assert "| " + " | ".join(f"{each:.3f}" for each in rope - table) + " |" in PAGE
    found = difference(rope, table)
    assert f"The mean is {found.mean:.3f}." in PAGE
    assert f"from {found.low:.3f} to {found.high:.3f}, found by a method" in PAGE


def test_rates_from_short_trials():
    study, short = (load_study(name) for name in ("own-rates", "one-start"))
    found = difference(losses("one-start")["rope"], losses("one-start")["learned"])
    assert f"chose too high a rate for the table: with it the difference above was {found.mean:.3f}." in PAGE
    rates = [short.by_arm["learned"], study.by_arm["learned, start B"], study.by_arm["rope, start B"]]
    assert [runs[0].config.learning_rate for runs in rates] == [0.03, 0.01, 0.01]
    assert {3 * run.config.steps for run in short.trials} == {run.config.steps for run in study.trials}


def test_one_that_does_not():
    of = losses("encodings")
    found = difference(of["alibi"], of["learnable_sinusoidal"])
    each = [f"{value:.3f}" for value in of["alibi"] - of["learnable_sinusoidal"]]
    assert f"gives {', '.join(each[:-1])} and {each[-1]}: mean {found.mean:.3f}" in PAGE
    assert f"interval {found.low:.3f} to {found.high:.3f}" in PAGE
    assert found.low < 0 < found.high


def test_the_starts_and_the_size():
    study = load_study("one-start")
    config = study.by_arm["rope"][0].config
    assert 1 / math.sqrt(config.d_model) == 0.125 and "0.125 at a width of 64" in PAGE
    assert 0.15e6 < study.runs["parameters"].max() < 0.25e6
