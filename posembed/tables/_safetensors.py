"""One tensor of a safetensors file, without the rest: header and bytes are checked before anything is believed."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from ..errors import CheckpointError
from ._bytes import ByteSource, lfs_pointer
from ._floats import checked_kind, widen
from ._json import parse_object
from ._names import printable
from ._weights import Entry

# The header of a usual checkpoint is smaller, so it comes with the first read.
FIRST_READ = 2**16
# For a hundred thousand tensors. Python takes forty times the memory for the worst of headers.
LARGEST_HEADER = 2**24

# The sizes in a shape: torch's own limit. The product of millions of them would take minutes.
MOST_SIZES = 64

# The format's names of its kinds, ours, and the bits of one number.
_KINDS = {
    "F64": ("float64", 64),
    "F32": ("float32", 32),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "I64": ("int64", 64),
    "U64": ("uint64", 64),
    "I32": ("int32", 32),
    "U32": ("uint32", 32),
    "I16": ("int16", 16),
    "U16": ("uint16", 16),
    "I8": ("int8", 8),
    "U8": ("uint8", 8),
    "BOOL": ("bool", 8),
    "C64": ("complex64", 64),
    "F8_E4M3": ("float8_e4m3", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E8M0": ("float8_e8m0", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "F6_E2M3": ("float6_e2m3", 6),
    "F6_E3M2": ("float6_e3m2", 6),
    "F4": ("float4", 4),
}


class SafetensorsFile:
    """The tensors of one safetensors file, by name.

    The format: eight bytes with the length of a JSON header, the header, and the tensors' bytes one after the other
    (https://github.com/huggingface/safetensors). Everything in the header is a claim, and is checked against the size
    of the file before memory is taken for it.

    Args:
        source: the file.

    Raises:
        CheckpointError: the header or one of its entries cannot be true.
    """

    def __init__(self, source: ByteSource):
        self._source = source
        length, header = _header(source)
        self._start = 8 + length
        header.pop("__metadata__", None)
        self._places: dict[str, tuple[int, int]] = {}
        self.entries: dict[str, Entry] = {}
        for name, claims in header.items():
            self._add(name, claims)
        self._check_places()

    def read(self, name: str) -> Tensor:
        """Return one tensor; only its own bytes are read."""
        entry, (begin, end) = self.entries[name], self._places[name]
        kind = checked_kind(entry.kind, f"{printable(name)} in {self._source.name}")
        return widen(self._source.read(self._start + begin, self._start + end), kind).reshape(entry.shape)

    def _add(self, name: str, claims: Any) -> None:
        what = f"{name!r:.200} in {self._source.name}"
        kind, shape, begin, end = _checked_claims(claims, what)
        ours, bits = _KINDS.get(kind, (kind, None))
        if bits is not None and math.prod(shape) * bits != (end - begin) * 8:
            raise CheckpointError(
                f"{what} claims shape {_short(shape)} and {kind}, which is not the size of its {end - begin:,} bytes"
            )
        self._places[name] = (begin, end)
        self.entries[name] = Entry(name, shape, ours, self._source.name, (begin, end))

    def _check_places(self) -> None:
        """The tensors' bytes must fill the file, without a gap and without overlapping."""
        reached, file = 0, self._source.name
        for begin, end in sorted(self._places.values()):
            if begin != reached:
                how = "leave a gap before" if begin > reached else "overlap at"
                raise CheckpointError(f"{file} is damaged: its tensors {how} byte {begin:,} of their part")
            reached = end
        room = self._source.size - self._start
        if reached != room:
            raise CheckpointError(
                f"{file} is damaged or was not copied in full: its tensors need {reached:,} bytes and it has {room:,}"
            )


def _header(source: ByteSource) -> tuple[int, dict[str, Any]]:
    start = source.read(0, min(FIRST_READ, source.size))
    if lfs_pointer(start):
        raise CheckpointError(f"{source.name} is a pointer of Git LFS, not the weights; run `git lfs pull` first")
    if len(start) < 8:
        raise CheckpointError(f"{source.name} is no safetensors file: it has {source.size} bytes")
    length = int.from_bytes(start[:8], "little")
    if length > source.size - 8:
        raise CheckpointError(
            f"{source.name} is no safetensors file or was not copied in full: it claims a header of {length:,} bytes "
            f"and has {source.size:,} in all"
        )
    if length > LARGEST_HEADER:
        raise CheckpointError(f"{source.name} has a header of {length:,} bytes; no checkpoint needs as many")
    text = start[8 : 8 + length]
    if len(text) < length:
        text += source.read(8 + len(text), 8 + length)
    if not text.startswith(b"{"):
        raise CheckpointError(f"{source.name} is no safetensors file: its header does not begin with a brace")
    return length, parse_object(text, f"the header of {source.name}", repeats=False)


def _checked_claims(claims: Any, what: str) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(claims, dict) or not claims.keys() >= {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"{what} is not described by dtype, shape and data_offsets")
    kind, shape, offsets = claims["dtype"], claims["shape"], claims["data_offsets"]
    if not isinstance(kind, str) or not kind.isprintable() or len(kind) > 50:
        raise CheckpointError(f"{what} has a dtype that is no name")
    if not _are_counts(shape) or len(shape) > MOST_SIZES:
        raise CheckpointError(f"{what} has the shape {_short(shape)}, which is no list of sizes")
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{what} has the data_offsets {_short(offsets)}, which name no range of bytes")
    return kind, tuple(shape), *offsets


def _are_counts(found: Any) -> bool:
    """Whether this is a list of integers that a file can count with."""
    return isinstance(found, list) and all(type(each) is int and 0 <= each < 2**64 for each in found)


def _short(value: Any) -> str:
    return f"{list(value) if isinstance(value, tuple) else value!s:.100}"
