"""The trained models that ship: each is the one its run was measured on, and its card says what was measured."""

from pathlib import Path

import pytest
from refusals import refused

from posembed.data import load_corpus
from posembed.errors import RunError
from posembed.stored import MODELS, load_model, load_runs, run_of_model
from posembed.stored.studies import TRAINED_AGAIN
from posembed.training.measure import loss_of
from posembed.training.objectives import OBJECTIVES
from studies.model_cards import model_card

STORED = Path(__file__).resolve().parents[2] / "posembed" / "stored" / "models"


@pytest.fixture
def few_tokens():
    """Stored runs are measured on all texts."""


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_what_its_name_says_and_has_the_loss_of_its_run(name):
    run, model = run_of_model(name), load_model(name)
    assert (f"{run.config.objective}-{run.config.scheme}", run.config.seed) == (name, 1)
    assert model.transformer.config.causal == (run.config.objective == "causal")
    # Another processor adds in another order; a training of 1500 steps adds more of that up than a measurement.
    off = 2e-4 if name in TRAINED_AGAIN else 1e-4
    found = loss_of(model, load_corpus().test, OBJECTIVES[run.config.objective](run.config), run.config.length)
    assert found == pytest.approx(run.metrics["loss"], abs=off)


def test_the_cards_are_those_of_the_stored_runs():
    assert (STORED / "README.md").read_text(encoding="utf-8") == "\n".join(
        model_card(name, load_runs("nopos")) for name in MODELS
    )
    card, run = model_card("causal-nopos", load_runs("nopos")), run_of_model("causal-nopos")
    for said in (
        f"{run.metrics['parameters']:,} parameters",
        f"{run.metrics['tokens']:,} characters",
        f"{run.minutes:.1f} minutes",
        run.machine,
        f"| {run.metrics['loss']:.3f} nats",
        f"off by {min(run.metrics['layers']['mae'][1:]):.1f} at best; always the middle 16",
    ):
        assert said in card


def test_only_their_weights_ship_and_they_are_small():
    weights = sorted(STORED.glob("*.safetensors"))
    assert {path.stem for path in weights} == {run_of_model(name).config.key for name in MODELS}
    assert sum(path.stat().st_size for path in weights) < 4.3e6


@pytest.mark.bad_input
def test_another_name_is_an_error_that_lists_them():
    message = refused(RunError, load_model, "causal-sinusoidal")
    assert message == f"there is no model 'causal-sinusoidal'; choose among {', '.join(MODELS)}"
