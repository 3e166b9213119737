"""A model that answers a question with a piece of the text."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from posembed.models import Transformer, TransformerConfig
from posembed.models.heads import linear, tokens_of


class SpanLogits(NamedTuple):
    """Where an answer begins and where it ends: one logit for each token, minus infinity for padding.

    Attributes:
        start: "batch seq", for the first token of the answer.
        end: "batch seq", for its last token.

    Example:
        >>> import torch
        >>> from studies.training.span_predictor import SpanLogits
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

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from studies.training.span_predictor import SpanPredictor
        >>> model = SpanPredictor(TransformerConfig(vocab_size=100, causal=False))
        >>> logits = model(torch.arange(10).view(2, 5))
        >>> model.best(logits).shape
        torch.Size([2, 2])
    """

    def __init__(self, body: Transformer | TransformerConfig, *, no_answer: bool = False):
        super().__init__()
        self.transformer = body if isinstance(body, Transformer) else Transformer(body)
        self.no_answer = no_answer
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
        tokens = tokens_of(attention_mask, states)
        return SpanLogits(*self.ends(states).masked_fill(~tokens[..., None], -torch.inf).unbind(-1))

    def best(self, logits: SpanLogits, *, longest: int | None = None) -> Int[Tensor, "batch 2"]:
        """Return the most probable answers, each as its first and its last token; (0, 0) for none where that may be.

        Args:
            logits: as from `forward`.
            longest: the most tokens that an answer may have; None for any number.
        """
        sums = logits.start[:, :, None] + logits.end[:, None, :]
        allowed = torch.ones(sums.shape[1:], dtype=torch.bool, device=sums.device).triu()
        if longest is not None:
            allowed = allowed.tril(longest - 1)
        if self.no_answer:
            allowed[0, 1:] = False
        best = sums.masked_fill(~allowed, -torch.inf).flatten(1).argmax(1)
        return torch.stack([best // sums.shape[2], best % sums.shape[2]], 1)
