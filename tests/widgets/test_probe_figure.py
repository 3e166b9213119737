"""Figure 6: its numbers are those of the studies, and its JavaScript counts and measures what it should."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from widget_checks import assert_refused, rows_of, run_tests

from posembed import sinusoidal
from posembed.probing import SPLITS as ALL_SPLITS
from posembed.probing import probe_table, split_rows
from posembed.stored import CONTROLS as STUDIED_CONTROLS
from posembed.stored import stored_studies, study_table
from posembed.widgets import ProbeFigure
from posembed.widgets.probe import CONTROLS, DECIMALS, SPLITS

ROUNDING = 0.5 * 10**-DECIMALS + 1e-12
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
FIELDS = {
    "error": "test_mae",
    "low": "low",
    "high": "high",
    "train": "train_mae",
    "constant": "constant",
    "permuted labels": "permuted_labels",
    "random table": "random_table",
}


@pytest.fixture(scope="module")
def studies():
    return stored_studies()


@pytest.fixture(scope="module")
def default(studies):
    return ProbeFigure(studies)


@pytest.fixture(scope="module")
def small():
    """A table of random numbers that is measured now, as a tensor and as a study."""
    rows = torch.randn(60, 8, generator=torch.Generator().manual_seed(0))
    return rows, study_table(rows)


def score_in(figure, name, split):
    return next(table for table in figure.tables if table["name"] == name)["scores"][split]


def test_the_state_is_what_the_studies_hold(default, studies):
    assert [table["name"] for table in default.tables] == list(studies)
    for name, study in studies.items():
        for split in ALL_SPLITS:
            wanted, got = study.score("ols", split), score_in(default, name, split)
            for ours, its in FIELDS.items():
                assert got[ours] == pytest.approx(getattr(wanted, its), abs=ROUNDING)
            assert got["held_out"] is wanted.held_out is (split != "all")
            for control in STUDIED_CONTROLS:
                points = zip(got["positions"], got["predicted"][control], strict=True)
                assert tuple(points) == wanted.points[control]


def test_what_the_default_figure_holds(default, studies):
    first = next(iter(studies))
    assert (default.table, default.split, default.control) == (first, "even-odd", "table")
    assert default.position == 3 * studies[first].n_positions // 8
    assert default.probe == "least squares"
    last = list(studies)[-1]
    chosen = ProbeFigure(studies, table=last)
    assert (chosen.table, chosen.position) == (last, 3 * studies[last].n_positions // 8)
    assert [split["key"] for split in default.splits] == list(SPLITS) == list(ALL_SPLITS)
    assert [control["key"] for control in default.controls] == list(CONTROLS) == list(STUDIED_CONTROLS)


def test_the_constant_guess_is_drawn_where_its_error_comes_from(default):
    for table in default.tables:
        positions = np.arange(table["n_positions"])
        for split in ALL_SPLITS:
            score, parts = table["scores"][split], split_rows(positions, split)
            tested = np.concatenate([part.test for part in parts])
            assert score["n_tested"] == len(tested)
            error = np.abs(tested - score["guess"]).mean()
            # Each of the five folds has a guess of its own, a few positions from their mean, where the line is.
            exact = ROUNDING if split != "folds" else 0.01 * table["n_positions"]
            assert error == pytest.approx(score["constant"], abs=exact), (table["name"], split)


def test_the_fitted_stretch_is_named_where_there_is_one(default):
    for table in default.tables:
        fitted = {split: score["fitted"] for split, score in table["scores"].items()}
        assert fitted.pop("half") == [0, (table["n_positions"] + 1) // 2 - 1]
        assert set(map(tuple, fitted.values())) == {()}


def test_the_points_are_those_that_the_error_is_the_mean_of(small):
    """Where all tested rows are drawn, so that nothing but their rounding to tenths is between the two."""
    figure = ProbeFigure({"noise": small[1]})
    for split in ALL_SPLITS:
        score = score_in(figure, "noise", split)
        assert len(score["positions"]) == score["n_tested"]
        result = probe_table(small[0], probe="ols", split=split)
        assert score["positions"] == result.positions.tolist()
        assert np.abs(np.subtract(score["predicted"]["table"], result.predictions)).max() <= 0.05 + 1e-9
        off = np.abs(np.subtract(score["predicted"]["table"], score["positions"])).mean()
        assert off == pytest.approx(score["error"], abs=0.05 + ROUNDING)


def test_it_says_what_was_measured_and_when(studies, small):
    def about(**changes):
        return ProbeFigure({"it": replace(studies[MINILM], **changes)}).tables[0]["about"]

    study = studies[MINILM]
    assert about() == (
        f"{MINILM}, {study.revision}: {study.n_positions} rows of {study.d_model} numbers "
        f"(stored: measured {study.measured})."
    )
    commit = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
    assert about(revision=commit).startswith(f"{MINILM}, revision {commit[:10]}: ")
    assert about(untrained_rows=(511,)).endswith(
        "numbers, of which row 511 looks untrained (stored: measured 2026-11-20)."
    )
    assert "numbers, of which 3 between 7 and 511 look untrained (" in about(untrained_rows=(7, 9, 511))
    assert about(stored=False).endswith("(measured now, 2026-11-20).")
    now = ProbeFigure({"it": small[1]}).tables[0]["about"]
    assert now.endswith(f"60 rows of 8 numbers (measured now, {small[1].measured}).")


def test_names_are_short_where_they_tell_enough(small):
    names = ["gpt2", "owner/bert", "one/twin", "other/twin", "openai/whisper, decoder", "a/folder/here", "own/gpt2"]
    short = {table["name"]: table["short"] for table in ProbeFigure(dict.fromkeys(names, small[1])).tables}
    assert list(short) == names
    assert list(short.values()) == [
        *("gpt2", "bert", "one/twin", "other/twin", "whisper, decoder", "a/folder/here", "own/gpt2")
    ]


def test_no_number_is_longer_than_shown(default):
    numbers = re.findall(r"-?\d+\.\d+(?:e-?\d+)?", json.dumps([table["scores"] for table in default.tables]))
    assert numbers
    assert max(len(number.partition(".")[2]) for number in numbers) == DECIMALS


def test_without_javascript_it_is_a_table_of_the_same_numbers(default, studies):
    header, *rows = rows_of(default)
    assert "least squares from the rows" in default.fallback_html()
    assert header == ["table", "split", "test error", "constant guess", "permuted labels", "random table"]
    assert len(rows) == len(studies) * len(ALL_SPLITS)
    wanted = [(name, study.score("ols", split)) for name, study in studies.items() for split in ALL_SPLITS]
    for (name, score), (table, split, own, *baselines) in zip(wanted, rows, strict=True):
        assert (table, split) == (name, SPLITS[score.split][0])
        assert own.startswith("no test; ") == (score.split == "all")
        numbers = [float(each) for each in re.findall(r"\d+\.\d+", " ".join([own, *baselines]))]
        errors = [score.test_mae] if score.split == "all" else [score.test_mae, score.low, score.high]
        wanted_numbers = [*errors, score.constant, score.permuted_labels, score.random_table]
        assert numbers == pytest.approx(wanted_numbers, abs=0.005 + ROUNDING)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("studies", "pieces"),
    [
        ({}, ["there is no table to show", "study_table('gpt2')"]),
        (["gpt2"], ["studies is ['gpt2']", "give a Mapping"]),
        ({"gpt2": "gpt2"}, ["studies is {'gpt2': 'gpt2'}"]),
    ],
)
def test_what_cannot_be_drawn_is_an_error_that_says_why(studies, pieces):
    assert_refused(lambda: ProbeFigure(studies), *pieces)


def counted(figure):
    """How many points are beyond the chart, an eighth of the table above or below it."""
    for table in figure.tables:
        n = table["n_positions"]
        for split, score in table["scores"].items():
            for control, predicted in score["predicted"].items():
                values = np.array(predicted)
                yield {
                    "name": table["name"],
                    "split": split,
                    "control": control,
                    "drawn": len(values),
                    "above": int((values > n + n / 8).sum()),
                    "below": int((values < -n / 8).sum()),
                }


def nearest_drawn(table):
    """For each position of a table, the nearest one that has a point, by split."""
    asked = np.arange(table["n_positions"])[:, None]
    drawn = {split: np.array(score["positions"]) for split, score in table["scores"].items()}
    return {split: at[np.abs(at - asked).argmin(axis=1)].tolist() for split, at in drawn.items()}


def test_the_module(tmp_path):
    figure = ProbeFigure({**stored_studies(), "sinusoidal": study_table(sinusoidal(64, 16))})
    fixtures = {
        "state": figure.state(),
        "counts": list(counted(figure)),
        "places": [{"name": table["name"], "nearest": nearest_drawn(table)} for table in figure.tables],
    }
    private = "shown, drawn, readout, headline, range, SHAPES, COLOURS"
    run_tests("probe", tmp_path, figure.source(), fixtures, private=private)
