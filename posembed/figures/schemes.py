"""What a position scheme does, drawn from the scheme itself: rows it adds, biases, logits, attention weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ..encodings import CoPE, PositionScheme, RoPE
from ..encodings.interface import BIDIRECTIONAL, CAUSAL
from ..encodings.registry import SCHEMES
from ..errors import FigureInputError
from ..models import attend
from ..public import Count, public
from .curves import curves
from .looks import NOTHING, SEQUENTIAL
from .maps import table_maps
from .style import DescribedFigure, new_figure, styled

OFFSET = "offset, key minus query"
KEY, QUERY = "position of the key", "position of the query"
# The logit of a gate that is open, or with the other sign shut, to twelve digits.
OPEN = 30.0


@public(FigureInputError)
def added_maps(
    schemes: Mapping[str, PositionScheme],
    *,
    n_positions: Count,
    d_model: Count,
    alt: str | None = None,
) -> DescribedFigure:
    """Draw what schemes add to the embeddings: a row for each position.

    Args:
        schemes: by title; they are drawn side by side with one colour scale.
        n_positions: how many rows, from position 0 on.
        d_model: how many columns, the width that the schemes were made for.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure.

    Raises:
        FigureInputError: what is no scheme.
        EncodingInputError: a scheme of another width.

    Example:
        >>> from posembed import scheme
        >>> from posembed.figures import added_maps
        >>> waves = scheme("sinusoidal", d_model=8)
        >>> added_maps({"waves": waves}, n_positions=9, d_model=8, alt="Nine rows.").axes[0].get_ylabel()
        'position'
    """
    positions, nothing = torch.arange(n_positions), torch.zeros(1, n_positions, d_model)
    rows = {title: each.add(nothing, positions)[0].detach() for title, each in schemes.items()}
    return _with_few_ticks(table_maps(rows, alt=alt, ylabel="position", size=(5.6, 3.2)))


@public(FigureInputError)
def frequency_curves(schemes: Mapping[str, PositionScheme], *, alt: str | None = None) -> DescribedFigure:
    """Draw the wavelength of each pair of columns, in positions for one turn; of one that never turns nothing is drawn.

    Args:
        schemes: by label, each with `frequencies`: sinusoidal, learnable sinusoidal or rotary ones.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure, with a logarithmic scale.

    Example:
        >>> from posembed import scheme
        >>> from posembed.figures import frequency_curves
        >>> figure = frequency_curves({"width 4": scheme("sinusoidal", d_model=4)}, alt="Two points.")
        >>> figure.axes[0].lines[0].get_ydata().round(2).tolist()
        [6.28, 628.32]
    """
    frequencies = {label: cast(Any, each).frequencies.detach().double().abs() for label, each in schemes.items()}
    wavelengths = {label: 2 * math.pi / each.where(each > 0, math.nan) for label, each in frequencies.items()}
    return curves(
        wavelengths, alt=alt, xlabel="pair of columns", ylabel="positions for one turn", log_y=True, size=(5.6, 3.2)
    )


@public(FigureInputError)
def bias_curves(
    schemes: PositionScheme | Mapping[str, PositionScheme],
    *,
    offsets: Integer[Tensor, " offsets"],
    heads: Sequence[int] = (1,),
    alt: str | None = None,
) -> DescribedFigure:
    """Draw the bias of the attention logits against the offset, a curve for each head.

    Args:
        schemes: one scheme whose bias depends on the offset alone, or several by label.
        offsets: key position minus query position.
        heads: which ones, counted from 1.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure.

    Raises:
        FigureInputError: no scheme, one without such a bias, a head that it does not have.

    Example:
        >>> import torch
        >>> from posembed import scheme
        >>> from posembed.figures import bias_curves
        >>> figure = bias_curves(scheme("alibi", n_heads=8), offsets=torch.arange(-4, 1), heads=[2], alt="A line.")
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [-1.0, -0.75, -0.5, -0.25, 0.0]
    """
    several = {"": schemes} if isinstance(schemes, PositionScheme) else schemes
    series, kinds = {}, {}
    names = {kind: name for name, kind in SCHEMES.items()}
    for label, each in several.items():
        bias = each.bias_by_offset(offsets)
        if bias is None:
            raise FigureInputError(f"the bias of {type(each).__name__} is no function of the offset; use logit_maps")
        for head in heads:
            name = f"head {head}" if not label else label if len(heads) == 1 else f"{label}, head {head}"
            series[name] = _of_head(bias, head, each).detach()
            if type(each) in names:
                kinds[name] = names[type(each)]
    x = offsets.double().tolist()
    return curves(series, x=x, alt=alt, xlabel=OFFSET, ylabel="bias", size=(5.6, 3.4), schemes=kinds)


@public(FigureInputError)
def logit_maps(
    schemes: Mapping[str, PositionScheme],
    *,
    n_positions: Count,
    q: Float[Tensor, "... d_head"] | None = None,
    k: Float[Tensor, "... d_head"] | None = None,
    gates: Float[Tensor, " positions"] | None = None,
    alt: str | None = None,
) -> DescribedFigure:
    """Draw the attention logits of given queries and keys at every two positions.

    What a query does not see in a scheme for causal models is grey.

    Args:
        schemes: of one head, by title; they are drawn side by side with one colour scale.
        n_positions: how many positions, from 0 on.
        q: one query that stands at every position, or one for each; None for zeros: then the logit is the bias.
        k: the same of keys.
        gates: what a scheme that reads the tokens has read of each, as `PositionScheme.gates` gives it.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure.

    Raises:
        FigureInputError: what is no scheme, or one with a bias for each of several heads.
        EncodingInputError: vectors that a scheme was not made for.

    Example:
        >>> import torch
        >>> from posembed import scheme
        >>> from posembed.figures import logit_maps
        >>> rope = scheme("rope", d_model=8, n_heads=1)
        >>> figure = logit_maps({"RoPE": rope}, n_positions=9, q=torch.ones(8), k=torch.ones(8), alt="Stripes.")
        >>> shown = figure.axes[0].images[0].get_array()
        >>> bool(abs(shown[8, 5] - shown[3, 0]) < 1e-6)
        True
    """
    d_head = next((each.shape[-1] for each in (q, k) if each is not None), 2)
    queries, keys = (_at_all_positions(each, n_positions, d_head) for each in (q, k))
    logits = {title: _logits(each, queries, keys, gates) for title, each in schemes.items()}
    return _with_few_ticks(table_maps(logits, alt=alt, xlabel=KEY, ylabel=QUERY, size=(5.8, 3.0)))


@public(FigureInputError)
@styled
def weight_maps(scheme: PositionScheme, *, n_positions: Count, alt: str | None = None) -> DescribedFigure:
    """Draw the attention weights of tokens with equal contents, for each objective that the scheme is defined for.

    Args:
        scheme: of one head.
        n_positions: how many positions, from 0 on; a dozen at most are readable.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure; every weight stands in its cell.

    Raises:
        FigureInputError: what is no scheme.

    Example:
        >>> from posembed import scheme
        >>> from posembed.figures import weight_maps
        >>> figure = weight_maps(scheme("nopos"), n_positions=2, alt="A half everywhere; a one and two halves.")
        >>> [[text.get_text() for text in axes.texts] for axes in figure.axes]
        [['0.50', '0.50', '0.50', '0.50'], ['1', '0.50', '0.50']]
    """
    objectives = [each for each in (BIDIRECTIONAL, CAUSAL) if each in scheme.objectives]
    zeros, at = torch.zeros(1, 1, n_positions, 2), torch.arange(n_positions)
    figure, row = new_figure(alt, len(objectives), size=(5.8, 3.1), squeeze=False)
    for axes, objective in zip(row[0], objectives, strict=True):
        weights = attend(
            zeros,
            zeros,
            torch.eye(n_positions)[None, None],
            causal=objective == CAUSAL,
            scheme=scheme,
            positions=at,
            key_positions=at,
        )
        seen = _behind(weights[0, 0].detach(), objective == CAUSAL)
        _draw_numbers(axes, seen, lambda weight: "1" if weight > 0.995 else f"{weight:.2f}", most=1.0)
        axes.set(title=objective, xlabel=KEY, ylabel=QUERY)
    return figure


@public(FigureInputError)
def damping_curves(
    scheme: RoPE,
    *,
    distances: Integer[Tensor, " distances"],
    pairs: Sequence[int],
    alt: str | None = None,
) -> DescribedFigure:
    """Draw the factor by which a rotary scheme makes the product of a query and a key shorter, pair by pair.

    It is measured: the length of a turned query of length 1 times that of a turned key of length 1.

    Args:
        scheme: a rotary one; all factors of plain RoPE are 1.
        distances: how far back the key is.
        pairs: which pairs of columns, counted from 0.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure.

    Raises:
        FigureInputError: another kind of scheme.

    Example:
        >>> import torch
        >>> from posembed import scheme
        >>> from posembed.figures import damping_curves
        >>> xpos = scheme("xpos", d_model=8, n_heads=1)
        >>> figure = damping_curves(xpos, distances=torch.tensor([0, 512]), pairs=[0], alt="It falls.")
        >>> figure.axes[0].lines[0].get_ydata().round(4).tolist()
        [1.0, 0.2857]
    """
    unit = torch.eye(scheme.d_head, dtype=torch.float64)[:, None]  # "columns 1 d_head"
    unit = unit[: scheme.width : 2] if scheme.layout == "interleaved" else unit[: scheme.width // 2]
    queries = scheme.rotate(unit.expand(-1, len(distances), -1), distances).norm(dim=-1)
    keys = scheme.rotate_keys(unit, torch.zeros(1, dtype=torch.long)).norm(dim=-1)
    factors = queries * keys  # "pairs distances"
    series = {f"pair {pair}": factors[pair] for pair in pairs}
    places = distances.double().tolist()
    return curves(series, x=places, xlabel="distance", ylabel="factor", ylim=(0.0, 1.04), alt=alt, size=(5.6, 3.4))


@public(FigureInputError)
@styled
def counted_map(
    scheme: CoPE,
    tokens: Sequence[str],
    counting: Sequence[bool],
    *,
    alt: str | None = None,
) -> DescribedFigure:
    """Draw the positions that a contextual scheme counts, when some tokens open the gate and the others do not.

    Args:
        scheme: the scheme.
        tokens: their names.
        counting: whether each counts.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure; the position of each key, as seen from each query, stands in its cell.

    Raises:
        FigureInputError: another kind of scheme.

    Example:
        >>> from posembed import scheme
        >>> from posembed.figures import counted_map
        >>> cope = scheme("cope", d_model=8, n_heads=1)
        >>> figure = counted_map(cope, ["so", ".", "on"], [False, True, False], alt="It counts the full stop.")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['0', '1', '1', '1', '1', '0']
    """
    q = torch.ones(1, 1, len(tokens), scheme.d_head)
    k = q * (2.0 * torch.tensor(counting) - 1)[:, None] * OPEN / math.sqrt(scheme.d_head)
    visible = torch.ones(len(tokens), len(tokens)).tril().bool()
    counted = scheme.counted(q, k, visible)[0, 0].round()
    figure, axes = new_figure(alt, size=(5.2, 4.4))
    _draw_numbers(axes, _behind(counted, True), "{:.0f}".format, most=float(counted.max()) or 1.0)
    axes.set(xlabel="key", ylabel="query")
    axes.set_xticks(range(len(tokens)), list(tokens), rotation=90 if max(map(len, tokens)) > 4 else 0)
    axes.set_yticks(range(len(tokens)), list(tokens))
    return figure


def _of_head(bias: Float[Tensor, "heads ..."], head: int, scheme: PositionScheme) -> Tensor:
    """The bias of a head; one that is the same for all heads is that of each."""
    if len(bias) > 1 and not 1 <= head <= len(bias):
        raise FigureInputError(f"there is no head {head}; {type(scheme).__name__} has 1 to {len(bias)}")
    return bias[head - 1] if len(bias) > 1 else bias[0]


def _at_all_positions(x: Tensor | None, n_positions: int, d_head: int) -> Float[Tensor, "1 1 positions d_head"]:
    x = torch.zeros(d_head) if x is None else x
    return x.expand(n_positions, -1)[None, None]


def _logits(scheme: PositionScheme, q: Tensor, k: Tensor, gates: Tensor | None) -> Float[Tensor, "query key"]:
    at = torch.arange(q.shape[-2])
    turned = scheme.rotate(q, at)[0, 0] @ scheme.rotate_keys(k, at)[0, 0].T / math.sqrt(q.shape[-1])
    extra = {"visible": torch.ones(len(at), len(at)).tril().bool()} if scheme.reads_mask else {}
    if scheme.gated and gates is not None:
        extra["gates"] = gates[None, None]
    bias = scheme.bias(q, k, at, at, **extra) if scheme.biased else None
    if bias is not None:
        if bias.shape[-3] > 1:
            raise FigureInputError(f"{type(scheme).__name__} has {bias.shape[-3]} heads; draw one made for n_heads=1")
        turned = turned + bias.flatten(end_dim=-3)[0]
    return _behind(turned.detach(), BIDIRECTIONAL not in scheme.objectives)


def _behind(values: Tensor, causal: bool) -> Tensor:
    """The values, without those of keys ahead where attention is causal."""
    return values.masked_fill(torch.ones_like(values).triu(1).bool(), torch.nan) if causal else values


def _with_few_ticks(figure: DescribedFigure) -> DescribedFigure:
    """Fewer ticks than matplotlib would draw: panels are narrow on a phone."""
    for axes in figure.axes[:-1]:  # the last is the scale of colours
        axes.locator_params("x", nbins=4)
        axes.locator_params("y", nbins=5)
    return figure


def _draw_numbers(
    axes: Any, values: Float[Tensor, "rows columns"], text: Callable[[float], str], *, most: float
) -> None:
    """Draw a matrix of numbers from zero on with the number in each cell; where there is none the cell is grey."""
    colours = SEQUENTIAL.with_extremes(bad=NOTHING)
    # Up to the middle of the colours: words are readable on all of them, on light paper and on dark.
    axes.imshow(values.numpy(), cmap=colours, vmin=0, vmax=2.4 * most, interpolation="none")
    for row, column in values.isfinite().nonzero().tolist():
        number = text(float(values[row, column]))
        axes.text(column, row, number, ha="center", va="center", color="#24292f", fontsize=11)
    axes.set_xticks(range(values.shape[1]))
    axes.set_yticks(range(values.shape[0]))
    axes.grid(False)
