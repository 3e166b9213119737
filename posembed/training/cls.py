"""[CLS], the token that BERT's texts begin with and that stands for the whole text: where it stands."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from ..data import Subwords
from .config import RunConfig


def with_cls(
    seen: Tensor, wanted: Tensor, asked: Any, config: RunConfig, generator: torch.Generator
) -> tuple[Tensor, Tensor, Any, Tensor | None]:
    """Put [CLS] before what is read and what is wanted, where a run has it; it is never asked for.

    Args:
        seen: what the model reads, "pieces words".
        wanted: what it should say at each place, "pieces words".
        asked: where it is asked, "pieces words"; None for everywhere.
        config: of the run.
        generator: of the places, where [CLS] is moved.

    Returns:
        The same, and the positions; None where all stand as they are read.
    """
    if config.cls is None:
        return seen, wanted, asked, None
    seen, wanted = (pad(each, (1, 0), value=Subwords.cls_id) for each in (seen, wanted))
    asked = None if asked is None else pad(asked, (1, 0), value=False)
    return seen, wanted, asked, cls_positions(torch.ones_like(seen, dtype=torch.bool), config, generator)


def cls_positions(
    tokens: Bool[Tensor, "texts seq"], config: RunConfig, generator: torch.Generator
) -> Int[Tensor, "texts seq"] | None:
    """The positions of texts whose [CLS] is moved, on the device of the run; None where all stand as they are read.

    Args:
        tokens: where there is a token and no padding; the first one is [CLS].
        config: says whether it is moved.
        generator: of the places, each as likely as any other of the text. The other tokens keep their order.
    """
    if config.cls != "moved":
        return None
    place = (torch.rand(len(tokens), 1, generator=generator, dtype=torch.float64) * tokens.sum(1, keepdim=True)).long()
    words = torch.arange(tokens.shape[1] - 1).expand(len(tokens), -1)
    return torch.cat([place, words + (words >= place)], dim=1).to(config.device)
