"""Texts, the characters they are made of, and the pieces that models are trained on; made tasks."""

from .._deprecation import renamed
from .characters import Characters, Tokens
from .corpus import Corpus, Perplexities, frequency_loss, load_corpus, perplexities
from .synthetic_tasks import mirror_ceiling, synthetic_task
from .task import Labelled, Task
from .windows import masked, random_windows, windows_in_order

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

__getattr__ = renamed(__name__, {"made_task": "synthetic_task"})
