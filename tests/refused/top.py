"""Refused by the modules that stand by themselves."""

import torch
from torch import nn

from posembed import one_hot_lookup
from posembed.errors import LookupInputError
from posembed.lookup import rows_with_gradient

TABLE, IDS = torch.ones(3, 2), torch.tensor([0, 1])
INPUT = {
    "a negative id, which Python would count from the end": (
        lambda: one_hot_lookup(TABLE, torch.tensor([-1])),
        "ids run from -1",
    ),
    "an id without a row": (
        lambda: one_hot_lookup(TABLE, IDS + 2),
        "the table has rows 0 to 2",
    ),
    "ids that are not whole": (lambda: one_hot_lookup(TABLE, IDS / 2), "give a tensor"),
    "ids that are a list": (lambda: one_hot_lookup(TABLE, [0, 1]), "ids is [0, 1]; give a tensor"),
    "a table of whole numbers": (lambda: one_hot_lookup(TABLE.long(), IDS), "give a tensor"),
    "infinity, which one product spreads to every row": (
        lambda: one_hot_lookup(TABLE / torch.tensor([1.0, 0.0]), IDS),
        "NaN or infinity",
    ),
    "a gradient before there is one": (
        lambda: rows_with_gradient(nn.Embedding(3, 2)),
        "has no gradient",
    ),
}
CASES = {name: (LookupInputError, *case) for name, case in INPUT.items()}
