"""Schemes by name: every name, compositions, options, and each mistake with what to do about it."""

import pytest
import torch

from posembed import scheme, schemes
from posembed.encodings import T5, Composed, Learned, PerLayer, RoPE, Shaw, Sinusoidal
from posembed.encodings.registry import SCHEMES

SIZES = {"d_model": 16, "n_heads": 2, "n_positions": 64, "causal": True}
# Those whose authors give each layer its own parameters.
OWN_IN_EACH_LAYER = {"shaw", "pope", "fire", "cope", "forgetting", "scaled_logits"}


def test_the_names():
    names = ["nopos", "sinusoidal", "learned", "learnable_sinusoidal", "shaw", "t5", "alibi", "rope", "xpos"]
    assert schemes() == [*names, "pope", "kerple", "fire", "cope", "forgetting", "scaled_logits"]
    schemes().clear()  # a caller's list is the caller's
    assert len(schemes()) == 15


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
