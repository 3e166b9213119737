"""Heads, against those of transformers and against loops; and the types of tokens."""

import math

import pytest
import torch
from theirs import ours_of
from transformers import BertConfig, BertForQuestionAnswering

from posembed import Transformer, TransformerConfig
from posembed.models import (
    LanguageModel,
    MaskedLanguageModel,
    SequenceClassifier,
    SpanLogits,
    SpanPredictor,
)

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
    for head in (LanguageModel(ENCODER), MaskedLanguageModel(ENCODER), SequenceClassifier(ENCODER, 3)):
        model = head.eval()
        assert torch.equal(model(model.transformer.words(IDS), attention_mask=mask), model(IDS, attention_mask=mask))
    spans = SpanPredictor(ENCODER).eval()
    found = spans(spans.transformer.words(IDS), attention_mask=mask)
    assert torch.equal(found.start, spans(IDS, attention_mask=mask).start)


def test_a_body_is_shared_and_a_config_makes_one():
    body = Transformer(ENCODER)
    assert SequenceClassifier(body, 2).transformer is body
    assert SpanPredictor(body).transformer is body
    assert SpanPredictor(ENCODER).transformer.config == ENCODER


@torch.no_grad()
def test_spans_are_those_of_bert():
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    theirs = BertForQuestionAnswering(BertConfig(**sizes, intermediate_size=64, max_position_embeddings=16)).eval()
    theirs.qa_outputs.bias.normal_()
    ours = SpanPredictor(ours_of(theirs.bert)).eval()
    ours.ends.load_state_dict(theirs.qa_outputs.state_dict())
    expected, found = theirs(IDS, attention_mask=BEHIND), ours(IDS, attention_mask=BEHIND)
    real = BEHIND.bool()
    assert torch.allclose(found.start[real], expected.start_logits[real], atol=1e-5)
    assert torch.allclose(found.end[real], expected.end_logits[real], atol=1e-5)
    assert (found.start[~real] == -math.inf).all() and (found.end[~real] == -math.inf).all()


def best_by_loops(start, end, no_answer, longest):
    """Every pair that is allowed, in turn."""
    pairs = [
        (start[i] + end[j], i, j)
        for i in range(len(start))
        for j in range(i, len(end))
        if (longest is None or j - i < longest) and not (no_answer and i == 0 and j > 0)
    ]
    return list(max(pairs)[1:])


@pytest.mark.parametrize("no_answer", [False, True])
@pytest.mark.parametrize("longest", [None, 1, 3])
def test_the_best_span(no_answer, longest):
    generator = torch.Generator().manual_seed(0)
    model = SpanPredictor(ENCODER, no_answer=no_answer)
    logits = SpanLogits(*(torch.randn(200, 7, generator=generator) for _ in range(2)))
    expected = [best_by_loops(*pair, no_answer, longest) for pair in zip(logits.start, logits.end, strict=True)]
    assert model.best(logits, longest=longest).tolist() == expected
    found_none = [pair == [0, 0] for pair in expected]
    assert any(found_none) and not all(found_none)


def test_a_masked_model_starts_with_the_logits_of_its_words():
    torch.manual_seed(0)
    model = MaskedLanguageModel(ENCODER)
    assert isinstance(model, LanguageModel)
    hidden = torch.randn(5, 32)
    assert torch.allclose(model.logits(hidden), model.transform(hidden) @ model.transformer.words.weight.T)
    model(IDS).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@torch.no_grad()
def test_types_of_tokens_are_added_to_the_words():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(n_token_types=2, **SIZES)).eval()
    positions, types = torch.arange(12), (torch.arange(12) > 5).long().expand(2, -1)
    difference = model.embed(IDS, positions, types) - model.words(IDS)
    assert torch.allclose(difference, model.token_types.weight[types], atol=1e-6)
    assert torch.equal(model(IDS), model(IDS, token_types=torch.zeros_like(IDS)))
