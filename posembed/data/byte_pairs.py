"""Texts as numbers, one for each frequent run of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ..errors import CorpusError
from ._ids import Tokens, checked
from ._pieces import cut
from .characters import MASK, UNKNOWN

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The 256 bytes, the sign of a hidden token and, as among characters, that of an unknown one, which no text needs.
LEAST, MOST = 258, 2**31 - 1
# Characters that are encoded, or counted, at a time by one thread.
SIZE = 2**14


class BytePairs:
    """A vocabulary of bytes and of the most frequent pairs of tokens, joined again and again (Sennrich et al. 2016).

    Every text can be encoded and comes back as it was: tokens are made of bytes, as GPT-2's (Radford et al. 2019). No
    token reaches over the end of a word.

    Args:
        tokenizer: as `to_json` told it.

    Raises:
        CorpusError: what `to_json` never told.

    Example:
        >>> from posembed.data import BytePairs
        >>> pairs = BytePairs.of("to be or not to be", vocab_size=260)
        >>> len(pairs), len(pairs.encode("to be"))
        (260, 3)
        >>> pairs.decode(pairs.encode("not 東京"))
        'not 東京'
    """

    unknown_id, mask_id = 0, 1

    def __init__(self, tokenizer: str):
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Tokenizer = Tokenizer.from_str(tokenizer)
        except Exception as error:  # of Rust
            raise CorpusError(f"this is no tokenizer: {str(error).splitlines()[0]:.200}") from None

    @classmethod
    def of(cls, text: str | Iterable[str], *, vocab_size: int = 4096) -> BytePairs:
        """Train on a text, whole or in pieces; the same text gives the same vocabulary.

        Args:
            text: it may be longer than the memory. What is kept are its words with their numbers.
            vocab_size: the number of tokens, at least 258; fewer where the text has no more pairs that occur twice.

        Raises:
            CorpusError: fewer than 258 tokens, or an empty text.

        Example:
            >>> from posembed.data import BytePairs
            >>> len(BytePairs.of("no pair twice", vocab_size=1000))
            258
        """
        from tokenizers import trainers
        from tokenizers.pre_tokenizers import ByteLevel

        _check_size(vocab_size)
        tokenizer = _untrained()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            special_tokens=[UNKNOWN, MASK],
            initial_alphabet=ByteLevel.alphabet(),
            show_progress=False,
        )
        pieces = cut([text] if isinstance(text, str) else text, SIZE)
        tokenizer.train_from_iterator(_not_empty(pieces), trainer)
        # A text that holds one of the two signs has its bytes there, and nothing hidden.
        return cls(json.dumps({**json.loads(tokenizer.to_str()), "added_tokens": []}, ensure_ascii=False))

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> Int[Tensor, " tokens"]:
        """Return the ids of a text's tokens."""
        try:
            encoded = self._tokenizer.encode_batch_fast(list(cut([text], SIZE)), add_special_tokens=False)
        except TypeError:
            raise CorpusError("the text holds half a character, a lone surrogate; decode it anew") from None
        ids = [np.asarray(each.ids, dtype=np.int64) for each in encoded]
        return torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.int64), *ids]))

    def decode(self, ids: Iterable[int] | Tokens) -> str:
        """Return the text of some ids; bytes that are no whole character become the sign of unknown ones."""
        return self._tokenizer.decode(checked(ids, len(self)), skip_special_tokens=False)

    def to_json(self) -> str:
        """Return all there is to know of the vocabulary."""
        return self._tokenizer.to_str()


def _untrained() -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _check_size(vocab_size: int) -> None:
    if not isinstance(vocab_size, int) or isinstance(vocab_size, bool) or not LEAST <= vocab_size <= MOST:
        raise CorpusError(
            f"vocab_size is {vocab_size!r}; it must be a whole number of at least {LEAST}: all bytes and two signs"
        )


def _not_empty(pieces: Iterable[str]) -> Iterable[str]:
    some = False
    for piece in pieces:
        some = True
        yield piece
    if not some:
        raise CorpusError("a vocabulary needs a text to be trained on; the text is empty")
