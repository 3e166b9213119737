"""The stored study of chapters 3 and 4: complete, and the beginning of a run can be had again."""

import pytest

from posembed import train
from posembed.experiments import interval, load_runs
from posembed.experiments.encodings import ARMS, RATES, SEEDS, TUNING_SEED, Arm, reported


@pytest.fixture(scope="module")
def runs():
    return load_runs("encodings")


def test_the_learning_rate_is_chosen_on_the_validation_text(runs):
    by_key = {run.config.key: run for run in runs}
    for arm in ARMS:
        losses = {rate: by_key[arm.config(rate, TUNING_SEED).key].metrics["validation_loss"] for rate in RATES}
        assert {run.config.learning_rate for run in reported(arm, runs)} == {min(losses, key=losses.get)}
        assert [run.config.seed for run in reported(arm, runs)] == list(SEEDS)


def test_all_losses_are_those_of_trained_models(runs):
    """Guessing by the frequency of each character costs about 3 nats; a scheme at a bad rate may do worse."""
    for arm in ARMS:
        assert interval([run.metrics["loss"] for run in reported(arm, runs)]).mean < 3.4


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
