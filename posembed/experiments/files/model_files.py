"""Trained models as files: their weights beside the results of their runs, in the safetensors format."""

from __future__ import annotations

import json
from pathlib import Path

from torch import Tensor

from ...errors import RunError
from ...models import LanguageModel, drop_positions
from ..config import RunConfig
from ..training.text import corpus_of
from ..training.train import make_model
from .store import file_of, write_whole

# Weights of a later format are refused, as results are.
FORMAT = 1


def write_model(model: LanguageModel, config: RunConfig, folder: Path | str) -> Path:
    """Write the weights of a trained model under the name of its config.

    Args:
        model: the model.
        config: of the run that trained it; it is written into the file as well.
        folder: of the results.

    Raises:
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig, train
        >>> from posembed.experiments.files.model_files import write_model
        >>> result = train(RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2))
        >>> write_model(result.model, result.config, mkdtemp()).suffix
        '.safetensors'
    """
    from safetensors.torch import save

    tensors = {name: value.detach().cpu().contiguous() for name, value in _own_tensors(model).items()}
    said = {"format": str(FORMAT), "key": config.key, "config": json.dumps(config.to_dict())}
    return write_whole(file_of(config, folder, "safetensors"), save(tensors, metadata=said))


def read_model(config: RunConfig, folder: Path | str) -> LanguageModel:
    """Make the trained model of a run, on the CPU and in evaluation mode.

    Args:
        config: of the run.
        folder: of the results.

    Raises:
        RunError: weights that are not there, damaged, of a newer format or of another run.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments import run_grid
        >>> from posembed.experiments.files.model_files import read_model
        >>> config, folder = RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2), mkdtemp()
        >>> _ = run_grid([config], engine="serial", out=folder, save_models=True)
        >>> read_model(config, folder).transformer.config.d_model
        8
    """
    from dataclasses import replace

    path = file_of(config, folder, "safetensors")
    tensors = _read(path, config)
    model = make_model(replace(config, device="cpu"), corpus_of(config)).eval()
    if config.drops_positions:
        drop_positions(model.transformer)
    wanted = _own_tensors(model)
    if {name: value.shape for name, value in tensors.items()} != {name: each.shape for name, each in wanted.items()}:
        raise RunError(f"{path.name} does not fit the model of its run; move it and its result away and run it again")
    model.load_state_dict(tensors, strict=False)
    return model


def _own_tensors(model: LanguageModel) -> dict[str, Tensor]:
    """What a model holds, each tensor once: a scheme that all layers share stands in the model many times."""
    found: dict[str, Tensor] = {}
    seen = set()
    for name, value in model.state_dict(keep_vars=True).items():
        if id(value) not in seen:
            seen.add(id(value))
            found[name] = value
    return found


def _read(path: Path, config: RunConfig) -> dict[str, Tensor]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise RunError(f"there are no weights {path.name}; run the config with save_models=True")
    try:
        with safe_open(path, framework="pt") as file:
            said = file.metadata() or {}
            if said.get("format") != str(FORMAT):
                raise RunError(
                    f"{path.name} has format {said.get('format')!r}, this version of posembed reads {FORMAT}; "
                    "upgrade posembed"
                )
            if said.get("key") != config.key:
                raise RunError(f"{path.name} holds the run {said.get('key')}; give it that name or move it away")
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{path.name} is damaged; move it and its result away and run its config again") from None
