"""xPos: the damping of a product by hand, its origin, and how far the numbers reach."""

import math

import peers
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import RoPE, XPos
from posembed.errors import EncodingInputError, PositionOutOfRangeError

LAYOUTS = ["half", "interleaved"]
# 80 / -log(0.4 / 1.4), in units of scale_base.
REACH = 80 / math.log(1.4 / 0.4)
at = lambda position: torch.tensor([position])


def zeta(width):
    return torch.tensor([(2 * i / width + 0.4) / 1.4 for i in range(width // 2)], dtype=torch.float64)


def pairs(x, layout):
    """The two columns of each pair, "... pairs"."""
    return x.chunk(2, -1) if layout == "half" else (x[..., ::2], x[..., 1::2])


@given(
    half=st.integers(1, 12),
    layout=st.sampled_from(LAYOUTS),
    scale_base=st.floats(16.0, 4096.0),
    key=st.integers(-10_000, 10_000),
    back=st.integers(0, 10_000),
)
def test_the_product_of_each_pair_is_turned_and_damped(half, layout, scale_base, key, back):
    """Of ones it is 2 cos(offset w_i) z_i^(offset / scale_base)."""
    width, query = 2 * half, key + back
    assume(max(abs(key), abs(query)) < 0.99 * REACH * scale_base)
    xpos, ones = XPos(width, layout=layout, scale_base=scale_base), torch.ones(1, width, dtype=torch.float64)
    q, k = xpos.rotate(ones, at(query)), xpos.rotate_keys(ones, at(key))
    product = sum(a * b for a, b in zip(pairs(q, layout), pairs(k, layout), strict=True))[0]
    frequencies = torch.tensor([10000.0 ** (-2 * i / width) for i in range(half)], dtype=torch.float64)
    expected = 2 * (back * frequencies).cos() * zeta(width) ** (back / scale_base)
    # Angles of 10,000 and exponents of 80 are rounded by 2**-53 of that.
    torch.testing.assert_close(product, expected, rtol=0, atol=2e-11)


@given(
    half=st.integers(1, 12),
    layout=st.sampled_from(LAYOUTS),
    query=st.integers(0, 15_000),
    back=st.integers(0, 15_000),
    move=st.integers(-30_000, 15_000),
    origin=st.integers(-(10**6), 10**6),
)
def test_a_product_depends_on_the_offset_alone(half, layout, query, back, move, origin):
    xpos = XPos(2 * half, layout=layout, origin=origin)
    q, k = (vectors(1, 2 * half, seed=seed, dtype=torch.float64) for seed in (0, 1))
    q, k = q / q.norm(), k / k.norm()

    def product(shift):
        places = (origin + query + shift, origin + query - back + shift)
        return (xpos.rotate(q, at(places[0])) * xpos.rotate_keys(k, at(places[1]))).sum()

    # Angles of a million are rounded by 2**-53 of that, for q and k in two places; sines and sums as much again.
    assert abs(product(0) - product(move)) < 16 * 1.1e6 * 2.0**-53


@pytest.mark.parametrize("layout", LAYOUTS)
def test_at_offset_zero_the_damping_cancels(layout):
    xpos, x = XPos(16, layout=layout), vectors(3, 16, dtype=torch.float64)
    positions = torch.tensor([0, 700, 30_000])
    q, k = xpos.rotate(x, positions), xpos.rotate_keys(x, positions)
    torch.testing.assert_close((q * k).sum(-1), (x * x).sum(-1), rtol=1e-13, atol=0)
    assert torch.equal(q[0], x[0]) and torch.equal(k[0], x[0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_queries_and_keys_are_rope_times_their_scales(layout):
    x, positions = vectors(2, 5, 8, dtype=torch.float64), torch.tensor([-900, 0, 1, 512, 20_000])
    xpos, turned = XPos(8, layout=layout), RoPE(8, layout=layout).rotate(x, positions)
    scale = zeta(8) ** (positions[:, None].double() / 512)
    scale = torch.cat([scale, scale], -1) if layout == "half" else scale.repeat_interleave(2, -1)
    torch.testing.assert_close(xpos.rotate(x, positions), turned * scale, rtol=1e-13, atol=0)
    torch.testing.assert_close(xpos.rotate_keys(x, positions), turned / scale, rtol=1e-13, atol=0)


def test_the_further_back_the_more_and_the_slower_the_less():
    xpos, one = XPos(8, layout="half"), torch.ones(1, 8, dtype=torch.float64)
    lengths = torch.stack(
        [torch.stack(pairs(xpos.rotate(one, at(p)), "half")).norm(dim=0)[0] for p in (0, 1, 99, 5000)]
    )
    assert (lengths.diff(dim=0) < 0).all()  # more with the distance
    assert (lengths[1:].diff(dim=1) > 0).all()  # less for slower pairs


def test_the_origin_moves_what_is_damped():
    x = vectors(1, 8)
    near, far = XPos(8), XPos(8, origin=10**6)
    damped, undamped = near.rotate(x, at(300)), far.rotate(x, at(10**6))
    assert damped.norm() < x.norm()
    torch.testing.assert_close(undamped.norm(), x.norm(), rtol=1e-6, atol=0)
    # Only the turn remains from the position itself.
    torch.testing.assert_close(undamped, RoPE(8, layout="interleaved").rotate(x, at(10**6)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16], ids=str)
def test_short_integers_do_not_wrap_around_before_the_origin(dtype):
    xpos, x, positions = XPos(8, origin=300), vectors(3, 8), torch.tensor([0, 3, 100])
    assert torch.equal(xpos.rotate(x, positions.to(dtype)), xpos.rotate(x, positions))
    assert torch.equal(xpos.rotate_keys(x, positions.to(dtype)), xpos.rotate_keys(x, positions))


@pytest.mark.parametrize("act", [XPos.rotate, XPos.rotate_keys])
@pytest.mark.parametrize(("scale_base", "origin"), [(512.0, 0), (512.0, 10**6), (64.0, -40), (10_000.0, 7)])
def test_within_reach_numbers_are_finite_and_beyond_it_there_is_a_named_error(scale_base, origin, act):
    xpos, x = XPos(8, scale_base=scale_base, origin=origin), vectors(1, 8)
    reach = int(REACH * scale_base)
    for side in (-1, 1):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            assert act(xpos, x.to(dtype), at(origin + side * reach)).isfinite().all()
        with pytest.raises(PositionOutOfRangeError) as error:
            act(xpos, x, torch.tensor([origin + side * (reach + 1)]))
        assert str(error.value) == (
            f"a position is more than {reach} from the origin {origin}, and damping leaves float32's range; move "
            "origin= or raise scale_base="
        )


def test_in_float16_numbers_stay_finite_or_there_is_a_named_error():
    xpos, ones = XPos(8), torch.ones(1, 8, dtype=torch.float16)
    for position in (100, 4_000, 6_000, 30_000):
        try:
            q, k = xpos.rotate(ones, at(position)), xpos.rotate_keys(ones, at(position))
        except PositionOutOfRangeError:
            continue
        assert k.isfinite().all() and (q.float() @ k.float().T).isfinite().all()


def test_products_within_reach_are_exact_in_float32():
    """A query of 1e-35 and a key of 1e35 meet as two numbers of about one."""
    positions = torch.arange(32_600, 32_690)
    q, k = vectors(90, 64), vectors(90, 64, seed=1)
    exact = XPos(64).rotate(q.double(), positions) @ XPos(64).rotate_keys(k.double(), positions).T
    product = XPos(64).rotate(q, positions) @ XPos(64).rotate_keys(k, positions).T
    # Sums of 64 products of numbers of about one, each rounded a few times.
    torch.testing.assert_close(product.double(), exact, rtol=0, atol=64 * 2.0**-22)


def test_gradients_are_finite_within_reach():
    x = vectors(2, 8).requires_grad_()
    XPos(8).rotate_keys(x, torch.tensor([0, 30_000])).sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients(layout):
    xpos, x = XPos(8, layout=layout), vectors(2, 3, 8, dtype=torch.float64).requires_grad_()
    positions = torch.tensor([0, 30, 700])
    assert torch.autograd.gradcheck(lambda x: (xpos.rotate(x, positions), xpos.rotate_keys(x, positions)), x)


@pytest.mark.parametrize("scale_base", [512, 64])
def test_products_are_those_of_other_libraries(scale_base):
    """They centre the scale elsewhere, which cancels; only queries at or after their keys are damped."""
    q, k, positions = vectors(2, 3, 20, 16), vectors(2, 3, 20, 16, seed=1), torch.arange(20)
    xpos = XPos(16, scale_base=float(scale_base))
    ours = (xpos.rotate(q, positions) @ xpos.rotate_keys(k, positions).mT).tril()
    for theirs in (
        peers.xpos_x_transformers(q, k, positions, scale_base),
        peers.xpos_rotary_embedding_torch(q, k, scale_base),
    ):
        # Angles of up to 20 in float32, for queries and keys; products of up to 16 numbers of about ten.
        torch.testing.assert_close(ours, (theirs[0] @ theirs[1].mT).tril(), rtol=0, atol=16 * 20 * 2.0**-22)


def test_it_is_for_causal_models_and_has_nothing_to_train():
    assert XPos(8).objectives == {"causal"} and not list(XPos(8).parameters())


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("d_head", "options", "message"),
    [
        (7, {}, "the head width is 7; rope turns pairs of columns, so it must be even"),
        (8, {"scale_base": 0.0}, "scale_base is 0.0; it must be a positive number"),
        (8, {"scale_base": -512}, "scale_base is -512"),
        (8, {"scale_base": math.nan}, "scale_base is nan"),
        (8, {"scale_base": math.inf}, "scale_base is inf"),
        (8, {"layout": "concat"}, "layout is 'concat'; choose among half, interleaved"),
        (8, {"base": 0.0}, "base is 0.0; it must be a positive number"),
        (8, {"origin": "start"}, "origin is 'start'"),
        (8, {"origin": math.nan}, "origin is nan"),
    ],
    ids=str,
)
def test_a_named_error_in_one_line(d_head, options, message):
    with pytest.raises(EncodingInputError) as error:
        XPos(d_head, **options)
    assert message in str(error.value) and "\n" not in str(error.value)
