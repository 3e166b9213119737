"""The loss past the trained length in three ways, where it is known; and the contrasts in miniature."""

from dataclasses import replace

import pytest
import torch

from posembed import RunResult
from posembed.training import RunConfig
from studies import past_length
from studies.training import far
from studies.training.far import inspect_far
from studies.training.runs import make_model, train

TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "length": 32, "steps": 3, "batch_size": 4, "warmup": 1}


@pytest.fixture(autouse=True)
def few_texts(monkeypatch):
    monkeypatch.setattr(far, "TEXTS", 4)
    monkeypatch.setattr(far, "LENGTH", 128)


@pytest.mark.parametrize("scheme", ["nopos", "alibi"])
def test_up_to_the_trained_length_all_ways_are_one(corpus, scheme):
    config = RunConfig(scheme=scheme, **TINY)
    found = inspect_far(make_model(config, corpus), config, corpus)
    assert {len(each) for each in found.values()} == {8}
    assert found["last"][:2] == found["as it is"][:2] == pytest.approx(found["blocks"][:2], abs=1e-4)
    assert found["last"][2:] != found["as it is"][2:] != found["blocks"][2:]


def test_a_model_that_looks_at_itself_alone_loses_nothing_by_either(corpus):
    """Its attention gives nothing, so what stands further back does not matter."""
    config = RunConfig(**TINY)
    model = make_model(config, corpus)
    for layer in model.transformer.layers:
        torch.nn.init.zeros_(layer.attention.output.weight)
    found = inspect_far(model, config, corpus)
    for how in ("last", "blocks"):
        assert found[how] == pytest.approx(found["as it is"], abs=1e-4)


def test_the_study_in_miniature():
    results = []
    for arm in past_length.arms():
        small = replace(arm.run, **TINY)
        metrics = train(small).metrics
        metrics["far"] = {how: 2 * its for how, its in metrics["far"].items()}  # of 128 positions those of 256
        results += [RunResult(replace(arm.run, seed=n, learning_rate=1e-2), metrics, {}, "", 1.0) for n in arm.seeds]
        for rate in arm.rates:
            loss = {"validation_loss": 1.0 if rate == 1e-2 else 2.0}
            results += [RunResult(trial, loss, {}, "", 1.0) for trial in arm.trials_at(rate)]
    found = past_length.contrasts(results)
    assert len(found) == 1 + 2 + 2 * 5 and all(each.n == 5 for each in found.values())
    thresholds = [arm.run.scheme_options for arm in past_length.arms() if arm.run.scheme == "fire"]
    assert thresholds == [{}, {"fire": {"threshold": 32}}]
