"""Figure 10: how a causal mask becomes a position: attention makes 1/t of a mark, and a network makes t of it."""

from __future__ import annotations

from typing import Any

import torch

from ..mechanisms import CountingTransformer
from ..mechanisms.counting import COUNT, MARK, SHARE
from .base import InteractiveFigure, html_table

# Some words come again: which one stands at a place does not matter. They are few and short, for a phone.
WORDS = ["bos", "the", "cat", "bit", "the", "dog", "and", "the", "dog", "bit", "it"]
N_TOKENS = len(WORDS)
VOCABULARY = list(dict.fromkeys(WORDS))
LENGTHS = range(2, N_TOKENS + 1)


class CountingFigure(InteractiveFigure):
    """Step through a text, and see how a causal layer without positions counts its tokens.

    The layer is `CountingTransformer` of the mechanisms, after Theorem 1 of Kazemnejad et al. (2023). Token t spreads
    its attention evenly over the t tokens that it sees, of which the first carries a mark: 1/t arrives. Rectified units
    make t of it, up to the last position that they were built for. Without the mask each token receives the same.

    Example:
        >>> from posembed.widgets import CountingFigure
        >>> CountingFigure().networks[1]
        {'n_positions': 3, 'slopes': [2.0, 3.0], 'biases': [-1.0, -1.0], 'weights': [2.0, -2.0], 'bias': 3.0}
    """

    module = "counting.js"
    height = (1063, 933)

    def __init__(self) -> None:
        # What each word carries of the mark, which no length changes.
        marks = _model(2).words(_ids(WORDS))[0, :, MARK].tolist()
        super().__init__(
            words=WORDS,
            marks=marks,
            networks=[_network(length) for length in LENGTHS],
            order=list(range(N_TOKENS)),
            token=4,
            n_positions=N_TOKENS,
            causal=True,
        )

    def fallback_html(self) -> str:
        """Show for each token how many it sees, what arrives, and what comes out with the mask and without."""
        model = _model(self.n_positions)
        words = [self.words[word] for word in self.order]
        ids = _ids(words)
        steps = model.steps(ids)
        model.attention.causal = False
        columns = (words, steps.attention[0].count_nonzero(-1), steps.share[0], steps.count[0], model(ids)[0])
        return html_table(
            f"a causal layer without positions counts its tokens, up to {self.n_positions}. Token by token:",
            ["place", "word", "sees", "arrives of the mark", "comes out", "comes out without the mask"],
            [
                [str(place), word, str(int(seen)), f"{share:.3f}", f"{count:.6g}", f"{unmasked:.6g}"]
                for place, (word, seen, share, count, unmasked) in enumerate(zip(*columns, strict=True), start=1)
            ],
        )


def _model(n_positions: int) -> CountingTransformer:
    # A new module draws random numbers before its weights are written; the reader's are left alone.
    with torch.random.fork_rng(devices=[]):
        return CountingTransformer(n_positions, vocab_size=len(VOCABULARY))


def _ids(words: list[str]) -> torch.Tensor:
    return torch.tensor([[VOCABULARY.index(word) for word in words]])


def _network(n_positions: int) -> dict[str, Any]:
    """Read the weights between the share that arrives and the position that comes out; all others are zero."""
    layers: Any = _model(n_positions).feed_forward
    first, _, last = layers
    return {
        "n_positions": n_positions,
        "slopes": first.weight[:, SHARE].tolist(),
        "biases": first.bias.tolist(),
        "weights": last.weight[COUNT].tolist(),
        "bias": last.bias[COUNT].item(),
    }
