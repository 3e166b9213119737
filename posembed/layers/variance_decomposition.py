"""How much of what differs between tokens is explained by where they stand, and how much by which token it is?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from ..errors import ProbeInputError
from ..public import Seed, public
from ..serialization import Record
from ..stats import BootstrapInterval, mean_interval


@dataclass(frozen=True, repr=False)
class LayerShares(Record):
    """What the variance between the states of one layer is made of. Position, token and the rest add up to one.

    Attributes:
        layer: 0 is what enters the first layer, n what leaves the n-th.
        total: the variance of states: their mean squared distance from the mean of all texts there could be.
        position: the share that is explained by position, adjusted for what positions would explain by chance.
        position_interval: of it, over texts.
        token: the share of which token it is in what position leaves, adjusted for chance; None without ids.
        token_interval: of it.
        raw_position: the share as it is in these texts.
        raw_token: likewise.

    Example:
        >>> import torch
        >>> from posembed.layers import position_shares
        >>> print(position_shares([torch.arange(4.0)[:, None].repeat(8, 1, 1)])[0])
        layer 0: position 1.000 (1.000 to 1.000) of 1.25
    """

    layer: int
    total: float
    position: float
    position_interval: BootstrapInterval
    token: float | None
    token_interval: BootstrapInterval | None
    raw_position: float
    raw_token: float | None

    @property
    def position_square(self) -> float:
        """The adjusted mean square that position explains, in the units of `total`."""
        return self.position * self.total

    @property
    def rest(self) -> float:
        """The share that neither explains, which is of the context and of what the two do together."""
        return 1 - self.position - (self.token or 0.0)

    def __str__(self) -> str:
        token = "" if self.token is None else f", token {_told(self.token, self.token_interval)}"
        position = _told(self.position, self.position_interval)
        return f"layer {self.layer}: position {position}{token} of {self.total:.4g}"


def _told(share: float, its: BootstrapInterval | None) -> str:
    return f"{share:.3f}" + ("" if its is None else f" ({its.low:.3f} to {its.high:.3f})")


@public(ProbeInputError)
def position_shares(
    states: Float[Tensor, "layers texts length d_model"] | Sequence[Float[Tensor, "texts length d_model"]],
    ids: Int[Tensor, "texts length"] | None = None,
    *,
    seed: Seed = 0,
) -> tuple[LayerShares, ...]:
    """Divide the variance between states, layer by layer, into shares of position, of the token and the rest.

    The squared distances of all states from their mean are divided twice, as in an analysis of variance: first into
    what the means over texts at each position explain, then into what the means of each token explain of what is left.
    Means of groups explain something by chance alone. Adjusted, a share is 0 on average where there is nothing to
    explain, 1 where nothing is left and texts are many, and may come out a little below 0. The mean of a position over
    T texts has a T-th of the variance that texts have at that position, less what each has at all of its positions (a
    topic, say): as in a two-way analysis of variance that is estimated from what neither positions nor texts explain,
    so states of one text may be as alike as they like. For tokens it is the adjusted coefficient of determination
    (Ezekiel 1930), as if tokens were drawn one by one: where texts differ as wholes and have words of their own, some
    of that counts as the token's.

    The intervals are over texts, by a bootstrap of blocks of neighbouring ones (`posembed.stats.mean_interval`) of what
    each text adds to the share, with the means held: to first order that is all, as the means are those that leave the
    least.

    Args:
        states: of texts of one length, of each layer.
        ids: which token stands where; None where tokens have no names, as in images.
        seed: of the bootstrap.

    Returns:
        The shares of each layer. NaN where all states of a layer are alike.

    Raises:
        ProbeInputError: states that are not so, fewer than two texts or positions, ids of another shape.

    Example:
        >>> import torch
        >>> from posembed.layers import position_shares
        >>> ids = torch.arange(6)[:, None].roll(1, 0) + torch.arange(4)  # each position sees each word once
        >>> ids, words, rows = ids % 6, torch.eye(6), 2 * torch.eye(6)[:4]
        >>> (found,) = position_shares([words[ids] + rows], ids)
        >>> round(found.raw_position, 4), round(found.raw_token, 4)
        (0.7826, 0.2174)
    """
    layers = [each.detach() for each in states]
    if (
        not layers
        or len(shapes := {each.shape[:2] for each in layers}) > 1
        or (ids is not None and {ids.shape} != shapes)
    ):
        raise ProbeInputError(
            "give states (texts, length, d_model) of the same texts, one a layer, and ids of these texts"
        )
    check_states(*layers)
    tokens = None if ids is None else ids.unique(return_inverse=True)[1]
    return tuple(_shares(number, layer, tokens, seed) for number, layer in enumerate(layers))


def check_states(*states: Float[Tensor, "_ _ _"]) -> None:
    """Refuse states that are not numbers, or too few of them to compare."""
    for each in states:
        if min(each.shape[:2]) < 2:
            raise ProbeInputError(
                f"{each.shape[0]} texts of {each.shape[1]} positions are too few; give 2 of 2 at least"
            )
        if not bool(each.isfinite().all()):
            raise ProbeInputError("states are NaN or infinite; look at the model's weights")


def _shares(
    number: int, layer: Float[Tensor, "texts length d_model"], tokens: Int[Tensor, "texts length"] | None, seed: int
) -> LayerShares:
    states = layer.double()
    n_texts, length = states.shape[:2]
    n = n_texts * length
    left = states - states.mean(dim=(0, 1))
    seen = _squares(left)
    of_texts = length * left.mean(dim=1).square().sum(dim=1)
    left = left - left.mean(dim=0)
    unplaced = _squares(left)
    # What positions explain by chance, and what the mean of these texts takes from the variance.
    by_chance, missed = ((each / (n_texts - 1)) for each in (unplaced - of_texts, of_texts))
    raw, adjusted, whole = seen - unplaced, seen - unplaced - by_chance, seen + missed
    token, raw_token = None, None
    if tokens is not None:
        n_kinds = int(tokens.max()) + 1
        unnamed = _squares(left - group_means(left.flatten(0, 1), tokens.flatten(), n_kinds)[tokens])
        of_token = (n - 1) / (n - n_kinds) if n > n_kinds else math.nan
        raw_token, token = unplaced - unnamed, n_texts / (n_texts - 1) * (unplaced - of_token * unnamed)
    return LayerShares(
        layer=number,
        total=float(whole.sum() / n),
        position=_share(adjusted, whole),
        position_interval=_interval(adjusted, whole, seed),
        token=None if token is None else _share(token, whole),
        token_interval=None if token is None else _interval(token, whole, seed),
        raw_position=_share(raw, seen),
        raw_token=None if raw_token is None else _share(raw_token, seen),
    )


def _squares(deviations: Float[Tensor, "texts length d_model"]) -> Float[Tensor, " texts"]:
    return deviations.square().sum(dim=(1, 2))


def group_means(
    x: Float[Tensor, "n d_model"], groups: Int[Tensor, " n"], n_groups: int
) -> Float[Tensor, "groups d_model"]:
    """The mean of the vectors of each group."""
    sums = x.new_zeros(n_groups, x.shape[1]).index_add_(0, groups, x)
    return sums / groups.bincount(minlength=n_groups)[:, None]


def _share(part: Float[Tensor, " texts"], whole: Float[Tensor, " texts"]) -> float:
    return float(part.sum() / whole.sum())


def _interval(part: Float[Tensor, " texts"], whole: Float[Tensor, " texts"], seed: int) -> BootstrapInterval:
    """Of a ratio of two means over texts, from the values whose mean it is to first order."""
    share = _share(part, whole)
    return mean_interval((share + (part - share * whole) / whole.mean()).numpy(), seed=seed)
