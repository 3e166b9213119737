"""Training on a task, and what is measured of it: the loss, and the share of right answers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..data import Labelled, Task, made_task
from ..models import SequenceClassifier, SpanPredictor, TransformerConfig
from .config import RunConfig

# Texts that are measured at a time.
AT_A_TIME = 512


def load_task(config: RunConfig) -> Task:
    """Make the task that a run is trained on.

    Raises:
        TaskError: an unknown task, or a difficulty that it cannot have.
    """
    return made_task(config.task or "", difficulty=config.difficulty, length=config.length)


def task_model(task: Task, body: TransformerConfig) -> nn.Module:
    """Make an encoder with what reads the answer: the mean of its last states, or each of them where it is a span."""
    return SpanPredictor(body) if task.n_classes is None else SequenceClassifier(body, task.n_classes)


def task_loss(model: nn.Module, texts: Labelled, task: Task, device: str) -> Float[Tensor, ""]:
    """The mean loss of some texts, in nats an answer; of a span the mean of its two ends."""
    logits, labels = _answers(model, texts, task, device), texts.labels.to(device)
    if labels.ndim == 1:
        return F.cross_entropy(logits, labels)
    return (F.cross_entropy(logits.start, labels[:, 0]) + F.cross_entropy(logits.end, labels[:, 1])) / 2


def measure_task(model: nn.Module, task: Task, device: str) -> dict[str, Any]:
    """The loss and the share of right answers on the test and on the validation part, and what a constant guess gets.

    Args:
        model: in evaluation mode, on the device.
        task: what it was trained on.
        device: by its name.

    Returns:
        Ready for JSON.
    """
    loss, right = _measured(model, task.test, task, device)
    validation_loss, validation_right = _measured(model, task.validation, task, device)
    return {
        "loss": round(loss, 6),
        "validation_loss": round(validation_loss, 6),
        "accuracy": round(right, 6),
        "validation_accuracy": round(validation_right, 6),
        "baseline": round(task.baseline, 6),
    }


def _answers(model: nn.Module, texts: Labelled, task: Task, device: str) -> Any:
    ids = texts.ids.to(device)
    return model(ids, attention_mask=None if task.padding is None else ids != task.padding)


def _measured(model: nn.Module, part: Labelled, task: Task, device: str) -> tuple[float, float]:
    loss = right = 0.0
    for index in torch.arange(len(part.ids)).split(AT_A_TIME):
        texts = part.at(index)
        with torch.inference_mode():
            loss += len(index) * float(task_loss(model, texts, task, device))
            answers: Any = _answers(model, texts, task, device)
            answers = answers.argmax(1) if task.n_classes is not None else model.best(answers)  # type: ignore[operator]
            right += float((answers.cpu() == texts.labels).view(len(index), -1).all(1).sum())
    return loss / len(part.ids), right / len(part.ids)
