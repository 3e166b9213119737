"""Independent implementations of position schemes, called by themselves and brought to this project's conventions.

Vectors are "batch heads seq d_head". Positions are integers, "seq" or "batch seq", and "seq axes" where there are many
axes; an offset is key minus query. A bias is what is added to the scaled attention logits, "heads query key". Rotary
modules that keep no state between calls are built once, so that a benchmark times the call and not the construction.
"""

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from torch import Tensor, nn
from transformers import (
    CohereConfig,
    GlmConfig,
    GPTNeoXConfig,
    LlamaConfig,
    T5Config,
)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.cohere import modeling_cohere as cohere
from transformers.models.distilbert import modeling_distilbert as distilbert
from transformers.models.glm import modeling_glm as glm
from transformers.models.gpt_neox import modeling_gpt_neox as gpt_neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.m2m_100 import modeling_m2m_100 as m2m_100
from transformers.models.mpt import modeling_mpt as mpt
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2_vl
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.roformer import modeling_roformer as roformer
from transformers.models.speecht5 import modeling_speecht5 as speecht5
from transformers.models.t5 import modeling_t5 as t5
from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert as wav2vec2_bert
from transformers.models.whisper import modeling_whisper as whisper
from x_transformers import x_transformers

# Attention without positions.


def attention_torch(ours: nn.Module) -> nn.MultiheadAttention:
    """torch MultiheadAttention, with the weights of one of ours."""
    theirs = nn.MultiheadAttention(ours.query.in_features, ours.n_heads, batch_first=True).to(ours.query.weight.dtype)
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.data = torch.cat([part.weight for part in parts])
    theirs.in_proj_bias.data = torch.cat([part.bias for part in parts])
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    return theirs


# Sinusoidal tables, "positions d_model".


def sinusoids_distilbert(n_positions: int, d_model: int) -> Tensor:
    """transformers distilbert: interleaved, computed in float64; odd widths too; slow."""
    table = torch.empty(n_positions, d_model)
    distilbert.create_sinusoidal_embeddings(n_positions, d_model, table)
    return table


def sinusoids_roformer(n_positions: int, d_model: int) -> Tensor:
    """transformers roformer: concat, computed in float64; odd widths too; slow."""
    return roformer.RoFormerSinusoidalPositionalEmbedding(n_positions, d_model).create_weight()


def sinusoids_m2m100(n_positions: int, d_model: int) -> Tensor:
    """transformers m2m_100: tensor2tensor, angles in float32; odd widths end with a zero column."""
    return m2m_100.M2M100SinusoidalPositionalEmbedding.get_embedding(n_positions, d_model)


def sinusoids_whisper(n_positions: int, d_model: int, base: float = 10000.0) -> Tensor:
    """transformers whisper: tensor2tensor, angles in float32; even widths of at least 4."""
    return whisper.sinusoids(n_positions, d_model, base)


def sinusoids_x_transformers(n_positions: int, d_model: int, base: float = 10000.0) -> Tensor:
    """x-transformers ScaledSinusoidalEmbedding: concat, angles in float32; its scale of d_model^-1/2 is undone."""
    module = x_transformers.ScaledSinusoidalEmbedding(d_model, theta=base)
    with torch.no_grad():
        module.scale.fill_(1.0)
        return module(torch.empty(1, n_positions, d_model))


# Shaw et al. 2018. A table has rows for the offsets -clip to clip, "2*clip+1 d_head".


def shaw_wav2vec2bert(query: Tensor, table: Tensor, n_keys: int) -> Tensor:
    """transformers wav2vec2_bert, "relative_key": query times row times d_head^-1/2, "batch heads query key"."""
    clip = len(table) // 2
    module = SimpleNamespace(
        left_max_position_embeddings=clip,
        right_max_position_embeddings=clip,
        distance_embedding=nn.Embedding.from_pretrained(table),
        scaling=query.shape[-1] ** -0.5,
    )
    key = query.new_empty(*query.shape[:2], n_keys, query.shape[-1])
    return wav2vec2_bert._apply_relative_key_position_encoding(module, query, key)[1]


def shaw_rows_speecht5(table: Tensor, n_positions: int) -> Tensor:
    """transformers speecht5: the row of each pair, "query key d_head"; its own table runs over query minus key."""
    module = speecht5.SpeechT5RelativePositionalEncoding(table.shape[1], max_length=len(table) // 2 + 1)
    # It clips to -max_length and max_length - 1, so the farthest key on the right is told apart: repeat its row.
    module.pe_k = nn.Embedding.from_pretrained(torch.cat([table[-1:], table.flip(0)]))
    return module(torch.empty(1, n_positions, 1))


# T5 (Raffel et al. 2020). A weight is "buckets heads".


def t5_buckets_transformers(
    offsets: Tensor, bidirectional: bool, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    """transformers t5: the bucket of each offset."""
    return t5.T5Attention._relative_position_bucket(offsets, bidirectional, n_buckets, max_distance)


def t5_bias_transformers(
    weight: Tensor, n_queries: int, n_keys: int, bidirectional: bool, max_distance: int = 128
) -> Tensor:
    """transformers t5: the queries are the last of the keys; T5 itself adds it to logits that are not scaled."""
    n_buckets, n_heads = weight.shape
    config = T5Config(
        num_heads=n_heads,
        relative_attention_num_buckets=n_buckets,
        relative_attention_max_distance=max_distance,
        is_decoder=not bidirectional,
    )
    module = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    module.relative_attention_bias = nn.Embedding.from_pretrained(weight)
    return module.compute_bias(n_queries, n_keys, past_seen_tokens=n_keys - n_queries)[0]


def t5_bias_x_transformers(
    weight: Tensor, n_queries: int, n_keys: int, bidirectional: bool, max_distance: int = 128
) -> Tensor:
    """x-transformers RelativePositionBias: the queries are the last of the keys; its factor d_head^1/2 is left out."""
    n_buckets, n_heads = weight.shape
    module = x_transformers.RelativePositionBias(1.0, not bidirectional, n_buckets, max_distance, n_heads)
    module.relative_attention_bias = nn.Embedding.from_pretrained(weight)
    return module(n_queries, n_keys)


# ALiBi (Press et al. 2022).


def alibi_slopes_bloom(n_heads: int) -> Tensor:
    """transformers bloom: the slopes, "heads"."""
    return bloom.build_alibi_tensor(torch.ones(1, 2), n_heads, torch.float32)[:, 0, 1]


def alibi_slopes_mpt(n_heads: int) -> Tensor:
    """transformers mpt: the slopes, "heads"."""
    return -mpt.build_mpt_alibi_tensor(n_heads, 2)[:, 0, 0]


def alibi_slopes_x_transformers(n_heads: int) -> Tensor:
    """x-transformers AlibiPositionalBias: the slopes, "heads"."""
    return x_transformers.AlibiPositionalBias(n_heads).slopes.flatten()


def alibi_keys_bloom(n_heads: int, attention_mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """transformers bloom: slope times key position, "batch heads 1 key"; causal ALiBi up to a constant in each row."""
    return bloom.build_alibi_tensor(attention_mask, n_heads, dtype).unflatten(0, (-1, n_heads))


# RoPE (Su et al. 2021). Entry i turns with entry i + d_head/2 in the half layout, 2i with 2i + 1 in the interleaved.


@cache
def _rotary(module: type[nn.Module], config: type, d_head: int, **rope_parameters) -> nn.Module:
    """A rotary module of transformers for heads of this width."""
    parameters = {"rope_type": "default", **rope_parameters}
    return module(config(hidden_size=d_head, num_attention_heads=1, head_dim=d_head, rope_parameters=parameters))


def _batched(positions: Tensor) -> Tensor:
    return positions if positions.ndim > 1 else positions[None]


def rope_llama(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """transformers llama: half layout."""
    rotary = _rotary(llama.LlamaRotaryEmbedding, LlamaConfig, x.shape[-1], rope_theta=base)
    return llama.apply_rotary_pos_emb(x, x, *rotary(x, _batched(positions)))[0]


def rope_gptj(x: Tensor, positions: Tensor) -> Tensor:
    """transformers gptj: interleaved layout; its base is always 10000."""
    table = gptj.create_sinusoidal_positions(int(positions.max()) + 1, x.shape[-1])
    sin, cos = table[_batched(positions)].to(x.dtype).chunk(2, dim=-1)
    return gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)


def rope_roformer(x: Tensor, n_positions: int) -> Tensor:
    """transformers roformer: interleaved layout, positions from 0 on, table in float64; its base is always 10000."""
    table = sinusoids_roformer(n_positions, x.shape[-1]).to(x.dtype)
    rotate = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings
    return rotate(table[None, None], x, x)[0]


def rope_cohere(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """transformers cohere: interleaved layout."""
    rotary = _rotary(cohere.CohereRotaryEmbedding, CohereConfig, x.shape[-1], rope_theta=base)
    return cohere.apply_rotary_pos_emb(x, x, *rotary(x, _batched(positions)))[0]


@cache
def _rotary_embedding_torch(d_head: int, base: float, use_xpos: bool = False, scale_base: int = 512) -> nn.Module:
    return RotaryEmbedding(d_head, theta=base, use_xpos=use_xpos, xpos_scale_base=scale_base, cache_if_possible=False)


def rope_rotary_embedding_torch(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """rotary-embedding-torch: interleaved layout, without its cache; positions "seq"."""
    return apply_rotary_emb(_rotary_embedding_torch(x.shape[-1], base)(positions), x).detach()


@cache
def _x_transformers_rotary(d_head: int, base: float, use_xpos: bool = False, scale_base: int = 512) -> nn.Module:
    return x_transformers.RotaryEmbedding(d_head, use_xpos=use_xpos, scale_base=scale_base, base=base)


def rope_x_transformers(x: Tensor, positions: Tensor, base: float = 10000.0, fraction: float = 1.0) -> Tensor:
    """x-transformers RotaryEmbedding: interleaved layout; the first part of the entries where fraction is below 1."""
    frequencies, scale = _x_transformers_rotary(int(x.shape[-1] * fraction), base)(positions)
    return x_transformers.apply_rotary_pos_emb(x, frequencies, scale)


def rope_gpt_neox(x: Tensor, positions: Tensor, base: float = 10000.0, fraction: float = 1.0) -> Tensor:
    """transformers gpt_neox: half layout within the first part of the entries."""
    rotary = _rotary(
        gpt_neox.GPTNeoXRotaryEmbedding, GPTNeoXConfig, x.shape[-1], rope_theta=base, partial_rotary_factor=fraction
    )
    return gpt_neox.apply_rotary_pos_emb(x, x, *rotary(x, _batched(positions)))[0]


def rope_glm(x: Tensor, positions: Tensor, base: float = 10000.0, fraction: float = 1.0) -> Tensor:
    """transformers glm: interleaved layout within the first part of the entries."""
    rotary = _rotary(glm.GlmRotaryEmbedding, GlmConfig, x.shape[-1], rope_theta=base, partial_rotary_factor=fraction)
    return glm.apply_rotary_pos_emb(x, x, *rotary(x, _batched(positions)))[0]


# RoPE on several axes: positions are "seq axes".


@cache
def _qwen2_vl_vision(d_head: int, base: float) -> nn.Module:
    config = Qwen2VLVisionConfig(
        embed_dim=d_head, num_heads=1, rope_parameters={"rope_type": "axial", "rope_theta": base}
    )
    return qwen2_vl.Qwen2VLVisionRotaryEmbedding(config)


def rope_qwen2_vl_vision(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """transformers qwen2_vl, images: half layout; each axis has the frequencies of RoPE for d_head/2, axis 0 first."""
    cos, sin = _qwen2_vl_vision(x.shape[-1], base)(x, positions)
    rotated = qwen2_vl.apply_rotary_pos_emb_vision(x.transpose(1, 2), x.transpose(1, 2), cos, sin)[0]
    return rotated.transpose(1, 2)


def rope_grid_rotary_embedding_torch(x: Tensor, grid: Sequence[int], base: float = 10000.0) -> Tensor:
    """rotary-embedding-torch get_axial_freqs: interleaved layout; a grid, row by row; d_head/axes entries each."""
    angles = _rotary_embedding_torch(x.shape[-1] // len(grid), base).get_axial_freqs(*grid)
    return apply_rotary_emb(angles.flatten(0, -2), x).detach()


# Scaled RoPE.


def rope_parameters_transformers(
    kind: str,
    d_head: int,
    base: float = 10000.0,
    *,
    max_positions: int = 2048,
    seq_len: int | None = None,
    **options,
) -> tuple[Tensor, float]:
    """transformers ROPE_INIT_FUNCTIONS: frequencies and attention factor; linear, dynamic, yarn, llama3, longrope."""
    config = LlamaConfig(
        hidden_size=d_head,
        num_attention_heads=1,
        head_dim=d_head,
        max_position_embeddings=max_positions,
        rope_parameters={"rope_type": kind, "rope_theta": base, **options},
    )
    return ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=seq_len)


# xPos (Sun et al. 2022): only products of a query and a key are comparable, because the centre of the scale cancels.


def xpos_x_transformers(q: Tensor, k: Tensor, positions: Tensor, scale_base: int = 512) -> tuple[Tensor, Tensor]:
    """x-transformers RotaryEmbedding: interleaved layout; q times zeta^(n/scale_base), k divided by it."""
    frequencies, scale = _x_transformers_rotary(q.shape[-1], 10000.0, True, scale_base)(positions)
    rotate = x_transformers.apply_rotary_pos_emb
    return rotate(q, frequencies, scale), rotate(k, frequencies, scale**-1)


def xpos_rotary_embedding_torch(q: Tensor, k: Tensor, scale_base: int = 512) -> tuple[Tensor, Tensor]:
    """rotary-embedding-torch: the same for positions from 0 on."""
    rotated = _rotary_embedding_torch(q.shape[-1], 10000.0, True, scale_base).rotate_queries_and_keys(q, k)
    return rotated[0].detach(), rotated[1].detach()


# PoPE (Gopalakrishnan et al. 2025): theirs turns keys by the phases that are learned, ours the queries back.


def pope_x_transformers(q: Tensor, k: Tensor, positions: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """x-transformers PolarEmbedding, of queries and keys "1 heads seq d_head" and phases "heads d_head"."""
    module, turned = x_transformers.PolarEmbedding(q.shape[-1], len(delta)), x_transformers.apply_polar_pos_emb
    with torch.no_grad():
        module.learned_bias.copy_(delta[:, None])
        angles, phases = module(positions)
        return turned(q, angles), turned(k, angles + phases)


# CoPE (Golovneva et al. 2024).


def cope_x_transformers(q: Tensor, logits: Tensor, weight: Tensor) -> Tensor:
    """x-transformers CoPE: the bias "batch heads query key" for scaled, masked logits; weight "positions d_head"."""
    module = x_transformers.CoPE(dim=weight.shape[1], heads=q.shape[1], max_pos=len(weight))
    with torch.no_grad():
        module.pos_emb.copy_(weight)
        return module(q, logits)


# The Forgetting Transformer (Lin et al. 2025).


def forgetting_x_transformers(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x-transformers DataDependentAlibi: the bias "batch heads query key" of tokens; weight "heads d_model"."""
    module = x_transformers.DataDependentAlibi(dim=x.shape[-1], heads=len(weight))
    linear = module.to_forget_gates[0]
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
        return module(x)
