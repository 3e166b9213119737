"""Schemes by name: every name, compositions, options, and each mistake with what to do about it."""

import pytest
import torch
from refusals import refused
from torch import nn

from posembed import PositionScheme, scheme, schemes
from posembed.encodings import T5, Composed, Learned, OnLayers, PerLayer, RoPE, Shaw, Sinusoidal, XPos
from posembed.encodings.registry import SCHEMES
from posembed.errors import EncodingInputError

SIZES = {"d_model": 16, "n_heads": 2, "n_positions": 64, "causal": True}
# Those whose authors give each layer its own parameters.
OWN_IN_EACH_LAYER = {"shaw", "fire", "cope"}


def test_the_names():
    names = ["nopos", "sinusoidal", "learned", "learnable_sinusoidal", "shaw", "t5", "alibi", "rope", "xpos"]
    assert schemes() == [*names, "kerple", "fire", "cope"]
    schemes().clear()  # a caller's list is the caller's
    assert len(schemes()) == 12


@pytest.mark.parametrize("name", schemes())
def test_every_name_makes_its_scheme(name):
    made = scheme(name, **SIZES)
    assert type(made) is SCHEMES[name] and isinstance(made, PositionScheme)
    assert made.layer(0) is made


@pytest.mark.parametrize("name", schemes())
def test_parts_for_each_layer_where_layers_share_nothing(name):
    made = scheme(name, n_layers=3, **SIZES)
    if name not in OWN_IN_EACH_LAYER:
        assert type(made) is SCHEMES[name]
        assert made.layer(0) is made.layer(2) is made
        return
    assert type(made) is PerLayer
    assert [type(made.layer(i)) for i in range(3)] == [SCHEMES[name]] * 3
    assert len({id(p) for p in made.parameters()}) == 3 * len(list(made.layer(0).parameters()))


def test_sizes_reach_the_schemes():
    assert scheme("learned", d_model=6, n_positions=9).weight.shape == (9, 6)
    assert scheme("rope", d_model=24, n_heads=3).d_head == 8
    assert scheme("shaw", d_model=24, n_heads=3, options={"shaw": {"max_distance": 5}}).weight.shape == (11, 8)
    assert not scheme("t5", n_heads=3, causal=False).causal and scheme("t5", n_heads=3, causal=True).causal


def test_options_reach_their_scheme_and_no_other():
    options = {"rope": {"layout": "interleaved", "base": 500.0}, "t5": {"n_buckets": 8}, "sinusoidal": {}}
    made = scheme("sinusoidal+rope+t5", options=options, **SIZES)
    sinusoidal, rope, t5 = made.parts
    assert (sinusoidal.base, rope.base, rope.layout, t5.n_buckets) == (10000.0, 500.0, "interleaved", 8)


def test_a_table_makes_sizes_needless():
    table = torch.randn(5, 3)
    assert torch.equal(scheme("learned", options={"learned": {"table": table}}).weight, table)
    assert scheme("learned", n_positions=4, options={"learned": {"table": table}}).weight.shape == (4, 3)


@pytest.mark.parametrize("name", ["learned+t5", " learned + t5 ", "learned +\tt5\n"])
def test_plus_composes_and_spaces_do_not_matter(name):
    made = scheme(name, **SIZES)
    assert isinstance(made, Composed)
    assert [type(part) for part in made.parts] == [Learned, T5]


def test_a_composition_with_layers_has_parts_of_both_kinds():
    made = scheme("rope+shaw", n_layers=2, **SIZES)
    first, second = made.layer(0), made.layer(1)
    assert [type(part) for part in first.parts] == [RoPE, Shaw]
    assert first.parts[0] is second.parts[0] and first.parts[1] is not second.parts[1]


def test_a_scheme_is_handed_back_as_it_is():
    rope = RoPE(8)
    assert scheme(rope) is rope
    assert scheme(rope, causal=False, d_model=16, n_heads=2, n_layers=3) is rope
    both = rope + Sinusoidal(16)
    assert scheme(both, causal=True) is both


REFUSED = [
    # Names.
    ("ropee", {}, "there is no scheme 'ropee'; did you mean 'rope'? The schemes are nopos, sinusoidal"),
    ("RoPE", {}, "there is no scheme 'RoPE'; did you mean 'rope'?"),
    ("Alibi", {}, "did you mean 'alibi'?"),
    ("sinusoid", {}, "did you mean 'sinusoidal'?"),
    ("learned+t55", {}, "there is no scheme 't55'; did you mean 't5'?"),
    ("rope+", {}, f"there is no scheme ''; The schemes are {', '.join(schemes())}"),
    ("", {}, "there is no scheme ''"),
    ("quaternion!", {}, "there is no scheme 'quaternion!'; The schemes are nopos"),
    (None, {}, f"None is no scheme; give a PositionScheme, or a name: {', '.join(schemes())}"),
    (3, {}, "3 is no scheme"),
    (nn.Identity(), {}, "Identity() is no scheme"),
    (RoPE, {}, "is no scheme; give a PositionScheme"),
    # Sizes.
    ("sinusoidal", {}, "sinusoidal needs d_model="),
    ("learned", {"d_model": 8}, "learned needs n_positions="),
    ("learned", {}, "learned needs n_positions= and d_model="),
    ("learnable_sinusoidal", {"n_heads": 2}, "learnable_sinusoidal needs d_model="),
    ("shaw", {"d_model": 8}, "shaw needs n_heads="),
    ("t5", {"n_heads": 2}, "t5 needs causal="),
    ("t5", {}, "t5 needs n_heads= and causal="),
    ("alibi", {"d_model": 8}, "alibi needs n_heads="),
    ("rope", {}, "rope needs d_model= and n_heads="),
    ("rope", {"d_head": 0}, "d_head is 0"),
    ("xpos", {"n_heads": 2}, "xpos needs d_model="),
    ("kerple", {}, "kerple needs n_heads="),
    ("fire", {}, "fire needs n_heads="),
    ("cope", {}, "cope needs d_model= and n_heads="),
    ("nopos+rope", {}, "rope needs"),
    ("rope", {"d_model": 10, "n_heads": 4}, "d_model is 10, which 4 heads do not divide"),
    ("nopos", {"d_model": 0}, "d_model is 0; it must be a whole number of at least 1"),
    ("nopos", {"n_layers": 0}, "n_layers is 0"),
    ("nopos", {"n_positions": 2.0}, "n_positions is 2.0"),
    ("nopos", {"causal": "no"}, "causal is 'no'; give True or False"),
    ("rope", {"d_model": 6, "n_heads": 2}, "the head width is 3; rope turns pairs of columns, so it must be even"),
    ("xpos", {"d_model": 6, "n_heads": 2}, "the head width is 3; rope turns pairs of columns"),
    ("xpos", {"d_model": 8, "n_heads": 2, "causal": False}, "xpos is not defined for a bidirectional model"),
    ("fire", {"n_heads": 2, "causal": False}, "fire is not defined for a bidirectional model, only for a causal one"),
    ("cope", {"d_model": 8, "n_heads": 2, "causal": False}, "cope is not defined for a bidirectional model"),
    (
        "cope",
        {"d_model": 8, "n_heads": 2, "causal": False, "n_layers": 2},
        "cope is not defined for a bidirectional model",
    ),
    ("nopos+fire", {"n_heads": 2, "causal": False}, "fire is not defined for a bidirectional model"),
    ("rope+alibi+rope", {"d_model": 8, "n_heads": 2}, "'rope' stands twice in 'rope+alibi+rope'; name it once"),
    ("nopos + nopos", {}, "'nopos' stands twice"),
    (XPos(8), {"causal": False}, "XPos is not defined for a bidirectional model"),
    (T5(2, causal=True), {"causal": False}, "T5 is not defined for a bidirectional model"),
    (RoPE(8), {"d_model": -1}, "d_model is -1"),
    (
        OnLayers(XPos(8), [0], n_layers=2),
        {"causal": False},
        "OnLayers is not defined for a bidirectional model, only for a causal one",
    ),
    # Options.
    (
        "rope",
        {"options": {"rope": {"layuot": "half"}}},
        "rope has no option 'layuot'; it has base, layout, fraction, axes, scaling",
    ),
    ("alibi", {"options": {"alibi": {"slope": 1}}}, "alibi has no option 'slope'; it has none"),
    ("nopos", {"options": {"nopos": {"a": 1}}}, "nopos has no option 'a'; it has none"),
    ("t5", {"options": {"t5": {"causal": False}}}, "t5 has no option 'causal'; it has n_buckets, max_distance"),
    ("t5", {"options": {"t5": {"n_heads": 3}}}, "t5 has no option 'n_heads'"),
    ("learned", {"options": {"learned": {"d_model": 3}}}, "learned has no option 'd_model'; it has table, std"),
    (
        "xpos",
        {"options": {"xpos": {"scaling": None}}},
        "xpos has no option 'scaling'; it has scale_base, origin, base, layout",
    ),
    ("rope", {"options": {"t5": {}}}, "there are options for 't5', but the scheme is rope; remove them"),
    (
        "rope+alibi",
        {"options": {"RoPE": {}}},
        "there are options for 'RoPE', but the scheme is rope, alibi; remove them",
    ),
    ("rope", {"options": {"base": 500.0}}, "'base' is an option of rope; give {'rope': {'base': ...}}"),
    ("nopos+t5", {"options": {"n_buckets": 8}}, "'n_buckets' is an option of t5; give {'t5': {'n_buckets': ...}}"),
    ("t5", {"options": {"t5": 64}}, "the options for 't5' are 64; give a mapping of names to values"),
    ("t5", {"options": {"t5": None}}, "the options for 't5' are None; give a mapping"),
    (
        RoPE(8),
        {"options": {"rope": {}}},
        "there are options for 'rope', but the scheme is an instance, which takes none",
    ),
    ("t5", {"options": ["t5"]}, "options"),
    ("t5", {"options": "max_distance=64"}, "options"),
    (
        "rope",
        {"d_model": 16, "n_heads": 2, "options": {"rope": {"base": "10000"}}},
        "base is '10000'; it must be a positive number",
    ),
]


@pytest.mark.bad_input
@pytest.mark.parametrize(("name", "given", "message"), REFUSED, ids=str)
def test_what_cannot_be_made(name, given, message):
    assert message in refused(EncodingInputError, scheme, name, **given)
