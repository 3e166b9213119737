"""Our models with the weights of transformers' GPT-2 and BERT, to be compared with them."""

import re

import torch
from torch import nn
from transformers import GPT2LMHeadModel

from posembed import Transformer, TransformerConfig
from posembed.models import LanguageModel

# Their names, and ours. A matrix of GPT-2 stands on its side, "in out", and one makes queries, keys and values.
OF_GPT2 = {
    r"^transformer\.": "",
    r"^wte\.": "words.",
    r"^wpe\.": "position_scheme.",
    r"^ln_f\.": "norm.",
    r"^h\.": "layers.",
    r"ln_1\.": "attention_norm.",
    r"ln_2\.": "feed_forward_norm.",
    r"attn\.c_proj\.": "attention.output.",
    r"mlp\.c_fc\.": "feed_forward.0.",
    r"mlp\.c_proj\.": "feed_forward.2.",
}
OF_BERT = {
    r"^bert\.": "",
    r"^embeddings\.word_embeddings\.": "words.",
    r"^embeddings\.position_embeddings\.": "position_scheme.",
    r"^embeddings\.token_type_embeddings\.": "token_types.",
    r"^embeddings\.LayerNorm\.": "norm.",
    r"^encoder\.layer\.": "layers.",
    r"attention\.self\.": "attention.",
    r"attention\.output\.dense\.": "attention.output.",
    r"attention\.output\.LayerNorm\.": "attention_norm.",
    r"intermediate\.dense\.": "feed_forward.0.",
    r"(?<!attention\.)output\.dense\.": "feed_forward.2.",
    r"(?<!attention\.)output\.LayerNorm\.": "feed_forward_norm.",
}
ACTIVATIONS = {"gelu": nn.GELU(), "gelu_new": nn.GELU(approximate="tanh"), "relu": nn.ReLU()}


def ours_of(theirs):
    """A Transformer or LanguageModel that computes what theirs computes."""
    config = theirs.config
    is_bert = config.model_type == "bert"
    body = Transformer(
        TransformerConfig(
            vocab_size=config.vocab_size,
            n_layers=config.num_hidden_layers,
            d_model=config.hidden_size,
            n_heads=config.num_attention_heads,
            n_positions=config.max_position_embeddings,
            scheme="learned",
            d_ff=config.intermediate_size if is_bert else config.n_inner,
            causal=not is_bert,
            norm="post" if is_bert else "pre",
        )
    )
    ours = LanguageModel(body.config) if isinstance(theirs, GPT2LMHeadModel) else body
    body = body if ours is body else ours.transformer
    for layer in body.layers:
        layer.feed_forward[1] = ACTIVATIONS[config.hidden_act if is_bert else config.activation_function]
    for module in body.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = config.layer_norm_eps if is_bert else config.layer_norm_epsilon
    found = renamed(theirs.state_dict(), OF_BERT if is_bert else OF_GPT2)
    if is_bert:  # of one text, so that every token has type 0
        found["words.weight"] = found["words.weight"] + found["token_types.weight"][0]
    for name, parameter in ours.named_parameters():
        with torch.no_grad():
            parameter.copy_(found[name.removeprefix("transformer.")])
    return ours.eval()


def renamed(weights, names):
    found = {}
    for name, weight in weights.items():
        for theirs, ours in names.items():
            name = re.sub(theirs, ours, name)
        on_its_side = names is OF_GPT2 and weight.ndim == 2 and name.startswith("layers.")
        weight = weight.T if on_its_side else weight
        if ".attn.c_attn." in name:
            for part, each in zip(("query", "key", "value"), weight.chunk(3), strict=True):
                found[name.replace("attn.c_attn", f"attention.{part}")] = each
        else:
            found[name] = weight
    return found
