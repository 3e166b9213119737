"""The checks, by name, in the order of a report. Each takes a subject and its own name, and gives one result."""

from collections.abc import Callable

from ..report import CheckResult
from ..subject import Subject
from .cache import pieces
from .half_precision import neighbours_far_out
from .order import future_is_unseen, order_is_seen
from .packing import packed_as_alone, packed_unseen
from .padding import batch_mates, left_padding, left_padding_with_positions, right_padding
from .positions import explicit_positions, memory_in_another_order, past_the_last, shifted_positions
from .saved import saved_and_loaded
from .table import rows_with_gradient, table_offset
from .window import window_edge

CHECKS: dict[str, Callable[[Subject], CheckResult]] = {
    "order is seen": order_is_seen,
    "the future is unseen": future_is_unseen,
    "padding behind": right_padding,
    "batch mates": batch_mates,
    "padding in front, positions given": left_padding_with_positions,
    "padding in front": left_padding,
    "positions given": explicit_positions,
    "in pieces with a cache": pieces,
    "shifted positions": shifted_positions,
    "packed, each as alone": packed_as_alone,
    "packed, none sees another": packed_unseen,
    "another order in memory": memory_in_another_order,
    "edge of the window": window_edge,
    "past the last position": past_the_last,
    "half precision far out": neighbours_far_out,
    "saved and loaded": saved_and_loaded,
    "rows of the table": rows_with_gradient,
    "offset of the table": table_offset,
}

__all__ = ["CHECKS"]
