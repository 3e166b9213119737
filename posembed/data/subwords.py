"""Texts as subwords: byte pairs of lower-case words, learned from a text (Sennrich et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Integer
from torch import Tensor

from ..checks import check_each, check_whole
from ..errors import CorpusError
from .characters import Tokens

# Where memory is set aside for more, the machine may have less.
LARGEST = 1_000_000


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
        CorpusError: what is no list of texts, no text in it; a size below 1 or above a million.

    Example:
        >>> from posembed.data import Subwords
        >>> words = Subwords(["low lower lowest"], size=16)
        >>> ["Lower!"[begin:end] for begin, end in words.pieces("Lower!").ends]
        ['Low', 'e', 'r', '!']
    """

    unknown_id, mask_id, cls_id, separator_id, padding_id = range(5)

    def __init__(self, texts: Iterable[str], *, size: int = 2048):
        check_whole("size", size, CorpusError)
        if size > LARGEST:
            raise CorpusError(f"size is {size}; a vocabulary of more than {LARGEST:,} subwords is not made")
        listed = check_each("texts", texts, str, "a list of texts", CorpusError)
        # It comes with transformers, and takes a while to be imported.
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

        special = ["[UNK]", "[MASK]", "[CLS]", "[SEP]", "[PAD]"]
        self._tokenizer = Tokenizer(models.BPE(unk_token=special[0]))
        self._tokenizer.normalizer = normalizers.Lowercase()
        self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
        self._tokenizer.encode_special_tokens = True
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False)
        self._tokenizer.train_from_iterator(listed, trainer)
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
