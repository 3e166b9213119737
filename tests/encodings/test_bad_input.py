"""What no scheme can be made of, or act on: a named error in one line that says what to do."""

import math
from types import SimpleNamespace

import pytest
import torch
from refusals import refused
from small_schemes import ADDING, BIASING, D_HEAD, N_HEADS, ROTATING, readers, tokens, vectors
from torch import nn

from posembed import scheme, sinusoidal
from posembed.encodings import (
    FIRE,
    KERPLE,
    T5,
    ALiBi,
    Composed,
    CoPE,
    LearnableSinusoidal,
    Learned,
    LinearScaling,
    Llama3Scaling,
    NoPos,
    NTKScaling,
    OnLayers,
    PerLayer,
    RoPE,
    Shaw,
    Sinusoidal,
    Sizes,
    XPos,
    YaRNScaling,
    alibi_slopes,
    convert_layout,
    convert_rope_layout,
)
from posembed.encodings.positions import check_positions
from posembed.encodings.rope_scaling import as_scaling
from posembed.errors import EncodingInputError

pytestmark = pytest.mark.bad_input
TABLE, Q = torch.zeros(3, 2), vectors(1, N_HEADS, 3, 8)
AT = torch.arange(3)


def only(objective):
    one = NoPos()
    one.objectives = frozenset({objective})
    return one


def projection(**changes):
    how = {"n_heads": 2, "source": "half", "target": "interleaved"} | changes
    return lambda: convert_rope_layout(torch.zeros(24, 5), **how)


REFUSED = [
    # Sizes, which every scheme checks in the same way.
    (lambda: Sizes(d_model=0), "d_model is 0; it must be a whole number of at least 1"),
    (lambda: Sizes(n_layers=1.5), "n_layers is 1.5; it must be"),
    (lambda: Sizes(n_positions=True), "n_positions is True; it must be"),
    (lambda: Sizes(n_heads="2"), "n_heads is '2'; it must be"),
    (lambda: Sizes(causal="yes"), "causal is 'yes'; give True or False"),
    (lambda: Sizes(d_model=10, n_heads=4), "d_model is 10, which 4 heads do not divide"),
    (lambda: Sizes(n_heads=2).of("mine", ("d_model", "n_positions")), "mine needs d_model= and n_positions="),
    (lambda: Sizes(d_model=8).of("mine", ("d_head",)), "mine needs n_heads="),
    (lambda: ALiBi(0), "n_heads is 0; it must be a whole number of at least 1"),
    (lambda: alibi_slopes(2.0), "n_heads is 2.0"),
    (lambda: CoPE(0), "d_head is 0"),
    (lambda: CoPE(4, n_positions=0), "n_positions is 0"),
    (lambda: FIRE(0), "n_heads is 0"),
    (lambda: FIRE(2, width=0), "width is 0"),
    (lambda: FIRE(2, threshold=0.0), "threshold is 0.0; it must be a positive number"),
    (lambda: FIRE(2, threshold=True), "threshold is True; it must be a positive number"),
    (lambda: FIRE(2, log_scale=math.inf), "log_scale is inf; it must be a positive number"),
    (lambda: KERPLE(0), "n_heads is 0"),
    (lambda: KERPLE(2, kernel="gauss"), "kernel is 'gauss'; choose among log, power"),
    (lambda: LearnableSinusoidal(0), "d_model is 0"),
    (
        lambda: LearnableSinusoidal(4, layout="tensor2tensor"),
        "layout is 'tensor2tensor'; choose among interleaved, con",
    ),
    (lambda: LearnableSinusoidal(4, base=-1.0), "base is -1.0; it must be a positive number"),
    (lambda: Sinusoidal(0), "d_model is 0; it must be a whole number of at least 1"),
    (
        lambda: Sinusoidal(1, layout="tensor2tensor"),
        "d_model is 1; it must be a whole number of at least 2",
    ),
    (lambda: Sinusoidal(4, layout="paper"), "layout is 'paper'; choose among interleaved, concat, tensor2tensor"),
    (lambda: Sinusoidal(4, base=math.nan), "base is nan; it must be a positive number"),
    (lambda: Sinusoidal(8, axes=(4, 2)), "axes are (4, 2), of 6 columns together; they must have 8"),
    (lambda: Sinusoidal(8, axes=()), "axes are (), of 0 columns together; they must have 8"),
    (lambda: Sinusoidal(8, axes=[8, 0]), "axes are (8, 0); each axis needs at least 1 column"),
    (lambda: Sinusoidal(8, axes=[7, 1], layout="tensor2tensor"), "axes are (7, 1); each axis needs at least 2 columns"),
    (lambda: Sinusoidal(8, axes=3), "3 axes do not divide 8 columns into equal parts; give each axis its width"),
    (lambda: Sinusoidal(8, axes=0), "axes is 0; it must be a whole number of at least 1"),
    (
        lambda: Sinusoidal(8, axes=2).add(torch.zeros(1, 3, 8), AT),
        "positions have shape (3,); the last axis must be 2, one for each coordinate",
    ),
    (lambda: sinusoidal(-1, 4), "n_positions is -1; it must be a whole number of at least 0"),
    (lambda: sinusoidal(4, 4, dtype=torch.int64), "dtype is torch.int64; sines need a floating-point format"),
    (lambda: sinusoidal(4, 4, dtype="float32"), "dtype is 'float32'; sines need a floating-point format, such as"),
    (lambda: convert_layout(torch.tensor(1.0), source="concat", target="interleaved"), "the table is tensor(1.); give"),
    (lambda: convert_layout([[1.0]], source="concat", target="interleaved"), "the table is [[1.0]]; give"),
    (lambda: convert_layout(TABLE, source="paper", target="concat"), "layout is 'paper'"),
    (lambda: convert_layout(TABLE, source="concat", target="tensor2tensor"), "concat and tensor2tensor have different"),
    # A table.
    (lambda: Learned(4), "learned needs n_positions and d_model, or a table"),
    (lambda: Learned(0, 4), "n_positions is 0"),
    (lambda: Learned(4, 2.5), "d_model is 2.5"),
    (lambda: Learned(table=nn.Embedding(4, 2)), "table is a Embedding, whose first rows may not be positions"),
    (lambda: Learned(table=SimpleNamespace(weight="no")), "table must be a floating-point tensor of shape (positions"),
    (lambda: Learned(table=torch.zeros(3)), "table must be a floating-point tensor"),
    (lambda: Learned(table=TABLE.long()), "table must be a floating-point tensor"),
    (lambda: Learned(table=TABLE[:0]), "the table of shape (0, 2) is empty or holds NaN or infinity; mend it first"),
    (lambda: Learned(table=TABLE + math.nan), "the table of shape (3, 2) is empty or holds NaN or infinity"),
    (lambda: Learned(4, 2, table=TABLE), "the table has shape (3, 2), but (4, 2) was asked for"),
    (lambda: Learned(3, 4, table=TABLE), "the table has shape (3, 2), but (3, 4) was asked for"),
    # Offsets.
    (lambda: Shaw(0), "d_head is 0"),
    (lambda: Shaw(4, max_distance=0), "max_distance is 0; it must be a whole number of at least 1"),
    (lambda: Shaw(4, max_distance=None), "learned vectors need a max_distance; beyond it offsets share one"),
    (lambda: Shaw(4, vectors="random"), "vectors is 'random'; choose among learned, sinusoidal, learnable_sinusoidal"),
    (lambda: T5(0, causal=True), "n_heads is 0"),
    (lambda: T5(2, causal=True, n_buckets=1), "n_buckets is 1; it must be at least 2, in a bidirectional model at le"),
    (lambda: T5(2, causal=False, n_buckets=2), "n_buckets is 2; it must be"),
    (lambda: T5(2, causal=False, n_buckets=33), "n_buckets is 33; it must be"),
    (lambda: T5(2, causal=True, max_distance=16), "max_distance is 16; with 32 buckets it must be above 16"),
    (lambda: T5(2, causal=False, max_distance=8), "max_distance is 8; with 32 buckets it must be above 8"),
    (lambda: T5(2, causal=True, max_distance=128.0), "max_distance is 128.0"),
    # Rotations and their scalings.
    (lambda: RoPE(7), "the head width is 7; rope turns pairs of columns, so it must be even and at least 2"),
    (lambda: RoPE(8.0), "d_head is 8.0; it must be a whole number of at least 2"),
    (lambda: RoPE(8, fraction=0.0), "fraction is 0.0; it must be above 0 and at most 1"),
    (lambda: RoPE(8, fraction=1.5), "fraction is 1.5"),
    (lambda: RoPE(10, fraction=0.5), "0.5 of a head of 10 is 5 columns; rope turns pairs of columns"),
    (lambda: RoPE(8, fraction=0.1), "0.1 of a head of 8 is 0 columns"),
    (lambda: RoPE(8, axes=[4, 2]), "axes are [4, 2], of 6 columns together; they must have 8"),
    (lambda: RoPE(8, axes=[3, 5]), "axes are (3, 5); each axis needs an even number of columns, at least 2"),
    (lambda: RoPE(8, axes=[8, 0]), "axes are (8, 0)"),
    (lambda: RoPE(8, axes=[]), "axes are [], of 0 columns together; they must have 8"),
    (lambda: RoPE(6, axes=2), "2 axes do not divide 6 columns into equal, even parts; give each axis its width"),
    (lambda: RoPE(8, axes="44"), "axes are ('4', '4'); each axis needs an even number"),
    (lambda: RoPE(8, axes=2.0), "axes are 2.0, of 0 columns together; they must have 8"),
    (lambda: RoPE(8, layout="halves"), "layout is 'halves'; choose among half, interleaved"),
    (lambda: RoPE(8, base=0.0), "base is 0.0; it must be a positive number"),
    (lambda: RoPE(8, scaling="linear"), "scaling is 'linear'; give a mapping such as {'rope_type': 'linear', 'fact"),
    (
        lambda: RoPE(8, scaling={"rope_type": "dynamic"}),
        "the scaling's rope_type is 'dynamic'; choose among linear, ntk, yarn, llama3",
    ),
    (lambda: RoPE(8, base=1.0, scaling=YaRNScaling(2.0, 64)), "base is 1.0; for yarn it must be above 1"),
    (projection(n_heads=5), "a projection of 24 rows has no 5 equal heads"),
    (projection(n_heads=0), "n_heads is 0; it must be a whole number of at least 1"),
    (projection(source="gptj"), "layout is 'gptj'; choose among half, interleaved"),
    (projection(target="neox"), "layout is 'neox'"),
    (projection(n_heads=8), "the head width is 3; rope turns pairs of columns"),
    (lambda: XPos(8, scale_base=0.0), "scale_base is 0.0; it must be a positive number"),
    (lambda: XPos(8, origin="start"), "origin is 'start'; it must be a whole number"),
    (lambda: LinearScaling(factor=0.5), "the scaling's factor is 0.5; it must be a number of at least 1"),
    (lambda: NTKScaling(factor=math.inf), "the scaling's factor is inf"),
    (lambda: YaRNScaling(2.0, 0), "the scaling's original_max_position_embeddings is 0; it must be a positive number"),
    (lambda: YaRNScaling(2.0, 64, beta_fast=-1.0), "the scaling's beta_fast is -1.0"),
    (lambda: YaRNScaling(2.0, 64, attention=0.0), "the scaling's attention is 0.0"),
    (lambda: Llama3Scaling(2.0, 64, low_freq_factor=4.0), "low_freq_factor must be below high_freq_factor; exchange"),
    (lambda: as_scaling({}), "the scaling's rope_type is None; choose among linear, ntk, yarn, llama3"),
    (lambda: as_scaling({"rope_type": "linear"}), "the scaling linear needs 'factor'; its options are factor"),
    (lambda: as_scaling({"rope_type": "linear", "factor": 2.0, "beta": 1}), "the scaling linear has no option 'beta'"),
    # Several schemes, and several layers.
    (lambda: Composed(), "nothing was given to compose; give schemes, each made by scheme(...)"),
    (lambda: Composed(RoPE(8), None), "RoPE, NoneType was given to compose"),
    (lambda: only("bidirectional") + XPos(8), "NoPos and XPos have no objective in common; choose schemes that do"),
    (
        lambda: RoPE(8, axes=[4, 4]) + ALiBi(2),
        "one of the schemes wants positions on several axes and another does not",
    ),
    (lambda: PerLayer([]), "layers are []; give a list with at least one scheme"),
    (lambda: PerLayer([Shaw(8)] * 2).layer(2), "there is no layer 2; this scheme was made for 2 layers"),
    (lambda: PerLayer([Shaw(8)] * 2).layer(-1), "there is no layer -1"),
    (lambda: OnLayers(RoPE(8), [0, 4], n_layers=4), "there is no layer 4 in a model of 4; count from 0"),
    (lambda: OnLayers(RoPE(8), [0], n_layers=4).layer(4), "there is no layer 4 in a model of 4"),
    (lambda: OnLayers(XPos(8), [0], n_layers=2).check_objective(False), "OnLayers is not defined for a bidirectional"),
    (
        lambda: scheme("fire", n_heads=2, causal=False),
        "fire is not defined for a bidirectional model, only for a causal",
    ),
    # What a scheme acts on.
    (lambda: CoPE(8).bias(Q, Q, AT, AT), "cope counts the keys that a query may see; pass visible=, True where it may"),
    (lambda: FIRE(2).bias(Q, Q, AT - 1, AT), "a position is negative; FIRE measures distances against positions, so"),
    (lambda: FIRE(2).bias(Q, Q, AT, AT - 1), "a position is negative"),
]


@pytest.mark.parametrize(("act", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_meant(act, message):
    assert refused(EncodingInputError, act).startswith(message)


X = vectors(2, N_HEADS, 7, D_HEAD)
BAD_POSITIONS = [
    ([0, 1, 2, 3, 4, 5, 6], None, "are a list; give a tensor, such as torch.arange(seq)"),
    (None, None, "are a NoneType; give a tensor"),
    (torch.arange(7.0), None, "are torch.float32; they must be integers, such as torch.arange(seq)"),
    (torch.ones(7, dtype=torch.bool), None, "are torch.bool; they must be integers"),
    (torch.arange(7).to(torch.complex64), None, "are torch.complex64; they must be integers"),
    (torch.tensor(3), None, "have shape (), and the tokens (2, 2, 7, 8); positions must be [7] or"),
    (torch.arange(6), None, "have shape (6,)"),
    (torch.arange(21).reshape(3, 7), None, "have shape (3, 7)"),
    (torch.arange(14).reshape(7, 2), None, "have shape (7, 2)"),
    (torch.arange(28).reshape(2, 2, 7), None, "have shape (2, 2, 7)"),
    (torch.arange(7), 2, "have shape (7,); the last axis must be 2, one for each coordinate"),
    (torch.tensor(1), 2, "have shape (); the last axis must be 2"),
    (torch.arange(12).reshape(6, 2), 2, "have shape (6,), and the tokens (2, 2, 7, 8)"),
]


@pytest.mark.parametrize(("bad", "n_axes", "message"), BAD_POSITIONS, ids=[each[2] for each in BAD_POSITIONS])
def test_positions_that_are_none(bad, n_axes, message):
    assert refused(EncodingInputError, check_positions, bad, X, n_axes=n_axes, name="key_positions").startswith(
        f"key_positions {message}"
    )


def test_tokens_without_a_batch_have_no_batch_of_positions():
    assert refused(EncodingInputError, check_positions, torch.arange(14).reshape(2, 7), vectors(7, 8)).endswith(
        "and the tokens (7, 8); positions must be [7]"
    )


# CoPE does not look at positions.
@pytest.mark.parametrize("kind", [kind for kind in ADDING + ROTATING + BIASING if kind != "cope"])
def test_every_scheme_checks_its_positions(kind):
    for name, read in readers(kind, *tokens(), torch.arange(6)):
        assert refused(EncodingInputError, read).startswith(f"{name} have shape (6,)")


@pytest.mark.bad_input
@pytest.mark.parametrize("dtype", [torch.long, torch.uint8, torch.bool])
@pytest.mark.parametrize("name", ["sinusoidal", "learned", "learnable_sinusoidal"])
def test_integers_are_no_vectors(name, dtype):
    """Rounded to them sines would be zeros."""
    made = scheme(name, d_model=8, n_heads=2, n_positions=16)
    message = refused(EncodingInputError, made.add, torch.ones(1, 3, 8, dtype=dtype), torch.arange(3))
    assert message == f"the vectors are {dtype}; give floating-point ones, such as x.float()"
    rope, shaw = (scheme(each, d_model=8, n_heads=2) for each in ("rope", "shaw"))
    q, at = torch.ones(1, 2, 3, 4, dtype=dtype), torch.arange(3)
    for act in (lambda: rope.rotate(q, at), lambda: shaw.bias(q, q, at, at)):
        assert "give floating-point ones" in refused(EncodingInputError, act)
