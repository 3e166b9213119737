"""Refused where a model's way to its positions is measured."""

import torch
from small_models import build

from posembed import Transformer, TransformerConfig
from posembed.errors import ModelInputError, ProbeInputError
from posembed.mechanisms import (
    CountingTransformer,
    attention_variance,
    repeated_word_attention,
    shuffled_prefix,
)
from posembed.models import LanguageModel

IDS = torch.randint(4, 30, (9, 8), generator=torch.Generator().manual_seed(0))
CONFIG = TransformerConfig(30, n_layers=2, d_model=16, n_heads=2)


def own():
    return Transformer(CONFIG)


def seeing_both_sides():
    return LanguageModel(TransformerConfig(30, n_layers=2, d_model=16, n_heads=2, causal=False, scheme="sinusoidal"))


def likely(ids):
    return 3.0 * torch.nn.functional.one_hot(ids, 30)


P, M = ProbeInputError, ModelInputError
CASES = {
    "a text without its mark": (M, lambda: CountingTransformer(4)(torch.tensor([[1, 1]])), "must begin with word 0"),
    "a second mark": (M, lambda: CountingTransformer(4)(torch.tensor([[0, 1, 0]])), "nowhere else"),
    "attention of another's model": (P, lambda: attention_variance(build("gpt2"), IDS), "is not posembed's own"),
    "one word twice": (P, lambda: repeated_word_attention(own(), bos=5, word=5), "bos and word are both 5"),
    "a word by its name": (
        P,
        lambda: repeated_word_attention(own(), bos="[CLS]", word=1),
        "bos is '[CLS]'; it must be a",
    ),
    "ids that are no whole numbers": (
        P,
        lambda: attention_variance(own(), torch.zeros(9, 4)),
        "give a tensor, Int[Tensor",
    ),
    "texts that are one": (P, lambda: attention_variance(own(), IDS[:1].repeat(9, 1)), "only 1 of 9 texts differ"),
    "a word that all texts have": (
        P,
        lambda: attention_variance(own(), IDS * (torch.arange(8) > 0)),
        "the same in all",
    ),
    "nothing to shuffle": (
        P,
        lambda: shuffled_prefix(likely, IDS, keep=6),
        "leaves less than two of 8 tokens to shuffle",
    ),
    "a model that sees both sides": (P, lambda: shuffled_prefix(seeing_both_sides(), IDS), "sees tokens on both sides"),
    "states in place of logits": (P, lambda: shuffled_prefix(own(), IDS), "gives hidden states and no logits"),
    "a model without logits": (P, lambda: shuffled_prefix(build("gpt2"), IDS), "gives no logits (batch, seq, vocab)"),
    "logits of fewer tokens": (P, lambda: shuffled_prefix(lambda ids: likely(ids)[:, 1:], IDS), "gives no logits"),
}
