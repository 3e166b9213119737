"""The numbers of Haviv et al. (2022), to stand beside our own; from the paper's tables and its authors' code.

Source: Haviv, Ram, Press, Izsak, Levy, "Transformer Language Models without Positional Encodings Still Learn Positional
Information", Findings of EMNLP 2022: tables 1 to 4 for the perplexities; the probe's errors by layer, which the paper
draws in figure 2, from the data beside its authors' plotting code.
"""

from __future__ import annotations

from ..errors import RunError, shown

# Schemes by the names of `posembed.scheme`, in the order of the rows below.
PUBLISHED_SCHEMES = ("nopos", "learned", "sinusoidal", "alibi")

# Perplexity on validation texts. WikiText-103: per word, 247 million parameters, texts of 512 words. The Pile: per
# byte pair, texts of 1024. One run each.
PUBLISHED_PERPLEXITY = {
    "WikiText-103": (20.97, 20.42, 20.16, 19.71),
    "Pile, 125M": (22.15, 22.04, 21.49, 19.94),
    "Pile, 350M": (16.87, 16.84, 16.58, 15.66),
    "Pile, 760M": (14.29, 14.21, 14.04, 13.53),
    "Pile, 1.3B": (13.10, 13.05, 12.93, 12.51),
    "Pile, 1.3B, length 256": (14.98, 14.94, 14.84, 14.65),
    "Pile, 1.3B, length 512": (13.82, 13.77, 13.66, 13.37),
    "Pile, 1.3B, length 2048": (12.87, 12.72, 12.62, 12.06),
    "masked, 15 % of 128": (147.18, 4.06, 4.07, 4.00),
}

# Mean absolute error of a two-layer network with rectified units that reads a token's position, out of 1024, from each
# layer of the models with 1.3 billion parameters; layer 0 is what enters the first one.
PUBLISHED_PROBE = {
    "nopos": (
        *(337.2, 286.4, 79.9, 27.5, 16.9, 17.4, 16.5, 16.5, 17.2, 19.2, 19.9, 21.0, 21.0, 22.3, 23.9, 25.6),
        *(27.4, 27.9, 31.0, 35.4, 42.6, 49.2, 56.4, 64.1, 133.3),
    ),
    "learned": (
        *(11.2, 6.5, 7.6, 8.4, 7.0, 7.1, 8.8, 10.1, 12.0, 13.8, 14.7, 16.3, 18.1, 19.8, 21.2, 22.1),
        *(23.5, 25.6, 28.9, 33.8, 40.4, 47.0, 53.6, 62.5, 129.0),
    ),
    "sinusoidal": (
        *(0.0, 0.0, 0.0, 0.1, 0.3, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.3, 1.9, 2.6, 4.0, 5.9),
        *(8.3, 11.6, 16.0, 21.5, 27.5, 34.8, 41.9, 51.3, 92.1),
    ),
    "alibi": (
        *(337.0, 331.3, 288.3, 252.0, 183.5, 121.3, 72.8, 59.3, 54.8, 53.9, 54.0, 52.7, 53.0, 54.0, 55.9, 59.7),
        *(66.7, 72.6, 79.6, 87.2, 99.0, 108.4, 117.7, 132.2, 170.6),
    ),
}
PUBLISHED_LENGTH = 1024


def published_probe(scheme: str) -> list[float]:
    """The published errors of a scheme by layer, as a share of the error of always guessing the middle.

    Texts of the paper are sixteen times as long as ours; in this unit both can stand in one picture. The paper's own
    baseline is a random guess, (T^2 - 1) / (3 T): 1.33 in this unit.

    Args:
        scheme: "nopos", "learned", "sinusoidal" or "alibi".

    Raises:
        RunError: the paper has no such scheme.

    Example:
        >>> from posembed.stored import published_probe
        >>> [round(share, 2) for share in published_probe("nopos")[:5]]
        [1.32, 1.12, 0.31, 0.11, 0.07]
    """
    if scheme not in PUBLISHED_PROBE:
        raise RunError(f"the paper has no {shown(scheme)}; choose among {', '.join(PUBLISHED_SCHEMES)}")
    middle = PUBLISHED_LENGTH / 4
    return [error / middle for error in PUBLISHED_PROBE[scheme]]
