"""What is measured on a trained model: its loss, its loss by position, what its scheme has learned."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from ..data import Corpus, Tokens, windows_in_order
from ..encodings import Learned, LinearScaling, Llama3Scaling, NTKScaling, PositionScheme, RoPE, YaRNScaling
from ..errors import RunError
from ..models import LanguageModel
from .config import RunConfig
from .objectives import Objective

# About 130 000 tokens for the loss, 260 000 for the loss by position.
TOKENS, TOKENS_BY_POSITION = 2**17, 2**18
# Positions are joined in groups of this many: single ones are too noisy to be drawn.
GROUP = 16
# Hidden tokens of a text are the same for every run.
MASK_SEED = 12345
# A scheme's own numbers are stored where they are fewer.
FEW = 1024
BATCH_TOKENS = 2**14
SCALINGS: dict[str, Any] = {"linear": LinearScaling, "ntk": NTKScaling, "yarn": YaRNScaling, "llama3": Llama3Scaling}


def measure(model: LanguageModel, corpus: Corpus, objective: Objective, config: RunConfig) -> dict[str, Any]:
    """Measure a trained model, in evaluation mode, on the validation and the test text; `train` says what."""
    metrics: dict[str, Any] = {
        "loss": loss_of(model, corpus.test, objective, config.length),
        "validation_loss": loss_of(model, corpus.validation, objective, config.length),
        **measure_sizes(model),
    }
    if config.objective == "causal":
        found = corpus.perplexities(metrics["loss"])
        # A word is what stands between blanks: of a text with few it may be as long as a page.
        named = {"perplexity_per_token": round(found.per_token, 4), "perplexity_per_word": round(found.per_word, 2)}
        metrics |= {name: value for name, value in named.items() if math.isfinite(value)}
    if config.test_length is not None:
        metrics["loss_by_position"] = loss_by_position(model, corpus.test, objective, config.test_length)
        if config.test_scalings:
            metrics["loss_by_position_scaled"] = scaled_losses(model, corpus.test, objective, config)
    return metrics


def measure_sizes(model: Any) -> dict[str, Any]:
    """How many parameters a model has, how many of them are of its scheme, and the scheme's own numbers."""
    scheme = model.transformer.position_scheme
    of_scheme = (*scheme.parameters(), *model.transformer.added_anew.parameters())
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "scheme_parameters": sum(parameter.numel() for parameter in of_scheme),
        "scheme": parameters_of_scheme(scheme),
    }


def loss_of(model: LanguageModel, text: Tokens, objective: Objective, length: int) -> float:
    """The mean loss on a text in pieces of a length, in nats a guessed token.

    Raises:
        RunError: an answer of the model is no number.
    """
    total, count = 0.0, 0
    for losses in text_losses(model, text, objective, length, TOKENS):
        total, count = total + float(losses.double().nansum()), count + int((~losses.isnan()).sum())
    if not math.isfinite(total):
        scheme = type(model.transformer.position_scheme).__name__
        raise RunError(f"the loss of {scheme} is no number on some of the text; look at what it computes")
    return round(total / count, 6)


def loss_by_position(model: LanguageModel, text: Tokens, objective: Objective, length: int) -> list[float]:
    """The mean loss of a text's tokens at positions 0 to 15, 16 to 31, ... of pieces of a length.

    Returns:
        One number for each group of 16 positions; the last one may be smaller. In nats a guessed token; NaN where any
        of them has no number for its loss.
    """
    batches = list(text_losses(model, text, objective, length, TOKENS_BY_POSITION))
    groups = torch.cat(batches).double().split(GROUP, dim=1)
    means = [float(group.nanmean()) for group in groups]
    return [round(each, 5) if math.isfinite(each) else math.nan for each in means]


def mean_between(losses: Sequence[float], first: int, end: int) -> float:
    """The mean of losses by position from ``first`` to before ``end``, both multiples of 16."""
    return fmean(losses[first // GROUP : end // GROUP])


def text_losses(
    model: LanguageModel, text: Tokens, objective: Objective, length: int, n_tokens: int
) -> Iterator[Float[Tensor, "pieces length"]]:
    """Yield the losses of pieces that are spread over a text, batch by batch; NaN where nothing was guessed.

    Args:
        model: in evaluation mode.
        text: the tokens.
        objective: says what is guessed; hidden tokens are the same each time.
        length: of the pieces.
        n_tokens: about how many are read.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from posembed.data import load_corpus
        >>> from posembed.models import LanguageModel
        >>> from posembed.training import Masked, text_losses
        >>> corpus = load_corpus()
        >>> model = LanguageModel(TransformerConfig(corpus.vocab_size, causal=False)).eval()
        >>> [losses] = text_losses(model, corpus.test, Masked(0.15), 64, 640)
        >>> losses.shape
        torch.Size([10, 64])
    """
    windows = windows_in_order(text, length, n_tokens // length)
    generator = torch.Generator().manual_seed(MASK_SEED)
    for ids in windows.split(max(1, BATCH_TOKENS // length)):
        with torch.inference_mode():
            yield objective.losses(model, ids, generator)


def scaled_losses(
    model: LanguageModel, text: Tokens, objective: Objective, config: RunConfig
) -> dict[str, list[float]]:
    """The loss by position of a model with RoPE under each of the config's scalings, without any training."""
    losses, longest = {}, config.test_length or config.length
    for name in config.test_scalings:
        told: dict[str, Any] = {"factor": longest / config.length}
        if name in ("yarn", "llama3"):
            told["original_max_position_embeddings"] = config.length
        options = {**config.scheme_options.get("rope", {}), "scaling": SCALINGS[name](**told)}
        rope = RoPE(config.d_model // config.n_heads, **options).to(config.device)
        scaled = copy.deepcopy(model)
        for layer in scaled.transformer.layers:
            # RoPE has nothing learned that could be lost.
            cast(Any, layer).attention.position_scheme = rope
        losses[name] = loss_by_position(scaled, text, objective, longest)
    return losses


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
