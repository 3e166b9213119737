import io
import os
import pickle
import random
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_files import Memory, one_line, peak_memory
from torch import nn

from posembed.errors import CheckpointError
from posembed.tables._bytes import LocalFile
from posembed.tables._pickled import LARGEST_PICKLE, PickledFile
from posembed.tables._zip import TAIL

pytestmark = pytest.mark.bad_input


def saved(value, **options):
    """What torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def rewritten(data, changes=(), compression=zipfile.ZIP_STORED):
    """The same archive, written by zipfile, with records changed, added, or taken out (None)."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    folder = next(iter(records)).partition("/")[0]
    records |= {f"{folder}/{name}": value for name, value in dict(changes).items()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, value in records.items():
            if value is not None:
                archive.writestr(name, value)
    return file.getvalue()


def opened(data, **options):
    return PickledFile(Memory(data, "pytorch_model.bin", **options))


def on_disk(data, folder):
    path = Path(folder, "pytorch_model.bin")
    path.write_bytes(data)
    return LocalFile(path)


A = torch.arange(12.0).reshape(4, 3)
STATE = {"wpe.weight": A, "h.0.bias": torch.ones(5)}
ZIP, OLD = saved(STATE), saved(STATE, _use_new_zipfile_serialization=False)

# What is right.

KINDS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
VIEWS = [
    lambda tensor: tensor,
    lambda tensor: tensor.T,
    lambda tensor: tensor[1:],
    lambda tensor: tensor[:, 1:],
    lambda tensor: tensor[::2, ::3],
    lambda tensor: tensor[None],
    nn.Parameter,
    lambda tensor: tensor.flatten()[3],
]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(VIEWS), st.integers(0, 99)), max_size=4))
def test_the_same_tensors_as_torch_load(tmp_path_factory, wanted):
    state = {
        f"{number}.weight": view(torch.randn(5, 4, generator=torch.Generator().manual_seed(seed)).to(kind))
        for number, (kind, view, seed) in enumerate(wanted)
    }
    assert_equal(opened(saved(state)), state)
    old = on_disk(saved(state, _use_new_zipfile_serialization=False), tmp_path_factory.getbasetemp())
    assert_equal(PickledFile(old), state)
    assert old.bytes_read >= old.size


def assert_equal(file, state):
    assert file.entries.keys() == state.keys()
    for name, tensor in state.items():
        entry, found = file.entries[name], file.read(name)
        assert (entry.shape, entry.kind) == (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        assert found.dtype == (torch.float64 if tensor.dtype == torch.float64 else torch.float32)
        assert found.is_contiguous()
        assert not found.requires_grad
        assert torch.equal(found, tensor.detach().to(found.dtype))


def test_dictionaries_in_dictionaries():
    state = {"state_dict": {"model": STATE}, "epoch": 3, "list": [A], 7: {"x": A}, "note": "text"}
    assert_equal(opened(saved(state)), {f"state_dict.model.{name}": tensor for name, tensor in STATE.items()})


def test_a_dictionary_that_holds_itself_is_walked_once():
    state = dict(STATE)
    state["again"] = {"self": state}
    assert opened(saved(state)).entries.keys() == STATE.keys()


def test_a_model_and_an_optimizer():
    model = nn.Embedding(4, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.tensor([1])).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    assert opened(saved(state)).entries.keys() == {"model.weight"}


def test_tied_tensors_have_one_place():
    entries = opened(saved({"a": A, "b": A, "c": A[1:], "d": A.clone()})).entries
    assert entries["a"].place == entries["b"].place
    assert len({entry.place for entry in entries.values()}) == 3


def test_only_the_directory_the_description_and_the_tensor_are_read():
    state = {"a": torch.rand(500, 200), "wanted": torch.rand(300, 200), "z": torch.rand(500, 200)}
    source = Memory(saved(state), "pytorch_model.bin")
    assert torch.equal(PickledFile(source).read("wanted"), state["wanted"])
    assert len(source.reads) == 3
    tail, description, tensor = source.reads
    assert tail == (source.size - TAIL, source.size)
    assert description[1] - description[0] < 2000
    assert tensor[1] - tensor[0] < state["wanted"].nbytes + 1000


def test_of_a_view_only_its_part_is_read():
    whole = torch.rand(1000, 200)
    source = Memory(saved({"part": whole[10:20]}), "pytorch_model.bin")
    assert torch.equal(PickledFile(source).read("part"), whole[10:20])
    assert source.bytes_read < TAIL + 2000 + whole[10:20].nbytes


def test_a_directory_longer_than_the_first_read():
    state = {f"{number}": torch.full((2,), float(number)) for number in range(1500)}
    source = Memory(saved(state), "pytorch_model.bin")
    assert_equal(PickledFile(source), state)
    directory = source.reads[1]
    assert directory[0] < source.size - TAIL


def test_a_comment_and_something_in_front_do_no_harm():
    file = io.BytesIO(rewritten(ZIP))
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"written by hand " * 4000
    assert_equal(opened(file.getvalue()), STATE)
    assert_equal(opened(b"#!/bin/sh\n" + ZIP), STATE)


def test_records_of_the_kind_for_four_gigabytes():
    """ZIP64: sizes in an extra field."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(ZIP)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            with new.open(name, "w", force_zip64=True) as record:
                record.write(old.read(name))
    assert_equal(opened(file.getvalue()), STATE)


def test_records_far_apart_are_read_one_by_one():
    """Nothing says that they follow each other; what lies between is not read."""
    file, gap = io.BytesIO(), 2**20
    with zipfile.ZipFile(io.BytesIO(ZIP)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
            new.fp.seek(new.start_dir)
            new.fp.write(bytes(gap))
            new.start_dir = new.fp.tell()
    source = Memory(file.getvalue(), "pytorch_model.bin")
    assert_equal(PickledFile(source), STATE)
    assert source.bytes_read < gap


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_numbers_of_a_big_endian_machine(kind):
    stored = A.to(kind)
    swapped = stored.view(torch.uint8).reshape(-1, stored.element_size()).flip(1).numpy().tobytes()
    data = rewritten(saved({"a": stored}), {"byteorder": b"big", "data/0": swapped})
    assert_equal(opened(data), {"a": stored})


def test_before_there_was_a_byte_order_it_was_little():
    assert_equal(opened(rewritten(ZIP, {"byteorder": None})), STATE)


# What is refused.


class Call:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (Call(os.system, "touch ran"), "system"),
        (Call(eval, "open('ran', 'w')"), "eval"),
        (Call(Path, "x"), "Path"),
        (Call(getattr, "x", "upper"), "getattr"),
        (Call(torch.load, "x"), "torch"),
    ],
)
def test_a_pickle_that_calls_for_more_than_weights_is_refused_and_nothing_runs(
    tmp_path, monkeypatch, zipped, call, asked
):
    monkeypatch.chdir(tmp_path)
    data = saved({"wpe.weight": A, "x": call}, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError) as caught:
        PickledFile(on_disk(data, tmp_path))
    assert asked in one_line(caught)
    assert "weights_only" not in one_line(caught)
    assert not Path("ran").exists()


def test_an_object_of_ones_own_is_named():
    with pytest.raises(CheckpointError) as caught:
        opened(saved({"x": pytest.Session, "wpe.weight": A}))
    assert "_pytest.main.Session, which is no part of weights (and was not run)" in one_line(caught)


def description(pickled):
    return rewritten(ZIP, {"data.pkl": pickled})


def renamed(data, old, new):
    assert old in data
    assert len(old) == len(new)
    return data.replace(old, new)


def flagged(data):
    """Marked as encrypted, in the directory's entry of data.pkl."""
    at = data.index(b"PK\x01\x02")
    return data[: at + 8] + b"\x01" + data[at + 9 :]


def moved(data, name, by):
    """The header of a record somewhere else, in the directory."""
    at = data.rindex(name) - 46
    place = int.from_bytes(data[at + 42 : at + 46], "little") + by
    return data[: at + 42] + place.to_bytes(4, "little") + data[at + 46 :]


PLAIN = rewritten(ZIP)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is damaged, was not copied in full, or is no file of torch.save"),
        (b"not a checkpoint at all", "is no file of torch.save"),
        (b"version https://git-lfs.github.com/spec/v1\n", "run `git lfs pull` first"),
        (OLD, "old format, which cannot be read in part; to download all"),
        (ZIP[:-30], "is damaged"),
        (ZIP[: len(ZIP) // 2], "is damaged"),
        (ZIP[100:], "is damaged"),
        (b"PK\x05\x06" + bytes(18), "without a data.pkl"),
        (b"PK\x05\x06" + bytes(3), "its zip directory cannot be read"),
        (b"PK\x05\x06" + b"\xff" * 18, "is damaged"),
        (rewritten(ZIP, {"data.pkl": None}), "without a data.pkl"),
        (rewritten(ZIP, {"constants.pkl": b"x"}), "is a TorchScript program"),
        (rewritten(ZIP, {"byteorder": b"middle"}), "neither little nor big"),
        (rewritten(ZIP, compression=zipfile.ZIP_DEFLATED), "compressed or encrypted"),
        (flagged(PLAIN), "compressed or encrypted"),
        (description(bytes(LARGEST_PICKLE + 1)), "no checkpoint needs as many"),
        (description(b""), "torch cannot read it as weights"),
        (description(b"\x80\x02."), "torch cannot read it as weights"),
        (description(b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R."), "posix.system"),
        (description(b"\x80\x02c__builtin__\nbytearray\n\x8a\x05\x00\x00\x00\x00\x04\x85R."), "makes a bytearray"),
        (description(pickle.dumps({"a": bytearray(3)}, 2)), "makes a bytearray"),
        (rewritten(ZIP, {"data/0": None}), "torch cannot read it as weights"),
        (rewritten(ZIP, {"data/0": bytes(47)}), "wpe.weight in pytorch_model.bin is not all there"),
        (moved(PLAIN, b"archive/data/0", -8), "is not where it should be"),
        (moved(PLAIN, b"archive/data/0", 2**31), "its records overlap"),
        (moved(PLAIN, b"archive/data/0", 70), "its records overlap"),
        (renamed(PLAIN, b"archive/data/1", b"archive/data/0"), "twice"),
        (PLAIN.replace(b"PK\x03\x04", b"PK\x03\x05"), "is not where it should be"),
        (saved({"a.b": A, "a": {"b": A + 1}}), "holds two tensors called 'a.b'"),
        (saved({"a\nb": torch.ones(3, dtype=torch.int8)}), r"a\nb in pytorch_model.bin is of int8 numbers; quantised"),
        (saved({"a": torch.ones(3, dtype=torch.complex64)}), "is of complex64 numbers"),
        (saved({"a": torch.ones(3).to(torch.float8_e4m3fn)}), "is of float8_e4m3fn numbers"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_refused_in_one_line(data, words):
    with pytest.raises(CheckpointError) as caught:
        file = opened(data)
        for name in file.entries:
            file.read(name)
    assert words in one_line(caught)
    assert "weights_only" not in one_line(caught)


def test_the_old_format_is_loaded_whole_from_this_machine(tmp_path):
    assert_equal(PickledFile(on_disk(OLD, tmp_path)), STATE)


@pytest.mark.parametrize("data", [OLD[:-40], OLD[:30], OLD[:-1] + b"", b"\x80\x02", b"\x80" * 100])
def test_a_damaged_file_of_the_old_format_is_refused(tmp_path, data):
    with pytest.raises(CheckpointError) as caught:
        PickledFile(on_disk(data, tmp_path))
    one_line(caught)


def test_what_holds_no_plain_numbers_is_left_out():
    state = {
        "sparse": A.to_sparse(),
        "expanded": torch.ones(1).expand(10**6, 10**6),
        "empty": torch.ones(0, 3),
        "meta": torch.ones(3, device="meta"),
        "negated": torch.ones(3, dtype=torch.complex64).conj().imag,
    }
    assert opened(saved(state | STATE)).entries.keys() == STATE.keys()


def bomb():
    """A quarter of a gigabyte of zeros in a quarter of a megabyte of zip, as data.pkl."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("archive/data.pkl", "w") as record:
        for _ in range(16):
            record.write(bytes(2**24))
    return file.getvalue()


def terabytes():
    """A tensor of four terabytes in an honest description, and a record of a few bytes."""
    tensor = torch.ones(10**6, 10**6, device="meta")
    # torch saves nothing of a meta tensor; a few bytes are put in its place, and the sizes are changed by hand.
    data = saved({"wpe.weight": torch.ones(77, 78)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        pickled = archive.read("archive/data.pkl")
    for old, new in ((77, tensor.shape[0]), (78, tensor.shape[1]), (77 * 78, tensor.shape[0])):
        small = b"K" + bytes([old]) if old < 256 else b"M" + old.to_bytes(2, "little")
        assert small in pickled
        pickled = pickled.replace(small, b"J" + new.to_bytes(4, "little"))
    return rewritten(data, {"data.pkl": pickled})


@pytest.mark.parametrize(
    ("made", "words"), [(bomb, "no checkpoint needs as many"), (terabytes, "is not all there")], ids=["bomb", "claim"]
)
def test_claims_cost_no_memory(made, words):
    data = made()
    before = peak_memory()
    tracemalloc.start()
    with pytest.raises(CheckpointError) as caught:
        file = opened(data)
        file.read("wpe.weight")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert words in one_line(caught)
    assert peak < 2**23
    assert peak_memory() - before < 2**26


@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_no_damage_breaks_the_reader(seed, n_changes, old_format):
    """Bytes changed, put in or taken out anywhere: an error of ours, or tensors; never another error."""
    draws = random.Random(seed)
    broken = bytearray(OLD if old_format else ZIP)
    for _ in range(n_changes):
        at = draws.randrange(len(broken))
        broken[at : at + draws.randrange(3)] = draws.randbytes(draws.randrange(3))
    try:
        file = opened(bytes(broken))
        for name in file.entries:
            file.read(name)
    except CheckpointError as error:
        assert "\n" not in str(error)


@given(st.binary(max_size=60))
def test_no_pickle_breaks_the_reader(text):
    try:
        opened(description(b"\x80\x02" + text))
    except CheckpointError as error:
        assert "\n" not in str(error)
