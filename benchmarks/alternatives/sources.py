"""What the functions say: their code as the page shows it, and how many lines it has."""

import inspect
import io
import tokenize
from collections.abc import Callable
from typing import Any


def code(function: Callable[..., Any]) -> str:
    """A function's source, and that of the helpers of its module that it calls."""
    names = [
        name
        for name in function.__code__.co_names
        if name.startswith("_") and name in function.__globals__
    ]
    return "\n\n".join(
        inspect.getsource(each)
        for each in (function, *map(function.__globals__.get, names))
    )


def n_lines(function: Callable[..., Any]) -> int:
    """Logical lines of that code as ruff has formatted it, without the function's own first line and its docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(code(function)).readline)
    return sum(token.type == tokenize.NEWLINE for token in tokens) - 2
