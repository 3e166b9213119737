"""Our models with the weights of transformers', against those models themselves."""

import pytest
import torch
from theirs import ours_of
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

from posembed.models import positions_from_mask

VOCAB, WIDTH, LAYERS, LENGTH = 50, 32, 3, 16
GPT2 = {"vocab_size": VOCAB, "n_layer": LAYERS, "n_embd": WIDTH, "n_head": 4, "n_positions": LENGTH}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 1}
BERT = {"vocab_size": VOCAB, "num_hidden_layers": LAYERS, "hidden_size": WIDTH, "num_attention_heads": 4}
BERT |= {"intermediate_size": 3 * WIDTH, "max_position_embeddings": LENGTH}
IDS = torch.arange(24).view(2, 12)
# Three tokens of padding behind the second text; before it where a text is to go on.
BEHIND = (torch.arange(12) < torch.tensor([[12], [9]])).long()
BEFORE = BEHIND.flip(1)


def perturbed(model):
    """Every number differs from the others, those of norms and biases too: no two can be exchanged unnoticed."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def largest(ours, theirs, mask=None):
    """The largest difference of states or logits, at real tokens."""
    real = slice(None) if mask is None else mask.bool()
    return (ours[real] - theirs[real]).abs().max().item()


def agrees(ours, theirs, mask=None):
    # Three layers of float32 sums of some hundred terms.
    assert len(ours) == len(theirs) == LAYERS + 1
    return max(largest(*pair, mask) for pair in zip(ours, theirs, strict=True)) <= 1e-5


@pytest.mark.parametrize("changes", [{}, {"n_inner": 40, "activation_function": "relu", "layer_norm_epsilon": 1e-2}])
@pytest.mark.parametrize("mask", [None, BEHIND, BEFORE])
@torch.no_grad()
def test_gpt2(mask, changes):
    theirs = perturbed(GPT2LMHeadModel(GPT2Config(**GPT2 | changes)))
    ours = ours_of(theirs)
    positions = None if mask is None else positions_from_mask(mask)
    expected = theirs(IDS, attention_mask=mask, position_ids=positions, output_hidden_states=True)
    assert agrees(ours.transformer.hidden_states(IDS, positions, attention_mask=mask), expected.hidden_states, mask)
    assert largest(ours(IDS, positions, attention_mask=mask), expected.logits, mask) <= 1e-5


@pytest.mark.parametrize("changes", [{}, {"hidden_act": "gelu_new", "layer_norm_eps": 1e-2, "type_vocab_size": 3}])
@torch.no_grad()
def test_bert(changes):
    theirs = perturbed(BertModel(BertConfig(**BERT | changes)))
    ours = ours_of(theirs)
    expected = theirs(IDS, attention_mask=BEHIND, output_hidden_states=True).hidden_states
    assert agrees(ours.hidden_states(IDS, attention_mask=BEHIND), expected, BEHIND)
