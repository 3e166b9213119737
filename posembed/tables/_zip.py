"""A zip archive of which single records are read: of a file on the hub as of one on this machine."""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import dataclass

from ..errors import CheckpointError, PosembedError
from ._bytes import LARGEST_JSON, ByteSource

# The directory stands at the end, before a comment of at most 65,535 bytes: that of a usual checkpoint comes with the
# first read.
TAIL = 2**16 + 22
# A record's own header: a signature, 22 bytes that the directory repeats, and how long its name and extra field are.
_HEADER = struct.Struct("<4s22xHH")
_LONGEST_NAME = _LONGEST_EXTRA = 2**16


@dataclass(frozen=True)
class Record:
    """One record of an archive.

    Attributes:
        name: without the archive's own folder.
        header: the byte at which the record's header begins.
        limit: the byte at which whatever comes next begins.
        size: bytes of its data.
        plain: whether the data stands there as it is, neither compressed nor encrypted.
    """

    name: str
    header: int
    limit: int
    size: int
    plain: bool


class Archive:
    """The records of a zip archive, by their name in its one folder.

    Args:
        source: the file.
        directory: what stands in the archive's directory.
    """

    def __init__(self, source: ByteSource, directory: zipfile.ZipFile):
        self._source = source
        listed = sorted(directory.infolist(), key=lambda info: info.header_offset)
        folder = directory.namelist()[0].partition("/")[0] + "/" if listed else ""
        ends = [*(info.header_offset for info in listed), directory.start_dir][1:]
        self.records: dict[str, Record] = {}
        for info, limit in zip(listed, ends, strict=True):
            if info.header_offset < 0 or info.header_offset + _HEADER.size + info.compress_size > limit:
                raise CheckpointError(f"{source.name} is damaged: its records overlap at {info.filename!r:.200}")
            name = info.filename.removeprefix(folder)
            if name in self.records:
                raise CheckpointError(f"{source.name} is damaged: it holds {info.filename!r:.200} twice")
            plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
            plain = plain and info.compress_size == info.file_size
            self.records[name] = Record(name, info.header_offset, limit, info.file_size, plain)

    @classmethod
    def of(cls, source: ByteSource) -> Archive | None:
        """Read the directory at the end of a file; None where there is none, so that the file is no zip archive."""
        tail = source.read(max(0, source.size - TAIL), source.size)
        if b"PK\x05\x06" not in tail:
            return None
        try:
            with zipfile.ZipFile(_Window(source, tail)) as directory:
                return cls(source, directory)
        except PosembedError:
            raise
        except (zipfile.BadZipFile, NotImplementedError, OSError, OverflowError, ValueError, struct.error) as error:
            raise CheckpointError(f"{source.name} is damaged: its zip directory cannot be read ({error})") from error

    def read(self, record: Record, start: int, stop: int) -> bytes:
        """Return a part of a record's data: of a record little larger than the part, with one read."""
        self._check_plain(record)
        if record.size > 1.005 * (stop - start):
            head = self._source.read(record.header, record.header + _HEADER.size)
            begin = record.header + self._data_begins(record, head)
            return self._source.read(begin + start, begin + stop)
        return self.read_all([record])[0][start:stop]

    def read_all(self, records: list[Record]) -> list[bytes]:
        """Return the data of some records, of neighbours with one read."""
        for record in records:
            self._check_plain(record)
        begin, end = min(record.header for record in records), max(_end(record) for record in records)
        far_apart = end - begin > sum(record.size for record in records) + _LONGEST_NAME + _LONGEST_EXTRA
        if len(records) > 1 and far_apart:
            return [self.read_all([record])[0] for record in records]
        data = self._source.read(begin, end)
        if len(records) == 1:  # no copy of what may be large
            return [self._data_in(records[0], data)]
        return [self._data_in(record, data[record.header - begin :]) for record in records]

    def _data_in(self, record: Record, part: bytes) -> bytes:
        begin = self._data_begins(record, part)
        return part[begin : begin + record.size]

    def _data_begins(self, record: Record, head: bytes) -> int:
        """How many bytes after its header's first byte a record's data begins."""
        signature, name, extra = _HEADER.unpack_from(head) if len(head) >= _HEADER.size else (b"", 0, 0)
        begin = _HEADER.size + name + extra
        if signature != b"PK\x03\x04" or record.header + begin + record.size > record.limit:
            raise CheckpointError(f"{self._source.name} is damaged: {record.name!r:.200} is not where it should be")
        return begin

    def _check_plain(self, record: Record) -> None:
        if not record.plain:
            raise CheckpointError(
                f"{self._source.name} is refused: {record.name!r:.200} is compressed or encrypted, as torch.save never "
                "does"
            )


def _end(record: Record) -> int:
    """The byte at which a record ends for certain: its header's length is only known when it was read."""
    return min(record.limit, record.header + _HEADER.size + _LONGEST_NAME + _LONGEST_EXTRA + record.size)


class _Window(io.BufferedIOBase):
    """A file for zipfile, of which the end is at hand."""

    def __init__(self, source: ByteSource, tail: bytes):
        self._source, self._tail, self._at = source, tail, 0
        self._tail_begins = source.size - len(tail)

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        if self._at < 0:
            raise OSError("it points before the file")
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        end = self._source.size if size is None or size < 0 else min(self._at + size, self._source.size)
        start, self._at = self._at, max(self._at, end)
        if start >= self._tail_begins:
            return self._tail[start - self._tail_begins : max(start, end) - self._tail_begins]
        if end - start > LARGEST_JSON:
            raise ValueError(f"it has {end - start:,} bytes")
        return self._source.read(start, end)
