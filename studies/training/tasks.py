"""Training on a task, and what is measured of it: the loss, and how many answers are right."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from posembed.data import Labelled, Task, load_corpus, synthetic_task
from posembed.data.synthetic_tasks import RULES
from posembed.errors import TaskError, shown
from posembed.models import LanguageModel, SequenceClassifier, TransformerConfig
from posembed.training import RunConfig

from . import questions
from .classes import FORMATS, class_task, read_classes
from .cls import cls_positions
from .digits import image_task
from .settings import setting
from .span_predictor import SpanPredictor
from .spans import moved_questions, read_questions, span_task, word_questions
from .subwords import subword_corpus
from .vision import VisionTransformer

# Tasks of spans: all questions with answers, and every second one moved to a text that has none. Those on XQuAD are
# real; "word" asks where a word stands in a piece of the run's text.
SPANS = ("xquad", "xquad-moved", "word", "word-moved")
WORDS = 10_000
# The task of images, and the side of their patches in pixels.
DIGITS, PATCH = "digits", 2
# Names the folder that holds those of the real tasks.
FOLDER = "POSEMBED_TASKS"
# Texts that are measured at a time, and the places of a moved [CLS] when they are.
AT_A_TIME, PLACES_SEED = 512, 12345


def load_task(config: RunConfig) -> Task:
    """Load the task that a run is trained on.

    Made ones are those of `posembed.data.synthetic_task`. "digits" is that of `studies.training.digits`, with as many
    patches of 2 x 2 pixels as the config's length, a square of them; "questions" is that of
    `studies.training.questions`. Real ones are "sst2", "trec" and "cola", "xquad"
    and "xquad-moved" (every second question without an answer), in folders sst2, trec, cola, xquad of the one that the
    environment variable POSEMBED_TASKS names; their subwords are those of the run's text.

    Raises:
        TaskError: an unknown task, or a difficulty that it cannot have; files that are missing or malformed; a real
            task without subwords; digits in a number of patches that is no square.
    """
    name, subwords = setting(config, "task") or "", setting(config, "subwords")
    if name in RULES:
        return synthetic_task(name, difficulty=setting(config, "difficulty"), length=config.length)
    if name == DIGITS:
        return _digits(config)
    if name == questions.NAME:
        return questions.questions_task(config.length)
    if name not in (*FORMATS, *SPANS):
        known = ", ".join((*RULES, *FORMATS, *SPANS, DIGITS, questions.NAME))
        raise TaskError(f"there is no task {shown(name)}; choose among {known}")
    if subwords is not None and name.startswith("word"):
        return _real(name, Path(), config.data, subwords, config.length)
    if FOLDER not in os.environ:
        raise TaskError(f"the texts of {name} are not in the package; name the folder that holds them in {FOLDER}")
    if subwords is None:
        raise TaskError(f"{name} is read in subwords; say how many, subwords=2048")
    return _real(name, Path(os.environ[FOLDER]), config.data, subwords, config.length)


def _digits(config: RunConfig) -> Task:
    side = math.isqrt(config.length)
    if side**2 != config.length:
        raise TaskError(f"length is {config.length}; digits are read in a square of patches, such as 36")
    for name in ("difficulty", "subwords"):
        if setting(config, name) is not None:
            raise TaskError(f"{name} is {setting(config, name)!r}; digits have none, leave it out")
    return image_task(side * PATCH)


@cache
def _real(name: str, folder: Path, text: str, subwords: int, length: int) -> Task:
    words: Any = subword_corpus(text, subwords).vocabulary
    if name in FORMATS:
        return class_task(name, read_classes(name, folder / name), FORMATS[name].n_classes, words, length=length)
    if name.startswith("word"):
        corpus: Any = load_corpus(text)
        questions = word_questions(corpus.vocabulary.decode(corpus.train[: 100 * WORDS]), WORDS)
    else:
        questions = read_questions(folder / "xquad" / "xquad.en.json")
    return span_task(name, moved_questions(questions) if name.endswith("moved") else questions, words, length=length)


def task_model(task: Task, body: TransformerConfig, config: RunConfig) -> nn.Module:
    """Make an encoder with what reads the answer: from [CLS] where there is one, else from the mean of all states; of
    a span from each state. Images have an encoder of their own, and questions are answered by a language model.
    """
    if task.name == questions.NAME:
        return LanguageModel(body)
    if task.name == DIGITS:
        return VisionTransformer(body, task.n_classes or 0, size=task.test.ids.shape[1], patch=PATCH)
    if task.n_classes is None:
        return SpanPredictor(body, no_answer=bool((task.test.labels == 0).all(1).any()))
    return SequenceClassifier(body, task.n_classes, pooling="mean" if setting(config, "cls") is None else "first")


def task_loss(
    model: nn.Module, texts: Labelled, task: Task, config: RunConfig, generator: torch.Generator
) -> Float[Tensor, ""]:
    """The mean loss of some texts, in nats an answer; of a span the mean of its two ends."""
    return _loss(_logits(model, texts, task, config, generator), texts.labels.to(config.device))


def measure_task(model: nn.Module, task: Task, config: RunConfig) -> dict[str, Any]:
    """Measure a trained model on a task's test and validation part.

    Args:
        model: in evaluation mode, on the device of the config.
        task: what it was trained on.
        config: of the run.

    Returns:
        Ready for JSON: "loss" and "accuracy", "validation_loss" and "validation_accuracy"; "baseline", the accuracy of
        a constant guess; what was "counted" in reading. Of spans also "f1", the mean overlap of tokens; with questions
        that have no answer the accuracy on each kind, "with answer" and "without answer".
    """
    loss, answers = _measured(model, task.test, task, config)
    validation_loss, validation_answers = _measured(model, task.validation, task, config)
    right = (answers == task.test.labels).view(len(answers), -1).all(1)
    validation_right = (validation_answers == task.validation.labels).view(len(validation_answers), -1).all(1)
    found: dict[str, Any] = {
        "loss": loss,
        "validation_loss": validation_loss,
        "accuracy": _mean(right),
        "validation_accuracy": _mean(validation_right),
        "baseline": round(task.baseline, 6),
    }
    if task.n_classes is None:
        found["f1"] = _mean(overlap(answers, task.test.labels))
        if (none := (task.test.labels == 0).all(1)).any():
            found |= {"with answer": _mean(right[~none]), "without answer": _mean(right[none])}
    return found | ({"counted": dict(task.counted)} if task.counted else {})


def overlap(spans: Int[Tensor, "texts 2"], others: Int[Tensor, "texts 2"]) -> Float[Tensor, " texts"]:
    """F1 of the tokens of two spans each, from first to last: the harmonic mean of precision and recall."""
    common = torch.minimum(spans[:, 1], others[:, 1]) - torch.maximum(spans[:, 0], others[:, 0]) + 1
    return 2 * common.clamp(min=0) / (spans.diff() + others.diff() + 2).squeeze(1).double()


def _mean(values: Tensor) -> float:
    return round(float(values.double().mean()), 6)


def _loss(logits: Any, labels: Tensor) -> Float[Tensor, ""]:
    if labels.ndim == 1:
        return F.cross_entropy(logits, labels)
    return (F.cross_entropy(logits.start, labels[:, 0]) + F.cross_entropy(logits.end, labels[:, 1])) / 2


def _logits(model: nn.Module, texts: Labelled, task: Task, config: RunConfig, generator: torch.Generator) -> Any:
    if task.name == DIGITS:
        return model(texts.ids.to(config.device))
    tokens = torch.ones_like(texts.ids, dtype=torch.bool) if task.padding is None else texts.ids != task.padding
    mask = None if task.padding is None else tokens.to(config.device)
    moved = cls_positions(tokens, generator).to(config.device) if setting(config, "cls") == "moved" else None
    return model(texts.ids.to(config.device), moved, attention_mask=mask)


def _measured(model: Any, part: Labelled, task: Task, config: RunConfig) -> tuple[float, Tensor]:
    """The mean loss, and the answers."""
    loss, answers, generator = 0.0, [], torch.Generator().manual_seed(PLACES_SEED)
    for index in torch.arange(len(part.ids)).split(AT_A_TIME):
        texts = part.at(index)
        with torch.inference_mode():
            logits = _logits(model, texts, task, config, generator)
            loss += len(index) * float(_loss(logits, texts.labels.to(config.device)))
            answers.append((model.best(logits) if task.n_classes is None else logits.argmax(1)).cpu())
    return round(loss / len(part.ids), 6), torch.cat(answers)
