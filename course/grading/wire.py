"""What passes between the grader and the sandbox: one line of JSON a message. Nothing that is read is ever run."""

import base64
import json

import numpy as np
import torch

PLAIN = (type(None), bool, int, float, str)
# Bits of a whole number; Python writes none as text that has many more.
LONGEST = 2**12


def encode(value):
    """A value as JSON can hold it; one of a type that cannot be graded becomes the name of its type."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if value is ...:
        return None  # what stands where an answer is missing, also within a dictionary
    if type(value) is int and value.bit_length() > LONGEST:
        raise ValueError("a number of so many digits cannot be graded")
    if type(value) in PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return encode(torch.from_numpy(np.ascontiguousarray(value))) | {"numpy": True}
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous().flatten()
        data = base64.b64encode(flat.view(torch.uint8).numpy().tobytes()).decode()
        return {"tensor": data, "dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    if isinstance(value, (list, tuple, set, frozenset)):
        kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
        return {kind.__name__: [encode(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(each)] for key, each in value.items()]}
    if callable(value) and not isinstance(value, type):
        return {"function": getattr(value, "remote", None), "source": getattr(value, "source", None)}
    return {"unknown": type(value).__name__}


def decode(message, function):
    """The value that was encoded.

    Args:
        message: as `encode` gave it.
        function: makes a function of its name and its source, of which one may be None.
    """
    if not isinstance(message, dict):
        return message
    if "tensor" in message:
        dtype = getattr(torch, message["dtype"])
        data = bytearray(base64.b64decode(message["tensor"]))
        tensor = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        tensor = tensor.reshape(message["shape"])
        return tensor.numpy() if message.get("numpy") else tensor
    for kind in (list, tuple, set, frozenset):
        if kind.__name__ in message:
            return kind(decode(each, function) for each in message[kind.__name__])
    if "dict" in message:
        return {decode(key, function): decode(each, function) for key, each in message["dict"]}
    if "function" in message:
        return function(message["function"], message["source"])
    raise TypeError(f"a value of the type {message.get('unknown')} cannot be graded; give a number, a text or a tensor")


def write(stream, message):
    """Send a message."""
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()
