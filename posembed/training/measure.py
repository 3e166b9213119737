"""What is measured on a trained model: its loss, its loss by position, what its scheme has learned."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from ..data import Characters, Tokens, masked, windows_in_order
from ..encodings import Learned, LinearScaling, Llama3Scaling, NTKScaling, PositionScheme, RoPE, YaRNScaling
from ..encodings.rope_scaling import Scaling
from ..errors import RunError
from ..models import LanguageModel
from .cls import with_cls
from .config import RunConfig

# About 130 000 tokens for the loss, 260 000 for the loss by position.
TOKENS, TOKENS_BY_POSITION = 2**17, 2**18
# Positions are joined in groups of this many: single ones are too noisy to be drawn.
GROUP = 16
# Hidden tokens of a text are the same for every run.
MASK_SEED = 12345
# A scheme's own numbers are stored where they are fewer.
FEW = 1024
BATCH_TOKENS = 2**14


def loss_of(model: LanguageModel, ids: Tokens, config: RunConfig) -> float:
    """The mean loss on a text in pieces of the trained length, in nats a guessed token.

    Args:
        model: in evaluation mode, on the device of the config.
        ids: of the text.
        config: says what is guessed.
    """
    total, count = 0.0, 0
    for losses in text_losses(model, ids, config, config.read_length, TOKENS):
        total, count = total + float(losses.double().nansum()), count + int((~losses.isnan()).sum())
    if not math.isfinite(total):
        raise RunError(f"the loss of {config.scheme} is no number on some of the text; look at what it computes")
    return round(total / count, 6)


def mean_between(losses: Sequence[float], first: int, end: int) -> float:
    """The mean of losses by position from ``first`` to before ``end``, both multiples of 16."""
    return fmean(losses[first // GROUP : end // GROUP])


def loss_by_position(model: LanguageModel, ids: Tokens, config: RunConfig) -> list[float]:
    """The mean loss of a text's tokens at positions 0 to 15, 16 to 31, ... of pieces of the test length.

    Args:
        model: in evaluation mode, on the device of the config.
        ids: of the text.
        config: says what is guessed, and how long the pieces are.

    Returns:
        One number for each group of 16 positions; the last one may be smaller. In nats a guessed token; NaN where any
        of them has no number for its loss.
    """
    length = config.test_length or config.length
    batches = list(text_losses(model, ids, config, length, TOKENS_BY_POSITION))
    groups = torch.cat(batches).double().split(GROUP, dim=1)
    means = [float(group.nanmean()) for group in groups]
    return [round(each, 5) if math.isfinite(each) else math.nan for each in means]


def scaled_losses(model: LanguageModel, ids: Tokens, config: RunConfig) -> dict[str, list[float]]:
    """The loss by position of a model with RoPE under each of the config's scalings, without any training.

    Args:
        model: in evaluation mode, on the device of the config.
        ids: of the text.
        config: names the scalings.
    """
    losses = {}
    for name in config.test_scalings:
        scaled = copy.deepcopy(model)
        options = {**config.scheme_options.get("rope", {}), "scaling": _scaling(name, config)}
        rope = RoPE(config.d_model // config.n_heads, **options).to(config.device)
        for layer in scaled.transformer.layers:
            # RoPE has nothing learned that could be lost.
            cast(Any, layer).attention.position_scheme = rope
        losses[name] = loss_by_position(scaled, ids, config)
    return losses


def _scaling(name: str, config: RunConfig) -> Scaling:
    trained, factor = config.length, (config.test_length or config.length) / config.length
    make: dict[str, Callable[[], Scaling]] = {
        "linear": lambda: LinearScaling(factor=factor),
        "ntk": lambda: NTKScaling(factor=factor),
        "yarn": lambda: YaRNScaling(factor=factor, original_max_position_embeddings=trained),
        "llama3": lambda: Llama3Scaling(factor=factor, original_max_position_embeddings=trained),
    }
    return make[name]()


def parameters_of_scheme(module: PositionScheme) -> dict[str, list[float]]:
    """What a scheme has learned: its parameters by name, flat, where they are few; of a table the norm of each row.

    Args:
        module: the scheme.
    """
    if isinstance(module, Learned):
        return {"row_norms": _rounded(module.weight.detach().norm(dim=1))}
    return {
        name: _rounded(value.detach().flatten()) for name, value in module.named_parameters() if value.numel() < FEW
    }


def _rounded(values: Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


def text_losses(model: LanguageModel, text: Tokens, config: RunConfig, length: int, n_tokens: int) -> Iterator[Tensor]:
    """Yield "windows length" of losses, NaN where nothing was to be guessed."""
    windows = windows_in_order(text, length, n_tokens // length)
    generator = torch.Generator().manual_seed(MASK_SEED)
    for ids in windows.split(max(1, BATCH_TOKENS // length)):
        with torch.inference_mode():
            yield _batch_losses(model, ids, config, generator)


def _batch_losses(model: LanguageModel, ids: Tensor, config: RunConfig, generator: torch.Generator) -> Tensor:
    if config.objective == "causal":
        # The first token is given, not guessed.
        logits = F.pad(model(ids[:, :-1].to(config.device)), (0, 0, 1, 0))
        wanted = torch.ones_like(ids, dtype=torch.bool)
        wanted[:, 0] = False
    else:
        seen, wanted = masked(ids, config.masking_rate or 0.0, Characters.mask_id, generator)
        seen, ids, wanted, positions = with_cls(seen, ids, wanted, config, generator)
        logits = model(seen.to(config.device), positions)
    losses = F.cross_entropy(logits.mT.float(), ids.to(config.device), reduction="none").cpu()
    # NaN is what was not asked, so an answer that is no number is infinitely bad.
    return losses.nan_to_num(nan=torch.inf, posinf=torch.inf).masked_fill(~wanted, torch.nan)
