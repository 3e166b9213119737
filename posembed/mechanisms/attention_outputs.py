"""What the attention of a layer adds to the hidden states, and how its variance falls with the position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..inference import eval_mode
from ..probing.attention_maps import attention_input
from ..probing.hidden_states import BATCH_SIZE, checked_inputs, own_transformer
from ..public import Seed, Whole, public
from ..seeds import generator
from ..serialization import Record


@public(ProbeInputError)
def attention_outputs(
    model: nn.Module, ids: Int[Tensor, "texts length"], layer: Whole
) -> Float[Tensor, "texts length d_model"]:
    """Run a model of posembed's own in eval mode and say what the attention of a layer, from 0, gives, in float64."""
    own: Any = own_transformer(model)
    if own is None:
        raise ProbeInputError(f"{type(model).__name__} is not posembed's own; give a Transformer or a LanguageModel")
    ids = ids.to(own.words.weight.device)
    attention, at = own.layers[layer].attention, torch.arange(ids.shape[1], device=ids.device)
    with eval_mode(own):
        parts = [attention(attention_input(own, some, layer, at), at) for some in ids.split(BATCH_SIZE)]
    return torch.cat(parts).double().cpu()


# Of fewer, some resamples would be one text and nothing else.
LEAST_TEXTS = 8
N_RESAMPLES = 500
LEVEL = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class VarianceLaw(Record):
    """How the variance of the attention output depends on the position.

    Attributes:
        variance: over texts, the mean of all channels; entry t - 1 is of position t, counted from 1.
        slope: of a straight line through log variance against log t; -1 is variance / t, 0 does not depend on t.
        low: the lower end of the slope's interval.
        high: its upper end.
        layer: from 0.
        n_texts: how many.

    Example:
        >>> import numpy as np
        >>> from posembed.mechanisms import VarianceLaw
        >>> print(VarianceLaw(np.array([1.0, 0.5]), -1.0, -1.02, -0.98, 0, 100))
        layer 0: variance ~ t^-1.000 (-1.020 to -0.980) in 100 texts of 2 tokens
    """

    variance: Float[np.ndarray, " length"]
    slope: float
    low: float
    high: float
    layer: int
    n_texts: int

    def __str__(self) -> str:
        return (
            f"layer {self.layer}: variance ~ t^{self.slope:.3f} ({self.low:.3f} to {self.high:.3f}) "
            f"in {self.n_texts} texts of {len(self.variance)} tokens"
        )


@public(ProbeInputError)
def attention_variance(
    model: nn.Module, ids: Int[Tensor, "texts length"], *, layer: Whole = 0, seed: Seed = 0
) -> VarianceLaw:
    """Measure how the variance of a layer's attention output falls with the position.

    Chi et al. (2023) find that in a causal model without positions, as it is initialised, it falls as 1/t: attention is
    then nearly even, and the mean of t unrelated values varies 1/t as much as one of them. So the size of what
    attention gives tells the position, before any training. In a model that sees both sides it does not fall.

    The variance is over texts, for each channel, and then the mean over channels: what all texts have in common at a
    position, such as a position table, does not count. Words drawn independently are what the law is about; a real
    text repeats itself.

    Args:
        model: posembed's `Transformer` or `LanguageModel`.
        ids: texts of one length, at least eight different ones: ``torch.randint(vocab_size, (512, 64))``, say.
        layer: whose attention, from 0.
        seed: of the bootstrap.

    Returns:
        The variance and the slope; its interval is a bootstrap over texts, because the outputs at the positions of one
        text are not independent. Another initialisation is not in it.

    Raises:
        ProbeInputError: ids that are no texts of one length, too few of them, words or a layer that the model does not
            have, a model of another kind, or an output that does not vary at some position.
        ProbeInputError: attention outputs are NaN or infinite.

    Example:
        >>> import torch
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.mechanisms import attention_variance
        >>> _ = torch.manual_seed(0)
        >>> texts = torch.randint(500, (200, 32))
        >>> round(attention_variance(Transformer(TransformerConfig(500)), texts).slope, 1)
        -1.0
        >>> abs(round(attention_variance(Transformer(TransformerConfig(500, causal=False)), texts).slope, 1))
        0.0
    """
    texts = checked_inputs(model, ids, at_least=LEAST_TEXTS)
    n_different = len(texts.unique(dim=0))
    if n_different < LEAST_TEXTS:
        raise ProbeInputError(f"only {n_different} of {len(texts)} texts differ; give at least {LEAST_TEXTS} that do")
    outputs = attention_outputs(model, texts, layer).numpy()
    moved = outputs - outputs.mean(axis=0)
    variance = np.square(moved).mean(axis=(0, 2))
    # What is left of equal values is their rounding.
    tiny = np.square(np.finfo(np.float32).eps * np.abs(outputs).max())
    if not (variance > tiny).all():
        at = int(np.argmin(variance > tiny))
        raise ProbeInputError(f"the attention output at position {at + 1} is the same in all texts; give other texts")
    low, high = np.quantile(_resampled_slopes(moved, seed), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return VarianceLaw(variance, float(_slope(variance)), float(low), float(high), layer, len(texts))


def _slope(variance: Float[np.ndarray, "*resamples length"]) -> Any:
    """Of the least-squares line through log variance against log t."""
    at = np.log(np.arange(1, variance.shape[-1] + 1))
    at -= at.mean()
    return np.log(variance) @ at / (at @ at)


def _resampled_slopes(moved: Float[np.ndarray, "texts length channels"], seed: int) -> Float[np.ndarray, " resamples"]:
    """The slope of each resample of as many texts, from how often each text is drawn."""
    n = len(moved)
    counts = generator(seed, "texts").multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES) / n
    squares = counts @ np.square(moved).mean(axis=2)
    means = (counts @ moved.reshape(n, -1)).reshape(len(counts), *moved.shape[1:])
    return _slope(squares - np.square(means).mean(axis=2))
