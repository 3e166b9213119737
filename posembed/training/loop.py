"""Training, step by step, in a form that can be written down and taken up again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import RunError
from .config import RunConfig

BETAS, LARGEST_GRADIENT = (0.9, 0.98), 1.0
# Where the cosine ends, as a share of the learning rate.
LOWEST_RATE = 0.1
# One more for the batches than for the weights: the two must not be drawn from one stream.
BATCHES = 1


class Training:
    """A run on its way: everything that its next step depends on.

    AdamW with a warm-up and a cosine; gradients are cut to a norm of 1.

    Args:
        model: the untrained model; its weights change.
        draw_loss: draws the next batch, by a generator of random numbers, and returns its mean loss.
        config: of the run; of it the steps, the learning rate with its warm-up, the weight decay, the seed and the
            device are read.

    Attributes:
        losses: of the steps so far.
        n_steps: how many there will be.
        seconds: that the steps have taken so far, in all processes that have worked on the run one after the other.
        seconds_before: those in earlier processes.

    Example:
        >>> import torch
        >>> from posembed import RunConfig
        >>> from posembed.training import Training
        >>> model = torch.nn.Linear(1, 1)
        >>> config = RunConfig(steps=50, warmup=5, learning_rate=0.1)
        >>> training = Training(model, lambda generator: (model(torch.ones(1)) - 3).square().mean(), config)
        >>> training.run()
        >>> training.losses[-1] < training.losses[0] / 100
        True
    """

    def __init__(self, model: nn.Module, draw_loss: Callable[[torch.Generator], Tensor], config: RunConfig):
        self.model: Any = model
        self.draw_loss, self.config, self.n_steps = draw_loss, config, config.steps
        self.optimizer = make_optimizer(model, config)
        self.generator = torch.Generator().manual_seed(config.seed * 2 + BATCHES)
        self.losses: list[float] = []
        self.seconds = self.seconds_before = 0.0

    @property
    def is_done(self) -> bool:
        """Whether no step is left."""
        return len(self.losses) == self.n_steps

    def run(self, after_step: Callable[[], None] = lambda: None) -> None:
        """Take the steps that are left, with a call after each."""
        while not self.is_done:
            self.step()
            after_step()

    def step(self) -> float:
        """Take the next step and return its loss.

        Raises:
            RunError: the loss became NaN or infinite.
        """
        start = time.perf_counter()
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * self.rate_factor(len(self.losses))
        self.optimizer.zero_grad(set_to_none=True)
        # Fast on a GPU; weights, their gradients and the loss stay in float32.
        with torch.autocast("cuda", torch.bfloat16, enabled=self._on_cuda):
            loss = self.draw_loss(self.generator)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_GRADIENT)
        self.optimizer.step()
        self.losses.append(float(loss.detach()))
        self.seconds += time.perf_counter() - start
        if not math.isfinite(self.losses[-1]):
            raise RunError(self._diverged())
        return self.losses[-1]

    def rate_factor(self, step: int) -> float:
        """The share of the learning rate at a step, counted from 0."""
        return learning_rate_factor(step, self.config)

    def state(self) -> dict[str, Any]:
        """Return all that the next step depends on, as tensors, numbers and texts."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "random": torch.get_rng_state(),
            "random on the GPU": torch.cuda.get_rng_state(self.config.device) if self._on_cuda else None,
            "losses": torch.tensor(self.losses, dtype=torch.float64),
            "seconds": self.seconds,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to where `state` was called."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])
        if self._on_cuda:
            torch.cuda.set_rng_state(state["random on the GPU"], self.config.device)
        self.losses, self.seconds = state["losses"].tolist(), state["seconds"]
        self.seconds_before = self.seconds

    def _diverged(self) -> str:
        config, n = self.config, len(self.losses)
        advice = f"lower the learning rate ({config.learning_rate}) or lengthen the warm-up ({config.warmup} steps)"
        if n == 1:
            advice = "nothing is learned by then, so look at what the scheme computes, and at weight_std"
        return f"the loss of {config.scheme} is {self.losses[-1]} at step {n}; {advice}"

    @property
    def _on_cuda(self) -> bool:
        return self.config.device.startswith("cuda")


def make_optimizer(model: nn.Module, config: RunConfig) -> torch.optim.AdamW:
    """Make AdamW for a model. Only linear layers decay: a row of a table that no text reaches must stay as it was."""
    decayed = [
        module.weight
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and "position_scheme" not in name
    ]
    kept = {id(parameter) for parameter in decayed}
    others = [parameter for parameter in model.parameters() if id(parameter) not in kept]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    # On a GPU one kernel for all weights; on the CPU one call, with the same numbers as one for each.
    fused, foreach = config.device.startswith("cuda") or None, config.device == "cpu" or None
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=BETAS, fused=fused, foreach=foreach)


def learning_rate_factor(step: int, config: RunConfig) -> float:
    """The share of the highest learning rate at a step: a straight rise, then a cosine that ends at a tenth.

    Args:
        step: counted from 0.
        config: its warm-up and steps.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.training import learning_rate_factor
        >>> [round(learning_rate_factor(step, RunConfig(warmup=4, steps=9)), 2) for step in (0, 3, 8)]
        [0.25, 1.0, 0.1]
    """
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step + 1 - config.warmup) / max(1, config.steps - config.warmup)
    return LOWEST_RATE + (1 - LOWEST_RATE) * (1 + math.cos(math.pi * done)) / 2
