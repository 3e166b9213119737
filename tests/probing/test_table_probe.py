"""The probe of a table and what stands beside its score."""

import warnings

import numpy as np
import pytest
import torch
from probing_tables import linear_table, random_table
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, r2_score
from small_models import build

from posembed.probing import PROBES, SPLITS, mean_interval, probe_table, split_rows
from posembed.similarity import properties
from posembed.tables import load_table

every_probe = pytest.mark.parametrize("probe", PROBES)
every_split = pytest.mark.parametrize("split", SPLITS)
FAST = ["ols", "ridge"]


@every_split
@pytest.mark.parametrize("rows", [None, (5, 50)])
def test_its_figures_are_those_of_scikit_learn(split, rows):
    """Of least squares, by a separate fit to each part."""
    table = linear_table(60, 20, noise=5.0)
    result = probe_table(table, probe="ols", split=split, rows=rows, seed=4)
    positions = np.arange(60) if rows is None else np.arange(*rows)
    x, predictions, train = table[positions], np.full(len(positions), np.nan), []
    parts = split_rows(positions, split, seed=4)
    for part in parts:
        model = LinearRegression().fit(x[part.train], positions[part.train])
        predictions[part.test] = model.predict(x[part.test])
        train.append(mean_absolute_error(positions[part.train], model.predict(x[part.train])))
    tested = ~np.isnan(predictions)
    np.testing.assert_array_equal(result.positions, positions[tested])
    np.testing.assert_allclose(result.predictions, predictions[tested], rtol=1e-8)
    assert result.test_mae == pytest.approx(mean_absolute_error(positions[tested], predictions[tested]))
    assert result.r2 == pytest.approx(r2_score(positions[tested], predictions[tested]))
    assert result.train_mae == pytest.approx(np.mean(train), abs=1e-9)
    assert (result.n_rows, result.d_model, result.held_out) == (len(positions), 20, split != "all")
    assert set(result.train_positions) == {p for part in parts for p in positions[part.train]}


@every_probe
def test_what_is_in_the_table_is_read_and_what_is_not_is_not(probe):
    """A line with a little noise, in 24 of its directions; and nothing, where no control can be worse."""
    known = probe_table(linear_table(60, noise=0.05), probe=probe, split="folds")
    assert known.test_mae < 1.5 and known.r2 > 0.99
    controls = known.baselines
    assert min(controls.constant, controls.permuted_labels, controls.random_table) > 10
    nothing = probe_table(random_table(60, seed=5), probe=probe, split="folds")
    assert nothing.test_mae > 0.8 * nothing.baselines.constant
    assert nothing.r2 < 0.2


# So many that chance, a quarter of them between seen rows and half of them beyond, is far from no error.
N = 200


@every_split
@pytest.mark.parametrize("probe", FAST)
def test_controls_are_no_better_than_chance(probe, split):
    """On rows not seen. "all" is no test: with more columns than rows any labels are learned by heart."""
    result = probe_table(linear_table(N, 300, noise=0.1), probe=probe, split=split)
    controls = result.baselines
    if split == "all":
        assert not result.held_out
        if probe == "ols":
            assert max(result.test_mae, controls.permuted_labels, controls.random_table) < 1e-6
        return
    spread = 4 * np.std(controls.permuted_labels_runs) / len(controls.permuted_labels_runs) ** 0.5
    assert controls.permuted_labels > controls.constant - spread - 2
    assert controls.random_table > 0.9 * controls.constant
    assert result.test_mae < 0.1 * controls.constant


@every_probe
def test_from_half_to_half_permuted_labels_extrapolate_as_the_score_does(probe):
    """Dealt out over all rows they would be guessed by a constant with an error of a quarter of the range."""
    controls = probe_table(np.ones((N, 3)), probe=probe, split="half").baselines
    assert controls.permuted_labels_runs == pytest.approx([controls.constant] * len(controls.permuted_labels_runs))
    assert controls.constant == N / 2


@every_probe
def test_each_control_is_run_several_times(probe):
    controls = probe_table(random_table(30, 4), probe=probe, split="even-odd").baselines
    for runs, mean in (
        (controls.permuted_labels_runs, controls.permuted_labels),
        (controls.random_table_runs, controls.random_table),
    ):
        assert len(runs) == len(set(runs)) >= 2
        assert mean == pytest.approx(np.mean(runs))


def test_regions_are_eighths_that_together_are_the_error():
    result = probe_table(linear_table(80, noise=5.0), probe="ols", split="folds")
    assert [region.start for region in result.by_region] == list(range(0, 80, 10))
    assert [region.stop for region in result.by_region] == list(range(10, 81, 10))
    assert np.mean([region.mae for region in result.by_region]) == pytest.approx(result.test_mae)
    errors = np.abs(result.predictions - result.positions)
    assert result.by_region[3].mae == pytest.approx(errors[30:40].mean())


def test_regions_without_tested_rows_are_left_out():
    regions = probe_table(linear_table(80), probe="ols", split="half").by_region
    assert [(region.start, region.stop) for region in regions] == [(40, 50), (50, 60), (60, 70), (70, 80)]
    few = probe_table(linear_table(5), probe="ols", split="even-odd").by_region
    assert [(region.start, region.stop) for region in few] == [(1, 2), (3, 4)]


def test_the_interval_is_that_of_the_errors_in_the_order_of_positions():
    result = probe_table(linear_table(80, noise=5.0), probe="ols", split="folds", seed=3)
    errors = np.abs(result.predictions - result.positions)
    assert result.interval == mean_interval(errors, seed=3)
    assert result.interval.low < result.test_mae < result.interval.high


@every_probe
def test_the_seed_decides_everything(probe):
    table = linear_table(30, 6, noise=3.0)
    kept = table.copy()
    first, again, other = (probe_table(table, probe=probe, split="folds", seed=seed).to_dict() for seed in (0, 0, 1))
    assert first == again
    assert first["baselines"] != other["baselines"] and first["predictions"] != other["predictions"]
    np.testing.assert_array_equal(table, kept)


def test_a_table_of_patches_says_that_it_is_read_as_a_line():
    said = (
        "1 of class tokens, then a grid of 2 x 2 patches, read as one line: a patch is 2 positions from the one below"
    )
    model = build("vit")
    for measure in (probe_table, properties):
        with pytest.warns(RuntimeWarning, match=said):
            measure(model)
    oblong = {
        "position_embeddings": torch.eye(25),
        "cls_token": torch.zeros(1, 1, 25),
        "patch.weight": torch.zeros(25, 3, 4, 4),
    }
    with pytest.warns(RuntimeWarning, match="1 of class tokens, then patches in a grid that is not known, read as one"):
        properties(load_table(oblong))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probe_table(linear_table(20))


def test_a_part_of_a_model_is_chosen_as_for_its_table():
    model = build("clip")
    assert probe_table(model, part="text", probe="ols").n_rows == load_table(model, part="text").n_positions


def test_a_control_far_beyond_the_table_is_explained():
    """A polynomial of degree 15 that fits permuted labels of one half of the rows goes anywhere in the other."""
    table = np.linspace(0.0, 1.0, 80)[:, None] ** np.arange(16)
    result = probe_table(table, probe="ols", split="half")
    assert result.baselines.permuted_labels > 1000 > 80 > result.test_mae
    assert "a control lies far beyond the 80 positions: with labels that it cannot read" in str(result)
    assert result.remark == str(result).splitlines()[-1].strip()
    assert probe_table(linear_table(80), probe="ols", split="half").remark == ""
