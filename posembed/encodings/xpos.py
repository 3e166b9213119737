"""xPos: rotary positions whose product decays with the distance."""

from __future__ import annotations

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ..errors import EncodingInputError, PositionOutOfRangeError
from ..public import Count, Positive, public
from .angles import angles, cos_sin, rotate_pairs
from .interface import CAUSAL
from .positions import check_positions, compute_dtype, for_heads, known
from .rope import RoPE, RotaryLayout

# The fastest pair's decay over scale_base positions: gamma / (1 + gamma) with the paper's gamma of 0.4.
GAMMA = 0.4
# e to the 80 and its inverse are in float32's range with room for what they are multiplied by, e to the 8 in float16's.
LARGEST_EXPONENT, LARGEST_IN_FLOAT16 = 80.0, 8.0


class XPos(RoPE):
    """Extrapolatable position embedding (Sun et al. 2023, A Length-Extrapolatable Transformer, algorithm 1).

    Pair i of a query at position p is turned as in RoPE and multiplied by z_i^(p / scale_base), that of a key by
    z_i^(-p / scale_base), with z_i = (2i / width + 0.4) / 1.4. The product depends on the offset alone, and pair i's
    part of it is damped by z_i^(distance / scale_base): the further back a key, the more, and the slower a pair turns,
    the less. For keys ahead it would grow without bound, so the scheme is for causal models only.

    Args:
        d_head: the width of a head.
        scale_base: over how many positions pair i is damped by z_i.
        origin: the position where nothing is damped. Queries and keys of one model, and of one cache, must share it;
            positions further from it than 80 scale_base / ln 3.5 (8 in place of 80 in float16) are refused: than 32,695
            for a scale_base of 512.
        base: as for RoPE.
        layout: as for RoPE; "interleaved" is the authors'.

    Raises:
        EncodingInputError: as for RoPE, or a scale_base that is not positive.
        PositionOutOfRangeError: a position too far from the origin; compiled code does not check, and gives infinity or
            NaN where damping leaves the format's range, for a scale_base of 512 in float32 from about 36,000 on.

    Example:
        >>> import torch
        >>> from posembed.encodings import XPos
        >>> q = k = torch.ones(1, 8)
        >>> at = lambda m, n: XPos(8).rotate(q, torch.tensor([m])) @ XPos(8).rotate_keys(k, torch.tensor([n])).T
        >>> torch.allclose(at(700, 100), at(1700, 1100), atol=1e-5)
        True
    """

    objectives = frozenset({CAUSAL})

    @public(EncodingInputError)
    def __init__(
        self,
        d_head: Count,
        *,
        scale_base: Positive = 512,
        origin: int = 0,
        base: Positive = 10000.0,
        layout: RotaryLayout = "interleaved",
    ):
        super().__init__(d_head, base=base, layout=layout)
        self.scale_base, self.origin = scale_base, origin
        share = torch.arange(0, self.width, 2, dtype=torch.float64, device="cpu") / self.width
        self.decay = torch.log((share + GAMMA) / (1 + GAMMA)) / self.scale_base

    def rotate_keys(
        self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."], *, seq_dim: int = -2
    ) -> Tensor:
        """Turn keys and multiply them by the inverse."""
        return self._turned(x.transpose(seq_dim, -2), positions, -1).transpose(seq_dim, -2)

    def _turned(self, x: Tensor, positions: Tensor, sign: int = 1) -> Tensor:
        check_positions(positions, x, width=self.d_head)
        positions = positions.long()[..., None]
        if known(positions):
            self._check_range(positions, x.dtype)
        dtype = compute_dtype(x)
        cos, sin = cos_sin(positions, self.frequencies, torch.float64)
        scale = (sign * angles(positions - self.origin, self.decay)).exp().to(cos.device)
        return rotate_pairs(
            x, for_heads((cos * scale).to(dtype), x), for_heads((sin * scale).to(dtype), x), self.layout
        )

    def _check_range(self, positions: Tensor, dtype: torch.dtype) -> None:
        largest = LARGEST_IN_FLOAT16 if dtype == torch.float16 else LARGEST_EXPONENT
        reach = int(largest / -float(self.decay[0]))
        if positions.numel() and int((positions - self.origin).abs().max()) > reach:
            raise PositionOutOfRangeError(
                f"a position is more than {reach} from the origin {self.origin}, and damping leaves float32's range; "
                "move origin= or raise scale_base="
            )
