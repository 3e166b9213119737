"""How much of the position vector that was added at the input is left in the states of a layer?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from sklearn.linear_model import Ridge
from torch import Tensor

from ..errors import ProbeInputError
from ..public import Seed, public
from ..serialization import Record
from ..stats import BootstrapInterval, mean_interval
from .linear_probe import SHRINKAGE
from .variance_decomposition import check_states


@dataclass(frozen=True, repr=False)
class RetainedInput(Record):
    """What the states of one layer have of the position vectors that were added at the input.

    Attributes:
        r2: how much of the vectors, centred, a linear map from the state tells on held-out texts: one less the squared
            error as a part of their squares. It may be negative.
        r2_interval: of it, over texts.
        coefficient: which multiple of its own vector a state has: the sum of the products of states with the centred
            vectors of their positions, as a part of that of the vectors with themselves. It is the coefficient of a
            regression of all entries of the states on those of the vectors, with one number for all.
        coefficient_interval: of it, over texts.
        cosine: of the mean states at all positions, centred, with the centred vectors, as two long vectors. It is 1
            where position has changed in size alone.

    Example:
        >>> from posembed.layers import RetainedInput
        >>> from posembed.stats import BootstrapInterval
        >>> interval = BootstrapInterval(0.9, 1.1, 0.95, 4)
        >>> print(RetainedInput(0.8, interval, 1.0, interval, 0.7))
        1.000 times (0.90 to 1.10), cosine 0.700, R2 0.800 (0.90 to 1.10)
    """

    r2: float
    r2_interval: BootstrapInterval
    coefficient: float
    coefficient_interval: BootstrapInterval
    cosine: float

    def __str__(self) -> str:
        times = f"{self.coefficient:.3f} times ({self.coefficient_interval})"
        return f"{times}, cosine {self.cosine:.3f}, R2 {self.r2:.3f} ({self.r2_interval})"


@public(ProbeInputError)
def retained_input(
    states: Float[Tensor, "texts length d_model"],
    test_states: Float[Tensor, "tested length d_model"],
    vectors: Float[Tensor, "length d_model"],
    *,
    seed: Seed = 0,
) -> RetainedInput:
    """Compare the states of one layer with the position vectors that were added to the embeddings.

    In a pre-norm model the sum that all layers read and add to (the residual stream) after layer l is the embeddings,
    and with them the position vectors, plus the l updates. The vectors are never taken away: a coefficient other than 1
    means that the updates have added or removed some of them. Whether a layer can still tell them from all else is the
    other question, which R2 answers. Two things to mind. A last state after a final norm has another scale, and is no
    such sum: its coefficient is none of the vectors added, and nor is any of a post-norm model. And where positions are
    added at every layer, they are in this sum again.

    The linear map is that of least squares with a small penalty, a thousandth of the mean variance of the states.

    Args:
        states: of the texts that the map is fitted to.
        test_states: of other texts, on which all three numbers are measured.
        vectors: what was added at each position of the texts.
        seed: of the intervals.

    Raises:
        ProbeInputError: states or vectors that are not so, or vectors all alike.

    Example:
        >>> import torch
        >>> from posembed import sinusoidal
        >>> from posembed.layers import retained_input
        >>> rows = sinusoidal(8, 16)
        >>> words = torch.randn(500, 8, 16, generator=torch.Generator().manual_seed(0))
        >>> found = retained_input(words[:200] + rows, words[200:] + rows, rows)
        >>> abs(found.coefficient - 1) < 0.1
        True
    """
    check_states(states, test_states)
    if not states.shape[1:] == test_states.shape[1:] == vectors.shape:
        raise ProbeInputError(
            f"vectors of shape {tuple(vectors.shape)} and states of {tuple(test_states.shape)} do not belong to states "
            f"of {tuple(states.shape)}; give one vector of the same width for each position"
        )
    if all_alike(vectors):
        raise ProbeInputError("the vectors are all alike, so no position has one of its own; leave them out")
    states = states.detach().cpu()
    tested, wanted = (each.detach().cpu().double() for each in (test_states, vectors))
    wanted = wanted - wanted.mean(dim=0)
    size = float(wanted.square().sum())
    r2 = (1 - (_told(states, wanted, tested) - wanted).square().sum(dim=(1, 2)) / size).numpy()
    of_text = (tested * wanted).sum(dim=(1, 2)).numpy() / size
    means = tested.mean(dim=0) - tested.mean(dim=(0, 1))
    return RetainedInput(
        r2=float(r2.mean()),
        r2_interval=mean_interval(r2, seed=seed),
        coefficient=float(of_text.mean()),
        coefficient_interval=mean_interval(of_text, seed=seed),
        cosine=float((means * wanted).sum() / (means.norm() * wanted.norm())),
    )


def all_alike(vectors: Float[Tensor, "length d_model"]) -> bool:
    """Whether no position has a vector of its own, up to rounding."""
    vectors = vectors.detach().double()
    apart = vectors - vectors.mean(dim=0)
    return float(apart.square().sum()) <= (1e-6 * float(vectors.abs().max())) ** 2 * vectors.numel()


def _told(
    states: Float[Tensor, "texts length d_model"],
    wanted: Float[Tensor, "length d_model"],
    tested: Float[Tensor, "tested length d_model"],
) -> Float[Tensor, "tested length d_model"]:
    """What a linear map that is fitted to some states makes of others."""
    x = states.double().flatten(0, 1).numpy()
    # States all alike tell nothing, whatever the penalty.
    penalty = SHRINKAGE * len(x) * float(x.var(axis=0).mean()) or 1.0
    ridge = Ridge(penalty, solver="cholesky").fit(x, wanted.repeat(len(states), 1).numpy())
    return torch.from_numpy(ridge.predict(tested.flatten(0, 1).numpy())).view(len(tested), *wanted.shape)
