"""A model under audit, called in one way whatever it is: ids, positions, mask and cache in, logits out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..errors import AuditError, PositionTableError
from ..seeds import torch_generator
from ..tables import PositionRows, find_position_rows

# In the name of a table.
NOT_OF_TEXTS = ("vision", "visual", "image", "audio", "speech")


class DoesNotApplyError(AuditError):
    """A check is about something that the model has not, or is not made to keep."""


@dataclass(frozen=True)
class Run:
    """One way to give a text to a model.

    Attributes:
        ids: "batch seq"; the logits of the last text are compared.
        positions: "batch seq", from 0; None leaves them to the model.
        mask: True where a key may be seen, "batch key" or "batch query key"; None leaves it to the model.
        pieces: where the text is given in pieces with a cache, their lengths.
        keep: the tokens whose logits are compared; by default all.
    """

    ids: Int[Tensor, "batch seq"]
    positions: Int[Tensor, "batch seq"] | None = None
    mask: Bool[Tensor, "batch key"] | Bool[Tensor, "batch query key"] | None = None
    pieces: tuple[int, ...] = ()
    keep: range | list[int] | None = None


@dataclass
class Subject:
    """A model, or the encoder or decoder of one, what is known of it, and what was measured.

    Attributes:
        whole: the whole model, or a function.
        names: what it calls "ids", "positions", "mask" and "cache"; those it does not take are missing.
        vocabulary: the ids that texts are drawn from.
        code: the lines of a script that make ``model``.
        seed: of the texts.
        part: "encoder", "decoder" or empty.
        of_transformers: whether it is called as transformers' models are.
        fixed: what it is always given besides, of one text.
        make: a function that makes another model of its kind; None where there is none.
        exported: whether it shall be exported.
        pad_id: the id of padding.
        causal: whether a token must not see later ones; where nothing says so, whether it does not.
        n_positions: the number of rows of its position table; None without one.
        window: how many keys each layer sees, the token's own among them; None for all.
        n_layers: the number of layers that have the window.
        relative: whether a shift of all positions must change nothing; None where nothing says so.
        pads_left: whether it must take padding in front of a text without being given positions.
        has_positions: whether it is made with any.
        stateless: whether no layer reads the tokens one after the other.
        dtype: of its numbers.
        narrow: the same in float32, where this is wider.
        first: what it is given for the first position: RoBERTa's ids of positions are rows of its table.
        scale: the largest logit.
        tolerance: up to which difference of logits two runs are equal.
        signal: how far logits move when the order of earlier tokens changes.
        positions_matter: whether the positions that it is given change its logits.
    """

    whole: Any
    names: Mapping[str, str]
    vocabulary: Int[Tensor, " n"]
    code: tuple[str, ...]
    seed: int
    part: str = ""
    of_transformers: bool = False
    fixed: Mapping[str, Tensor] = field(default_factory=dict)
    make: Any = None
    exported: bool = False
    pad_id: int = 0
    causal: bool | None = None
    n_positions: int | None = None
    window: int | None = None
    n_layers: int = 1
    relative: bool | None = None
    pads_left: bool = True
    has_positions: bool = True
    stateless: bool = True
    dtype: torch.dtype = torch.float32
    narrow: Subject | None = None
    first: int = 0
    scale: float = 1.0
    tolerance: float = 0.0
    signal: float = 0.0
    positions_matter: bool = False

    def __post_init__(self) -> None:
        if len(self.vocabulary) < 2:
            raise AuditError(
                "a text needs two different words beside padding and special ids; give a larger vocab_size"
            )
        if self.n_positions is None and self.table is not None:
            self.n_positions = len(self.table.rows)

    @property
    def called(self) -> Any:
        """What is called."""
        return self.whole.get_encoder() if self.part == "encoder" else self.whole

    @property
    def length(self) -> int:
        """Of most texts; a small table leaves room for padding, and for positions further on."""
        return 13 if self.n_positions is None else min(13, self.n_positions - 5)

    @property
    def table(self) -> PositionRows | None:
        """Its table of positions, where one is known that is not of images or sounds."""
        try:
            found = find_position_rows(self.whole, part=self.part or None)
        except PositionTableError:
            return None
        return None if any(word in found.name for word in NOT_OF_TEXTS) else found

    def text(
        self, n_tokens: int | None = None, name: str = "text", unlike: Tensor | None = None
    ) -> Int[Tensor, "one seq"]:
        """Draw random ids, the same ones for the same name, unlike those of another text, or the last the first."""
        n, shape = len(self.vocabulary), (1, n_tokens or self.length)
        drawn = torch.randint(n, shape, generator=torch_generator(self.seed, name))
        # What coincides proves nothing: equal texts, or one that reads the same backwards.
        if unlike is not None:
            drawn += self.vocabulary[drawn] == unlike
        elif shape[1] > 1:
            drawn[:, -1:] += drawn[:, -1:] == drawn[:, :1]
        return self.vocabulary[drawn % n]

    def at(self, n_tokens: int | None = None) -> Int[Tensor, "one seq"]:
        """The positions from 0 on."""
        return torch.arange(n_tokens or self.length)[None]

    def visible(self) -> Bool[Tensor, "one seq seq"]:
        """Which keys each token of a text sees, causality and the window included."""
        back = self.at().mT - self.at()
        return ((back >= (0 if self.causal else -self.length)) & (back < (self.window or self.length)))[None]

    def logits(self, run: Run) -> Float[Tensor, "one kept n"]:
        """Run the model and return the logits of the last text's tokens that are kept, in float64."""
        outputs, cache = [], None
        for given in self.steps(run):
            logits, cache = _read(self.called(**given, **({self.name_of("cache"): cache} if run.pieces else {})))
            outputs.append(logits.double())
            if run.pieces and cache is None:
                raise DoesNotApplyError("it returns no cache")
        whole = torch.cat(outputs, 1)[-1:]
        return whole if run.keep is None else whole[:, list(run.keep)]

    def moved(self, one: Run, other: Run, copy: Subject | None = None) -> Float[Tensor, " kept"]:
        """How far apart the logits of each token are in a run and another, of the model or of a copy."""
        return (self.logits(one) - (copy or self).logits(other)).abs().amax((0, 2)).nan_to_num(torch.inf)

    def agree(self, one: Run, other: Run) -> bool:
        """Whether two runs give the same logits, but for rounding."""
        return bool((self.moved(one, other) <= self.tolerance).all())

    def steps(self, run: Run) -> list[dict[str, Any]]:
        """The arguments of each call, by the model's own names, without the cache."""
        # Without a mask transformers takes positions that do not rise by one for those of several texts.
        one_text = run.positions is not None and self.of_transformers and "mask" in self.names
        always: dict[str, Any] = {name: each.expand(len(run.ids), *each.shape[1:]) for name, each in self.fixed.items()}
        always |= {"use_cache": bool(run.pieces)} if self.of_transformers and "cache" in self.names else {}
        steps, mask = [], torch.ones_like(run.ids).bool() if run.mask is None and one_text else run.mask
        for start, stop in pairwise([0, *accumulate(run.pieces or run.ids.shape[1:])]):
            given = {"ids": run.ids[:, start:stop]}
            if run.positions is not None:
                given["positions"] = run.positions[:, start:stop] + self.first
            if mask is not None:
                given["mask"] = self._mask(mask[:, :stop] if mask.ndim == 2 else mask[:, start:stop, :stop])
            steps.append({self.name_of(what): each for what, each in given.items()} | always)
        return steps

    def name_of(self, what: str) -> str:
        """The model's name of an input; DoesNotApplyError where it takes no such thing."""
        if what not in self.names:
            raise DoesNotApplyError(f"it takes no {what}")
        return self.names[what]

    def _mask(self, seen: Tensor) -> Tensor:
        """As the model takes it: transformers adds a mask of four axes to the scores."""
        if not self.of_transformers or seen.ndim == 2:
            return seen.long() if self.of_transformers else seen
        return torch.zeros(seen.shape, dtype=self.dtype).masked_fill(~seen, torch.finfo(self.dtype).min)[:, None]


def _read(output: Any) -> tuple[Tensor, Any]:
    """The logits, or hidden states, and the cache in what a model returns."""
    logits = output if isinstance(output, Tensor) else output[0]
    cache = output[1] if isinstance(output, tuple) else getattr(output, "past_key_values", None)
    if not isinstance(logits, Tensor) or logits.ndim != 3 or not logits.is_floating_point():
        given = getattr(logits, "shape", type(logits).__name__)
        raise AuditError(f"the model gives {given}; it must give numbers for each token, (batch, seq, n)")
    return logits, cache
