"""The text of a run."""

from __future__ import annotations

from ...data import Corpus, load_corpus
from ..config import RunConfig


def corpus_of(config: RunConfig) -> Corpus:
    """Load the text that a run is trained and measured on; its parts are long enough for the run's pieces.

    Raises:
        CorpusError: a text that cannot be read or is too short.
        CheckpointNotFoundError: a text of the hub that cannot be had.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.training.text import corpus_of
        >>> corpus_of(RunConfig()).name
        'sotu'
    """
    corpus = load_corpus(config.data, tokens=config.tokens, vocab_size=config.vocab_size)
    # Before the training, not after it.
    corpus.check(max(config.length, config.test_length or 0))
    return corpus
