"""Whether attention can tell a word from its repetition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from untrained import untrained

from posembed.mechanisms import repeated_word_attention


def large_weights(model, seed=0):
    """Attention that is neither even nor all on one token."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data = 0.2 * torch.randn(parameter.shape, generator=generator)
    return model


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(0, 8), st.integers(10, 299))
def test_without_positions_no_head_can_tell_them_apart(seed, bos, word):
    """Whatever the parameters: both keys are the same sums, added up in the same order."""
    found = repeated_word_attention(large_weights(untrained(n_layers=1), seed), bos=bos, word=word)
    assert found.shape == (4, 3)
    assert torch.equal(found[:, 1], found[:, 2])
    torch.testing.assert_close(found.sum(1), torch.ones(4), rtol=0, atol=1e-6)


@pytest.mark.parametrize("scheme", ["sinusoidal", "learned", "rope", "alibi", "t5", "shaw", "kerple", "fire", "xpos"])
def test_with_positions_heads_can(scheme):
    found = repeated_word_attention(large_weights(untrained(scheme, n_layers=1)), bos=0, word=5)
    # A hundred times the rounding of weights in float32; without positions there is not even that.
    assert (found[:, 1] - found[:, 2]).abs().max() > 1e-5


def test_in_the_second_layer_the_first_one_has_told_them_apart():
    model = large_weights(untrained())
    first, second = (repeated_word_attention(model, bos=0, word=5, layer=layer) for layer in (0, 1))
    assert torch.equal(first[:, 1], first[:, 2])
    assert (second[:, 1] - second[:, 2]).abs().max() > 1e-3
