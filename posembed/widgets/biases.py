"""Figure 5: what each relative scheme adds to the attention logits, by offset and head."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import traitlets
from torch import Tensor

from ..encodings import FIRE, KERPLE, T5, ALiBi, PositionScheme, Shaw, scheme
from ..encodings.fire import EPSILON
from ..encodings.interface import BIDIRECTIONAL, CAUSAL
from ..errors import FigureInputError
from .base import InteractiveFigure, html_table

NAMES = {"shaw": "Shaw", "t5": "T5", "alibi": "ALiBi", "kerple": "KERPLE", "fire": "FIRE"}
# FIRE's threshold starts at 512: every query up to there sees one curve. From 16 on a reader sees the curve stretch.
OPTIONS = {"fire": {"threshold": 16.0}}
D_HEAD = 64
# Far from the seeds that schemes are drawn with: from the same one, a query would be one of Shaw's vectors over again.
QUERY_SEED = 1_000_003
# Finer than a pixel, and the same text on every machine.
DECIMALS = 4
MOST_OF_A_STATE = 200_000
UNTRAINED = (
    "The schemes are untrained: ALiBi has nothing to learn, the numbers of the others are drawn (seed {seed}). Which "
    "offsets share a number is not chance. FIRE's threshold starts at {threshold:g} here, at 512 in its paper."
)
QUERIES = "Shaw's bias depends on the query; here each head has one query vector, drawn once."

Given = PositionScheme | Mapping[str, PositionScheme]


class BiasFigure(InteractiveFigure):
    """See side by side what each scheme adds to the logits of a head, or the attention weights that this makes.

    A query at position p sees the p keys behind it and, where attention is bidirectional, p keys ahead. The weights are
    those of equal contents: the softmax of the biases. Shaw's bias is that of one query vector for each head.

    Args:
        schemes: by name; where a scheme has a form for each objective, as T5 has, a mapping of "causal" and
            "bidirectional" to both. None: Shaw, T5, ALiBi, KERPLE and FIRE untrained, FIRE with a threshold of 16.
        n_heads: the number of heads.
        max_offset: how far the figure reaches.
        causal: True or False: causal or bidirectional attention alone. None: both, with a switch.
        seed: of the untrained schemes and of Shaw's queries.
        note: what the reader must know of the schemes, such as what they were trained on.

    Raises:
        FigureInputError: no schemes, one without a bias, one whose bias depends on the contents or is not finite, or
            one with another number of heads; a max_offset that is too small, or too large for a page.

    Example:
        >>> from posembed import scheme
        >>> from posembed.widgets import BiasFigure
        >>> figure = BiasFigure({"alibi": scheme("alibi", n_heads=2)}, n_heads=2, max_offset=3, causal=True)
        >>> figure.panels[0]["forms"]["causal"]["tables"]
        [[[-0.1875, -0.125, -0.0625, 0.0], [-0.0117, -0.0078, -0.0039, 0.0]]]
    """

    module = "biases.js"

    panels: traitlets.List = traitlets.List().tag(sync=True, figure=True)
    n_heads = traitlets.Int().tag(sync=True, figure=True)
    positions = traitlets.List(traitlets.Int()).tag(sync=True, figure=True)
    objectives = traitlets.List(traitlets.Unicode()).tag(sync=True, figure=True)
    note = traitlets.Unicode().tag(sync=True, figure=True)
    head = traitlets.Int().tag(sync=True, figure=True)
    position = traitlets.Int().tag(sync=True, figure=True)
    offset = traitlets.Int().tag(sync=True, figure=True)
    bidirectional = traitlets.Bool(False).tag(sync=True, figure=True)
    weights = traitlets.Bool(False).tag(sync=True, figure=True)

    def __init__(
        self,
        schemes: Mapping[str, Given] | None = None,
        *,
        n_heads: int = 8,
        max_offset: int = 128,
        causal: bool | None = None,
        seed: int = 0,
        note: str = "",
        **traits: Any,
    ) -> None:
        if schemes is None:
            schemes = _untrained(n_heads, seed)
            note = note or UNTRAINED.format(seed=seed, threshold=OPTIONS["fire"]["threshold"])
        if not isinstance(schemes, Mapping) or not schemes:
            raise FigureInputError("give schemes by name, such as {'alibi': scheme('alibi', n_heads=8)}")
        objectives = [CAUSAL, BIDIRECTIONAL] if causal is None else [CAUSAL if causal else BIDIRECTIONAL]
        positions = _positions(max_offset)
        panels: list[dict[str, Any]] = []
        for name, given in schemes.items():
            forms = _forms(name, given, objectives)
            tabulated = {each: _tabulated(name, form, each, positions, n_heads, seed) for each, form in forms.items()}
            panels.append({"name": NAMES.get(name, name), "forms": tabulated})
        if any(form["rule"].get("kind") == "clip" for panel in panels for form in panel["forms"].values()):
            note = f"{note} {QUERIES}".strip()
        # One step from the end: far enough for every form, and both ways are open.
        traits = {"head": min(3, n_heads), "position": positions[-2:][0]} | traits
        traits.setdefault("offset", -min(20, traits["position"]))
        super().__init__(
            panels=panels, n_heads=n_heads, positions=positions, objectives=objectives, note=note, **traits
        )
        self._check()

    def fallback_html(self) -> str:
        """Show the biases of the head at a few offsets."""
        behind = [-each for each in (0, 1, 2, 4, 8, 15, 16, 17, 31, 32, 64, 127, 128) if each <= self.position]
        offsets = behind + ([-each for each in behind[1:]] if self._objective() == BIDIRECTIONAL else [])
        return html_table(
            "Interactive figure (needs JavaScript): what relative schemes add to the attention logits, by head and "
            f"offset. Head {self.head}, for a query at position {self.position}:",
            ["offset", *(panel["name"] for panel in self.panels)],
            [[_signed(offset), *(self._shown(panel, offset) for panel in self.panels)] for offset in offsets],
        )

    def _objective(self) -> str:
        return self.objectives[-1 if self.bidirectional else 0]

    def _shown(self, panel: dict[str, Any], offset: int) -> str:
        form = panel["forms"].get("both") or panel["forms"].get(self._objective())
        if form is None:
            return "not defined"
        varies = len(form["tables"]) > 1
        first = -(self.position if varies else self.positions[-1])
        table = form["tables"][self.positions.index(self.position) if varies else 0]
        return _signed(f"{table[self.head - 1][offset - first]:.{DECIMALS}f}")

    def _check(self) -> None:
        ahead = self.position if self._objective() == BIDIRECTIONAL else 0
        if self.head not in range(1, self.n_heads + 1):
            raise FigureInputError(f"head is {self.head}; the heads are 1 to {self.n_heads}")
        if self.position not in self.positions:
            raise FigureInputError(f"position is {self.position}; choose among {', '.join(map(str, self.positions))}")
        if not -self.position <= self.offset <= ahead:
            raise FigureInputError(f"offset is {self.offset}; it must be between {-self.position} and {ahead}")
        n_characters = len(json.dumps(self.state()))
        if n_characters >= MOST_OF_A_STATE:
            raise FigureInputError(
                f"the numbers of this figure take {n_characters} characters, and a page has room for "
                f"{MOST_OF_A_STATE}; lower max_offset, or show fewer schemes"
            )


def _positions(max_offset: Any) -> list[int]:
    """Where the query may stand: at powers of two, and as far as the figure reaches."""
    if not isinstance(max_offset, int) or isinstance(max_offset, bool) or max_offset < 2:
        raise FigureInputError(f"max_offset is {max_offset!r}; it must be a whole number of at least 2")
    return [*(2**k for k in range(3, max_offset.bit_length()) if 2**k < max_offset), max_offset]


def _untrained(n_heads: int, seed: int) -> dict[str, Given]:
    with _drawn(seed):
        made = {
            name: scheme(name, d_model=n_heads * D_HEAD, n_heads=n_heads, options={name: OPTIONS.get(name, {})})
            for name in NAMES
            if name != "t5"
        }
        t5 = {each: scheme("t5", n_heads=n_heads, causal=each == CAUSAL) for each in (CAUSAL, BIDIRECTIONAL)}
    return {name: t5 if name == "t5" else made[name] for name in NAMES}


@contextlib.contextmanager
def _drawn(seed: int) -> Iterator[None]:
    """Draw parameters in double precision, where no machine's rounding shows, and leave torch as it was."""
    before = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(before)


def _forms(name: str, given: Any, objectives: list[str]) -> dict[str, PositionScheme]:
    """Name the form of a scheme for each objective that it is defined for; "both" where one form serves both."""
    forms = dict(given) if isinstance(given, Mapping) else dict.fromkeys(getattr(given, "objectives", [CAUSAL]), given)
    if not forms or not forms.keys() <= {CAUSAL, BIDIRECTIONAL}:
        its = ", ".join(map(str, forms)) or "none"
        raise FigureInputError(f"{name} has the forms {its}; give a causal one, a bidirectional one or both")
    for objective, form in forms.items():
        _check_form(name, form, objective)
    shown = {each: forms[each] for each in objectives if each in forms}
    if len(shown) == 2 and shown[CAUSAL] is shown[BIDIRECTIONAL]:
        return {"both": shown[CAUSAL]}
    return shown


def _check_form(name: str, form: Any, objective: str) -> None:
    if not isinstance(form, PositionScheme):
        raise FigureInputError(f"{name} is {form!r}; give a scheme, such as scheme('alibi', n_heads=8)")
    form.check_objective(objective == CAUSAL, name)
    if form.layer(0) is not form:
        raise FigureInputError(f"each layer of {name} has a scheme of its own; give that of one, {name}.layer(i)")
    if form.reads_mask:
        raise FigureInputError(f"the bias of {name} depends on the contents, not on offsets alone; leave it out")


def _tabulated(
    name: str, form: PositionScheme, objective: str, positions: list[int], n_heads: int, seed: int
) -> dict[str, Any]:
    """Tabulate a scheme: a table, "heads offsets", for all query positions if they agree, else one for each."""
    exact = copy.deepcopy(form).to("cpu", torch.float64)
    query = _query(exact, n_heads, seed)
    tables = [_biases(name, exact, query, each, ahead=objective != CAUSAL) for each in positions]
    far = positions[-1]
    by_offset = all(
        torch.equal(table, tables[-1][:, far - each : far - each + table.shape[1]])
        for each, table in zip(positions, tables, strict=True)
    )
    return {"rule": _rule(exact), "tables": [table.tolist() for table in (tables[-1:] if by_offset else tables)]}


def _query(form: PositionScheme, n_heads: int, seed: int) -> Tensor:
    """One query for each head, as wide as the scheme wants it."""
    width = next((part.d_head for part in form.modules() if isinstance(part, Shaw)), D_HEAD)
    generator = torch.Generator().manual_seed(QUERY_SEED + seed)
    return torch.randn(1, n_heads, 1, width, generator=generator, dtype=torch.float64)


def _biases(name: str, form: PositionScheme, query: Tensor, position: int, *, ahead: bool) -> Tensor:
    """The bias of each key from the first one on, "heads keys"."""
    keys = torch.arange(2 * position + 1 if ahead else position + 1)
    n_heads, width = query.shape[1], query.shape[-1]
    with torch.no_grad():
        bias = form.bias(query, query.new_zeros(1, n_heads, len(keys), width), torch.tensor([position]), keys)
    if bias is None:
        raise FigureInputError(f"{name} adds nothing to the attention logits; leave it out")
    bias = bias.double().reshape(-1, len(keys))
    if len(bias) not in (1, n_heads):
        raise FigureInputError(f"{name} has {len(bias)} heads, but the figure {n_heads}; give n_heads={len(bias)}")
    if not bias.isfinite().all():
        raise FigureInputError(f"the bias of {name} is not finite; its training has diverged, so leave it out")
    # Adding zero turns minus zero into zero.
    return bias.expand(n_heads, -1).round(decimals=DECIMALS) + 0.0


def _rule(form: PositionScheme) -> dict[str, Any]:
    """What the scheme makes of an offset, for the module to say in words."""
    if isinstance(form, T5):
        return {"kind": "buckets", "first_distances": form.first_distances.tolist(), "two_sided": not form.causal}
    if isinstance(form, Shaw) and form.max_distance is not None:
        return {"kind": "clip", "limit": form.max_distance}
    if isinstance(form, ALiBi):
        return {"kind": "line", "slopes": form.slopes.tolist()}
    if isinstance(form, KERPLE):
        scale, shape = form._positive()
        return {"kind": form.kernel, "scale": _rounded(scale), "shape": _rounded(shape)}
    if isinstance(form, FIRE):
        threshold, log_scale = _rounded(torch.stack([form.multiplier * form.start, form.log_scale]).abs())
        return {"kind": "share", "threshold": threshold, "log_scale": log_scale, "epsilon": EPSILON}
    return {}


def _rounded(values: Tensor) -> list[float]:
    return [round(value, DECIMALS) for value in values.tolist()]


def _signed(number: Any) -> str:
    """A number with a real minus sign."""
    return str(number).replace("-", "\u2212")
