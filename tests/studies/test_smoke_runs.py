"""Stored runs: what they gave can be had again, whole of small ones, of others the beginning."""

import math
import platform

import pytest
from smoke import RESULTS

from posembed.stored import load_runs, load_study
from posembed.training import machine, read_results
from posembed.training.machine import machine_of, versions
from studies.training.runs import train

# In nats, where the processor or torch is another one. With torch's plainest instructions in place of AVX512 these runs
# gave the same six digits.
TOLERANCE = 1e-3


@pytest.fixture
def few_tokens():
    """Stored runs are measured on all texts."""


@pytest.fixture(scope="module")
def runs():
    return {run.config.key: run for run in read_results(RESULTS / "smoke")}


KINDS = {
    "causal": lambda config: config.objective == "causal" and not config.study,
    "masked": lambda config: config.objective == "masked",
    "further": lambda config: "drops_positions" in config.study,
}


@pytest.mark.parametrize("kind", ["causal", *(pytest.param(each, marks=pytest.mark.slow) for each in [*KINDS][1:])])
def test_a_run_gives_the_stored_loss_again(runs, kind):
    config = next(run.config for run in runs.values() if KINDS[kind](run.config))
    stored, again = runs[config.key], train(config)
    names = ("loss", "validation_loss")
    if (stored.machine, stored.versions["torch"]) == (machine_of(config), versions()["torch"]):
        assert {name: again.metrics[name] for name in names} == {name: stored.metrics[name] for name in names}
        assert again.metrics["curve"] == stored.metrics["curve"]
    assert [again.metrics[name] for name in names] == pytest.approx(
        [stored.metrics[name] for name in names], abs=TOLERANCE
    )


def test_a_machine_that_does_not_tell_its_processor_is_named_by_its_architecture(monkeypatch, runs):
    config = next(iter(runs.values())).config
    monkeypatch.setattr(machine.Path, "read_text", lambda *_, **__: "processor : 0\n")
    machine._processor.cache_clear()
    try:
        assert machine_of(config) == f"{platform.machine()} CPU, 1 thread"
    finally:
        machine._processor.cache_clear()


class EnoughError(Exception):
    """Ends a run from inside."""


@pytest.mark.parametrize(
    ("study", "config"),
    [
        ("encodings", load_study("encodings").by_arm["alibi"][0].config),
        ("starts", load_study("starts").trials[-1].config),
        ("ladder", load_study("ladder").by_arm["rope, width 32"][0].config),
        ("far-questions", load_study("far-questions").by_arm["rope"][0].config),
        ("own-rates", load_study("own-rates").by_arm["t5, start B"][0].config),
        ("once-or-again", load_study("once-or-again").by_arm["4 layers, RoPE first"][0].config),
        ("length-doses", load_study("length-doses").by_arm["rope, drawn"][0].config),
        ("past-length", load_study("past-length").by_arm["fire, 32"][0].config),
        pytest.param(
            "trained-tables", load_study("trained-tables").by_arm["causal, short"][0].config, marks=pytest.mark.slow
        ),
    ],
    ids=[
        "encodings",
        "starts",
        "ladder",
        "far-questions",
        "own-rates",
        "once-or-again",
        "length-doses",
        "past-length",
        "trained-tables",
    ],
)
def test_the_beginning_of_a_stored_run_is_reproduced(study, config):
    """The curve's first point is the mean loss of the first fortieth of the steps, which take seconds."""
    (stored,) = [run for run in load_runs(study) if run.config == config]
    losses = []

    def note(step, loss):
        losses.append(loss)
        if step == math.ceil(config.steps / 40):
            raise EnoughError

    with pytest.raises(EnoughError):
        train(config, progress=note)
    # Another processor adds in another order; so few steps amplify that little. Another seed is off by several times as
    # much.
    assert sum(losses) / len(losses) == pytest.approx(stored.metrics["curve"][0], abs=2e-3)
