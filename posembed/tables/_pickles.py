"""The tensors that a pickle describes, read as data: nothing that it names is called or even looked up.

A pickle is a program that makes objects on a stack; the module pickletools of Python documents its operations. Those
that torch.save writes, in protocols 2 to 5, are followed here. torch's own weights-only loader calls some functions, as
`bytearray` and `_codecs.encode`, with which a kilobyte unfolds to gigabytes; here a call gives a tensor's description,
a dictionary, or None.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

import torch

from ..errors import CheckpointError
from ._names import printable

# Two million take some five seconds; of a tensor there are about thirty.
MOST_OPERATIONS = 2**21
# How deep dictionaries may be nested: {"state_dict": {"model": {...}}}.
DEEPEST = 8
# What a tensor is called that was saved by itself.
ALONE = "the tensor"
# Characters of what a pickle names.
LONGEST = 200
# What torch.save names besides what it calls; a pickle with any other name is of more than weights.
_OF_WEIGHTS = re.compile(
    r"torch \w+|torch\.storage \w+Storage|torch\._utils _rebuild_\w+|torch\._tensor _rebuild_from_type_v2|"
    r"torch\.nn\.parameter Parameter|torch\.serialization _get_layout|collections (OrderedDict|Counter)|"
    r"(builtins|__builtin__) (set|complex|bytearray)|_codecs encode"
)
_LITERALS = frozenset(
    {
        *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "BINSTRING", "SHORT_BINSTRING"),
        # Of protocols 3 to 5.
        *("SHORT_BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)
# The kinds of numbers by the classes of storages; all newer kinds are named beside an UntypedStorage.
_STORAGES = {
    "BFloat16Storage": "bfloat16",
    "BoolStorage": "bool",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "QInt32Storage": "qint32",
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "ShortStorage": "int16",
}
_CONSTANTS = {"EMPTY_SET": None, "NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


class Global(NamedTuple):
    """The name of a function, class or dtype: "torch FloatStorage"."""

    name: str

    @property
    def dtype(self) -> torch.dtype | None:
        """Of a storage's class, or the dtype itself; None where it is neither."""
        named = self.name.rpartition(" ")[2]
        found = vars(torch).get(_STORAGES.get(named, named))
        return found if isinstance(found, torch.dtype) else None


class Storage(NamedTuple):
    """Numbers of one kind in a row, and under which key the file has them."""

    key: str
    dtype: torch.dtype | None
    nbytes: int


class Described(NamedTuple):
    """A tensor: its numbers begin at `start` of a storage, and each axis advances by its stride."""

    storage: Storage
    dtype: torch.dtype | None
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def unpickled(file: BytesIO, name: str) -> tuple[Any, dict[str, Storage]]:
    """Follow the next pickle of a file: what it makes, and the storages that it names, by their keys.

    Raises:
        CheckpointError: it asks for what is no part of weights.
        ValueError: or another error, where it is damaged.
    """
    stack, below, memo, storages = list[Any](), list[list[Any]](), dict[int, Any](), dict[str, Storage]()
    operations: Any = pickletools.genops(file)
    for number, (operation, argument, _) in enumerate(operations):
        if number == MOST_OPERATIONS:
            raise CheckpointError(
                f"{name} is refused: it has more than {number:,} operations, far more than weights need"
            )
        match operation.name:
            case kind if kind in _LITERALS:
                stack.append(argument)
            case kind if kind in _CONSTANTS:
                stack.append(_CONSTANTS[kind])
            case "EMPTY_DICT" | "EMPTY_LIST":
                stack.append({} if operation.name == "EMPTY_DICT" else [])
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "GLOBAL":
                stack.append(_global(argument, name))
            case "STACK_GLOBAL":
                stack[-2:] = [_global(" ".join(stack[-2:]), name)]
            case "MARK":
                below.append(stack)
                stack = []
            case "TUPLE" | "FROZENSET":
                items, stack = stack, below.pop()
                stack.append(tuple(items))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                length = int(operation.name[-1])
                stack[-length:] = [tuple(stack[-length:])]
            case "APPEND" | "SETITEM":
                length = 1 if operation.name == "APPEND" else 2
                items, stack[-length:] = stack[-length:], []
                _put(stack[-1], items)
            case "APPENDS" | "SETITEMS" | "ADDITEMS":
                items, stack = stack, below.pop()
                _put(stack[-1], items)
            case "REDUCE" | "NEWOBJ":
                arguments = stack.pop()
                stack.append(_made(stack.pop(), arguments))
            case "BUILD":
                stack.pop()
            case "BINPERSID":
                stack.append(storage := _storage(stack.pop()))
                if storages.setdefault(storage.key, storage) != storage:
                    raise ValueError("a storage with two sizes")
            case "PROTO" | "FRAME" | "STOP":
                pass
            case other:
                raise ValueError(f"the operation {other}, which torch.save does not write")
    return stack.pop(), storages


def _global(asked: str, name: str) -> Global:
    """What a pickle names, as a name: "torch FloatStorage"."""
    # Put together from the memo, names without end would cost a few bytes each.
    if len(asked) <= LONGEST and _OF_WEIGHTS.fullmatch(asked):
        return Global(asked)
    asked = printable(asked.replace(" ", "."))
    raise CheckpointError(
        f"{name} is refused: it asks for {asked:.100}, which is no part of weights and was not run; of a checkpoint of "
        "your own, save its state_dict alone"
    )


def _put(target: Any, items: list[Any]) -> None:
    """Extend a list; set the entries of a dictionary that have a name."""
    if isinstance(target, list):
        target.extend(items)
    elif isinstance(target, dict):
        target.update((key, value) for key, value in zip(items[::2], items[1::2], strict=True) if isinstance(key, str))


def _made(function: Any, arguments: Any) -> Any:
    """What a call gives: a tensor's description, a dictionary, what is handed through; None for all else."""
    match function.name, arguments:
        case "torch._utils _rebuild_tensor_v2", (_, _, _, _, _, _, {"neg": True}):
            return None
        case "torch._utils _rebuild_tensor_v3", (
            Storage() as storage,
            start,
            shape,
            strides,
            _,
            _,
            Global() as kind,
            *_,
        ):
            return _described(storage, kind.dtype, start, shape, strides)
        case (
            "torch._utils _rebuild_tensor" | "torch._utils _rebuild_tensor_v2" | "torch._utils _rebuild_qtensor",
            (Storage() as storage, start, shape, strides, *_),
        ):
            return _described(storage, storage.dtype, start, shape, strides)
        case "torch._utils _rebuild_parameter" | "torch._utils _rebuild_parameter_with_state", (tensor, *_):
            return tensor
        case "torch Size", (shape,):
            return shape
        case "torch._tensor _rebuild_from_type_v2", (Global() as inner, _, inner_arguments, *_):
            return _made(inner, inner_arguments)
        case "collections OrderedDict", ():
            return {}
        case "collections OrderedDict", (list() as pairs,):  # as Python 2 wrote it
            made = dict[str, Any]()
            _put(made, [each for key, value in pairs for each in (key, value)])
            pairs.clear()  # nobody has use for it, and a pickle could ask for one dictionary after the other of it
            return made
    return None


def _storage(said: Any) -> Storage:
    match said:
        case ("storage", Global() as kind, str(key), _, int(length), *view) if length >= 0 and view in ([], [None]):
            return Storage(key, kind.dtype, length * size_of(kind.dtype))
    raise ValueError("a storage that is no row of numbers")


def _described(storage: Storage, dtype: Any, start: Any, shape: Any, strides: Any) -> Described:
    sizes = (start, *shape, *strides)
    if len(shape) != len(strides) or len(shape) > 64 or not all(type(n) is int and 0 <= n < 2**63 for n in sizes):
        raise ValueError("a tensor of impossible sizes")
    return Described(storage, dtype, start, tuple(shape), tuple(strides))


def tensors_in(found: Any) -> Iterator[tuple[str, Described]]:
    """Walk through dictionaries in dictionaries, each once: a pickle can put one into itself."""
    seen: set[int] = set()

    def walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Described]]:
        if isinstance(value, Described):
            yield ".".join(path) or ALONE, value
        elif isinstance(value, dict) and len(path) < DEEPEST and id(value) not in seen:
            seen.add(id(value))
            for key, each in value.items():
                yield from walk(each, (*path, key))

    return walk(found, ())


def size_of(dtype: torch.dtype | None) -> int:
    """Bytes of a number, 1 where the kind is not known."""
    return dtype.itemsize if dtype else 1
