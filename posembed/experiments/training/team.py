"""The processes that share one run: one, or those that torchrun has started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import RunError
from ..config import RunConfig
from .batches import Batch


@dataclass(frozen=True)
class Team:
    """One process among those that share a run.

    All draw the same pieces of a step and each takes its part of them, so a run has the same batches with any number of
    processes. A part counts for as much as it guesses, so the gradients add up to those of a single process.

    Attributes:
        rank: of this process, counted from 0.
        size: how many there are.

    Example:
        >>> from posembed.experiments.training.team import Team
        >>> Team().leads
        True
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def check(self, config: RunConfig) -> None:
        """Refuse a step that cannot be shared out."""
        if config.batch_size % (self.size * config.accumulate):
            raise RunError(
                f"the batch_size is {config.batch_size}; {self.size} processes, each with {config.accumulate} parts, "
                "must divide it"
            )

    def share(self, batch: Batch, config: RunConfig) -> list[tuple[Batch, float]]:
        """Return this process's parts of a step, each with the weight of its mean loss in the step's."""
        parts = batch.split(self.size * config.accumulate)
        mine = parts[self.rank * config.accumulate : (self.rank + 1) * config.accumulate]
        total = batch.n_guesses
        return [(part, part.n_guesses / total) for part in mine]

    def join(self, module: nn.Module, config: RunConfig) -> nn.Module:
        """Return a module whose gradients are those of all processes: their sum over the number of processes."""
        if self.size == 1:
            return module
        from torch.nn.parallel import DistributedDataParallel

        gpus = [torch.device(config.device)] if config.device.startswith("cuda") else None
        return DistributedDataParallel(module, device_ids=gpus)

    def sum(self, value: float) -> float:
        """Add up a number of all processes."""
        if self.size == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64, device=_device())
        torch.distributed.all_reduce(total)
        return float(total)

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return a tensor of each process, in the order of their ranks."""
        if self.size == 1:
            return [value]
        gathered: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(gathered, value)
        return gathered


ALONE = Team()


def _device() -> str:
    return "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"
