"""The sizes of a model, and numbers that cannot be sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from ..errors import EncodingInputError, PosembedError

# What a scheme may ask for, by the names of its arguments.
SIZE_NAMES = ("d_model", "n_heads", "n_layers", "n_positions", "causal", "d_head")


def check_whole(name: str, value: Any, error: type[PosembedError] = EncodingInputError, *, least: int = 1) -> None:
    """Raise the error unless the value is a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise error(f"{name} is {value!r}; it must be a whole number of at least {least}")


def check_positive(name: str, value: Any) -> float:
    """Return the value, or raise EncodingInputError unless it is a positive, finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise EncodingInputError(f"{name} is {value!r}; it must be a positive number")
    return float(value)


def check_choice(
    name: str, value: Any, choices: Iterable[str], error: type[PosembedError] = EncodingInputError
) -> None:
    """Raise the error unless the value is one of the choices."""
    if value not in choices:
        raise error(f"{name} is {value!r}; choose among {', '.join(choices)}")


@dataclass(frozen=True)
class Sizes:
    """The sizes of the model that a scheme is made for; None where nobody said.

    A head is as wide as d_model // n_heads, unless d_head says something else.

    Example:
        >>> from posembed.encodings import Sizes
        >>> Sizes(d_model=64, n_heads=4).causal is None
        True
    """

    d_model: int | None = None
    n_heads: int | None = None
    n_layers: int | None = None
    n_positions: int | None = None
    causal: bool | None = None
    d_head: int | None = None

    def __post_init__(self):
        for name in ("d_model", "n_heads", "n_layers", "n_positions", "d_head"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))
        if self.causal not in (None, True, False):
            raise EncodingInputError(f"causal is {self.causal!r}; it must be True or False")
        if self.d_head is None and self.d_model is not None and self.n_heads is not None:
            if self.d_model % self.n_heads:
                raise EncodingInputError(f"d_model is {self.d_model}, which {self.n_heads} heads do not divide")
            object.__setattr__(self, "d_head", self.d_model // self.n_heads)

    def of(self, scheme: str, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the values of these sizes, or say which one the scheme cannot do without.

        Args:
            scheme: its name, for the message.
            names: attributes.
        """
        values = {name: getattr(self, name) for name in names}
        from_two = ("d_model", "n_heads")
        missing = [
            each
            for name in names
            if values[name] is None
            for each in (from_two if name == "d_head" else (name,))
            if getattr(self, each) is None
        ]
        if missing:
            raise EncodingInputError(f"{scheme} needs {' and '.join(f'{name}=' for name in missing)}")
        return values
