"""What asking a model for its states leaves behind."""

import contextlib
from functools import partial

import pytest
import torch
from transformers import BigBirdConfig, BigBirdForMaskedLM

from posembed import probe_layers
from posembed.errors import ProbeInputError
from posembed.layers import depth_profile
from posembed.mechanisms import shuffled_prefix
from posembed.probing import identical_word_attention
from posembed.probing.hidden_states import hidden_states

IDS = torch.randint(4, 48, (8, 128), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def sparse():
    """BigBird exchanges its sparse attention for full attention, for good, where a text is too short for it."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    attention = {"attention_type": "block_sparse", "block_size": 8, "num_random_blocks": 1}
    return BigBirdForMaskedLM(BigBirdConfig(vocab_size=50, max_position_embeddings=256, **sizes, **attention)).eval()


def states(model):
    with torch.no_grad():
        return model(IDS, output_hidden_states=True).hidden_states


@pytest.mark.parametrize(
    "ask",
    [
        partial(probe_layers, steps=2, control=False),
        partial(depth_profile, ablations=False),
        shuffled_prefix,
        lambda model, ids: identical_word_attention(model, length=64),
    ],
    ids=["layers", "depth", "prefix", "words"],
)
def test_a_model_that_a_short_text_changes_is_left_as_it_was(sparse, ask):
    before = states(sparse)
    # Not all is defined for it; what is refused leaves it alone too.
    with contextlib.suppress(ProbeInputError):
        ask(sparse, IDS)
    assert sparse.bert.attention_type == "block_sparse" and not any(each.training for each in sparse.modules())
    assert all(torch.equal(one, other) for one, other in zip(states(sparse), before, strict=True))


def test_a_model_that_a_short_text_changes_is_measured_as_it_is(sparse):
    found = hidden_states(sparse, IDS, [1])[1]
    assert torch.allclose(found, states(sparse)[1])
    sparse.bert.set_attention_type("original_full")
    assert not torch.allclose(found, hidden_states(sparse, IDS, [1])[1], atol=1e-4)
