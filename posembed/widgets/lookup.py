"""Figure 2: a lookup as a one-hot product, and the rows that a gradient step changes."""

from __future__ import annotations

import torch

from .base import InteractiveFigure, html_table, rounded

WORDS = ["[PAD]", "the", "cat", "dog", "sat", "ran", "on", "mat"]
# "the cat sat on the mat", padded: one word twice, one row of padding, two rows that nothing uses.
BATCH = [1, 2, 4, 6, 1, 7, 0]
D_MODEL = 4
SEED = 0


class LookupFigure(InteractiveFigure):
    """Pick an id and see the one-hot row, the product and the table row meet; take a step and see which rows change.

    The loss is half the squared distance between the rows that the batch looks up and fixed targets, summed.

    Example:
        >>> from posembed.widgets import LookupFigure
        >>> len(LookupFigure().table)
        8
    """

    module = "lookup.js"
    height = (684, 613)

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(SEED)
        # Two decimals, as they are shown.
        table, targets = (
            rounded(torch.randn(n_rows, D_MODEL, generator=generator).tolist(), 2)
            for n_rows in (len(WORDS), len(BATCH))
        )
        super().__init__(
            words=WORDS,
            table=table,
            batch=BATCH,
            targets=targets,
            learning_rate=0.3,
            padding=False,
            selected=2,
            # All rows of the product, and the table as it is.
            summed=len(WORDS) + 1,
        )

    def fallback_html(self) -> str:
        """Show the table, and how often the batch uses each row."""
        return html_table(
            "look a row up, then take a gradient step. The table:",
            ["id", "one-hot", *(f"column {column}" for column in range(D_MODEL)), "in the batch"],
            [
                [f"{i} {word}", str(int(i == self.selected)), *(f"{v:.2f}" for v in row), str(self.batch.count(i))]
                for i, (word, row) in enumerate(zip(self.words, self.table, strict=True))
            ],
        )
