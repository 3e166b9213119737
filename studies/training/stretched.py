"""RoPE past the trained length under the scalings that are made for it, without any further training."""

from __future__ import annotations

import copy
from typing import Any

import torch

from posembed.data import Corpus, windows_in_order
from posembed.encodings import LinearScaling, NTKScaling, RoPE, YaRNScaling
from posembed.models import LanguageModel
from posembed.training import RunConfig

from .longer import TEXTS, last_loss, plain

FACTORS = (1, 2, 4)


@torch.no_grad()
def inspect_stretched(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, dict[str, float]]:
    """Measure the loss of the last 16 characters of texts up to four times as long, the same ones in all, in nats.

    Returns:
        By scaling, "none" among them, and by length; the factor is the length over the trained one.
    """
    texts = windows_in_order(corpus.test, max(FACTORS) * config.length, TEXTS).long()
    found: dict[str, dict[str, float]] = {}
    for name, scaled in SCALED.items():
        found[name] = {}
        for factor in FACTORS:
            its, n = copy.deepcopy(model), factor * config.length
            scaling = None if factor == 1 else scaled(factor, config.length)
            for layer in its.transformer.layers if scaling else ():
                layer.attention.position_scheme = RoPE(config.d_model // config.n_heads, scaling=scaling)
            found[name][str(n)] = last_loss(its, plain(texts, n))
    return found


SCALED: dict[str, Any] = {
    "none": lambda factor, length: None,
    "linear": lambda factor, length: LinearScaling(factor=factor),
    "ntk": lambda factor, length: NTKScaling(factor=factor),
    "yarn": lambda factor, length: YaRNScaling(factor=factor, original_max_position_embeddings=length),
}
