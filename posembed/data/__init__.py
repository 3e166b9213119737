"""Texts, the tokens they are made of, and the batches that models are trained on."""

from ._ids import Tokens
from .byte_pairs import BytePairs
from .characters import Characters
from .corpus import Corpus, load_corpus
from .dataset_text import DatasetText
from .perplexity import Perplexities, perplexities
from .windows import masked, random_windows, windows_in_order

__all__ = [
    "BytePairs",
    "Characters",
    "Corpus",
    "DatasetText",
    "Perplexities",
    "Tokens",
    "load_corpus",
    "masked",
    "perplexities",
    "random_windows",
    "windows_in_order",
]
