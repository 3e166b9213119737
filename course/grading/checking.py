"""What the tests of all questions share. `make course` puts it at the head of each file of tests.

So a student's notebook and the graders take the same answers: any real number, whatever library it is of, any range,
index or array for a list, and nothing that is not finite. No check computes with an answer before its shape is known.
"""

import decimal
import hashlib
import json
import math
import numbers
from pathlib import Path

import numpy as np
import torch

# More than any right answer has.
MOST = 2**20


def plain(value):
    """A number, a truth value or a list of them, whatever library it comes from; anything else as it is."""
    if value is None or value is ... or isinstance(value, (bool, str, bytes, dict)) or callable(value):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return float(value)
    if getattr(value, "size", 1) == 1 and hasattr(value, "item") and not hasattr(value, "detach"):
        return value.item()
    if hasattr(value, "detach"):
        return value.item() if value.numel() == 1 else value.detach().cpu().tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "__iter__"):
        values = [plain(each) for _, each in zip(range(MOST + 1), value, strict=False)]
        assert len(values) <= MOST, "more entries than any answer has"
        return values
    # An expression such as SymPy's 2 * pi is none of Python's numbers.
    return float(value) if hasattr(value, "__float__") else value


def number(name, value):
    """A finite number as a float."""
    value = plain(value)
    assert isinstance(value, (int, float)) and not isinstance(value, bool), f"{name}: put a number"
    assert math.isfinite(value), f"{name}: put a finite number"
    return float(value)


def whole(name, value):
    """A whole number as an int."""
    value = number(name, value)
    assert value == int(value), f"{name}: put a whole number"
    return int(value)


def wholes(name, value):
    """Whole numbers as a list, of a list, range, set, index or array of them."""
    value = plain(value)
    assert isinstance(value, list) and value, f"{name}: put a list of whole numbers"
    return [whole(name, each) for each in value]


def entries(name, value):
    """A dictionary whose values are plain."""
    assert isinstance(value, dict) and value, f"{name}: put a dictionary"
    return {key: plain(each) for key, each in dict.items(value)}


def verdicts(name, value, keys):
    """A dictionary with True or False for each of the keys."""
    value, keys = entries(name, value), list(keys)
    missing = [str(key) for key in keys if type(value.get(key)) is not bool]
    assert not missing, f"{name}: put True or False for {', '.join(missing)}"
    return {key: value[key] for key in keys}


def tensor(out, shape, what=""):
    """A tensor of this very shape, with finite numbers, as float64."""
    what = what and f"{what}: "
    assert out is not None, f"{what}it gives no tensor: does it return its result?"
    assert isinstance(out, torch.Tensor), f"{what}it gives a {type(out).__name__}, and should give a tensor"
    assert tuple(out.shape) == tuple(shape), f"{what}the shape is {tuple(out.shape)}, and should be {tuple(shape)}"
    out = out.detach().cpu().double()
    assert out.isfinite().all(), f"{what}some numbers are NaN or infinite"
    return out


def array(out, shape, what=""):
    """Numbers of this very shape as a NumPy array of float64, of an array, a tensor, a series or a list."""
    what = what and f"{what}: "
    assert out is not None, f"{what}it gives None: does it return its result?"
    assert isinstance(out, (list, tuple)) or hasattr(out, "shape"), (
        f"{what}it gives no array: does it return its result?"
    )
    found = np.shape(out)
    assert found == tuple(shape), f"{what}the shape is {found}, and should be {tuple(shape)}"
    out = np.asarray(out, dtype=float)
    assert np.isfinite(out).all(), f"{what}some numbers are NaN or infinite"
    return out


def off(out, right, what=""):
    """The largest difference between an answer and the right one, which have one shape."""
    if hasattr(right, "detach"):
        return float((tensor(out, right.shape, what) - right.double()).abs().max())
    return float(abs(array(out, right.shape, what) - right).max())


def truth(value, what="it"):
    """A verdict of a function: True or False."""
    assert value is not None, f"{what} gives None: does it return its verdict?"
    value = plain(value)
    assert type(value) is bool, f"{what} gives a {type(value).__name__}, and should say True or False"
    return value


def drawn(env):
    """What was drawn for the course or the student, and what is true of it; the graders alone have it."""
    return json.loads(Path(env["__folder__"], "truth.json").read_text(encoding="utf-8"))


def generator(env, n):
    """Random numbers for inputs: when a submission is graded, others than before it was handed in."""
    return torch.Generator().manual_seed(seed_of(env, n))


def seed_of(env, n):
    """A number that belongs to one submission and one check; in a student's notebook the same for all."""
    return int(hashlib.sha256(f"{env.get('__drawn__', '')} {n}".encode()).hexdigest()[:8], 16)


def function(source):
    """A function that is handed to an answer, defined as `candidate`; the graders tell it by its source."""
    source = f"import torch\nimport torch.nn.functional as F\n{source}"
    scope = {}
    exec(source, scope)
    scope["candidate"].source = source
    return scope["candidate"]


def said_of(f, candidates, env, *more):
    """What a function says of each candidate, by its name, asked several times in an order of chance."""
    import random

    # True and False in turn tell two apart in one of six orders of four questions, and in one of twenty of six.
    times = 3 if len(candidates) < 3 else 2
    asked = [(name, candidates[name] + n * "\n") for n in range(times) for name in candidates]
    random.Random(seed_of(env, len(asked))).shuffle(asked)
    said = {}
    for name, source in asked:
        told = truth(f(function(source), *more))
        assert said.setdefault(name, told) is told, "asked again about one function, it says both True and False"
    return said
