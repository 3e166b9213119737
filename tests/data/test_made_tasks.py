"""Made tasks: each label by hand, what each task needs of positions, and what cannot be a task."""

import math

import pytest
import torch
from refusals import refused

from posembed.data import mirror_ceiling, synthetic_task
from posembed.data.synthetic_tasks import BEGIN, MARK, OTHER, RULES, SYMBOLS
from posembed.errors import TaskError


def texts(name, n=300, **options):
    return synthetic_task(name, **options).draw(n, torch.Generator().manual_seed(7))


def by_hand(name, text, difficulty):
    """The definition once more, in plain Python."""
    if name == "majority":
        return max(range(difficulty), key=lambda kind: text.count(SYMBOLS + kind))
    if name == "first":
        return text[1] - SYMBOLS
    if name == "order":
        standing = [mark for mark in text if MARK <= mark < MARK + difficulty]
        places = [text.index(MARK + mark) for mark in range(difficulty)]
        later = [sum(places[b] < places[a] for b in range(a + 1, difficulty)) for a in range(difficulty)]
        assert sorted(standing) == list(range(MARK, MARK + difficulty))
        return sum(count * math.factorial(difficulty - 1 - a) for a, count in enumerate(later))
    if name == "distance":
        one, other = [place for place, token in enumerate(text) if token == MARK]
        return other - one - 1
    if name == "lookup":
        return text[text.index(MARK) + difficulty] - SYMBOLS
    opening = text.index(MARK)
    return [opening + 1, text.index(OTHER, opening) - 1]


@pytest.mark.parametrize("difficulty", [None, 3])
@pytest.mark.parametrize("name", RULES)
def test_the_labels_are_those_of_the_definition(name, difficulty):
    task, made = synthetic_task(name, difficulty=difficulty), texts(name, difficulty=difficulty)
    chosen = RULES[name].usual if difficulty is None else difficulty
    assert made.ids.shape == (300, 32) and (made.ids[:, 0] == BEGIN).all()
    assert made.ids.min() >= 0 and made.ids.max() < task.vocab_size and (made.ids[:, 1:] > BEGIN).all()
    assert made.labels.tolist() == [by_hand(name, text, chosen) for text in made.ids.tolist()]
    assert (len(task.validation.ids), len(task.test.ids)) == (2048, 4096)
    if task.n_classes is not None:
        assert set(made.labels.tolist()) <= set(range(task.n_classes))
        # No label can be had by guessing: five standard errors of the test's texts.
        assert task.baseline < 1 / task.n_classes + 5 * (0.25 / 4096) ** 0.5


def test_the_marks_in_every_order_have_every_label():
    assert set(texts("order", n=2000, difficulty=3).labels.tolist()) == set(range(6))


def test_a_task_is_the_same_each_time_and_its_parts_are_others():
    one, again = synthetic_task("lookup"), synthetic_task("lookup")
    assert torch.equal(one.test.ids, again.test.ids) and not torch.equal(one.test.ids[:2048], one.validation.ids)
    assert torch.equal(texts("lookup").ids, texts("lookup").ids)


def test_majority_has_no_ties_and_needs_no_order():
    made, shuffled = texts("majority", difficulty=8), torch.randperm(31, generator=torch.Generator().manual_seed(0))
    moved = torch.cat([made.ids[:, :1], made.ids[:, 1 + shuffled]], 1)
    assert torch.equal(RULES["majority"].label(moved, 8), made.labels)
    counts = torch.nn.functional.one_hot(made.ids[:, 1:] - SYMBOLS, 8).sum(1).topk(2).values
    assert (counts[:, 0] > counts[:, 1]).all()


def test_the_ceiling_of_who_knows_no_direction():
    """By chance the symbols on both sides of a mark agree in one of four texts."""
    assert mirror_ceiling("majority") == mirror_ceiling("distance") == 1
    assert mirror_ceiling("order") == mirror_ceiling("order", difficulty=4) == 0.5
    for name in ("lookup", "first"):
        assert mirror_ceiling(name) == pytest.approx(0.5 + 0.5 / 4, abs=5 * (0.25 * 0.75 / 4096) ** 0.5 / 2)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: synthetic_task("sorting"),
            "name is 'sorting'; choose among majority, order, distance, lookup, first, span",
        ),
        (
            lambda: synthetic_task("majority", difficulty=1),
            "difficulty is 1; of majority it is at least 2",
        ),
        (lambda: synthetic_task("order", difficulty=6), "difficulty is 6; there are 5 marks to be ordered, at most"),
        (
            lambda: synthetic_task("lookup", difficulty=16),
            "length is 32; lookup with difficulty 16 needs at least 34",
        ),
        (lambda: mirror_ceiling("span"), "the answers of span are spans; a mirror ceiling is that of classes"),
    ],
)
def test_what_is_no_made_task(act, message):
    assert refused(TaskError, act) == message
