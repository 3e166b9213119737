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
    from .probing import ProbeResult, probe_layers, probe_table
    from .similarity import Properties, properties, properties_of_matrix
    from .tables import PositionTable, load_table, with_position_table

_HOME = {
    "EquivarianceReport": ".equivariance",
    "PosembedError": ".errors",
    "PositionScheme": ".encodings",
    "PositionTable": ".tables",
    "ProbeResult": ".probing",
    "Properties": ".similarity",
    "RunConfig": ".experiments",
    "RunResult": ".experiments",
    "Transformer": ".models",
    "TransformerConfig": ".models",
    "check_equivariance": ".equivariance",
    "load_encoder": ".pretrained",
    "load_results": ".experiments",
    "load_table": ".tables",
    "one_hot_lookup": ".lookup",
    "probe_layers": ".probing",
    "probe_table": ".probing",
    "properties": ".similarity",
    "properties_of_matrix": ".similarity",
    "run_grid": ".experiments",
    "scheme": ".encodings",
    "schemes": ".encodings",
    "sinusoidal": ".encodings",
    "train": ".experiments",
    "with_position_table": ".tables",
}
_SUBMODULES = (
    "checks",
    "cli",
    "data",
    "encodings",
    "equivariance",
    "errors",
    "evaluating",
    "experiments",
    "figures",
    "lookup",
    "mechanisms",
    "models",
    "plain",
    "pretrained",
    "probing",
    "report",
    "seeds",
    "similarity",
    "stats",
    "tables",
    "widgets",
)

__all__ = [
    "EquivarianceReport",
    "PosembedError",
    "PositionScheme",
    "PositionTable",
    "ProbeResult",
    "Properties",
    "RunConfig",
    "RunResult",
    "Transformer",
    "TransformerConfig",
    "check_equivariance",
    "load_encoder",
    "load_results",
    "load_table",
    "one_hot_lookup",
    "probe_layers",
    "probe_table",
    "properties",
    "properties_of_matrix",
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
