"""Texts, the characters they are made of, and the pieces that models are trained on."""

from .characters import Characters, Tokens
from .corpus import Corpus, load_corpus
from .perplexity import Perplexities, perplexities
from .windows import masked, random_windows, windows_in_order

__all__ = [
    "Characters",
    "Corpus",
    "Perplexities",
    "Tokens",
    "load_corpus",
    "masked",
    "perplexities",
    "random_windows",
    "windows_in_order",
]
