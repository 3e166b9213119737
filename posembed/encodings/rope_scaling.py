"""Ways to stretch rotary angles for texts longer than those of the training."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import EncodingInputError, shown
from ..public import Count, Positive, check_fields
from .angles import frequencies


@dataclass(frozen=True)
class Scaling:
    """How frequencies change, and by what queries and keys are multiplied besides.

    Args:
        factor: the longest text wanted, in units of the longest of the training.

    Raises:
        EncodingInputError: a factor below 1.

    Example:
        >>> from posembed.encodings import LinearScaling
        >>> LinearScaling(factor=4.0).attention_factor
        1.0
    """

    factor: Positive

    def __post_init__(self):
        check_fields(self, EncodingInputError)
        if self.factor < 1:
            raise EncodingInputError(f"factor is {self.factor}; it must be at least 1")

    def frequencies(self, width: int, base: float) -> Float[Tensor, " pairs"]:
        """Return the frequencies of the pairs, in float64."""
        raise NotImplementedError

    @property
    def attention_factor(self) -> float:
        """What queries and keys are multiplied by."""
        return 1.0


@dataclass(frozen=True)
class LinearScaling(Scaling):
    """Position interpolation (Chen et al. 2023, arXiv 2306.15595): every angle divided by the factor.

    Example:
        >>> from posembed.encodings import LinearScaling
        >>> LinearScaling(factor=4.0).frequencies(4, 10000.0)
        tensor([0.2500, 0.0025], dtype=torch.float64)
    """

    def frequencies(self, width: int, base: float) -> Float[Tensor, " pairs"]:
        return frequencies(width, base) / self.factor


@dataclass(frozen=True)
class NTKScaling(Scaling):
    """NTK-aware scaling: a larger base, so that the slowest pair is divided by the factor and the fastest is kept.

    The formula is in Peng et al. 2023 (YaRN, arXiv 2309.00071, section 3.1): base' = base factor^(d / (d - 2)). What
    is called dynamic elsewhere is this with a factor that grows with the text; then keys in a cache were turned with
    other frequencies than later queries, so here the factor is one number.

    Example:
        >>> from posembed.encodings import NTKScaling
        >>> NTKScaling(factor=4.0).frequencies(4, 10000.0)
        tensor([1.0000, 0.0025], dtype=torch.float64)
    """

    def frequencies(self, width: int, base: float) -> Float[Tensor, " pairs"]:
        if width == 2:  # one pair, the fastest: it is kept
            return frequencies(width, base)
        return frequencies(width, base * self.factor ** (width / (width - 2)))


@dataclass(frozen=True)
class YaRNScaling(Scaling):
    """YaRN (Peng et al. 2023, arXiv 2309.00071): slow pairs are interpolated, fast ones kept.

    Between the two the share of interpolation rises evenly from pair to pair, as in the authors' code and transformers.

    Args:
        factor: the longest text wanted, in units of the longest of the training.
        original_max_position_embeddings: the longest text of the training, in tokens.
        beta_fast: a pair that turns more often than this over the training's longest text is kept.
        beta_slow: one that turns less often than this is divided by the factor, but for the fastest; between them
            there is a ramp.
        truncate: whether the ends of the ramp are rounded outwards to whole pairs, as in the authors' code.
        attention: what queries and keys are multiplied by; by default 0.1 ln(factor) + 1; logits get its square.

    Raises:
        EncodingInputError: a factor below 1, a length or betas that are not positive.

    Example:
        >>> from posembed.encodings import YaRNScaling
        >>> round(YaRNScaling(factor=4.0, original_max_position_embeddings=2048).attention_factor, 4)
        1.1386
    """

    original_max_position_embeddings: Positive
    beta_fast: Positive = 32.0
    beta_slow: Positive = 1.0
    truncate: bool = True
    attention: Positive | None = None

    def frequencies(self, width: int, base: float) -> Float[Tensor, " pairs"]:
        kept = frequencies(width, base)
        low, high = self._pair_turning(self.beta_fast, width, base), self._pair_turning(self.beta_slow, width, base)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        # Where both ends meet the ramp is a step.
        ramp = (torch.arange(width // 2, dtype=torch.float64, device="cpu") - low) / max(high - low, 0.001)
        share = ramp.clamp(0, 1)
        return kept * (1 - share) + kept / self.factor * share

    def _pair_turning(self, times: float, width: int, base: float) -> float:
        """The number of the pair (a fraction) that turns so many times over the training's longest text."""
        wavelength = self.original_max_position_embeddings / (times * 2 * math.pi)
        return width * math.log(wavelength) / (2 * math.log(base))

    @property
    def attention_factor(self) -> float:
        if self.attention is not None:
            return float(self.attention)
        return 0.1 * math.log(self.factor) + 1.0


@dataclass(frozen=True)
class Llama3Scaling(Scaling):
    """The scaling of Llama 3.1: waves shorter than one limit are kept, those longer than another are divided.

    Between the two limits the frequencies change smoothly. The source is the code released with the models.

    Args:
        factor: the longest text wanted, in units of the longest of the training.
        original_max_position_embeddings: the longest text of the training, in tokens.
        low_freq_factor: waves longer than the training's longest text over this are divided by the factor.
        high_freq_factor: waves shorter than the training's longest text over this are kept.

    Raises:
        EncodingInputError: a factor below 1, lengths or limits that are not positive or in the wrong order.

    Example:
        >>> from posembed.encodings import Llama3Scaling
        >>> Llama3Scaling(factor=8.0, original_max_position_embeddings=8192).frequencies(4, 1e12)
        tensor([1.0000e+00, 1.2500e-07], dtype=torch.float64)
    """

    original_max_position_embeddings: Positive
    low_freq_factor: Positive = 1.0
    high_freq_factor: Positive = 4.0

    def __post_init__(self):
        super().__post_init__()
        if self.low_freq_factor >= self.high_freq_factor:
            raise EncodingInputError("low_freq_factor must be below high_freq_factor; exchange them")

    def frequencies(self, width: int, base: float) -> Float[Tensor, " pairs"]:
        kept = frequencies(width, base)
        turns = self.original_max_position_embeddings * kept / (2 * math.pi)
        share = ((turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)).clamp(0, 1)
        return kept / self.factor * (1 - share) + kept * share


@dataclass(frozen=True)
class LongRoPEScaling(Scaling):
    """LongRoPE (Ding et al. 2024, arXiv 2402.13753): each pair divided by a number of its own, found by a search.

    There are two lists, one for texts up to the longest of the training and one for longer ones. Keys that were turned
    by one do not fit queries turned by the other, so a scaling is made for one length of text. The formulas are those
    of transformers, and of the models Phi-3 and Phi-4.

    Args:
        factor: the longest text wanted, in units of the longest of the training.
        original_max_position_embeddings: the longest text of the training, in tokens.
        short_factor: by what each pair is divided in texts up to that.
        long_factor: and in longer ones.
        length: the longest text, in tokens.
        attention: what queries and keys are multiplied by; by default sqrt(1 + ln(factor) / ln(original length)).

    Raises:
        EncodingInputError: a factor below 1, lengths or divisors that are not positive, or not one for each pair.

    Example:
        >>> from posembed.encodings import LongRoPEScaling
        >>> LongRoPEScaling(4.0, 4096, [1.0, 1.0], [1.0, 4.0], length=8192).frequencies(4, 10000.0)
        tensor([1.0000, 0.0025], dtype=torch.float64)
    """

    original_max_position_embeddings: Positive
    short_factor: Sequence[Positive]
    long_factor: Sequence[Positive]
    length: Count
    attention: Positive | None = None

    def frequencies(self, width: int, base: float) -> Float[Tensor, " pairs"]:
        long = self.length > self.original_max_position_embeddings
        name, divisors = ("long_factor", self.long_factor) if long else ("short_factor", self.short_factor)
        if len(divisors) != width // 2:
            raise EncodingInputError(f"{name} has {len(divisors)} numbers for {width // 2} pairs; give one for each")
        return frequencies(width, base) / torch.tensor(divisors, dtype=torch.float64, device="cpu")

    @property
    def attention_factor(self) -> float:
        if self.attention is not None:
            return float(self.attention)
        return math.sqrt(1 + math.log(self.factor) / math.log(self.original_max_position_embeddings))


SCALINGS: dict[str, type[Scaling]] = {
    "linear": LinearScaling,
    "ntk": NTKScaling,
    "yarn": YaRNScaling,
    "llama3": Llama3Scaling,
    "longrope": LongRoPEScaling,
}


def kind_of(parameters: Mapping[str, Any]) -> Any:
    """The rope_type; older configs say "type", and a config that says neither means none."""
    return parameters.get("rope_type", parameters.get("type", "default"))


def _read_mscale(given: dict[str, Any]) -> None:
    """DeepSeek's two numbers as one: the quotient of two of YaRN's factors, each with its own weight of the logarithm.

    One alone changes nothing, and neither counts where the factor is given, as in transformers.
    """
    above, below = given.pop("mscale", None), given.pop("mscale_all_dim", None)
    if above and below and given.get("attention") is None and "factor" in given:
        log = math.log(given["factor"])
        given["attention"] = (0.1 * above * log + 1.0) / (0.1 * below * log + 1.0)


def said_by(scaling: Scaling | Mapping[str, Any] | None) -> tuple[Scaling | None, Any, Any, Any]:
    """Read a scaling, or a whole ``rope_parameters``, which has the base and the share of the columns too.

    Args:
        scaling: None, a scaling, or a mapping in the form of transformers, with ``rope_type`` and the options of that
            scaling; "default" there means none.

    Returns:
        The scaling, and base, fraction and pairs of `RoPE`; None of what it is silent about.

    Raises:
        EncodingInputError: an unknown rope_type, an option that is missing or not known.

    Example:
        >>> from posembed.encodings.rope_scaling import said_by
        >>> said_by({"rope_type": "linear", "factor": 2.0, "rope_theta": 500000.0})
        (LinearScaling(factor=2.0), 500000.0, None, None)
    """
    if scaling is None or isinstance(scaling, Scaling):
        return scaling, None, None, None
    given = {name: value for name, value in scaling.items() if value is not None}
    kind = kind_of(given)
    given = {name: value for name, value in given.items() if name not in ("rope_type", "type")}
    base, fraction = given.pop("rope_theta", None), given.pop("partial_rotary_factor", None)
    if kind == "proportional":
        return LinearScaling(**{"factor": 1.0, **given}), base, fraction, kind
    if kind == "default":
        if given:
            raise EncodingInputError(f"the scaling default scales nothing, so {min(given)!r} would be lost; remove it")
        return None, base, fraction, None
    if kind not in SCALINGS:
        raise EncodingInputError(
            f"the scaling's rope_type is {shown(kind)}; choose among default, proportional, {', '.join(SCALINGS)}; in "
            "place of dynamic, which turns keys in a cache by other angles than later queries, use "
            "RoPE.from_config(config, length=...)"
        )
    if "attention_factor" in given and kind in ("yarn", "longrope"):
        given["attention"] = given.pop("attention_factor")
    if kind == "yarn":
        _read_mscale(given)
    try:
        return SCALINGS[kind](**given), base, fraction, None
    except TypeError as error:  # an option that it has not, or needs
        known = ", ".join(field.name for field in dataclasses.fields(SCALINGS[kind]))
        raise EncodingInputError(f"the scaling {kind} has the options {known}: {error}") from None


def agreed(name: str, given: Any, said: Any, usual: Any) -> Any:
    """Return what was given or what the scaling says; where they differ nobody knows which is meant."""
    if given is not None and said is not None and given != said:
        raise EncodingInputError(f"{name} is {shown(given)}, but the scaling says {shown(said)}; give one of them")
    return next(value for value in (given, said, usual) if value is not None)
