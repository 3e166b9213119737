"""The checks that give a text in two ways, which must give the same logits."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from .checking import AUDIBLE, NEEDS, Same, check, found
from .report import CheckResult
from .subject import DoesNotApplyError, Run, Subject

PADS = 3
# By so many tokens an order is turned round; no text of 11 to 13 that has two words is the same then.
TURN = 5
# How far all positions are moved, and how long the text is: models without a known table may have 64 positions.
SHIFT, LONG = 17, 40
COUNTED = "positions count padding"
SEEN = "padding is seen"


@check("order is seen", "has_positions")
def _order_is_seen(s: Subject) -> CheckResult:
    """Tokens in another order give other logits than the same logits in another order."""
    kind = "positions change nothing: are heads and sequence exchanged, are they ignored, or is the scheme left out?"
    if s.signal == 0 and (s.causal or s.positions_matter):
        return found("not decided", "earlier words do not move the last logits")
    if s.causal or s.positions_matter:
        effect, reason = s.signal, "other positions, where they are given, change nothing"
        blind = not s.positions_matter and bool(s.relative) and "positions" in s.names
    else:
        # Not the reverse order, in which distances are the same: a bias by distance alone, as ALiBi's, is not blind.
        effect = float((s.logits(Run(s.text().roll(TURN, 1))) - s.logits(Run(s.text())).roll(TURN, 1)).abs().max())
        reason = "tokens in another order give the same logits in another order"
        blind = effect <= AUDIBLE * s.tolerance
    if blind:
        return found("broken", reason, kind=kind, error=effect / s.scale)
    return found("holds", error=effect / s.scale)


@check("the future is unseen", "causal")
def _future_is_unseen(s: Subject) -> Same:
    """Other last tokens change nothing before them."""
    keep, other = range(s.length - 2), s.text(name="other text", unlike=s.text())
    changed = torch.cat([s.text()[:, :-2], other[:, -2:]], 1)
    return Same(Run(s.text(), keep=keep), Run(changed, keep=keep), "later tokens are seen")


@check("padding behind")
def _padding_behind(s: Subject) -> Same:
    row = torch.cat([s.text(), torch.full((1, PADS), s.pad_id)], 1)
    behind = Run(row, mask=s.at(row.shape[1]) < s.length, keep=range(s.length))
    return Same(Run(s.text()), behind, SEEN)


@check("batch mates")
def _batch_mates(s: Subject) -> list[Same]:
    """Another text before it in the batch, also one without padding before one with."""
    leak = "texts of a batch see each other: are batch and sequence, or batch and heads, exchanged?"
    mates = Same(Run(s.text()), Run(torch.cat([s.text(name="mates", unlike=s.text()), s.text()])), leak)
    padded, mask = _padded(s), s.at(s.length + PADS) >= PADS
    ids = torch.cat([s.text(s.length + PADS, "mates"), padded.ids])
    both = replace(padded, ids=ids, mask=torch.cat([mask | True, mask]))
    shared = Same(padded, both, "all texts of a batch get the positions of one")
    return [mates, shared] if "mask" in s.names else [mates]


@check("padding in front, positions given", "positions_matter")
def _padding_in_front_positions_given(s: Subject) -> Same:
    return Same(Run(s.text()), _padded(s, given=True), SEEN, {COUNTED: Run(s.text(), s.at() + PADS)})


@check("padding in front")
def _padding_in_front(s: Subject) -> Same:
    """The same where positions are left to the model."""
    excuse = "" if s.pads_left else "its positions are absolute and cannot be given; pad behind the text"
    if s.positions_matter:
        excuse = f"it counts padding; give {s.names['positions']}"
    counted = _padded(s, s.text(PADS, "other pads"))
    return Same(Run(s.text()), _padded(s), SEEN, {COUNTED: counted}, excuse=lambda kind: excuse)


@check("positions given")
def _positions_given(s: Subject) -> CheckResult | list[Same | CheckResult]:
    """Positions from 0 on, given, are those that the model takes by itself."""
    if not s.positions_matter and "positions" in s.names and s.has_positions and not s.of_transformers:
        return found("not decided", "it takes positions, and others change nothing: are they ignored?")
    if not s.positions_matter:
        return found("does not apply", NEEDS["positions_matter"])
    n = min(s.n_positions or LONG, LONG)
    ids, at = s.text(n), s.at(n)
    like = {f"the first position is {first}": Run(ids, at + first) for first in (-1, 1, 2)}
    same = Same(Run(ids, at), Run(ids), "other positions than 0, 1, 2", like)
    return [same, found("holds", f"given for the first: {s.first}")] if s.first else [same]


@check("in pieces with a cache", "causal")
def _in_pieces(s: Subject) -> list[Same]:
    """Pieces of 7, 1 and 5 tokens with a cache give what the whole text gives, also behind padding."""
    ids, at, sizes = s.text(), s.at(), torch.tensor([7, 1, s.length - 8])
    piece, behind = torch.arange(3).repeat_interleave(sizes), (s.at() >= 7).long()
    anew = torch.cat([s.at(int(size)) for size in sizes], 1)
    causal, later, alone = at.mT >= at, piece[:, None] >= piece, piece[:, None] == piece
    like = {
        "positions begin anew in each piece": Run(ids, anew),
        "positions are one too high behind a cache": Run(ids, at + behind),
        "positions are one too low behind a cache": Run(ids, at - behind),
        "a piece sees its own later tokens": Run(ids, mask=later[None]),
        "a piece behind a cache sees its own later tokens": Run(ids, mask=(later & (behind.mT.bool() | causal))[None]),
        "a piece does not see the cache": Run(ids, anew, (alone & causal)[None]),
    }
    still = {
        "one token at a time behind a first piece is right, several are not: where does the mask of a piece begin?": (
            Run(ids, pieces=(7, *[1] * (s.length - 7)))
        ),
        "one token at a time is right, several are not: has a piece a causal mask of its own?": (
            Run(ids, pieces=(1,) * s.length)
        ),
    }
    plain = Same(
        Run(ids),
        Run(ids, pieces=tuple(sizes.tolist())),
        "a cache and the whole text disagree: do positions go on behind it, and does the mask end at the last key?",
        like,
        still,
        lambda kind: "it keeps a state, and goes on token by token" if kind in still and not s.stateless else "",
    )
    if "mask" not in s.names or not s.stateless or not (s.pads_left or s.part or s.positions_matter):
        return [plain]
    # As the model counts behind padding, right or not, and as it is told to; where that is not right without a cache,
    # the checks of padding tell.
    told = s.positions_matter and (s.narrow or s).agree(plain.right, _padded(s, given=True))
    padded, pieces = [_padded(s, given=each) for each in {False, told}], (PADS + 7, *plain.tried.pieces[1:])
    on = s.at(s.length + PADS)
    past = replace(padded[0], positions=torch.where(on < PADS + 7, (on - PADS).clamp(min=0), on))
    kind = "padding is seen, or counted, behind a cache: is the mask dropped, or not that of all keys?"
    return [plain, *(Same(each, replace(each, pieces=pieces), kind, {COUNTED: past}) for each in padded)]


@check("shifted positions", "positions_matter")
def _shifted_positions(s: Subject) -> Same:
    """All positions moved by the same amount change nothing, in a relative scheme."""
    n, room = (LONG, SHIFT) if s.n_positions is None else (s.length, min(SHIFT, s.n_positions - s.length))
    at, excuse = s.at(n), "" if s.relative else "absolute: a shift changes the logits"
    kind = "angles are rounded, or do not fit the columns that they turn: bfloat16, or two layouts of RoPE"
    return Same(Run(s.text(n), at), Run(s.text(n), at + room), kind, excuse=lambda kind: excuse)


@check("packed, each as alone", "stateless", "positions_matter")
def _packed_as_alone(s: Subject) -> Same:
    """A packed text, with positions that begin anew, gives what it gives alone."""
    row, half = _packed(s), s.length // 2
    anew = torch.cat([s.at(half), s.at(s.length - half)], 1)
    alone = Run(row.ids[:, half:], anew[:, half:], s.visible()[:, half:, half:])
    like = {"positions do not begin anew": replace(row, positions=s.at())}
    return Same(alone, replace(row, positions=anew), PACKED, like, excuse=lambda kind: _mixed(s))


@check("packed, none sees another", "stateless")
def _packed_unseen(s: Subject) -> Same:
    """Another first text changes nothing in the second, whatever their positions."""
    row, half = _packed(s), s.length // 2
    other = torch.cat([s.text(half, "another first", row.ids[:, :half]), row.ids[:, half:]], 1)
    return Same(row, replace(row, ids=other), PACKED, excuse=lambda kind: _mixed(s))


@check("another order in memory", "positions_matter", "stateless")
def _another_order_in_memory(s: Subject) -> Same:
    """Tokens that stand in another order in memory, with their positions and their mask, give the same logits."""
    order = torch.randperm(s.length, generator=torch.Generator().manual_seed(s.seed))
    right = Run(s.text(), s.at(), s.visible())
    tried = Run(s.text()[:, order], s.at()[:, order], s.visible()[:, order][:, :, order], keep=order.argsort().tolist())

    def by_design(kind: str) -> str:
        # With equal positions nothing but the order in memory can make a difference.
        same = s.agree(*(replace(run, positions=s.at() * 0) for run in (right, tried)))
        return "" if same else "order comes from the memory too, by design"

    return Same(right, tried, "positions are taken for rising by one", excuse=by_design)


def _padded(s: Subject, pads: Tensor | None = None, given: bool = False) -> Run:
    """A text behind padding, with positions that do not count it where they are given."""
    row = torch.cat([torch.full((1, PADS), s.pad_id) if pads is None else pads, s.text()], 1)
    at = s.at(row.shape[1]) - PADS
    return Run(row, at.clamp(min=0) if given else None, at >= 0, keep=range(PADS, row.shape[1]))


PACKED = "packed texts see each other"


def _packed(s: Subject) -> Run:
    """A row of two texts, parted by a mask, of which the second is looked at."""
    s.name_of("mask")
    second = s.at()[0] >= s.length // 2
    try:
        # A mask that hides nothing must change nothing.
        understood = s.agree(Run(s.text()), Run(s.text(), mask=s.visible()))
    except Exception as error:
        raise DoesNotApplyError(f"no mask of queries by keys: {type(error).__name__}") from error
    if not understood:
        raise DoesNotApplyError("a mask of queries by keys means something else to it")
    return Run(s.text(), mask=(second[:, None] == second)[None] & s.visible(), keep=range(s.length // 2, s.length))


def _mixed(s: Subject) -> str:
    """Why packed texts may see each other: where each token attends to itself alone, neighbours still change it.

    Only where a convolution, or the three embeddings in one of MobileBERT, can be what mixes them: a layer that ignores
    the mask within its window looks alike.
    """
    modules = s.whole.modules() if isinstance(s.whole, nn.Module) else ()
    trigram = getattr(getattr(s.whole, "config", None), "trigram_input", False)
    if not trigram and not any(isinstance(each, nn.Conv1d) for each in modules):
        return ""
    itself = torch.eye(s.length, dtype=torch.bool)[None]
    changed = torch.cat([s.text(1, "another first", s.text()[:, :1]), s.text()[:, 1:]], 1)
    moved = s.moved(Run(changed, mask=itself), Run(s.text(), mask=itself)) > s.tolerance
    # Where the last token is moved as well, the mask is not looked at.
    outside = bool(moved[1:].any() and not moved[-1])
    return "neighbours are mixed outside of attention, where no mask parts them" if outside else ""
