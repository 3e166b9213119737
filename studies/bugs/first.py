"""Forty bugs, written with the checks of the audit in view."""

from __future__ import annotations

import torch
from torch import Tensor

from . import Register
from .reference import D_HEAD, ROWS, WIDTH, Reference

bug = Register()


class Table(Reference):
    scheme = "table"


class Sinusoid(Reference):
    scheme = "sinusoid"


class ALiBi(Reference):
    scheme = "alibi"


class T5(Reference):
    scheme = "t5"


# Which axis, which pairs.


@bug("mlfoundations/open_lm#4", "angles go by the number of the head, not by the position")
class ByHeads(Reference):
    def turn(self, x: Tensor, at: Tensor, layer: int) -> Tensor:
        heads = torch.arange(x.shape[1])[None]
        return super().turn(x.transpose(1, 2), heads, layer).transpose(1, 2)


@bug("huggingface/transformers#47328", "the angles are laid out for halves, the columns are turned as neighbours")
class TwoLayouts(Reference):
    def turn(self, x: Tensor, at: Tensor, layer: int) -> Tensor:
        angles = self.angles(at, layer)[:, None]
        cosine, sine = (torch.cat([each, each], -1).to(x.dtype) for each in (angles.cos(), angles.sin()))
        return x * cosine + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sine


@bug("raiyanyahya/how-to-train-your-gpt#6", "the angles are laid out for neighbours, the columns are turned as halves")
class OtherTwoLayouts(Reference):
    def turn(self, x: Tensor, at: Tensor, layer: int) -> Tensor:
        angles = self.angles(at, layer)[:, None].repeat_interleave(2, -1)
        one, two = x.chunk(2, -1)
        return x * angles.cos().to(x.dtype) + torch.cat([-two, one], -1) * angles.sin().to(x.dtype)


@bug("NeuraLegion/shainet#111", "neighbouring columns are turned with weights that were trained for halves")
class OtherPairs(Reference):
    def turn(self, x: Tensor, at: Tensor, layer: int) -> Tensor:
        halves = torch.cat([x[..., ::2], x[..., 1::2]], -1)
        return torch.stack(super().turn(halves, at, layer).chunk(2, -1), -1).flatten(-2)


@bug("cmu-l3/anlp-fall2025-code#1", "the row is that of the place in the batch")
class ByBatch(Table):
    def rows(self, at: Tensor) -> Tensor:
        return super().rows(torch.arange(at.shape[0])[:, None].expand_as(at))


@bug("jadore801120/attention-is-all-you-need-pytorch#32", "sine and cosine of a pair have two wavelengths")
class WrongExponent(Sinusoid):
    def sinusoids(self, at: Tensor) -> Tensor:
        angles = at[..., None] * 10000.0 ** -(2 * torch.arange(WIDTH, dtype=torch.float64) / WIDTH)
        return torch.where(torch.arange(WIDTH) % 2 == 0, angles.sin(), angles.cos()).to(self.words.weight.dtype)


# Precision.


@bug("EleutherAI/gpt-neox#1003", "angles are computed in float16")
class Float16Angles(Reference):
    def angles(self, at: Tensor, layer: int) -> Tensor:
        return (at[..., None].half() * self.frequencies(layer).half()).double()


@bug("huggingface/transformers#29285", "angles are computed in bfloat16")
class BFloat16Angles(Reference):
    def angles(self, at: Tensor, layer: int) -> Tensor:
        return (at[..., None].bfloat16() * self.frequencies(layer).bfloat16()).double()


@bug("nkalyanv99/UNI-D2#6", "positions are rounded to bfloat16 before the angles are computed")
class BFloat16Positions(Reference):
    def angles(self, at: Tensor, layer: int) -> Tensor:
        return super().angles(at.bfloat16().double(), layer)


# With a cache.


@bug("ml-explore/mlx-lm#93", "each piece begins at position 0")
class Restarts(Reference):
    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        return super().positions(ids, mask, 0)


@bug("microsoft/onnxruntime#12156", "what follows the first piece is one position too far on")
class OneTooFar(Table):
    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        return super().positions(ids, mask, past + (past > 0))


@bug("skyzh/tiny-llm#46", "what the cache holds is counted twice")
class CountedTwice(Reference):
    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        return super().positions(ids, mask, 2 * past)


@bug("keras-team/keras-hub#2977", "with a cache the bias is that of a text that begins now")
class BiasOfTheStep(ALiBi):
    def bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        n, m = queries.shape[1], keys.shape[1]
        return super().bias(torch.arange(n)[None] if n < m else queries, torch.arange(m)[None] if n < m else keys)


@bug("lucidrains/rotary-embedding-torch#11", "angles are kept by the length of a piece, whatever its offset")
class KeptAngles(Reference):
    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Tensor] = {}

    def angles(self, at: Tensor, layer: int) -> Tensor:
        made = self.kept.setdefault(at.shape[-1], super().angles(at[:1], layer))
        return made.expand(at.shape[0], -1, -1)


@bug("pytorch/pytorch#144858", "the causal mask of a piece stands at the top left")
class TopLeft(Reference):
    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        return super().seen(n, m, mask) & (torch.arange(n)[:, None] >= torch.arange(m))


@bug("mlx-node/mlx-node#24", "a piece with a cache has no causal mask")
class NoMaskInPieces(Reference):
    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        return torch.ones(1, 1, n, m, dtype=torch.bool) if n < m else super().seen(n, m, mask)


@bug("NVIDIA/TensorRT-LLM#13870", "with a cache the learned bias is left out")
class NoBiasInPieces(T5):
    def bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        made = super().bias(queries, keys)
        return made * (queries.shape[1] == keys.shape[1])


@bug("huggingface/transformers#25104", "the base grows with the text, and cached keys keep the one they were turned by")
class GrowingBase(Reference):
    def turn(self, x: Tensor, at: Tensor, layer: int) -> Tensor:
        return super().turn(x, at * 8 / at.max().clamp(min=8), layer)


@bug("huggingface/transformers#43082", "a chunk is given the positions of a text of its own")
class ChunkPositions(Table):
    def given(self, positions: Tensor, past: int) -> Tensor:
        return positions - past

    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        return super().positions(ids, mask, 0)


# Padding.


@bug("huggingface/transformers#21080", "padding in front is counted")
class CountsPadding(Table):
    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        return super().positions(ids, None, past)


@bug("unslothai/unsloth#3699", "all texts of a batch get the positions of the first")
class PositionsOfTheFirst(Table):
    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        return super().positions(ids, mask, past)[:1].expand_as(ids)


@bug("AI4Bharat/IndicBERT#20", "the mask of padding is not used, in a model that sees both sides")
class PaddingIsSeen(Table):
    causal = False

    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        return super().seen(n, m, mask if mask is not None and mask.ndim == 3 else None)


@bug("huggingface/sentence-transformers#3879", "the rows that stand before position 0 are taken for positions")
class NoOffset(Table):
    offset = 2

    def rows(self, at: Tensor) -> Tensor:
        return self.wpe(at)


# Packing.


@bug("huggingface/nanoVLM#204", "packed texts begin anew and still see the ones before them")
class PackingLeaks(Reference):
    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        return super().seen(n, m, None if mask is not None and mask.ndim == 3 else mask)


@bug("huggingface/nanoVLM#201", "packed texts go on counting")
class PackingGoesOn(Table):
    def given(self, positions: Tensor, past: int) -> Tensor:
        return positions[:, :1] + torch.arange(positions.shape[1])


@bug(
    "PrimeIntellect-ai/prime-rl#2392", "tokens that stand in another order in memory get positions by their place there"
)
class PlaceInMemory(Reference):
    def given(self, positions: Tensor, past: int) -> Tensor:
        return positions.sort(1).values


# Windows.


@bug("ml-explore/mlx-lm#390", "the window has one key too many")
class OneKeyMore(Reference):
    window = 4

    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        return _seen(self, n, m, mask, self.window + 1)


@bug("AI-Hypercomputer/maxtext#4289", "the window has one key too many, in a model with a table")
class OneKeyMoreInATable(Table):
    window = 6

    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        return _seen(self, n, m, mask, self.window + 1)


@bug("huggingface/transformers#41228", "the window is not there")
class NoWindow(Reference):
    window = 4

    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        return _seen(self, n, m, mask, None)


@bug("trymirai/lalamo#200", "with a cache the window is counted from the beginning of the piece")
class WindowOfThePiece(Reference):
    window = 4

    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        right = super().seen(n, m, mask)
        return right | (torch.arange(m) < 2) if n < m else right


# The end of the table.


@bug("alex-hh/profam#79", "past its end the table gives its last row again")
class LastRowAgain(Table):
    def rows(self, at: Tensor) -> Tensor:
        return super().rows(at.clamp(max=ROWS - 1))


@bug("neuralmagic/sparseml#1826", "past the longest text that was foreseen the angles begin anew")
class AnglesWrap(Reference):
    def angles(self, at: Tensor, layer: int) -> Tensor:
        return super().angles(at % 32, layer)


# Formulas: a right kind of number, and another one.


@bug("ml-explore/mlx#3071", "the slopes of six heads are one series")
class OneSeries(ALiBi):
    heads = 6

    def slopes(self) -> Tensor:
        return 2.0 ** (-8 * torch.arange(1, self.heads + 1) / self.heads)


@bug("meta-pytorch/attention-gym#86", "the bias grows with the distance")
class WrongSign(ALiBi):
    def bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        return -super().bias(queries, keys)


@bug("google/gemma.cpp#986", "the base of the config is not used", base=(5000.0, 5000.0))
class DefaultBase(Reference):
    pass


@bug("ggml-org/llama.cpp#14367", "both kinds of layers have the base of one", base=(100.0, 5000.0))
class OneBase(Reference):
    pass


@bug("ollama/ollama#13452", "positions are divided in the wrong one of two layers", scale=(1.0, 8.0))
class ScaleOfTheOther(Reference):
    scale = (8.0, 1.0)


@bug("AI-Hypercomputer/maxtext#4615", "the whole head turns, where a part of it should", rotary=D_HEAD // 2)
class WholeHead(Reference):
    pass


@bug("pie-project/pie#602", "the part that turns has the speeds of the whole head")
class SpeedsOfTheHead(Reference):
    rotary = D_HEAD // 2

    def frequencies(self, layer: int) -> Tensor:
        return self.base[layer] ** -(torch.arange(0, self.rotary, 2, dtype=torch.float64) / D_HEAD)


@bug("huggingface/transformers#45902", "the speeds are what memory held, here nothing")
class NoSpeeds(Reference):
    def frequencies(self, layer: int) -> Tensor:
        return torch.zeros_like(super().frequencies(layer))


def _seen(model: Reference, n: int, m: int, mask: Tensor | None, window: int | None) -> Tensor:
    """What a model with another window would see."""
    was, model.window = model.window, window
    try:
        return Reference.seen(model, n, m, mask)
    finally:
        model.window = was
