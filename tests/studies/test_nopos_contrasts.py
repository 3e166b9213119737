"""The planned contrasts, on runs whose differences are known."""

from dataclasses import replace

import pytest
from refusals import refused

from posembed import RunConfig, RunResult
from posembed.data import frequency_loss
from posembed.errors import RunError
from studies.nopos import RATES
from studies.nopos_contrasts import BY_NAME, contrasts, loss_past, lowest_error, reported, rise_past

# What each scheme gains, in nats; what a seed adds is the same for all schemes.
GAINS = {"nopos": 0.0, "learned": 0.1, "alibi": 0.2, "rope": 0.3, "sinusoidal": 0.05}


def made(config):
    gain = GAINS.get(config.scheme, 0.0)
    loss = 2.0 + 0.01 * config.seed**2 - gain * (0.5 if config.d_model == 128 else 1.0)
    loss += 0.25 if "drops_positions" in config.study else 0.0
    metrics = {
        "loss": loss,
        "validation_loss": abs(config.learning_rate - 1e-2),
        "loss_by_position": [loss] * 4 + [loss + (1.0 if config.scheme == "learned" else 0.5)] * 12,
        "layers": {"mae": [1.0, 6.0, 4.0 + gain, 5.0], "middle_guess": 16.0},
        "untrained": {"mae": [1.0, 9.0, 8.0, 8.5]},
        "prefix": {"intact": loss, "shuffled": loss + 3.0 - gain},
    }
    return RunResult(config, metrics, {}, "", 1.0)


@pytest.fixture(scope="module")
def runs():
    tuned = [made(config) for arm in BY_NAME.values() for config in arm.trials]
    return tuned + [made(replace(run, learning_rate=1e-2)) for arm in BY_NAME.values() for run in arm.runs]


def test_every_planned_contrast_is_there_with_its_seeds(runs):
    found = contrasts(runs)
    wanted = {
        "causal: learned minus nopos": (-0.1, 5),
        "causal: rope minus nopos": (-0.3, 5),
        "larger: learned minus nopos": (-0.05, 3),
        "larger, length 256: learned minus nopos": (-0.05, 3),
        "masked: learned minus nopos": (-0.1, 5),
        "masked, 60% hidden: learned minus nopos": (-0.1, 3),
        "past the trained length: learned": (1.0, 5),
        "past the trained length: fire": (0.5, 3),
        "rope in three layers of four minus rope": (0.0, 3),
        "rope, further: without minus with": (0.25, 3),
        "rope, further without, minus nopos, past the trained length": (-0.05, 3),
        "learned, further: without minus with, past the trained length": (0.25, 3),
        "causal, probe: nopos, trained minus untrained": (-4.0, 5),
        "larger, probe: nopos minus learned": (-0.1, 3),
        "masked, probe: nopos minus the middle": (-12.0, 5),
        "causal, shuffled prefix: nopos minus learned": (0.1, 5),
    }
    for name, (mean, n) in wanted.items():
        assert (found[name].mean, found[name].n) == (pytest.approx(mean, abs=1e-9), n), name
    assert found["masked: nopos minus frequency"].mean == pytest.approx(2.11 - frequency_loss())
    # a and b, c, d, e, f, g and h.
    assert len(found) == (4 + 4) + 5 + 12 + 2 + 8 + 7


def test_the_runs_of_an_arm_have_the_rate_that_was_chosen_for_it(runs):
    found = reported("causal, rope", runs)
    assert [run.config.seed for run in found] == [1, 2, 3, 4, 5]
    assert {run.config.learning_rate for run in found} == {1e-2}
    # The rate is chosen anew, and has no runs.
    best = [made(config) for config in BY_NAME["causal, rope"].trials]
    best[0].metrics["validation_loss"] = -1.0
    best += [run for run in runs if run.config.seed]
    assert "the arm 'causal, rope' is not complete" in refused(RunError, reported, "causal, rope", best)


@pytest.mark.bad_input
def test_what_is_not_there_is_named(runs):
    short = RunResult(RunConfig(), {"loss_by_position": [1.0] * 4}, {}, "", 1.0)
    without = [run for run in runs if run.config.learning_rate != RATES[3]]
    for message, call, *arguments in (
        ("there is no arm 'causal, cape'; there are: causal, nopos; ", reported, "causal, cape", runs),
        ("the arm 'causal, nopos' is not complete; run its study, with make study", contrasts, without),
        ("has no loss at positions 64 to 511 in groups of 16; choose others", loss_past, runs[0], 64, 512),
        ("has no loss at positions 60 to 255", loss_past, runs[0], 60),
        ("has no loss at positions 128 to 63", loss_past, runs[0], 128, 64),
        ("has no loss at positions 64 to 255", rise_past, [short] * 2),
        ("at least two finite numbers, one for each seed", rise_past, runs[:1]),
        ("has no inspection 'watched'; choose one that has", lowest_error, runs[0], "watched"),
    ):
        assert message in refused(RunError, call, *arguments)
