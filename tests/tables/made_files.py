"""Files of weights for the tests, right and wrong, and a source of bytes that counts what is read of it."""

import json
import resource
import struct
import sys

from posembed.tables._weights import Entry

# More than any test reads at once: who asks for it believed a claim.
MOST = 2**24


class Memory:
    """A ByteSource of bytes in memory, with zeros behind them where the file is to be larger."""

    def __init__(self, data, name="model.safetensors", size=None):
        self.data, self.name = data, name
        self.size = len(data) if size is None else size
        self.reads = []

    @property
    def bytes_read(self):
        return sum(stop - start for start, stop in self.reads)

    def read(self, start, stop):
        assert 0 <= start <= stop <= self.size, f"{start}:{stop} of {self.size}"
        self.reads.append((start, stop))
        assert stop - start <= MOST
        return self.data[start:stop].ljust(stop - start, b"\0")


def entry(**changes):
    """A header's entry for a 2 x 2 matrix of float32."""
    return {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]} | changes


def safetensors_bytes(header, data=bytes(16), length=None):
    """A file with this header, a dictionary or bytes, and this claim of the header's length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def one_line(caught):
    """The message of an error, which must be one line of moderate length."""
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1000
    return message


def peak_memory():
    """The most memory that this process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Shapes:
    """A checkpoint of which only names and shapes exist."""

    def __init__(self, shapes):
        self.entries = {name: Entry(name, tuple(shape), "float32", "x", name) for name, shape in shapes.items()}

    @property
    def names(self):
        return self.entries.keys()

    def entry(self, name):
        return self.entries[name]

    def seen(self):
        return self.entries
