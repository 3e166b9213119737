"""Tiny models of every family that takes a position scheme, with random weights, and their own positions as schemes."""

import torch
import transformers
from torch import Tensor

from posembed import PositionScheme
from posembed.encodings import Learned, PerLayer, RoPE
from posembed.tables import find_position_rows

N_LAYERS, N_HEADS, D_HEAD, LENGTH = 2, 4, 8, 40
_SIZES = {
    "vocab_size": 50,
    "hidden_size": N_HEADS * D_HEAD,
    "intermediate_size": 32,
    "num_hidden_layers": N_LAYERS,
    "num_attention_heads": N_HEADS,
    "num_key_value_heads": 2,
    "max_position_embeddings": LENGTH,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_MORE = {
    "albert": {"embedding_size": 32, "num_hidden_groups": 2},
    "electra": {"embedding_size": 32},
    "gemma": {"head_dim": D_HEAD},
    "gemma3_text": {
        "head_dim": D_HEAD,
        "query_pre_attn_scalar": D_HEAD,
        "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "opt": {"word_embed_proj_dim": 32, "ffn_dim": 32},
    "qwen3": {"head_dim": D_HEAD},
    "mistral": {"sliding_window": 5},
    "mixtral": {"num_local_experts": 2},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2},
}
ENCODERS = ["albert", "bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta"]


def build(kind: str, **changes) -> transformers.PreTrainedModel:
    """Make the model in eval mode, the same one each time, with weights so large that positions matter."""
    config = transformers.AutoConfig.for_model(kind, **_SIZES | _MORE.get(kind, {}) | changes)
    auto = transformers.AutoModelForMaskedLM if kind in ENCODERS else transformers.AutoModelForCausalLM
    return _loud(auto, config)


def build_class(name: str, kind: str, **changes) -> transformers.PreTrainedModel:
    """Make a model of this class instead of the usual one."""
    return _loud(getattr(transformers, name), transformers.AutoConfig.for_model(kind, **_SIZES | changes))


def _loud(made, config) -> transformers.PreTrainedModel:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = made._from_config(config) if hasattr(made, "_from_config") else made.from_config(config)
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8)
    # Random models end a text at any moment.
    if model.can_generate():
        model.generation_config.eos_token_id = None
    return model.eval()


def own_positions(model) -> PositionScheme:
    """Make the scheme that a model has of itself."""
    config = model.config
    if not any("rotary_emb" in name for name, _ in model.named_modules()):
        return Learned(table=find_position_rows(model).rows)
    if config.model_type in ("gemma3_text", "modernbert"):
        return PerLayer([_rope(config.rope_parameters[each]) for each in config.layer_types])
    return _rope(config.rope_parameters)


def _rope(parameters) -> RoPE:
    return RoPE(D_HEAD, base=parameters["rope_theta"], fraction=parameters.get("partial_rotary_factor", 1.0))


def tokens(batch: int = 2, length: int = 7, seed: int = 1) -> Tensor:
    """Draw ids above every special one."""
    return torch.randint(3, 50, (batch, length), generator=torch.Generator().manual_seed(seed))


def left_padded(ids: Tensor, n_padding: int = 4) -> tuple[Tensor, Tensor]:
    """Put padding before each text, and return the ids with their mask."""
    padded = torch.cat([torch.zeros(len(ids), n_padding, dtype=torch.long), ids], 1)
    return padded, (padded != 0).long()


def generated(model, ids: Tensor, **how) -> Tensor:
    """Generate 6 tokens, the likeliest ones."""
    return model.generate(ids, **{"max_new_tokens": 6, "do_sample": False, "disable_compile": True} | how)


def difference(a: Tensor, b: Tensor) -> float:
    """The largest difference, as a share of the largest number."""
    return float((a - b).abs().max() / b.abs().max())
