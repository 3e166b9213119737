"""A file on the hub, of which nothing is read twice."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import CheckpointError
from ._cache import Pieces

# The directory of a zip stands at its end.
LAST = 2**16
# A request costs more than this many bytes.
LEAST = 2**14
# No position table is so large, whatever a header says.
MOST = 2**30


class HubFile:
    """A file on the hub; what was read of it once is not asked for again.

    Args:
        name: in its repository.
        size: in bytes.
        pieces: what is there of it; what is fetched is added.
        fetch: asks for the bytes from one place to another of the file with this name.
    """

    def __init__(self, name: str, size: int, pieces: Pieces, fetch: Callable[[str, int, int], bytes]):
        self.name, self.size, self._pieces, self._fetch = name, size, pieces, fetch
        self.bytes_read = 0

    def read(self, start: int, stop: int) -> bytes:
        """Return exactly the bytes from start to stop.

        Raises:
            CheckpointError: they are not inside the file, or far too many.
            CheckpointNotFoundError: they could not be had.
        """
        if not 0 <= start <= stop <= self.size:
            raise CheckpointError(f"{self.name} has {self.size:,} bytes; bytes {start:,} to {stop:,} were asked for")
        if stop - start > MOST:
            raise CheckpointError(f"{stop - start:,} bytes of {self.name} were asked for, too many for a table")
        while (gap := next(self._pieces.gaps(start, stop), None)) is not None:
            begin, end = self._worth_asking(*gap)
            self._pieces.data[begin] = self._fetch(self.name, begin, end)
            self.bytes_read += end - begin
        return self._pieces.joined(start, stop)

    def _worth_asking(self, begin: int, end: int) -> tuple[int, int]:
        if begin >= self.size - LAST and not self.name.endswith(".safetensors"):
            return max(0, self.size - LAST), self.size
        return begin, min(self.size, max(end, begin + LEAST))
