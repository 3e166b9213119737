"""Refused where the layers of a model are measured."""

import torch

from posembed import TransformerConfig
from posembed.errors import ProbeInputError
from posembed.layers import ablate, changed, depth_profile, layers_of, linear_probe, position_shares, retained_input
from posembed.models import LanguageModel, Transformer

IDS = torch.randint(9, (12, 8), generator=torch.Generator().manual_seed(0))
STATES, LABELS = torch.randn(6, 8, 4), torch.arange(8).expand(6, -1)


def model():
    return LanguageModel(TransformerConfig(9, n_layers=2, d_model=16, n_heads=2)).eval()


def alone(its_model):
    return torch.cat([its_model(each[None])[:, -1, 0] for each in IDS])


P = ProbeInputError
CASES = {
    "a skip that leaves one position": (P, lambda: ablate(model(), IDS, IDS, skip=7), "skip is 7 of 8 positions"),
    "a stack that is a model": (
        P,
        lambda: changed(Transformer(TransformerConfig(9)), 1, torch.relu),
        "give a ModuleList",
    ),
    "no list of inputs": (P, lambda: layers_of(model(), [[1, 2]]), "inputs is [[1, 2]]; give a Tensor, or None"),
    "a layer that there is not": (P, lambda: ablate(model(), IDS, IDS, layers=[3]), "has layers 0 (embeddings) to 2"),
    "one text": (P, lambda: ablate(model(), IDS, IDS[:1]), "shape (1, 8) are too few"),
    "means of another length": (
        P,
        lambda: ablate(model(), IDS[:, :5], IDS),
        "texts of (5,) do not belong",
    ),
    "a loss of one text at a time": (P, lambda: ablate(model(), IDS, IDS, loss=alone), "give it two at a time"),
    "a loss of all texts at once": (
        P,
        lambda: ablate(model(), IDS, IDS, loss=lambda m: m(IDS).mean()),
        "there is no interval",
    ),
    "yes in words": (P, lambda: depth_profile(model(), IDS, ablations="no"), "ablations is 'no'; give True or False"),
    "states as an array": (
        P,
        lambda: linear_probe(STATES.numpy(), LABELS, STATES, LABELS),
        "give a tensor, Float[Tensor",
    ),
    "labels of others": (P, lambda: linear_probe(STATES, LABELS, STATES, LABELS[:1]), "give one for each token"),
    "states all alike": (P, lambda: linear_probe(STATES * 0, LABELS, STATES, LABELS), "all alike"),
    "states that are NaN": (
        P,
        lambda: linear_probe(STATES.log(), LABELS, STATES, LABELS),
        "states are NaN or infinite",
    ),
    "vectors of another width": (
        P,
        lambda: retained_input(STATES, STATES, torch.eye(8)),
        "one vector of the same width",
    ),
    "vectors all alike": (
        P,
        lambda: retained_input(STATES, STATES, torch.ones(8, 4)),
        "no position has one of its own",
    ),
    "states of one text": (P, lambda: position_shares([STATES[:1]]), "1 texts of 8 positions are too few"),
    "states of other texts": (P, lambda: position_shares([STATES, STATES[:5]]), "of the same texts, one a layer"),
    "ids of other texts": (P, lambda: position_shares([STATES], LABELS[:5]), "ids of these texts"),
    "shares of what is NaN": (P, lambda: position_shares([STATES.log()]), "states are NaN or infinite"),
}
