"""Figure 2: a lookup as a one-hot product, and the rows that a gradient step changes."""

from __future__ import annotations

from typing import Any

import torch
import traitlets

from .base import InteractiveFigure, html_table

WORDS = ["[PAD]", "the", "cat", "dog", "sat", "ran", "on", "mat"]
# "the cat sat on the mat", padded: one word twice, one row of padding, two rows that nothing uses.
BATCH = [1, 2, 4, 6, 1, 7, 0]
D_MODEL = 4


class LookupFigure(InteractiveFigure):
    """Pick an id and see the one-hot row, the product and the table row meet; take a step and see which rows change.

    The loss is half the squared distance between the rows that the batch looks up and fixed targets, summed.

    Args:
        seed: of the table and the targets.

    Example:
        >>> from posembed.widgets import LookupFigure
        >>> len(LookupFigure().table)
        8
    """

    module = "lookup.js"

    words = traitlets.List(traitlets.Unicode()).tag(sync=True, figure=True)
    table: traitlets.List = traitlets.List().tag(sync=True, figure=True)
    batch = traitlets.List(traitlets.Int()).tag(sync=True, figure=True)
    targets: traitlets.List = traitlets.List().tag(sync=True, figure=True)
    learning_rate = traitlets.Float(0.5).tag(sync=True, figure=True)
    padding = traitlets.Bool(False).tag(sync=True, figure=True)
    selected = traitlets.Int(2).tag(sync=True, figure=True)

    def __init__(self, *, seed: int = 0, **traits: Any) -> None:
        generator = torch.Generator().manual_seed(seed)
        table, targets = _random_rows(len(WORDS), generator), _random_rows(len(BATCH), generator)
        super().__init__(words=WORDS, table=table, batch=BATCH, targets=targets, **traits)

    def fallback_html(self) -> str:
        """Show the table, and how often the batch uses each row."""
        return html_table(
            "Interactive figure (needs JavaScript): look a row up, then take a gradient step. The table:",
            ["id", "one-hot", *(f"column {column}" for column in range(D_MODEL)), "in the batch"],
            [
                [f"{i} {word}", str(int(i == self.selected)), *(f"{v:.2f}" for v in row), str(self.batch.count(i))]
                for i, (word, row) in enumerate(zip(self.words, self.table, strict=True))
            ],
        )


def _random_rows(n_rows: int, generator: torch.Generator) -> list[list[float]]:
    # Two decimals, as they are shown.
    return [[round(value, 2) for value in row] for row in torch.randn(n_rows, D_MODEL, generator=generator).tolist()]
