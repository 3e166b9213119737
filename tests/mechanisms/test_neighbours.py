"""How alike the states of two positions are."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from untrained import random_texts, untrained, with_even_attention

from posembed import properties_of_matrix
from posembed.mechanisms import running_mean_similarity, state_similarity


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_each_entry_is_the_mean_cosine_of_two_states(layer):
    model, ids = untrained("rope"), random_texts(5, 7)
    found = state_similarity(model, ids, layer=layer)
    states = model.hidden_states(ids)[layer].detach().double()
    for i in range(7):
        for j in range(7):
            wanted = F.cosine_similarity(states[:, i], states[:, j], dim=-1).mean()
            assert found[i, j].item() == pytest.approx(wanted.item(), abs=1e-9)


@pytest.mark.parametrize("layer", [1, 2])
def test_attention_can_be_had_without_the_words(layer):
    model, ids = untrained(), random_texts(4, 6)
    block, states = model.layers[layer - 1], model.hidden_states(ids)[layer - 1]
    out = F.normalize(block.attention(block.attention_norm(states)).detach().double(), dim=-1)
    found = state_similarity(model, ids, layer=layer, part="attention")
    torch.testing.assert_close(found, (out @ out.mT).mean(0), rtol=0, atol=1e-6)


def test_before_training_attention_gives_running_means():
    """GPT-2's initialisation is nearly even, and 256 channels of random words are nearly orthogonal."""
    wanted = running_mean_similarity(24)
    for model in (untrained(d_model=256), with_even_attention(untrained(d_model=256))):
        found = state_similarity(model, random_texts(100, 24), part="attention")
        assert (found - wanted).abs().max() < 0.03
        assert properties_of_matrix(found).monotonicity > 0.999


@given(st.integers(1, 12), st.integers(1, 12))
def test_running_means_of_orthogonal_values(i, j):
    """The rows of an identity are values of one size with no product."""
    values = np.eye(12)
    means = values[:i].mean(axis=0), values[:j].mean(axis=0)
    cosine = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    assert running_mean_similarity(12)[i - 1, j - 1].item() == pytest.approx(cosine, abs=1e-12)


# What is refused.
