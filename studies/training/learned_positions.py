"""What a trained model's positions look like: its table, its relative vectors, and its attention to identical words."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from posembed.encodings import Composed, Shaw
from posembed.models import LanguageModel
from posembed.probing import identical_word_attention
from posembed.similarity import properties_of_matrix

from .untied import Untied

# So many positions are measured, and so many of them are kept as a map. Identical words are so many, or all there are.
POSITIONS, MAPPED, WORDS = 64, 32, 32


def learned_positions(model: LanguageModel, n_positions: int) -> dict[str, dict[str, Any]]:
    """Measure three properties of what a model has learned of positions, and keep the middle of each map.

    Position 0 is left out: it is that of [CLS] where there is one.

    Args:
        model: in evaluation mode, on the CPU.
        n_positions: how many positions to look at.

    Returns:
        By name, ready for JSON, each with its properties by name and "map", rows of numbers:

        "attention": of the first layer, to identical words (`posembed.probing.identical_word_attention`).

        "table": products of what the scheme adds to embeddings, position by position; where it adds something.

        "relative": products of the relative vectors of Shaw's scheme, offset by offset from the farthest behind to the
        farthest ahead, the mean over the layers; where there are some.
    """
    whole: Any = model.transformer
    with torch.no_grad():
        zeros = torch.zeros(1, n_positions, whole.config.d_model)
        rows = whole.position_scheme.add(zeros, torch.arange(n_positions))[0, 1:].double()
        words = min(WORDS, whole.config.vocab_size)
        found = {"attention": identical_word_attention(model, length=n_positions, words=words)[1:, 1:]}
        if rows.any():
            found["table"] = rows @ rows.T
        offsets = torch.arange(2 - n_positions // 2, n_positions // 2 - 1)
        vectors = [scheme.relative_vectors(offsets).double() for layer in whole.layers for scheme in _relative(layer)]
        if vectors:
            found["relative"] = torch.stack([each @ each.T for each in vectors]).mean(0)
    return {name: _said(matrix) for name, matrix in found.items()}


def _relative(layer: Any) -> list[Shaw]:
    scheme: Any = layer.attention.position_scheme
    scheme = scheme.scheme if isinstance(scheme, Untied) else scheme
    return [part for part in (scheme if isinstance(scheme, Composed) else [scheme]) if isinstance(part, Shaw)]


def _said(matrix: Float[Tensor, "n n"]) -> dict[str, Any]:
    middle = max(0, (len(matrix) - MAPPED) // 2)
    kept = matrix[middle : middle + MAPPED, middle : middle + MAPPED]
    return properties_of_matrix(matrix).to_dict() | {
        "map": [[float(f"{value:.3g}") for value in row] for row in kept.tolist()]
    }
