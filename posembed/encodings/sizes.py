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

    def __post_init__(self):
        for name in ("d_model", "n_heads", "n_layers", "n_positions"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))
        if self.causal not in (None, True, False):
            raise EncodingInputError(f"causal is {self.causal!r}; it must be True or False")
        if self.d_model is not None and self.n_heads is not None and self.d_model % self.n_heads:
            raise EncodingInputError(f"d_model is {self.d_model}, which {self.n_heads} heads do not divide")

    def of(self, scheme: str, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the values of these sizes, or say which one the scheme cannot do without.

        Args:
            scheme: its name, for the message.
            names: attributes, or "d_head", the width of a head.
        """
        needed = [each for name in names for each in (("d_model", "n_heads") if name == "d_head" else (name,))]
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise EncodingInputError(f"{scheme} needs {' and '.join(f'{name}=' for name in missing)}")
        values = {name: getattr(self, name) for name in needed}
        return {name: values["d_model"] // values["n_heads"] if name == "d_head" else values[name] for name in names}
