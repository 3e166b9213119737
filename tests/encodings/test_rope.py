"""RoPE: a turn of each pair by complex numbers, its identities, both layouts, parts of a head and several axes."""

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
    XPos,
    YaRNScaling,
    convert_rope_layout,
)

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
    turned = RoPE(8, layout=layout).rotate(given, positions)
    # A processor may round a product before it adds, or not, as memory lies.
    torch.testing.assert_close(turned, RoPE(8, layout=layout).rotate(x, positions), rtol=0, atol=1e-6)
    assert torch.equal(given, x)  # the input is left as it was


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


@given(options=ropes(), position=st.tuples(*[st.integers(-FAR, FAR)] * 3))
def test_norms_are_kept(options, position):
    rope = RoPE(**options)
    turned = rope.width
    x = vectors(1, rope.d_head, dtype=torch.float64)
    rotated = rope.rotate(x, place(rope, *position))
    # What an attention factor multiplies are the columns that turn.
    torch.testing.assert_close(rotated[:, :turned].norm(), x[:, :turned].norm() * factor(rope), rtol=1e-14, atol=0)
    assert torch.equal(rotated[:, turned:], x[:, turned:])


@pytest.mark.parametrize("kind", [RoPE, XPos])
@pytest.mark.parametrize("act", ["rotate", "rotate_keys"])
def test_tokens_may_stand_before_the_heads(kind, act):
    """With as many heads as tokens the shape does not tell which axis is theirs."""
    turn, x, positions = getattr(kind(8), act), vectors(2, 4, 4, 8), torch.arange(4) * 3
    assert torch.equal(turn(x, positions, seq_dim=1), turn(x.transpose(1, 2), positions).transpose(1, 2))
    assert not torch.equal(turn(x, positions, seq_dim=1), turn(x, positions))
