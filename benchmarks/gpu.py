"""Causal attention layers on a GPU, in bfloat16, from 2,048 to 32,768 tokens, beside torch's and transformers'."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from . import layers
from .attention import Given, Setting
from .biases import alibi, t5
from .case import Candidate, Case, with_gradient, without_gradient
from .goals import no_more_memory, no_slower
from .rope import rotated

LENGTHS, QUICK_LENGTHS = (2048, 8192, 32768), (512,)
SCHEMES = ("rope", "alibi", "t5")
# Of bfloat16: three digits, summed.
ROUNDED = 0.05
# The queries whose outputs are compared; the whole matrix in float64 would not fit.
LAST = 64
# The whole run is to take two minutes of a GPU, most of them the compiler's.
HOW = {"seconds": 0.6, "most_rounds": 15}


@dataclass(frozen=True)
class OnGPU(Setting):
    """A setting with a length of its own, on a GPU."""

    length: int = LENGTHS[0]
    device: str = "cuda"

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Tokens, heads, and the width of a head."""
        return self.length, 16, 64


def cases(quick: bool, device: str = "cuda") -> list[Case]:
    """Each scheme at each length, forward alone and with the backward pass."""
    settings = [
        OnGPU(scheme, True, training, quick, length, device)
        for scheme in SCHEMES
        for training in (False, True)
        for length in (QUICK_LENGTHS if quick else LENGTHS)
    ]
    return [_case(each) for each in settings]


def _case(setting: OnGPU) -> Case:
    named = [("posembed MultiHeadAttention", layers.on_posembed, "")]
    named += [("torch, FlexAttention compiled" if setting.scheme != "rope" else "torch, SDPA", _torch, "")]
    named += layers.OF_TRANSFORMERS[setting.scheme](setting)
    return Case(
        "gpu",
        f"{setting.scheme}, {setting.length:,} tokens, {'forward+backward' if setting.training else 'forward'}",
        partial(_given, setting),
        [_candidate(setting, *each) for each in named],
        partial(_last_rows, setting),
        ROUNDED,
        [no_slower, no_more_memory],
    )


def _given(setting: OnGPU) -> Given:
    width = setting.d_model
    shapes = dict.fromkeys(("x", "upstream"), (1, setting.length, width))
    given = setting.drawn(**shapes, **dict.fromkeys(layers.PROJECTIONS, (width, width)))
    scaled = {name: each / width**0.5 if name in layers.PROJECTIONS else each for name, each in given.items()}
    return {name: each.to(setting.device, torch.bfloat16) for name, each in scaled.items()}


def _candidate(setting: OnGPU, name: str, build: Callable[[Setting, Given], layers.Built], note: str) -> Candidate:
    def make(given: Given) -> Callable[[], Any]:
        x = given["x"].detach().requires_grad_(setting.training)
        with torch.device(setting.device):
            layer, parameters = build(setting, given)
        if setting.training:
            call = with_gradient(lambda: layer(x), [x, *parameters], given["upstream"])
        else:
            call = without_gradient(lambda: layer(x))
        return partial(_finished, call, setting.device)

    return Candidate(name, make, note, lambda found: (found[0] if setting.training else found)[0, -LAST:])


def _finished(call: Callable[[], Any], device: str) -> Any:
    """Call, and wait for the GPU."""
    found = call()
    if device != "cpu":
        torch.cuda.synchronize()
    return found


def device() -> str:
    """The name of the GPU.

    Raises:
        SystemExit: there is none.
    """
    if not torch.cuda.is_available():
        sys.exit("benchmarks: PyTorch sees no GPU here; leave --only gpu out, or run it on a machine with one")
    return torch.cuda.get_device_name()


def peak(case: Case, candidate: Candidate) -> int | None:
    """The bytes of the GPU that one call needs, with what the candidate keeps, above its inputs."""
    if not torch.cuda.is_available():
        return None
    inputs = case.inputs()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call = candidate.make(inputs)
    call()
    return torch.cuda.max_memory_allocated() - before


def _last_rows(setting: OnGPU, given: Given) -> Tensor:
    """The outputs of the last queries, by the formula in float64, "query d_model"."""
    with torch.device(setting.device):
        return _rows(setting, {name: each.double() for name, each in given.items()})


def _rows(setting: OnGPU, wide: Given) -> Tensor:
    _, *heads = setting.sizes
    at = torch.arange(setting.length)
    x = wide["x"][0]
    q, k, v = (
        (rows @ wide[name].T).unflatten(-1, heads).transpose(0, 1)
        for rows, name in zip((x[-LAST:], x, x), layers.PROJECTIONS[:3], strict=True)
    )
    if setting.scheme == "rope":
        q, k = rotated(q, at[-LAST:]), rotated(k, at)
    logits = q @ k.mT / math.sqrt(heads[1])
    offsets = at - at[-LAST:, None]
    if setting.scheme == "alibi":
        logits += alibi(heads[0], offsets)
    if setting.scheme == "t5":
        logits += t5(wide["table"], offsets, True)
    out = logits.masked_fill(offsets > 0, -torch.inf).softmax(-1) @ v
    return out.transpose(0, 1).flatten(1) @ wide["output"].T


def _torch(setting: OnGPU, given: Given) -> layers.Built:
    """A layer as one writes it by hand for one length: projections, and torch's attention."""
    _, *heads = setting.sizes
    weights = [nn.Parameter(given[name].clone()) for name in layers.PROJECTIONS]
    attention, learned = _attention(setting, given)

    def layer(x: Tensor) -> Tensor:
        q, k, v = (F.linear(x, weight).unflatten(-1, heads).transpose(1, 2) for weight in weights[:3])
        return F.linear(attention(q, k, v).transpose(1, 2).flatten(2), weights[3])

    return layer, [*weights, *learned]


def _attention(setting: OnGPU, given: Given) -> tuple[Callable[..., Tensor], list[nn.Parameter]]:
    length, n_heads, width = setting.sizes
    if setting.scheme == "rope":
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
        cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()
        return lambda q, k, v: _compiled_rope()(q, k, v, cos, sin), []
    blocks = create_block_mask(lambda b, h, query, key: query >= key, None, None, length, length, device=setting.device)
    slopes = -alibi(n_heads, torch.ones(())).float()
    table = nn.Parameter(given["table"].clone()) if setting.scheme == "t5" else None
    hooks = {
        "alibi": lambda score, b, h, query, key: score - slopes[h] * (query - key),
        "t5": lambda score, b, h, query, key: score + table[_bucket(query - key), h],
    }
    attend = partial(_compiled_flex(), score_mod=hooks[setting.scheme], block_mask=blocks)
    return attend, [] if table is None else [table]


def _bucket(behind: Tensor) -> Tensor:
    """T5's bucket of an offset, of 32 for a decoder (Raffel et al. 2020): 16 alone, 16 on a logarithmic axis to 128."""
    far = 16 + (torch.log(behind.clamp(min=1) / 16) / math.log(128 / 16) * 16).to(torch.int32).clamp(max=15)
    return torch.where(behind < 16, behind.clamp(min=0), far)


def _rope(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    def turned(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)

    return F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)


@functools.cache
def _compiled_rope():
    return torch.compile(_rope, dynamic=False)


@functools.cache
def _compiled_flex():
    # A program for each case; the compiler's own limit is eight.
    return torch._dynamo.config.patch(recompile_limit=64)(torch.compile(flex_attention, dynamic=False))
