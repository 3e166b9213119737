"""The head of spans, against that of transformers and against loops."""

import math

import pytest
import torch
from models.theirs import ours_of
from transformers import BertConfig, BertForQuestionAnswering

from posembed import TransformerConfig
from studies.training.span_predictor import SpanLogits, SpanPredictor

ENCODER = TransformerConfig(causal=False, vocab_size=50, n_layers=2, d_model=32, n_heads=4, scheme="rope")
IDS = torch.arange(24).view(2, 12)
BEHIND = (torch.arange(12) < torch.tensor([[12], [9]])).long()


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
