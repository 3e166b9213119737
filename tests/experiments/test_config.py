"""What a run is, and what it is called."""

import pytest

from posembed import RunConfig
from posembed.errors import RunConfigError
from posembed.experiments.encodings import ARMS, Arm

OTHER = {
    "scheme": "rope",
    "scheme_options": {"nopos": {}},
    "objective": "masked",
    "data": "a.txt",
    "length": 32,
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
}


def changed(name):
    more = {"masking_rate": 0.15} if name == "objective" else {}
    return RunConfig(**{name: OTHER[name]}, **more)


@pytest.mark.parametrize("name", OTHER)
def test_every_setting_that_matters_changes_the_key(name):
    if name == "scheme_options":
        assert RunConfig(scheme_options={"nopos": {"a": 1}}).key != RunConfig().key
    else:
        assert changed(name).key != RunConfig().key


def test_the_preset_does_not():
    assert RunConfig(preset="cpu").key == RunConfig().key


def test_a_default_that_is_spelled_out_is_the_same_run():
    assert RunConfig(learning_rate=3e-3, scheme_options={}).key == RunConfig().key


def test_stored_results_keep_their_names():
    """These are names of files in results/encodings."""
    assert Arm("nopos").config(1e-3, 1).key == "3b63115b64c931e3"
    assert Arm("rope").config(1e-3, 1).key == "d493aa4470a552ab"


@pytest.mark.parametrize("arm", ARMS)
def test_a_config_comes_back_from_json(arm):
    config = arm.config(1e-3, 4)
    assert RunConfig.from_dict(config.to_dict()) == config
    assert RunConfig.from_dict(config.to_dict()).key == config.key


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "message"),
    [
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
        ({"objective": "masked", "masking_rate": 1.0}, "it must lie between 0 and 1"),
        ({"length": 1}, "a causal model needs at least 2 characters"),
        ({"test_length": 0}, "test_length is 0"),
        ({"scheme": "rope", "test_length": 128, "test_scalings": ("xyz",)}, "there is no scaling 'xyz'; choose among"),
        ({"scheme": "alibi", "test_length": 128, "test_scalings": ("ntk",)}, "test_scalings need scheme='rope'"),
        ({"scheme": "rope", "test_scalings": ("ntk",)}, "test_scalings need scheme='rope' and a test_length"),
    ],
)
def test_settings_that_cannot_be_meant(options, message):
    with pytest.raises(RunConfigError) as caught:
        RunConfig(**options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_setting_of_a_newer_version():
    with pytest.raises(RunConfigError, match="has no setting 'flux'; upgrade it"):
        RunConfig.from_dict(RunConfig().to_dict() | {"flux": 1})
