"""The stored study of chapter 7: complete, as planned, and its contrasts are those of the stored tables."""

from pathlib import Path

import numpy as np
import pytest
import torch

from posembed.data import frequency_loss
from posembed.probing import Ridge, split_rows
from posembed.stored import load_runs, load_tables
from posembed.training import make_model, read_tables
from studies import trained_tables
from studies.trained_tables import NAME, READ, SEEDS, TRAINED, contrasts, errors

RESULTS = Path(__file__).resolve().parents[2] / "results" / NAME
ARMS = {arm.name: arm.runs for arm in trained_tables.ARMS}
ALL = [(name, seed) for name in ARMS for seed in SEEDS]
# Half precision keeps eleven binary digits.
HALF = 2.0**-11


@pytest.fixture(scope="module")
def runs():
    return {run.config.key: run for run in load_runs(NAME)}


@pytest.fixture(scope="module")
def tables():
    return load_tables(NAME)


def key(name, seed):
    return ARMS[name][seed - 1].key


def test_the_runs_and_tables_are_those_that_were_planned_and_no_others(runs, tables):
    assert set(runs) == set(tables) == set(read_tables(RESULTS)) == {key(*each) for each in ALL}


def test_arms_differ_in_what_they_are_named_for_alone():
    configs = {name: ARMS[name][0].told for name in ARMS}
    plain = configs["causal, long"]
    differences = {name: {each for each, _ in config.items() ^ plain.items()} for name, config in configs.items()}
    assert differences == {
        "masked, long": {"objective", "masking_rate"},
        "masked, short": {"objective", "masking_rate", "short_length", "short_share"},
        "causal, long": set(),
        "causal, short": {"short_length", "short_share"},
        "causal, long, few guesses": {"guessed_share"},
    }
    assert configs["causal, long, few guesses"]["guessed_share"] == configs["masked, long"]["masking_rate"]


@pytest.mark.parametrize(("name", "seed"), ALL)
def test_each_run_is_as_planned_and_its_table_is_the_one_that_it_noted(runs, tables, name, seed):
    config = ARMS[name][seed - 1]
    run, table = runs[config.key], tables[config.key]
    assert (run.config, table.shape) == (config, (TRAINED, config.d_model))
    # The lengths of the rows were noted by the run itself, before the table was rounded to half precision.
    assert table.norm(dim=1).tolist() == pytest.approx(run.metrics["scheme"]["row_norms"], rel=HALF, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_arms_with_one_seed_began_with_one_table(corpus, seed):
    weights = [make_model(runs[seed - 1], corpus).transformer.position_scheme.weight for runs in ARMS.values()]
    assert all(torch.equal(weights[0], weight) for weight in weights)


@pytest.mark.parametrize(("name", "seed"), ALL)
def test_every_row_was_trained_but_the_last_of_causal_models(corpus, tables, name, seed):
    """That row is why the probes leave position 127 out."""
    config, after = ARMS[name][seed - 1], tables[key(name, seed)]
    before = make_model(config, corpus).transformer.position_scheme.weight.detach().half().float()
    moved = (after - before).norm(dim=1) > 0.1 * before.norm(dim=1)
    assert moved[:READ].all()
    assert moved[READ] if config.objective == "masked" else torch.equal(after[READ], before[READ])


def test_all_models_do_better_than_by_the_frequency_of_characters(runs):
    for run in runs.values():
        assert run.metrics["loss"] < frequency_loss()
        assert run.metrics["curve"][-1] < run.metrics["curve"][0]
    late = [run.config for run in runs.values() if run.metrics["loss"] >= frequency_loss() - 0.3]
    # Chapter 7 says of the masked models with long texts that one of the five has hardly begun.
    assert [(config.objective, config.study.get("short_length")) for config in late] == [("masked", None)]


def test_errors_are_those_of_a_ridge_with_five_folds_at_each_position(tables):
    weight = tables[key("masked, short", SEEDS[2])][:READ].double().numpy()
    positions = np.arange(float(READ))
    expected = np.empty(READ)
    for part in split_rows(np.arange(READ), "folds"):
        fitted = Ridge(seed=0).fit(weight[part.train], positions[part.train, None])
        expected[part.test] = np.abs(fitted.predict(weight[part.test])[:, 0] - positions[part.test])
    found = errors([tables[key("masked, short", seed)] for seed in SEEDS])
    assert found.shape == (len(SEEDS), READ)
    assert found[2] == pytest.approx(expected, rel=1e-9)


def test_contrasts_take_the_head_and_the_tail_at_the_length_of_the_short_texts(monkeypatch, runs, tables):
    """Made errors: of the short arms 1 more at position 31, 10 more at 32 and 100 more at 126."""
    made = {name: np.zeros((5, READ)) for name in ARMS}
    for name in ("masked, short", "causal, short"):
        made[name][:, [31, 32, 126]] = [1.0, 10.0, 100.0]
    made["masked, long"] += 3.0
    made["causal, long, few guesses"] += 1.0
    in_turn = iter(made.values())
    monkeypatch.setattr(trained_tables, "errors", lambda _: next(in_turn))
    found = contrasts([*runs.values()], tables)
    assert {name: (interval.mean, interval.n) for name, interval in found.items()} == {
        "masked, tail: short minus long": (pytest.approx(110 / 95 - 3), 5),
        "causal, tail: short minus long": (pytest.approx(110 / 95), 5),
        "masked, head: short minus long": (pytest.approx(1 / 32 - 3), 5),
        "causal, head: short minus long": (pytest.approx(1 / 32), 5),
        "masked minus causal": (3.0, 5),
        "masked minus causal, as many guesses": (2.0, 5),
    }
