"""The exhibits of the museum, loaded by path: nothing in course/ can be imported by name."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
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
    spec = importlib.util.spec_from_file_location(f"museum_{name}", MUSEUM / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
