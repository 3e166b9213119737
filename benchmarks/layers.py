"""Whole attention layers with equal weights: posembed's, those of transformers and of x-transformers.

What a model makes once for all its layers (sines and cosines, masks, biases that layers share) is at hand, unless the
name says that it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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

from .attention import ANGLES, CLIP, FLOAT32, Given, Setting, answer_of, mixed
from .biases import offsets
from .case import Candidate, Case, with_gradient, without_gradient
from .goals import no_more_memory, no_slower

# A layer as a function of its input, and the parameters that gradients are wanted for.
Built = tuple[Callable[[Tensor], Tensor], list[nn.Parameter]]
Named = tuple[str, Callable[[Setting, Given], Built], str]
PROJECTIONS = ("query", "key", "value", "output")


def case(setting: Setting) -> Case:
    """One case of the layer: its input "batch seq d_model" and its four projections."""
    width = setting.d_model
    shapes = dict.fromkeys(("x", "upstream"), (1, setting.sizes[0], width)) | dict.fromkeys(PROJECTIONS, (width, width))
    ours: Named = ("posembed MultiHeadAttention", on_posembed, "")
    named = [ours, *OF_TRANSFORMERS[setting.scheme](setting), *_x_transformers_candidates(setting)]
    return Case(
        "attention",
        f"layer, {setting.name}",
        partial(_given, setting, shapes),
        [_candidate(setting, *each) for each in named],
        # Parameters have other forms in each library.
        partial(answer_of, setting, formula, ("x",)),
        ANGLES if setting.scheme == "rope" else FLOAT32,
        [no_slower, no_more_memory],
    )


def _given(setting: Setting, shapes: dict[str, tuple[int, ...]]) -> Given:
    """Queries and keys come out with a variance of one."""
    given = setting.drawn(**shapes)
    return given | {name: given[name] / setting.d_model**0.5 for name in PROJECTIONS}


def _candidate(setting: Setting, name: str, build: Callable[[Setting, Given], Built], note: str) -> Candidate:
    def make(given: Given) -> Callable[[], Any]:
        x = given["x"].detach().requires_grad_(setting.training)
        call, parameters = build(setting, given)
        if not setting.training:
            return without_gradient(lambda: call(x))
        return with_gradient(lambda: call(x), [x, *parameters], given["upstream"])

    return Candidate(name, make, note, (lambda found: found[:2]) if setting.training else (lambda found: found))


def formula(setting: Setting, *, x: Tensor, query: Tensor, key: Tensor, value: Tensor, output: Tensor, table=None):
    """The formula, in the format of what is given."""
    _, *heads = setting.sizes
    q, k, v = ((x @ weight.T).unflatten(-1, heads).transpose(1, 2) for weight in (query, key, value))
    return mixed(setting, q, k, v, table).transpose(1, 2).flatten(2) @ output.T


def _load(linear: nn.Linear, weight: Tensor) -> None:
    """Take over a weight; a bias, where a library insists on one, is zero."""
    linear.weight = nn.Parameter(weight.clone())
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)


def _built(module: nn.Module, call: Callable[[Tensor], Tensor]) -> Built:
    return call, list(module.eval().parameters())


def on_posembed(setting: Setting, given: Given) -> Built:
    """This project's layer."""
    one = setting.made_scheme(nn.Parameter(given["table"].clone()) if "table" in given else None)
    module = MultiHeadAttention(setting.d_model, setting.sizes[1], one, causal=setting.causal, bias=False)
    for name in PROJECTIONS:
        _load(getattr(module, name), given[name])
    positions = torch.arange(setting.sizes[0])
    return _built(module, lambda x: module(x, positions))


def _llama(setting: Setting, given: Given) -> Built:
    config = LlamaConfig(
        hidden_size=setting.d_model, num_attention_heads=setting.sizes[1], attn_implementation="sdpa",
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )  # fmt: skip
    module = llama.LlamaAttention(config, layer_idx=0)
    for name, weight in zip("qkvo", map(given.get, PROJECTIONS), strict=True):
        _load(getattr(module, f"{name}_proj"), weight)
    angles = llama.LlamaRotaryEmbedding(config)(given["x"], torch.arange(setting.sizes[0])[None])
    return _built(module, lambda x: module(x, angles)[0])


def _bloom(setting: Setting, given: Given) -> Built:
    config = BloomConfig(hidden_size=setting.d_model, n_head=setting.sizes[1])
    module = bloom.BloomAttention(config, layer_idx=0).to(given["x"].dtype)
    by_head = [each.unflatten(0, (setting.sizes[1], -1)) for each in map(given.get, PROJECTIONS[:3])]
    _load(module.query_key_value, torch.stack(by_head, 1).flatten(0, 2))
    _load(module.dense, given["output"])
    length, dtype = setting.sizes[0], given["x"].dtype
    keys = bloom.build_alibi_tensor(torch.ones(1, length), setting.sizes[1], dtype)
    mask = torch.full((1, 1, length, length), torch.finfo(dtype).min, dtype=dtype).triu(1)
    residual = torch.zeros_like(given["x"])
    return _built(module, lambda x: module(x, residual, keys, mask)[0])


def _t5(shared: bool, setting: Setting, given: Given) -> Built:
    config = T5Config(
        d_model=setting.d_model, d_kv=setting.sizes[2], num_heads=setting.sizes[1], is_decoder=setting.causal,
        attn_implementation="sdpa",
    )  # fmt: skip
    module = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0, is_causal=setting.causal)
    # T5 does not divide its logits by the root of the width.
    _load(module.q, given["query"] / setting.sizes[2] ** 0.5)
    for name, weight in zip("kvo", map(given.get, PROJECTIONS[1:]), strict=True):
        _load(getattr(module, name), weight)
    module.relative_attention_bias.weight = nn.Parameter(given["table"].clone())
    with torch.no_grad():
        bias = module.compute_bias(setting.sizes[0], setting.sizes[0]) if shared else None
    return _built(module, lambda x: module(x, position_bias=bias)[0])


def _wav2vec2_bert(setting: Setting, given: Given) -> Built:
    config = Wav2Vec2BertConfig(
        hidden_size=setting.d_model, num_attention_heads=setting.sizes[1], position_embeddings_type="relative_key",
        left_max_position_embeddings=CLIP, right_max_position_embeddings=CLIP, attn_implementation="sdpa",
    )  # fmt: skip
    module = wav2vec2_bert.Wav2Vec2BertSelfAttention(config)
    for name, weight in zip(("q", "k", "v", "out"), map(given.get, PROJECTIONS), strict=True):
        _load(getattr(module, f"linear_{name}"), weight)
    module.distance_embedding.weight = nn.Parameter(given["table"].clone())
    seen = offsets(setting.sizes[0])[None, None] <= 0 if setting.causal else None
    return _built(module, lambda x: module(x, seen)[0])


def _x_transformers(flash: bool, setting: Setting, given: Given) -> Built:
    module = x_transformers.Attention(
        setting.d_model, dim_head=setting.sizes[2], heads=setting.sizes[1], causal=setting.causal, flash=flash
    )
    # Its heads turn neighbouring columns.
    to, n_heads = "interleaved" if setting.scheme == "rope" else "half", setting.sizes[1]
    query, key = (
        convert_rope_layout(w, n_heads=n_heads, source="half", target=to) for w in map(given.get, PROJECTIONS[:2])
    )
    weights = zip(("q", "k", "v", "out"), (query, key, given["value"], given["output"]), strict=True)
    for name, weight in weights:
        _load(getattr(module, f"to_{name}"), weight)
    extra, parameters = _x_transformers_extra(setting, given)
    return lambda x: module(x, **extra), [*module.eval().parameters(), *parameters]


def _x_transformers_extra(setting: Setting, given: Given) -> tuple[dict, list[nn.Parameter]]:
    """What x-transformers' layers are given by the model around them."""
    if setting.scheme == "rope":
        angles = x_transformers.RotaryEmbedding(setting.sizes[2])(torch.arange(setting.sizes[0]))
        return {"rotary_pos_emb": angles}, []
    if setting.scheme == "alibi":
        return {"rel_pos": x_transformers.AlibiPositionalBias(setting.sizes[1])}, []
    bias = x_transformers.RelativePositionBias(1.0, setting.causal, heads=setting.sizes[1])
    bias.relative_attention_bias.weight = nn.Parameter(given["table"].clone())
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


OF_TRANSFORMERS: dict[str, Callable[[Setting], list[Named]]] = {
    "rope": lambda setting: [("transformers LlamaAttention (sdpa)", _llama, "sines and cosines at hand")],
    "alibi": lambda setting: [("transformers BloomAttention", _bloom, "mask at hand")] if setting.causal else [],
    "t5": _t5_candidates,
    "shaw": lambda setting: [("transformers Wav2Vec2BertSelfAttention (sdpa)", _wav2vec2_bert, "relative_key")],
}
