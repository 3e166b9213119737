"""What is known of models, as data: what they call their tables, where position 0 is, and what others have instead.

How many rows stand before position 0 follows from the model_type in config.json; the tests check the entries against
the models of transformers.
"""

from __future__ import annotations

import re

# What models call an absolute position table.
TABLE_NAMES = frozenset(
    {
        "embed_positions",  # BART, OPT, Whisper
        "pe",  # the buffer of PyTorch's tutorial
        "pos_emb",
        "pos_embed",  # timm
        "position_embedding",  # CLIP
        "position_embedding_table",
        "position_embeddings",  # BERT, RoBERTa, ViT
        "positional_embedding",  # OpenAI's CLIP and Whisper
        "positions_embed",  # GPT
        "wpe",  # GPT-2
    }
)
# What models of these types call theirs, and no other is one: of GPT-2's in a decision transformer row 0 alone is read,
# RoFormer's rotates queries and keys and is added to nothing, a conformer's is of distances.
OWN_NAMES = {
    "canine": "char_position_embeddings",
    "decision_transformer": "embed_timestep",
    "reformer": "embedding",
    "roformer": None,
    "wav2vec2-conformer": None,
}
# Parts of paths under which those names mean something else: GPT-J's angles, SAM's random frequencies.
NO_TABLES = ("attn.embed_positions", "shared_image_embedding.", "shared_embedding.")

# What models of images call the tokens that have a row of the table in front of the patches, and under which names some
# table has none for them: timm's no_embed_class, EoMT's.
CLASS_TOKENS = ("class_embedding", "cls_token", "dist_token", "distillation_token")
PERHAPS_WITHOUT_CLASS = ("pos_embed", "position_embeddings.weight")

# Other names that may be a table's, for a list to choose from.
LIKELY = re.compile(r"pos(ition(al|s)?)?_?(emb|enc|table)|wpe")
UNLIKELY = re.compile(r"rel(ative)?_|relative|bias|rotary|_ids|proj|post_")

# The parts of models, and the words in a tensor's path that stand for each.
PARTS = {
    "text": {"text", "language"},
    "vision": {"vision", "visual", "image", "video"},
    "audio": {"audio", "speech"},
    "encoder": {"encoder"},
    "decoder": {"decoder"},
}

# Under these names some model keeps rows before position 0, so the model_type must be known. Under all other names, and
# where the table is a parameter of its own (no ".weight"), row p is position p in every model.
AMBIGUOUS = frozenset({"embed_positions", "position_embeddings"})

# fairseq's habit: positions are counted from the padding id on, so the first is pad_token_id + 1. The numbers are the
# padding ids where config.json leaves pad_token_id out.
AFTER_PADDING = {
    "altclip_text_model": 1,
    "bridgetower_text_model": 1,
    "camembert": 1,
    "clap_text_model": 1,
    "data2vec-text": 1,
    "ernie_m": 1,
    "esm": 1,
    "fsmt": 1,
    "ibert": 1,
    "layoutlmv3": 1,
    "lilt": 0,
    "longformer": 1,
    "luke": 1,
    "markuplm": 0,
    "prophetnet": 0,
    "roberta": 1,
    "roberta-prelayernorm": 1,
    "xlm-prophetnet": 0,
    "xlm-roberta": 1,
    "xlm-roberta-xl": 1,
    "xmod": 1,
}

# Two rows before position 0, whatever the padding id.
TWO_ROWS = frozenset(
    {
        *("bart", "biogpt", "florence2", "mbart", "mpnet", "mra", "mvp", "nystromformer", "opt", "plbart"),
        *("pp_formulanet", "pp_formulanet_text", "trocr", "yoso"),
    }
)

# No rows before position 0.
NO_ROWS = frozenset(
    {
        *("albert", "align", "align_text_model", "audioflamingo3", "audioflamingo3_encoder", "bert", "bert-generation"),
        *("big_bird", "bigbird_pegasus", "blenderbot", "blenderbot-small", "blip", "blip_2_qformer"),
        *("blip_text_model", "bros", "chinese_clip", "chinese_clip_text_model", "convbert", "deberta", "deberta-v2"),
        *("distilbert", "dpr", "electra", "eomt", "ernie", "flaubert", "flava", "flava_text_model", "fnet", "git"),
        *("instructblip_qformer", "instructblipvideo_qformer", "layoutlm", "layoutlmv2", "layoutxlm", "led", "lxmert"),
        *("marian", "megatron-bert", "mobilebert", "moss_transcribe_diarize", "moss_transcribe_diarize_audio"),
        *("musicflamingo", "pegasus", "qdqbert", "qwen2_audio", "qwen2_audio_encoder", "rembert", "roc_bert"),
        *("splinter", "squeezebert", "tapas", "tvp", "videomt", "vilt", "visual_bert", "voxtral", "voxtral_encoder"),
        *("whisper", "xlm"),
    }
)

# Tables of their own kind in a model whose main table has rows before position 0.
OTHERS_WITHOUT = ("entity_embeddings.",)  # LUKE

ROPE = "rotary embeddings (RoPE)"
ALIBI = "ALiBi's biases, computed from the distance"
SINUSOID = "a sinusoid that it computes and does not store"
CONVOLUTION = "a convolution over its input (wav2vec 2.0's kind)"
CONVOLUTION_AND_BIAS = f"{CONVOLUTION} and a learned bias for each relative distance"
RELATIVE = "relative positions inside its attention"
RECURRENCE = "nothing of the kind: layers of it read the tokens one after the other"

# By a part of the name of one of the model's modules, parameters or buffers. In this order: WavLM and T5 models have
# several.
BY_NAME = {
    "rotary": ROPE,
    "attn.embed_positions": ROPE,  # GPT-J's and CodeGen's angles
    "rel_attn_embed": CONVOLUTION_AND_BIAS,
    "pos_conv_embed": CONVOLUTION,
    "relative_attention_bias": "a learned bias for each relative distance (T5's kind), which name= reads and "
    "posembed.encodings.T5 takes as table=",
    "relative_position_bias": "a learned bias for each relative distance",
    "position_bias_mlp": "biases that a small network makes of the distance (Swin v2's kind)",
    "rel_pos": RELATIVE,
    "rel_embeddings": RELATIVE,
    "pos_bias_u": f"{RELATIVE} (Transformer-XL's kind)",
    "r_r_bias": f"{RELATIVE} (Transformer-XL's kind)",
    "position_embeddings.weights.": "factors of a table, one an axis, which its model puts together (Reformer's kind)",
    "A_log": RECURRENCE,  # the layers of Mamba, alone or between others that have no positions either
}

# By the model_type of config.json, where neither the config nor a tensor's name would tell.
BY_TYPE = {
    ALIBI: {"bloom", "mpt"},
    # Falcon where it has no ALiBi, which its config says.
    ROPE: {
        *("codegen", "esm", "falcon", "gpt_neox", "gpt_neox_japanese", "gptj", "modernbert", "persimmon", "roformer"),
    },
    SINUSOID: {
        *("autoformer", "ctrl", "fsmt", "informer", "kosmos-2", "kosmos-2.5", "kosmos_2_5_text_model"),
        *("kosmos_2_text_model", "m2m_100", "marian", "musicgen"),
        *("musicgen_decoder", "musicgen_melody", "musicgen_melody_decoder", "nllb-moe", "pegasus", "pegasus_x"),
        *("seamless_m4t", "seamless_m4t_v2", "speech_to_text", "speech_to_text_2", "time_series_transformer"),
        *("trocr", "videomae", "xglm"),
    },
    CONVOLUTION: {"hubert", "sew", "sew-d", "unispeech", "unispeech-sat", "wav2vec2"},
    CONVOLUTION_AND_BIAS: {"wavlm"},
    RECURRENCE: {"rwkv", "xlstm"},
}

# Settings that only a model with rotary embeddings has.
ROTARY_SETTINGS = ("rope_theta", "rope_parameters", "rope_scaling", "rotary_dim", "rotary_pct", "rotary_emb_base")

# A table that the model holds and does not add: ESM-2 and old BERTs with relative keys.
NOT_ADDED = frozenset({"alibi", "relative_key", "relative_key_query", "rope", "rotary"})

# What configs call the width of a model's vectors, and files its word vectors.
WIDTHS = ("hidden_size", "d_model", "n_embd", "embed_dim", "embedding_size", "emb_dim", "dim", "word_embed_proj_dim")
WORDS = re.compile(r"word|tok|wte|emb(ed(ding)?s?)?\.weight$")
