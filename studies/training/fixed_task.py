"""A task whose texts are there, as the folders of published tasks hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from posembed.data import Labelled, Task
from posembed.data.corpus import PARTS


def fixed_task(
    name: str,
    sizes: tuple[int, int | None, int],
    parts: tuple[Labelled, Labelled, Labelled],
    counted: Mapping[str, int],
) -> Task:
    """Make a task whose training texts are drawn from so many that there are.

    Args:
        name: of the task.
        sizes: the number of tokens, that of classes, and the token for padding.
        parts: for training, validation and test.
        counted: what was counted in reading; the size of each part is added.
    """
    train, validation, test = parts
    vocab_size, n_classes, padding = sizes

    def draw(n: int, generator: torch.Generator) -> Labelled:
        return train.at(torch.randint(len(train.ids), (n,), generator=generator))

    there = {part: len(each.ids) for part, each in zip(PARTS, parts, strict=True)}
    return Task(name, vocab_size, n_classes, draw, validation, test, padding, {**counted, **there})


def padded(texts: Sequence[Sequence[int]], padding: int, length: int) -> Int[Tensor, "texts length"]:
    """Texts as rows of one length, filled up with padding."""
    return torch.tensor([[*ids, *[padding] * (length - len(ids))] for ids in texts])
