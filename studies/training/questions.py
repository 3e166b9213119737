"""Four questions at the end of a text, each of which needs a token that may stand far back.

A text begins with a token of its own. Then come random letters, and among them, at places that are drawn anew for each
text: a key and the letter that it opens; four names, each with a letter behind it; and up to seven marks. At the end it
is asked, in an order that is drawn too, and each question is followed by its answer:

- "first": the first letter.
- "needle": the letter behind the key. The key is asked for by itself, so that its place is all there is to find.
- "induction": the letter behind one of the names, asked for by the name.
- "counting": how many marks there are.

A longer text has more letters and nothing else more, so its answers stand further back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from posembed.data import Labelled, Task
from posembed.models import LanguageModel
from posembed.seeds import torch_generator
from posembed.training import RunConfig

NAME = "questions"
QUESTIONS = ("first", "needle", "induction", "counting")
BEGIN, MARK, KEY, FIRST, COUNT = range(5)
N_LETTERS, N_NAMES, NAMED, MOST = 16, 32, 4, 7
LETTERS = 5
NAMES = LETTERS + N_LETTERS
COUNTS = NAMES + N_NAMES
VOCABULARY = COUNTS + MOST + 1
# What a text ends in: each question and its answer.
ASKED = 2 * len(QUESTIONS)
# A pair of places each for the key, the names and the marks, behind the beginning and the first letter.
SLOTS = 1 + NAMED + MOST
SHORTEST = 2 + 2 * SLOTS + ASKED
FIXED = 512
LENGTHS = (96, 128, 256, 512)
# Two layers that were trained on 64 tokens can hand on what stands some 120 back, each over a distance that it knows.
RELAYED = 120
# Small: what a scheme makes of each query and key stays in the cache.
AT_A_TIME = 2**11


class Asked(NamedTuple):
    """Texts that end in four questions.

    Attributes:
        ids: "texts length".
        order: "texts 4", which of `QUESTIONS` each of the four is.
        back: "texts 2", how many tokens before the questions the key stands, and the name that is asked for.
    """

    ids: Tensor
    order: Tensor
    back: Tensor


def draw(n: int, length: int, generator: torch.Generator) -> Asked:
    """Draw texts of a length, which is even and at least `SHORTEST`."""
    body, rows = length - ASKED, torch.arange(n)
    ids = torch.randint(LETTERS, NAMES, (n, body), generator=generator)
    ids[:, 0] = BEGIN
    places = 2 + 2 * torch.rand(n, body // 2 - 1, generator=generator).topk(SLOTS).indices
    key, named, marks = places.split([1, NAMED, MOST], 1)
    ids.scatter_(1, key, KEY)
    ids.scatter_(1, named, NAMES + torch.rand(n, N_NAMES, generator=generator).topk(NAMED).indices)
    count = torch.randint(MOST + 1, (n, 1), generator=generator)
    ids.scatter_(1, marks, torch.where(torch.arange(MOST) < count, MARK, ids.gather(1, marks)))
    name = named[:, 0]
    questions = torch.stack([torch.full((n,), each) for each in (FIRST, KEY, 0, COUNT)], 1)
    questions[:, 2] = ids[rows, name]
    answers = [ids[:, 1], ids[rows, key[:, 0] + 1], ids[rows, name + 1], COUNTS + count[:, 0]]
    order = torch.rand(n, len(QUESTIONS), generator=generator).argsort(1)
    end = torch.stack([questions.gather(1, order), torch.stack(answers, 1).gather(1, order)], 2).flatten(1)
    return Asked(torch.cat([ids, end], 1), order, body - torch.cat([key, named[:, :1]], 1))


def questions_task(longest: int) -> Task:
    """The task whose training texts are of even lengths up to the longest, one for each batch."""

    def drawn(n: int, generator: torch.Generator) -> Labelled:
        length = 2 * int(torch.randint(SHORTEST // 2, longest // 2 + 1, (1,), generator=generator))
        ids, order, _ = draw(n, length, generator)
        return Labelled(ids, order)

    fixed = [draw(FIXED, longest, torch_generator(0, f"{NAME}, {part}")) for part in ("validation", "test")]
    validation, test = (Labelled(each.ids, each.order) for each in fixed)
    return Task(NAME, VOCABULARY, N_LETTERS, drawn, validation, test)


def answer_losses(model: LanguageModel, ids: Int[Tensor, "texts length"]) -> Float[Tensor, "texts 4"]:
    """The loss of each answer, in nats."""
    logits = model(ids[:, :-1])[:, 1 - ASKED :: 2]
    return F.cross_entropy(logits.mT, ids[:, 1 - ASKED :: 2], reduction="none")


def answered(
    model: LanguageModel, asked: Asked, positions: Int[Tensor, " length"] | None = None
) -> Float[Tensor, "texts questions"]:
    """Whether each question is answered rightly, one or zero, in the order of `QUESTIONS`."""
    right = []
    for ids in asked.ids.split(max(1, AT_A_TIME // asked.ids.shape[1])):
        logits = model(ids[:, :-1], None if positions is None else positions[:-1])[:, 1 - ASKED :: 2]
        right.append((logits.argmax(-1) == ids[:, 1 - ASKED :: 2]).double())
    return torch.cat(right).gather(1, asked.order.argsort(1))


@torch.no_grad()
def measure_questions(model: LanguageModel, task: Task, config: RunConfig) -> dict[str, Any]:
    """Measure a trained model on a task's fixed parts, and ask it in longer texts where the config has a test length.

    Returns:
        Ready for JSON: "loss" and "validation_loss", and what `ask` finds as "asked".
    """
    found: dict[str, Any] = {
        name: round(float(answer_losses(model, part.ids).double().mean()), 6)
        for name, part in (("loss", task.test), ("validation_loss", task.validation))
    }
    return found if config.test_length is None else found | {"asked": ask(model, config.length)}


def ask(model: LanguageModel, trained: int) -> dict[str, Any]:
    """Ask a model in texts as long as the longest of its training, and in longer ones.

    Returns:
        Shares of right answers by length and question: ``plain``; ``last``, of the same texts their first token and
        what stands at their end, together as long as the longest of the training; ``gap``, texts of the trained length
        with their first half as far back as that of each length would stand, where the answer stands in that half, and
        ``no gap``, the same answers without it. Of the key and the name alone that stand more than `RELAYED` tokens
        back, ``far`` and ``far, last``: the same two ways.
    """
    found: dict[str, Any] = {way: {} for way in ("plain", "last", "gap", "far", "far, last")}
    asked, at = _asked(trained), torch.arange(trained)
    whole = answered(model, asked)
    found["plain"][str(trained)] = shares(whole)
    moved = F.pad(asked.back > trained // 2 - ASKED, (1, 1), value=True)
    found["no gap"] = shares(whole, moved)
    for n in LENGTHS:
        gap = at + (at >= trained // 2) * (n - trained)
        found["gap"][str(n)] = shares(answered(model, asked, gap), moved)
        longer = _asked(n)
        end = torch.cat([longer.ids[:, :1], longer.ids[:, 1 - trained :]], 1)
        far = F.pad(longer.back > RELAYED, (1, 1), value=True)
        for way, text in (("", longer), ("last", longer._replace(ids=end))):
            right = answered(model, text)
            found[way or "plain"][str(n)] = shares(right)
            if n > RELAYED + ASKED:
                found[", ".join(filter(None, ("far", way)))][str(n)] = shares(right, far)
    return found


def _asked(length: int) -> Asked:
    """The same texts for each model."""
    return draw(FIXED, length, torch_generator(0, f"{NAME}, {length}"))


def shares(
    right: Float[Tensor, "texts questions"], asked: Bool[Tensor, "texts questions"] | None = None
) -> dict[str, float]:
    """The share of right answers to each question, in all texts or where it is asked."""
    counted = torch.ones_like(right) if asked is None else asked.to(right)
    found = (right * counted).sum(0) / counted.sum(0)
    return {name: round(float(each), 4) for name, each in zip(QUESTIONS, found, strict=True)}
