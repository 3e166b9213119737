"""What a reader of the docs does: NumPy's sizes, a number of axes, a scheme of one's own that does not fit."""

import numpy as np
import pytest
import torch
from refusals import refused
from small_models import build

from posembed import PositionScheme, Transformer, TransformerConfig, scheme, sinusoidal
from posembed.encodings import ALiBi, RoPE, Sinusoidal
from posembed.errors import EncodingInputError
from posembed.models import use_scheme

IDS = torch.ones(1, 3, dtype=torch.long)


class Beginner(PositionScheme):
    def __init__(self, n_heads):
        self.n_heads = n_heads


class OfTwo(PositionScheme):
    def bias(self, q, k):
        return None


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Beginner(2), "Beginner.__init__ does not call super().__init__()"),
        (OfTwo, "it is given (q, k, positions, key_positions)"),
    ],
)
def test_a_scheme_of_ones_own_that_does_not_fit_is_named_wherever_it_is_used(made, message):
    model = build("gpt2")

    def in_gpt2():
        use_scheme(model, made())
        model(IDS)

    def in_ours():
        Transformer(TransformerConfig(9, d_model=8, n_heads=2, scheme=made()))(IDS)

    assert message in refused(EncodingInputError, in_ours)
    assert message in refused(EncodingInputError, in_gpt2)


@pytest.mark.bad_input
def test_whole_numbers_of_numpy_are_sizes():
    two = np.int64(2)
    assert scheme("alibi", n_heads=two).n_heads == 2 and torch.equal(ALiBi(two).slopes, ALiBi(2).slopes)
    config = TransformerConfig(np.int64(9), n_layers=two, d_model=np.int64(8), n_heads=two)
    assert Transformer(config)(IDS).shape[2] == 8
    assert sinusoidal(two, np.int64(4)).shape == (2, 4)


def test_rotary_axes_may_be_a_number_of_equal_parts():
    assert RoPE(8, axes=2).axes == RoPE(8, axes=(4, 4)).axes == (4, 4)
    assert Sinusoidal(8, axes=2).axes == (4, 4)
