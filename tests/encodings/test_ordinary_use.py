"""What a reader of the docs does: sizes that are NumPy's numbers, and a number of axes."""

import numpy as np
import pytest
import torch

from posembed import Transformer, TransformerConfig, scheme, sinusoidal
from posembed.encodings import ALiBi, RoPE, Sinusoidal

IDS = torch.ones(1, 3, dtype=torch.long)


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
