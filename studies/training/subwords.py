"""Texts as subwords: byte pairs of lower-case words, learned from a text (Sennrich et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Integer
from torch import Tensor

from posembed.data import Corpus, Tokens
from posembed.data.corpus import make_corpus, read_parts
from posembed.errors import CorpusError


class Pieces(NamedTuple):
    """A text as subwords.

    Attributes:
        ids: of the subwords.
        ends: for each subword where it begins in the text, and where it ends.
    """

    ids: Integer[Tensor, " tokens"]
    ends: list[tuple[int, int]]


class Subwords:
    """A vocabulary of subwords, with ids for what is unknown, hidden, the first token, a separator and padding.

    A subword may begin with the space before its word, and never reaches into the next one. Upper case becomes lower
    case.

    Args:
        texts: that byte pairs are counted in; the same texts give the same vocabulary.
        size: the number of ids.

    Raises:
        CorpusError: no text.

    Example:
        >>> from studies.training.subwords import Subwords
        >>> words = Subwords(["low lower lowest"], size=16)
        >>> ["Lower!"[begin:end] for begin, end in words.pieces("Lower!").ends]
        ['Low', 'e', 'r', '!']
    """

    unknown_id, mask_id, cls_id, separator_id, padding_id = range(5)

    def __init__(self, texts: Iterable[str], *, size: int = 2048):
        # It comes with transformers, and takes a while to be imported.
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

        special = ["[UNK]", "[MASK]", "[CLS]", "[SEP]", "[PAD]"]
        self._tokenizer = Tokenizer(models.BPE(unk_token=special[0]))
        self._tokenizer.normalizer = normalizers.Lowercase()
        self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
        self._tokenizer.encode_special_tokens = True
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False)
        self._tokenizer.train_from_iterator(texts, trainer)
        if len(self) == len(special):
            raise CorpusError("a vocabulary needs at least one character; the text is empty")

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def pieces(self, text: str) -> Pieces:
        """Return the subwords of a text and where they stand; the name of a special token is text like any other."""
        found = self._tokenizer.encode(text)
        return Pieces(torch.tensor(found.ids, dtype=torch.long), found.offsets)

    def encode(self, text: str) -> Tokens:
        """Return the id of each subword."""
        # Line by line, which takes a small share of the time of a long text in one.
        return torch.cat([self.pieces(line).ids for line in text.splitlines() or [""]])


def subword_corpus(source: str, size: int) -> Corpus:
    """A text as `posembed.data.load_corpus` splits it, in at most so many subwords of its own.

    There are never fewer than single characters.
    """
    return _sotu(size) if source == "sotu" else _made(source, size)


@cache
def _sotu(size: int) -> Corpus:
    return _made("sotu", size)


def _made(source: str, size: int) -> Corpus:
    texts = read_parts(source)
    return make_corpus(source, texts, Subwords(texts[0].splitlines(), size=size))
