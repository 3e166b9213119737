"""The public edge: one line says what was given and what is wanted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from posembed.errors import EncodingInputError
from posembed.public import Count, NotNegative, Positive, Seed, Share, check_fields, public

pytestmark = pytest.mark.bad_input


@public(EncodingInputError)
def given(
    n: Count = 1,
    *,
    layout: Literal["half", "interleaved"] = "half",
    scale: bool = True,
    base: Positive = 1.0,
    std: NotNegative = 0.0,
    share: Share = 0.5,
    seed: Seed = 0,
    x: Float[Tensor, "seq d"] | None = None,
    names: Sequence[str] = (),
    of: Callable[[int], int] = abs,
) -> int:
    return n


@pytest.mark.parametrize(
    ("argument", "value", "advice"),
    [
        ("n", 0, "n is 0; it must be a whole number of at least 1"),
        ("n", True, "n is True; it must be"),
        ("n", 1.0, "n is 1.0; it must be"),
        ("layout", "neox", "layout is 'neox'; choose among half, interleaved"),
        ("scale", "no", "scale is 'no'; give True or False"),
        ("base", 0.0, "base is 0.0; it must be a positive number"),
        ("base", float("nan"), "base is nan"),
        ("base", float("inf"), "base is inf"),
        ("std", -1, "std is -1; it must be a finite number of at least 0"),
        ("share", 1.5, "share is 1.5; it must be a number from 0 to 1"),
        ("seed", -1, "seed is -1; it must be a whole number from 0"),
        (
            "x",
            torch.zeros(3, dtype=torch.long),
            "x is a Tensor of torch.int64 and shape (3,); give a tensor, Float[Tensor, 'seq d'], or None",
        ),
        ("names", "rope", "names is 'rope'; give a Sequence"),
        ("of", 3, "of is 3; give a Callable"),
    ],
)
def test_what_the_signature_does_not_allow_is_refused_in_one_line(argument, value, advice):
    with pytest.raises(EncodingInputError) as raised:
        given(**{argument: value})
    assert str(raised.value).startswith(advice)
    assert "\n" not in str(raised.value)


def test_what_means_the_same_is_taken():
    assert given(np.int64(3), base=2, share=np.float32(0.5), x=torch.zeros(2, 3), names=("a",)) == 3


def test_a_wrong_call_is_pythons_own_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'm'"):
        given(m=1)


def test_fields_of_a_record_are_checked_alike():
    @dataclass(frozen=True)
    class Sizes:
        n: Count

        def __post_init__(self):
            check_fields(self, EncodingInputError)

    assert Sizes(2).n == 2
    with pytest.raises(EncodingInputError, match="n is 0; it must be"):
        Sizes(0)
