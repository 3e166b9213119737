"""Texts as numbers, one for each character."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Integer
from torch import Tensor

from ..errors import CorpusError

# The ids of a text.
Tokens = Integer[Tensor, " tokens"]

# What stands for a character outside the vocabulary: Unicode's own sign for that.
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
# What stands in the place of a character that a model is to guess; no text holds it.
MASK = "\N{SYMBOL FOR SUBSTITUTE}"


class Characters:
    """A vocabulary of single characters, with one id more for all others and one for a hidden character.

    Args:
        characters: the known ones; id 0 is for unknown characters, id 1 for hidden ones, then these in sorted order.

    Raises:
        CorpusError: no characters.

    Example:
        >>> from posembed.data import Characters
        >>> letters = Characters("abc")
        >>> letters.encode("cab!")
        tensor([4, 2, 3, 0])
        >>> letters.decode([4, 2, 3])
        'cab'
    """

    unknown_id, mask_id = 0, 1

    def __init__(self, characters: Iterable[str]):
        known = sorted({*characters} - {UNKNOWN, MASK})
        self.characters = (UNKNOWN, MASK, *known)
        # One entry for each code point: a whole corpus is encoded by one look-up.
        self._ids = np.zeros(0x110000, dtype=np.int32)
        self._ids[[ord(character) for character in known]] = np.arange(2, len(self))

    @classmethod
    def of(cls, text: str, *, least: int = 100) -> Characters:
        """Make the vocabulary of the characters that stand at least so often in a text.

        Example:
            >>> from posembed.data import Characters
            >>> Characters.of("aaab", least=2).characters[2:]
            ('a',)
        """
        return cls(character for character, count in Counter(text).items() if count >= least)

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> Tokens:
        """Return the id of each character."""
        # Half a character, which no UTF-8 holds, is an unknown one.
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        return torch.from_numpy(self._ids[points].astype(np.int64))

    def decode(self, ids: Iterable[int] | Tokens) -> str:
        """Return the text of some ids.

        Raises:
            CorpusError: an id that no character has.
        """
        numbers = [int(each) for each in ids]
        if outside := [each for each in numbers if not 0 <= each < len(self)]:
            raise CorpusError(f"id {outside[0]} is outside the vocabulary of {len(self)} tokens")
        return "".join(self.characters[each] for each in numbers)
