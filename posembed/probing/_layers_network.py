"""The network that reads positions off hidden states: two layers with ReLU between, as a classifier."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ._random import generator

# Tokens whose logits are held at a time when a fitted network is asked.
BLOCK = 4096


class Settings(NamedTuple):
    """How a network is fitted.

    `batch_size` counts tokens; the learning rate is Adam's, and falls to zero in a straight line where it decays.
    """

    hidden: int
    steps: int
    batch_size: int
    learning_rate: float
    decay: bool
    seed: int


class Guesses(NamedTuple):
    """Positions guessed for each token: the most probable one, and the median of all probabilities.

    The median has the least expected distance that the network can promise; the most probable position may be anywhere
    where all are about as probable.
    """

    likeliest: Int[Tensor, " tokens"]
    median: Int[Tensor, " tokens"]


def fit_network(
    states: Float[Tensor, "tokens d_model"],
    labels: Int[Tensor, " tokens"],
    n_labels: int,
    settings: Settings,
) -> nn.Sequential:
    """Fit a network by Adam on the cross-entropy of tokens drawn with replacement.

    Raises:
        ProbeInputError: the loss became NaN or infinite.
    """
    random = torch_generator(settings.seed, "position network")
    network = _network(states.shape[1], settings.hidden, n_labels, random)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    with torch.enable_grad():
        for step in range(settings.steps):
            if settings.decay:
                optimizer.param_groups[0]["lr"] = settings.learning_rate * (1 - step / settings.steps)
            drawn = torch.randint(len(states), (settings.batch_size,), generator=random)
            loss = F.cross_entropy(network(states[drawn]), labels[drawn])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if not bool(loss.isfinite()):
        raise ProbeInputError(f"the loss of the probe is {loss.item()}; lower learning_rate={settings.learning_rate}")
    return network


def guess(network: nn.Sequential, states: Float[Tensor, "tokens d_model"]) -> Guesses:
    """Ask a fitted network for the positions of tokens."""
    with torch.no_grad():
        parts = [_guess(network(block)) for block in states.split(BLOCK)]
    return Guesses(*(torch.cat(each) for each in zip(*parts, strict=True)))


def _guess(logits: Float[Tensor, "tokens labels"]) -> Guesses:
    below_half = logits.softmax(dim=1).cumsum(dim=1) < 0.5
    return Guesses(logits.argmax(dim=1), below_half.sum(dim=1))


def _network(d_model: int, hidden: int, n_labels: int, random: torch.Generator) -> nn.Sequential:
    # Built empty, then filled from a generator of its own: the global state of torch stays as it was.
    with torch.device("meta"):
        network = nn.Sequential(nn.Linear(d_model, hidden), nn.ReLU(), nn.Linear(hidden, n_labels))
    network.to_empty(device="cpu")
    with torch.no_grad():
        for layer, n_inputs in ((network[0], d_model), (network[2], hidden)):
            reach = n_inputs**-0.5  # as `torch.nn.Linear` starts
            for parameter in layer.parameters():
                parameter.uniform_(-reach, reach, generator=random)
    return network


def torch_generator(seed: int, purpose: str) -> torch.Generator:
    """A stream of torch's numbers for each purpose."""
    return torch.Generator().manual_seed(int(generator(seed, purpose).integers(2**63)))


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Keep torch to one thread: what it adds up must not depend on how many there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
