"""Which query may attend to which key: padding, packing and causality, a block of queries at a time."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..encodings.positions import known
from ..errors import ModelInputError, shown


class AttentionMask:
    """What the queries of one call may see. The whole query-by-key matrix is made only where a caller gave one.

    The queries are the last of the keys: query i of n sees the keys up to i + n_keys - n where the model is causal. So
    a mask is right for a whole text, for one new token and for any number of new tokens behind a cache.

    Args:
        n_queries: the number of queries.
        n_keys: the number of keys.
        causal: whether a query sees only itself and the keys before it.
        given: True, or 1, where attention is allowed: "batch key" (padding), "batch query key" or
            "batch heads query key"; or, as `pack` has it, 0 there and minus infinity elsewhere.
        device: of the queries.

    Raises:
        ModelInputError: a mask of another dtype or shape, or a causal model with more queries than keys.

    Example:
        >>> from posembed.models import AttentionMask
        >>> AttentionMask(2, 3, causal=True).block(0, 2)
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """

    def __init__(
        self,
        n_queries: int,
        n_keys: int,
        *,
        causal: bool,
        given: Any = None,
        device: torch.device | None = None,
    ):
        if not isinstance(causal, bool):
            raise ModelInputError(f"causal is {shown(causal)}; give True or False")
        if causal and n_queries > n_keys:
            raise ModelInputError(
                f"{n_queries} queries and {n_keys} keys: a query of a causal model has a key of its own; give all keys"
            )
        self.n_queries, self.n_keys, self.causal, self.device = n_queries, n_keys, causal, device
        self.given = None if given is None else self._checked(given)

    def n_visible_keys(self, stop: int) -> int:
        """Return how many keys, from the first, the queries before `stop` may see at most."""
        return stop + self.n_keys - self.n_queries if self.causal else self.n_keys

    def block(self, start: int, stop: int, *, causal: bool = True) -> Bool[Tensor, "... query key"] | None:
        """Return what the queries from start to stop see of their visible keys; None where that is all of them.

        Args:
            start: the first query.
            stop: the query after the last.
            causal: False leaves causality out, for a caller that has it elsewhere.
        """
        n_keys = self.n_visible_keys(stop)
        seen = None
        if causal and self.causal and stop - start > 1:
            first = self.n_visible_keys(start + 1)
            seen = torch.ones(stop - start, n_keys, dtype=torch.bool, device=self.device).tril(first - 1)
        if self.given is None:
            return seen
        rows = slice(None) if self.given.shape[2] == 1 else slice(start, stop)
        given = self.given[:, :, rows, :n_keys]
        return given if seen is None else given & seen

    def _checked(self, given: Any) -> Bool[Tensor, "batch heads query key"]:
        if given.is_floating_point() and bool(((given == 0) | given.isneginf()).all()):
            given = given == 0
        if given.is_floating_point() or (given.dtype != torch.bool and not bool(((given == 0) | (given == 1)).all())):
            raise ModelInputError(
                f"attention_mask is {given.dtype} with numbers of another kind; give True, or 1, where attention is "
                "allowed, and False, or 0, elsewhere; in floating point 0 where it is allowed, and -inf elsewhere"
            )
        shape = tuple(given.shape)
        if given.ndim == 2:
            given = given[:, None, None, :]
        elif given.ndim == 3:
            given = given[:, None]
        if given.ndim != 4 or given.shape[2] not in (1, self.n_queries) or given.shape[3] != self.n_keys:
            raise ModelInputError(
                f"attention_mask has shape {shape}; with {self.n_queries} queries and {self.n_keys} keys it must be "
                "(batch, key), (batch, query, key) or (batch, heads, query, key)"
            )
        return given.bool()


def in_order(
    k: Tensor, v: Tensor, positions: Tensor, key_positions: Tensor, gates: Tensor | None, given: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor]:
    """Put keys, and what goes with them, in the order of their positions, with a mask that is causal by positions."""
    key_positions = key_positions.long()
    order = key_positions.argsort(dim=-1, stable=True)
    key_positions, each = key_positions.take_along_dim(order, -1), order if order.ndim == 2 else order[None]
    seen = key_positions[..., None, :] <= positions.long()[..., None]
    seen = (seen if seen.ndim == 3 else seen[None])[:, None]
    if given is not None:
        seen = seen & given.take_along_dim(each[:, None, None], 3)
    gates = None if gates is None else gates.take_along_dim(each[:, None], 2)
    k, v = (one.take_along_dim(each[:, None, :, None], 2) for one in (k, v))
    return k, v, key_positions, gates, seen


def positions_from_mask(
    attention_mask: Int[Tensor, "batch seq"] | Bool[Tensor, "batch seq"],
) -> Int[Tensor, "batch seq"]:
    """Count the positions of padded texts, so that each begins at 0 wherever its padding stands.

    Args:
        attention_mask: 1, or True, for tokens, 0 for padding.

    Returns:
        The positions; padding gets that of the token before it, or 0.

    Raises:
        ModelInputError: anything else.

    Example:
        >>> import torch
        >>> from posembed.models import positions_from_mask
        >>> positions_from_mask(torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]]))
        tensor([[0, 0, 0, 1],
                [0, 1, 2, 2]])
    """
    given = isinstance(attention_mask, Tensor) and attention_mask.ndim == 2
    if not given or (known(attention_mask) and not bool(((attention_mask == 0) | (attention_mask == 1)).all())):
        raise ModelInputError("attention_mask must be a tensor (batch, seq) of 1 for tokens and 0 for padding")
    return (attention_mask.long().cumsum(-1) - 1).clamp(min=0)


def pack(
    segments: Int[Tensor, "batch seq"], *, causal: bool = False
) -> tuple[Int[Tensor, "batch seq"], Float[Tensor, "batch 1 seq seq"]]:
    """Make positions and mask for several texts in one row, so that none sees another.

    The mask is one to add, 0 where attention is allowed and minus infinity elsewhere, which all attention takes alike;
    True and False some of transformers' would add as 1 and 0, in silence. Its models take both as
    ``position_ids=positions, attention_mask=mask``, in half precision ``mask.to(model.dtype)``. If one is causal, it
    takes this mask for all there is to hide: say ``causal=True``. A window it forgets too, so put minus infinity
    outside of it. Models of posembed keep causality themselves.

    Args:
        segments: the number of the text that each token belongs to; a text's tokens stand together.
        causal: whether the mask also hides what comes later in a text.

    Returns:
        positions, which begin at 0 in each text, and the attention mask.

    Raises:
        ModelInputError: a text whose tokens stand apart.

    Example:
        >>> import torch
        >>> from posembed.models import pack
        >>> positions, mask = pack(torch.tensor([[0, 0, 0, 1, 1]]))
        >>> positions
        tensor([[0, 1, 2, 0, 1]])
        >>> mask[0, 0, 3]
        tensor([-inf, -inf, -inf, 0., 0.])
    """
    begins = torch.ones_like(segments, dtype=torch.bool)
    begins[:, 1:] = segments[:, 1:] != segments[:, :-1]
    if known(segments) and any(
        len(row.unique()) != int(begun.sum()) for row, begun in zip(segments, begins, strict=True)
    ):
        raise ModelInputError("the tokens of a text stand apart in segments; give each text a number of its own")
    index = torch.arange(segments.shape[1], device=segments.device)
    start = torch.where(begins, index, 0).cummax(-1).values
    same = segments[:, None, :, None] == segments[:, None, None, :]
    return index - start, torch.where(same.tril() if causal else same, 0.0, -torch.inf)
