"""Refused by the modules that stand by themselves."""

import torch

from posembed import one_hot_lookup
from posembed.errors import LookupInputError

TABLE = torch.ones(3, 2)
CASES = {
    "a negative id, which Python would count from the end": (
        LookupInputError,
        lambda: one_hot_lookup(TABLE, torch.tensor([-1])),
        "ids run from -1",
    ),
}
