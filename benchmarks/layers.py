"""Whole attention layers with equal weights: posembed's, those of transformers and of x-transformers.

What a model makes once for all its layers (sines and cosines, masks, biases that layers share) is at hand, unless the
name says that it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from transformers import BloomConfig, LlamaConfig, T5Config, Wav2Vec2BertConfig
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.llama import modeling_llama as llama
from transformers.models.t5 import modeling_t5 as t5
from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert as wav2vec2_bert
from x_transformers import x_transformers

from posembed.encodings import convert_rope_layout
from posembed.models import MultiHeadAttention

from . import references
from .functions import made_scheme
from .setting import CLIP, Layer, Setting

# A layer as a function of its input, and the parameters that gradients are wanted for.
Built = tuple[Callable[[Tensor], Tensor], list[nn.Parameter]]
Named = tuple[str, Callable[[Setting, Layer], Built], str]


def candidates(setting: Setting) -> list[Named]:
    """The candidates of a setting: name, what makes the layer, note."""
    ours: Named = ("posembed MultiHeadAttention", _posembed, "angles remembered" if setting.scheme == "rope" else "")
    return [ours, *_TRANSFORMERS[setting.scheme](setting), *_x_transformers_candidates(setting)]


def formula(setting: Setting, given: Layer, x: Tensor) -> Tensor:
    """The formula, in the format of what is given."""
    heads = [_split(x @ weight.T, setting) for weight in (given.query, given.key, given.value)]
    mixed = references.attention(setting.scheme, *heads, given.table, setting.causal)
    return mixed.transpose(1, 2).flatten(2) @ given.output.T


def _split(x: Tensor, setting: Setting) -> Tensor:
    return x.unflatten(-1, (setting.n_heads, setting.d_head)).transpose(1, 2)


def _load(linear: nn.Linear, weight: Tensor) -> None:
    """Take over a weight; a bias, where a library insists on one, is zero."""
    linear.weight = nn.Parameter(weight.clone())
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)


def _built(module: nn.Module, call: Callable[[Tensor], Tensor]) -> Built:
    return call, list(module.eval().parameters())


def _posembed(setting: Setting, given: Layer) -> Built:
    table = None if given.table is None else nn.Parameter(given.table.detach().clone())
    module = MultiHeadAttention(
        setting.d_model, setting.n_heads, made_scheme(setting, table), causal=setting.causal, bias=False
    )
    for name in ("query", "key", "value", "output"):
        _load(getattr(module, name), getattr(given, name))
    positions = torch.arange(setting.length)
    return _built(module, lambda x: module(x, positions))


def _llama(setting: Setting, given: Layer) -> Built:
    config = LlamaConfig(
        hidden_size=setting.d_model, num_attention_heads=setting.n_heads, attn_implementation="sdpa",
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )  # fmt: skip
    module = llama.LlamaAttention(config, layer_idx=0)
    for name, weight in zip("qkvo", (given.query, given.key, given.value, given.output), strict=True):
        _load(getattr(module, f"{name}_proj"), weight)
    angles = llama.LlamaRotaryEmbedding(config)(given.x, torch.arange(setting.length)[None])
    return _built(module, lambda x: module(x, angles)[0])


def _bloom(setting: Setting, given: Layer) -> Built:
    config = BloomConfig(hidden_size=setting.d_model, n_head=setting.n_heads)
    module = bloom.BloomAttention(config, layer_idx=0)
    by_head = [each.unflatten(0, (setting.n_heads, -1)) for each in (given.query, given.key, given.value)]
    _load(module.query_key_value, torch.stack(by_head, 1).flatten(0, 2))
    _load(module.dense, given.output)
    keys = bloom.build_alibi_tensor(torch.ones(1, setting.length), setting.n_heads, torch.float32)
    mask = torch.full((1, 1, setting.length, setting.length), torch.finfo(torch.float32).min).triu(1)
    residual = torch.zeros_like(given.x)
    return _built(module, lambda x: module(x, residual, keys, mask)[0])


def _t5(shared: bool, setting: Setting, given: Layer) -> Built:
    config = T5Config(
        d_model=setting.d_model, d_kv=setting.d_head, num_heads=setting.n_heads, is_decoder=setting.causal,
        attn_implementation="sdpa",
    )  # fmt: skip
    module = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0, is_causal=setting.causal)
    # T5 does not divide its logits by the root of the width.
    _load(module.q, given.query / setting.d_head**0.5)
    for name, weight in zip("kvo", (given.key, given.value, given.output), strict=True):
        _load(getattr(module, name), weight)
    assert given.table is not None
    module.relative_attention_bias.weight = nn.Parameter(given.table.detach().clone())
    with torch.no_grad():
        bias = module.compute_bias(setting.length, setting.length) if shared else None
    return _built(module, lambda x: module(x, position_bias=bias)[0])


def _wav2vec2_bert(setting: Setting, given: Layer) -> Built:
    config = Wav2Vec2BertConfig(
        hidden_size=setting.d_model, num_attention_heads=setting.n_heads, position_embeddings_type="relative_key",
        left_max_position_embeddings=CLIP, right_max_position_embeddings=CLIP, attn_implementation="sdpa",
    )  # fmt: skip
    module = wav2vec2_bert.Wav2Vec2BertSelfAttention(config)
    for name, weight in zip(("q", "k", "v", "out"), (given.query, given.key, given.value, given.output), strict=True):
        _load(getattr(module, f"linear_{name}"), weight)
    assert given.table is not None
    module.distance_embedding.weight = nn.Parameter(given.table.detach().clone())
    seen = references.offsets(setting.length)[None, None] <= 0 if setting.causal else None
    return _built(module, lambda x: module(x, seen)[0])


def _x_transformers(flash: bool, setting: Setting, given: Layer) -> Built:
    module = x_transformers.Attention(
        setting.d_model, dim_head=setting.d_head, heads=setting.n_heads, causal=setting.causal, flash=flash
    )
    # Its heads turn neighbouring columns.
    to, n_heads = "interleaved" if setting.scheme == "rope" else "half", setting.n_heads
    query, key = (convert_rope_layout(w, n_heads=n_heads, source="half", target=to) for w in (given.query, given.key))
    weights = zip(("q", "k", "v", "out"), (query, key, given.value, given.output), strict=True)
    for name, weight in weights:
        _load(getattr(module, f"to_{name}"), weight)
    extra, parameters = _x_transformers_extra(setting, given)
    return lambda x: module(x, **extra), [*module.eval().parameters(), *parameters]


def _x_transformers_extra(setting: Setting, given: Layer) -> tuple[dict, list[nn.Parameter]]:
    """What x-transformers' layers are given by the model around them."""
    if setting.scheme == "rope":
        angles = x_transformers.RotaryEmbedding(setting.d_head)(torch.arange(setting.length))
        return {"rotary_pos_emb": angles}, []
    if setting.scheme == "alibi":
        return {"rel_pos": x_transformers.AlibiPositionalBias(setting.n_heads)}, []
    assert given.table is not None
    bias = x_transformers.RelativePositionBias(1.0, setting.causal, heads=setting.n_heads)
    bias.relative_attention_bias.weight = nn.Parameter(given.table.detach().clone())
    return {"rel_pos": bias}, list(bias.parameters())


def _x_transformers_candidates(setting: Setting) -> list[Named]:
    if setting.scheme == "shaw":
        return []
    # With the backward pass only the leaner way: the other takes seconds and never was the fastest peer.
    ways = (True,) if setting.training else (True, False)
    notes = {"rope": "keeps angles and takes sines at each call", "alibi": "keeps its matrix", "t5": "makes its matrix"}
    return [
        (f"x-transformers Attention, flash={flash}", partial(_x_transformers, flash), notes[setting.scheme])
        for flash in ways
    ]


def _t5_candidates(setting: Setting) -> list[Named]:
    made: Named = ("transformers T5Attention (sdpa), bias made", partial(_t5, False), "as in the first layer")
    shared: Named = ("transformers T5Attention (sdpa), bias at hand", partial(_t5, True), "as in the later layers")
    return [made] if setting.training else [made, shared]


_TRANSFORMERS: dict[str, Callable[[Setting], list[Named]]] = {
    "rope": lambda setting: [("transformers LlamaAttention (sdpa)", _llama, "sines and cosines at hand")],
    "alibi": lambda setting: [("transformers BloomAttention", _bloom, "mask at hand")] if setting.causal else [],
    "t5": _t5_candidates,
    "shaw": lambda setting: [("transformers Wav2Vec2BertSelfAttention (sdpa)", _wav2vec2_bert, "relative_key")],
}
