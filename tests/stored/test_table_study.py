"""Studies of position tables: the numbers of the probes, kept whole, and the same again when they are measured anew."""

import hashlib
import json
import math
import re
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refused
from tool import ROOT

from posembed import load_table, probe_table, properties, sinusoidal
from posembed.errors import PositionTableError, ProbeInputError, RunError
from posembed.probing import SPLITS, random_tables_like, spectrum
from posembed.stored import (
    CONTROLS,
    load_runs,
    read_studies,
    stored_studies,
    study_table,
    write_study,
)
from posembed.stored.table_study import N_DOTS, N_POINTS, STUDIED, _shuffled

RESULTS, STORED = ROOT / "results" / "tables", ROOT / "posembed" / "stored" / "tables"
COMBINATIONS = [(probe, split) for probe in STUDIED for split in SPLITS]


@pytest.fixture(scope="module")
def weight():
    """A sinusoid with noise: what a probe finds easy, what it finds hard, and more rows than a picture shows."""
    noise = torch.randn(300, 16, generator=torch.Generator().manual_seed(0))
    return sinusoidal(300, 16) + 0.3 * noise


@pytest.fixture(scope="module")
def study(weight):
    return study_table(weight)


@pytest.mark.parametrize(("probe", "split"), COMBINATIONS)
def test_scores_are_those_of_the_probe(study, weight, probe, split):
    score, result = study.score(probe, split), probe_table(weight, probe=probe, split=split)
    assert (score.train_mae, score.test_mae) == (result.train_mae, result.test_mae)
    assert (score.low, score.high) == (result.interval.low, result.interval.high)
    baselines = result.baselines
    assert (score.constant, score.permuted_labels) == (baselines.constant, baselines.permuted_labels)
    assert score.random_table == baselines.random_table
    assert score.held_out == (split != "all")
    assert list(score.by_region) == [tuple(region) for region in result.by_region]


@pytest.mark.parametrize(("probe", "split"), COMBINATIONS)
def test_points_are_predictions_of_the_table_and_of_two_that_know_nothing(study, weight, probe, split):
    (random,) = random_tables_like(weight.double().numpy(), 1)
    tables = (weight, weight[_shuffled(300, split)], torch.from_numpy(random))
    points = study.score(probe, split).points
    assert tuple(points) == CONTROLS
    for name, table in zip(CONTROLS, tables, strict=True):
        result = probe_table(table, probe=probe, split=split)
        predicted = dict(zip(result.positions.tolist(), result.predictions, strict=True))
        assert all(abs(predicted[at] - value) < 0.0501 for at, value in points[name])
        assert all(value == round(value, 1) for _, value in points[name])


@pytest.mark.parametrize(("probe", "split"), COMBINATIONS)
def test_points_are_spread_evenly_over_what_was_tested(study, weight, probe, split):
    tested = probe_table(weight, probe=probe, split=split).positions.tolist()
    for points in study.score(probe, split).points.values():
        at = [position for position, _ in points]
        assert len(at) == N_POINTS < len(tested)
        assert (at[0], at[-1]) == (tested[0], tested[-1])
        steps = np.diff([tested.index(position) for position in at])
        assert steps.min() >= 1 and steps.max() - steps.min() <= 1


def test_rows_are_dealt_out_anew_and_in_halves_where_one_half_is_not_to_see_the_other():
    order, halves = _shuffled(101, "folds"), _shuffled(101, "half")
    for shuffled in (order, halves):
        assert sorted(shuffled) == list(range(101))
        assert np.abs(shuffled - np.arange(101)).mean() > 10
    assert set(halves[:51]) == set(range(51))
    assert set(order[:51]) != set(range(51))


def test_the_rest_is_that_of_the_properties_and_of_the_spectrum(study, weight):
    assert study.monotonicity == {
        "50": properties(weight, max_offset=50).monotonicity,
        "all": properties(weight).monotonicity,
    }
    assert study.monotonicity["50"] != study.monotonicity["all"]
    assert study.translation_invariance == properties(weight).translation_invariance
    found = spectrum(weight)
    assert list(study.explained_variance) == found.explained_variance_ratio[:10]
    assert study.effective_rank == found.effective_rank
    assert (study.n_positions, study.d_model, study.offset, study.rows) == (300, 16, 0, (0, 300))
    assert not study.stored


def test_a_helix_is_kept_where_there_is_one(study, weight):
    assert study.helix is None and spectrum(weight).helix is None
    found, helix = study_table(sinusoidal(300, 2)).helix, spectrum(sinusoidal(300, 2)).helix
    assert found == {"components": list(helix.components), "period": helix.period, "share": helix.share}


def test_what_the_table_itself_says():
    embedding = torch.nn.Embedding(42, 16, padding_idx=1)
    table = load_table(embedding)
    found = study_table(embedding)
    assert (found.offset, found.n_positions) == (2, 40)
    # Rows as they were drawn look like rows that nothing has trained.
    assert list(found.untrained_rows) == table.untrained_rows
    assert (found.source, found.revision) == (table.source, "not from the hub")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", found.measured)


def test_the_digest_is_of_the_rows_as_little_endian_float32(study, weight):
    packed = b"".join(struct.pack("<16f", *row) for row in weight.tolist())
    assert study.sha256 == hashlib.sha256(packed).hexdigest()
    assert study_table(weight.double()).sha256 == study.sha256
    assert study_table(weight + 1e-3).sha256 != study.sha256


def test_heat_maps_are_of_the_first_rows_and_of_rows_over_the_whole_table(study, weight):
    first, even = study.products["first"], study.products["even"]
    assert first.positions == tuple(range(N_DOTS))
    assert (len(even.positions), even.positions[0], even.positions[-1]) == (N_DOTS, 0, 299)
    assert {4, 5} == set(np.diff(even.positions))
    for products in (first, even):
        exact = (weight[list(products.positions)].double() @ weight[list(products.positions)].double().T).numpy()
        digit = 10.0 ** (math.floor(math.log10(np.abs(exact).max())) - 3)
        assert np.abs(np.array(products.dots) - exact).max() <= 0.5001 * digit
        assert np.array_equal(products.dots, np.transpose(products.dots))


def test_a_short_table_shows_all_it_has():
    found = study_table(sinusoidal(20, 8))
    assert found.products["first"] == found.products["even"]
    assert found.products["even"].positions == tuple(range(20))
    assert [at for at, _ in found.score("ols", "all").points["table"]] == list(range(20))
    assert len(found.explained_variance) == 8


@pytest.mark.parametrize("table", [torch.zeros(12, 4), torch.ones(12, 4)], ids=["zeros", "ones"])
def test_what_is_undefined_stays_so_in_a_file(tmp_path, table):
    found = study_table(table)
    assert math.isnan(found.translation_invariance)
    write_study(found, tmp_path)
    (back,) = read_studies(tmp_path).values()
    assert math.isnan(back.translation_invariance)
    assert replace(back, translation_invariance=0.0) == replace(found, translation_invariance=0.0)


def test_a_study_comes_back(study, tmp_path):
    named = replace(study, source="someone/some-model, decoder")
    path = write_study(named, tmp_path)
    assert path.name == "someone--some-model--decoder.json"
    assert read_studies(tmp_path) == {"someone/some-model, decoder": named}
    assert read_studies(tmp_path, stored=True) == {named.source: replace(named, stored=True)}
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


DAMAGED = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "no text": lambda text: "\udcff",
    "another form": lambda text: "[]",
    "another value": lambda text: "null",
    "without a format": lambda text: text.replace('"format":1,', ""),
    "without scores": lambda text: text.replace('"scores"', '"score"'),
    "without a digest": lambda text: re.sub(r'"sha256":"\w+",', "", text),
    "with something new": lambda text: text.replace('"offset"', '"flux":1,"offset"'),
    "points of one control": lambda text: text.replace('"random table"', '"other table"', 1),
    "too few points": lambda text: re.sub(r'"at":\[0,', '"at":[', text, count=1),
    "a row of a heat map too short": lambda text: re.sub(r'"rows":\[\[[^]]+\],', '"rows":[[],', text, count=1),
}


@pytest.mark.bad_input
@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_study_is_an_error_and_stays(study, tmp_path, damage):
    path = write_study(replace(study, source="mine"), tmp_path)
    text = damage(path.read_text())
    assert text != path.read_text()
    path.write_text(text, errors="surrogateescape")
    assert (
        refused(RunError, read_studies, tmp_path) == "mine.json is damaged, or of another kind; measure the table again"
    )
    assert path.read_text(errors="surrogateescape") == text


@pytest.mark.bad_input
def test_a_study_of_a_newer_version_is_an_error(study, tmp_path):
    path = write_study(replace(study, source="mine"), tmp_path)
    path.write_text(path.read_text().replace('"format":1', '"format":2'))
    wanted = "mine.json: it has format 2, this version of posembed reads 1; upgrade posembed"
    assert refused(RunError, read_studies, tmp_path) == wanted


@pytest.mark.bad_input
def test_what_is_no_file_or_no_table_is_an_error(tmp_path):
    (tmp_path / "mine.json").mkdir()
    assert "mine.json cannot be read (" in refused(RunError, read_studies, tmp_path)
    for source, error in (
        (sinusoidal(4, 8), ProbeInputError),
        (torch.full((20, 8), torch.nan), PositionTableError),
        (torch.nn.Linear(3, 3), PositionTableError),
    ):
        refused(error, study_table, source)


def test_the_package_ships_what_results_hold():
    kept, shipped = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (RESULTS, STORED))
    assert kept == shipped, "run tools/results.py"
    assert list(stored_studies()) == list(read_studies(RESULTS))


def test_stored_tables_are_not_taken_for_runs():
    assert " tables" not in refused(RunError, load_runs, "tables").partition("there are:")[2]


def test_each_stored_study_is_complete_and_says_what_was_measured():
    studies = stored_studies()
    assert {"gpt2", "sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers/all-mpnet-base-v2"} <= set(studies)
    for study in studies.values():
        assert study.stored
        assert [(score.probe, score.split) for score in study.scores] == COMBINATIONS
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", study.measured)
        assert re.fullmatch(r"[0-9a-f]{64}", study.sha256)
        # Who reads it must be able to find the weights, and no folder of a machine helps with that.
        assert study.revision not in ("", "not from the hub")
        assert not re.search(r"(^|\s)[/~\\]|[A-Z]:\\", f"{study.source} {study.revision}")
        assert min(study.explained_variance) >= 0 and sum(study.explained_variance) <= 1 + 1e-9


def assert_same_numbers(found, stored):
    """Another processor adds in another order.

    Errors are means of hundreds of predictions and agree to far more digits than this. A prediction that lies between
    two tenths may be rounded to either, and a dot product likewise; the strength of a ridge is one of a few, and each
    gives other numbers. Permutations, folds or random tables of another seed would be off by percents.
    """
    assert found.sha256 == stored.sha256
    for name in ("n_positions", "d_model", "offset", "untrained_rows", "rows"):
        assert getattr(found, name) == getattr(stored, name)
    for mine, theirs in zip(found.scores, stored.scores, strict=True):
        for name in ("train_mae", "test_mae", "low", "high", "constant", "permuted_labels", "random_table"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-6, abs=1e-6), (mine.probe, name)
        assert np.array(mine.by_region) == pytest.approx(np.array(theirs.by_region), rel=1e-6, abs=1e-6)
        for name in CONTROLS:
            assert np.array(mine.points[name]) == pytest.approx(np.array(theirs.points[name]), rel=1e-6, abs=0.1001)
    assert found.monotonicity == pytest.approx(stored.monotonicity, rel=1e-6)
    assert found.translation_invariance == pytest.approx(stored.translation_invariance, rel=1e-6)
    assert found.explained_variance == pytest.approx(stored.explained_variance, rel=1e-6)
    assert found.effective_rank == pytest.approx(stored.effective_rank, rel=1e-6)
    assert (found.helix is None) == (stored.helix is None)
    if stored.helix is not None:
        assert found.helix["components"] == stored.helix["components"]
        assert found.helix["period"] == pytest.approx(stored.helix["period"], rel=1e-5)
    for name, products in stored.products.items():
        assert found.products[name].positions == products.positions
        digit = 10.0 ** (math.floor(math.log10(np.abs(products.dots).max())) - 3)
        assert np.abs(np.array(found.products[name].dots) - products.dots).max() < 1.001 * digit


def test_the_stored_study_of_the_encoder_is_measured_again(encoder):
    stored = stored_studies()["sentence-transformers/all-MiniLM-L6-v2"]
    assert_same_numbers(study_table(encoder.model), stored)


def test_the_stored_study_of_gpt2_is_measured_again(gpt2_table):
    assert_same_numbers(study_table(gpt2_table), stored_studies()["gpt2"])
