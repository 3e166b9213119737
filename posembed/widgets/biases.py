"""Figure 5: what each relative scheme adds to the attention logits, by offset and head."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..encodings import FIRE, KERPLE, T5, ALiBi, PositionScheme, Shaw, scheme
from ..encodings.fire import EPSILON
from ..encodings.interface import BIDIRECTIONAL, CAUSAL
from .base import InteractiveFigure, html_table, rounded, signed

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
    those of equal contents: the softmax of the biases. Shaw's bias is that of one query vector for each head. The
    schemes are untrained, and FIRE's threshold is 16.

    Example:
        >>> from posembed.widgets import BiasFigure
        >>> [panel["name"] for panel in BiasFigure().panels]
        ['Shaw', 'T5', 'ALiBi', 'KERPLE', 'FIRE']
    """

    module = "biases.js"
    height = (1190, 754)

    def __init__(self) -> None:
        panels = [
            {
                "name": name,
                "scheme": name.lower(),
                "forms": {objective: _tabulated(form, objective) for objective, form in forms.items()},
            }
            for name, forms in _untrained().items()
        ]
        super().__init__(
            panels=panels,
            n_heads=N_HEADS,
            positions=POSITIONS,
            objectives=[CAUSAL, BIDIRECTIONAL],
            note=NOTE,
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
        offsets = behind + ([-each for each in behind[1:]] if self.bidirectional else [])
        return html_table(
            "what relative schemes add to the attention logits, by head and offset. "
            f"Head {self.head}, for a query at position {self.position}:",
            ["offset", *(panel["name"] for panel in self.panels)],
            [[signed(offset), *(self._shown(panel, offset) for panel in self.panels)] for offset in offsets],
        )

    def _shown(self, panel: dict[str, Any], offset: int) -> str:
        form = panel["forms"].get("both") or panel["forms"].get(BIDIRECTIONAL if self.bidirectional else CAUSAL)
        if form is None:
            return "not defined"
        varies = len(form["tables"]) > 1
        first = -(self.position if varies else self.positions[-1])
        table = form["tables"][self.positions.index(self.position) if varies else 0]
        return signed(f"{table[self.head - 1][offset - first]:.{DECIMALS}f}")


def _untrained() -> dict[str, dict[str, PositionScheme]]:
    """The form of each scheme for each objective that it is defined for; "both" where one form serves both.

    They are drawn in double precision, where no machine's rounding shows, and torch is left as it was.
    """
    sizes: Any = {"d_model": N_HEADS * D_HEAD, "n_heads": N_HEADS}
    before = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(SEED)
        torch.set_default_dtype(torch.float64)
        try:
            shaw, alibi, kerple = (scheme(name, **sizes) for name in ("shaw", "alibi", "kerple"))
            fire = scheme("fire", **sizes, options={"fire": {"threshold": THRESHOLD}})
            t5 = {each: scheme("t5", n_heads=N_HEADS, causal=each == CAUSAL) for each in (CAUSAL, BIDIRECTIONAL)}
        finally:
            torch.set_default_dtype(before)
    return {
        "Shaw": {"both": shaw},
        "T5": t5,
        "ALiBi": {"both": alibi},
        "KERPLE": {"both": kerple},
        "FIRE": {CAUSAL: fire},
    }


def _tabulated(form: PositionScheme, objective: str) -> dict[str, Any]:
    """Tabulate a scheme: a table, "heads offsets"; for FIRE, which looks at the query's position, one for each."""
    generator = torch.Generator().manual_seed(QUERY_SEED)
    query = torch.randn(1, N_HEADS, 1, D_HEAD, generator=generator, dtype=torch.float64)
    positions = POSITIONS if isinstance(form, FIRE) else POSITIONS[-1:]
    tables = [_biases(form, query, each, ahead=objective != CAUSAL).tolist() for each in positions]
    return {"rule": _rule(form), "tables": tables}


def _biases(form: PositionScheme, query: Tensor, position: int, *, ahead: bool) -> Tensor:
    """The bias of each key from the first one on, "heads keys"."""
    keys = torch.arange(2 * position + 1 if ahead else position + 1)
    with torch.no_grad():
        bias: Any = form.bias(query, query.new_zeros(1, N_HEADS, len(keys), D_HEAD), torch.tensor([position]), keys)
    # Adding zero turns minus zero into zero.
    return bias.double().reshape(N_HEADS, len(keys)).round(decimals=DECIMALS) + 0.0


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
