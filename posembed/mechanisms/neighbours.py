"""How alike the states of two positions are (Zuo et al. 2025)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..probing.hidden_states import checked_texts, hidden_states
from ..public import Count, Whole, public
from .attention_outputs import attention_outputs


@public(ProbeInputError)
def state_similarity(
    model: nn.Module,
    ids: Int[Tensor, "texts length"],
    *,
    layer: Whole = 1,
    part: Literal["state", "attention"] = "state",
) -> Float[Tensor, "length length"]:
    """Average, over texts, the cosine of the states at each two positions.

    Zuo et al. (2025) find that in causal models without positions states are the more alike the nearer they stand to
    each other, also before any training. The reason is that attention gives a running mean of the values so far, and
    the means at neighbouring positions are of nearly the same tokens: see `running_mean_similarity`. In the states it
    is mixed with the words themselves, and the more to be seen the wider the model is: GPT-2's initialisation gives
    attention a share that grows with the width, of 64 channels almost none. In a model that sees both sides distance
    plays no part.

    Args:
        model: posembed's `Transformer` or `LanguageModel`; for states also a model of transformers.
        ids: texts of one length.
        layer: 0 is what enters the first layer, n what leaves the n-th.
        part: "state", or "attention": what the attention of the n-th layer adds to the states.

    Returns:
        The cosines, in float64, for `posembed.properties_of_matrix`; a state of zeros is orthogonal to all.

    Raises:
        ProbeInputError: ids that are no texts of one length, words or a layer that the model does not have, an unknown
            part, or attention asked of a model of another kind.
        ProbeInputError: states are NaN or infinite.

    Example:
        >>> import torch
        >>> from posembed import Transformer, TransformerConfig, properties_of_matrix
        >>> from posembed.mechanisms import state_similarity
        >>> _ = torch.manual_seed(0)
        >>> model = Transformer(TransformerConfig(500, n_layers=1, d_model=256))
        >>> cosines = state_similarity(model, torch.randint(500, (50, 16)))
        >>> bool(cosines[15, 14] > cosines[15, 8] > cosines[15, 1])
        True
        >>> properties_of_matrix(cosines).monotonicity > 0.95
        True
    """
    texts = checked_texts(model, ids, at_least=1)
    if part == "attention":
        states = attention_outputs(model, texts, layer - 1)
    else:
        states = hidden_states(model, texts, [layer])[layer].double()
    units = F.normalize(states, dim=-1)
    # Row by row of one product: channels of all texts side by side.
    return torch.einsum("tid,tjd->ij", units, units) / len(texts)


@public(ProbeInputError)
def running_mean_similarity(length: Count) -> Float[Tensor, "length length"]:
    """The cosines of running means of unrelated values of one size: ``sqrt(i / j)`` at positions i <= j, from 1.

    The sums of the first i and of the first j values have a product of i squares, and lengths of sqrt(i) and sqrt(j).
    It is what even attention to unrelated words gives, up to chance.

    Args:
        length: the number of positions.

    Returns:
        The matrix, in float64.

    Raises:
        ProbeInputError: a length that is not a whole number of at least 1.

    Example:
        >>> from posembed.mechanisms import running_mean_similarity
        >>> running_mean_similarity(4)[3]
        tensor([0.5000, 0.7071, 0.8660, 1.0000], dtype=torch.float64)
    """
    at = torch.arange(1, length + 1, dtype=torch.float64)
    return (torch.minimum(at[:, None], at) / torch.maximum(at[:, None], at)).sqrt()
