"""What a task is: texts with a label each, or with the place of an answer, in three parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

# For training, for choosing, and for measuring.
PARTS = ("train", "validation", "test")


class Labelled(NamedTuple):
    """Texts and what is to be said of them.

    Attributes:
        ids: "texts seq"; of images their grey values, "images height width".
        labels: "texts", a class each; or "texts 2", the first and the last token of the answer, (0, 0) for none.

    Example:
        >>> import torch
        >>> from posembed.data import Labelled
        >>> texts = Labelled(torch.zeros(3, 5, dtype=torch.long), torch.tensor([0, 1, 1]))
        >>> texts.at(torch.tensor([2, 0])).labels
        tensor([1, 0])
    """

    ids: Tensor
    labels: Tensor

    def at(self, index: Int[Tensor, " chosen"]) -> Labelled:
        """Return some of the texts."""
        return Labelled(self.ids[index], self.labels[index])


@dataclass(frozen=True, eq=False)
class Task:
    """Texts to train on, as many as are asked for, and two fixed parts.

    Attributes:
        name: of the task.
        vocab_size: the number of tokens.
        n_classes: the number of classes; None where the answer is a span.
        draw: gives so many texts for training, by a generator of random numbers.
        validation: what learning rates are chosen on.
        test: what results are measured on, and nothing is chosen on.
        padding: the token that fills texts up; None where all are of one length.
        counted: what readers should know of the texts, by name: how many there are, and how many were left out and why.
    """

    name: str
    vocab_size: int
    n_classes: int | None
    draw: Callable[[int, torch.Generator], Labelled]
    validation: Labelled
    test: Labelled
    padding: int | None = None
    counted: Mapping[str, int] = field(default_factory=dict)

    @property
    def baseline(self) -> float:
        """What a constant guess gets, the share of the test's texts that have the most common label or answer."""
        return float(self.test.labels.unique(dim=0, return_counts=True)[1].max() / len(self.test.labels))
