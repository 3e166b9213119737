"""Refused by probes: what would give a wrong number in silence, and the mistakes of a reader."""

from functools import partial

import numpy as np
import torch
import transformers
from small_models import build

from posembed import Transformer, TransformerConfig
from posembed.errors import PositionTableError, ProbeInputError
from posembed.probing import (
    identical_word_attention,
    intervene,
    permuted_labels,
    position_subspace,
    probe_layers,
    probe_order,
    probe_table,
    random_tables_like,
    split_rows,
)

ROWS, AT = np.random.default_rng(0).normal(size=(20, 3)), np.arange(9.0)
IDS = torch.randint(5, 30, (8, 6), generator=torch.Generator().manual_seed(0))
SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


def own(**options):
    return Transformer(TransformerConfig(40, n_layers=2, d_model=16, n_heads=2, **options))


def padded():
    ids = IDS.clone()
    ids[3, 4] = 1
    return ids


def drawing():
    """A model that shuffles its patches: it would seem to know no positions."""
    return transformers.ViTMAEModel(
        transformers.ViTMAEConfig(image_size=8, patch_size=4, mask_ratio=0.0, **SMALL)
    ).eval()


def of_latents():
    """Its latents are told apart without a mistake, whatever it reads."""
    sizes = {"num_latents": 4, "d_latents": 16, "d_model": 16, "num_self_attends_per_block": 1, "vocab_size": 60}
    heads = {"num_self_attention_heads": 2, "num_cross_attention_heads": 2, "qk_channels": 16, "v_channels": 16}
    return transformers.PerceiverForMaskedLM(transformers.PerceiverConfig(**sizes, **heads)).eval()


def shortening():
    sizes = {"vocab_size": 30, "block_sizes": [1, 1], "num_decoder_layers": 1, "d_model": 16, "n_head": 2, "d_head": 8}
    return transformers.FunnelModel(transformers.FunnelConfig(**sizes, d_inner=16)).eval()


def of_a_window():
    """Also where the text is as long as the window is wide, and the weights have a column for each of its tokens."""
    sizes = {**SMALL, "vocab_size": 40, "max_position_embeddings": 42, "attention_window": 8, "pad_token_id": 1}
    return transformers.LongformerModel(transformers.LongformerConfig(**sizes)).eval()


def with_a_sink():
    model = build("bert")
    model.encoder.layer[0].attention.self.register_forward_hook(lambda module, given, out: (out[0], out[1] * 0.7))
    return model


def handing_out_a_tuple():
    module = torch.nn.Embedding(50, 4)
    module.register_forward_hook(lambda module, given, output: (output,))
    return module


def damaged():
    model = own()
    torch.nn.init.constant_(model.layers[1].feed_forward[0].weight, torch.nan)
    return model


def probed(model, *inputs, **options):
    return partial(probe_layers, model, *inputs, steps=2, **options)


def word_attention(model, **options):
    return partial(identical_word_attention, model, **{"length": 6, "words": 2} | options)


P = ProbeInputError
CASES = {
    # Tables and their rows.
    "a probe that there is not": (P, lambda: probe_table(ROWS, probe="svm"), "probe is 'svm'; choose among ols, ridge"),
    "a split that there is not": (P, lambda: probe_order(ROWS, split="loo"), "split is 'loo'; choose among even-odd"),
    "a seed that is none": (P, lambda: probe_table(ROWS, seed=-1), "seed is -1; it must be a whole number from"),
    "rows that the table does not have": (P, lambda: probe_table(ROWS, rows=21), "rows=21 goes beyond"),
    "rows all even": (P, lambda: probe_table(ROWS, rows=range(0, 20, 2)), "all are even; take rows with a step of 1"),
    "too few rows for folds": (
        P,
        lambda: probe_table(ROWS, split="folds", rows=4),
        "needs at least 5 rows, but there are",
    ),
    "one row to test": (P, lambda: probe_table(ROWS[:3]), "of 3 rows even-odd tests one alone"),
    "one row": (P, lambda: probe_table(ROWS[:1]), "a probe needs at least 2 rows, but rows=None"),
    "no two rows to compare": (P, lambda: probe_order(ROWS, split="folds", rows=9), "leaves fewer than two of 9 rows"),
    "positions that fall": (
        P,
        lambda: split_rows(np.array([5, 3, 1]), "half"),
        "give an array of whole numbers that rise",
    ),
    "positions without signs that fall": (P, lambda: split_rows(np.array([5, 3], "u1"), "half"), "numbers that rise"),
    "a number of positions": (P, lambda: split_rows(10, "half"), "positions is 10; give an array"),
    "a list of labels": (P, lambda: permuted_labels([1, 2], 2), "labels is [1, 2]; give an array"),
    "no permutation": (
        P,
        lambda: permuted_labels(AT, 0),
        "n_permutations is 0; it must be a whole number of at least 1",
    ),
    "a list of rows": (P, lambda: random_tables_like([[1.0]], 2), "x is [[1.0]]; give an array"),
    # The subspace of positions.
    "more directions than there are": (P, lambda: position_subspace(ROWS, n_components=4), "whole number from 1 to 3"),
    "all of the variance": (P, lambda: position_subspace(ROWS, n_components=1.0), "or a share of the variance above 0"),
    "rows all alike": (P, lambda: position_subspace(torch.full((5, 3), 0.1)), "are all alike"),
    "one batch": (P, lambda: intervene(build("bert"), {"input_ids": IDS}), "batches is one batch; give a list of them"),
    "no batch": (P, lambda: intervene(build("bert"), []), "there are no batches"),
    "a batch of words": (
        P,
        lambda: intervene(build("bert"), [{"input_ids": ["it rains"]}]),
        "cannot be called with this",
    ),
    "no draw": (P, lambda: intervene(build("bert"), [IDS], n_draws=0), "n_draws is 0"),
    "two tables": (PositionTableError, lambda: intervene(build("bart"), [IDS]), "part="),
    "no table": (PositionTableError, lambda: intervene(build("llama"), [IDS]), "RoPE"),
    # Hidden states.
    "a name for a model": (P, probed("gpt2"), "model is 'gpt2'; give a"),
    "ids as a list": (P, probed(own(), [[1, 2]]), "ids is [[1, 2]]; give a tensor"),
    "one text": (P, probed(own(), IDS[0]), "reads input_ids; give a tensor, a text or an image a row"),
    "too few texts": (P, probed(own(), IDS[:3]), "shape (3, 6) are too few; give at least 4 along"),
    "padding": (P, probed(build("roberta"), padded()), "holds id 1, which pads; give texts of one length"),
    "lengths that differ": (
        P,
        probed(own(), IDS, test_ids=IDS[:, :5]),
        "texts of (6,) do not belong to texts of (5,); cut both",
    ),
    "a text too long": (P, probed(build("bert"), IDS.repeat(1, 9)), "cannot be called with this input_ids alone"),
    "two stacks": (P, probed(build("bart"), IDS), "BartModel has two stacks of layers; give one"),
    "two stacks of sound": (P, probed(build("whisper"), torch.randn(8, 4, 12)), "WhisperModel has two stacks"),
    "a layer too far": (
        P,
        probed(own(), IDS, layers=[3]),
        "layers=[3], but Transformer has layers 0 (embeddings) to 2",
    ),
    "a layer twice": (P, probed(own(), IDS, layers=[1, 1]), "list some, each once"),
    "padding before texts": (
        P,
        lambda: probe_layers(own(), IDS, attention_mask=torch.arange(IDS.shape[1]).expand_as(IDS) > 0),
        "hide what stands behind them; pad behind texts",
    ),
    "a mask beside other texts": (
        P,
        lambda: probe_layers(own(), IDS, attention_mask=torch.ones_like(IDS), test_ids=IDS),
        "attention_mask is for ids alone; leave test_ids out",
    ),
    "half a step": (P, lambda: probe_layers(own(), IDS, steps=0.5), "steps is 0.5"),
    "weights that are NaN": (P, probed(damaged(), IDS), "hidden states of layer 2 are NaN"),
    "a model that draws": (P, probed(drawing(), torch.randn(8, 3, 8, 8)), "ViTMAEModel gives other states each time"),
    "latents": (P, probed(of_latents(), IDS), "PerceiverForMaskedLM are those of latents"),
    "a stack that shortens": (P, probed(shortening(), IDS), "differ in length or width: (6, 16) of layer 0"),
    "states with ids": (P, probed(torch.randn(8, 5, 4), IDS), "is no model and no function"),
    "a function whose model draws": (
        P,
        probed(lambda ids: [torch.nn.functional.dropout(torch.ones(len(ids), 8, 4))], IDS),
        "<lambda> gives other states each time; put the model into eval mode",
    ),
    "the output of a module for its layers": (
        P,
        probed(torch.nn.Embedding(50, 4), IDS),
        "Embedding hands out its output and not the states of its layers; where that is what you mean, give a function",
    ),
    "the output of a module, alone in a tuple": (
        P,
        probed(handing_out_a_tuple(), IDS),
        "Embedding hands out its output and not the states of its layers",
    ),
    "states of one position": (P, probed(torch.randn(8, 1, 4)), "hands out no hidden states of these texts"),
    "a function of one text": (
        P,
        probed(lambda ids: [torch.randn(1, 5, 4)], IDS),
        "hands out no hidden states of these texts",
    ),
    # Attention to identical words.
    "no word": (P, word_attention(own(), words=0), "words is 0; it must be a whole number of at least 1"),
    "more words than there are": (P, word_attention(own(), words=41), "the vocabulary has 40 words to draw from"),
    "a word that pads": (P, word_attention(build("bert"), words=[7, 0]), "word 0 is padding"),
    "an unknown word": (P, word_attention(build("bert"), words=[30]), "cannot be called with 5 tokens"),
    "a layer of attention too far": (P, word_attention(own(), layer=2), "layer is 2, but Transformer gives attention"),
    "a model of images": (P, word_attention(build("vit")), "ViTModel reads no words; give a model of text"),
    "weights of a window": (P, word_attention(of_a_window(), words=[5], length=9), "with no column for each"),
    "weights with a sink": (P, word_attention(with_a_sink()), "sum to 0.70 to 0.70 and not to one"),
}
