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
    from .experiments import RunConfig, RunResult, load_results, run_grid, train
    from .lookup import one_hot_lookup
    from .models import Transformer, TransformerConfig
    from .pretrained import load_encoder
    from .tables import with_position_table

_HOME = {
    "EquivarianceReport": ".equivariance",
    "PosembedError": ".errors",
    "PositionScheme": ".encodings",
    "RunConfig": ".experiments",
    "RunResult": ".experiments",
    "Transformer": ".models",
    "TransformerConfig": ".models",
    "check_equivariance": ".equivariance",
    "load_encoder": ".pretrained",
    "load_results": ".experiments",
    "one_hot_lookup": ".lookup",
    "run_grid": ".experiments",
    "scheme": ".encodings",
    "schemes": ".encodings",
    "sinusoidal": ".encodings",
    "train": ".experiments",
    "with_position_table": ".tables",
}
_SUBMODULES = (
    "data",
    "encodings",
    "equivariance",
    "errors",
    "experiments",
    "figures",
    "lookup",
    "models",
    "pretrained",
    "tables",
    "widgets",
)

__all__ = [
    "EquivarianceReport",
    "PosembedError",
    "PositionScheme",
    "RunConfig",
    "RunResult",
    "Transformer",
    "TransformerConfig",
    "check_equivariance",
    "load_encoder",
    "load_results",
    "one_hot_lookup",
    "run_grid",
    "scheme",
    "schemes",
    "sinusoidal",
    "train",
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
