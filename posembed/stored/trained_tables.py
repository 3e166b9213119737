"""Position tables that studies have trained and that ship with the package, in half precision."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from jaxtyping import Float
from torch import Tensor

BUNDLE = ".safetensors"


def bundle_tables(tables: Mapping[str, Float[Tensor, "n_positions d_model"]]) -> bytes:
    """The content of the file that ships in the package, in float16, which halves it."""
    from safetensors.torch import save

    return save({key: tables[key].half() for key in sorted(tables)})


def load_tables(study: str) -> dict[str, Float[Tensor, "n_positions d_model"]]:
    """Load the trained tables of a study from the package, by the keys of the runs' configs.

    Args:
        study: its name.

    Raises:
        RunError: no tables of such a study.

    Example:
        >>> from posembed.stored import load_tables
        >>> next(iter(load_tables("trained-tables").values())).shape
        torch.Size([128, 64])
    """
    from safetensors.torch import load

    stored = files("posembed.stored") / f"{study}{BUNDLE}"
    return {key: weight.float() for key, weight in load(stored.read_bytes()).items()}
