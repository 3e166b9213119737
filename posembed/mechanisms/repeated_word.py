"""Whether attention can tell a word from its repetition (Barbero et al. 2024)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..inference import eval_mode
from ..probing.attention_maps import attention_maps, with_weights
from ..probing.hidden_states import checked_texts
from ..public import Whole, public


@public(ProbeInputError)
def repeated_word_attention(model: nn.Module, *, bos: Whole, word: Whole, layer: Whole = 0) -> Float[Tensor, "heads 3"]:
    """Show how the last token of the text [bos, word, word] attends to the three.

    In the first layer of a model without positions both occurrences have the same key, so every head gives them equal
    weights, whatever its parameters: none can look at the token itself or at the one before it, as heads with RoPE can
    (Barbero et al. 2024). In deeper layers of a causal model the two differ, because the first layer has seen fewer
    tokens at one than at the other.

    Args:
        model: a model of transformers with one stack of layers, or posembed's `Transformer` or `LanguageModel`.
        bos: the word at the beginning.
        word: the one that stands there twice, another than `bos`.
        layer: which, from 0.

    Returns:
        For each head the weights of the three tokens; they sum to one. In float32, on the CPU.

    Raises:
        ProbeInputError: words or a layer that the model does not have, equal words, or a model without weights.
        ProbeInputError: attention weights are NaN, or do not sum to one.

    Example:
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.mechanisms import repeated_word_attention
        >>> for scheme in ("nopos", "alibi"):
        ...     model = Transformer(TransformerConfig(9, scheme=scheme, n_layers=1))
        ...     _, first, second = repeated_word_attention(model, bos=0, word=5).T
        ...     print(scheme, bool((second - first).abs().max() < 1e-6))
        nopos True
        alibi False
    """
    if word == bos:
        raise ProbeInputError(f"bos and word are both {bos}; give two different words")
    ids = checked_texts(model, torch.tensor([[bos, word, word]]), at_least=1)
    with eval_mode(model), with_weights(model):
        return attention_maps(model, ids, layer)[0, :, -1].float().cpu()
