"""Texts, the characters they are made of, and the pieces that models are trained on; made tasks."""

from .corpus import (
    Characters,
    Corpus,
    Perplexities,
    Tokens,
    frequency_loss,
    load_corpus,
    masked,
    perplexities,
    random_windows,
    windows_in_order,
)
from .synthetic_tasks import Labelled, Task, mirror_ceiling, synthetic_task

__all__ = [
    "Characters",
    "Corpus",
    "Labelled",
    "Perplexities",
    "Task",
    "Tokens",
    "frequency_loss",
    "load_corpus",
    "masked",
    "mirror_ceiling",
    "perplexities",
    "random_windows",
    "synthetic_task",
    "windows_in_order",
]
