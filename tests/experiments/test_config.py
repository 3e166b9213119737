"""What a run is, and what it is called."""

from dataclasses import fields

import pytest

from posembed import RunConfig
from posembed.errors import RunError
from posembed.experiments.encodings import ARMS, Arm

OTHER = {
    "scheme": "rope",
    "scheme_options": {"nopos": {}},
    "objective": "masked",
    "data": "a.txt",
    "length": 32,
    "short_length": 16,
    "short_share": 0.9,
    "guessed_share": 0.15,
    "n_layers": 2,
    "d_model": 32,
    "n_heads": 2,
    "scale_embeddings": False,
    "batch_size": 8,
    "steps": 10,
    "learning_rate": 0.1,
    "warmup": 0,
    "weight_decay": 0.0,
    "seed": 3,
    "test_length": 128,
    "threads": 2,
    "device": "cuda",
    "d_ff": 96,
    "dropout": 0.1,
    "optimizer": "nag",
    "betas": (0.9, 0.95),
    "largest_gradient": 0.5,
    "lowest_rate": 0.0,
    "precision": "bfloat16",
    "compile": True,
    "tokens": "bpe",
    "vocab_size": 1000,
    "accumulate": 2,
    "layers_with_positions": (0, 2),
    "further_steps": 300,
    "drops_positions": True,
    "weight_std": 0.1,
    "inspections": ("layers",),
}


# What must be given beside a setting.
TOGETHER = {
    "objective": {"masking_rate": 0.15},
    "short_length": {"short_share": 0.5},
    "short_share": {"short_length": 32},
    "vocab_size": {"tokens": "bpe"},
    "drops_positions": {"further_steps": 300},
}


TUPLES = ("betas", "inspections", "layers_with_positions")


def changed(name):
    return RunConfig(**{name: OTHER[name]}, **TOGETHER.get(name, {}))


@pytest.mark.parametrize("name", OTHER)
def test_every_setting_that_matters_changes_the_key(name):
    if name == "scheme_options":
        assert RunConfig(scheme_options={"nopos": {"a": 1}}).key != RunConfig().key
    else:
        assert changed(name).key != RunConfig().key


def test_no_setting_is_left_out_here():
    seen = {*OTHER, "masking_rate", "test_scalings", "preset"}
    assert seen == {each.name for each in fields(RunConfig)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"short_length": 16, "short_share": 0.9}, {"short_length": 32, "short_share": 0.9}),
        ({"short_length": 16, "short_share": 0.9}, {"short_length": 16, "short_share": 0.5}),
        ({"guessed_share": 0.15}, {"guessed_share": 0.2}),
        ({"objective": "masked", "masking_rate": 0.15}, {"objective": "masked", "masking_rate": 0.2}),
        ({"layers_with_positions": (0,)}, {"layers_with_positions": (1,)}),
        ({"further_steps": 300}, {"further_steps": 300, "drops_positions": True}),
        ({"inspections": ("layers",)}, {"inspections": ("prefix",)}),
    ],
    ids=["short_length", "short_share", "guessed_share", "masking_rate", "layers", "drops_positions", "inspections"],
)
def test_their_values_matter_too(one, other):
    assert RunConfig(**one).key != RunConfig(**other).key


def test_the_preset_does_not():
    assert RunConfig(preset="cpu").key == RunConfig().key


def test_a_default_that_is_spelled_out_is_the_same_run():
    assert RunConfig(learning_rate=3e-3, scheme_options={}).key == RunConfig().key


def test_stored_results_keep_their_names():
    """These are names of files in results/encodings."""
    assert Arm("nopos").config(1e-3, 1).key == "3b63115b64c931e3"
    assert Arm("rope").config(1e-3, 1).key == "d493aa4470a552ab"


@pytest.mark.parametrize("config", [*(arm.config(1e-3, 4) for arm in ARMS), *map(changed, TUPLES)])
def test_a_config_comes_back_from_json(config):
    assert RunConfig.from_dict(config.to_dict()) == config
    assert RunConfig.from_dict(config.to_dict()).key == config.key


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_std": 0}, "weight_std is 0; it must be a positive number"),
        ({"weight_std": float("inf")}, "weight_std is inf"),
        ({"layers_with_positions": [0]}, "layers_with_positions is [0]; it must be a tuple of different layers from 0"),
        ({"layers_with_positions": (0, 4)}, "it must be a tuple of different layers from 0 to 3"),
        ({"layers_with_positions": (1, 0)}, "in rising order"),
        ({"layers_with_positions": (1, 1)}, "different layers"),
        ({"layers_with_positions": (True,)}, "different layers"),
        ({"layers_with_positions": (0.0, 1)}, "different layers"),
        ({"further_steps": 0}, "further_steps is 0; it must be a whole number of at least 1"),
        ({"further_steps": 2.5}, "further_steps is 2.5"),
        ({"drops_positions": True}, "drops_positions needs further_steps, the training without positions; give a num"),
        ({"drops_positions": "yes", "further_steps": 3}, "drops_positions is 'yes'; it must be True or False"),
        ({"inspections": "layers"}, "inspections are 'layers'; they must be a tuple of names"),
        (
            {"inspections": ("depth",)},
            "there is no inspection 'depth'; choose among layers, untrained, watched",
        ),
        ({"inspections": ("prefix",), "length": 10}, "the inspection 'prefix' is of causal models with a length of at"),
        (
            {"inspections": ("prefix",), "objective": "masked", "masking_rate": 0.15},
            "the inspection 'prefix' is of causal models",
        ),
        ({"steps": 0}, "steps is 0; it must be a whole number of at least 1"),
        ({"steps": 1.5}, "steps is 1.5"),
        ({"batch_size": True}, "batch_size is True"),
        ({"seed": -1}, "seed is -1; it must be a whole number of at least 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be a positive number"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'"),
        ({"weight_decay": -1}, "weight_decay is -1; it must be a number of at least 0"),
        ({"objective": "next"}, "objective is 'next'; choose among causal, masked"),
        ({"objective": "masked"}, "a masked model needs one, a causal model has none"),
        ({"masking_rate": 0.15}, "a masked model needs one, a causal model has none"),
        ({"objective": "masked", "masking_rate": 1.0}, "masking_rate is 1.0; it must lie between 0 and 1"),
        ({"guessed_share": 0.0}, "guessed_share is 0.0; it must lie between 0 and 1"),
        ({"guessed_share": 1}, "guessed_share is 1; it must lie between 0 and 1"),
        ({"guessed_share": True}, "guessed_share is True; it must lie between 0 and 1"),
        ({"guessed_share": float("nan")}, "guessed_share is nan; it must lie between 0 and 1"),
        ({"guessed_share": "some"}, "guessed_share is 'some'; it must lie between 0 and 1"),
        (
            {"objective": "masked", "masking_rate": 0.15, "guessed_share": 0.15},
            "guessed_share is for causal models; a masked one has its masking_rate",
        ),
        ({"short_length": 16}, "short_length and short_share belong together; give both or none"),
        ({"short_share": 0.9}, "short_length and short_share belong together; give both or none"),
        ({"short_length": 16, "short_share": 1.0}, "short_share is 1.0; it must lie between 0 and 1"),
        ({"short_length": 16, "short_share": 0}, "short_share is 0; it must lie between 0 and 1"),
        (
            {"short_length": 64, "short_share": 0.9},
            "short_length is 64; it must be a whole number from 2 to below the length, 64, that divides it",
        ),
        ({"short_length": 128, "short_share": 0.9}, "short_length is 128; it must be a whole number from 2"),
        ({"short_length": 15, "short_share": 0.9}, "short_length is 15; it must be a whole number from 2"),
        ({"short_length": 1, "short_share": 0.9}, "short_length is 1; it must be a whole number from 2"),
        ({"short_length": 16.0, "short_share": 0.9}, "short_length is 16.0; it must be a whole number from 2"),
        ({"short_length": True, "short_share": 0.9}, "short_length is True; it must be a whole number from 2"),
        (
            {"objective": "masked", "masking_rate": 0.15, "short_length": 0, "short_share": 0.9},
            "short_length is 0; it must be a whole number from 1 to below the length, 64, that divides it",
        ),
        ({"length": 1}, "a causal model needs at least 2 characters"),
        ({"test_length": 0}, "test_length is 0"),
        ({"d_ff": 0}, "d_ff is 0; it must be a whole number of at least 1"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be a number of at least 0 and below 1"),
        ({"optimizer": "lion"}, "optimizer is 'lion'; choose among adamw, nag"),
        ({"betas": 0.9}, "betas are 0.9; they must be two numbers, such as (0.9, 0.98)"),
        ({"betas": (0.9,)}, "betas are (0.9,); they must be two numbers"),
        ({"betas": (0.9, 1.0)}, "each of betas is 1.0; it must be a number of at least 0 and below 1"),
        ({"betas": (0.9, "b")}, "each of betas is 'b'"),
        ({"largest_gradient": 0}, "largest_gradient is 0; it must be a positive number"),
        ({"lowest_rate": 1.5}, "lowest_rate is 1.5; it must be a number of at least 0 and at most 1"),
        ({"precision": "float16"}, "precision is 'float16'; choose among float32, bfloat16"),
        ({"compile": 1}, "compile is 1; it must be True or False"),
        ({"tokens": "words"}, "tokens is 'words'; choose among characters, bpe"),
        ({"vocab_size": 300}, "vocab_size is for tokens='bpe'"),
        ({"tokens": "bpe", "vocab_size": 0}, "vocab_size is 0; it must be a whole number of at least 1"),
        ({"accumulate": 0}, "accumulate is 0; it must be a whole number of at least 1"),
        ({"accumulate": 3}, "accumulate is 3; it must divide the batch_size, 32"),
        ({"test_scalings": "ntk"}, "test_scalings are 'ntk'; they must be a tuple of names"),
        ({"scheme": "rope", "test_length": 128, "test_scalings": ("xyz",)}, "there is no scaling 'xyz'; choose among"),
        ({"scheme": "alibi", "test_length": 128, "test_scalings": ("ntk",)}, "test_scalings need scheme='rope'"),
        ({"scheme": "rope", "test_scalings": ("ntk",)}, "test_scalings need scheme='rope' and a test_length"),
    ],
)
def test_settings_that_cannot_be_meant(options, message):
    with pytest.raises(RunError) as caught:
        RunConfig(**options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_masked_model_can_be_trained_on_single_characters():
    config = RunConfig(objective="masked", masking_rate=0.15, short_length=1, short_share=0.5)
    assert RunConfig.from_dict(config.to_dict()) == config


def test_a_setting_of_a_newer_version():
    with pytest.raises(RunError, match="has no setting 'flux'; upgrade it"):
        RunConfig.from_dict(RunConfig().to_dict() | {"flux": 1})
