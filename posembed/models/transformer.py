"""A Transformer over any position scheme (Vaswani et al. 2017): pre-norm as GPT-2, or post-norm as BERT."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..encodings import NoPos, PositionScheme, Sizes, scheme
from ..encodings.interface import layers_of
from ..encodings.positions import known
from ..errors import ModelInputError
from ..public import Count, NotNegative, Share, check_fields, public
from .attention import added
from .multi_head import KeyValueCache, MultiHeadAttention

PositionsAdded = Literal["input", "every layer", "layers anew"]


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a Transformer and its position scheme.

    Attributes:
        vocab_size: the number of tokens.
        n_layers: the number of layers.
        d_model: the width.
        n_heads: the number of heads of each layer.
        d_ff: the width between the two layers of the feed-forward network; by default four times d_model.
        scheme: a name for `posembed.scheme`, or a `PositionScheme`.
        scheme_options: more arguments for the schemes, by their names.
        n_positions: the longest text, for schemes with a table.
        causal: whether a token sees only itself and those before it; "positions" as for `MultiHeadAttention`.
        norm: "pre": each part reads normalised inputs, and the sum is normalised at the end (GPT-2). "post": each sum
            is normalised, the embeddings first (BERT).
        dropout: of the embeddings, the attention weights and each part's output, in training.
        scale_embeddings: whether word vectors start with entries of size 1 / sqrt(d_model) and are multiplied by
            sqrt(d_model) before positions are added (Vaswani et al. 2017, section 3.4).
        weight_std: the standard deviation of the weights at the start: those of linear layers, and word vectors that
            are not scaled. The default is that of GPT-2 and BERT, and suits their widths; narrow models learn faster
            with 1 / sqrt(d_model).
        positions_added: where a scheme that adds rows to embeddings adds them. "input": once, to what enters the first
            layer. "every layer": the same rows to what enters each layer, as Universal Transformers do (Dehghani et al.
            2019); no parameter more. "layers anew": rows of its own to what enters each layer; they begin alike, and
            there are n_layers - 1 tables more, of a learned one each n_positions * d_model numbers.

    Example:
        >>> from posembed import TransformerConfig
        >>> TransformerConfig(vocab_size=100, scheme="rope").n_layers
        4
    """

    vocab_size: Count
    n_layers: Count = 4
    d_model: Count = 64
    n_heads: Count = 4
    d_ff: Count | None = None
    scheme: str | PositionScheme = "nopos"
    scheme_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    n_positions: Count | None = None
    causal: bool | Literal["positions"] = True
    norm: Literal["pre", "post"] = "pre"
    dropout: Share = 0.0
    scale_embeddings: bool = False
    weight_std: NotNegative = 0.02
    positions_added: PositionsAdded = "input"

    def __post_init__(self) -> None:
        check_fields(self, ModelInputError)
        Sizes(d_model=self.d_model, n_heads=self.n_heads)


class Transformer(nn.Module):
    """From tokens to hidden states, over any position scheme.

    Where ids are read, "batch seq", embeddings of floats may stand in their place, "batch seq d_model": positions are
    added to them as to word vectors. They are read in the format of the weights, and not scaled.

    Args:
        config: the sizes and the scheme.

    Raises:
        ModelInputError: what is no config; ids that are no integers of shape (batch, seq) or outside the vocabulary;
            embeddings of another width; positions that are to be added again by a scheme that adds none, or anew by
            one that learns none.
        EncodingInputError: a scheme that lacks a size or is not defined for the objective; one of your own whose
            methods take other arguments than those of `PositionScheme`, or whose ``add`` changes the shape.

    Example:
        >>> import torch
        >>> from posembed import Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig(vocab_size=100, scheme="rope"))
        >>> model(torch.arange(5)[None]).shape
        torch.Size([1, 5, 64])
    """

    @public(ModelInputError)
    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocab_size, config.d_model)
        self.position_scheme = scheme(
            config.scheme,
            d_model=config.d_model,
            n_heads=config.n_heads,
            n_layers=config.n_layers,
            n_positions=config.n_positions,
            causal=bool(config.causal),
            options=config.scheme_options,
        )
        self.added_anew = nn.ModuleList(self._schemes_anew())
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(
            TransformerLayer(config, each) for each in layers_of(self.position_scheme, config.n_layers)
        )
        for layer in self.layers:
            # All layers use what stands here under one name: parameters that `torch.func.functional_call` lends to a
            # module of several names stay in it.
            vars(layer.attention)["position_scheme"] = vars(layer.attention)["_modules"].pop("position_scheme")
        # After the last layer (pre-norm) or after the embeddings (post-norm).
        self.norm = nn.LayerNorm(config.d_model)
        self._initialise()

    def forward(
        self,
        ids: Int[Tensor, "batch seq"] | Float[Tensor, "batch seq d_model"],
        positions: Int[Tensor, "..."] | None = None,
        *,
        attention_mask: Any = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Float[Tensor, "batch seq d_model"]:
        """Return the hidden states of the last layer; the arguments are those of `MultiHeadAttention`, and ``caches``
        one for each layer.
        """
        return self.hidden_states(ids, positions, attention_mask=attention_mask, caches=caches)[-1]

    def hidden_states(
        self,
        ids: Int[Tensor, "batch seq"] | Float[Tensor, "batch seq d_model"],
        positions: Int[Tensor, "..."] | None = None,
        *,
        attention_mask: Any = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> list[Float[Tensor, "batch seq d_model"]]:
        """Return the embeddings and the output of each layer; the last one is normalised.

        Positions that are added again are in what enters a layer, and not in the output of the layer before.
        """
        self._check(ids)
        if caches is not None and len({*map(id, caches)}) != len(self.layers):
            raise ModelInputError(f"give {len(self.layers)} caches, one of its own for each layer")
        if caches and len(caches[0]) and not self.config.causal:
            raise ModelInputError(
                "a bidirectional model reads a text whole: earlier tokens would have seen the new ones"
            )
        if positions is None:
            start = 0 if caches is None else len(caches[0])
            positions = torch.arange(start, start + ids.shape[1], device=ids.device)
        x = self.embed(ids, positions)
        states = [x]
        its_caches: Sequence[KeyValueCache | None] = [None] * len(self.layers) if caches is None else caches
        for index, (layer, cache) in enumerate(zip(self.layers, its_caches, strict=True)):
            x = layer(self.entering(index, x, positions), positions, attention_mask=attention_mask, cache=cache)
            states.append(x)
        if self.config.norm == "pre":
            states[-1] = self.norm(x)
        return states

    def embed(
        self,
        ids: Int[Tensor, "batch seq"] | Float[Tensor, "batch seq d_model"],
        positions: Int[Tensor, "..."],
    ) -> Float[Tensor, "batch seq d_model"]:
        """Return what enters the first layer: word vectors and what the scheme adds."""
        given = ids.is_floating_point()
        words = ids.to(self.words.weight.dtype) if given else self.words(ids)
        if self.config.scale_embeddings and not given:
            words = words * self.config.d_model**0.5
        x = added(self.position_scheme, words, positions)
        return self.dropout(self.norm(x) if self.config.norm == "post" else x)

    def entering(
        self, index: int, x: Float[Tensor, "batch seq d_model"], positions: Int[Tensor, "..."]
    ) -> Float[Tensor, "batch seq d_model"]:
        """Return what enters a layer, of what leaves the one before: with positions, where they are added again."""
        if index == 0 or self.config.positions_added == "input":
            return x
        schemes: Any = self.added_anew or [self.position_scheme] * len(self.layers)
        return added(schemes[index - 1], x, positions)

    def _schemes_anew(self) -> list[PositionScheme]:
        """What adds to the layers after the first, where each has its own."""
        added, its_scheme = self.config.positions_added, self.position_scheme
        name = self.config.scheme if isinstance(self.config.scheme, str) else type(its_scheme).__name__
        if added != "input" and not its_scheme.adds:
            raise ModelInputError(f"{name} adds no rows to embeddings, so not to {added} either; leave it out")
        if added != "layers anew":
            return []
        # Of several schemes in one, what does not add would be there as well, without any use.
        if len([*its_scheme.modules()]) > 1 or not [*its_scheme.parameters()]:
            raise ModelInputError(f"{name} is not one scheme that learns rows, to have anew; choose 'every layer'")
        return [copy.deepcopy(its_scheme) for _ in range(self.config.n_layers - 1)]

    def _initialise(self) -> None:
        std, width = self.config.weight_std, self.config.d_model
        for name, module in self.named_modules():
            # A scheme has drawn its own numbers.
            if isinstance(module, nn.Linear) and "position_scheme" not in name:
                nn.init.normal_(module.weight, std=std)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.words.weight, std=width**-0.5 if self.config.scale_embeddings else std)
        # What enters the sum of all layers starts smaller, so that the sum does not grow with their number (GPT-2).
        layers: Any = self.layers
        for layer in layers:
            for output in (layer.attention.output, layer.feed_forward[2]):
                nn.init.normal_(output.weight, std=std / (2 * self.config.n_layers) ** 0.5)

    def _check(self, ids: Tensor) -> None:
        wanted = (self.config.d_model,) if ids.is_floating_point() else ()
        if ids.ndim < 2 or ids.shape[2:] != wanted or not ids.numel():
            raise ModelInputError(
                f"ids are {ids.dtype} of {tuple(ids.shape)}; they must be integers of shape (batch, seq), or "
                f"embeddings, (batch, seq, {self.config.d_model})"
            )
        if not wanted and known(ids) and ids.device.type == "cpu":
            least, most = (int(end) for end in ids.aminmax())
            if least < 0 or most >= self.config.vocab_size:
                outside = least if least < 0 else most
                raise ModelInputError(f"id {outside} is outside the vocabulary of {self.config.vocab_size} tokens")


@public(ModelInputError)
def drop_positions(model: Transformer) -> None:
    """Take a model's positions away; all else stays as it is, what it has learned too.

    Source: Gelberg et al. (2026), who drop the positions of trained models and train them a little further.

    Args:
        model: it is changed: its scheme, and that of each layer, becomes `posembed.encodings.NoPos`.

    Raises:
        ModelInputError: what is no `Transformer`.

    Example:
        >>> import torch
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.models import drop_positions
        >>> model = Transformer(TransformerConfig(vocab_size=100, scheme="rope"))
        >>> drop_positions(model)
        >>> ids = torch.tensor([[1, 2, 3], [2, 1, 3]])
        >>> last = model.layers[0](model.embed(ids, torch.arange(3)), torch.arange(3))[:, 2]
        >>> torch.allclose(last[0], last[1], atol=1e-6)  # one layer that sees no order
        True
    """
    model.position_scheme = NoPos()
    model.added_anew = nn.ModuleList(NoPos() for _ in model.added_anew)
    layers: Any = model.layers
    for layer in layers:
        layer.attention.position_scheme = NoPos()


class TransformerLayer(nn.Module):
    """Attention and a feed-forward network, each with a residual connection and a LayerNorm.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from posembed.encodings import NoPos
        >>> from posembed.models import TransformerLayer
        >>> layer = TransformerLayer(TransformerConfig(vocab_size=9, d_model=8, n_heads=2), NoPos())
        >>> layer(torch.zeros(1, 3, 8), torch.arange(3)).shape
        torch.Size([1, 3, 8])
    """

    def __init__(self, config: TransformerConfig, position_scheme: PositionScheme):
        super().__init__()
        width, d_ff = config.d_model, config.d_ff or 4 * config.d_model
        self.pre_norm = config.norm == "pre"
        self.attention_norm = nn.LayerNorm(width)
        self.attention = MultiHeadAttention(
            width, config.n_heads, position_scheme, causal=config.causal, dropout=config.dropout
        )
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, d_ff), nn.GELU(), nn.Linear(d_ff, width))
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        positions: Int[Tensor, "..."],
        *,
        attention_mask: Any = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch seq d_model"]:
        """Return the tokens after this layer."""
        given = self.attention_norm(x) if self.pre_norm else x
        x = x + self.dropout(self.attention(given, positions, attention_mask=attention_mask, cache=cache))
        if self.pre_norm:
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        x = self.attention_norm(x)
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


class LanguageModel(nn.Module):
    """A Transformer that predicts tokens: the next one (causal), or those that are masked (bidirectional).

    The matrix of word vectors serves for the logits too (Vaswani et al. 2017, section 3.4).

    Args:
        config: as for `Transformer`.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from posembed.models import LanguageModel
        >>> model = LanguageModel(TransformerConfig(vocab_size=100, scheme="alibi"))
        >>> model(torch.arange(5)[None]).shape
        torch.Size([1, 5, 100])
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.transformer = Transformer(config)

    def forward(
        self, ids: Int[Tensor, "batch seq"] | Float[Tensor, "batch seq d_model"], *args: Any, **options: Any
    ) -> Float[Tensor, "batch seq vocab"]:
        """Return the logits; the arguments are those of `Transformer`."""
        return self.logits(self.transformer(ids, *args, **options))

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Return the logits of some hidden states."""
        return hidden @ self.transformer.words.weight.mT
