"""Training loops that begin with the same weights and read the same pieces of a text: posembed's, and a plain one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GPT2LMHeadModel

from posembed import RunConfig
from posembed.data import Characters, Corpus
from posembed.experiments import make_model
from posembed.experiments.training import BETAS, LARGEST_GRADIENT, Training
from posembed.models import from_transformers

# Some steps of training, and their losses.
Steps = Callable[[int], list[float]]


@dataclass(frozen=True)
class Start:
    """What all loops begin with.

    Attributes:
        config: the run.
        vocab_size: the number of ids.
        text: the ids of its tokens.
        model: with the first weights.
    """

    config: RunConfig
    vocab_size: int
    text: Tensor
    model: GPT2LMHeadModel


def posembed_loop(given: Start) -> tuple[nn.Module, Steps]:
    """The loop of `posembed.train`, and its model."""
    characters = Characters(map(chr, range(ord("!"), ord("!") + given.vocab_size - 2)))
    corpus = Corpus("random tokens", characters, given.text, given.text, given.text)
    model = make_model(given.config, corpus)
    model.load_state_dict(from_transformers(given.model).state_dict())
    training = Training(model, given.config, corpus)
    return model, lambda n_steps: [training.step() for _ in range(n_steps)]


def plain_loop(model: nn.Module, given: Start, *, logits: Callable[[Tensor], Tensor] | None = None) -> Steps:
    """A loop with nothing in it but the work.

    Args:
        model: its weights change.
        given: the text and the config.
        logits: from ids to the logits of the model, where a call of the model returns more than these.
    """
    config = given.config
    predict, model = logits or model, model.to(config.device).train()
    optimizer = _adamw(model, config)
    pieces = _pieces(given)

    def step() -> Tensor:
        ids = next(pieces)
        loss = F.cross_entropy(predict(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
        optimizer.step()
        return loss.detach()

    return lambda n_steps: [float(loss) for loss in [step() for _ in range(n_steps)]]


def _adamw(model: nn.Module, config: RunConfig) -> torch.optim.Optimizer:
    """The matrices of linear layers decay, all else does not."""
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    decayed, others = [], []
    for each in model.parameters():
        (decayed if each.ndim == 2 and id(each) not in embeddings else others).append(each)
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    fused = True if config.device == "cuda" else None
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=BETAS, fused=fused)


def _pieces(given: Start) -> Iterator[Tensor]:
    # As posembed's loop seeds its own.
    generator, length = torch.Generator().manual_seed(1), given.config.length
    for _ in itertools.count():
        starts = torch.randint(len(given.text) - length + 1, (given.config.batch_size,), generator=generator)
        yield given.text[starts[:, None] + torch.arange(length)].to(given.config.device)
