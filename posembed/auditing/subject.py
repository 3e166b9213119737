"""A model under audit, called in one way whatever it is: ids, positions, mask and cache in, logits out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..errors import AuditError
from ..seeds import torch_generator


class NotTakenError(AuditError):
    """A run needs what the model takes no argument for."""


@dataclass(frozen=True)
class Run:
    """One way to give a text to a model.

    Attributes:
        ids: "batch seq".
        positions: "batch seq", from 0; None leaves them to the model.
        mask: True where a key may be seen, "batch key" or "batch query key"; None leaves it to the model.
        pieces: where the text is given in pieces with a cache, their lengths.
        keep: the tokens whose logits are compared; by default all.
    """

    ids: Int[Tensor, "batch seq"]
    positions: Int[Tensor, "batch seq"] | None = None
    mask: Bool[Tensor, "batch key"] | Bool[Tensor, "batch query key"] | None = None
    pieces: tuple[int, ...] = ()
    keep: Sequence[int] | None = None


@dataclass
class Subject:
    """A model, or the encoder or decoder of one, and what is known of it.

    Attributes:
        call: the model, in the widest format that it computes in.
        names: what it calls "ids", "positions", "mask" and "cache"; those it does not take are missing.
        read: from what it returns to logits "batch seq n" and its cache.
        code: the lines of a script that make ``model``.
        again: makes the same of another copy of the whole model; None of a function.
        whole: the whole model; None of a function.
        narrow: the same in float32, where this is wider.
        fixed: what it is always given besides, of one text.
        part: "encoder", "decoder" or empty.
        of_transformers: whether it is called as transformers' models are.
        vocabulary: the ids that texts are drawn from.
        pad_id: the id of padding.
        causal: whether a token must not see later ones; where nothing says so, whether it does not.
        n_positions: the number of rows of its position table; None without one.
        window: how many keys each layer sees, the token's own among them; None for all.
        n_layers: the number of layers that have the window.
        relative: whether a shift of all positions must change nothing; None where nothing says so.
        pads_left: whether it must take padding in front of a text without being given positions.
        positionless: whether it is made without positions.
        keeps_state: whether layers read the tokens one after the other.
        first: what it is given for the first position: RoBERTa's ids of positions are rows of its table.
        scale: the largest logit.
        tolerance: up to which difference of logits two runs are equal.
        signal: how far logits move when the order of earlier tokens changes.
        positions_matter: whether the positions that it is given change its logits.
    """

    call: Callable[..., Any]
    names: Mapping[str, str]
    read: Callable[[Any], tuple[Tensor, Any]]
    vocabulary: Int[Tensor, " n"]
    code: tuple[str, ...]
    again: Callable[[nn.Module], Subject] | None = None
    whole: nn.Module | None = None
    narrow: Subject | None = None
    fixed: Mapping[str, Tensor] = field(default_factory=dict)
    part: str = ""
    of_transformers: bool = False
    pad_id: int = 0
    causal: bool | None = None
    n_positions: int | None = None
    window: int | None = None
    n_layers: int = 1
    relative: bool | None = None
    pads_left: bool = True
    positionless: bool = False
    keeps_state: bool = False
    seed: int = 0
    first: int = 0
    scale: float = 1.0
    tolerance: float = 0.0
    signal: float = 0.0
    positions_matter: bool = False

    @property
    def length(self) -> int:
        """Of most texts; a small table leaves room for padding, and for positions further on."""
        return 13 if self.n_positions is None else min(13, self.n_positions - 5)

    def text(self, n_tokens: int | None = None, name: str = "text", n_texts: int = 1) -> Int[Tensor, "batch seq"]:
        """Draw random ids, the same ones for the same name."""
        shape = (n_texts, n_tokens or self.length)
        places = torch.randint(len(self.vocabulary), shape, generator=torch_generator(self.seed, name))
        return self.vocabulary[places]

    def visible(self, n_tokens: int) -> Bool[Tensor, "one seq seq"]:
        """Which keys each token of a text sees, causality and the window included."""
        at = torch.arange(n_tokens)
        back = at[:, None] - at[None, :]
        seen = back >= 0 if self.causal else torch.ones_like(back, dtype=torch.bool)
        return (seen if self.window is None else seen & (back < self.window))[None]

    def logits(self, run: Run) -> Float[Tensor, "batch kept n"]:
        """Run the model and return the logits of the tokens that are kept, in float64."""
        outputs: list[Tensor] = []
        cache: Any = None
        for given in self.steps(run):
            given |= {name: each.expand(len(run.ids), *each.shape[1:]) for name, each in self.fixed.items()}
            if run.pieces:
                given[self._name("cache")] = cache
            if self.of_transformers and "cache" in self.names:
                given["use_cache"] = bool(run.pieces)
            logits, cache = self.read(self.call(**given))
            outputs.append(logits.double())
            if run.pieces and cache is None:
                raise NotTakenError("it returns no cache")
        whole = torch.cat(outputs, 1)
        return whole if run.keep is None else whole[:, list(run.keep)]

    def steps(self, run: Run) -> list[dict[str, Any]]:
        """The arguments of each call, by the model's own names, without the cache."""
        steps, stop = [], 0
        for length in run.pieces or (run.ids.shape[1],):
            start, stop = stop, stop + length
            given = {self._name("ids"): run.ids[:, start:stop]}
            mask = run.mask
            if run.positions is not None:
                given[self._name("positions")] = run.positions[:, start:stop] + self.first
                # Without a mask transformers takes positions that do not rise by one for those of several texts.
                if mask is None and self.of_transformers and "mask" in self.names:
                    mask = torch.ones_like(run.ids, dtype=torch.bool)
            if mask is not None:
                given[self._name("mask")] = self._mask(mask, start, stop)
            steps.append(given)
        return steps

    def _mask(self, mask: Tensor, start: int, stop: int) -> Tensor:
        if mask.ndim == 2:
            return mask[:, :stop].long() if self.of_transformers else mask[:, :stop]
        seen = mask[:, start:stop, :stop]
        if not self.of_transformers:
            return seen
        # transformers adds a mask of four axes to the scores.
        dtype = next(self.whole.parameters()).dtype if self.whole is not None else torch.float32
        return torch.zeros(seen[:, None].shape, dtype=dtype).masked_fill(~seen[:, None], torch.finfo(dtype).min)

    def _name(self, what: str) -> str:
        if what not in self.names:
            raise NotTakenError(f"it takes no {what}")
        return self.names[what]
