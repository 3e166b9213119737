"""Positional embeddings for Transformers: schemes, probes and checks, with the book that explains them.

Every public name is loaded on first use, so ``import posembed`` costs next to nothing.
"""

from importlib import import_module, metadata, util
from pkgutil import iter_modules
from typing import Any

# The public names and where each stands; `__init__.pyi` says the same to type checkers and editors.
_HOME = {
    "AuditReport": "auditing",
    "EquivarianceReport": "equivariance",
    "PosembedError": "errors",
    "PositionScheme": "encodings",
    "PositionTable": "tables",
    "ProbeResult": "probing",
    "Properties": "similarity",
    "RunConfig": "training",
    "RunResult": "training",
    "Transformer": "models",
    "TransformerConfig": "models",
    "audit": "auditing",
    "check_equivariance": "equivariance",
    "load_encoder": "pretrained",
    "load_results": "stored",
    "load_study": "stored",
    "load_table": "tables",
    "one_hot_lookup": "lookup",
    "probe_layers": "probing",
    "probe_table": "probing",
    "properties": "similarity",
    "properties_of_matrix": "similarity",
    "run_grid": "training",
    "scheme": "encodings",
    "schemes": "encodings",
    "sinusoidal": "encodings",
    "train": "training",
    "with_position_table": "tables",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name == "__version__":
        return metadata.version("posembed")
    if not name.startswith("_") and util.find_spec(f"{__name__}.{name}"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'posembed' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    modules = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
    return sorted([*__all__, *modules, "__version__"])
