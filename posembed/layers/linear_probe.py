"""What a linear map reads from the states of a layer: a label, such as the position, or what was added at the input."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import Ridge
from torch import Tensor

from ..errors import ProbeInputError
from ..public import Seed, public
from ..seeds import torch_generator
from ..serialization import Record
from ..stats import BootstrapInterval, mean_interval
from .variance_decomposition import check_states, group_means

# What is added to the covariance, as a part of its mean variance: enough to invert it, too little to blur it.
SHRINKAGE = 1e-3


@dataclass(frozen=True, repr=False)
class LinearProbeResult(Record):
    """How often a linear probe is right on texts that it has not seen.

    Attributes:
        accuracy: the share of held-out tokens.
        interval: of it, over texts.
        chance: the share that is right by always saying what is most frequent in the texts for fitting.
        permuted_labels: the accuracy of the same probe where labels are dealt out among the tokens at random.

    Example:
        >>> from posembed.layers import LinearProbeResult
        >>> from posembed.stats import BootstrapInterval
        >>> print(LinearProbeResult(0.5, BootstrapInterval(0.4, 0.6, 0.95, 4), 0.1, 0.09))
        0.500 (0.40 to 0.60; chance 0.100, permuted labels 0.090)
    """

    accuracy: float
    interval: BootstrapInterval
    chance: float
    permuted_labels: float

    def __str__(self) -> str:
        baselines = f"chance {self.chance:.3f}, permuted labels {self.permuted_labels:.3f}"
        return f"{self.accuracy:.3f} ({self.interval}; {baselines})"


@public(ProbeInputError)
def linear_probe(
    states: Float[Tensor, "texts length d_model"],
    labels: Int[Tensor, "texts length"],
    test_states: Float[Tensor, "tested length d_model"],
    test_labels: Int[Tensor, "tested length"],
    *,
    seed: Seed = 0,
) -> LinearProbeResult:
    """Fit a linear probe to the states of one layer and test it on other texts.

    The probe is Fisher's linear discriminant (1936): each label has a mean, all share one covariance, and the label
    with the largest posterior is said. It is linear in the state and has a closed form. A regression on one-hot labels
    has one too, but hides labels whose means lie between those of others, as the middle positions of a line do (Hastie
    et al. 2009, section 4.2).

    Args:
        states: of the texts for fitting.
        labels: of their tokens.
        test_states: of other texts.
        test_labels: of theirs; a label that the probe was not fitted to counts as wrong.
        seed: of the control and of the interval.

    Raises:
        ProbeInputError: states that are not so, labels of another shape, or states all alike.

    Example:
        >>> import torch
        >>> from posembed.layers import linear_probe
        >>> labels = torch.arange(5).expand(40, 5)
        >>> states = torch.eye(5)[labels] + 0.1 * torch.randn(40, 5, 5, generator=torch.Generator().manual_seed(0))
        >>> linear_probe(states[:30], labels[:30], states[30:], labels[30:]).accuracy
        1.0
    """
    check_states(states, test_states)
    if labels.shape != states.shape[:2] or test_labels.shape != test_states.shape[:2]:
        raise ProbeInputError("labels do not belong to the states; give one for each token of the same texts")
    values, known = labels.unique(return_inverse=True)
    asked = torch.searchsorted(values, test_labels.contiguous()).clamp(max=len(values) - 1)
    # A label that is unknown is no answer of the probe.
    asked = torch.where(values[asked] == test_labels, asked, -1)
    right = _right(states, known, test_states, asked)
    random = torch_generator(seed, "permuted labels")
    dealt, test_dealt = (_dealt(each, random) for each in (known, asked))
    return LinearProbeResult(
        accuracy=float(right.double().mean()),
        interval=mean_interval(right.double().mean(dim=1).numpy(), seed=seed),
        chance=float((asked == known.flatten().bincount().argmax()).double().mean()),
        permuted_labels=float(_right(states, dealt, test_states, test_dealt).double().mean()),
    )


def _dealt(labels: Int[Tensor, "texts length"], random: torch.Generator) -> Int[Tensor, "texts length"]:
    return labels.flatten()[torch.randperm(labels.numel(), generator=random)].view(labels.shape)


def _right(
    states: Float[Tensor, "texts length d_model"],
    labels: Int[Tensor, "texts length"],
    test_states: Float[Tensor, "tested length d_model"],
    test_labels: Int[Tensor, "tested length"],
) -> Bool[Tensor, "tested length"]:
    x, at = states.flatten(0, 1).double(), labels.flatten()
    centre, counts = x.mean(dim=0), at.bincount().double()
    x = x - centre
    means = group_means(x, at, len(counts))
    within = x - means[at]
    covariance = within.mT @ within / len(x)
    size = float(x.square().mean())
    if not size:
        raise ProbeInputError("the states are all alike, so nothing can be read from them; look at the model")
    # Of the whole variance: where the labels explain all of it, there is no other scale.
    ridge = SHRINKAGE * size * torch.eye(x.shape[1], dtype=x.dtype)
    weights = torch.linalg.solve(covariance + ridge, means.mT)
    offsets = counts.div(len(x)).log() - (means * weights.mT).sum(dim=1) / 2
    return ((test_states.double() - centre) @ weights + offsets).argmax(dim=-1) == test_labels


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
