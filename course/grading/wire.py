"""What passes between the grader and the sandbox: one line of JSON a message. Nothing that is read is ever run."""

import base64
import json

import numpy as np
import torch
from checking import MOST, plain

PLAIN = (type(None), bool, int, float, str)
KINDS = (list, tuple, set, frozenset)
# What a tensor of an answer may hold. PyTorch ends the whole process at quantized numbers that were not made by itself.
NUMBERS = {"bool", "float16", "bfloat16", "float32", "float64"}
NUMBERS |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
# Bits of a whole number; Python writes none as text that has many more.
LONGEST = 2**12


def encode(value):
    """A value as JSON can hold it; one of a type that cannot be graded becomes the name of its type."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if value is ...:
        return None  # what stands where an answer is missing, also within a dictionary
    if isinstance(value, int) and not isinstance(value, bool) and int.bit_length(value) > LONGEST:
        raise ValueError("a number of so many digits cannot be graded")
    if type(value) in PLAIN:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.ndarray) and str(value.dtype) in NUMBERS:
        # By NumPy alone, for a question may forbid PyTorch, and this is watched too.
        return _encoded(value.size, lambda: value.tobytes(), value.dtype, value.shape) | {"numpy": True}
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value)
    # Of a class of its own, a container gives what it holds, not what its methods say.
    if isinstance(value, KINDS):
        kind = next(kind for kind in KINDS if isinstance(value, kind))
        return {kind.__name__: [encode(each) for each in _few(kind.__iter__(value), kind.__len__(value))]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(each)] for key, each in _few(dict.items(value), dict.__len__(value))]}
    if callable(value) and not isinstance(value, type):
        return {"function": getattr(value, "remote", None), "source": getattr(value, "source", None)}
    meant = plain(value)
    if type(meant) in (*PLAIN, list):
        return encode(meant)
    return {"unknown": type(value).__name__}


def _encode_tensor(value):
    def content():
        return value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()

    return _encoded(value.numel(), content, value.dtype, value.shape)


def _encoded(n, content, dtype, shape):
    if n > MOST:
        raise ValueError(f"a tensor of {n} numbers is larger than any answer")
    data = base64.b64encode(content()).decode()
    return {"tensor": data, "dtype": str(dtype).removeprefix("torch."), "shape": list(shape)}


def _few(values, n):
    if n > MOST:
        raise ValueError(f"{n} entries are more than any answer has")
    return values


def decode(message, function):
    """The value that was encoded.

    Args:
        message: as `encode` gave it.
        function: makes a function of its name, or of its place among what the grader hands over; the other is None.
    """
    if not isinstance(message, dict):
        return message
    if "tensor" in message:
        if message["dtype"] not in NUMBERS:
            raise TypeError(f"numbers of the type {message['dtype']} cannot be graded; give real or whole ones")
        dtype = getattr(torch, message["dtype"])
        data = bytearray(base64.b64decode(message["tensor"]))
        tensor = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        tensor = tensor.reshape(message["shape"])
        return tensor.numpy() if message.get("numpy") else tensor
    for kind in KINDS:
        if kind.__name__ in message:
            return kind(decode(each, function) for each in message[kind.__name__])
    if "dict" in message:
        return {decode(key, function): _entry(each, function) for key, each in message["dict"]}
    if "function" in message:
        return function(message["function"], message.get("place"))
    raise TypeError(f"a value of the type {message.get('unknown')} cannot be graded; give a number, a text or a tensor")


def _entry(message, function):
    """A value of a dictionary, which may hold more than a question asks for: None for one that cannot be graded."""
    try:
        return decode(message, function)
    except TypeError:
        return None


def write(stream, message):
    """Send a message."""
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()
