"""Texts, the characters they are made of, and the pieces that models are trained on; images; tasks, made and real."""

from .._deprecation import renamed
from .characters import Characters, Tokens
from .classes import ClassedText, class_task, classed_rows, read_classes
from .corpus import Corpus, frequency_loss, load_corpus
from .images import enlarged, image_task, images
from .perplexity import Perplexities, perplexities
from .spans import Question, moved_questions, question_rows, read_questions, span_task, word_questions
from .subwords import Subwords
from .synthetic_tasks import mirror_ceiling, synthetic_task
from .task import Labelled, Task
from .windows import masked, random_windows, windows_in_order

__all__ = [
    "Characters",
    "ClassedText",
    "Corpus",
    "Labelled",
    "Perplexities",
    "Question",
    "Subwords",
    "Task",
    "Tokens",
    "class_task",
    "classed_rows",
    "enlarged",
    "frequency_loss",
    "image_task",
    "images",
    "load_corpus",
    "masked",
    "mirror_ceiling",
    "moved_questions",
    "perplexities",
    "question_rows",
    "random_windows",
    "read_classes",
    "read_questions",
    "span_task",
    "synthetic_task",
    "windows_in_order",
    "word_questions",
]

__getattr__ = renamed(__name__, {"made_task": "synthetic_task"})
