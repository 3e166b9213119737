"""Pieces of a corpus in a file: the same as of one in memory, and no more is read than they are."""

import tracemalloc

import numpy as np
import pytest
import torch

from posembed.data import random_windows, windows_in_order
from posembed.errors import CorpusError

LARGE = 2**31  # two gigabytes of one-byte places in a file that takes no room on the disk


def generator():
    return torch.Generator().manual_seed(0)


def random(ids):
    return random_windows(ids, 7, 50, generator())


def in_order(ids):
    return windows_in_order(ids, 7, 50)


@pytest.mark.parametrize("cut", [random, in_order])
@pytest.mark.parametrize("dtype", ["<u2", "<u4", "int64"])
def test_a_file_gives_the_pieces_of_a_tensor(tmp_path, dtype, cut):
    ids = torch.randint(60_000, (1000,), generator=generator())
    ids.numpy().astype(dtype).tofile(tmp_path / "ids.bin")
    mapped = np.memmap(tmp_path / "ids.bin", dtype=dtype, mode="r")
    found = cut(mapped)
    assert found.dtype == torch.int64
    assert torch.equal(found, cut(ids))
    assert torch.equal(found, cut(np.asarray(mapped)))


@pytest.mark.parametrize("cut", [random, in_order])
def test_no_more_is_read_than_the_pieces(tmp_path, cut):
    path = tmp_path / "ids.bin"
    with path.open("wb") as file:
        file.truncate(LARGE)
    mapped = np.memmap(path, dtype="<u2", mode="r")
    # What is loaded by the way is not memory for the corpus.
    cut(mapped)
    tracemalloc.start()
    found = cut(mapped)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.shape == (50, 7) and not found.any()
    assert peak < 100_000


def test_pieces_can_be_written_to_and_the_file_stays(tmp_path):
    np.arange(100, dtype="<u2").tofile(tmp_path / "ids.bin")
    mapped = np.memmap(tmp_path / "ids.bin", dtype="<u2", mode="r")
    in_order(mapped).zero_()
    assert np.array_equal(np.fromfile(tmp_path / "ids.bin", dtype="<u2"), np.arange(100))


@pytest.mark.bad_input
@pytest.mark.parametrize("cut", [random, in_order])
def test_a_context_longer_than_the_text(cut):
    with pytest.raises(CorpusError, match="^pieces of 7 tokens cannot be cut from a corpus of 6; make them shorter$"):
        cut(np.arange(6, dtype=np.uint16))
