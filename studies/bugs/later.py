"""Twenty bugs, written after the checks of the audit and the properties were frozen, and not changed for them."""

from __future__ import annotations

import torch
from torch import Tensor

from . import Register
from .first import T5, ALiBi, Sinusoid, Table
from .reference import WIDTH, Cache, Reference

bug = Register()
# What YaRN multiplies logits by, for texts eight times as long.
SHARPER = (0.1 * torch.log(torch.tensor(8.0)).item() + 1) ** 2


class Sharp(Reference):
    """A right model whose config asks for sharper logits, as YaRN's does."""

    is_right = True

    def sharpness(self, layer: int) -> float:
        return SHARPER


@bug("lablup/mlxcel#1324", "all positions are doubled")
class Doubled(Reference):
    def angles(self, at: Tensor, layer: int) -> Tensor:
        return super().angles(2 * at, layer)


@bug("paiml/aprender#2143", "the slopes begin at 1, one step too high")
class SlopesFromOne(ALiBi):
    def slopes(self) -> Tensor:
        return super().slopes() * 2.0 ** (8 / self.heads)


@bug("turboderp-org/exllamav3#259", "YaRN's sharper logits are lost")
class SharpnessLost(Sharp):
    def sharpness(self, layer: int) -> float:
        return 1.0


@bug("sgl-project/sglang#33558", "YaRN's sharper logits are sharpened again")
class SharpnessTwice(Sharp):
    def sharpness(self, layer: int) -> float:
        return SHARPER**2


@bug("NVIDIA/TensorRT-LLM#16379", "the logarithm in YaRN's sharpness is taken twice")
class LogarithmTwice(Sharp):
    def sharpness(self, layer: int) -> float:
        return float(0.1 * SHARPER**0.5 * torch.log(torch.tensor(8.0)) + 1) ** 2


@bug("unslothai/unsloth#6197", "the config's scaling is not used", scale=(8.0, 8.0))
class ScalingDropped(Reference):
    pass


@bug("vllm-project/vllm#29111", "the layers with a window are scaled too", scale=(1.0, 8.0))
class ScaledEverywhere(Reference):
    scale = (8.0, 8.0)


@bug("Blaizzy/mlx-vlm#1709", "the layers without a window are not scaled", scale=(1.0, 8.0))
class ScaledNowhere(Reference):
    pass


@bug("vllm-project/vllm#3488", "the base of long texts is used for short ones", base=(100.0, 100.0))
class BaseFromTheStart(Reference):
    base = (220.0, 220.0)


@bug("huggingface/transformers#27033", "after a long text the base of long texts stays")
class BaseStays(Reference):
    def __init__(self) -> None:
        super().__init__()
        self.longest = 32

    def angles(self, at: Tensor, layer: int) -> Tensor:
        self.longest = max(self.longest, int(at.max()) + 1)
        return super().angles(at, layer) * 32 / self.longest


@bug("lucidrains/x-transformers#10", "distances have the other sign when they are put into buckets")
class OtherSide(T5):
    def bucket(self, back: Tensor) -> Tensor:
        return super().bucket(-back)


@bug("songyangco/GETNext#2", "attention runs over the texts of a batch, not over the tokens of a text")
class OverTheBatch(Table):
    def forward(
        self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, cache: Cache | None = None
    ) -> tuple[Tensor, Cache]:
        logits, kept = super().forward(ids.T)
        return logits.transpose(0, 1), kept


@bug("trymirai/lalamo#268", "queries and keys are turned the other way round")
class TurnedBack(Reference):
    def angles(self, at: Tensor, layer: int) -> Tensor:
        return -super().angles(at, layer)


@bug("xlite-dev/LeetCUDA#289", "the speeds grow from pair to pair where they should fall")
class SpeedsInverted(Reference):
    def frequencies(self, layer: int) -> Tensor:
        return 1 / super().frequencies(layer)


@bug("rajveer43/VeloxQuant-MLX#138", "positions are counted from the keys that the cache has kept")
class CountsWhatIsKept(Reference):
    window = 6

    def joined(
        self, cached: tuple[Tensor, Tensor, Tensor], k: Tensor, v: Tensor, at: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        keys, values, keys_at = super().joined(cached, k, v, at)
        kept = k.shape[2] + 5
        return keys[:, :, -kept:], values[:, :, -kept:], keys_at[:, -kept:]


@bug("Blaizzy/mlx-vlm#1748", "a cache that is full keeps the first keys, not the last")
class KeepsTheFirst(Reference):
    window = 6

    def joined(
        self, cached: tuple[Tensor, Tensor, Tensor], k: Tensor, v: Tensor, at: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        keys, values, keys_at = cached
        return super().joined((keys[:, :, :5], values[:, :, :5], keys_at[:, :5]), k, v, at)

    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        self.read = past and getattr(self, "read", 0)
        at = super().positions(ids, mask, self.read)
        self.read += ids.shape[1]
        return at


@bug("huggingface/diffusers#13922", "positions stand so far out that bfloat16 rounds them to one")
class FarOutInBFloat16(Reference):
    def angles(self, at: Tensor, layer: int) -> Tensor:
        return super().angles((at + 65536).bfloat16().double(), layer)


@bug("Dao-AILab/flash-attention#823", "sines and cosines are rounded to bfloat16")
class RoundedSines(Reference):
    def turn(self, x: Tensor, at: Tensor, layer: int) -> Tensor:
        angles = self.angles(at, layer)[:, None]
        cosine, sine = (each.bfloat16().to(x.dtype) for each in (angles.cos(), angles.sin()))
        one, two = x.chunk(2, -1)
        return torch.cat([one * cosine - two * sine, two * cosine + one * sine], -1)


@bug("zju3dv/LoFTR#41", "an integer division makes the waves far too long")
class IntegerDivision(Sinusoid):
    def sinusoids(self, at: Tensor) -> Tensor:
        angles = at[..., None] * torch.exp(-torch.arange(0, WIDTH, 2, dtype=torch.float64))
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2).to(self.words.weight.dtype)


@bug("explosion/curated-transformers#150", "with a cache padded texts go on from the length with padding")
class PaddedTextsGoOn(Table):
    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        return super().positions(ids, None if past else mask, past)
