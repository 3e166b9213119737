"""Heads, and the types of tokens."""

import pytest
import torch

from posembed import Transformer, TransformerConfig
from posembed.models import LanguageModel, SequenceClassifier

SIZES = {"vocab_size": 50, "n_layers": 2, "d_model": 32, "n_heads": 4, "scheme": "rope"}
ENCODER = TransformerConfig(causal=False, **SIZES)
IDS = torch.arange(24).view(2, 12)
BEHIND = (torch.arange(12) < torch.tensor([[12], [9]])).long()


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize("before", [False, True])
@torch.no_grad()
def test_padding_changes_no_class(pooling, before):
    torch.manual_seed(0)
    model = SequenceClassifier(ENCODER, 3, pooling=pooling).eval()
    short, padding = IDS[1:, :9], IDS[:1, :3]
    ids = torch.cat([padding, short] if before else [short, padding], 1)
    mask = BEHIND[1:].flip(1) if before else BEHIND[1:]
    assert torch.allclose(model(ids, attention_mask=mask), model(short), atol=1e-6)
    assert not torch.allclose(model(ids), model(short), atol=1e-5)


@torch.no_grad()
def test_what_is_pooled():
    torch.manual_seed(0)
    body = Transformer(ENCODER).eval()
    states = body(IDS, attention_mask=BEHIND)
    mean, first = (SequenceClassifier(body, 3, pooling=pooling).eval() for pooling in ("mean", "first"))
    rows = torch.stack([states[0].mean(0), states[1, :9].mean(0)])
    assert torch.allclose(mean(IDS, attention_mask=BEHIND), mean.classes(rows), atol=1e-6)
    assert torch.allclose(first(IDS, attention_mask=BEHIND), first.classes(states[:, 0]), atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("mask", [None, BEHIND])
def test_every_head_takes_embeddings_in_place_of_ids(mask):
    for head in (LanguageModel(ENCODER), SequenceClassifier(ENCODER, 3)):
        model = head.eval()
        assert torch.equal(model(model.transformer.words(IDS), attention_mask=mask), model(IDS, attention_mask=mask))


def test_a_body_is_shared_and_a_config_makes_one():
    body = Transformer(ENCODER)
    assert SequenceClassifier(body, 2).transformer is body
    assert SequenceClassifier(ENCODER, 2).transformer.config == ENCODER
