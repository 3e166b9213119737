"""One run of a grid: train, write what it gave, and say how it went."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ...errors import PosembedError
from ..config import RunConfig
from ..files.checkpoints import Checkpoint
from ..files.model_files import write_model
from ..files.store import file_of, read_result, write_result
from ..files.weights import write_table
from ..result import RunResult
from ..training.train import train
from .claims import claim

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Keeping:
    """What is written of each run of a grid, beside its result.

    Attributes:
        models: the weights of the trained model, as KEY.safetensors.
        tables: the trained position table, as KEY.npy; for schemes that have one.
        checkpoint_seconds: how often an unfinished run is written down, as KEY.checkpoint; None for never.

    Example:
        >>> from posembed.experiments.grids.runs import Keeping
        >>> Keeping(models=True).tables
        False
    """

    models: bool = False
    tables: bool = False
    checkpoint_seconds: float | None = 300.0


@dataclass(frozen=True)
class Outcome:
    """How a run of a grid went.

    Attributes:
        config: the run.
        state: "done", its result is in the folder; "elsewhere", another grid has it in hand; "failed".
        message: why it failed, in one line.
        unwritten: a result that could not be written.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.runs import Outcome
        >>> Outcome(RunConfig(), "done").message
        ''
    """

    config: RunConfig
    state: Literal["done", "elsewhere", "failed"]
    message: str = ""
    unwritten: RunResult | None = None


def run_and_store(
    config: RunConfig,
    out: Path | str,
    *,
    keeping: Keeping | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> RunResult:
    """Train as a config says and write the result; who finds the result finds what belongs to it too.

    An unfinished run that left a checkpoint in the folder goes on from there.

    Args:
        config: the run.
        out: the folder.
        keeping: what is written beside the result; by default nothing.
        progress: as for `posembed.train`.

    Returns:
        The result with the trained model.

    Raises:
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.
        CheckpointError: a checkpoint of the run that is damaged or of a newer format; it is left as it is.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments import read_results, run_and_store
        >>> folder = mkdtemp()
        >>> _ = run_and_store(RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2), folder)
        >>> len(read_results(folder))
        1
    """
    keeping = keeping or Keeping()
    result = _train(config, out, keeping, progress)
    _write(result, out, keeping)
    return result


def _train(config: RunConfig, out: Path | str, keeping: Keeping, progress: Any = None) -> RunResult:
    kept = Checkpoint(file_of(config, out, "checkpoint"), seconds=keeping.checkpoint_seconds)
    return train(config, checkpoint=kept, progress=progress)


def _write(result: RunResult, out: Path | str, keeping: Keeping) -> None:
    """Write what belongs to a result, then the result: it says that all is there. The checkpoint has then served."""
    assert result.model is not None
    if keeping.models:
        write_model(result.model, result.config, out)
    if keeping.tables:
        table: Any = result.model.transformer.position_scheme
        write_table(table.weight, result.config, out)
    write_result(result, out)
    file_of(result.config, out, "checkpoint").unlink(missing_ok=True)


def attempt(config: RunConfig, out: Path | str, keeping: Keeping) -> Outcome:
    """Run a config unless it has a result or another grid has it in hand; a failure is an outcome, not an error.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.runs import Keeping, attempt
        >>> attempt(RunConfig(scheme="xpos", objective="masked", masking_rate=0.5), mkdtemp(), Keeping()).state
        'failed'
    """
    try:
        with claim(config, out) as mine:
            return run_claimed(config, out, keeping) if mine else Outcome(config, "elsewhere")
    except PosembedError as error:
        return Outcome(config, "failed", str(error))


def run_claimed(config: RunConfig, out: Path | str, keeping: Keeping) -> Outcome:
    """The same for a run that is this grid's.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.runs import Keeping, run_claimed
        >>> config = RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2)
        >>> run_claimed(config, mkdtemp(), Keeping()).state
        'done'
    """
    try:
        path = file_of(config, out, "json")
        if path.exists():
            # It came while this run waited for its turn.
            read_result(path)
            return Outcome(config, "done")
        return _stored(_train(config, out, keeping), out, keeping)
    except PosembedError as error:
        return Outcome(config, "failed", str(error))
    except Exception as error:
        # One run's mistake must not cost the others; the traceback is for whoever looks into it.
        LOG.exception("the run %s failed", config.key)
        return Outcome(config, "failed", f"{type(error).__name__}: {' '.join(str(error).split())}")


def _stored(result: RunResult, out: Path | str, keeping: Keeping) -> Outcome:
    try:
        _write(result, out, keeping)
    except OSError as error:
        # A small result is carried along until there is room; weights are not.
        alone = None if keeping.models or keeping.tables else replace(result, model=None)
        return Outcome(result.config, "failed", f"what it gave cannot be written ({error.strerror})", alone)
    return Outcome(result.config, "done")
