"""Refused by position schemes."""

import torch
from transformers import AutoConfig

from posembed import PositionScheme, scheme, sinusoidal
from posembed.encodings import (
    FIRE,
    T5,
    ALiBi,
    CoPE,
    Forgetting,
    FrozenBias,
    Learned,
    LinearScaling,
    Llama3Scaling,
    LongRoPEScaling,
    NoPos,
    OnLayers,
    PerLayer,
    PoPE,
    RoPE,
    ScaledLogits,
    Shaw,
    Sinusoidal,
    XPos,
    YaRNScaling,
    convert_layout,
    convert_rope_layout,
)
from posembed.errors import EncodingInputError, PositionOutOfRangeError

X, Q, AT, TABLE = torch.ones(2, 3, 8), torch.ones(2, 2, 3, 8), torch.arange(3), torch.zeros(3, 2)

SECTIONS = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [1, 2, 2]}


def only(objective):
    one = NoPos()
    one.objectives = frozenset({objective})
    return one


def named(name, **given):
    return lambda: scheme(name, **given)


def configured(kind, layer=None, **changes):
    return lambda: RoPE.from_config(AutoConfig.for_model(kind, **changes), layer)


def turned(weight, **changes):
    return lambda: convert_rope_layout(weight, **{"n_heads": 2, "source": "half", "target": "interleaved"} | changes)


class Misspelt(PositionScheme):
    def bias_by_distance(self, offsets):
        return -offsets.abs().float()[None]


def slipped(kind, name="bias_by_offsets", **right):
    return lambda: type("Mine", (kind,), {name: lambda self, offsets: -offsets, **right})


def two_biases():
    class Both(PositionScheme):
        def bias(self, q, k, positions, key_positions):
            return None

        def bias_by_offset(self, offsets):
            return None


INPUT = {
    "a scheme whose only method has a slip in its name": (
        Misspelt,
        "Misspelt overrides none of add, rotate, rotate_keys, bias, bias_by_offset, layer, so no token would know",
    ),
    "a slip beside a hook of its own": (
        slipped(PositionScheme, add=lambda self, x, positions: x),
        "Mine.bias_by_offsets is called by nobody; is bias_by_offset meant? Else give it another name",
    ),
    "a slip in a subclass of a scheme": (
        slipped(ALiBi, "rotated"),
        "Mine.rotated is called by nobody; is rotate meant",
    ),
    "a slip in a subclass of no positions": (slipped(NoPos), "is bias_by_offset meant?"),
    "two biases, of which attention takes one": (two_biases, "Both defines both bias and bias_by_offset"),
    # Names, sizes and options.
    "a name with a slip": (named("RoPE"), "there is no scheme 'RoPE'; did you mean 'rope'?"),
    "a name of nothing": (named("learned+"), "there is no scheme ''; the schemes are nopos"),
    "a class": (named(RoPE), "name is"),
    "one scheme twice": (named("rope+alibi+rope", d_model=8, n_heads=2), "'rope' stands twice"),
    "a size that is missing": (named("learned"), "learned needs n_positions= and d_model="),
    "a width of a head that nobody said": (named("rope", d_model=8), "rope needs n_heads="),
    "a size of 0": (named("nopos", d_model=0), "d_model is 0; it must be a whole number of at least 1"),
    "a size in words": (lambda: ALiBi("2"), "n_heads is '2'; it must be a whole number of at least 1"),
    "heads that do not divide the width": (named("rope", d_model=10, n_heads=4), "which 4 heads do not divide"),
    "a word for True": (lambda: T5(2, causal="no"), "causal is 'no'; give True or False"),
    "an option of another name": (
        named("rope", d_model=8, n_heads=2, options={"rope": {"layuot": "half"}}),
        "rope has no option 'layuot'; it has base, layout, fraction, pairs, axes, mrope, scaling",
    ),
    "an option without its scheme": (
        named("rope", options={"base": 500.0}),
        "'base' is an option of rope; give {'rope': {'base': ...}}",
    ),
    "options of another scheme": (
        named("rope", options={"t5": {}}),
        "there are options for 't5', but the scheme is rope",
    ),
    "an objective that it is not defined for": (
        named("nopos+fire", n_heads=2, causal=False),
        "fire is not defined for a bidirectional model, only for a causal one",
    ),
    "a scheme that is made, for another objective": (
        lambda: scheme(OnLayers(XPos(8), [0], n_layers=2), causal=False),
        "OnLayers is not defined for a bidirectional model",
    ),
    # What would be another scheme than was meant.
    "an unknown layout": (lambda: RoPE(8, layout="halves"), "layout is 'halves'; choose among half, interleaved"),
    "an odd width of a head": (lambda: RoPE(7), "rope turns pairs of columns, so it must be even"),
    "a share of a head that is odd": (lambda: RoPE(10, fraction=0.5), "0.5 of a head of 10 is 5 columns"),
    "axes that do not add up": (lambda: RoPE(8, axes=[4, 2]), "of 6 columns together; they must have 8"),
    "axes of odd widths": (lambda: RoPE(8, axes=[3, 5]), "each axis needs an even number of columns"),
    "axes that do not divide": (lambda: Sinusoidal(8, axes=3), "3 axes do not divide 8 columns into equal parts"),
    "a base of 0": (lambda: RoPE(8, base=0.0), "base is 0.0; it must be a positive number"),
    "what a scaling that scales nothing would lose": (
        lambda: RoPE(8, scaling={"rope_type": "default", "factor": 8.0}),
        "the scaling default scales nothing, so 'factor' would be lost",
    ),
    "a kind of scaling that nobody knows": (
        lambda: RoPE(8, scaling={"rope_type": "mrope"}),
        "rope_type is 'mrope'; choose among default, proportional, linear, ntk, yarn, llama3, longrope; in "
        "place of dynamic, which turns keys in a cache by other angles",
    ),
    "two bases": (
        lambda: RoPE(8, base=1e4, scaling={"rope_type": "default", "rope_theta": 5e5}),
        "base is 10000.0, but the scaling says 500000.0; give one of them",
    ),
    "divisors for another number of pairs": (
        lambda: RoPE(8, scaling=LongRoPEScaling(2.0, 64, [1.0], [1.0], length=8)),
        "short_factor has 1 numbers for 4 pairs; give one for each",
    ),
    "two bases in a config": (
        lambda: RoPE.from_config(
            {"model_type": "llama", "rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}
        ),
        "the config says rope_theta 10000.0 and, inside, 500000.0; remove the wrong one",
    ),
    "a layer of linear attention": (
        lambda: RoPE.from_config({"model_type": "qwen3_5_text"}, 0),
        "layer 0 of this config does not turn",
    ),
    "a config with layers of linear attention, as a whole": (
        lambda: RoPE.from_config({"model_type": "qwen3_5_text"}),
        "some layers of this config do not turn (0, 1, 2, 4",
    ),
    "a config without layers": (
        lambda: RoPE.from_config({"model_type": "sam2_video"}, 0),
        "the config of sam2_video has no hidden_size or num_hidden_layers; give that of one of its parts",
    ),
    "a config of one head": (
        lambda: RoPE.from_config({"model_type": "qwen2_5_omni_dit"}),
        "qwen2_5_omni_dit turns the first of its heads alone",
    ),
    "a config of rows and columns": (
        lambda: RoPE.from_config({"model_type": "eomt_dinov3"}),
        "the code of eomt_dinov3 makes no angles of positions by this config",
    ),
    "rotations by names that no layer has": (
        lambda: RoPE.from_config({"model_type": "deepseek_v4"}, 0),
        "the config's rotations are main (base 10000.0), compress (base 160000.0), and no type of its layers",
    ),
    "an option that a scaling lacks": (
        lambda: RoPE(8, scaling={"rope_type": "linear", "factor": 2.0, "beta": 1}),
        "the scaling linear has the options factor: LinearScaling.__init__() got an unexpected keyword argument 'beta'",
    ),
    "a scaling without its factor": (
        lambda: RoPE(8, scaling={"rope_type": "linear"}),
        "missing 1 required positional argument: 'factor'",
    ),
    "a config of a kind that nobody knows": (
        lambda: RoPE.from_config({"model_type": "llama", "rope_parameters": {"rope_type": "own", "rope_theta": 1e4}}),
        "the config's rope_type is 'own'; those that are read are default, dynamic, proportional, linear",
    ),
    "no config": (
        lambda: RoPE.from_config(None),
        "config is None, without rope_parameters; give model.config, or the content",
    ),
    "a name for a config": (
        lambda: RoPE.from_config("gpt2"),
        "config is 'gpt2', without rope_parameters; give model.config",
    ),
    "a layer in words": (lambda: RoPE.from_config({"model_type": "llama"}, "0"), "layer is '0'; give a whole number"),
    "a config without a rotation": (lambda: RoPE.from_config({"model_type": "gpt2"}), "of a model that rotates"),
    "a config whose layers differ": (
        lambda: RoPE.from_config({"model_type": "gemma3_text"}),
        "turn differently (sliding_attention, full_attention); give layer=",
    ),
    "a config some of whose layers do not turn": (
        lambda: RoPE.from_config({"model_type": "smollm3", "num_hidden_layers": 5}),
        "some layers of this config do not turn (3); give layer=",
    ),
    "a layer that does not turn": (
        lambda: RoPE.from_config({"model_type": "smollm3", "num_hidden_layers": 5}, 3),
        "layer 3 of this config does not turn: it has no positions; use NoPos()",
    ),
    "a layer that the config has not": (
        lambda: RoPE.from_config({"model_type": "llama", "num_hidden_layers": 2}, 2),
        "there is no layer 2 in a model of 2; count from 0",
    ),
    "pairs shared among no axes": (lambda: RoPE(8, mrope="sliced"), "give axes=, the columns of each"),
    "pairs that cannot be dealt out so": (
        lambda: RoPE(16, axes=[2, 2, 12], mrope="interleaved"),
        "axes are (2, 2, 12), but dealt out in turn they get [10, 2, 4] columns; use these",
    ),
    "sections that do not add up": (
        lambda: RoPE.from_config({"model_type": "qwen2_vl_text", "rope_parameters": SECTIONS}),
        "the code of qwen2_vl_text makes no angles of positions by this config (RuntimeError: split_with_sizes expects",
    ),
    "sections of several axes": (
        lambda: RoPE.from_config({"model_type": "llama", "rope_scaling": {"type": "default", "mrope_section": [2, 3]}}),
        "for texts alone leave mrope_section out",
    ),
    "a factor that shortens": (lambda: LinearScaling(factor=0.5), "factor is 0.5; it must be at least 1"),
    "limits in wrong order": (
        lambda: Llama3Scaling(2.0, 64, low_freq_factor=4.0),
        "must be below high_freq_factor",
    ),
    "a length of 0": (lambda: YaRNScaling(2.0, 0), "original_max_position_embeddings is 0; it must be a positive"),
    "a layout of other frequencies": (
        lambda: convert_layout(TABLE, source="concat", target="tensor2tensor"),
        "concat and tensor2tensor have different frequencies",
    ),
    "sines in whole numbers": (lambda: sinusoidal(4, 4, dtype=torch.int64), "sines need a floating-point format"),
    "too few buckets": (lambda: T5(2, causal=False, n_buckets=2), "in a bidirectional model at least 4 and even"),
    "buckets of other sizes": (
        lambda: T5(2, causal=True, table=torch.zeros(2, 32)),
        "it must be (32, 2): buckets, heads",
    ),
    "buckets without a range": (lambda: T5(2, causal=True, max_distance=16), "it must be above 16"),
    "vectors without a limit": (lambda: Shaw(4, max_distance=None), "learned vectors need a max_distance"),
    "an embedding for a table": (
        lambda: Learned(table=torch.nn.Embedding(4, 2)),
        "table is a Embedding, whose first rows may not be positions; give its rows",
    ),
    "a table longer than the model's": (
        named("learned", n_positions=2, d_model=2, options={"learned": {"table": TABLE}}),
        "the table has shape (3, 2), but (2, 2) was asked for; cut it so that row 0 is position 0",
    ),
    "a table of other sizes": (lambda: Learned(3, 4, table=TABLE), "the table has shape (3, 2), but (3, 4) was asked"),
    # Several schemes, and several layers.
    "parts of two objectives": (lambda: only("bidirectional") + XPos(8), "have no objective in common"),
    "parts of several axes": (lambda: RoPE(8, axes=2) + ALiBi(2), "one of the schemes wants positions on several axes"),
    "a layer that is not there": (lambda: PerLayer([Shaw(8)] * 2).layer(-1), "there is no layer -1"),
    "positions on a layer too many": (
        lambda: OnLayers(RoPE(8), [4], n_layers=4),
        "no layer 4 in a model of 4",
    ),
    "the layers' schemes used as one": (lambda: PerLayer([Shaw(8)]).bias(Q, Q, AT, AT), "each layer has its own"),
    "one layer's scheme for several": (lambda: Shaw(8).layer(1), "Shaw has parameters for one layer"),
    # Positions.
    "positions as a list": (lambda: RoPE(8).rotate(Q, [0, 1, 2]), "positions are a list; give a tensor of integers"),
    "positions that are not whole": (lambda: RoPE(8).rotate(Q, AT.float()), "positions are torch.float32"),
    "one position for all": (lambda: ALiBi(2).bias(Q, Q, AT, AT[:1]), "key_positions have shape (1,)"),
    "positions of other texts": (lambda: RoPE(8).rotate(Q, torch.ones(3, 3).long()), "positions have shape (3, 3)"),
    "positions of one axis": (lambda: RoPE(8, axes=2).rotate(Q, AT), "the last axis must be 2"),
    "negative positions for FIRE": (lambda: FIRE(2).bias(Q, Q, AT - 1, AT), "a position is negative"),
    "no mask for CoPE": (
        lambda: CoPE(8).bias(Q, Q, AT, AT),
        "cope counts the keys that a query may see",
    ),
    "no gates for forgetting": (lambda: Forgetting(8, 2).bias(Q, Q, AT, AT), "gates=scheme.gates(x), of all keys"),
    "a rotation beside one that widens": (
        lambda: RoPE(8) + PoPE(8, 2),
        "PoPE makes queries and keys 2 times as wide, and RoPE is made for the width of a head",
    ),
    "a bias of queries beside one that widens": (lambda: PoPE(8, 2) + CoPE(8), "CoPE is made for the width of a head"),
    "queries of other heads for PoPE": (
        lambda: PoPE(8, 4).rotate(torch.zeros(1, 2, 3, 8), AT),
        "they must be (..., 4 heads, seq, d)",
    ),
    "two schemes with gates": (lambda: Forgetting(8, 2) + Forgetting(8, 2), "two of the schemes read gates"),
    "negative positions for scaled logits": (
        lambda: ScaledLogits(2).rotate(torch.zeros(1, 2, 3, 8), AT - 1),
        "a position is negative",
    ),
    "queries of other heads for scaled logits": (
        lambda: ScaledLogits(3).rotate(torch.zeros(1, 2, 3, 8), AT),
        "they must be (..., 3 heads, seq, d)",
    ),
    # Rounded to whole numbers sines would be zeros.
    "whole numbers for vectors": (
        lambda: Sinusoidal(8).add(X.long(), AT),
        "give floating-point ones",
    ),
    "vectors of another width": (lambda: RoPE(6).rotate(Q, AT), "8 wide, but this scheme was made for 6"),
}
# Layers that have no positions, which no field of the config says, or the bases of the layers, 0 for none.
STILL = {"afmoe": 3, "cohere2_moe": 3, "exaone_moe": 3, "kolibri1": 4, "muse_glimmer_text": 3, "muse_spark_text": 1}
# Those that look at an image, of which a field says which they are.
STILL |= {"mllama_text_model": 3}
CONFIGS = {
    **{f"a layer of {kind} that does not turn": (configured(kind, at), "does not turn") for kind, at in STILL.items()},
    **{f"layers of {kind}, some of which turn": (configured(kind), "do not turn") for kind in STILL},
    "rows and columns of an image": (configured("eomt_dinov3"), "makes no angles of positions"),
    "a model without a width": (configured("efficientloftr"), "has no hidden_size or num_hidden_layers"),
    "one head that turns": (configured("qwen2_5_omni_dit"), "turns the first of its heads alone"),
    "a model that could turn": (configured("granitemoehybrid"), "says position_embedding_type None"),
    "positions of another kind": (
        configured("granitemoehybrid", position_embedding_type="nope"),
        "says position_embedding_type 'nope'",
    ),
    "biases in place of angles": (configured("falcon", alibi=True), "says alibi True"),
    "memory without angles": (configured("zamba2"), "says use_mem_rope False"),
    "axes that are shared in a way of its own": (
        configured("qwen3_5_text", 3, rope_parameters=SECTIONS),
        "for texts alone leave mrope_section out",
    ),
    "a turn backwards": (configured("nanochat"), "how nanochat turns its heads is not known"),
    "a part without heads": (configured("blt"), "has no hidden_size"),
}
OUT_OF_RANGE = {
    "a position past a table": (lambda: Learned(2, 8).add(X, AT), "position 2 has no row in a learned table of 2"),
    "a negative position, which Python would count from the end": (
        lambda: Learned(4, 8).add(X, AT - 1),
        "position -1 has no row",
    ),
    "a position past a frozen bias": (
        lambda: FrozenBias(torch.eye(2), torch.ones(2)).bias(Q, Q, AT, AT),
        "this bias has positions 0 to 1",
    ),
    "damping beyond float32": (
        lambda: XPos(8).rotate(Q, AT + 10**6),
        "from the origin 0, and damping leaves float32's range",
    ),
}
CASES = {name: (EncodingInputError, *case) for name, case in (INPUT | CONFIGS).items()}
CASES |= {name: (PositionOutOfRangeError, *case) for name, case in OUT_OF_RANGE.items()}
