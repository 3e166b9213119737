"""What can a linear probe read from the states of a layer: the position, the token, or the token before?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
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
