"""A text that comes piece by piece, cut anew between its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# The end of a word that white space follows. A byte-pair token has white space at its beginning or nowhere, so that no
# token reaches over such an end.
_END = re.compile(r"\S(?=[ \t\n\r])")
_LAST_END = re.compile(r".*\S(?=[ \t\n\r])", re.DOTALL)
# A word, or a gap, that is longer is cut: a file without any white space must not fill the memory.
LONGEST = 2**20


def cut(pieces: Iterable[str], size: int) -> Iterator[str]:
    """Yield the same text in pieces of about this many characters, each of which ends at the end of a word."""
    text = ""
    for piece in pieces:
        text += piece
        start = 0
        while len(text) - start > size and (stop := _end(text, start, size)):
            yield text[start:stop]
            start = stop
        text = text[start:]
    if text:
        yield text


def _end(text: str, start: int, size: int) -> int | None:
    """Where a piece that begins at `start` may end; None where more of the text is needed to know."""
    found = _LAST_END.match(text, start, start + size) or _END.search(text, start + size - 1)
    if found:
        return found.end()
    return start + size if len(text) - start > max(size, LONGEST) else None


def count_words(pieces: Iterable[str]) -> int:
    """Count what stands between white space."""
    return sum(len(piece.split()) for piece in cut(pieces, 2**16))
