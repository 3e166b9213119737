"""Figure 5: what each relative scheme adds to the attention logits, by offset and head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..encodings import FIRE, KERPLE, T5, ALiBi, PositionScheme, Shaw, scheme
from ..encodings.fire import EPSILON
from ..encodings.interface import BIDIRECTIONAL, CAUSAL
from ..figures.looks import signed
from .base import InteractiveFigure, html_table, rounded

if TYPE_CHECKING:
    from ..training import RunConfig, RunResult

NAMES = ("Shaw", "T5", "ALiBi", "KERPLE", "FIRE")
N_HEADS, D_HEAD = 8, 64
# Where the query may stand: at powers of two, the last as far as the figure reaches.
POSITIONS = [8, 16, 32, 64, 128]
# FIRE's threshold starts at 512: every query up to there sees one curve. From 16 on a reader sees the curve stretch.
THRESHOLD = 16.0
# Far from the seed that schemes are drawn with: from the same one, a query would be one of Shaw's vectors over again.
SEED, QUERY_SEED = 0, 1_000_003
# Finer than a pixel, and the same text on every machine.
DECIMALS = 4
NOTE = (
    f"The schemes are untrained: ALiBi has nothing to learn, the numbers of the others are drawn (seed {SEED}). Which "
    f"offsets share a number is not chance. FIRE's threshold starts at {THRESHOLD:g} here, at 512 in its paper. "
    "Shaw's bias depends on the query; here each head has one query vector, drawn once."
)


class BiasFigure(InteractiveFigure):
    """See side by side what each scheme adds to the logits of a head, or the attention weights that this makes.

    A query at position p sees the p keys behind it and, where attention is bidirectional, p keys ahead. The weights are
    those of equal contents: the softmax of the biases. Shaw's bias is that of one query vector for each head. Untrained
    schemes have a FIRE whose threshold is 16.

    Args:
        runs: of causal models with "shaw", "t5", "alibi", "kerple" and "fire", by these names; what the first of each
            has learned is shown first, and the schemes as they are drawn on demand. None: untrained schemes alone.

    Example:
        >>> from posembed.widgets import BiasFigure
        >>> [panel["name"] for panel in BiasFigure().panels]
        ['Shaw', 'T5', 'ALiBi', 'KERPLE', 'FIRE']
    """

    module = "biases.js"
    height = (1228, 788)

    def __init__(self, runs: Mapping[str, Sequence[RunResult]] | None = None) -> None:
        learned, config = ({}, None) if runs is None else _trained(runs)
        n_heads, d_head = (config.n_heads, config.d_model // config.n_heads) if config else (N_HEADS, D_HEAD)
        untrained = _untrained(n_heads, d_head)
        panels = [
            {"name": name, "scheme": name.lower(), "forms": _all_tabulated(forms, n_heads, d_head)}
            | ({"learned": _all_tabulated({CAUSAL: learned[name]}, n_heads, d_head)} if learned else {})
            for name, forms in untrained.items()
        ]
        super().__init__(
            panels=panels,
            n_heads=n_heads,
            positions=POSITIONS,
            objectives=[CAUSAL, BIDIRECTIONAL],
            note=NOTE,
            learned_note=_about(config, learned["T5"]) if config else "",
            trained=bool(learned),
            head=3,
            # One step from the end: far enough for every form, and both ways are open.
            position=POSITIONS[-2],
            offset=-20,
            bidirectional=False,
            weights=False,
        )

    def fallback_html(self) -> str:
        """Show the biases of the head at a few offsets."""
        behind = [-each for each in (0, 1, 2, 4, 8, 15, 16, 17, 31, 32, 64, 127, 128) if each <= self.position]
        offsets = behind + ([-each for each in behind[1:]] if self.bidirectional and not self.trained else [])
        return html_table(
            "what relative schemes add to the attention logits, by head and offset. "
            f"Head {self.head}{' of trained models' if self.trained else ''}, for a query at position {self.position}:",
            ["offset", *(panel["name"] for panel in self.panels)],
            [[signed(offset), *(self._shown(panel, offset) for panel in self.panels)] for offset in offsets],
        )

    def _shown(self, panel: dict[str, Any], offset: int) -> str:
        forms = panel["learned" if self.trained else "forms"]
        form = forms.get("both") or forms.get(BIDIRECTIONAL if self.bidirectional and not self.trained else CAUSAL)
        if form is None:
            return "not defined"
        varies = len(form["tables"]) > 1
        first = -(self.position if varies else self.positions[-1])
        table = form["tables"][self.positions.index(self.position) if varies else 0]
        return signed(f"{table[self.head - 1][offset - first]:.{DECIMALS}f}")


def _trained(runs: Mapping[str, Sequence[RunResult]]) -> tuple[dict[str, Any], RunConfig]:
    """What the first model of each scheme has learned, and how it was trained."""
    found = {name: runs[name.lower()][0] for name in NAMES}
    config = found["T5"].config
    sizes: Any = {"d_model": config.d_model, "n_heads": config.n_heads, "causal": True}
    # A scheme draws the numbers that it starts with.
    with torch.random.fork_rng(devices=[]):
        forms = {name: scheme(name.lower(), **sizes) for name in NAMES}
    for name, form in forms.items():
        for key, parameter in form.named_parameters():
            learned = found[name].metrics["scheme"]
            # Of the first layer where each has its own.
            numbers = learned[key if key in learned else f"layers.0.{key}"]
            parameter.data = torch.tensor(numbers, dtype=torch.float64).view_as(parameter)
    return forms, config


def _about(config: RunConfig, t5: T5) -> str:
    """Which models have learned these numbers, and what of them no training has reached."""
    firsts = t5.first_distances
    return (
        f"Trained: causal models of {config.n_layers} layers and {config.n_heads} heads on texts of {config.length} "
        f"characters, seed {config.seed}. No text reached T5's buckets from distance "
        f"{int(firsts[firsts >= config.length][0])} on. Of Shaw and FIRE this is the first layer; the others are "
        "shared by all. Shaw's bias depends on the query; here each head has one query vector, drawn once."
    )


def _untrained(n_heads: int, d_head: int) -> dict[str, dict[str, PositionScheme]]:
    """The form of each scheme for each objective that it is defined for; "both" where one form serves both.

    They are drawn in double precision, where no machine's rounding shows, and torch is left as it was.
    """
    sizes: Any = {"d_model": n_heads * d_head, "n_heads": n_heads}
    before = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(SEED)
        torch.set_default_dtype(torch.float64)
        try:
            shaw, alibi, kerple = (scheme(name, **sizes) for name in ("shaw", "alibi", "kerple"))
            fire = scheme("fire", **sizes, options={"fire": {"threshold": THRESHOLD}})
            t5 = {each: scheme("t5", n_heads=n_heads, causal=each == CAUSAL) for each in (CAUSAL, BIDIRECTIONAL)}
        finally:
            torch.set_default_dtype(before)
    return {
        "Shaw": {"both": shaw},
        "T5": t5,
        "ALiBi": {"both": alibi},
        "KERPLE": {"both": kerple},
        "FIRE": {CAUSAL: fire},
    }


def _all_tabulated(forms: dict[str, PositionScheme], n_heads: int, d_head: int) -> dict[str, dict[str, Any]]:
    return {objective: _tabulated(form, objective, n_heads, d_head) for objective, form in forms.items()}


def _tabulated(form: PositionScheme, objective: str, n_heads: int, d_head: int) -> dict[str, Any]:
    """Tabulate a scheme: a table, "heads offsets"; for FIRE, which looks at the query's position, one for each."""
    generator = torch.Generator().manual_seed(QUERY_SEED)
    query = torch.randn(1, n_heads, 1, d_head, generator=generator, dtype=torch.float64)
    positions = POSITIONS if isinstance(form, FIRE) else POSITIONS[-1:]
    tables = [_biases(form, query, each, ahead=objective != CAUSAL).tolist() for each in positions]
    return {"rule": _rule(form), "tables": tables}


def _biases(form: PositionScheme, query: Tensor, position: int, *, ahead: bool) -> Tensor:
    """The bias of each key from the first one on, "heads keys"."""
    n_heads, d_head = query.shape[1], query.shape[3]
    keys = torch.arange(2 * position + 1 if ahead else position + 1)
    with torch.no_grad():
        bias: Any = form.bias(query, query.new_zeros(1, n_heads, len(keys), d_head), torch.tensor([position]), keys)
    # Adding zero turns minus zero into zero.
    return bias.double().reshape(n_heads, len(keys)).round(decimals=DECIMALS) + 0.0


def _rule(form: Any) -> dict[str, Any]:
    """What the scheme makes of an offset, for the module to say in words."""
    if isinstance(form, T5):
        return {"kind": "buckets", "first_distances": form.first_distances.tolist(), "two_sided": not form.causal}
    if isinstance(form, Shaw):
        return {"kind": "clip", "limit": form.max_distance}
    if isinstance(form, ALiBi):
        return {"kind": "line", "slopes": form.slopes.tolist()}
    if isinstance(form, KERPLE):
        scale, shape = (rounded(each.tolist(), DECIMALS) for each in form.kept())
        return {"kind": form.kernel, "scale": scale, "shape": shape}
    numbers = {"threshold": form.multiplier * form.start, "log_scale": form.log_scale}
    return {"kind": "share", "epsilon": EPSILON} | {
        name: rounded(abs(number.item()), DECIMALS) for name, number in numbers.items()
    }
