"""RoPE: a turn of each pair by complex numbers, its identities, both layouts, parts of a head and several axes."""

import math

import peers
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import (
    LinearScaling,
    Llama3Scaling,
    NTKScaling,
    RoPE,
    YaRNScaling,
    convert_rope_layout,
)
from posembed.encodings._rotation import LARGE
from posembed.errors import EncodingInputError

LAYOUTS = ["half", "interleaved"]
SCALINGS = [
    None,
    LinearScaling(factor=3.0),
    NTKScaling(factor=3.0),
    YaRNScaling(factor=8.0, original_max_position_embeddings=256),
    Llama3Scaling(factor=8.0, original_max_position_embeddings=256),
]
FAR = 10**6
# A position of a million times a frequency of at most one is rounded by 2**-53 of a million; a product of two unit
# vectors is off by that for each of them, at either of two places, and as much again for sines and sums.
FAR_ROUNDING = 8 * FAR * 2.0**-53
to_even = lambda half: 2 * half


@st.composite
def ropes(draw, scalings=tuple(SCALINGS)):
    """The arguments of a RoPE of any layout, base, width, share of a head, axes and scaling."""
    axes = draw(st.none() | st.lists(st.integers(1, 4).map(to_even), min_size=1, max_size=3))
    turned = sum(axes) if axes else draw(st.integers(1, 12).map(to_even))
    fraction = draw(st.sampled_from([1.0, 0.5, 0.25]))
    return {
        "d_head": int(turned / fraction),
        "base": draw(st.sampled_from([100.0, 10000.0, 5e5])),
        "layout": draw(st.sampled_from(LAYOUTS)),
        "fraction": fraction,
        "axes": axes,
        "scaling": draw(st.sampled_from(scalings)),
    }


def factor(rope):
    return 1.0 if rope.scaling is None else rope.scaling.attention_factor


def unit(rope, seed):
    """One token with a vector of norm one, "1 d_head"."""
    vector = vectors(1, rope.d_head, seed=seed, dtype=torch.float64)
    return vector / vector.norm()


def place(rope, *coordinates):
    """Positions of one token for this RoPE, from as many coordinates as it has axes."""
    return torch.tensor([coordinates[: rope.n_axes]] if rope.n_axes else coordinates[:1])


def by_complex_numbers(x, angles, layout):
    """Turn the pairs of x, "... seq d_head", as complex numbers, by angles "seq pairs"."""
    width = 2 * angles.shape[-1]
    if layout == "half":
        first, second = x[..., : width // 2], x[..., width // 2 : width]
    else:
        first, second = x[..., 0:width:2], x[..., 1:width:2]
    turned = torch.complex(first, second) * torch.polar(torch.ones_like(angles), angles)
    if layout == "half":
        pairs = torch.cat([turned.real, turned.imag], -1)
    else:
        pairs = torch.stack([turned.real, turned.imag], -1).flatten(-2)
    return torch.cat([pairs, x[..., width:]], -1)


@given(
    half=st.integers(1, 16),
    rest=st.integers(0, 1),
    layout=st.sampled_from(LAYOUTS),
    base=st.floats(1.5, 1e6),
    positions=st.lists(st.integers(-500, 500), min_size=1, max_size=6),
)
def test_each_pair_turns_by_position_times_frequency(half, rest, layout, base, positions):
    width, d_head = 2 * half, 2 * half * (1 + rest)
    x = vectors(2, 3, len(positions), d_head, dtype=torch.float64)
    angles = torch.tensor([[p * base ** (-2 * i / width) for i in range(half)] for p in positions], dtype=torch.float64)
    rope = RoPE(d_head, base=base, layout=layout, fraction=1 / (1 + rest))
    turned = rope.rotate(x, torch.tensor(positions))
    # Two ways to compute a frequency differ by a few units of 2**-53, and an angle by 500 times as many.
    torch.testing.assert_close(turned, by_complex_numbers(x, angles, layout), rtol=0, atol=1e-12)
    assert torch.equal(rope.rotate_keys(x, torch.tensor(positions)), turned)


@given(
    options=ropes(),
    query=st.tuples(*[st.integers(-FAR, FAR)] * 3),
    key=st.tuples(*[st.integers(-FAR, FAR)] * 3),
    move=st.tuples(*[st.integers(-FAR, FAR)] * 3),
)
def test_a_product_depends_on_the_offset_alone(options, query, key, move):
    rope = RoPE(**options)
    q, k = unit(rope, 0), unit(rope, 1)

    def product(shift):
        at = [place(rope, *(p + s for p, s in zip(positions, shift, strict=True))) for positions in (query, key)]
        return (rope.rotate(q, at[0]) * rope.rotate_keys(k, at[1])).sum()

    here, there = product((0, 0, 0)), product(move)
    assert abs(here - there) < 2 * FAR_ROUNDING * factor(rope) ** 2


@given(options=ropes(), position=st.tuples(*[st.integers(-FAR, FAR)] * 3))
def test_norms_are_kept(options, position):
    rope = RoPE(**options)
    turned = rope.width
    x = vectors(1, rope.d_head, dtype=torch.float64)
    rotated = rope.rotate(x, place(rope, *position))
    # What an attention factor multiplies are the columns that turn.
    torch.testing.assert_close(rotated[:, :turned].norm(), x[:, :turned].norm() * factor(rope), rtol=1e-14, atol=0)
    assert torch.equal(rotated[:, turned:], x[:, turned:])


@given(
    options=ropes(
        scalings=(None, LinearScaling(factor=3.0), Llama3Scaling(factor=8.0, original_max_position_embeddings=256))
    )
)
def test_position_zero_is_left_as_it_is(options):
    rope = RoPE(**options)
    x = vectors(2, 1, rope.d_head)
    assert torch.equal(rope.rotate(x, place(rope, 0, 0, 0)), x)


@given(options=ropes(), position=st.tuples(*[st.integers(-FAR, FAR)] * 3))
def test_the_opposite_position_turns_back(options, position):
    rope = RoPE(**options)
    x = vectors(1, rope.d_head, dtype=torch.float64)
    back = rope.rotate(rope.rotate(x, place(rope, *position)), place(rope, *(-p for p in position)))
    expected = x.clone()
    expected[:, : rope.width] *= factor(rope) ** 2
    torch.testing.assert_close(back, expected, rtol=0, atol=1e-14 * 100)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_it_is_exact_in_float32_also_at_a_million(layout, dtype):
    """The product is rounded once for the format, after arithmetic in float32."""
    positions = torch.tensor([0, 1, 999_936, 999_937, 1_000_000])
    x = vectors(2, 3, 5, 64, dtype=dtype)
    exact = RoPE(64, layout=layout).rotate(x.double(), positions)
    turned = RoPE(64, layout=layout).to(dtype).rotate(x, positions)
    assert turned.dtype == dtype
    unit_of = torch.finfo(dtype).eps
    # Half a unit of the format for the last rounding; three float32 operations before on numbers of up to about 5.
    torch.testing.assert_close(turned.double(), exact, rtol=unit_of / 2, atol=10 * 2.0**-23)


# Gradients: the half layout has a backward pass of its own.


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_gradients(layout, fraction):
    rope, positions = RoPE(8, layout=layout, fraction=fraction), torch.tensor([[3, 1, 40], [0, 7, 2]])
    x = vectors(2, 2, 3, 8, dtype=torch.float64).requires_grad_()
    rotate = lambda x: rope.rotate(x, positions)
    assert torch.autograd.gradcheck(rotate, x) and torch.autograd.gradgradcheck(rotate, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_turns_back(layout, dtype):
    x, upstream, positions = vectors(2, 5, 8, dtype=dtype), vectors(2, 5, 8, seed=1, dtype=dtype), torch.arange(5) + 100
    leaf = x.requires_grad_()
    RoPE(8, layout=layout).rotate(leaf, positions).backward(upstream)
    expected = RoPE(8, layout=layout).rotate(upstream, -positions)
    # A bfloat16 result is rounded after either order of the same two float32 products.
    torch.testing.assert_close(leaf.grad, expected, rtol=torch.finfo(dtype).eps, atol=1e-6)


# Shapes and memory.


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
        lambda x: torch.cat([x, x], -1)[..., 8:],
        lambda x: torch.cat([x[..., :1], x], -1)[..., 1:],
        lambda x: torch.cat([torch.zeros(1), x.flatten()])[1:].view(x.shape),
        lambda x: x.clone().requires_grad_(),
    ],
    ids=["heads behind", "second half", "after one column", "odd place in memory", "leaf"],
)
def test_any_view_of_memory_is_turned(layout, view):
    x, positions = vectors(2, 3, 5, 8), torch.arange(5)
    given = view(x)
    assert torch.equal(given, x)
    assert torch.equal(RoPE(8, layout=layout).rotate(given, positions), RoPE(8, layout=layout).rotate(x, positions))
    assert torch.equal(given, x)  # the input is left as it was


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("batched", [False, True], ids=["seq", "batch seq"])
def test_many_tokens_are_turned_as_few(layout, batched):
    """From LARGE numbers a head on, the half layout goes head by head."""
    rope, seq = RoPE(64, layout=layout), LARGE // 64 + 3
    x, positions = vectors(2, 2, seq, 64), torch.arange(seq) * 7
    positions = torch.stack([positions, positions + 1]) if batched else positions
    together = rope.rotate(x, positions)
    for row in range(2):
        at = positions[row] if batched else positions
        for some in (slice(0, 10), slice(seq - 10, seq)):
            # The same operations, which a processor may do in wider or narrower steps.
            expected = rope.rotate(x[row, :, some], at[some])
            torch.testing.assert_close(together[row, :, some], expected, rtol=0, atol=1e-6)
    assert torch.equal(rope.rotate(x[0, 0], positions[0] if batched else positions), together[0, 0])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(0, 8), (2, 0, 8), (1, 2, 0, 8), (0, 2, 3, 8), (2, 0, 3, 8)], ids=str)
def test_no_tokens(layout, shape):
    assert RoPE(8, layout=layout).rotate(torch.zeros(shape), torch.arange(shape[-2])).shape == shape


# Layouts.


@given(
    half=st.integers(1, 6),
    rest=st.integers(0, 1),
    n_heads=st.integers(1, 3),
    positions=st.lists(st.integers(0, 5000), min_size=2, max_size=5),
)
def test_converted_weights_give_the_same_logits_in_the_other_layout(half, rest, n_heads, positions):
    """Weights and biases, several heads, parts of a head."""
    d_head, fraction = 2 * half * (1 + rest), 1 / (1 + rest)
    x = vectors(1, len(positions), 5, dtype=torch.float64)
    projections = [vectors(n_heads * d_head, 6, seed=seed, dtype=torch.float64) for seed in (1, 2)]

    def logits(layout, projections):
        rope = RoPE(d_head, layout=layout, fraction=fraction)
        turned = []
        for weight in projections:
            projected = torch.nn.functional.linear(x, weight[:, :5], weight[:, 5])
            heads = projected.unflatten(-1, (n_heads, d_head)).transpose(1, 2)
            turned.append(rope.rotate(heads, torch.tensor(positions)))
        return turned[0] @ turned[1].mT

    convert = lambda w, source, target: convert_rope_layout(
        w, n_heads=n_heads, source=source, target=target, fraction=fraction
    )
    for source, target in (LAYOUTS, LAYOUTS[::-1]):
        converted = [
            torch.cat([convert(w[:, :5], source, target), convert(w[:, 5], source, target)[:, None]], 1)
            for w in projections
        ]
        # Sums of up to 24 products of numbers of about 10, in another order.
        torch.testing.assert_close(logits(target, converted), logits(source, projections), rtol=0, atol=1e-11)


@pytest.mark.parametrize("shape", [(24, 5), (24,), (24, 2, 3)], ids=str)
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_weights_convert_there_and_back(shape, fraction):
    weight = vectors(*shape)
    convert = lambda w, source, target: convert_rope_layout(
        w, n_heads=3, source=source, target=target, fraction=fraction
    )
    there = convert(weight, "half", "interleaved")
    assert not torch.equal(there, weight) and torch.equal(convert(there, "interleaved", "half"), weight)
    same = convert(weight, "half", "half")
    assert torch.equal(same, weight) and same.data_ptr() != weight.data_ptr()


def test_conversion_keeps_the_columns_that_do_not_turn():
    rows = torch.arange(16.0)
    converted = convert_rope_layout(rows, n_heads=2, source="half", target="interleaved", fraction=0.5)
    assert converted.tolist() == [0, 2, 1, 3, 4, 5, 6, 7, 8, 10, 9, 11, 12, 13, 14, 15]


# Several axes.


@given(
    axes=st.lists(st.integers(1, 4).map(to_even), min_size=1, max_size=3),
    layout=st.sampled_from(LAYOUTS),
    scaling=st.sampled_from(SCALINGS),
)
def test_each_axis_is_a_rope_of_its_own_part(axes, layout, scaling):
    width, seq = sum(axes), 5
    positions = torch.arange(seq * len(axes)).reshape(seq, len(axes)) * 37 % 101
    x = vectors(2, seq, width, dtype=torch.float64)
    rotated = RoPE(width, axes=axes, layout=layout, scaling=scaling).rotate(x, positions)
    pairs_first = lambda y: convert_columns(y, "interleaved") if layout == "half" else y
    x, rotated = pairs_first(x), pairs_first(rotated)
    start = 0
    for axis, part in enumerate(axes):
        one = RoPE(part, layout="interleaved", scaling=scaling).rotate(x[..., start : start + part], positions[:, axis])
        torch.testing.assert_close(rotated[..., start : start + part], one, rtol=0, atol=1e-14 * 10)
        start += part


def convert_columns(x, target):
    """The columns of x, in the half layout, in another one."""
    return convert_rope_layout(x.movedim(-1, 0), n_heads=1, source="half", target=target).movedim(0, -1)


def test_axes_of_one_width_may_change_places():
    """With the coordinates their parts of the head change places, and nothing else changes."""
    x, positions = vectors(2, 5, 12), torch.arange(10).reshape(5, 2)
    rope = RoPE(12, axes=[6, 6], layout="interleaved")
    swapped = rope.rotate(x.roll(6, -1), positions.flip(-1)).roll(6, -1)
    assert torch.equal(swapped, rope.rotate(x, positions))
    assert not torch.equal(rope.rotate(x, positions.flip(-1)), rope.rotate(x, positions))


def test_one_axis_is_plain_rope():
    x, positions = vectors(2, 3, 5, 8), torch.arange(5)
    assert torch.equal(RoPE(8, axes=[8]).rotate(x, positions[:, None]), RoPE(8).rotate(x, positions))


def test_batches_of_positions_on_several_axes():
    rope, x = RoPE(8, axes=[4, 4]), vectors(2, 3, 5, 8)
    positions = torch.arange(20).reshape(2, 5, 2)
    together = rope.rotate(x, positions)
    for row in range(2):
        torch.testing.assert_close(together[row], rope.rotate(x[row], positions[row]), rtol=0, atol=1e-6)


def test_positions_on_several_axes_give_no_bias_for_any_number_of_keys():
    rope, q, k = RoPE(8, axes=[4, 4]), vectors(1, 2, 3, 8), vectors(1, 2, 5, 8)
    positions = torch.arange(10).reshape(5, 2)
    assert rope.bias(q, k, positions[2:], positions) is None


# Others' code.


@pytest.mark.parametrize("base", [10000.0, 500.0])
@pytest.mark.parametrize(
    ("their", "layout"),
    [
        (peers.rope_llama, "half"),
        (peers.rope_gpt_neox, "half"),
        (peers.rope_cohere, "interleaved"),
        (peers.rope_glm, "interleaved"),
        (peers.rope_rotary_embedding_torch, "interleaved"),
        (peers.rope_x_transformers, "interleaved"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_it_is_the_rope_of_other_libraries(their, layout, base):
    x, positions = vectors(2, 3, 40, 16), torch.arange(40)
    ours = RoPE(16, base=base, layout=layout).rotate(x, positions)
    # They compute angles of up to 40 in float32.
    torch.testing.assert_close(ours, their(x, positions, base), rtol=0, atol=4 * 40 * 2.0**-23)


@pytest.mark.parametrize("their", [peers.rope_gpt_neox, peers.rope_glm, peers.rope_x_transformers])
def test_a_part_of_the_head_is_that_of_other_libraries(their):
    layout = "half" if their is peers.rope_gpt_neox else "interleaved"
    x, positions = vectors(2, 3, 40, 16), torch.arange(40)
    ours = RoPE(16, layout=layout, fraction=0.5).rotate(x, positions)
    torch.testing.assert_close(ours, their(x, positions, fraction=0.5), rtol=0, atol=4 * 40 * 2.0**-23)


def test_it_is_roformers_and_gptjs():
    x, positions = vectors(2, 3, 40, 16), torch.arange(40)
    ours = RoPE(16, layout="interleaved").rotate(x, positions)
    # RoFormer's table is float64, rounded once.
    torch.testing.assert_close(ours, peers.rope_roformer(x, 40), rtol=0, atol=1e-6)
    torch.testing.assert_close(ours, peers.rope_gptj(x, positions), rtol=0, atol=4 * 40 * 2.0**-23)


def test_an_image_of_qwen2_vl():
    """There each of two axes has the frequencies of a RoPE of half the head."""
    x, positions = vectors(1, 2, 12, 16), torch.cartesian_prod(torch.arange(3), torch.arange(4))
    ours = RoPE(16, axes=[8, 8]).rotate(x, positions)
    torch.testing.assert_close(ours, peers.rope_qwen2_vl_vision(x, positions), rtol=0, atol=4 * 4 * 2.0**-23)


def test_a_grid_of_rotary_embedding_torch():
    x, positions = vectors(1, 2, 12, 16), torch.cartesian_prod(torch.arange(3), torch.arange(4))
    ours = RoPE(16, axes=[8, 8], layout="interleaved").rotate(x, positions)
    torch.testing.assert_close(ours, peers.rope_grid_rotary_embedding_torch(x, (3, 4)), rtol=0, atol=4 * 4 * 2.0**-23)


# Errors.


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("d_head", "options", "message"),
    [
        (7, {}, "the head width is 7; rope turns pairs of columns, so it must be even and at least 2"),
        (0, {}, "the head width is 0; rope needs a whole number of at least 2"),
        (8.0, {}, "the head width is 8.0"),
        (8, {"fraction": 0.0}, "fraction is 0.0; it must be above 0 and at most 1"),
        (8, {"fraction": 1.5}, "fraction is 1.5"),
        (8, {"fraction": math.nan}, "fraction is nan"),
        (10, {"fraction": 0.5}, "0.5 of a head of 10 is 5 columns; rope turns pairs of columns"),
        (8, {"fraction": 0.1}, "0.1 of a head of 8 is 0 columns"),
        (8, {"axes": [4, 2]}, "axes (4, 2) have 6 columns together, but 8 turn"),
        (8, {"axes": [4, 4], "fraction": 0.5}, "axes (4, 4) have 8 columns together, but 4 turn"),
        (8, {"axes": [3, 5]}, "axes are (3, 5); each axis needs an even number of columns, at least 2"),
        (8, {"axes": [8, 0]}, "axes are (8, 0)"),
        (8, {"axes": []}, "axes are ()"),
        (8, {"layout": "halves"}, "layout is 'halves'; choose among half, interleaved"),
        (8, {"base": 0.0}, "base is 0.0; it must be a positive number"),
        (8, {"base": -10.0}, "base is -10.0"),
        (8, {"base": math.nan}, "base is nan"),
        (8, {"base": math.inf}, "base is inf"),
        (
            8,
            {"scaling": "linear"},
            "scaling is 'linear'; give a mapping such as {'rope_type': 'linear', 'factor': 4.0}",
        ),
        (8, {"scaling": {"rope_type": "dynamic"}}, "rope_type is 'dynamic'; choose among linear, ntk, yarn, llama3"),
    ],
    ids=str,
)
def test_a_named_error_in_one_line(d_head, options, message):
    with pytest.raises(EncodingInputError) as error:
        RoPE(d_head, **options)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_heads": 5}, "a projection of 24 rows has no 5 equal heads"),
        ({"n_heads": 0}, "a projection of 24 rows has no 0 equal heads"),
        ({"source": "gptj"}, "layout is 'gptj'; choose among half, interleaved"),
        ({"target": "neox"}, "layout is 'neox'; choose among half, interleaved"),
        ({"n_heads": 8}, "the head width is 3; rope turns pairs of columns"),
        ({"fraction": 2.0}, "fraction is 2.0; it must be above 0 and at most 1"),
    ],
    ids=str,
)
def test_weights_that_are_not_converted(options, message):
    with pytest.raises(EncodingInputError) as error:
        convert_rope_layout(torch.zeros(24, 5), **({"n_heads": 2, "source": "half", "target": "interleaved"} | options))
    assert message in str(error.value) and "\n" not in str(error.value)
