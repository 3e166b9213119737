"""Training on tasks."""

from dataclasses import replace

import pytest
import torch
from refusals import refused

from posembed.data import synthetic_task
from posembed.data.synthetic_tasks import RULES
from posembed.errors import PropertiesInputError, TaskError
from posembed.similarity import perturbed_bias
from posembed.training import run_grid
from studies.training.runs import make_model, train
from studies.training.settings import run_of
from studies.training.tasks import measure_task

TINY = {"objective": "task", "n_layers": 1, "d_model": 8, "n_heads": 2, "steps": 3, "batch_size": 4, "warmup": 1}


@pytest.mark.parametrize("name", RULES)
def test_every_made_task_is_trained_on_with_any_scheme(name):
    config = run_of(task=name, scheme="rope", length=32, **TINY)
    result, again, other = train(config), train(config), train(replace(config, seed=1))
    assert result.metrics == again.metrics and result.metrics["curve"] != other.metrics["curve"]
    assert 0 <= result.metrics["accuracy"] <= 1
    assert result.metrics["baseline"] == pytest.approx(synthetic_task(name).baseline, abs=1e-6)


def test_a_task_is_learned():
    """What a bias that falls with the distance gives at once: a symbol at distance 1, but for the direction."""
    easy = {"objective": "task", "task": "majority", "difficulty": 2, "dose": {}, "length": 8}
    sizes = {"n_layers": 1, "d_model": 16, "n_heads": 2, "weight_std": 0.25, "scale_embeddings": False}
    result = train(run_of(**easy, **sizes, steps=80, warmup=5, learning_rate=1e-2))
    assert result.metrics["accuracy"] > 0.95 > 0.6 > result.metrics["baseline"]


def test_a_run_on_a_task_is_stored_taken_up_and_read_like_any_other(tmp_path):
    config = run_of(task="span", dose={"symmetry": 12.0}, length=32, **TINY)
    (stored,) = run_grid([config], engine="serial", out=tmp_path, save_models=True, train=train)
    assert stored.config == config and stored.metrics == train(config).metrics
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}


def test_the_dose_is_the_models_only_position():
    for dose, violated in (({}, ("symmetry", 0)), ({"monotonicity": 24.0}, ("monotonicity", 24))):
        config = run_of(task="order", dose=dose, length=32, **TINY)
        model = make_model(config, synthetic_task("order"))
        scheme = model.transformer.position_scheme
        expected = torch.tensor([1.0, 0.5])[:, None, None] * perturbed_bias(*violated)
        assert torch.equal(scheme.biases, expected.float())


def test_the_measures_of_a_model_that_is_always_right():
    class Oracle(torch.nn.Module):
        def forward(self, ids, positions, attention_mask):
            labels = RULES["lookup"].label(ids, 2)
            return 100.0 * torch.nn.functional.one_hot(labels, 4)

    found = measure_task(Oracle(), synthetic_task("lookup"), run_of(task="lookup", length=32, **TINY))
    assert (found["accuracy"], found["validation_accuracy"], found["loss"]) == (1, 1, 0)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("error", "options", "message"),
    [
        (
            TaskError,
            {"task": "glue"},
            "there is no task 'glue'; choose among majority, order, distance, lookup, first, span, sst2",
        ),
        (TaskError, {"task": "order", "difficulty": 9}, "difficulty is 9; there are 5 marks"),
        (PropertiesInputError, {"task": "order", "dose": {"locality": 1}}, "violated is 'locality'; choose among mono"),
        (
            PropertiesInputError,
            {"task": "order", "dose": {"symmetry": 90}},
            "degrees is 90; symmetry with 64 positions",
        ),
    ],
)
def test_what_cannot_be_trained_on(error, options, message):
    assert refused(error, train, run_of(**options, **TINY)).startswith(message)
