"""What is said to help a model past its trained length, given to a trained one without any further training."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch

from posembed.data import Corpus, windows_in_order
from posembed.encodings import T5, LinearScaling, NTKScaling, RoPE
from posembed.encodings.rope_scaling import Scaling
from posembed.models import LanguageModel
from posembed.training import RunConfig

from .longer import APART, LENGTHS, TEXTS, last_loss, plain


@torch.no_grad()
def inspect_remedies(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, dict[str, float]]:
    """Measure the losses of `inspect_longer`, as texts stand, with each remedy that the scheme can have.

    Returns:
        By remedy and length. ``sharper``: all queries times log n / log 64, against more keys (Chiang and Cholak 2022).
        ``interpolated`` and ``ntk``: RoPE with all angles divided by n / 64, or with a larger base. ``shared``: T5's
        buckets that no offset of the training had take the numbers of the furthest that one had.
    """
    model.eval()
    texts, found = windows_in_order(corpus.test, max(LENGTHS), TEXTS).long(), {}
    for name, remedy in {"sharper": sharper, "interpolated": interpolated, "ntk": ntk, "shared": shared}.items():
        helped = {n: remedy(copy.deepcopy(model), config, n) for n in APART}
        if all(each is not None for each in helped.values()):
            found[name] = {str(n): last_loss(each, plain(texts, n)) for n, each in helped.items()}
    return found


def sharper(model: Any, config: RunConfig, n: int) -> Any:
    """All logits of queries and keys times log n / log of the trained length."""
    for layer in model.transformer.layers:
        for each in layer.attention.query.parameters():
            each.mul_(math.log(n) / math.log(config.length))
    return model


def interpolated(model: LanguageModel, config: RunConfig, n: int) -> Any:
    """RoPE with positions pressed together into the trained length."""
    return _scaled(model, config, LinearScaling(factor=n / config.length))


def ntk(model: LanguageModel, config: RunConfig, n: int) -> Any:
    """RoPE whose slowest pair is pressed together, and whose fastest stays as it is."""
    return _scaled(model, config, NTKScaling(factor=n / config.length))


def _scaled(model: Any, config: RunConfig, scaling: Scaling) -> Any:
    if config.scheme != "rope":
        return None
    options = config.scheme_options.get("rope", {})
    for layer in model.transformer.layers:
        layer.attention.position_scheme = RoPE(config.d_model // config.n_heads, **options, scaling=scaling)
    return model


def shared(model: LanguageModel, config: RunConfig, _: int) -> Any:
    """T5's untouched buckets like the furthest touched one."""
    scheme = model.transformer.position_scheme
    if not isinstance(scheme, T5):
        return None
    furthest = int(scheme.bucket(torch.tensor([2 - config.length])))
    scheme.weight[furthest + 1 :] = scheme.weight[furthest]
    return model
