"""All runs that the NoPos study plans, with invented errors, for figures that show them."""

from dataclasses import replace

from posembed import RunResult
from posembed.training.nopos import PARTS, SCHEMES
from studies.inspections import steps_watched
from studies.settings import setting

ALL = {part.name: part for parts in PARTS.values() for part in parts}
RATE = 1e-2


def invented_error(config, step, layer):
    """What a probe finds there; no two runs, steps or layers have the same."""
    share = 1.2 + 0.02 * config.seed - (0.9 - 0.15 * SCHEMES.index(config.scheme)) * layer / config.n_layers
    share += 0.003 * config.seed**2 * layer + 0.1 * (config.objective == "masked")
    return round(config.length / 4 * (share - 0.2 * step / config.steps), 4)


def _probed(config, step):
    errors = [invented_error(config, step, layer) for layer in range(config.n_layers + 1)]
    guesses = {"middle_guess": config.length / 4, "random_guess": (config.length**2 - 1) / (3 * config.length)}
    return {"mae": errors, **guesses}


def watched_steps():
    """All steps at which the runs that are watched are probed."""
    config = ALL["causal, nopos, watched"].runs[0]
    return [0, *steps_watched(config), config.steps]


def _result(config):
    metrics = {"validation_loss": abs(config.learning_rate - RATE)}
    if "layers" in setting(config, "inspections"):
        metrics["layers"] = _probed(config, config.steps)
    if "untrained" in setting(config, "inspections"):
        metrics["untrained"] = _probed(config, 0)
    if "watched" in setting(config, "inspections"):
        metrics["watched"] = {str(step): _probed(config, step) for step in steps_watched(config)}
    return RunResult(config, metrics, {}, "a machine", 1.0)


def invented_runs(*, without=()):
    """All runs, and those that chose their rates, but for the reported ones of the parts that are named."""
    tuned = {config.key: _result(config) for part in ALL.values() for config in part.tuning}
    parts = [part for name, part in ALL.items() if name not in without]
    return [*tuned.values(), *(_result(replace(run, learning_rate=RATE)) for part in parts for run in part.runs)]
