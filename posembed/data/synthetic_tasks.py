"""What a task is, and made ones, each of which needs one thing of positions: nothing, an order, a distance, a place ...

A text begins with the token `BEGIN`. Without it a model whose biases treat both directions alike could not tell any
text from its mirror image. With it no task is out of reach for any bias: the distance to the beginning is a way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from ..errors import TaskError
from ..public import Whole, public
from ..seeds import torch_generator

# The first token of all texts, marks (no task has more), and from there on symbols without a meaning.
BEGIN, MARK, OTHER, SYMBOLS = 0, 1, 2, 6
KINDS = 4
VALIDATION, TEST = 2048, 4096
TaskName = Literal["majority", "order", "distance", "lookup", "first", "span"]


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


@dataclass(frozen=True)
class Rule:
    """The definition of a made task; `difficulty` below is a whole number.

    Attributes:
        marked: puts marks into texts of random symbols, by difficulty and generator.
        label: what is to be said of texts, by difficulty; -1 of those that are none of the task's.
        usual: the difficulty by default.
        least: of the difficulty.
        tokens: how many a text must have beyond its beginning, by difficulty.
        kinds: how many symbols there are, by difficulty.
        classes: how many classes, by difficulty; None where the answer is a span.
    """

    marked: Callable[[Tensor, int, torch.Generator], Tensor]
    label: Callable[[Tensor, int], Tensor]
    usual: int
    least: int
    tokens: Callable[[int], int]
    kinds: Callable[[int], int] = lambda difficulty: KINDS
    classes: Callable[[int], int | None] = lambda difficulty: KINDS


@public(TaskError)
def synthetic_task(name: TaskName, *, difficulty: Whole | None = None, length: Whole = 32) -> Task:
    """Make a task of random texts whose labels follow from a rule.

    - "majority" needs nothing of positions: the symbol that stands there most often, of as many as the difficulty.
    - "order": in which of all possible orders the marks stand, of which there are 2 to 5, as the difficulty says.
    - "distance": how many places two equal marks are apart, less one: at most as many as the difficulty.
    - "lookup": the symbol as many places after the mark as the difficulty: a distance and a direction.
    - "first": the symbol after the beginning, of as many as the difficulty.
    - "span": the first and the last token between mark 1 and the next mark 2; as many marks 2 as the difficulty stand
      before mark 1 and answer nothing.

    Labels follow from texts, so the ceiling is 1; `mirror_ceiling` is that of a reader without directions, and
    `Task.baseline` what a constant guess gets.

    Args:
        name: of the task.
        difficulty: a whole number; by default the usual one of the task.
        length: of the texts, with the token that they begin with.

    Returns:
        The task; its fixed parts, 2048 and 4096 texts, are the same each time.

    Raises:
        TaskError: an unknown task; a difficulty that it cannot have, or not in texts of this length.

    Example:
        >>> import torch
        >>> from posembed.data import synthetic_task
        >>> texts = synthetic_task("order", length=8).draw(1, torch.Generator().manual_seed(0))
        >>> texts.ids, texts.labels
        (tensor([[0, 2, 1, 6, 9, 9, 9, 9]]), tensor([1]))
    """
    rule, chosen = _rule(name, difficulty, length)

    def draw(n: int, generator: torch.Generator) -> Labelled:
        kept = [_texts(rule, chosen, length, n, generator)]
        # Texts that the rule says nothing of, such as ties, are drawn again.
        while sum(map(len, kept)) < n:
            kept.append(_texts(rule, chosen, length, n, generator))
        ids = torch.cat(kept)[:n]
        return Labelled(ids, rule.label(ids, chosen))

    validation = draw(VALIDATION, torch_generator(0, f"{name}, validation"))
    test = draw(TEST, torch_generator(0, f"{name}, test"))
    return Task(name, SYMBOLS + rule.kinds(chosen), rule.classes(chosen), draw, validation, test)


@public(TaskError)
def mirror_ceiling(name: TaskName, *, difficulty: Whole | None = None, length: Whole = 32) -> float:
    """Compute the best accuracy on a made task's test for who takes a text and its mirror image for one.

    Both are as likely, so of two labels that differ one half is right.

    Args:
        name: of a task whose labels are classes; the other arguments are those of `synthetic_task`.
        difficulty: of the task.
        length: of the texts; the beginning stays where it is.

    Raises:
        TaskError: as for `synthetic_task`; a task whose answers are spans.

    Example:
        >>> from posembed.data import mirror_ceiling
        >>> mirror_ceiling("order"), mirror_ceiling("distance")
        (0.5, 1.0)
    """
    rule, chosen = _rule(name, difficulty, length)
    if rule.classes(chosen) is None:
        raise TaskError(f"the answers of {name} are spans; a mirror ceiling is that of classes")
    texts = synthetic_task(name, difficulty=chosen, length=length).test
    mirrored = torch.cat([texts.ids[:, :1], texts.ids[:, 1:].flip(1)], dim=1)
    return float((1 + (rule.label(mirrored, chosen) == texts.labels).double()).mean() / 2)


def _rule(name: str, difficulty: int | None, length: int) -> tuple[Rule, int]:
    rule = RULES[name]
    chosen = rule.usual if difficulty is None else difficulty
    if chosen < rule.least:
        raise TaskError(f"difficulty is {chosen}; of {name} it is at least {rule.least}")
    if name == "order" and chosen > SYMBOLS - MARK:
        raise TaskError(f"difficulty is {chosen}; there are {SYMBOLS - MARK} marks to be ordered, at most")
    if length <= rule.tokens(chosen):
        raise TaskError(f"length is {length}; {name} with difficulty {chosen} needs at least {1 + rule.tokens(chosen)}")
    return rule, chosen


def _texts(rule: Rule, difficulty: int, length: int, n: int, generator: torch.Generator) -> Int[Tensor, "texts seq"]:
    ids = torch.randint(SYMBOLS, SYMBOLS + rule.kinds(difficulty), (n, length), generator=generator)
    ids[:, 0] = BEGIN
    ids = rule.marked(ids, difficulty, generator)
    labels = rule.label(ids, difficulty)
    return ids if labels.ndim == 2 else ids[labels >= 0]


def _unmarked(ids: Tensor, difficulty: int, generator: torch.Generator) -> Tensor:
    return ids


def _uniform(least: int, most: Tensor | int, n: int, generator: torch.Generator) -> Int[Tensor, " texts"]:
    """Whole numbers from the least to the most, which may be another for each text."""
    return least + (torch.rand(n, generator=generator, dtype=torch.float64) * (most - least + 1)).long()


def _marks(ids: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """One of each of n marks, anywhere."""
    places = 1 + torch.rand(len(ids), ids.shape[1] - 1, generator=generator).topk(n).indices
    return ids.scatter_(1, places, torch.arange(MARK, MARK + n).expand(len(ids), n))


def _two_equal_marks(ids: Tensor, farthest: int, generator: torch.Generator) -> Tensor:
    """At a distance as likely as any other."""
    apart = _uniform(1, farthest, len(ids), generator)
    place = _uniform(1, ids.shape[1] - 1 - apart, len(ids), generator)
    return ids.scatter_(1, torch.stack([place, place + apart], 1), MARK)


def _one_mark(ids: Tensor, offset: int, generator: torch.Generator) -> Tensor:
    """It has so many symbols on both sides."""
    place = _uniform(1 + offset, ids.shape[1] - 1 - offset, len(ids), generator)
    return ids.scatter_(1, place[:, None], MARK)


def _span_marks(ids: Tensor, decoys: int, generator: torch.Generator) -> Tensor:
    """Marks 2 that answer nothing, mark 1, at least one token, mark 2."""
    chances = torch.rand(len(ids), ids.shape[1] - 2, generator=generator)
    places = 1 + chances.topk(decoys + 2).indices.sort().values
    places[:, -1] += 1
    ids.scatter_(1, places, OTHER)
    return ids.scatter_(1, places[:, -2:-1], MARK)


def _most_common(ids: Tensor, kinds: int) -> Tensor:
    counts = F.one_hot(ids[:, 1:] - SYMBOLS, kinds).sum(1)
    first, second = counts.topk(2).values.T
    return counts.argmax(1).masked_fill(first == second, -1)


def _order(ids: Tensor, n: int) -> Tensor:
    """The number of the order among all n! of them: how many later marks each has before it, as a mixed number."""
    places = torch.stack([_place(ids, MARK + mark) for mark in range(n)], 1)
    label = torch.zeros(len(ids), dtype=torch.long)
    for mark in range(n):
        label = label * (n - mark) + (places[:, mark + 1 :] < places[:, mark, None]).sum(1)
    return label


def _place(ids: Tensor, mark: int, *, last: bool = False) -> Int[Tensor, " texts"]:
    """Where a mark stands first, or last."""
    there = (ids == mark).int()
    return ids.shape[1] - 1 - there.flip(1).argmax(1) if last else there.argmax(1)


RULES = {
    "majority": Rule(_unmarked, _most_common, 4, 2, lambda kinds: 1, kinds=lambda kinds: kinds, classes=lambda n: n),
    "order": Rule(_marks, _order, 2, 2, lambda n: n, classes=math.factorial),
    "distance": Rule(
        _two_equal_marks,
        lambda ids, farthest: _place(ids, MARK, last=True) - _place(ids, MARK) - 1,
        8,
        2,
        lambda farthest: farthest + 1,
        classes=lambda farthest: farthest,
    ),
    "lookup": Rule(
        _one_mark,
        lambda ids, offset: ids[torch.arange(len(ids)), _place(ids, MARK) + offset] - SYMBOLS,
        2,
        1,
        lambda offset: 2 * offset + 1,
    ),
    "first": Rule(
        _unmarked,
        lambda ids, kinds: ids[:, 1] - SYMBOLS,
        4,
        2,
        lambda kinds: 1,
        kinds=lambda kinds: kinds,
        classes=lambda kinds: kinds,
    ),
    "span": Rule(
        _span_marks,
        lambda ids, decoys: torch.stack([_place(ids, MARK) + 1, _place(ids, OTHER, last=True) - 1], 1),
        1,
        0,
        lambda decoys: decoys + 3,
        classes=lambda decoys: None,
    ),
}
