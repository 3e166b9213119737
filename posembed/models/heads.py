"""What stands on a Transformer, besides `LanguageModel`: classes."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ModelInputError
from ..public import Count, public
from .transformer import Transformer, TransformerConfig


class SequenceClassifier(nn.Module):
    """A Transformer that puts a sequence into one of several classes.

    Args:
        body: a `Transformer`, trained or not, which is shared and not copied; or the config of a new one.
        n_classes: the number of classes.
        pooling: what stands for the sequence: "mean", the mean of its tokens' last states without padding; "first", the
            state of its first token (BERT's [CLS]).

    Raises:
        ModelInputError: fewer than one class, an unknown pooling, or the first token of a causal model, which sees
            nothing of the sequence; a mask that is no padding mask, or that leaves nothing of a sequence.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from posembed.models import SequenceClassifier
        >>> model = SequenceClassifier(TransformerConfig(vocab_size=100, causal=False), 3)
        >>> model(torch.arange(10).view(2, 5)).shape
        torch.Size([2, 3])
    """

    @public(ModelInputError)
    def __init__(
        self,
        body: Transformer | TransformerConfig,
        n_classes: Count,
        *,
        pooling: Literal["mean", "first"] = "mean",
    ):
        super().__init__()
        self.transformer = body if isinstance(body, Transformer) else Transformer(body)
        config = self.transformer.config
        if pooling == "first" and config.causal:
            raise ModelInputError("the first token of a causal model sees no other; choose pooling='mean'")
        self.pooling = pooling
        self.dropout = nn.Dropout(config.dropout)
        self.classes = linear(config.d_model, n_classes, config)

    def forward(
        self,
        ids: Int[Tensor, "batch seq"] | Float[Tensor, "batch seq d_model"],
        *args: Any,
        attention_mask: Any = None,
        **options: Any,
    ) -> Float[Tensor, "batch classes"]:
        """Return the logits of the classes; the arguments are those of `Transformer`, with a padding mask if any."""
        states = self.transformer(ids, *args, attention_mask=attention_mask, **options)
        tokens = tokens_of(attention_mask, states)
        if self.pooling == "mean":
            pooled = (states * tokens[..., None]).sum(1) / tokens.sum(1, keepdim=True)
        else:
            pooled = states[torch.arange(len(states), device=states.device), tokens.int().argmax(1)]
        return self.classes(self.dropout(pooled))


def linear(n_in: int, n_out: int, config: TransformerConfig) -> nn.Linear:
    """Make a linear layer that starts as those of the model do."""
    layer = nn.Linear(n_in, n_out)
    nn.init.normal_(layer.weight, std=config.weight_std)
    nn.init.zeros_(layer.bias)
    return layer


def tokens_of(mask: Any, states: Tensor) -> Tensor:
    """Which places hold tokens and no padding."""
    if mask is None:
        return states.new_ones(states.shape[:2], dtype=torch.bool)
    if mask.shape != states.shape[:2]:
        raise ModelInputError(
            f"attention_mask is {tuple(mask.shape)}; here it must mark padding, in the shape of the ids"
        )
    tokens = mask.bool()
    if not torch.compiler.is_compiling() and not bool(tokens.any(1).all()):
        raise ModelInputError("attention_mask leaves nothing of a sequence; take it out of the batch")
    return tokens
