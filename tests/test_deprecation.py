"""Old names work for one release and say what to use."""

import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("posembed.similarity", "dosed_bias", "perturbed_bias"),
        ("posembed.layers", "read", "linear_probe"),
        ("posembed.layers", "InputLeft", "RetainedInput"),
    ],
)
def test_an_old_name_warns_and_gives_the_new_one(module, old, new):
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(found, old) is getattr(found, new)


def test_a_name_that_never_was_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'dose'"):
        importlib.import_module("posembed.similarity").dose  # noqa: B018
