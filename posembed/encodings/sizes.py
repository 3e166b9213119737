"""The sizes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import EncodingInputError, shown

# What a scheme may ask for, by the names of its arguments.
SIZE_NAMES = ("d_model", "n_heads", "n_layers", "n_positions", "causal", "d_head")


def axis_widths(axes: int | Sequence[int], total: int, *, least: int, even: bool = False) -> tuple[int, ...]:
    """Return how many of the columns each axis gets: as given, or equal parts for a number of axes."""
    if isinstance(axes, int):
        if total % (axes * (2 if even else 1)):
            kind = "equal, even parts" if even else "equal parts"
            raise EncodingInputError(f"{axes} axes do not divide {total} columns into {kind}; give each axis its width")
        return (total // axes,) * axes
    if any(each < least or (even and each % 2) for each in axes):
        wanted = ("an even number of columns, " if even else "") + f"at least {least} column{'s' * (least > 1)}"
        raise EncodingInputError(f"axes are {tuple(axes)}; each axis needs {wanted}")
    if sum(axes) != total:
        raise EncodingInputError(f"axes are {shown(axes)}, of {sum(axes)} columns together; they must have {total}")
    return tuple(axes)


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
        missing = [name for name in names if values[name] is None]
        if "d_head" in missing:
            missing = [name for name in ("d_model", "n_heads") if getattr(self, name) is None]
        if missing:
            raise EncodingInputError(f"{scheme} needs {' and '.join(f'{name}=' for name in missing)}")
        return values
