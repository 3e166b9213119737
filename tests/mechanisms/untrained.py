"""Models as they are initialised, and texts of unrelated words."""

import torch

from posembed import Transformer, TransformerConfig
from posembed.models import LanguageModel

VOCABULARY = 300


def untrained(scheme="nopos", *, causal=True, seed=0, kind=Transformer, **sizes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        options = {"n_layers": 2, "n_positions": 64} | sizes
        return kind(TransformerConfig(VOCABULARY, scheme=scheme, causal=causal, **options))


def language_model(scheme="nopos", **options):
    return untrained(scheme, kind=LanguageModel, **options)


def random_texts(n, length, seed=0):
    return torch.randint(VOCABULARY, (n, length), generator=torch.Generator().manual_seed(seed))


def with_even_attention(model):
    """All queries zero: attention is even, and what it gives a running mean."""
    for layer in model.layers:
        torch.nn.init.zeros_(layer.attention.query.weight)
    return model
