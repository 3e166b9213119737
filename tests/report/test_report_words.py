"""What the numbers are said to mean is what they mean."""

import dataclasses
import math

import pytest
import torch

from posembed import sinusoidal
from posembed.probing import spectrum
from posembed.report import words
from posembed.similarity import Properties
from posembed.tables import as_table


def scored(findings, mae, low, high, *, split="even-odd", constant=100.0, permuted=120.0, random=150.0):
    """The result of a probe with these numbers in place of its own."""
    baselines = dataclasses.replace(
        findings.between.baselines, constant=constant, permuted_labels=permuted, random_table=random
    )
    interval = dataclasses.replace(findings.between.interval, low=low, high=high)
    return dataclasses.replace(findings.between, split=split, test_mae=mae, interval=interval, baselines=baselines)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((1.0, 0.5, 1.5), "can be read from rows that the probe has not seen: the error is 100 times below"),
        ((50.0, 40.0, 60.0), "but roughly: the error is 50 % of the best control's"),
        ((90.0, 80.0, 110.0), "reads no more than a control does"),
        ((130.0, 110.0, 150.0), "does not hold for rows that the probe has not seen: a control errs less"),
        ((0.01, 0.005, 0.015), "the error is more than 1,000 times below"),
    ],
)
def test_the_verdict_follows_from_the_interval_and_the_controls(findings, numbers, said):
    assert said in words.verdict(scored(findings, *numbers))


@pytest.mark.parametrize("control", ["constant", "permuted", "random"])
def test_the_best_control_is_the_one_to_beat(findings, control):
    better = scored(findings, 50.0, 40.0, 60.0, **{control: 55.0})
    assert "no more than a control" in words.verdict(better)


def test_extrapolation_is_called_so_and_training_rows_prove_nothing(findings):
    assert "beyond those it was trained on" in words.verdict(scored(findings, 1.0, 0.5, 1.5, split="half"))
    verdict = words.verdict(scored(findings, 0.0, 0.0, 0.0, split="all"))
    assert "how well it fits" in verdict and "can be read" not in verdict


def test_an_error_of_zero_is_no_division_by_zero(findings):
    assert "can be read" in words.verdict(scored(findings, 0.0, 0.0, 0.0))


def test_every_control_is_named_with_its_number(findings):
    said = words.error_words(scored(findings, 1.25, 1.0, 1.5, constant=111.0, permuted=222.0, random=333.0))
    for part in ("1.25 positions", "1 to 1.5", "constant guess errs by 111", "labels by 222", "of this size by 333"):
        assert part in said


def test_rows_are_counted_and_named():
    weight = sinusoidal(64, 32).clone()
    assert words.health(as_table(weight)) == "No row looks untrained."
    weight[5] = 0
    assert words.health(as_table(weight)).startswith("Row 5 looks untrained: it is no more like any other row")
    weight[9:30] = 0
    assert words.health(as_table(weight)).startswith("Rows 5, 9, 10, 11, 12, 13, 14, 15 and 14 more look untrained")
    weight[:] = 0
    assert words.health(as_table(weight)).startswith("All rows look untrained")
    weight = sinusoidal(64, 32).clone()
    weight[1, 2] = math.inf
    assert words.health(as_table(weight)) == "Row 1: NaN or infinity. No row looks untrained."


def test_norms_name_the_rows_that_stand_out():
    table = as_table(torch.diag(torch.tensor([3.0, 1.0, 2.0, 2.0])))
    assert words.norms(table) == "median 2, from 1 (row 1) to 3 (row 0)"
    assert words.norms(as_table(sinusoidal(64, 32))) == "4 for all rows"
    assert words.norms(as_table(torch.full((3, 2), math.nan))) == "not defined"


def test_the_spectrum_is_said_as_it_was_measured():
    found = spectrum(torch.randn(30, 8, generator=torch.Generator().manual_seed(0)))
    assert words.spectrum_words(found).startswith(f"{found.n_components_for(0.9)} centred components hold 90 %")
    assert words.helix_words(found).startswith("none")


def test_rows_that_do_not_differ_have_no_spectrum_to_speak_of():
    found = spectrum(torch.ones(8, 4))
    assert "no variance" in words.spectrum_words(found)


def test_locality_is_left_out_where_it_is_not_defined():
    names = [name for name, _, _ in words.property_rows(Properties(0.9, 0.8, 1.0, math.nan))]
    assert names == ["monotonicity", "translation invariance", "symmetry"]
    assert len(words.property_rows(Properties(0.9, 0.8, 1.0, 0.5))) == 4


def test_what_is_not_defined_is_said_so():
    said = words.distance_words(Properties(math.nan, math.nan, math.nan, math.nan))
    assert said.count("not defined") == 2 and "nan" not in said
