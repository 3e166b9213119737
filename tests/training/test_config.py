"""What a run is, and what it is called."""

import json
from dataclasses import fields

import numpy as np
import pytest
import torch
from refusals import refused

from posembed import RunConfig, scheme
from posembed.errors import EncodingInputError, RunError
from posembed.training.config import OF_STUDIES, RETIRED

# A value of each setting that is not its default, with what belongs to it.
OTHER = {
    "scheme": {"scheme": "rope"},
    "scheme_options": {"scheme": "rope", "scheme_options": {"rope": {"base": 500.0}}},
    "objective": {"objective": "masked", "masking_rate": 0.2},
    "masking_rate": {"objective": "masked", "masking_rate": 0.3},
    "data": {"data": "a.txt"},
    "length": {"length": 32},
    "n_layers": {"n_layers": 2},
    "d_model": {"d_model": 32},
    "n_heads": {"n_heads": 2},
    "scale_embeddings": {"scale_embeddings": True},
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
    "weight_std": {"weight_std": 0.1},
    "text_hash": {"data": "a.txt", "text_hash": "0" * 16},
    "scheme_hash": {"scheme": "mine:Own", "scheme_hash": "0" * 16},
    "study": {"study": {"inspections": ["layers"]}},
}


def test_every_setting_but_the_preset_enters_the_key_and_comes_back_from_json():
    assert {*OTHER, "preset"} == {each.name for each in fields(RunConfig)}
    configs = [RunConfig(), *(RunConfig(**changes) for changes in OTHER.values())]
    assert len({config.key for config in configs}) == len({*configs}) == len(configs)
    for config in configs:
        back = RunConfig.from_dict(json.loads(json.dumps(config.to_dict())))
        assert (back, back.key, hash(back)) == (config, config.key, hash(config))
        assert RunConfig.from_dict(config.told).key == config.key
    assert RunConfig(preset="cpu").key == RunConfig().key
    assert RunConfig(learning_rate=np.float64(1e-2), scheme_options={}).key == RunConfig().key


def test_settings_of_a_study_are_read_where_they_stood_once_and_keep_their_key():
    """The names of files in results/encodings and results/tasks."""
    tested = {"length": 64, "steps": 1500, "test_length": 512, "learning_rate": 1e-3, "seed": 1}
    assert RunConfig.from_dict(tested).key == "3b63115b64c931e3"
    before = RunConfig.from_dict({"seed": 1}).to_dict() | OF_STUDIES | {"short_length": 8, "inspections": ["layers"]}
    del before["study"]
    config = RunConfig.from_dict(before)
    assert config.study == {"short_length": 8, "inspections": ["layers"]} and config.seed == 1
    assert config.told == {"seed": 1, "short_length": 8, "inspections": ["layers"]}
    # What says nothing is nothing.
    assert RunConfig(study=OF_STUDIES | {"inspections": ()}) == RunConfig()


def test_what_a_file_leaves_out_is_what_was_usual_when_the_first_were_written():
    stored = RunConfig.from_dict({"scheme": "learned"})
    assert (stored.weight_std, stored.scale_embeddings, stored.learning_rate) == (0.02, True, 3e-3)
    assert stored.start_std == 0.02 and stored.options == {}
    today = RunConfig(scheme="learned+rope", d_model=16)
    assert today.told == {
        "scheme": "learned+rope",
        "d_model": 16,
        "scale_embeddings": False,
        "learning_rate": 1e-2,
        "weight_std": None,
    }
    assert today.start_std == 0.25 and today.options == {"learned": {"std": 0.25}}
    told = {"learned": {"std": 0.5}}
    assert RunConfig(scheme="learned", scheme_options=told).options == told


def test_settings_of_earlier_versions_are_read_where_they_were_left_alone():
    assert RunConfig.from_dict(RunConfig(seed=1).to_dict() | RETIRED) == RunConfig(seed=1)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "settings",
    [
        {"scheme": "nosuch"},
        {"scheme": "rope", "scheme_options": {"rope": {"base": float("inf")}}},
        {"scheme": "rope", "scheme_options": {"rope": {"bas": 3.0}}},
        {"scheme": "rope", "scheme_options": {"t5": {}}},
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
    assert RunConfig(objective="masked", masking_rate=0.15, length=1).length == 1
    assert "length is 1" in refused(RunError, RunConfig, length=1)


def test_numbers_of_numpy_are_numbers():
    plain, loop = (
        RunConfig(seed=1, learning_rate=0.5),
        [RunConfig(seed=n, learning_rate=np.float32(0.5)) for n in np.arange(2)],
    )
    assert loop[1] == plain and loop[1].key == plain.key and type(loop[1].seed) is int
