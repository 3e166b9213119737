"""nn.Embedding is a lookup: the product with a one-hot matrix that is never formed."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor, nn

from .errors import LookupInputError
from .public import public


@public(LookupInputError)
def one_hot_lookup(
    table: Float[Tensor, "n_rows d_model"], ids: Integer[Tensor, "*shape"]
) -> Float[Tensor, "*shape d_model"]:
    """Look rows up as a matrix product: one_hot(ids) @ table.

    Equal to ``torch.nn.functional.embedding(ids, table)`` in value and in gradient, and wasteful on purpose: it builds
    the matrix of one-hot rows that the lookup avoids. A row of zeros and a single one, times the table, is a row of the
    table; the gradient of the table is one_hot(ids)^T @ gradient, which adds up what arrives at each id.

    Args:
        table: one row for each id.
        ids: integers from 0 to n_rows - 1, of any shape.

    Returns:
        The rows, in the table's dtype and on its device.

    Raises:
        LookupInputError: the table is not a floating-point matrix or holds NaN or infinity (0 times infinity is NaN, so
            one such row would spoil every product), or the ids are not integers.
        LookupInputError: an id names no row. A negative id is not a row counted from the end.

    Example:
        >>> import torch
        >>> from posembed import one_hot_lookup
        >>> table = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        >>> one_hot_lookup(table, torch.tensor([2, 0]))
        tensor([[4., 5.],
                [0., 1.]])
    """
    if not bool(torch.isfinite(table).all()):
        raise LookupInputError("the table holds NaN or infinity, which a product with zeros spreads to every row")
    # As int64, because torch has no minimum of the unsigned formats.
    rows = ids.to(table.device, torch.int64)
    if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < len(table):
        raise LookupInputError(
            f"ids run from {int(rows.min())} to {int(rows.max())}, but the table has rows 0 to {len(table) - 1}"
        )
    one_hot = F.one_hot(rows, table.shape[0]).to(table.dtype)
    # A lookup never rounds its rows, so the product must not be computed in autocast's format.
    with torch.autocast(table.device.type, enabled=False):
        return one_hot @ table


@public(LookupInputError)
def rows_with_gradient(embedding: nn.Embedding) -> list[int]:
    """List the rows that backward passes have reached since gradients were cleared, dense or sparse.

    Args:
        embedding: after ``backward()``.

    Returns:
        Row numbers in rising order, of those with an entry in a sparse gradient or not all zero in a dense one.

    Raises:
        LookupInputError: there is no gradient yet.

    Example:
        >>> import torch
        >>> from posembed.lookup import rows_with_gradient
        >>> embedding = torch.nn.Embedding(6, 3)
        >>> embedding(torch.tensor([4, 1, 4])).sum().backward()
        >>> rows_with_gradient(embedding)
        [1, 4]
    """
    gradient = _gradient(embedding)
    if gradient.is_sparse:
        return sorted(set(gradient.coalesce().indices()[0].tolist()))
    return torch.nonzero(gradient.ne(0).any(dim=1)).flatten().tolist()


@public(LookupInputError)
def gradient_bytes(embedding: nn.Embedding) -> int:
    """Count the bytes that the embedding's gradient occupies, indices of a sparse one included.

    Raises:
        LookupInputError: there is no gradient yet.

    Example:
        >>> import torch
        >>> from posembed.lookup import gradient_bytes
        >>> dense, sparse = torch.nn.Embedding(1000, 8), torch.nn.Embedding(1000, 8, sparse=True)
        >>> for embedding in (dense, sparse):
        ...     embedding(torch.tensor([3, 5])).sum().backward()
        >>> gradient_bytes(dense), gradient_bytes(sparse)
        (32000, 80)
    """
    gradient = _gradient(embedding)
    # Not coalesced: an id that was looked up twice has two rows.
    parts = (gradient._indices(), gradient._values()) if gradient.is_sparse else (gradient,)
    return sum(part.nbytes for part in parts)


def _gradient(embedding: nn.Embedding) -> Tensor:
    if embedding.weight.grad is None:
        raise LookupInputError("the embedding has no gradient; call backward() on a loss that used it first")
    return embedding.weight.grad
