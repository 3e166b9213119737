"""Whole training steps of a causal language model: posembed's loop, GPT-2 of transformers, a model written by hand.

All three begin with the same weights and read the same pieces of a random text. So they must have as many parameters as
the formula says, and their losses are those of one training in float64, but for rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from posembed import RunConfig

from .case import Candidate, Case
from .goals import no_more_memory, no_slower
from .loops import Start, Steps, plain_loop, posembed_loop
from .nano import nano_gpt

# As many ids as the text that posembed trains on has characters.
VOCAB_SIZE, N_TOKENS = 83, 2**16
# Of a call. From the second one on the optimizer has all its numbers in memory.
STEPS = 3
# A call takes up to a second, and differences are of a few hundredths.
SECONDS = 180.0
QUICK = {"n_layers": 2, "d_model": 16, "n_heads": 2, "length": 16, "batch_size": 4}
SMALL = {"n_layers": 4, "d_model": 64, "n_heads": 4, "length": 64, "batch_size": 32}
LARGER = {"n_layers": 6, "d_model": 128, "n_heads": 4, "length": 128, "batch_size": 16}
ON_GPU = {"n_layers": 8, "d_model": 512, "n_heads": 8, "length": 512, "batch_size": 64}
# Of the losses of three steps.
BOUND = 2e-6

# The number of parameters, and the losses of some steps.
Answer = tuple[Tensor, Tensor]


def cases(quick: bool) -> list[Case]:
    """Two sizes on the CPU, and a larger one where there is a GPU."""
    if quick:
        return [case(settings(QUICK))]
    found = [case(settings(SMALL)), case(settings(LARGER))]
    if torch.cuda.is_available():
        found.append(case(settings(ON_GPU, device="cuda")))
    return found


def settings(sizes: Mapping[str, int], **others: Any) -> RunConfig:
    """Make the config of a run. So long a run is timed at its beginning, where its rate is still the highest one."""
    return RunConfig(
        scheme="learned",
        scale_embeddings=False,
        learning_rate=1e-3,
        warmup=0,
        steps=10**9,
        **sizes,
        **others,
    )


def case(config: RunConfig) -> Case:
    """Training as this config says."""
    return Case(
        "training",
        f"{config.n_layers} layers, width {config.d_model}, {config.n_heads} heads, length {config.length}, "
        f"batch {config.batch_size}, float32 on {'the CPU' if config.device == 'cpu' else 'a GPU'}",
        partial(start, config),
        [
            Candidate("posembed train", _posembed, "the loop of posembed.train"),
            Candidate(
                "transformers GPT2LMHeadModel (sdpa)", _transformers, "in a plain loop, with PyTorch's AdamW as it is"
            ),
            Candidate("by hand, as nanoGPT", _nano, "in the same loop; queries, keys and values are one product"),
        ],
        reference,
        BOUND,
        [no_slower(), no_more_memory()],
        tokens=STEPS * config.batch_size * (config.length - 1),
        seconds=SECONDS,
        device=config.device,
    )


def start(config: RunConfig, n_tokens: int = N_TOKENS) -> Start:
    """Draw a text of so many tokens and the first weights, always the same."""
    text = torch.randint(VOCAB_SIZE, (n_tokens,), generator=torch.Generator().manual_seed(0))
    sizes = GPT2Config(
        vocab_size=VOCAB_SIZE, n_positions=config.length, n_embd=config.d_model, n_layer=config.n_layers,
        n_head=config.n_heads, activation_function="gelu", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        use_cache=False, bos_token_id=None, eos_token_id=None, attn_implementation="sdpa",
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Start(config, VOCAB_SIZE, text, GPT2LMHeadModel(sizes))


def reference(given: Start) -> Answer:
    """Count by the formula, and train the model by hand in float64."""
    config, width = given.config, given.config.d_model
    count = (VOCAB_SIZE + config.length + config.n_layers * (12 * width + 13) + 2) * width
    losses = plain_loop(nano_gpt(given.model).double(), given)(STEPS)
    return torch.tensor([count], dtype=torch.float64), torch.tensor(losses, dtype=torch.float64)


def _posembed(given: Start) -> Callable[[], Answer]:
    return _call(given, *posembed_loop(given))


def _transformers(given: Start) -> Callable[[], Answer]:
    model = copy.deepcopy(given.model)
    return _call(given, model, plain_loop(model, given, logits=lambda ids: model(ids).logits))


def _nano(given: Start) -> Callable[[], Answer]:
    model = nano_gpt(given.model)
    return _call(given, model, plain_loop(model, given))


def _call(given: Start, model: nn.Module, steps: Steps) -> Callable[[], Answer]:
    count = torch.tensor([sum(each.numel() for each in model.parameters())])

    def call() -> Answer:
        losses = torch.tensor(steps(STEPS))
        if given.config.device == "cuda":
            torch.cuda.synchronize()
        return count, losses

    return call
