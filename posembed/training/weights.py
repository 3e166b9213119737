"""What a run has trained, beside its result: its position table (NumPy, half precision), or its model (safetensors)."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import RunError
from ..models import LanguageModel
from ..public import public
from .config import RunConfig
from .results import checked_folder, file_of, write_whole
from .runs import load_text, make_model

FORMAT = 1
Model = TypeVar("Model", bound=nn.Module)


@public(RunError)
def write_table(weight: Float[Tensor, "n_positions d_model"], config: RunConfig, folder: Path | str) -> Path:
    """Write a trained table under the name of its config, in half precision.

    Args:
        weight: the table.
        config: of the run that trained it.
        folder: of the results.

    Returns:
        The path of the file.

    Raises:
        RunError: what is no table, no config or no folder.
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> import torch
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.training import read_tables, write_table
        >>> folder = mkdtemp()
        >>> _ = write_table(torch.eye(2), RunConfig(), folder)
        >>> read_tables(folder)[RunConfig().key]
        tensor([[1., 0.],
                [0., 1.]])
    """
    content = io.BytesIO()
    np.save(content, weight.detach().cpu().numpy().astype(np.float16))
    return write_whole(file_of(config, folder, "npy"), content.getvalue())


@public(RunError)
def read_tables(folder: Path | str) -> dict[str, Float[Tensor, "n_positions d_model"]]:
    """Read the tables of a folder, by the keys of their configs.

    Args:
        folder: of `write_table`.

    Raises:
        RunError: a folder that is not there.
        ValueError: a file that is damaged.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed.training import read_tables
        >>> read_tables(mkdtemp())
        {}
    """
    paths = sorted(checked_folder(folder).glob("*.npy"))
    return {path.stem: torch.from_numpy(np.load(path).astype(np.float32)) for path in paths}


@public(RunError)
def write_model(model: nn.Module, config: RunConfig, folder: Path | str) -> Path:
    """Write the weights of a trained model under the name of its config.

    Args:
        model: the model.
        config: of the run that trained it; it is written into the file as well.
        folder: of the results.

    Returns:
        The path of the file.

    Raises:
        RunError: what is no model, no config or no folder.
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig, train
        >>> from posembed.training import write_model
        >>> result = train(RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2))
        >>> write_model(result.model, result.config, mkdtemp()).suffix
        '.safetensors'
    """
    from safetensors.torch import save

    # Each once, although layers may share a scheme; models have no numbers besides their parameters.
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.named_parameters()}
    path = file_of(config, folder, "safetensors")
    said = {"format": str(FORMAT), "key": config.key, "config": json.dumps(config.to_dict())}
    return write_whole(path, save(tensors, metadata=said))


def has_weights(config: RunConfig, folder: Path) -> bool:
    """Whether a run's weights are beside its result, and their file is whole and says that it is theirs."""
    return bool(_tensors_of(config, folder))


def _tensors_of(config: RunConfig, folder: Path | str) -> dict[str, Tensor]:
    """A run's weights by name; none where their file is not there, is damaged, or of another run or version."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file_of(config, folder, "safetensors"), framework="pt") as opened:
            file: Any = opened
            said, tensors = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError):
        return {}
    return tensors if (said.get("format"), said.get("key")) == (str(FORMAT), config.key) else {}


@public(RunError)
def read_model(config: RunConfig, folder: Path | str) -> LanguageModel:
    """Make the trained model of a run, on the CPU and in evaluation mode.

    Args:
        config: of the run.
        folder: of the results.

    Raises:
        RunError: weights that are not there, damaged, or of another run or version; a run with settings of a study that
            make another model.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.training import read_model, run_grid
        >>> config, folder = RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2), mkdtemp()
        >>> _ = run_grid([config], engine="serial", out=folder, save_models=True)
        >>> read_model(config, folder).transformer.config.d_model
        8
    """
    on_cpu = replace(config, device="cpu")
    return with_weights(make_model(on_cpu, load_text(on_cpu)), config, folder)


def with_weights(model: Model, config: RunConfig, folder: Path | str) -> Model:
    """Give a model the weights of a run, and put it into evaluation mode."""
    tensors = _tensors_of(config, folder)
    shapes = {name: value.shape for name, value in model.named_parameters()}
    if {name: value.shape for name, value in tensors.items()} != shapes:
        raise RunError(
            f"{file_of(config, folder, 'safetensors').name} is not there, is damaged, or of another run or version; "
            "move it and its result away, and run the config again with save_models=True"
        )
    model.load_state_dict(tensors, strict=False)
    return model.eval()
