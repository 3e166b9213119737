"""xPos: the damping of a product by hand, its origin, and how far the numbers reach."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refused
from small_schemes import vectors

from posembed.encodings import RoPE, XPos
from posembed.errors import PositionOutOfRangeError

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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("origin", [0, 10_000])
def test_queries_and_keys_are_rope_times_their_scales_from_the_origin(layout, origin):
    x, positions = vectors(2, 5, 8, dtype=torch.float64), torch.tensor([-900, 0, 1, 512, 20_000])
    xpos, turned = XPos(8, layout=layout, origin=origin), RoPE(8, layout=layout).rotate(x, positions)
    scale = zeta(8) ** ((positions[:, None] - origin).double() / 512)
    scale = torch.cat([scale, scale], -1) if layout == "half" else scale.repeat_interleave(2, -1)
    torch.testing.assert_close(xpos.rotate(x, positions), turned * scale, rtol=1e-13, atol=0)
    torch.testing.assert_close(xpos.rotate_keys(x, positions), turned / scale, rtol=1e-13, atol=0)


@pytest.mark.parametrize("act", [XPos.rotate, XPos.rotate_keys])
@pytest.mark.parametrize(("scale_base", "origin"), [(512.0, 0), (512.0, 10**6), (64.0, -40), (10_000.0, 7)])
def test_within_reach_numbers_are_finite_and_beyond_it_there_is_a_named_error(scale_base, origin, act):
    xpos, x = XPos(8, scale_base=scale_base, origin=origin), vectors(1, 8)
    reach = int(REACH * scale_base)
    for side in (-1, 1):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            assert act(xpos, x.to(dtype), at(origin + side * reach)).isfinite().all()
        assert refused(PositionOutOfRangeError, act, xpos, x, torch.tensor([origin + side * (reach + 1)])) == (
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


# Without the hook of jaxtyping, whose wrappers compilers cannot look into.
@pytest.mark.bad_input
@pytest.mark.slow
def test_compiled_nothing_is_checked_and_far_keys_are_infinite_or_nan():
    torch.compiler.reset()
    far = torch.arange(32_696, 60_000)
    keys = torch.compile(XPos(8).rotate_keys, backend="eager")(torch.ones(len(far), 8), far)
    finite = keys.isfinite().all(1)
    # (1.4 / 0.4)^(p / 512) leaves float32's range at 36,260, and a sum of two such products a little before.
    assert finite[: 36_000 - 32_696].all() and not finite[36_261 - 32_696 :].any()
    assert keys.isinf().any() and keys.isnan().any()


def test_products_within_reach_are_exact_in_float32():
    """A query of 1e-35 and a key of 1e35 meet as two numbers of about one."""
    positions = torch.arange(32_600, 32_690)
    q, k = vectors(90, 64), vectors(90, 64, seed=1)
    exact = XPos(64).rotate(q.double(), positions) @ XPos(64).rotate_keys(k.double(), positions).T
    product = XPos(64).rotate(q, positions) @ XPos(64).rotate_keys(k, positions).T
    # Sums of 64 products of numbers of about one, each rounded a few times.
    torch.testing.assert_close(product.double(), exact, rtol=0, atol=64 * 2.0**-22)


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


def test_the_further_back_the_more_and_the_slower_the_less():
    xpos, one = XPos(8, layout="half"), torch.ones(1, 8, dtype=torch.float64)
    lengths = torch.stack(
        [torch.stack(pairs(xpos.rotate(one, at(p)), "half")).norm(dim=0)[0] for p in (0, 1, 99, 5000)]
    )
    assert (lengths.diff(dim=0) < 0).all()  # more with the distance
    assert (lengths[1:].diff(dim=1) > 0).all()  # less for slower pairs
