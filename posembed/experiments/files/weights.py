"""Position tables of trained models, kept beside the results of their runs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import RunError
from ..config import RunConfig
from .store import file_of, write_whole


def write_table(weight: Float[Tensor, "n_positions d_model"], config: RunConfig, folder: Path | str) -> Path:
    """Write a trained table under the name of its config, in half precision.

    Args:
        weight: the table.
        config: of the run that trained it.
        folder: of the results.

    Raises:
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> import torch
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments import read_tables, write_table
        >>> folder = mkdtemp()
        >>> _ = write_table(torch.eye(2), RunConfig(), folder)
        >>> read_tables(folder)[RunConfig().key]
        tensor([[1., 0.],
                [0., 1.]])
    """
    content = io.BytesIO()
    np.save(content, weight.detach().cpu().numpy().astype(np.float16))
    return write_whole(file_of(config, folder, "npy"), content.getvalue())


def read_tables(folder: Path | str) -> dict[str, Float[Tensor, "n_positions d_model"]]:
    """Read the tables of a folder, by the keys of their configs.

    Raises:
        RunError: a file that is no table of finite numbers.

    Example:
        >>> from posembed.experiments import read_tables
        >>> read_tables("no-such-folder")
        {}
    """
    return {path.stem: _read(path) for path in sorted(Path(folder).glob("*.npy"))}


def _read(path: Path) -> Float[Tensor, "n_positions d_model"]:
    try:
        weight = np.load(path).astype(np.float32)
        whole = weight.ndim == 2 and bool(np.isfinite(weight).all())
    except (OSError, ValueError, EOFError, AttributeError, BadZipFile):
        whole = False
    if not whole:
        raise RunError(f"{path.name} is no table of finite numbers; move it away and run its config again")
    return torch.from_numpy(weight)


def bundle_tables(tables: Mapping[str, Float[Tensor, "n_positions d_model"]]) -> bytes:
    """The content of the file that ships in the package.

    Example:
        >>> import torch
        >>> from posembed.experiments import bundle_tables
        >>> len(bundle_tables({"a": torch.zeros(2, 3)})) > 2 * 3 * 2
        True
    """
    from safetensors.torch import save

    return save({key: tables[key].half() for key in sorted(tables)})


def load_tables(study: str) -> dict[str, Float[Tensor, "n_positions d_model"]]:
    """Load the trained tables of a study from the package, by the keys of the runs' configs.

    Args:
        study: its name.

    Raises:
        RunError: no tables of such a study.

    Example:
        >>> from posembed.experiments import load_tables
        >>> next(iter(load_tables("trained-tables").values())).shape
        torch.Size([128, 64])
    """
    from safetensors.torch import load

    stored = files("posembed.experiments") / "stored" / f"{study}.safetensors"
    if not stored.is_file():
        raise RunError(f"there are no stored tables of a study {study!r}; there are those of trained-tables")
    return {key: weight.float() for key, weight in load(stored.read_bytes()).items()}
