"""The public edge: what is given must be of its kind, checked once, where a user's call comes in.

A public function or class says in its signature what it takes, and its decorator which error says that it was given
something else. What lies behind the edge trusts its callers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from beartype import BeartypeConf
from beartype.door import is_bearable
from beartype.vale import Is

from .errors import PosembedError, shown

Function = TypeVar("Function", bound=Callable[..., Any])
# A whole number is a number too: 1 for 1.0.
_CONF = BeartypeConf(is_pep484_tower=True)


def _number(kind: Any, holds: Callable[[Any], bool]) -> Any:
    """NumPy's numbers are numbers; True is none."""
    return Annotated[kind, Is[lambda value: not isinstance(value, bool) and holds(value)]]


if TYPE_CHECKING:
    Whole: TypeAlias = int
    Count: TypeAlias = int
    Positive: TypeAlias = float
    NotNegative: TypeAlias = float
    Share: TypeAlias = float
    Seed: TypeAlias = int
else:
    Whole = _number(Integral, lambda n: n >= 0)
    Count = _number(Integral, lambda n: n >= 1)
    Positive = _number(Real, lambda x: 0 < x < math.inf)
    NotNegative = _number(Real, lambda x: 0 <= x < math.inf)
    Share = _number(Real, lambda x: 0 <= x <= 1)
    Seed = _number(Integral, lambda n: 0 <= n < 2**32)

_ADVICE: dict[Any, str] = {
    Whole: "it must be a whole number of at least 0",
    Count: "it must be a whole number of at least 1",
    Positive: "it must be a positive number",
    NotNegative: "it must be a finite number of at least 0",
    Share: "it must be a number from 0 to 1",
    Seed: "it must be a whole number from 0 to 2^32 - 1",
    bool: "give True or False",
    int: "give a whole number",
    float: "give a number",
    str: "give a text",
    NoneType: "None",
}


def public(error: type[PosembedError]) -> Callable[[Function], Function]:
    """Decorate a public function, method or ``__init__``: arguments that its signature does not allow raise the error.

    Args:
        error: its message is one line that names the argument, what was given and what is wanted.

    Example:
        >>> from posembed.errors import EncodingInputError
        >>> from posembed.public import Count, public
        >>> @public(EncodingInputError)
        ... def zeros(n: Count) -> list[int]:
        ...     return [0] * n
        >>> zeros(0)
        Traceback (most recent call last):
        posembed.errors.EncodingInputError: n is 0; it must be a whole number of at least 1
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            hints = _hints(function)
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                # Of *args and **kwargs the hint is that of each.
                if name in hints and signature.parameters[name].kind not in (2, 4):
                    _check(name, value, hints[name], error)
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate


def check_fields(record: Any, error: type[PosembedError]) -> None:
    """The same for the fields of a public dataclass, in its ``__post_init__``."""
    kind: Any = type(record)
    hints = _hints(kind)
    for field in fields(record):
        _check(field.name, getattr(record, field.name), hints[field.name], error)


def advice(hint: Any) -> str:
    """What to give, in words.

    Example:
        >>> from typing import Literal
        >>> from posembed.public import Count, advice
        >>> advice(Count | None), advice(Literal["half", "interleaved"])
        ('it must be a whole number of at least 1, or None', 'choose among half, interleaved')
    """
    if get_origin(hint) is Literal:
        return f"choose among {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) in (Union, UnionType):
        return ", or ".join(dict.fromkeys(map(advice, get_args(hint))))
    try:
        return _ADVICE[hint]
    except (KeyError, TypeError):  # a hint that holds a list, as of a function's arguments, has no hash
        pass
    if hasattr(hint, "dim_str"):
        return f"give {'a tensor' if hint.array_type.__name__ == 'Tensor' else 'an array'}, {hint.__name__}"
    kind = get_origin(hint) or hint
    name = getattr(kind, "__name__", str(kind))
    # Of what it holds, where that is of one class: its elements may be what is wrong.
    each = "".join(f" of {arg.__name__}" for arg in get_args(hint)[:1] if isinstance(arg, type) and arg is not str)
    return f"give {'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}{each}"


@cache
def _hints(holder: Any) -> dict[str, Any]:
    if not isinstance(holder, type):
        # What is returned is not checked, and may be of a library that is imported late.
        given = {name: hint for name, hint in holder.__annotations__.items() if name != "return"}
        holder = SimpleNamespace(__annotations__=given, __globals__=inspect.unwrap(holder).__globals__)
    return get_type_hints(holder, include_extras=True)


def _check(name: str, value: Any, hint: Any, error: type[PosembedError]) -> None:
    if not _fits(value, hint):
        raise error(f"{name} is {shown(value)}; {advice(hint)}")


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if hint is int:  # NumPy's too, and not True
        return isinstance(value, Integral) and not isinstance(value, bool)
    # One name is no list of names, though Python takes a text for a sequence of texts.
    if isinstance(value, str) and get_origin(hint) in (Collection, Iterable, Sequence):
        return False
    return is_bearable(value, hint, conf=_CONF)
