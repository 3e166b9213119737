"""KERPLE: a bias that falls with the distance as a learned kernel says."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, public
from .interface import PositionScheme, ScoreMod
from .positions import compute_dtype

Kernel = Literal["log", "power"]
# Parameters are kept at or above this, as in the authors' code: the kernels are defined for positive ones.
LEAST = 1e-2


class KERPLE(PositionScheme):
    """Kernelized relative positional embedding (Chi et al. 2022, KERPLE).

    The bias is -r1 log(1 + r2 d) or -r1 d^r2 at distance d, with r1, r2 > 0 learned for each head (r2 <= 2 for the
    power), so that it is a conditionally positive definite kernel. The power with r2 = 1 is ALiBi with learned slopes.
    All layers share the parameters, as in the authors' code.

    Args:
        n_heads: the number of heads.
        kernel: "log", which the authors found best, or "power".

    Raises:
        EncodingInputError: fewer than one head, an unknown kernel.

    Example:
        >>> import torch
        >>> from posembed.encodings import KERPLE
        >>> kerple = KERPLE(1, kernel="power")
        >>> _ = kerple.scale.data.fill_(0.5), kerple.shape.data.fill_(1.0)
        >>> kerple.bias_by_offset(torch.tensor([-4, 0])).tolist()
        [[-2.0, -0.0]]
    """

    @public(EncodingInputError)
    def __init__(self, n_heads: Count, *, kernel: Kernel = "log"):
        super().__init__()
        self.n_heads, self.kernel = n_heads, kernel
        # Where the authors' code draws them: uniform up to 2 and 1 for the logarithm, 1 and 2 for the power.
        self.scale = nn.Parameter(torch.rand(n_heads) * (2 if kernel == "log" else 1))
        self.shape = nn.Parameter(torch.rand(n_heads) * (1 if kernel == "log" else 2))

    def bias_by_offset(self, offsets: Integer[Tensor, " offsets"]) -> Float[Tensor, "heads offsets"]:
        """Return the kernel of each distance for each head, in float32 at least."""
        scale, shape = (each[:, None].to(offsets.device) for each in self.kept())
        return self._kernel(offsets.abs().to(scale.dtype), scale, shape)

    def score_mod(self) -> ScoreMod:
        scale, shape = self.kept()

        def hook(score, batch, head, query, key):
            return score + self._kernel((key - query).abs().to(scale.dtype), scale[head], shape[head])

        return hook

    def kept(self) -> tuple[Tensor, Tensor]:
        """Return scale and shape, "heads" each, kept where the kernel is defined, in float32 at least."""
        scale, shape = (each.to(compute_dtype(each)) for each in (self.scale, self.shape))
        return scale.clamp(min=LEAST), shape.clamp(min=LEAST, max=None if self.kernel == "log" else 2.0)

    def _kernel(self, distance: Tensor, scale: Tensor, shape: Tensor) -> Tensor:
        if self.kernel == "log":
            return -scale * torch.log1p(shape * distance)
        return -scale * distance.pow(shape)
