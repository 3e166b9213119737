"""Small runs that are stored, for tests that have them again."""

from functools import partial
from pathlib import Path

import pytest

from posembed.training import read_results, run_and_store
from posembed.training.machine import machine_of, versions
from studies.training.runs import train

RESULTS = Path(__file__).resolve().parents[1] / "results"
TINY = {"n_layers": 2, "d_model": 16, "n_heads": 2, "batch_size": 8, "steps": 20, "warmup": 5, "preset": "smoke"}
# In nats, where the processor or torch is another one.
TOLERANCE = 1e-3


def check(config, study, folder, **options):
    """A run gives what is stored: exactly where processor and torch are the same. Return what it gives."""
    (stored,) = [result for result in read_results(RESULTS / study) if result.config == config]
    again = run_and_store(config, folder, **options, train=partial(train, folder=folder))
    if (stored.machine, stored.versions["torch"]) == (machine_of(config), versions()["torch"]):
        assert again.metrics == stored.metrics
    for name in ("loss", "validation_loss"):
        assert again.metrics[name] == pytest.approx(stored.metrics[name], abs=TOLERANCE)
    return again
