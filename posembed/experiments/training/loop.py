"""Training, step by step, in a form that can be written down and taken up again."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from ...data import Corpus
from ...errors import RunError
from ...models import LanguageModel, drop_positions
from ..config import RunConfig
from .batches import Batch, Objective, draw_batch
from .optimizer import make_optimizer
from .team import ALONE, Team

# One more for the batches than for the weights: the two must not be drawn from one stream.
BATCHES = 1


class Training:
    """A run on its way: everything that its next step depends on.

    Args:
        model: the untrained model; its weights change.
        config: the run.
        corpus: the text.
        team: the processes that share the run.

    Attributes:
        losses: of the steps so far.
        seconds: that the steps have taken so far, in all processes that have worked on the run one after the other.
        watched: what was found on the way, by the number of steps done; ready for JSON.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.data import load_corpus
        >>> from posembed.experiments import make_model
        >>> from posembed.experiments.training.loop import Training
        >>> config = RunConfig(n_layers=1, d_model=8, n_heads=2, batch_size=2, steps=2)
        >>> training = Training(make_model(config, load_corpus()), config, load_corpus())
        >>> training.run()
        >>> len(training.losses)
        2
    """

    def __init__(self, model: LanguageModel, config: RunConfig, corpus: Corpus, team: Team = ALONE):
        team.check(config)
        self.model, self.config, self.corpus, self.team = model, config, corpus, team
        self.optimizer, self.schedule = make_optimizer(model, config)
        self.generator = torch.Generator().manual_seed(config.seed * 2 + BATCHES)
        self.losses: list[float] = []
        self.seconds = 0.0
        self.watched: dict[str, Any] = {}
        self._prepare()

    def run(self, after_step: Callable[[], None] = lambda: None) -> None:
        """Take the steps that are left.

        Args:
            after_step: called after each.

        Raises:
            RunError: the loss became NaN or infinite.
        """
        self.model.train()
        while len(self.losses) < self.config.all_steps:
            if self.config.drops_positions and len(self.losses) == self.config.steps:
                self._drop_positions()
            start = time.perf_counter()
            self.losses.append(self._step())
            self.seconds += time.perf_counter() - start
            self._check()
            after_step()

    def state(self) -> dict[str, Any]:
        """Return all that the next step depends on, as tensors, numbers and texts."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "generator": self.generator.get_state(),
            "random": self.team.gather(torch.get_rng_state()),
            "random on the GPU": self.team.gather(self._gpu_state()),
            "losses": torch.tensor(self.losses, dtype=torch.float64),
            "seconds": self.seconds,
            "watched": json.dumps(self.watched),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to where `state` was called."""
        if self.config.drops_positions and len(state["losses"]) > self.config.steps:
            self._drop_positions()
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"][self.team.rank])
        if self.config.device.startswith("cuda"):
            torch.cuda.set_rng_state(state["random on the GPU"][self.team.rank], self.config.device)
        self.losses, self.seconds = state["losses"].tolist(), state["seconds"]
        self.watched = json.loads(state["watched"])

    def _prepare(self) -> None:
        self._joined: Any = self.team.join(Objective(self.model, self.config), self.config)
        self._objective: Any = torch.compile(self._joined) if self.config.compile else self._joined

    def _drop_positions(self) -> None:
        drop_positions(self.model.transformer)
        # The processes of a team must not wait for the gradient of what is no longer there.
        self._prepare()

    def _gpu_state(self) -> torch.Tensor:
        if not self.config.device.startswith("cuda"):
            return torch.empty(0, dtype=torch.uint8)
        return torch.cuda.get_rng_state(self.config.device)

    def _step(self) -> float:
        batch = draw_batch(self.corpus.train, len(self.losses), self.config, self.generator)
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.team.share(batch, self.config)
        loss = sum(self._learn(part, weight, part is parts[-1][0]) for part, weight in parts)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.largest_gradient)
        self.optimizer.step()
        self.schedule.step()
        return self.team.sum(loss)

    def _learn(self, part: Batch, weight: float, last: bool) -> float:
        """Add the gradient of a part; return what it adds to the step's loss."""
        # Processes exchange gradients once a step, with the last part.
        alone: Any = nullcontext() if last or self.team.size == 1 else self._joined.no_sync()
        with alone:
            loss = self._objective(*part.tensors(self.config.device)) * weight
            # Gradients of several processes are averaged, and here they are to be added.
            (loss * self.team.size).backward()
        return float(loss.detach())

    def _check(self) -> None:
        if not math.isfinite(self.losses[-1]):
            raise RunError(
                f"the loss of {self.config.scheme} is {self.losses[-1]} at step {len(self.losses)}; lower the learning "
                f"rate ({self.config.learning_rate}) or lengthen the warm-up ({self.config.warmup} steps)"
            )
