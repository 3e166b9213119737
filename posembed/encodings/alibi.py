"""ALiBi: a penalty on the attention logits that grows with the distance."""

from __future__ import annotations

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ..errors import EncodingInputError
from ..public import Count, public
from .interface import PositionScheme, ScoreMod


class ALiBi(PositionScheme):
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

    @public(EncodingInputError)
    def __init__(self, n_heads: Count):
        super().__init__()
        self.n_heads, self.slopes = n_heads, alibi_slopes(n_heads)
        self._falls = -self.slopes[:, None].float()

    def bias_by_offset(self, offsets: Integer[Tensor, " offsets"]) -> Float[Tensor, "heads offsets"]:
        """Return -m_h abs(offset) in float32, also in a bfloat16 model, where far keys would fall together."""
        return self._falls.to(offsets.device) * offsets.abs()

    def score_mod(self) -> ScoreMod:
        def hook(score, batch, head, query, key):
            return score - _slope(head, self.n_heads) * (key - query).abs()

        return hook


@public(EncodingInputError)
def alibi_slopes(n_heads: Count) -> Float[Tensor, " heads"]:
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
    # On the CPU also inside `with torch.device("meta")`: no weights replace them.
    return _slope(torch.arange(n_heads, dtype=torch.float64, device="cpu"), n_heads)


def _slope(head: Tensor, n_heads: int) -> Tensor:
    """The slope of a head, computed from its index: so a hook needs no tensor on the device of the scores."""
    power = 1 << (int(n_heads).bit_length() - 1)
    return 2.0 ** torch.where(head < power, -8 * (head + 1) / power, -4 * (2 * (head - power) + 1) / power)
