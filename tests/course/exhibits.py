"""The exhibits of the museum, loaded by path: nothing in course/ can be imported by name."""

from functools import cache
from types import ModuleType

from tool import ROOT, load

MUSEUM = ROOT / "course" / "museum"

NAMES = [
    "heads_axis",
    "layout_mix_up",
    "wrong_exponent",
    "half_precision_angles",
    "left_padding",
    "cache_offset",
    "packing_leak",
    "partial_for_proportional",
    "layer_kinds",
    "other_grid",
]


@cache
def exhibit(name: str) -> ModuleType:
    """Load one exhibit, without giving it a place in sys.modules."""
    return load(name, MUSEUM)
