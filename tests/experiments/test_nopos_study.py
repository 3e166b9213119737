"""The runs of the NoPos study that are there so far: each is one that was planned."""

from pathlib import Path

from posembed.experiments import encodings
from posembed.experiments.nopos import ARMS, LENGTHS, RATES, SEEDS, TUNING_SEED

RESULTS = Path(__file__).resolve().parents[2] / "results" / "nopos"


def test_every_stored_run_was_planned():
    stored = {path.stem for path in RESULTS.glob("*.json")}
    planned = {config.key for arm in ARMS for config in arm.tuning()}
    planned |= {arm.config(rate, seed).key for arm in (*ARMS, *LENGTHS) for rate in RATES for seed in SEEDS}
    assert stored and stored <= planned
    assert TUNING_SEED not in SEEDS


def test_the_small_causal_runs_are_those_of_the_first_study():
    assert {"nopos", "learned", "sinusoidal", "alibi", "rope"} <= {arm.scheme for arm in encodings.ARMS}
