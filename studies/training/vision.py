"""A Transformer that reads images as a grid of patches (Dosovitskiy et al. 2021, ViT)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from posembed.encodings import Learned, RoPE, Sinusoidal
from posembed.errors import ModelInputError
from posembed.models import Transformer, TransformerConfig
from posembed.models.heads import linear


class VisionTransformer(nn.Module):
    """From grey images to classes: patches, a linear map, a `Transformer` that sees them all, the mean of its states.

    Source: Dosovitskiy et al. (2021), section 3.1, but for the class token, whose place the mean takes (their appendix
    D.3). The position of a patch is its row and its column where the scheme has two axes
    (``axes`` of `posembed.encodings.RoPE` and `posembed.encodings.Sinusoidal`); else its running number, row * columns
    + column.

    Args:
        config: of the Transformer, which must not be causal; of its vocabulary nothing is read.
        n_classes: the number of classes.
        size: of a side of the images that it is made for, in pixels. A learned table has a row for each of their
            patches.
        patch: of a patch's side, in pixels.

    Raises:
        ModelInputError: a size that the patch does not divide, a causal config; images of a wrong shape or dtype, or of
            a size that the patch does not divide or that a learned table has no rows for.
        EncodingInputError: a scheme with other than one or two axes.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from studies.training.vision import VisionTransformer
        >>> axes = {"rope": {"axes": (8, 8)}}
        >>> config = TransformerConfig(vocab_size=1, causal=False, scheme="rope", scheme_options=axes)
        >>> model = VisionTransformer(config, 10, size=12, patch=2)
        >>> model(torch.zeros(3, 12, 12)).shape, model(torch.zeros(3, 24, 24)).shape
        (torch.Size([3, 10]), torch.Size([3, 10]))
    """

    def __init__(self, config: TransformerConfig, n_classes: int, *, size: int, patch: int):
        super().__init__()
        if config.causal:
            raise ModelInputError("a patch of an image sees those behind it too; give a config with causal=False")
        self.size, self.patch = size, patch
        rows, columns = self._grid(size, size)
        self.transformer = Transformer(replace(config, n_positions=rows * columns))
        self.patches = nn.Linear(patch**2, config.d_model)
        # Pixels of variance one, independent of each other, then give entries of variance one.
        nn.init.normal_(self.patches.weight, std=1 / patch)
        nn.init.zeros_(self.patches.bias)
        self.dropout = nn.Dropout(config.dropout)
        self.classes = linear(config.d_model, n_classes, config)

    def forward(self, images: Float[Tensor, "batch height width"]) -> Float[Tensor, "batch classes"]:
        """Return the logits of the classes."""
        return self.classes(self.dropout(self.hidden_states(images)[-1].mean(1)))

    def hidden_states(
        self, images: Float[Tensor, "batch height width"]
    ) -> list[Float[Tensor, "batch patches d_model"]]:
        """Return the embedded patches, with what the scheme adds to them, and the output of each layer."""
        rows, columns = self._check(images)
        embedded = self.patches(patches_of(images, self.patch))
        return self.transformer.hidden_states(embedded, self.positions(rows, columns).to(images.device))

    def positions(self, rows: int, columns: int) -> Int[Tensor, "..."]:
        """Return the positions of a grid's patches, row by row: "patches 2" for a scheme of two axes, else "patches".

        Example:
            >>> from posembed import TransformerConfig
            >>> from studies.training.vision import VisionTransformer
            >>> config = TransformerConfig(vocab_size=1, causal=False)
            >>> VisionTransformer(config, 10, size=12, patch=2).positions(2, 3)
            tensor([0, 1, 2, 3, 4, 5])
        """
        numbers = torch.arange(rows * columns)
        if self.transformer.position_scheme.n_axes is None:
            return numbers
        return torch.stack([numbers // columns, numbers % columns], -1)

    @property
    def has_table(self) -> bool:
        """Whether the scheme, or a part of it, has a learned row for each patch."""
        return any(isinstance(part, Learned) for part in self.transformer.position_scheme.modules())

    def resized(self, size: int) -> VisionTransformer:
        """Return a copy for square images of another size, whose positions lie between those that were trained.

        The rows of a learned table are interpolated on their grid, bicubically (section 3.2 of the source). Angles on
        two axes, of `Sinusoidal` and `RoPE`, are divided by how much longer a side has become (position interpolation,
        Chen et al. 2023). Other schemes stay as they are.

        Args:
            size: of a side, in pixels.

        Raises:
            ModelInputError: a size that the patch does not divide.

        Example:
            >>> import torch
            >>> from posembed import TransformerConfig
            >>> from studies.training.vision import VisionTransformer
            >>> config = TransformerConfig(vocab_size=1, causal=False, scheme="learned")
            >>> larger = VisionTransformer(config, 10, size=12, patch=2).resized(24)
            >>> larger.transformer.position_scheme
            Learned(144, 64)
        """
        (old, _), (new, _) = self._grid(self.size, self.size), self._grid(size, size)
        other = copy.deepcopy(self)
        other.size = size
        for part in other.transformer.position_scheme.modules():
            if isinstance(part, Learned):
                part.weight = nn.Parameter(_interpolated(part.weight.detach(), old, new))
            elif isinstance(part, Sinusoidal | RoPE) and part.n_axes == 2:
                part.frequencies = part.frequencies * (old / new)
        return other

    def _grid(self, height: int, width: int) -> tuple[int, int]:
        if height % self.patch or width % self.patch:
            raise ModelInputError(
                f"images of {height} x {width} pixels are not divided by patches of {self.patch} x {self.patch}; cut "
                "or enlarge them"
            )
        return height // self.patch, width // self.patch

    def _check(self, images: Any) -> tuple[int, int]:
        """Refuse what cannot be read, and return the rows and columns of patches."""
        _check_images(images)
        grid, made_for = self._grid(*images.shape[1:]), self._grid(self.size, self.size)
        if self.has_table and grid != made_for:
            raise ModelInputError(
                f"images of {grid[0]} x {grid[1]} patches have no rows in a learned table for {made_for[0]} x "
                f"{made_for[1]}; call resized(size), which interpolates them, for a model of that size"
            )
        return grid


def _check_images(images: Any) -> None:
    if not isinstance(images, Tensor) or images.ndim != 3 or not images.is_floating_point() or not images.numel():
        given = f"{images.dtype} of {tuple(images.shape)}" if isinstance(images, Tensor) else type(images).__name__
        raise ModelInputError(f"images are {given}; they must be floating-point of shape (batch, height, width)")


def patches_of(images: Float[Tensor, "batch height width"], patch: int) -> Float[Tensor, "batch patches pixels"]:
    """Cut images into square patches, row by row, each with its pixels row by row.

    Args:
        images: of a height and a width that the patch divides.
        patch: of a patch's side, in pixels.

    Raises:
        ModelInputError: images of another shape, or that patches do not cover.

    Example:
        >>> import torch
        >>> from studies.training.vision import patches_of
        >>> patches_of(torch.arange(8.0).view(1, 2, 4), 2)
        tensor([[[0., 1., 4., 5.],
                 [2., 3., 6., 7.]]])
    """
    _check_images(images)
    if images.shape[1] % patch or images.shape[2] % patch:
        raise ModelInputError(f"patches of {patch} do not cover images of {images.shape[1]} x {images.shape[2]} pixels")
    return F.unfold(images[:, None], patch, stride=patch).mT


def _interpolated(table: Tensor, old: int, new: int) -> Float[Tensor, "positions d_model"]:
    """The rows of a square grid at the places of another one that covers the same area."""
    grid = table.float().mT.unflatten(1, (old, old))[None]
    larger = F.interpolate(grid, size=(new, new), mode="bicubic", align_corners=False)
    return larger[0].flatten(1).mT.to(table.dtype).contiguous()
