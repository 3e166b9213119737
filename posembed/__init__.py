"""Positional embeddings for Transformers: schemes, probes and checks, with the book that explains them.

Every public name is loaded on first use, so ``import posembed`` costs next to nothing.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .encodings import PositionScheme, scheme, schemes, sinusoidal
    from .equivariance import EquivarianceReport, check_equivariance
    from .errors import PosembedError
    from .lookup import one_hot_lookup
    from .pretrained import load_encoder
    from .tables import with_position_table

_HOME = {
    "EquivarianceReport": ".equivariance",
    "PosembedError": ".errors",
    "PositionScheme": ".encodings",
    "check_equivariance": ".equivariance",
    "load_encoder": ".pretrained",
    "one_hot_lookup": ".lookup",
    "scheme": ".encodings",
    "schemes": ".encodings",
    "sinusoidal": ".encodings",
    "with_position_table": ".tables",
}
_SUBMODULES = ("encodings", "equivariance", "errors", "figures", "lookup", "models", "pretrained", "tables", "widgets")

__all__ = [
    "EquivarianceReport",
    "PosembedError",
    "PositionScheme",
    "check_equivariance",
    "load_encoder",
    "one_hot_lookup",
    "scheme",
    "schemes",
    "sinusoidal",
    "with_position_table",
]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(import_module(_HOME[name], __name__), name)
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name == "__version__":
        return version("posembed")
    raise AttributeError(f"module 'posembed' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__"])
