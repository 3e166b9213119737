"""The sinusoidal table against independent implementations, and by its own identities."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posembed import sinusoidal
from posembed.encodings import convert_layout

# Half a unit in the last place of numbers between one half and one, in float32.
ROUNDED_ONCE = 2.0**-25
SIZES = [(512, 768), (100, 64), (33, 7), (5, 2), (4, 1)]


def by_the_formula(n_positions, d_model, base=10000.0):
    """The paper's formula, entry by entry, with Python's own numbers."""
    angle = lambda p, j: p * base ** -(2 * (j // 2) / d_model)
    return torch.tensor(
        [[(math.cos if j % 2 else math.sin)(angle(p, j)) for j in range(d_model)] for p in range(n_positions)],
        dtype=torch.float64,
    )


@pytest.mark.parametrize(("n_positions", "d_model"), SIZES)
def test_it_is_the_papers_formula_rounded_once(n_positions, d_model):
    expected = by_the_formula(n_positions, d_model)
    # Two orders of computing an angle of up to n_positions differ by a few units of float64's last place.
    error = (sinusoidal(n_positions, d_model, dtype=torch.float64) - expected).abs().max()
    assert error < 4 * n_positions * torch.finfo(torch.float64).eps
    assert (sinusoidal(n_positions, d_model).double() - expected).abs().max() <= ROUNDED_ONCE * (1 + 1e-6)


def test_far_positions_are_as_exact_as_near_ones():
    table = sinusoidal(1_000_001, 2)[-1]
    assert table.tolist() == pytest.approx([math.sin(1e6), math.cos(1e6)], abs=ROUNDED_ONCE)


@given(
    d_model=st.integers(1, 40).map(lambda half: 2 * half),
    offset=st.integers(0, 60),
    base=st.floats(1.5, 1e6),
    layout=st.sampled_from(["interleaved", "concat", "tensor2tensor"]),
)
def test_rows_have_one_length_and_their_product_depends_on_the_offset_alone(d_model, offset, base, layout):
    table = sinusoidal(128, d_model, base=base, layout=layout, dtype=torch.float64)
    torch.testing.assert_close((table**2).sum(1), torch.full((128,), d_model / 2, dtype=torch.float64))
    products = (table[: 128 - offset] * table[offset:]).sum(1)
    # Angles of up to 128 carry an error of about 128 units of float64's last place.
    assert products.max() - products.min() < 1e-12 * d_model


@given(d_model=st.integers(1, 20).map(lambda half: 2 * half), offset=st.integers(-50, 50))
def test_an_offset_is_a_rotation_of_each_pair(d_model, offset):
    table = sinusoidal(200, d_model, dtype=torch.float64)
    pairs = table[:, 1::2].numpy() + 1j * table[:, ::2].numpy()  # cos + i sin
    turn = np.exp(1j * offset * 10000.0 ** (-np.arange(0, d_model, 2) / d_model))
    np.testing.assert_allclose(pairs[60 + offset : 140 + offset], pairs[60:140] * turn, rtol=0, atol=1e-12)


@pytest.mark.parametrize("d_model", [1, 2, 7, 64])
def test_layouts_convert_there_and_back(d_model):
    paper, concat = (sinusoidal(9, d_model, layout=layout) for layout in ("interleaved", "concat"))
    assert torch.equal(convert_layout(paper, source="interleaved", target="concat"), concat)
    assert torch.equal(convert_layout(concat, source="concat", target="interleaved"), paper)
    same = convert_layout(paper, source="interleaved", target="interleaved")
    assert torch.equal(same, paper) and same.data_ptr() != paper.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_every_format_holds_the_exact_table_rounded_once(dtype):
    table = sinusoidal(2048, 32, dtype=dtype)
    assert table.dtype == dtype
    assert torch.equal(table, sinusoidal(2048, 32, dtype=torch.float64).to(dtype))


def test_an_odd_tensor2tensor_table_ends_with_a_zero_column():
    assert sinusoidal(5, 7, layout="tensor2tensor")[:, -1].tolist() == [0.0] * 5


@pytest.mark.parametrize(("d_model", "last_fall"), [(768, 43), (64, 5)])
def test_where_the_product_first_rises(d_model, last_fall):
    products = sinusoidal(100, d_model, dtype=torch.float64) @ sinusoidal(1, d_model, dtype=torch.float64)[0]
    rises = (products.diff() > 0).nonzero().flatten()
    assert int(rises[0]) == last_fall


def test_a_default_device_changes_where_nothing_is_computed():
    with torch.device("meta"):
        table = sinusoidal(70, 8, device="cpu")
    assert torch.equal(table, sinusoidal(70, 8))
