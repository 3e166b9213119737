"""What is asked of a trained model beyond its loss."""

import copy
import json

import pytest
import torch

from posembed.data import windows_in_order
from posembed.mechanisms import shuffled_prefix
from posembed.models import drop_positions
from posembed.probing import probe_layers
from posembed.training import Causal
from posembed.training.measure import loss_of
from studies.training import inspections
from studies.training.inspections import inspect_model
from studies.training.runs import StudyTraining, make_model, train
from studies.training.settings import run_of

SMALL = {"n_layers": 2, "d_model": 16, "n_heads": 2, "length": 16, "batch_size": 8, "steps": 30, "warmup": 5}


def found(model, config, corpus):
    return inspect_model(model.eval(), lambda: make_model(config, corpus), config, corpus, Causal())


def test_layers_are_those_of_the_probe(corpus):
    config = run_of(scheme="learned", inspections=("layers",), seed=3, **SMALL)
    model = make_model(config, corpus)
    stored = found(model, config, corpus)["layers"]
    texts = windows_in_order(corpus.validation, 16, 128)
    probed = probe_layers(
        model, texts, test_ids=windows_in_order(corpus.test, 16, 64), steps=150, control=False, seed=3
    )
    assert stored["mae"] == pytest.approx(probed.errors, rel=1e-4)
    assert (stored["random_guess"], stored["middle_guess"]) == (probed.random_guess, probed.middle_guess)
    assert stored["example_predictions"] == probed.example_predictions.tolist()
    assert [len(row) for row in stored["by_position"]] == [16, 16, 16]


def test_the_untrained_model_is_the_one_that_the_run_began_with(corpus):
    config = run_of(inspections=("layers", "untrained"), seed=2, **{**SMALL, "learning_rate": 1e-12})
    metrics = train(config).metrics
    # A rate so low leaves it as it was, to rounding.
    assert metrics["untrained"]["mae"] == pytest.approx(metrics["layers"]["mae"], abs=0.05)
    other = run_of(inspections=("layers", "untrained"), seed=2, **{**SMALL, "learning_rate": 0.03})
    trained = train(other).metrics
    assert trained["untrained"] == metrics["untrained"]
    assert trained["layers"] != trained["untrained"]


def test_prefix_is_the_loss_of_the_last_token_in_two_kinds_of_shuffles(corpus):
    config = run_of(scheme="rope", inspections=("prefix",), seed=1, **SMALL)
    model = make_model(config, corpus).eval()
    stored = found(model, config, corpus)["prefix"]
    texts = windows_in_order(corpus.test, 16, inspections.PREFIXES)
    whole, kept = shuffled_prefix(model, texts, seed=1), shuffled_prefix(model, texts, keep=8, seed=1)
    wanted = {"intact": whole.intact, "shuffled": whole.shuffled, "shuffled but for the last 8": kept.shuffled}
    assert stored == pytest.approx(wanted, abs=1e-5)


def test_dropped_is_the_loss_without_positions_and_the_model_keeps_its_own(corpus):
    config = run_of(scheme="learned", inspections=("dropped",), test_length=32, **SMALL)
    model = train(config).model.eval()
    before = loss_of(model, corpus.test, Causal(), 16)
    stored = found(model, config, corpus)["dropped"]
    assert loss_of(model, corpus.test, Causal(), 16) == before
    drop_positions(model.transformer)
    assert stored["loss"] == loss_of(model, corpus.test, Causal(), 16) != before
    assert len(stored["loss_by_position"]) == 2


WATCHED = {**SMALL, "steps": 32, "inspections": ("layers", "watched")}


def test_layers_are_watched_on_the_way_and_the_training_is_as_it_was(corpus):
    watched = train(run_of(**WATCHED)).metrics["watched"]
    assert list(watched) == ["1", "4", "16"]
    shorter = train(run_of(**{**SMALL, "steps": 32}))
    assert train(run_of(**WATCHED)).metrics["loss"] == shorter.metrics["loss"]
    # The model after four steps is the one that a run to the fourth step has.
    config, states = run_of(**WATCHED), []
    training = StudyTraining(make_model(config, corpus), corpus, config)
    training.run(lambda: states.append(copy.deepcopy(training.model.state_dict())))
    model = make_model(config, corpus)
    model.load_state_dict(states[3])
    assert watched["4"] == found(model, run_of(**{**WATCHED, "inspections": ("layers",)}), corpus)["layers"]


def test_a_run_stores_what_was_asked_for_and_nothing_else():
    result = train(run_of(inspections=("layers", "prefix", "dropped"), **SMALL))
    assert json.loads(json.dumps(result.metrics)) == result.metrics
    plain = train(run_of(**SMALL))
    assert set(result.metrics) - set(plain.metrics) == {"layers", "prefix", "dropped"}
    # The training itself is not touched.
    assert result.metrics["loss"] == plain.metrics["loss"]
    pairs = zip(result.model.state_dict().values(), plain.model.state_dict().values(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
