"""The exhibits of the museum, loaded by path: nothing in course/ can be imported by name."""

from functools import cache
from types import ModuleType

from tool import ROOT, load

MUSEUM = ROOT / "course" / "museum"

NAMES = [
    "axis_order",
    "odd_width",
    "wrong_exponent",
    "half_precision_angles",
    "layout_mix_up",
    "cache_offset",
    "roberta_offset",
    "alibi_heads",
    "sdpa_alignment",
    "left_padding",
]


@cache
def exhibit(name: str) -> ModuleType:
    """Load one exhibit, without giving it a place in sys.modules."""
    return load(name, MUSEUM)
