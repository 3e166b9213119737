"""Growth with the length: tables, biases by offset, and one new token behind a cache."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from posembed import scheme, sinusoidal
from posembed.figures import DescribedFigure, new_figure, styled
from posembed.figures.style import MARKERS
from posembed.models import KeyValueCache, MultiHeadAttention

from . import references
from .case import Candidate, Case, Row, without_gradient
from .goals import exponent, linear

LENGTHS, QUICK_LENGTHS = tuple(2**n for n in range(10, 18)), (32, 64, 128, 256)
D_MODEL, N_HEADS = 512, 8
D_HEAD = D_MODEL // N_HEADS
ROUNDED, FLOAT32 = 2e-7, 2e-5
PAGES = "glibc gives large tables back after each call, and then new pages cost more than the numbers in them"
CACHE = "nearly all of the memory is the cache itself"


def cases(quick: bool) -> list[Case]:
    """One series a case, one length a candidate."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    series = [_case("sinusoidal table", _table, _table_reference, ROUNDED, lengths, PAGES)]
    series += [
        _case(f"{name} bias by offset", partial(_bias, name), partial(_bias_reference, name), ROUNDED, lengths)
        for name in ("alibi", "t5")
    ]
    series += [
        _case(
            f"new token, {name}", partial(_decoding, name), partial(_decoding_reference, name), FLOAT32, lengths, CACHE
        )
        for name in ("rope", "alibi", "t5")
    ]
    return series


def _case(
    name: str,
    make: Callable[[int], Callable[[], Tensor]],
    reference: Callable[[int], Tensor],
    bound: float,
    lengths: Sequence[int],
    note: str = "",
) -> Case:
    candidates = [
        Candidate(
            f"posembed, {length}",
            lambda _, length=length: make(length),
            reference=lambda _, length=length: reference(length),
            length=length,
            note=note if length == lengths[-1] else "",
        )
        for length in lengths
    ]
    return Case("growth", name, lambda: None, candidates, lambda _: None, bound, [linear()])


def _table(length: int) -> Callable[[], Tensor]:
    return lambda: sinusoidal(length, D_MODEL)


def _table_reference(length: int) -> Tensor:
    return references.sinusoids(length, D_MODEL)


def _scheme(name: str):
    torch.manual_seed(0)
    return scheme(name, d_model=D_MODEL, n_heads=N_HEADS, causal=True)


def _bias(name: str, length: int) -> Callable[[], Tensor]:
    one = _scheme(name)
    return without_gradient(lambda: one.bias_by_offset(torch.arange(1 - length, length)))


def _bias_reference(name: str, length: int) -> Tensor:
    at = torch.arange(1 - length, length)
    if name == "alibi":
        return references.alibi(N_HEADS, at)
    return references.t5(_scheme(name).weight.detach().double(), at, True)


def _decoder(name: str, length: int) -> tuple[MultiHeadAttention, KeyValueCache, Tensor]:
    """A layer, its cache of this length, and a new token; always the same."""
    layer = MultiHeadAttention(D_MODEL, N_HEADS, _scheme(name), causal=True).eval()
    generator, cache = torch.Generator().manual_seed(1), KeyValueCache()
    k, v = (torch.randn(1, N_HEADS, length, D_HEAD, generator=generator) for _ in range(2))
    cache.append(k, v, torch.arange(length))
    return layer, cache, torch.randn(1, 1, D_MODEL, generator=generator)


def _decoding(name: str, length: int) -> Callable[[], Tensor]:
    layer, cache, token = _decoder(name, length)
    with torch.no_grad():
        layer(token, cache=cache)  # the first new token doubles the cache's room
    # A copy shares the room and not the length: every call adds the token after the same one.
    return without_gradient(lambda: layer(token, cache=copy.copy(cache)))


def _decoding_reference(name: str, length: int) -> Tensor:
    layer, cache, token = _decoder(name, length)
    layer, token = layer.double(), token.double()
    k, v, _ = cache.parts()
    for _ in range(2):  # the token that made room, and the one that is timed
        k, v = (torch.cat(pair, 2) for pair in zip((k, v), _new(layer, token, name, k.shape[2]), strict=True))
    q = _turned(_heads(layer.query(token)), name, k.shape[2] - 1)
    table = layer.position_scheme.weight if name == "t5" else None
    scheme_of_logits = "nothing" if name == "rope" else name
    mixed = references.attention(scheme_of_logits, q, k.double(), v.double(), table, True)
    return layer.output(mixed.transpose(1, 2).flatten(2)).detach()


def _new(layer: MultiHeadAttention, token: Tensor, name: str, position: int) -> tuple[Tensor, Tensor]:
    return _turned(_heads(layer.key(token)), name, position), _heads(layer.value(token))


def _heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (N_HEADS, D_HEAD)).transpose(1, 2)


def _turned(x: Tensor, name: str, position: int) -> Tensor:
    return references.rotated(x, torch.tensor([position])) if name == "rope" else x


@styled
def figure(rows: Sequence[Row]) -> DescribedFigure:
    """Draw time against length for every series, on logarithmic axes.

    Args:
        rows: of this work.
    """
    by_series = {
        name: [row for row in rows if row.case == name and row.median is not None]
        for name in dict.fromkeys(row.case for row in rows)
    }
    drawn = {name: measured for name, measured in by_series.items() if len(measured) > 1}
    described = "; ".join(
        f"{name}, {1e3 * measured[0].median:.3g} to {1e3 * measured[-1].median:.3g} milliseconds, "
        f"exponent {exponent(measured):.2f}"
        for name, measured in drawn.items()
    )
    first, last = (pick(row.length for row in rows) for pick in (min, max))
    alt = f"Time against length from {first} to {last} on logarithmic axes, one line a series: {described}."
    image, axes = new_figure(alt, size=(6.6, 4.2))
    for (name, measured), marker in zip(drawn.items(), MARKERS, strict=False):
        label = f"{name}: length$^{{{exponent(measured):.2f}}}$"
        lengths, times = [row.length for row in measured], [1e3 * row.median for row in measured]
        axes.loglog(lengths, times, marker=marker, label=label)
    axes.set(xlabel="length", ylabel="milliseconds")
    axes.set_xscale("log", base=2)
    image.legend(loc="outside upper center", ncols=2)
    return image
