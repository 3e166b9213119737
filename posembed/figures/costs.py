"""What a lookup costs as the table grows."""

from __future__ import annotations

from collections.abc import Sequence

from ..lookup import LookupCost
from .looks import MARKERS
from .style import DescribedFigure, logarithmic, new_figure, styled


@styled
def lookup_cost_curves(costs: Sequence[LookupCost], *, alt: str | None = None) -> DescribedFigure:
    """Draw time and extra memory of each way of looking up against the number of rows, on logarithmic axes.

    Args:
        costs: from `posembed.lookup.lookup_costs`, for several table sizes.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure.

    Example:
        >>> from posembed.figures import lookup_cost_curves
        >>> from posembed.lookup import LookupCost
        >>> costs = [LookupCost("dense", 10, 1e-4, 320), LookupCost("dense", 100, 1e-3, 3200)]
        >>> len(lookup_cost_curves(costs, alt="Both rise.").axes)
        2
    """
    figure, (left, right) = new_figure(alt, 2)
    for way, marker in zip(dict.fromkeys(cost.way for cost in costs), MARKERS, strict=False):
        mine = [cost for cost in costs if cost.way == way]
        sizes = [cost.n_rows for cost in mine]
        left.plot(sizes, [1e3 * cost.seconds for cost in mine], marker=marker, label=way)
        right.plot(sizes, [cost.extra_bytes / 1e6 for cost in mine], marker=marker)
    logarithmic(left.xaxis, left.yaxis, right.xaxis, right.yaxis)
    left.set(xlabel="rows of the table", ylabel="milliseconds", title="time, forward and backward")
    right.set(xlabel="rows of the table", ylabel="megabytes", title="extra memory")
    figure.legend(loc="outside upper center", ncols=3)
    return figure
