import json
import math
import random
import struct
import tracemalloc

import pytest
import safetensors
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_files import Memory, entry, one_line, peak_memory, safetensors_bytes

from posembed.errors import CheckpointError
from posembed.tables._safetensors import FIRST_READ, SafetensorsFile

pytestmark = pytest.mark.bad_input

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
OTHERS = [torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2]


def tensors():
    """Small tensors of every kind, their bits drawn at random: subnormal, infinite and NaN ones too."""

    def made(kind, shape, seed):
        size = math.prod(shape) * torch.empty(0, dtype=kind).element_size()
        bits = torch.frombuffer(bytearray(random.Random(seed).randbytes(size) or b"\0"), dtype=torch.uint8)[:size]
        if kind == torch.bool:
            bits = bits % 2
        return bits.view(kind).reshape(shape)

    shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
    return st.builds(made, st.sampled_from(FLOATS + OTHERS), shapes, st.integers(0, 2**32))


@given(st.dictionaries(st.text(max_size=8).filter(lambda name: name != "__metadata__"), tensors(), max_size=5))
def test_the_same_tensors_as_the_safetensors_library(stored):
    source = Memory(safetensors.torch.save(stored, metadata={"format": "pt"}))
    file = SafetensorsFile(source)
    assert file.entries.keys() == stored.keys()
    for name, tensor in stored.items():
        found = file.entries[name]
        assert found.shape == tuple(tensor.shape)
        if tensor.dtype not in FLOATS:
            with pytest.raises(CheckpointError, match="quantised and integer tables have no scale"):
                file.read(name)
            continue
        assert found.kind == str(tensor.dtype).removeprefix("torch.")
        wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
        read = file.read(name)
        assert read.dtype == wide
        # Bit for bit, for NaN too; torch and numpy may both quieten a NaN that they widen.
        assert torch.equal(read.isnan(), tensor.isnan())
        assert torch.equal(
            read.nan_to_num(7.0, math.inf, -math.inf), tensor.to(wide).nan_to_num(7.0, math.inf, -math.inf)
        )


def without_nan(tensor):
    return tensor.nan_to_num(7.0, math.inf, -math.inf)


def test_only_the_header_and_the_tensor_are_read():
    stored = {"a": torch.rand(300, 100), "wanted": torch.rand(40, 20), "z": torch.rand(300, 100)}
    source = Memory(safetensors.torch.save(stored))
    assert torch.equal(SafetensorsFile(source).read("wanted"), stored["wanted"])
    (first, second) = source.reads
    assert first == (0, FIRST_READ)
    assert second[1] - second[0] == stored["wanted"].nbytes


def test_a_long_header_is_read_to_its_end_and_no_further():
    stored = {f"{number:0200}": torch.full((2,), float(number)) for number in range(1000)}
    data = safetensors.torch.save(stored)
    length = struct.unpack("<Q", data[:8])[0]
    assert length > FIRST_READ
    source = Memory(data)
    assert torch.equal(SafetensorsFile(source).read(f"{999:0200}"), torch.tensor([999.0, 999.0]))
    assert source.reads[:2] == [(0, FIRST_READ), (FIRST_READ, 8 + length)]
    assert source.bytes_read == 8 + length + 8


def test_what_is_read_is_the_callers_own():
    source = Memory(safetensors.torch.save({"a": torch.ones(2, 2)}))
    file = SafetensorsFile(source)
    file.read("a").zero_()
    assert torch.equal(file.read("a"), torch.ones(2, 2))


TERABYTE = 10**12


@pytest.mark.parametrize(
    ("data", "size", "words"),
    [
        (b"", None, "it has 0 bytes"),
        (b"1234567", None, "it has 7 bytes"),
        (safetensors_bytes({"a": entry()}, length=TERABYTE), None, "claims a header of 1,000,000,000,000 bytes"),
        (safetensors_bytes({"a": entry()}, length=2**64 - 1), None, "claims a header of 18,446,744,073,709,551,615"),
        (safetensors_bytes({"a": entry()}, length=TERABYTE), 2 * TERABYTE, "no checkpoint needs as many"),
        (safetensors_bytes({"a": entry()}, length=2**26), 2 * TERABYTE, "no checkpoint needs as many"),
        (safetensors_bytes({"a": entry()}, length=10**5), TERABYTE, "is damaged: Extra data"),
        (safetensors_bytes({"a": entry(shape=[500_000, 500_000], data_offsets=[0, TERABYTE])}), None, "copied in full"),
        (safetensors_bytes({"a": entry(shape=[2**40, 2**40], data_offsets=[0, 16])}), None, "which is not the size"),
    ],
)
def test_a_claim_of_terabytes_costs_nothing(data, size, words):
    source = Memory(data, size=size)
    before = peak_memory()
    tracemalloc.start()
    with pytest.raises(CheckpointError) as caught:
        SafetensorsFile(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert words in one_line(caught)
    assert peak < 2**20
    assert peak_memory() - before < 2**26
    assert source.bytes_read <= 2 * FIRST_READ + 10**5


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"", "does not begin with a brace"),
        (b"[]", "does not begin with a brace"),
        (b' {"a": 1}', "does not begin with a brace"),
        (b"{", "is damaged: Expecting"),
        (b"{}{}", "is damaged: Extra data"),
        (b'{"a\xff": 1}', "is damaged: 'utf-8' codec"),
        (b'{"a":' + b"9" * 5000 + b"}", "is damaged: Exceeds the limit"),
        (b'{"a":' + b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        ({"a": 1}, "is not described by dtype, shape and data_offsets"),
        ({"a": {"dtype": "F32"}}, "is not described by dtype, shape and data_offsets"),
        ({"a": entry(dtype=3)}, "has a dtype that is no name"),
        ({"a": entry(dtype="F\n")}, "has a dtype that is no name"),
        ({"a": entry(dtype="F" * 100)}, "has a dtype that is no name"),
        ({"a": entry(shape=[-2, -2])}, "has the shape [-2, -2], which is no list of sizes"),
        ({"a": entry(shape=[2.0, 2])}, "has the shape [2.0, 2], which"),
        ({"a": entry(shape=[True, 4])}, "has the shape [True, 4], which"),
        ({"a": entry(shape=4)}, "has the shape 4, which"),
        ({"a": entry(shape=[[2], 2])}, "which is no list of sizes"),
        ({"a": entry(shape=[2**64, 0])}, "which is no list of sizes"),
        ({"a": entry(shape=[1] * 100_000)}, "which is no list of sizes"),
        ({"a": entry(shape=[2**32, 2**32, 2**32])}, "which is not the size of its 16 bytes"),
        ({"a": entry(shape=[2, 3])}, "claims shape [2, 3] and F32, which is not the size of its 16 bytes"),
        ({"a": entry(dtype="BF16")}, "claims shape [2, 2] and BF16"),
        ({"a": entry(data_offsets=[16, 0])}, "has the data_offsets [16, 0], which name no range"),
        ({"a": entry(data_offsets=[-16, 0])}, "which name no range"),
        ({"a": entry(data_offsets=[0])}, "which name no range"),
        ({"a": entry(data_offsets=None)}, "which name no range"),
        ({"a": entry(data_offsets=[16, 32])}, "leave a gap before byte 16"),
        ({"a": entry(), "b": entry()}, "overlap at byte 0"),
        ({"a": entry(), "b": entry(data_offsets=[8, 24])}, "overlap at byte 8"),
        ({"a": entry(), "b": entry(data_offsets=[16, 32])}, "need 32 bytes and it has 16"),
        ({"a": entry(shape=[2], data_offsets=[0, 8])}, "need 8 bytes and it has 16"),
        ({}, "need 0 bytes and it has 16"),
        (b'{"a":{"dtype":"F32"},"a":{"dtype":"F32"}}', "the key a stands there twice"),
        (b'{"a":{"dtype":"F32","dtype":"F16"}}', "the key dtype stands there twice"),
        ({"evil\nname\x1b[31m": entry(shape=[2, 3])}, r"'evil\nname\x1b[31m' in model.safetensors claims"),
        ({"n" * 10_000: entry(shape=[2, 3])}, "claims shape [2, 3]"),
    ],
)
def test_a_header_that_cannot_be_true_is_refused(header, words):
    with pytest.raises(CheckpointError) as caught:
        SafetensorsFile(Memory(safetensors_bytes(header)))
    assert words in one_line(caught)


def test_a_pointer_of_git_lfs_is_named():
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 548105171\n"
    with pytest.raises(CheckpointError, match="run `git lfs pull` first"):
        SafetensorsFile(Memory(pointer))


def test_kinds_to_come_do_not_keep_a_float_table_from_being_read():
    header = {"a": entry(), "new": entry(dtype="F3_E1M1", shape=[9], data_offsets=[16, 20])}
    file = SafetensorsFile(Memory(safetensors_bytes(header, bytes(20))))
    assert torch.equal(file.read("a"), torch.zeros(2, 2))
    with pytest.raises(CheckpointError, match="is of F3_E1M1 numbers"):
        file.read("new")


@pytest.mark.parametrize("cut", [1, 8, 9, 40, 100, -1, -16])
def test_a_file_that_was_cut_off_is_refused(cut):
    data = safetensors.torch.save({"a": torch.ones(2, 2), "b": torch.ones(3)})[:cut]
    with pytest.raises(CheckpointError) as caught:
        SafetensorsFile(Memory(data))
    one_line(caught)


GOOD = safetensors.torch.save({"wpe.weight": torch.arange(6.0).reshape(3, 2), "b": torch.ones(4, dtype=torch.bfloat16)})


@given(st.data())
def test_a_damaged_file_is_refused_or_read_as_the_library_reads_it(data):
    """Bytes changed, put in or taken out anywhere: a CheckpointError or the library's tensors, and nothing else."""
    broken = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(broken) - 1))
        broken[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    check_against_library(bytes(broken))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
_SIZES = st.lists(st.integers(-1, 5) | st.integers(2**60, 2**65), max_size=3) | _JSON
_ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F16", "I8", "X"]) | _JSON,
        "shape": _SIZES,
        "data_offsets": st.lists(st.integers(-1, 40), min_size=2, max_size=2) | _SIZES,
    }
)


@given(st.dictionaries(st.sampled_from(["a", "b", "__metadata__"]), _ENTRIES | _JSON, max_size=3), st.integers(0, 40))
def test_no_header_breaks_the_reader(header, size):
    check_against_library(safetensors_bytes(json.dumps(header).encode(), bytes(size)))


def test_a_name_of_two_lines_stays_in_one():
    file = SafetensorsFile(Memory(safetensors_bytes({"a\nb": entry(dtype="I8", shape=[16])})))
    with pytest.raises(CheckpointError) as caught:
        file.read("a\nb")
    assert one_line(caught).startswith(r"a\nb in model.safetensors is of int8 numbers")


@given(st.binary(max_size=80), st.none() | st.integers(0, 2**64 - 1))
def test_no_bytes_break_the_reader(text, length):
    check_against_library(safetensors_bytes(text, b"", length))


def check_against_library(data):
    theirs = library_reads(data)
    try:
        file = SafetensorsFile(Memory(data))
        mine = {name: file.read(name) for name in file.entries if file.entries[name].kind in ("float32", "bfloat16")}
    except CheckpointError as error:
        assert "\n" not in str(error)
        # A header that says two things at once is refused here, and one that does not begin as the format wants.
        stricter = ("stands there twice", "does not begin with a brace", "is not described by")
        assert theirs is None or any(words in str(error) for words in stricter)
        return
    # The library also refuses metadata and kinds of numbers that it does not know, which do not bear on a table.
    for name in mine if theirs is not None else ():
        assert torch.equal(without_nan(mine[name]), without_nan(theirs[name].float()))


def library_reads(data):
    try:
        return safetensors.torch.load(data)
    except (safetensors.SafetensorError, KeyError):
        return None
