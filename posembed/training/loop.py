"""Training, step by step, in a form that can be written down and taken up again."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..checks import check_kind, check_whole
from ..data import Characters, Corpus, Task, Tokens, masked, random_windows
from ..errors import RunError
from ..models import LanguageModel, drop_positions
from .cls import with_cls
from .config import RunConfig
from .tasks import task_loss

BETAS, LARGEST_GRADIENT = (0.9, 0.98), 1.0
# Where the cosine ends, as a share of the learning rate.
LOWEST_RATE = 0.1
# One more for the batches than for the weights: the two must not be drawn from one stream.
BATCHES = 1


class Training:
    """A run on its way: everything that its next step depends on.

    Args:
        model: the untrained model; its weights change.
        config: the run.
        corpus: the text, or the task.

    Attributes:
        losses: of the steps so far.
        seconds: that the steps have taken so far, in all processes that have worked on the run one after the other.
        watched: what was found on the way, by the number of steps done; ready for JSON.
    """

    def __init__(self, model: nn.Module, config: RunConfig, corpus: Corpus | Task):
        self.config = config
        self.model: Any = model
        self.corpus: Any = corpus
        self.optimizer = make_optimizer(model, config)
        self.generator = torch.Generator().manual_seed(config.seed * 2 + BATCHES)
        self.losses: list[float] = []
        self.seconds = 0.0
        self.watched: dict[str, Any] = {}

    def run(self, after_step: Callable[[], None] = lambda: None) -> None:
        """Take the steps that are left, with a call after each."""
        while len(self.losses) < self.config.all_steps:
            self.step()
            after_step()

    def step(self) -> float:
        """Take the next step and return its loss.

        Raises:
            RunError: the loss became NaN or infinite.
        """
        start, done, config = time.perf_counter(), len(self.losses), self.config
        self.model.train()
        if config.drops_positions and done == config.steps:
            drop_positions(self.model.transformer)
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * learning_rate_factor(done, config)
        self.optimizer.zero_grad(set_to_none=True)
        # Fast on a GPU; weights, their gradients and the loss stay in float32.
        with torch.autocast("cuda", torch.bfloat16, enabled=self._on_cuda):
            loss = self._loss()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_GRADIENT)
        self.optimizer.step()
        self.losses.append(float(loss.detach()))
        self.seconds += time.perf_counter() - start
        if not math.isfinite(self.losses[-1]):
            advice = (
                f"lower the learning rate ({config.learning_rate}) or lengthen the warm-up ({config.warmup} steps)"
                if done
                else "nothing is learned by then, so look at what the scheme computes, and at weight_std"
            )
            raise RunError(f"the loss of {config.scheme} is {self.losses[-1]} at step {done + 1}; {advice}")
        return self.losses[-1]

    def _loss(self) -> Float[Tensor, ""]:
        """The loss of the next batch."""
        config, corpus = self.config, self.corpus
        if isinstance(corpus, Task):
            texts = corpus.draw(config.batch_size, self.generator)
            return task_loss(self.model, texts, corpus, config, self.generator)
        ids = draw_pieces(corpus.train, len(self.losses), config, self.generator)
        return batch_loss(self.model, ids, config, self.generator)

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
            "watched": json.dumps(self.watched),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to where `state` was called."""
        if self.config.drops_positions and len(state["losses"]) > self.config.steps:
            drop_positions(self.model.transformer)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])
        if self._on_cuda:
            torch.cuda.set_rng_state(state["random on the GPU"], self.config.device)
        self.losses, self.seconds = state["losses"].tolist(), state["seconds"]
        self.watched = json.loads(state["watched"])

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

    Further steps have the same once more.

    Args:
        step: counted from 0.
        config: its warm-up and steps.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.training import learning_rate_factor
        >>> [round(learning_rate_factor(step, RunConfig(warmup=4, steps=9)), 2) for step in (0, 3, 8)]
        [0.25, 1.0, 0.1]
    """
    check_whole("step", step, RunError, least=0)
    check_kind("config", config, RunConfig, "a RunConfig", RunError)
    steps = config.steps
    if step >= steps and config.further_steps is not None:
        step, steps = step - steps, config.further_steps
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step + 1 - config.warmup) / max(1, steps - config.warmup)
    return LOWEST_RATE + (1 - LOWEST_RATE) * (1 + math.cos(math.pi * done)) / 2


def draw_pieces(text: Tokens, step: int, config: RunConfig, generator: torch.Generator) -> Int[Tensor, "pieces length"]:
    """Draw the pieces of a step, counted from 0, from the training text."""
    length, n_pieces = config.read_length, config.batch_size
    if config.short_length is not None and step < round((config.short_share or 0.0) * config.steps):
        length, n_pieces = config.short_length, config.batch_size * (config.length // config.short_length)
    return random_windows(text, length, n_pieces, generator)


def guesses(
    ids: Int[Tensor, "pieces length"], config: RunConfig, generator: torch.Generator
) -> tuple[Int[Tensor, "pieces read"], Int[Tensor, "pieces read"], Bool[Tensor, "pieces read"] | None]:
    """Choose what is to be guessed in some pieces.

    Returns:
        What the model reads, what it should say at each place, and where it is asked; None for everywhere.
    """
    if config.objective == "masked":
        seen, hidden = masked(ids, config.masking_rate or 0.0, Characters.mask_id, generator)
        return seen, ids, hidden
    wanted, asked = ids[:, 1:], None
    if config.guessed_share is not None:
        asked = masked(wanted, config.guessed_share, Characters.mask_id, generator)[1]
    return ids[:, :-1], wanted, asked


def batch_loss(
    model: LanguageModel, ids: Int[Tensor, "pieces length"], config: RunConfig, generator: torch.Generator
) -> Float[Tensor, ""]:
    """The mean loss of some pieces, in nats a guessed token.

    Args:
        model: on the device of the config.
        ids: the pieces, on the CPU.
        config: says what is to be guessed.
        generator: of the random numbers that choose it.
    """
    seen, wanted, asked, positions = with_cls(*guesses(ids, config, generator), config, generator)
    seen, wanted = seen.to(config.device), wanted.to(config.device)
    if asked is None:
        return F.cross_entropy(model(seen).flatten(0, 1), wanted.flatten())
    asked = asked.to(config.device)
    # Logits of the hidden tokens alone: the others are not asked for.
    logits = (
        model.logits(model.transformer(seen, positions)[asked]) if config.objective == "masked" else model(seen)[asked]
    )
    return F.cross_entropy(logits, wanted[asked])
