"""Refused by `check_equivariance`: what no verdict can come from."""

import torch
import torch.nn.functional as F
from small_models import build

from posembed import check_equivariance
from posembed.errors import EquivarianceInputError

X, IDS = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)), torch.arange(10).view(2, 5)


def checked(fn, x=X, **options):
    return lambda: check_equivariance(fn, x, **options)


def spoiled(x):
    """NaN only where the first token is not the first any more."""
    return x if torch.equal(x, X) else x.index_fill(1, torch.tensor([2]), torch.nan)


INPUT = {
    "a list": (checked(torch.relu, [[1.0, 2.0]]), "x is [[1.0, 2.0]]; give a tensor"),
    "no axis of tokens": (checked(torch.relu, torch.arange(5.0)), "has no axis 1; name the axis of the tokens"),
    "two axes, of which either may hold the tokens": (checked(torch.relu, X[0]), "may hold tokens on either axis"),
    "an empty batch": (checked(torch.relu, X[:0]), "has less than two different tokens"),
    "one token": (checked(torch.relu, X[:, :1]), "has less than two different tokens"),
    "equal tokens": (checked(torch.relu, X[:, :1].expand(2, 5, 8)), "has less than two different tokens"),
    "NaN in x": (checked(torch.relu, X.log()), "x holds NaN or infinity"),
    "NaN in the output": (checked(torch.log), "fn(x) holds NaN or infinity"),
    "NaN for another order": (checked(spoiled), "fn of the permuted x holds NaN or infinity"),
    "more tokens than before": (
        checked(lambda x: F.pad(x, (0, 0, 1, 0))),
        "the output has shape (2, 6, 8); take the part that belongs to the tokens with output=, for example",
    ),
    "latents": (
        checked(lambda x: x[:, :4]),
        "y[:, 1:]; if it belongs to none of them, as latents do, make it one vector: output=lambda y: y.flatten(1)",
    ),
    "a mask of queries by keys": (
        checked(lambda x, mask: x, along={"mask": torch.ones(2, 5, 5)}),
        "may hold the tokens on a second axis; if so, give it with them on axes 1 and 2 and say pairs=['mask']",
    ),
    "one for all texts": (checked(lambda x, mask: x, along={"mask": torch.ones(5, 5)}), "tokens on a second axis"),
    "pairs that are none": (
        checked(lambda x, mask: x, along={"mask": torch.ones(2, 5)}, pairs=["mask"]),
        "without the 5 tokens on axis 2",
    ),
    "pairs that are not given": (checked(torch.relu, pairs=["edges"]), "pairs names edges, which along does not have"),
    "a mask of other tokens": (
        checked(torch.relu, along={"attention_mask": torch.ones(2, 4)}),
        "along has attention_mask of shape (2, 4), without the 5 tokens on axis 1",
    ),
    "a mask that no two tokens have in common": (
        checked(torch.relu, along={"attention_mask": torch.ones(5, 5).tril()}, pairs=()),
        "less than two different tokens beside padding",
    ),
    "one token left": (checked(lambda x: x.mean(1, keepdim=True)), "the output has shape (2, 1, 8)"),
    "the tokens on another axis": (checked(lambda x: x.mT), "(2, 8, 5)"),
    "the tokens of all rows on one axis": (checked(lambda x: x.reshape(-1, 8)), "the output has shape (10, 8)"),
    "pooled ids that keep their axis": (checked(lambda ids: ids[:, 1:], IDS), "the output has shape (2, 4)"),
    "scores of channels-first x": (checked(lambda x: x.cumsum(2).sum(1), X.mT, seq_dim=2), "may have them on another"),
    "several outputs": (checked(lambda x: (x, x)), "fn returned a tuple; say with output= which tensor"),
    "no output": (checked(lambda x: None), "fn returned a NoneType"),
    "two sequences": (checked(build("bart"), IDS), "BartModel reads two sequences; give one of its parts"),
    "no permutations": (checked(torch.relu, n_permutations=0), "n_permutations is 0"),
    "a negative tolerance": (checked(torch.relu, tolerance=-0.1), "tolerance is -0.1"),
    "a tolerance that holds everything": (checked(torch.relu, tolerance=torch.inf), "tolerance is inf"),
}
CASES = {name: (EquivarianceInputError, *case) for name, case in INPUT.items()}
