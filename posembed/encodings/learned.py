"""A learned table with one row for each position."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError, PositionOutOfRangeError
from ..public import Count, NotNegative, public
from .interface import PositionScheme
from .positions import add_rows, check_positions, known


class Learned(PositionScheme):
    """A trained vector for each position, added to the embeddings (Gehring et al. 2017; BERT, GPT-2).

    Args:
        n_positions: the number of rows; there is no row for a position beyond.
        d_model: the width.
        table: "positions d_model" to start from instead, copied: a tensor, an array, or anything that has one as its
            ``weight`` and is no module. Row p is position p.
        std: of the normal distribution that rows are drawn from.

    Raises:
        EncodingInputError: sizes below 1, an std below 0, a table that does not fit them; positions of a wrong dtype or
            shape.
        PositionOutOfRangeError: a position without a row.

    Example:
        >>> import torch
        >>> from posembed.encodings import Learned
        >>> learned = Learned(table=torch.tensor([[0.0, 1.0], [10.0, 11.0]]))
        >>> learned.add(torch.zeros(1, 2, 2), torch.tensor([1, 0]))
        tensor([[[10., 11.],
                 [ 0.,  1.]]], grad_fn=<AddBackward0>)
    """

    @public(EncodingInputError)
    def __init__(
        self,
        n_positions: Count | None = None,
        d_model: Count | None = None,
        *,
        table: Any = None,
        std: NotNegative = 0.02,
    ):
        super().__init__()
        if table is None:
            if n_positions is None or d_model is None:
                raise EncodingInputError("learned needs n_positions= and d_model=, or a table=")
            self.weight = nn.Parameter(torch.empty(n_positions, d_model))
            nn.init.normal_(self.weight, std=std)
        else:
            self.weight = nn.Parameter(_checked_table(table, n_positions, d_model).detach().clone())

    def add(self, x: Float[Tensor, "*batch seq d_model"], positions: Integer[Tensor, "..."]) -> Tensor:
        """Add each position's row. The sum is taken in float32 at least and rounded once."""
        check_positions(positions, x, width=self.weight.shape[1])
        positions = positions.long()
        if known(positions):
            self._check_range(positions)
        return add_rows(x, F.embedding(positions, self.weight))

    def _check_range(self, positions: Tensor) -> None:
        """A negative position would be counted from the end."""
        for position in map(int, positions.aminmax() if positions.numel() else ()):
            if not 0 <= position < len(self.weight):
                raise PositionOutOfRangeError(
                    f"position {position} has no row in a learned table of {len(self.weight)}; make a longer table, "
                    "shorten the text, or choose a scheme without a table"
                )

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"


def _checked_table(table: Any, n_positions: int | None, d_model: int | None) -> Tensor:
    if isinstance(table, nn.Module):
        raise EncodingInputError(
            f"table is a {type(table).__name__}, whose first rows may not be positions; give its rows as a tensor"
        )
    weight = torch.as_tensor(getattr(table, "weight", table))
    if weight.shape != (n_positions or len(weight), d_model or weight.shape[1]):
        raise EncodingInputError(
            f"the table has shape {tuple(weight.shape)}, but ({n_positions}, {d_model}) was asked for; cut it so that "
            "row 0 is position 0, or give Learned(table=...) where the model may have other positions"
        )
    return weight
