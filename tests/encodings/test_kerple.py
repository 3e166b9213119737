"""KERPLE: its two kernels by hand, the limits of their parameters, and what makes them kernels."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import KERPLE, ALiBi, alibi_slopes


def made(kernel, scale, shape):
    kerple = KERPLE(len(scale), kernel=kernel)
    kerple.scale.data, kerple.shape.data = torch.tensor(scale), torch.tensor(shape)
    return kerple


@given(
    kernel=st.sampled_from(["log", "power"]),
    heads=st.lists(st.tuples(st.floats(2**-6, 8.0, width=32), st.floats(2**-6, 2.0, width=32)), min_size=1, max_size=3),
    distance=st.integers(0, 10**6),
)
def test_the_kernel_of_a_distance(kernel, heads, distance):
    bias = made(kernel, *map(list, zip(*heads, strict=True))).bias_by_offset(torch.tensor([-distance, distance]))
    for ours, (scale, shape) in zip(bias.tolist(), heads, strict=True):
        expected = -scale * (math.log(1 + shape * distance) if kernel == "log" else distance**shape)
        # A power rounds its exponent, times a logarithm of up to 14, by half a unit of the last place.
        assert ours == pytest.approx([expected, expected], rel=2.0**-20, abs=0)


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_parameters_are_kept_where_the_kernel_is_defined(kernel):
    offsets = torch.tensor([-7, 0, 100])
    low = made(kernel, [-3.0], [-1.0]).bias_by_offset(offsets)
    assert torch.equal(low, made(kernel, [0.01], [0.01]).bias_by_offset(offsets))
    high, at_two = (made(kernel, [1.0], [shape]).bias_by_offset(offsets) for shape in (5.0, 2.0))
    assert torch.equal(high, at_two) == (kernel == "power")  # a logarithm has no upper limit
    assert at_two[0, 1] == 0.0


@pytest.mark.parametrize(("kernel", "most"), [("log", (2, 1)), ("power", (1, 2))])
def test_parameters_start_where_the_authors_code_draws_them(kernel, most):
    torch.manual_seed(0)
    kerple = KERPLE(5000, kernel=kernel)
    for parameter, top in zip((kerple.scale, kerple.shape), most, strict=True):
        # Uniform: of 5000 draws the largest is within a thousandth of the top, but for one case in a hundred.
        assert parameter.min() >= 0 and 0.999 * top < parameter.max() <= top
        assert parameter.mean().item() == pytest.approx(top / 2, rel=0.05)


@pytest.mark.parametrize(("kernel", "shape"), [("log", 0.3), ("log", 40.0), ("power", 0.5), ("power", 2.0)])
def test_the_bias_is_a_conditionally_positive_definite_kernel(kernel, shape):
    """For numbers that sum to zero the quadratic form of the bias is never negative (the paper's definition 1)."""
    positions = torch.arange(12)
    bias = made(kernel, [1.0], [shape]).bias(vectors(1, 1, 12, 2), vectors(1, 1, 12, 2), positions, positions)[0]
    centre = torch.eye(12, dtype=torch.float64) - 1 / 12
    smallest = torch.linalg.eigvalsh(centre @ bias.detach().double() @ centre)[0]
    assert smallest > -1e-6 * bias.abs().max()  # the bias is float32


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_gradients_reach_both_parameters_and_are_finite_at_distance_zero(kernel):
    kerple = made(kernel, [0.5, 1.0], [0.5, 1.5])
    kerple.bias_by_offset(torch.arange(-5, 1)).square().sum().backward()
    for parameter in kerple.parameters():
        assert parameter.grad.isfinite().all() and parameter.grad.abs().min() > 0


def test_the_power_of_one_is_alibi_with_other_slopes():
    slopes = alibi_slopes(4)[:3]  # the fourth is below the least that a parameter may be
    offsets = torch.arange(-100, 101)
    bias = made("power", slopes.tolist(), [1.0] * 3).bias_by_offset(offsets)
    torch.testing.assert_close(bias, ALiBi(4).bias_by_offset(offsets)[:3], rtol=1e-6, atol=0)
