"""One large run on several GPUs or machines: torchrun and DistributedDataParallel.

    torchrun --nproc-per-node 8 -m posembed.experiments.training.ddp CONFIG.json --out results/large

CONFIG.json holds the settings of a `posembed.RunConfig` that differ from its defaults, such as ``{"scheme": "rope",
"device": "cuda"}``. All processes draw the same pieces of a step and each takes its part, so the run has the same
batches as on one GPU, and the same loss but for rounding (about 1e-6 a step in float32). The result is named by the
config as any other; ``machine`` says how many processes there were. An unfinished run goes on from its checkpoint if it
is started again with as many processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import distributed

from ...errors import PosembedError, RunError
from ..config import RunConfig
from ..files.checkpoints import Checkpoint
from ..files.model_files import write_model
from ..files.store import file_of, missing, write_result
from .machine import check_device
from .team import ALONE, Team
from .train import train


def read_config(path: Path | str) -> RunConfig:
    """Read a config from a JSON file that holds what differs from the defaults.

    Raises:
        RunError: a file that cannot be read or is no config.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from posembed.experiments.training.ddp import read_config
        >>> file = Path(mkdtemp()) / "config.json"
        >>> _ = file.write_text('{"scheme": "rope"}')
        >>> read_config(file).scheme
        'rope'
    """
    path = Path(path)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"cannot read {path.name} ({error.strerror})") from None
    except ValueError:
        raise RunError(f'{path.name} is not JSON; write settings such as {{"scheme": "rope"}}') from None
    if not isinstance(values, dict):
        raise RunError(f'{path.name} holds no settings; write them as {{"scheme": "rope"}}')
    return RunConfig.from_dict(values)


@contextmanager
def joined(config: RunConfig) -> Iterator[Team]:
    """Meet the other processes that torchrun has started; without torchrun, be alone.

    Args:
        config: the run; its device "cuda" becomes the GPU of this process.

    Yields:
        The team.

    Raises:
        RunError: a device with a number: each process has another one.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.training.ddp import joined
        >>> with joined(RunConfig()) as team:
        ...     team.size
        1
    """
    if "RANK" not in os.environ:
        yield ALONE
        return
    if config.device not in ("cpu", "cuda"):
        raise RunError(f"device is {config.device!r}; with torchrun it must be 'cpu' or 'cuda', without a number")
    if config.device == "cuda":
        check_device(config)
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if config.device == "cuda" else "gloo")
    try:
        yield Team(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()


def run(
    config: RunConfig, out: Path | str, *, save_model: bool = False, checkpoint_seconds: float | int = 300.0
) -> bool:
    """Do this process's part of a run and, in one of them, write the result; a run that has one is left as it is.

    Args:
        config: the run.
        out: the folder of the results.
        save_model: whether the weights are kept beside the result.
        checkpoint_seconds: how often the unfinished run is written down.

    Returns:
        Whether there was anything to do.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments.training.ddp import run
        >>> config, folder = RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2), mkdtemp()
        >>> run(config, folder), run(config, folder)
        (True, False)
    """
    if not missing([config], out):
        return False
    with joined(config) as team:
        kept = Checkpoint(file_of(config, out, "checkpoint"), seconds=checkpoint_seconds)
        result = train(config, checkpoint=kept, team=team)
        if team.leads:
            if save_model and result.model is not None:
                write_model(result.model, config, out)
            write_result(result, out)
            kept.path.unlink(missing_ok=True)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a config file from the command line; return the exit code: 0, or 1 after an error in one line.

    Example:
        >>> from posembed.experiments.training.ddp import main
        >>> main(["no-such-file.json", "--out", "results"])
        1
    """
    parser = argparse.ArgumentParser(
        prog="posembed.experiments.training.ddp", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("config", metavar="CONFIG.json", help="the settings that differ from the defaults")
    parser.add_argument("--out", required=True, help="the folder of the results")
    parser.add_argument("--save-model", action="store_true", help="keep the weights beside the result")
    parser.add_argument("--checkpoint-seconds", type=float, default=300.0, help="how often the state is written down")
    options = parser.parse_args(arguments)
    leads = os.environ.get("RANK", "0") == "0"
    try:
        config = read_config(options.config)
        new = run(config, options.out, save_model=options.save_model, checkpoint_seconds=options.checkpoint_seconds)
    except (PosembedError, OSError) as error:
        if leads:
            print(f"posembed: {error}", file=sys.stderr)
        return 1
    if leads:
        print(f"{config.key}: {'done' if new else 'has a result already'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
