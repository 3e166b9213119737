"""Perplexity per token and per word, from a loss per token."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import CorpusError
from ..public import Count, NotNegative, Whole, public


@dataclass(frozen=True)
class Perplexities:
    """Among how many tokens, or words, all of them as likely, a model would be as uncertain as it is.

    Attributes:
        per_token: exp(nats per token), which depends on what the tokens are.
        per_word: exp(nats per word), by which models with different tokens can be compared.

    Example:
        >>> from posembed.data import perplexities
        >>> perplexities(0.0, n_tokens=6, n_words=1)
        Perplexities(per_token=1.0, per_word=1.0)
    """

    per_token: float
    per_word: float


@public(CorpusError)
def perplexities(loss_per_token: NotNegative, *, n_tokens: Count, n_words: Whole) -> Perplexities:
    """Tell the perplexity per token and per word of a text from a model's mean loss on its tokens.

    A word is what stands between white space, as in WikiText (Merity et al. 2017). The loss on all tokens of the text,
    those of white space too, is shared out among its words: exp(loss per token x tokens / words). An end of a line is
    no word here; to compare with a number that counted it as one, add the lines to the words.

    Args:
        loss_per_token: the mean over the text, in nats.
        n_tokens: of the whole text.
        n_words: of the whole text; where there are none, the perplexity per word is infinite.

    Raises:
        CorpusError: a loss that is negative or no number, a text without tokens.

    Example:
        >>> import math
        >>> from posembed.data import perplexities
        >>> found = perplexities(math.log(2), n_tokens=6, n_words=2)
        >>> round(found.per_token, 6), round(found.per_word, 6)
        (2.0, 8.0)
    """
    return Perplexities(_exp(loss_per_token), _exp(loss_per_token * (n_tokens / n_words)) if n_words else math.inf)


def _exp(nats: float) -> float:
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
