"""What stands on a Transformer, besides `LanguageModel`: masked words as BERT predicts them, classes, spans."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..checks import check_flag, check_whole
from ..errors import ModelInputError
from ..public import Count, public
from .transformer import ACTIVATIONS, LanguageModel, Transformer, TransformerConfig


class MaskedLanguageModel(LanguageModel):
    """A `LanguageModel` with BERT's head: one more layer before the logits, and a bias for each token.

    Args:
        config: as for `Transformer`.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from posembed.models import MaskedLanguageModel
        >>> model = MaskedLanguageModel(TransformerConfig(vocab_size=100, causal=False, norm="post"))
        >>> model(torch.arange(5)[None]).shape
        torch.Size([1, 5, 100])
    """

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        dense = linear(config.d_model, config.d_model, config)
        norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.transform = nn.Sequential(dense, ACTIVATIONS[config.activation](), norm)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Return the logits of some hidden states."""
        return super().logits(self.transform(hidden)) + self.bias


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
        self.transformer = _transformer(body)
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
        tokens = _tokens(attention_mask, states)
        if self.pooling == "mean":
            pooled = (states * tokens[..., None]).sum(1) / tokens.sum(1, keepdim=True)
        else:
            pooled = states[torch.arange(len(states), device=states.device), tokens.int().argmax(1)]
        return self.classes(self.dropout(pooled))


class SpanLogits(NamedTuple):
    """Where an answer begins and where it ends: one logit for each token, minus infinity for padding.

    Attributes:
        start: "batch seq", for the first token of the answer.
        end: "batch seq", for its last token.

    Example:
        >>> import torch
        >>> from posembed.models import SpanLogits
        >>> SpanLogits(torch.zeros(2, 5), torch.zeros(2, 5)).end.shape
        torch.Size([2, 5])
    """

    start: Float[Tensor, "batch seq"]
    end: Float[Tensor, "batch seq"]


class SpanPredictor(nn.Module):
    """A Transformer that finds the answer to a question as a piece of the text (Devlin et al. 2019).

    Args:
        body: a `Transformer`, trained or not, which is shared and not copied; or the config of a new one.
        no_answer: whether a text may hold no answer; the first token, which then is no part of the text (BERT's [CLS]),
            stands for that.

    Raises:
        ModelInputError: a mask that is no padding mask, or leaves nothing of a sequence; an answer of no tokens.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from posembed.models import SpanPredictor
        >>> model = SpanPredictor(TransformerConfig(vocab_size=100, causal=False))
        >>> logits = model(torch.arange(10).view(2, 5))
        >>> model.best(logits).shape
        torch.Size([2, 2])
    """

    def __init__(self, body: Transformer | TransformerConfig, *, no_answer: bool = False):
        super().__init__()
        check_flag("no_answer", no_answer, ModelInputError)
        self.transformer, self.no_answer = _transformer(body), no_answer
        self.ends = linear(self.transformer.config.d_model, 2, self.transformer.config)

    def forward(
        self,
        ids: Int[Tensor, "batch seq"] | Float[Tensor, "batch seq d_model"],
        *args: Any,
        attention_mask: Any = None,
        **options: Any,
    ) -> SpanLogits:
        """Return the logits; the arguments are those of `Transformer`, with a padding mask if any."""
        states = self.transformer(ids, *args, attention_mask=attention_mask, **options)
        tokens = _tokens(attention_mask, states)
        return SpanLogits(*self.ends(states).masked_fill(~tokens[..., None], -torch.inf).unbind(-1))

    def best(self, logits: SpanLogits, *, longest: int | None = None) -> Int[Tensor, "batch 2"]:
        """Return the most probable answers, each as its first and its last token; (0, 0) for none where that may be.

        Args:
            logits: as from `forward`.
            longest: the most tokens that an answer may have; None for any number.
        """
        if longest is not None:
            check_whole("longest", longest, ModelInputError)
        if not isinstance(logits, SpanLogits):
            raise ModelInputError(f"logits are a {type(logits).__name__}; give the SpanLogits that the model returns")
        sums = logits.start[:, :, None] + logits.end[:, None, :]
        allowed = torch.ones(sums.shape[1:], dtype=torch.bool, device=sums.device).triu()
        if longest is not None:
            allowed = allowed.tril(longest - 1)
        if self.no_answer:
            allowed[0, 1:] = False
        best = sums.masked_fill(~allowed, -torch.inf).flatten(1).argmax(1)
        return torch.stack([best // sums.shape[2], best % sums.shape[2]], 1)


def _transformer(body: Transformer | TransformerConfig) -> Transformer:
    return body if isinstance(body, Transformer) else Transformer(body)


def linear(n_in: int, n_out: int, config: TransformerConfig) -> nn.Linear:
    """Make a linear layer that starts as those of the model do."""
    layer = nn.Linear(n_in, n_out)
    nn.init.normal_(layer.weight, std=config.weight_std)
    nn.init.zeros_(layer.bias)
    return layer


def _tokens(mask: Any, states: Tensor) -> Tensor:
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
