"""How alike the states of two positions are."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from small_models import build
from untrained import random_texts, untrained, with_even_attention

from posembed import properties_of_matrix
from posembed.errors import ProbeInputError
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


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"layer": 3}, "layers=[3], but Transformer has layers 0 (embeddings) to 2"),
        ({"layer": -1}, "layers=[-1]"),
        ({"part": "mlp"}, "part is 'mlp'"),
        ({"part": "attention", "layer": 0}, "layer is 0; it must be a whole number of at least 1"),
        ({"part": "attention", "layer": 3}, "Transformer has 2 layers, and no attention beyond them"),
        ({"part": "attention", "layer": None}, "layer is None"),
        ({"ids": "text"}, "ids are str"),
        ({"ids": random_texts(0, 4)}, "0 texts of 4 tokens"),
    ],
)
def test_bad_options_are_refused(options, piece):
    assert piece in refused(ProbeInputError, state_similarity, untrained(), **{"ids": random_texts(2, 4)} | options)


@pytest.mark.bad_input
@pytest.mark.parametrize("length", [0, True])
def test_a_length_that_cannot_be_meant_is_refused(length):
    assert "length is" in refused(ProbeInputError, running_mean_similarity, length)


@pytest.mark.bad_input
def test_attention_of_another_kind_of_model_is_refused():
    assert "GPT2Model is not posembed's own" in refused(
        ProbeInputError, state_similarity, build("gpt2"), torch.randint(4, 30, (2, 4)), part="attention"
    )


def test_damaged_weights_are_named():
    model = untrained()
    torch.nn.init.constant_(model.layers[0].attention.value.weight, math.nan)
    assert "hidden states of layer 1" in refused(ProbeInputError, state_similarity, model, random_texts(2, 4))
