"""Making the sinusoidal table."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import peers
import torch
from torch import Tensor
from transformers.models.roformer import modeling_roformer as roformer
from x_transformers import x_transformers

from posembed import sinusoidal

from .case import Candidate, Case, without_gradient
from .goals import error_below, no_slower

SIZES, QUICK_SIZES = ((4096, 768), (131072, 128)), ((64, 32),)
# A product of a position up to 131072 and a frequency, rounded to float32.
FLOAT32 = 2e-2
# One rounding to float32, of numbers up to one.
ROUNDED = 1e-7


def cases(quick: bool) -> list[Case]:
    """One case for each size."""
    return [_case(*size) for size in (QUICK_SIZES if quick else SIZES)]


def _case(n_positions: int, d_model: int) -> Case:
    return Case(
        "sinusoidal",
        f"table {n_positions} x {d_model}",
        lambda: (n_positions, d_model),
        _candidates(),
        lambda size: reference(*size),
        ROUNDED,
        [no_slower, error_below(1e-7)],
    )


def _candidates() -> list[Candidate]:
    concat, tensor2tensor = (partial(_in_layout, layout) for layout in ("concat", "tensor2tensor"))
    python = "number by number in Python; timed once, in float64"
    return [
        Candidate("posembed", _calling(sinusoidal), "computed in float64, rounded once"),
        Candidate("transformers m2m_100", _calling(peers.sinusoids_m2m100), reference=tensor2tensor, bound=FLOAT32),
        Candidate("transformers whisper", _calling(peers.sinusoids_whisper), reference=tensor2tensor, bound=FLOAT32),
        Candidate("x-transformers ScaledSinusoidalEmbedding", _x_transformers, reference=concat, bound=FLOAT32),
        Candidate("tutorial code", _calling(tutorial), "as in the PyTorch tutorial, in float32", bound=FLOAT32),
        Candidate("transformers distilbert", _calling(peers.sinusoids_distilbert), python, once=True),
        Candidate("transformers roformer", _roformer, python, reference=concat, once=True),
    ]


def reference(n_positions: int, d_model: int, layout: str = "interleaved") -> Tensor:
    """Make the table in float64 by the formula, "n_positions d_model"; even widths."""
    n_pairs = d_model // 2
    steps = n_pairs - 1 if layout == "tensor2tensor" else n_pairs
    frequencies = 10000.0 ** (-torch.arange(n_pairs, dtype=torch.float64) / steps)
    angles = torch.arange(n_positions, dtype=torch.float64)[:, None] * frequencies
    if layout == "interleaved":
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], -1)


def tutorial(n_positions: int, d_model: int) -> Tensor:
    """Make the table as tutorials do."""
    table = torch.zeros(n_positions, d_model)
    position = torch.arange(n_positions).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(position * div_term)
    table[:, 1::2] = torch.cos(position * div_term)
    return table


def _in_layout(layout: str, size: tuple[int, int]) -> Tensor:
    return reference(*size, layout)


def _calling(function: Callable[[int, int], Tensor]):
    return lambda size: partial(function, *size)


def _x_transformers(size: tuple[int, int]):
    n_positions, d_model = size
    module = x_transformers.ScaledSinusoidalEmbedding(d_model)
    torch.nn.init.ones_(module.scale)
    return without_gradient(partial(module, torch.empty(1, n_positions, 1)))


def _roformer(size: tuple[int, int]):
    return roformer.RoFormerSinusoidalPositionalEmbedding(*size).create_weight
