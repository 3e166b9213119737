"""Attention with positions: the bare function against PyTorch's, a whole layer against those of other libraries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import peers
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from posembed import PositionScheme, scheme
from posembed.models import attend

from .biases import alibi, offsets, t5
from .case import Candidate, Case, with_gradient, without_gradient
from .goals import no_more_memory, no_slower
from .rope import rotated

LENGTH, QUICK_LENGTH = 2048, 40
# Sums of at most 2048 products in float32. Peers that take the angles of rope in float32 are as far off as those.
FLOAT32, ANGLES = 2e-5, 1e-3
# The gradient of a number of a table adds up those of all its pairs.
SUMMED = 2e-4
# Of Shaw's offsets.
CLIP = 16

FUNCTIONS = [*itertools.product(("alibi", "t5", "shaw"), (True, False))]
LAYERS = [("rope", True), *FUNCTIONS]
# What all candidates of a case are given, by name: the tensors that gradients may be wanted for.
Given = dict[str, Tensor]


@dataclass(frozen=True)
class Setting:
    """One scheme in one kind of model, of one size.

    Attributes:
        scheme: "rope", "alibi", "t5" or "shaw".
        causal: the kind of model.
        training: whether the backward pass is wanted.
        quick: whether sizes are tiny and what takes long to compile is left out.
    """

    scheme: str
    causal: bool
    training: bool
    quick: bool

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Tokens, heads, and the width of a head."""
        return (QUICK_LENGTH, 2, 8) if self.quick else (LENGTH, 8, 64)

    @property
    def d_model(self) -> int:
        """The width of the model."""
        return self.sizes[1] * self.sizes[2]

    @property
    def name(self) -> str:
        """As the table calls it."""
        objective = "causal" if self.causal else "bidirectional"
        return f"{self.scheme}, {objective}, {'forward+backward' if self.training else 'forward'}"

    @property
    def ahead(self) -> Tensor | None:
        """True where a key is ahead of a query that may not see it."""
        return offsets(self.sizes[0]) > 0 if self.causal else None

    def drawn(self, **shapes: tuple[int, ...]) -> Given:
        """Draw tensors, always the same, and the scheme's table: T5's "buckets heads", Shaw's "offsets d_head"."""
        _, n_heads, d_head = self.sizes
        tables = {"t5": (32, n_heads), "shaw": (2 * CLIP + 1, d_head)}
        if self.scheme in tables:
            shapes["table"] = tables[self.scheme]
        generator = torch.Generator().manual_seed(0)
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    def made_scheme(self, table: Tensor | None) -> PositionScheme:
        """Make posembed's scheme, with a parameter as its table."""
        one = scheme(self.scheme, d_model=self.d_model, n_heads=self.sizes[1], causal=self.causal)
        if table is not None:
            one.weight = table if isinstance(table, nn.Parameter) else nn.Parameter(table, requires_grad=False)
        return one


def cases(quick: bool) -> list[Case]:
    """The function and the layer with each scheme, forward alone and with the backward pass."""
    from . import layers

    makers = {layers.case: LAYERS, function_case: FUNCTIONS}
    return [
        make(Setting(*pair, training, quick))
        for make, pairs in makers.items()
        for pair, training in itertools.product(pairs, (False, True))
    ]


def leaves(given: Given) -> Given:
    """The same numbers as leaves of a graph of their own."""
    return {name: nn.Parameter(each.detach().clone()) for name, each in given.items()}


def answer_of(setting: Setting, formula: Callable[..., Tensor], wanted: tuple[str, ...], given: Given) -> Any:
    """In float64 by the formula: the output, and with the backward pass the gradients of what is wanted."""
    given = leaves({name: each.double() for name, each in given.items()})
    upstream = given.pop("upstream")
    call = partial(formula, setting, **given)
    if not setting.training:
        return without_gradient(call)()
    return with_gradient(call, [given[name] for name in wanted if name in given], upstream)()


def mixed(setting: Setting, q: Tensor, k: Tensor, v: Tensor, table: Tensor | None = None) -> Tensor:
    """softmax(q k / sqrt(d_head) + bias) v, in the format of what is given; differentiable."""
    if setting.scheme == "rope":
        q, k = (rotated(each, torch.arange(setting.sizes[0])) for each in (q, k))
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    if setting.scheme != "rope":
        logits = logits + bias(setting, q, table)
    return _masked(logits, setting.ahead).softmax(-1) @ v


def bias(setting: Setting, q: Tensor, table: Tensor | None) -> Tensor:
    """What a scheme adds to the logits, as a matrix in the format of q."""
    at = offsets(setting.sizes[0])
    if setting.scheme == "alibi":
        return alibi(setting.sizes[1], at).to(q.dtype)
    return t5(table, at, setting.causal) if setting.scheme == "t5" else _shaw(q, table, at)


def _shaw(q: Tensor, table: Tensor, at: Tensor) -> Tensor:
    by_offset = q @ table.T / math.sqrt(q.shape[-1])
    return by_offset.gather(-1, (at.clamp(-CLIP, CLIP) + CLIP).expand(*by_offset.shape[:2], -1, -1))


def _masked(matrix: Tensor, ahead: Tensor | None) -> Tensor:
    return matrix if ahead is None else matrix.masked_fill(ahead, -torch.inf)


# The function of queries, keys and values, each "batch heads seq d_head".


def function_case(setting: Setting) -> Case:
    """One case of the function."""
    length, n_heads, d_head = setting.sizes
    shapes = dict.fromkeys(("q", "k", "v", "upstream"), (1, n_heads, length, d_head))
    return Case(
        "attention",
        f"function, {setting.name}",
        partial(setting.drawn, **shapes),
        [_function(setting, *each) for each in _functions(setting)],
        partial(answer_of, setting, mixed, ("q", "k", "v", "table")),
        SUMMED if setting.training else FLOAT32,
        [no_slower, no_more_memory],
    )


def _functions(setting: Setting) -> list[tuple[str, Callable[..., Callable[[], Tensor]], str]]:
    """The candidates of a setting: name, what makes the call, note."""
    found = [("posembed attend", _posembed, "")]
    if setting.scheme == "shaw":
        found.append(("torch SDPA, bias gathered", _made, "a query's products with all offsets, then gathered"))
    elif setting.scheme == "t5" and setting.training:
        found.append(("torch SDPA, bias looked up", _made, "its matrix of buckets is at hand"))
    else:
        found.append(("torch SDPA, bias at hand", _at_hand, "as in a later layer: the matrix is kept"))
    if not setting.training and not setting.quick:  # compiling takes longer than a quick run
        found.append(("torch FlexAttention, compiled", _flex, "compiled beforehand; its mask of blocks at hand"))
    return found


def _function(setting: Setting, name: str, build: Callable[..., Callable[[], Tensor]], note: str) -> Candidate:
    def make(given: Given) -> Callable[[], Any]:
        inputs = {name: each for name, each in given.items() if name != "upstream"}
        if not setting.training:
            return without_gradient(build(setting, **inputs))
        wanted = leaves(inputs)
        return with_gradient(build(setting, **wanted), [*wanted.values()], given["upstream"])

    return Candidate(name, make, note)


def _posembed(setting: Setting, q: Tensor, k: Tensor, v: Tensor, table: Tensor | None = None):
    one, at = setting.made_scheme(table), torch.arange(setting.sizes[0])
    return partial(attend, q, k, v, causal=setting.causal, scheme=one, positions=at, key_positions=at)


def _at_hand(setting: Setting, q: Tensor, k: Tensor, v: Tensor, table: Tensor | None = None):
    with torch.no_grad():
        matrix = _masked(bias(setting, q, table)[None], setting.ahead).contiguous()
    return partial(F.scaled_dot_product_attention, q, k, v, matrix)


def _made(setting: Setting, q: Tensor, k: Tensor, v: Tensor, table: Tensor):
    ahead, at = setting.ahead, offsets(setting.sizes[0])
    buckets = peers.t5_buckets_transformers(at, not setting.causal)

    def call():
        matrix = F.embedding(buckets, table).permute(2, 0, 1)[None] if setting.scheme == "t5" else _shaw(q, table, at)
        return F.scaled_dot_product_attention(q, k, v, _masked(matrix, ahead))

    return call


@cache
def _compiled():
    # With sizes left open the compiler of torch 2.13 fails.
    return torch.compile(flex_attention, dynamic=False)


def _flex(setting: Setting, q: Tensor, k: Tensor, v: Tensor, table: Tensor | None = None):
    length, n_heads, _ = setting.sizes
    seen = (lambda batch, head, query, key: query >= key) if setting.causal else None
    blocks = create_block_mask(seen, None, None, length, length, device="cpu") if seen else None
    far = CLIP if setting.scheme == "shaw" else 128
    table = None if table is None else table.detach()
    diagonals = torch.arange(-far, far + 1)
    slopes = -alibi(n_heads, torch.ones(())).float()
    by_bucket = t5(table, diagonals, setting.causal).contiguous() if setting.scheme == "t5" else None

    def call():
        by_offset = q @ table.T / math.sqrt(q.shape[-1]) if setting.scheme == "shaw" else None
        hooks = {
            "alibi": lambda score, b, h, query, key: score - slopes[h] * (key - query).abs(),
            "t5": lambda score, b, h, query, key: score + by_bucket[h, (key - query).clamp(-far, far) + far],
            "shaw": lambda score, b, h, query, key: (
                score + by_offset[b, h, query, (key - query).clamp(-far, far) + far]
            ),
        }
        return _compiled()(q, k, v, score_mod=hooks[setting.scheme], block_mask=blocks)

    return call
