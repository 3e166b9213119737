"""ALiBi: a penalty on the attention logits that grows with the distance."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ._checks import check_whole
from .interface import DerivedBuffers, ScoreMod, Sizes


class ALiBi(DerivedBuffers):
    """Attention with linear biases (Press et al. 2022, Train Short, Test Long, section 3).

    Head h adds minus m_h times the distance to its logits. A causal model sees only the past side of it; for a
    bidirectional one this is the symmetric form that the authors suggest. Any position works, however far.

    Args:
        n_heads: the number of heads. For a power of two the slopes are 2^(-8/n), 2^(-16/n), and so on; otherwise those
            of the next lower power of two, and every second one of twice that, as in the authors' code.

    Raises:
        EncodingInputError: fewer than one head.

    Example:
        >>> import torch
        >>> from posembed.encodings import ALiBi
        >>> ALiBi(2).bias_by_offset(torch.tensor([-2, -1, 0]))
        tensor([[-0.1250, -0.0625, -0.0000],
                [-0.0078, -0.0039, -0.0000]])
    """

    slopes: Tensor

    def __init__(self, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        alibi_slopes(n_heads)
        self._derive(torch.get_default_device())

    @classmethod
    def build(cls, sizes: Sizes, **options: Any) -> ALiBi:
        (n_heads,) = sizes.need("alibi", "n_heads")
        return cls(n_heads, **options)

    def derived(self) -> dict[str, Tensor]:
        return {"slopes": alibi_slopes(self.n_heads)}

    def bias_by_offset(self, offsets: Integer[Tensor, " offsets"]) -> Float[Tensor, "heads offsets"]:
        """Return -m_h abs(offset) in float32, also in a bfloat16 model, where far keys would fall together."""
        slopes = self.slopes.to(torch.float32).to(offsets.device)
        return -slopes[:, None] * offsets.abs()

    def score_mod(self) -> ScoreMod:
        slopes = self.slopes.to(torch.float32)

        def hook(score, batch, head, query, key):
            return score - slopes[head] * (key - query).abs()

        return hook

    def extra_repr(self) -> str:
        return f"{self.n_heads}"


def alibi_slopes(n_heads: int) -> Float[Tensor, " heads"]:
    """Make the slopes of ALiBi's heads (Press et al. 2022, section 3, and the authors' code for other head counts).

    Args:
        n_heads: the number of heads.

    Returns:
        The slopes, in float64.

    Raises:
        EncodingInputError: fewer than one head.

    Example:
        >>> from posembed.encodings import alibi_slopes
        >>> alibi_slopes(3)
        tensor([0.0625, 0.0039, 0.2500], dtype=torch.float64)
    """
    check_whole("n_heads", n_heads)
    power = 1 << (n_heads.bit_length() - 1)
    regular, finer = _geometric(power), _geometric(2 * power)
    return torch.cat([regular, finer[::2][: n_heads - power]])


def _geometric(n_heads: int) -> Tensor:
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)
