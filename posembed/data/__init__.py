"""Texts, the characters they are made of, and the batches that models are trained on."""

from .characters import Characters
from .corpus import Corpus, load_corpus
from .windows import masked, random_windows, windows_in_order

__all__ = ["Characters", "Corpus", "load_corpus", "masked", "random_windows", "windows_in_order"]
