"""The network that reads positions off hidden states: two layers with ReLU between, as a classifier."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from ..seeds import torch_generator

HIDDEN = 128
# Tokens a step.
BATCH_SIZE = 512
# Of Adam, falling to zero in a straight line.
LEARNING_RATE = 1e-2
# Tokens whose logits are held at a time when a fitted network is asked.
BLOCK = 4096


class Predictions(NamedTuple):
    """The position of each token: the most probable one, and the median of all probabilities.

    The median has the least expected distance that the network can promise; the most probable position may be anywhere
    where all are about as probable.
    """

    likeliest: Int[Tensor, " tokens"]
    median: Int[Tensor, " tokens"]


def fit_network(
    states: Float[Tensor, "tokens d_model"], labels: Int[Tensor, " tokens"], n_labels: int, steps: int, seed: int
) -> nn.Sequential:
    """Fit a network by Adam on the cross-entropy of tokens drawn with replacement."""
    random = torch_generator(seed, "position network")
    network = _network(states.shape[1], n_labels, random)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    with torch.enable_grad():
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / steps)
            drawn = torch.randint(len(states), (BATCH_SIZE,), generator=random)
            loss = F.cross_entropy(network(states[drawn]), labels[drawn])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def predict(network: nn.Sequential, states: Float[Tensor, "tokens d_model"]) -> Predictions:
    """Ask a fitted network for the positions of tokens."""
    with torch.no_grad():
        parts = [_predicted(network(block)) for block in states.split(BLOCK)]
    return Predictions(*(torch.cat(each) for each in zip(*parts, strict=True)))


def _predicted(logits: Float[Tensor, "tokens labels"]) -> Predictions:
    below_half = logits.softmax(dim=1).cumsum(dim=1) < 0.5
    return Predictions(logits.argmax(dim=1), below_half.sum(dim=1))


def mean_distance(predicted: Int[Tensor, "..."], labels: Int[Tensor, "..."]) -> float:
    """Between predictions and labels, in positions."""
    return float((predicted - labels).abs().double().mean())


def _network(d_model: int, n_labels: int, random: torch.Generator) -> nn.Sequential:
    # Built empty, then filled from a generator of its own: the global state of torch stays as it was.
    network = nn.Sequential(skip_init(nn.Linear, d_model, HIDDEN), nn.ReLU(), skip_init(nn.Linear, HIDDEN, n_labels))
    with torch.no_grad():
        for layer, n_inputs in ((network[0], d_model), (network[2], HIDDEN)):
            reach = n_inputs**-0.5  # as `torch.nn.Linear` starts
            for parameter in layer.parameters():
                parameter.uniform_(-reach, reach, generator=random)
    return network
