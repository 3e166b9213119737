"""Real texts with a class each, as the folders of SST-2, TREC and CoLA hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from posembed.data import Labelled, Task
from posembed.data.corpus import PARTS
from posembed.errors import TaskError

from .fixed_task import fixed_task, padded
from .subwords import Subwords


class ClassedText(NamedTuple):
    """A text and its class.

    Example:
        >>> from studies.training.classes import ClassedText
        >>> ClassedText("a gem", 1).label
        1
    """

    text: str
    label: int


class Format(NamedTuple):
    """How a folder holds a task.

    Attributes:
        files: by part. Where there is none for validation, every tenth text of the training is.
        n_classes: the number of classes.
        split: gives the text and the label of a line.
        encoding: of the files.
    """

    files: Mapping[str, str]
    n_classes: int
    split: Callable[[str], tuple[str, str]]
    encoding: str = "utf-8"


def _tabbed(text: int, label: int, columns: int) -> Callable[[str], tuple[str, str]]:
    def split(line: str) -> tuple[str, str]:
        cells = line.split("\t")
        if len(cells) != columns:
            raise ValueError
        return cells[text], cells[label]

    return split


def _label_first(line: str) -> tuple[str, str]:
    label, text = line.split(" ", 1)
    return text, label


FORMATS = {
    "sst2": Format(
        {"train": "sst2_train.tsv", "validation": "sst2_dev.tsv", "test": "sst2_test.tsv"}, 2, _tabbed(0, 1, 2)
    ),
    "trec": Format(
        {"train": "sent-conv_TREC.train.all", "test": "sent-conv_TREC.test.all"}, 6, _label_first, "latin-1"
    ),
    "cola": Format(
        {
            "train": "cola_in_domain_train.tsv",
            "validation": "cola_in_domain_dev.tsv",
            "test": "cola_out_of_domain_dev.tsv",
        },
        2,
        _tabbed(3, 1, 4),
    ),
}


def read_classes(name: str, folder: Path | str) -> dict[str, list[ClassedText]]:
    """Read a task of classes from its folder.

    Args:
        name: "sst2" (is a sentence of a review favourable?), "trec" (which of six kinds of answer does a question ask
            for?) or "cola" (is a sentence acceptable?; its test is the out-of-domain part).
        folder: with the files as their authors named them.

    Returns:
        The texts by part, which are "train", "validation" and "test".

    Raises:
        TaskError: an unknown task; a file that is missing, holds nothing, or has a line without a text and a label, or
            with a label that the task has not.

    Example:
        >>> from studies.training.classes import read_classes
        >>> read_classes("sst2", "no-such-folder")
        Traceback (most recent call last):
        posembed.errors.TaskError: cannot read sst2_train.tsv of sst2 (No such file or directory); give its folder
    """
    if name not in FORMATS:
        raise TaskError(f"task is {name!r}; choose among {', '.join(FORMATS)}")
    form = FORMATS[name]
    parts = {part: _read(Path(folder) / file, name, form) for part, file in form.files.items()}
    if "validation" not in parts:
        parts["validation"], parts["train"] = (
            parts["train"][9::10],
            [each for number, each in enumerate(parts["train"], 1) if number % 10],
        )
    return parts


def class_task(
    name: str, parts: Mapping[str, Sequence[ClassedText]], n_classes: int, words: Subwords, *, length: int
) -> Task:
    """Make a task of texts with classes: [CLS], and so much of the text as fits.

    Args:
        name: of the task.
        parts: "train", "validation" and "test".
        n_classes: the number of classes.
        words: the vocabulary.
        length: of the pieces, in subwords.

    Returns:
        The task. `Task.counted` says how many texts were cut.

    Raises:
        TaskError: a part that is not there or has no text.

    Example:
        >>> from studies.training.classes import ClassedText, Subwords, class_task
        >>> texts = [ClassedText("a gem", 1), ClassedText("no gem", 0)]
        >>> parts = {"train": texts, "validation": texts, "test": texts}
        >>> class_task("gems", parts, 2, Subwords(["a gem, no gem"]), length=8).test.labels
        tensor([1, 0])
    """
    if missing := [part for part in PARTS if not parts.get(part)]:
        raise TaskError(f"there is no text in the part {missing[0]!r}; give one at least in each of {', '.join(PARTS)}")
    ids = {part: [words.encode(each.text).tolist() for each in texts] for part, texts in parts.items()}
    cut = sum(len(text) >= length for texts in ids.values() for text in texts)

    def tensors(part: str) -> Labelled:
        rows = padded([[words.cls_id, *text[: length - 1]] for text in ids[part]], words.padding_id, length)
        return Labelled(rows, torch.tensor([each.label for each in parts[part]]))

    sizes = len(words), n_classes, words.padding_id
    return fixed_task(name, sizes, (tensors("train"), tensors("validation"), tensors("test")), {"cut": cut})


def _read(path: Path, name: str, form: Format) -> list[ClassedText]:
    try:
        lines = path.read_text(encoding=form.encoding).splitlines()
    except UnicodeDecodeError:
        raise TaskError(f"{path.name} of {name} is not {form.encoding} text; take the file of its authors") from None
    except OSError as error:
        raise TaskError(f"cannot read {path.name} of {name} ({error.strerror}); give its folder") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            text, label = form.split(line)
        except ValueError:
            raise TaskError(f"{path.name}, line {number}, has no text and label as {name} has them; mend it") from None
        found.append(_checked(text, label, form.n_classes, f"{path.name}, line {number},"))
    if not found:
        raise TaskError(f"{path.name} of {name} holds no text; take the file of its authors")
    return found


def _checked(text: Any, label: Any, n_classes: int, where: str) -> ClassedText:
    if str(label) not in map(str, range(n_classes)):
        raise TaskError(f"{where} has the label {label!r}; labels are whole numbers from 0 to {n_classes - 1}")
    return ClassedText(str(text).strip(), int(label))
