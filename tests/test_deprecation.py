"""Old names work for one release and say what to use."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("posembed.similarity", "dosed_bias", "perturbed_bias"),
        ("posembed.data", "made_task", "synthetic_task"),
        ("posembed.layers", "read", "linear_probe"),
        ("posembed.layers", "InputLeft", "RetainedInput"),
    ],
)
def test_an_old_name_warns_and_gives_the_new_one(module, old, new):
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(found, old) is getattr(found, new)


def test_an_old_module_warns_and_gives_the_new_ones_names():
    sys.modules.pop("posembed.depth", None)
    with pytest.warns(DeprecationWarning, match=r"posembed\.layers"):
        old = importlib.import_module("posembed.depth")
    new = importlib.import_module("posembed.layers")
    assert all(getattr(old, name) is getattr(new, name) for name in new.__all__)


def test_a_name_that_never_was_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'dose'"):
        importlib.import_module("posembed.similarity").dose  # noqa: B018
