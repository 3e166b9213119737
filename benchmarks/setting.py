"""What the candidates of attention are given: queries, keys and values, or a layer's input and its weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

# Of Shaw's offsets.
CLIP = 16


@dataclass(frozen=True)
class Setting:
    """One scheme in one kind of model, of one size.

    Attributes:
        scheme: "rope", "alibi", "t5" or "shaw".
        causal: the kind of model.
        training: whether the backward pass is wanted.
        length: the number of tokens.
        n_heads: the number of heads.
        d_head: their width.
        quick: whether what takes long to compile is left out.
    """

    scheme: str
    causal: bool
    training: bool
    length: int
    n_heads: int
    d_head: int
    quick: bool

    @property
    def sizes(self) -> tuple[int, int, int, bool]:
        """What stays the same with and without the backward pass."""
        return self.length, self.n_heads, self.d_head, self.quick

    @property
    def d_model(self) -> int:
        """The width of the model."""
        return self.n_heads * self.d_head

    def table(self, generator: torch.Generator) -> nn.Parameter | None:
        """Draw the learned numbers of a scheme: T5's "buckets heads", Shaw's "offsets d_head"."""
        shapes = {"t5": (32, self.n_heads), "shaw": (2 * CLIP + 1, self.d_head)}
        shape = shapes.get(self.scheme)
        return None if shape is None else nn.Parameter(torch.randn(shape, generator=generator))


@dataclass(frozen=True)
class Function:
    """Queries, keys and values, "batch heads seq d_head", the scheme's table, and the gradient of the output."""

    q: Tensor
    k: Tensor
    v: Tensor
    table: Tensor | None
    upstream: Tensor

    @classmethod
    def drawn(cls, setting: Setting) -> Function:
        """Draw all of it, always the same."""
        generator = torch.Generator().manual_seed(0)
        shape = (1, setting.n_heads, setting.length, setting.d_head)
        q, k, v, upstream = (torch.randn(shape, generator=generator) for _ in range(4))
        return cls(q, k, v, setting.table(generator), upstream)

    def double(self) -> Function:
        """The same numbers in float64."""
        tensors = {name: None if each is None else each.detach().double() for name, each in vars(self).items()}
        return Function(**tensors)

    def wanting_gradients(self) -> Function:
        """The same numbers as leaves of a graph of their own."""
        leaves = {name: nn.Parameter(each.detach()) for name, each in vars(self).items() if each is not None}
        return replace(self, **(leaves | {"upstream": self.upstream}))

    @property
    def wanted(self) -> list[Tensor]:
        """What gradients are wanted for."""
        return [each for each in (self.q, self.k, self.v, self.table) if each is not None]


@dataclass(frozen=True)
class Layer:
    """A layer's input "batch seq d_model", its four projections, the scheme's table, and the gradient of the output."""

    x: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    table: Tensor | None
    upstream: Tensor

    @classmethod
    def drawn(cls, setting: Setting) -> Layer:
        """Draw all of it, always the same; queries and keys come out with a variance of one."""
        generator = torch.Generator().manual_seed(0)
        width = setting.d_model
        x, upstream = (torch.randn(1, setting.length, width, generator=generator) for _ in range(2))
        weights = [torch.randn(width, width, generator=generator) / width**0.5 for _ in range(4)]
        return cls(x, *weights, setting.table(generator), upstream)

    def double(self) -> Layer:
        """The same numbers in float64."""
        tensors = {name: None if each is None else each.detach().double() for name, each in vars(self).items()}
        return Layer(**tensors)
