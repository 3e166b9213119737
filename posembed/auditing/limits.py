"""The checks of where a model ends: its window, its table, its number format, its process."""

from __future__ import annotations

import copy
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..models import load_with_scheme
from ..pretrained import quiet
from ..tables import PositionRows
from .checking import Same, arguments, check, found, script
from .models import named
from .report import CheckResult
from .subject import DoesNotApplyError, Run, Subject

# Tokens of a text that shows a window's edge, or all rows of a table.
LONGEST_WINDOW, LONGEST_TABLE = 512, 1024
# So many texts must agree on where a window ends: saturated attention passes over tokens that it may see.
TEXTS = 4
# An effect that is so many tolerances large does not end because of rounding.
LARGE = 1e3
# How far past the last position.
PAST = 5
# From 256 on, bfloat16 has no odd numbers; at 1000 it has one in four. Near 1 its step is 2 to the -8.
ENOUGH, FAR, NEIGHBOURS, STEP = 300, 1000, 8, 2.0**-8
# Numbers of a model that is written to disk: 2 GiB in float64.
LARGEST = 2**28


@check("edge of the window", "window")
def _window_edge(s: Subject) -> CheckResult:
    """The first token reaches as far as the windows of all layers do, and no further."""
    reach = s.n_layers * ((s.window or 1) - 1)
    n = reach + s.n_layers + 2
    if n > min(LONGEST_WINDOW, s.n_positions or LONGEST_WINDOW):
        return found("not decided", f"windows reach {reach} tokens, too far to look")
    one, other = s.vocabulary[None, :2].split(1, 1)
    rests = [s.text(n - 1, f"window {each}") for each in range(TEXTS)]
    effects = [s.moved(Run(torch.cat([one, rest], 1)), Run(torch.cat([other, rest], 1))) for rest in rests]
    edges = [int((effect > s.tolerance).nonzero().max()) for effect in effects]
    edge = max(edges)
    reason = f"the first token reaches {edge} tokens on; {s.n_layers} layers of {s.window} keys: {reach}"
    if {*edges} == {reach}:
        return found("holds", reason)
    # That a token sees too far is certain; that it sees too little is only where all texts say so, and loudly.
    loud = min(float(effect[edge]) for effect in effects) >= LARGE * s.tolerance
    if edge <= reach and not (0 < edge == min(edges) and loud):
        return found("not decided", f"{reason}, and the effect fades, or attention is saturated")
    by_one = dict.fromkeys((reach - s.n_layers, reach + s.n_layers), "window off by one")
    kind = ({n - 1: "no window"} | by_one).get(edge, "another window than its own")
    return found("broken", reason, kind=kind, position=edge, error=float(abs(edge - reach)))


@check("past the last position", "n_positions")
def _past_the_last(s: Subject) -> CheckResult:
    """A position past the table's end is an error, and not another position in silence."""
    last, given = s.n_positions or 0, s.positions_matter
    words = s.text(last + PAST)
    words[:, [1, 2, last, last + 1]] = s.vocabulary[[0, 1, 0, 1]]  # equal ones can be exchanged anywhere
    past = _ending(s, last + PAST) if given else Run(words)
    try:
        s.logits(past)
    except Exception as error:
        return _refused(s, last - 1, type(error).__name__)
    # Two positions that are surely two, and those that one past the last may be taken for.
    pairs = [(_ending(s, position), past) for position in (PAST, last - 1)]
    apart = _ending(s, 2), _ending(s, PAST + 2)
    if not given:
        apart, *pairs = (_exchanged(past.ids, *places) for places in ((1, 2), (1, last + 1), (last, last + 1)))
    # The mask of a causal model parts words that can be exchanged elsewhere.
    seen = (given or not s.causal) and not s.agree(*apart)
    for kind, pair in zip(("wraps: the first positions", "cut: the last position"), pairs, strict=True):
        if seen and s.agree(*pair):
            reason = f"a position past the last, {last - 1}, is taken for another one"
            n = past.ids.shape[1]
            return found("broken", reason, kind=f"table {kind} again", position=n - 1, script=script(s, *pair))
    if seen and given:
        return found("holds", "it computes what its table has not")
    return found("not decided", "a longer text is no error, and nothing tells positions apart")


def _refused(s: Subject, last: int, error: str) -> CheckResult:
    """An error past the last position is right, and at the last one it is not, where somebody said that it is there."""
    try:
        s.logits(_ending(s, last) if s.positions_matter else Run(s.text(last + 1)))
    except Exception:
        if s.table is None or len(s.table.rows) != last + 1:
            reason = f"{error} already at position {last}, the last of n_positions={last + 1}"
            return found("broken", reason, kind="fewer positions than were said", position=last)
    return found("holds", f"refused: {error}")


@check("half precision far out", "positions_matter")
def _half_precision(s: Subject) -> CheckResult:
    """The last token, moved on by one, has other logits, far out as well as near."""
    far = FAR if s.n_positions is None else min(FAR, s.n_positions - NEIGHBOURS - 5)
    if far < ENOUGH:
        return found("does not apply", "too few positions for bfloat16 to confuse them")
    asked, where = s, "in every format"
    # As it is first: angles may be rounded whatever the format of the weights.
    if _steps(s, 0).all() and _steps(s, far).all() and isinstance(s.whole, nn.Module):
        if float(_steps(s, far).min()) < STEP * s.scale:
            return found("not decided", f"from {far} on neighbours differ by less than bfloat16 tells apart")
        asked, where = replace(s, whole=copy.deepcopy(s.whole).bfloat16()), "in bfloat16"
    near, out = (int((_steps(asked, start) == 0).sum()) for start in (0, far))
    reason = f"of {NEIGHBOURS} pairs of neighbours {near} are one position near, and {out} from {far} on, {where}"
    if near == 0 and out >= NEIGHBOURS // 2:
        return found("broken", reason, kind="positions or angles in bfloat16", error=out / NEIGHBOURS)
    return found("not decided" if out else "holds", reason)


@check("saved and loaded")
def _saved(s: Subject) -> Same | CheckResult:
    """Saved and loaded by transformers, which makes a model on the meta device first, it gives the same logits."""
    if not s.of_transformers:
        raise DoesNotApplyError("only models of transformers know how to be saved")
    if sum(each.numel() for each in s.whole.parameters()) > LARGEST:
        return found("not decided", "too large to be written to disk")
    kind = "what is computed and not saved differs, such as angles: rounded by .bfloat16(), or not made anew"
    saves = 'model.save_pretrained("copy")'
    with TemporaryDirectory() as folder, quiet():
        s.whole.save_pretrained(folder)
        if not hasattr(s.whole, "position_scheme"):
            attention = s.whole.config._attn_implementation
            again = type(s.whole).from_pretrained(folder, dtype=s.dtype, attn_implementation=attention)
            return _again(s, again, kind, saves, 'again = type(model).from_pretrained("copy").eval()')
        # Of `use_scheme`, which gives the config a name, or nothing of an object.
        name = s.whole.config.position_scheme["name"]
        again = load_with_scheme(
            folder, name or copy.deepcopy(s.whole.position_scheme), kind=type(s.whole), dtype=s.dtype
        ).model.eval()
    loads = f'again = load_with_scheme("copy", {repr(name) if name else "model.position_scheme"}, kind=type(model))'
    return _again(s, again, kind, "from posembed.models import load_with_scheme", saves, f"{loads}.model.eval()")


@check("made on the meta device", "make")
def _on_meta(s: Subject) -> Same:
    """Made on the meta device, which holds no numbers, and given the weights, it gives the same logits."""
    with torch.device("meta"):
        again = named(s.make()).to(s.dtype).eval()
    again.to_empty(device="cpu")
    for each in again.buffers():
        each.fill_(torch.nan if each.is_floating_point() else 0)
    again.load_state_dict(s.whole.state_dict())
    return _again(
        s,
        again,
        "a buffer that is not saved with the weights is lost: it is not persistent, and nothing makes it anew",
        "make = ...  # the function that makes a model",
        'with torch.device("meta"):',
        "    again = make().eval()",
        'buffers = [each.zero_() for each in again.to_empty(device="cpu").buffers()]',
        "again.load_state_dict(model.state_dict())",
    )


@check("exported, at another length", "exported")
def _exported(s: Subject) -> Same:
    """Exported by torch.export with a short text, it gives the same logits for a longer one."""
    (short,), ids = s.steps(Run(s.text(s.length - 3))), s.name_of("ids")
    lengths = {name: {1: torch.export.Dim.DYNAMIC} if name == ids else None for name in short}
    program = torch.export.export(s.called, (), short, dynamic_shapes=lengths)
    return _again(
        replace(s, part=""),
        program.module(),
        "what depends on the length of a text was computed once, when it was exported",
        f"short = dict({arguments(short)})",
        f'lengths = {{name: {{1: torch.export.Dim.DYNAMIC}} if name == "{ids}" else None for name in short}}',
        "again = torch.export.export(model, (), short, dynamic_shapes=lengths).module()",
    )


def _again(s: Subject, whole: Any, kind: str, *lines: str) -> Same:
    """A model that was made from the audited one, by these lines of a script, must give the same logits."""
    return Same(Run(s.text()), Run(s.text()), kind, again=(replace(s, whole=whole), lines))


@check("rows of the table", "table")
def _rows(s: Subject) -> CheckResult:
    """A text as long as the table reaches all of its rows."""
    table: Any = s.table
    n = len(table.rows)
    if n > LONGEST_TABLE:
        return found("not decided", f"{n} rows are too many for one text")
    missed = {*range(n)} - {row - table.offset for row in _reached(s, table, n)}
    reason = f"{len(missed)} of {n} rows of {table.name} get no gradient"
    kind = "rows that no position reads" if missed else ""
    return found("broken" if missed else "holds", reason, kind=kind, position=min(missed, default=None))


@check("offset of the table", "table")
def _offset(s: Subject) -> CheckResult:
    """The first token reads the row where positions begin."""
    table: Any = s.table
    reached = _reached(s, table, 5)[:5]
    reason = f"the first token reads row {reached[0]} of {table.name}; positions begin at row {table.offset}"
    kind = "the offset of the table is ignored" if reached[0] < table.offset else "rows are skipped"
    # A decoder that foretells several tokens reads further rows.
    if reached == [*range(table.offset, table.offset + 5)]:
        return found("holds", reason)
    return found("broken", reason, kind=kind, position=0)


def _ending(s: Subject, position: int) -> Run:
    """A text whose last token is given this position."""
    return Run(s.text(), torch.cat([s.at()[:, :-1], s.at(1) + position], 1), keep=[s.length - 1])


def _exchanged(ids: Int[Tensor, "one seq"], one: int, other: int) -> tuple[Run, Run]:
    """A text, and the same with two of its words exchanged, without these two."""
    order = torch.arange(ids.shape[1])
    order[[one, other]] = order[[other, one]]
    keep = [place for place in range(ids.shape[1]) if place not in (one, other)]
    return Run(ids, keep=keep), Run(ids[:, order], keep=keep)


def _steps(s: Subject, start: int) -> Float[Tensor, " neighbours"]:
    """How far the logits of the last token move with each of its next positions."""
    first = s.at(3) + start
    positions = (torch.cat([first, s.at(1) + start + 3 + step], 1) for step in range(NEIGHBOURS + 1))
    return torch.cat([s.logits(Run(s.text(4), at, keep=[3])) for at in positions]).diff(dim=0).abs().amax((1, 2))


def _reached(s: Subject, table: PositionRows, n_tokens: int) -> list[int]:
    """The rows of the table that a text's logits depend on."""
    parameter = table.parameter.requires_grad_()
    with torch.enable_grad():
        # A sum would be constant behind a LayerNorm.
        seen = s.logits(Run(s.text(n_tokens))).cos().sum()
        (gradient,) = torch.autograd.grad(seen, parameter, allow_unused=True)
    if gradient is None or not gradient.any():
        raise DoesNotApplyError(f"{table.name} is not read")
    return replace(table, parameter=gradient, offset=0).rows.any(1).nonzero()[:, 0].tolist()
