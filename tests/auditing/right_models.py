"""Tiny models of transformers with random weights, wide enough for order to be heard."""

import torch
import transformers

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}
IDS = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}
BART = {
    "vocab_size": 60,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 64,
    "init_std": 0.3,
    "decoder_start_token_id": 2,
}
OPT = {
    "vocab_size": 60,
    "max_position_embeddings": 64,
    "hidden_size": 32,
    "word_embed_proj_dim": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "ffn_dim": 32,
    "init_std": 0.3,
}
GPT2 = {"vocab_size": 60, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
T5 = {"vocab_size": 60, "d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 4}
BLOOM = {"vocab_size": 60, "hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
MODELS = {
    "GPT2LMHeadModel": ("GPT2Config", GPT2 | {"bos_token_id": 2, "eos_token_id": 3}),
    "LlamaForCausalLM": ("LlamaConfig", SIZES | {"num_key_value_heads": 2}),
    "BertForMaskedLM": ("BertConfig", SIZES),
    "RobertaForMaskedLM": ("RobertaConfig", SIZES | IDS),
    "T5ForConditionalGeneration": ("T5Config", T5),
    "BartForConditionalGeneration": ("BartConfig", BART | IDS),
    "MistralForCausalLM": ("MistralConfig", SIZES | {"num_key_value_heads": 2, "sliding_window": 6}),
    "OPTForCausalLM": ("OPTConfig", OPT | IDS),
    "GPTNeoXForCausalLM": ("GPTNeoXConfig", SIZES),
    "BloomForCausalLM": ("BloomConfig", BLOOM),
}


def right(name, **changes):
    """Make the model of this class, the same one each time."""
    config, settings = MODELS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return getattr(transformers, name)(getattr(transformers, config)(**settings | changes))
