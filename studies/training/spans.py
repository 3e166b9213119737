"""Questions whose answer is a piece of a text, or that have none: SQuAD's form, as a file or as rows of `datasets`."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from posembed.data import Labelled, Task
from posembed.errors import TaskError, shown
from posembed.seeds import generator

from .fixed_task import fixed_task, padded
from .subwords import Subwords

# Of ten texts one is for choosing and two for measuring.
PERIOD, TESTED = 10, 2
WORD = re.compile(r"[^\W\d_]+")
# A question may take a quarter of the window.
ASKING = 4


@dataclass(frozen=True)
class Question:
    """A question and the text that may hold its answer.

    Attributes:
        question: in words.
        context: the text.
        start: where the answer begins, in characters; None where there is none.
        answer: as it stands in the text.

    Example:
        >>> from studies.training.spans import Question
        >>> asked = Question("Who barks?", "The dog barks.", 4, "dog")
        >>> asked.context[asked.start :][:3]
        'dog'
    """

    question: str
    context: str
    start: int | None
    answer: str = ""


def read_questions(path: Path | str) -> list[Question]:
    """Read a file in SQuAD's form, such as XQuAD's.

    Args:
        path: of the JSON file.

    Returns:
        Its questions, each with its first answer.

    Raises:
        TaskError: a file that is missing, is not of this form, or holds no question.

    Example:
        >>> from studies.training.spans import read_questions
        >>> read_questions("no-such-file.json")
        Traceback (most recent call last):
        posembed.errors.TaskError: cannot read no-such-file.json (No such file or directory); give a file as SQuAD's
    """
    if not isinstance(path, str | Path):
        raise TaskError(f"{shown(path)} is no path; give that of a file as SQuAD's")
    path = Path(path)
    try:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
        rows = [
            {"question": each["question"], "context": paragraph["context"], "answers": _columns(each["answers"])}
            for article in articles
            for paragraph in article["paragraphs"]
            for each in paragraph["qas"]
        ]
    except OSError as error:
        raise TaskError(f"cannot read {path.name} ({error.strerror}); give a file as SQuAD's") from None
    except (ValueError, KeyError, TypeError):
        raise TaskError(f"{path.name} is malformed; give a JSON file as SQuAD's: data, paragraphs, qas") from None
    return question_rows(rows)


def question_rows(rows: Iterable[Mapping[str, Any]]) -> list[Question]:
    """Take questions from the rows of a dataset with the columns of SQuAD, such as one of Hugging Face's `datasets`.

    Args:
        rows: of one part.

    Raises:
        TaskError: no row, or one without question, context and answers.

    Example:
        >>> from studies.training.spans import question_rows
        >>> question_rows([{"question": "Who?", "context": "I.", "answers": {"text": [], "answer_start": []}}])
        [Question(question='Who?', context='I.', start=None, answer='')]
    """
    found = []
    for number, row in enumerate(rows):
        try:
            starts, texts = row["answers"]["answer_start"], row["answers"]["text"]
            answer = (int(starts[0]), str(texts[0])) if len(starts) else (None, "")
            found.append(Question(row["question"], row["context"], *answer))
        except (KeyError, TypeError, ValueError, IndexError):
            raise TaskError(f"row {number} has no question, context and answers as SQuAD's; take another set") from None
    if not found:
        raise TaskError("there is no question; give a part that holds some")
    return found


def _columns(answers: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [each[name] for each in answers] for name in ("answer_start", "text")}


def moved_questions(questions: Sequence[Question], *, seed: int = 0) -> list[Question]:
    """Take every second question's answer away, by moving the question to another text that does not hold it.

    Args:
        questions: with answers; one without stays as it is.
        seed: of the choice of texts.

    Returns:
        As many questions in their order.

    Raises:
        TaskError: a question whose answer stands in every text.

    Example:
        >>> from studies.training.spans import Question, moved_questions
        >>> asked = [Question("Who barks?", "The dog.", 4, "dog"), Question("Who mews?", "The cat.", 4, "cat")]
        >>> moved_questions(asked)[1]
        Question(question='Who mews?', context='The dog.', start=None, answer='')
    """
    contexts, draws = sorted({each.context for each in questions}), generator(seed, "moved questions")
    found = list(questions)
    for number in range(1, len(found), 2):
        asked = found[number]
        if asked.start is None:
            continue
        others = [each for each in contexts if asked.answer.lower() not in each.lower()]
        if not others:
            raise TaskError(f"the answer {asked.answer!r} stands in every text; give more texts")
        found[number] = replace(asked, context=others[draws.integers(len(others))], start=None, answer="")
    return found


def word_questions(text: str, n: int, *, size: int = 64, seed: int = 0) -> list[Question]:
    """Ask where a word stands in a piece of a text.

    Args:
        text: cut into pieces of whole words, one for each question.
        n: how many questions at most.
        size: of a piece, in characters at most.
        seed: of the words, each of four letters at least, that stand once in their piece.

    Example:
        >>> from studies.training.spans import word_questions
        >>> word_questions("a cat, a bird; a dog", 1)
        [Question(question='bird', context='a cat, a bird; a dog', start=9, answer='bird')]
    """
    draws = generator(seed, "word questions")
    found: list[Question] = []
    for context in textwrap.wrap(text, size, break_long_words=False):
        words = [word for word in WORD.finditer(context) if len(word[0]) >= 4 and context.count(word[0]) == 1]
        if words and len(found) < n:
            word = words[draws.integers(len(words))]
            found.append(Question(word[0], context, word.start(), word[0]))
    return found


def span_task(name: str, questions: Sequence[Question], words: Subwords, *, length: int, seed: int = 0) -> Task:
    """Make a task of questions: [CLS], the question, a separator, and so much of the text as fits.

    Of a text that is too long a piece is taken: with the answer, at a place that is drawn. Of a question a quarter of
    the length at most is kept. Texts are parted, not questions: of ten, seven are for training, one for choosing and
    two for measuring.

    Args:
        name: of the task.
        questions: with and without answers.
        words: the vocabulary.
        length: of the pieces, in subwords.
        seed: of the places.

    Returns:
        The task. `Task.counted` says how many texts were cut, and how many questions were left out and why ("outside",
        an answer that does not stand where it should; "too long", one that does not fit).

    Raises:
        TaskError: no question is left in a part.

    Example:
        >>> from studies.training.spans import Question, Subwords, span_task
        >>> asked = [Question("Who barks?", f"Number {n}: the dog.", 14 + (n > 9), "dog") for n in range(20)]
        >>> span_task("dogs", asked, Subwords([each.context for each in asked]), length=32).counted["test"]
        4
    """
    counted = {"questions": len(questions), "cut": 0, "outside": 0, "too long": 0}
    numbers = {context: number for number, context in enumerate(dict.fromkeys(each.context for each in questions))}
    draws = generator(seed, f"places of {name}")
    parts: dict[str, list[tuple[list[int], tuple[int, int]]]] = {"train": [], "validation": [], "test": []}
    for each in questions:
        place = numbers[each.context] % PERIOD
        part = "test" if place >= PERIOD - TESTED else "validation" if place == PERIOD - TESTED - 1 else "train"
        if (made := _example(each, words, length, draws, counted)) is not None:
            parts[part].append(made)
    if empty := [part for part, made in parts.items() if not made]:
        raise TaskError(f"no question of {name} is left for the part {empty[0]}; give more of them")
    train, validation, test = (_tensors(made, words, length) for made in parts.values())
    return fixed_task(name, (len(words), None, words.padding_id), (train, validation, test), counted)


def _example(
    asked: Question, words: Subwords, length: int, draws: Any, counted: dict[str, int]
) -> tuple[list[int], tuple[int, int]] | None:
    """The ids of a question and where its answer begins and ends; None where it is left out, which is counted."""
    question = words.pieces(asked.question).ids.tolist()[: length // ASKING]
    context, room = words.pieces(asked.context), length - 2 - len(question)
    first, last = 0, -1
    if asked.start is not None:
        end = asked.start + len(asked.answer)
        inside = [n for n, (begins, ends) in enumerate(context.ends) if begins < end and ends > asked.start]
        if not inside or asked.context[asked.start : end] != asked.answer:
            counted["outside"] += 1
            return None
        first, last = inside[0], inside[-1]
    if last - first >= room:
        counted["too long"] += 1
        return None
    n = len(context.ids)
    counted["cut"] += n > room
    least, most = (0, n - 1) if asked.start is None else (last - room + 1, first)
    begin = int(draws.integers(max(0, least), max(0, min(most, n - room)) + 1))
    ids = [words.cls_id, *question, words.separator_id, *context.ids[begin : begin + room].tolist()]
    shift = 2 + len(question) - begin
    return ids, (0, 0) if asked.start is None else (first + shift, last + shift)


def _tensors(made: Sequence[tuple[list[int], tuple[int, int]]], words: Subwords, length: int) -> Labelled:
    return Labelled(
        padded([ids for ids, _ in made], words.padding_id, length), torch.tensor([ends for _, ends in made])
    )
