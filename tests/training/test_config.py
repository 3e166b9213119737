"""What a run is, and what it is called."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from refusals import refused

from posembed import RunConfig, scheme
from posembed.errors import EncodingInputError, RunError
from posembed.stored import load_plan
from posembed.training.config import RETIRED

# A value of each setting that is not its default, with what belongs to it.
OTHER = {
    "scheme": {"scheme": "rope"},
    "scheme_options": {"scheme": "rope", "scheme_options": {"rope": {"base": 500.0}}},
    "objective": {"objective": "masked", "masking_rate": 0.2},
    "masking_rate": {"objective": "masked", "masking_rate": 0.3},
    "data": {"data": "a.txt"},
    "length": {"length": 32},
    "short_length": {"short_length": 16, "short_share": 0.9},
    "short_share": {"short_length": 16, "short_share": 0.5},
    "guessed_share": {"guessed_share": 0.15},
    "n_layers": {"n_layers": 2},
    "d_model": {"d_model": 32},
    "n_heads": {"n_heads": 2},
    "scale_embeddings": {"scale_embeddings": False},
    "batch_size": {"batch_size": 8},
    "steps": {"steps": 10},
    "learning_rate": {"learning_rate": 0.1},
    "warmup": {"warmup": 0},
    "weight_decay": {"weight_decay": 0.0},
    "seed": {"seed": 3},
    "test_length": {"scheme": "rope", "test_length": 128},
    "test_scalings": {"scheme": "rope", "test_length": 128, "test_scalings": ("ntk",)},
    "threads": {"threads": 2},
    "device": {"device": "cuda"},
    "dropout": {"dropout": 0.1},
    "layers_with_positions": {"layers_with_positions": (0, 2)},
    "further_steps": {"further_steps": 300},
    "drops_positions": {"further_steps": 300, "drops_positions": True},
    "weight_std": {"weight_std": 0.1},
    "inspections": {"inspections": ("layers",)},
    "task": {"objective": "task", "task": "order"},
    "difficulty": {"objective": "task", "task": "order", "difficulty": 3},
    "start": {"objective": "task", "task": "order", "start": {"scheme": "rope"}},
    "cls": {"objective": "masked", "masking_rate": 0.2, "cls": "moved", "subwords": 99},
    "subwords": {"subwords": 300},
    "dose": {"dose": {"symmetry": 12.0}},
    "positions_added": {"positions_added": "every layer"},
    "text_hash": {"data": "a.txt", "text_hash": "0" * 16},
    "scheme_hash": {"scheme": "mine:Own", "scheme_hash": "0" * 16},
}


def test_every_setting_but_the_preset_enters_the_key_and_comes_back_from_json():
    assert {*OTHER, "preset"} == {each.name for each in fields(RunConfig)}
    configs = [RunConfig(), *(RunConfig(**changes) for changes in OTHER.values())]
    assert len({config.key for config in configs}) == len(configs)
    for config in configs:
        back = RunConfig.from_dict(config.to_dict())
        assert (back, back.key) == (config, config.key)
    assert RunConfig(preset="cpu").key == RunConfig().key
    assert RunConfig(learning_rate=np.float64(3e-3), scheme_options={}).key == RunConfig().key


def test_stored_results_keep_their_names():
    """These are names of files in results/encodings."""
    runs = {arm.name: replace(arm.runs[0], learning_rate=1e-3) for arm in load_plan("encodings").arms}
    assert (runs["nopos"].key, runs["rope"].key) == ("3b63115b64c931e3", "d493aa4470a552ab")


def test_settings_of_earlier_versions_are_read_where_they_were_left_alone():
    told = RunConfig(seed=1).to_dict()
    assert RunConfig.from_dict(told | RETIRED) == RunConfig(seed=1)
    message = refused(RunError, RunConfig.from_dict, told | RETIRED | {"optimizer": "nag"})
    assert message == "optimizer is 'nag'; posembed has no optimizer any more, an earlier version does"
    assert "has no setting 'flux'; upgrade it" in refused(RunError, RunConfig.from_dict, told | {"flux": 1})


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_std": 0}, "weight_std is 0; it must be a positive number"),
        ({"weight_std": float("inf")}, "weight_std is inf"),
        ({"layers_with_positions": [0]}, "layers_with_positions is [0]; it must be a tuple of different layers from 0"),
        ({"layers_with_positions": (0, 4)}, "it must be a tuple of different layers from 0 to 3"),
        ({"layers_with_positions": (1, 0)}, "in rising order"),
        ({"layers_with_positions": (True,)}, "different layers"),
        ({"further_steps": 0}, "further_steps is 0; it must be a whole number of at least 1"),
        ({"drops_positions": True}, "drops_positions needs further_steps, the training without positions; give a num"),
        ({"drops_positions": "yes", "further_steps": 3}, "drops_positions is 'yes'; it must be True or False"),
        ({"scale_embeddings": 1}, "scale_embeddings is 1; it must be True or False"),
        ({"inspections": "layers"}, "inspections are 'layers'; they must be a tuple of names"),
        ({"inspections": None}, "inspections are None; they must be a tuple of names"),
        ({"seed": 2**63}, "seed is 9223372036854775808; it must be 1000000000000 or less"),
        ({"d_model": 10**30}, "it must be 1000000000000 or less"),
        ({"inspections": ("heads",)}, "there is no inspection 'heads'; choose among layers, untrained, watched"),
        ({"inspections": ("prefix",), "length": 10}, "the inspection 'prefix' is of causal models with a length of at"),
        ({"inspections": ("prefix",), "objective": "masked", "masking_rate": 0.15}, "'prefix' is of causal models"),
        ({"steps": 0}, "steps is 0; it must be a whole number of at least 1"),
        ({"steps": 1.5}, "steps is 1.5"),
        ({"steps": None}, "steps is None"),
        ({"batch_size": True}, "batch_size is True"),
        ({"seed": -1}, "seed is -1; it must be a whole number of at least 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be a positive number"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'"),
        ({"weight_decay": -1}, "weight_decay is -1; it must be a number of at least 0"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be a number of at least 0 and below 1"),
        ({"objective": "next"}, "objective is 'next'; choose among causal, masked, task"),
        ({"objective": "task"}, "task is None with the objective 'task'; give both, or neither"),
        ({"task": "order"}, "task is 'order' with the objective 'causal'; give both, or neither"),
        ({"difficulty": 2}, "difficulty is that of a task; leave it out otherwise"),
        ({"objective": "task", "task": "order", "test_length": 64}, "test_length is for texts, not for tasks"),
        ({"objective": "task", "task": "order", "inspections": ("layers",)}, "inspections is for texts, not for tasks"),
        ({"start": {}}, "start is that of a task; leave it out otherwise"),
        ({"cls": "tied"}, "cls is 'tied', which is for subwords and objective='masked'; leave it out"),
        ({"scheme": "rope", "dose": {}}, "a dose is one property and its degrees, in place of a scheme"),
        ({"dose": 12.0}, "a dose is one property and its degrees, in place of a scheme"),
        ({"objective": "masked"}, "a masked model needs one, a causal model has none"),
        ({"masking_rate": 0.15}, "a masked model needs one, a causal model has none"),
        ({"objective": "masked", "masking_rate": 1.0}, "masking_rate is 1.0; it must be a number between 0 and 1"),
        ({"guessed_share": 0.0}, "guessed_share is 0.0; it must be a number between 0 and 1"),
        ({"guessed_share": True}, "guessed_share is True"),
        ({"objective": "masked", "masking_rate": 0.15, "guessed_share": 0.15}, "guessed_share is for causal models"),
        ({"short_length": 16}, "short_length and short_share belong together; give both or none"),
        ({"short_share": 0.9}, "short_length and short_share belong together; give both or none"),
        ({"short_length": 16, "short_share": 1.0}, "short_share is 1.0; it must be a number between 0 and 1"),
        (
            {"short_length": 64, "short_share": 0.9},
            "short_length is 64; it must be a whole number from 2 to below the length, 64, that divides it",
        ),
        ({"short_length": 15, "short_share": 0.9}, "short_length is 15; it must be a whole number from 2"),
        ({"short_length": 1, "short_share": 0.9}, "short_length is 1; it must be a whole number from 2"),
        ({"length": 1}, "length is 1; it must be at least 2 for a causal model"),
        ({"test_length": 0}, "test_length is 0"),
        ({"test_scalings": "ntk"}, "test_scalings are 'ntk'; they must be a tuple of names"),
        ({"scheme": "rope", "test_length": 128, "test_scalings": ("xyz",)}, "there is no scaling 'xyz'; choose among"),
        ({"scheme": "alibi", "test_length": 128, "test_scalings": ("ntk",)}, "test_scalings need scheme='rope'"),
        ({"scheme": "rope", "test_scalings": ("ntk",)}, "test_scalings need scheme='rope' and a test_length"),
    ],
)
def test_settings_that_cannot_be_meant(options, message):
    assert message in refused(RunError, RunConfig, **options)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "settings",
    [
        {"scheme": "nosuch"},
        {"scheme": "rope", "scheme_options": {"rope": {"base": float("inf")}}},
        {"scheme": "rope", "scheme_options": {"rope": {"bas": 3.0}}},
        {"scheme": "rope", "scheme_options": {"t5": {}}},
        {"scheme": "rope", "scheme_options": [1]},
        {"scheme": "xpos", "objective": "masked", "masking_rate": 0.1},
        {"d_model": 10, "n_heads": 4},
    ],
)
def test_a_scheme_that_cannot_be_made_is_refused_as_scheme_refuses_it(settings):
    sizes = {"d_model": 64, "n_heads": 4, "causal": "objective" not in settings}
    sizes |= {name: value for name, value in settings.items() if name in sizes}
    name, options = settings.get("scheme", "nopos"), settings.get("scheme_options")
    said = refused(EncodingInputError, scheme, name, **sizes, options=options)
    assert refused(EncodingInputError, RunConfig, **settings) == said
    # What is stored is read nonetheless, also by a version that has no such scheme any more.
    if "d_model" not in settings:
        told = RunConfig().to_dict() | settings
        assert RunConfig.from_dict(told).scheme == name


def test_the_scheme_that_is_tried_draws_nothing_and_fits_every_position():
    before = torch.get_rng_state()
    config = RunConfig(scheme="learned", test_length=128)
    assert torch.equal(torch.get_rng_state(), before) and config.sizes["n_positions"] == 128


def test_a_masked_model_can_be_trained_on_single_characters():
    RunConfig(objective="masked", masking_rate=0.15, length=2, short_length=1, short_share=0.5)
