"""The sinusoidal encoding as a scheme: the rows of the table at any position."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posembed import sinusoidal
from posembed.encodings import Sinusoidal

LAYOUTS = ["interleaved", "concat", "tensor2tensor"]
# Half a unit in the last place of numbers between one half and one, in float32.
ROUNDED_ONCE = 2.0**-25


@given(
    d_model=st.integers(2, 33),
    layout=st.sampled_from(LAYOUTS),
    base=st.floats(1.5, 1e6),
    positions=st.lists(st.integers(0, 199), max_size=8),
)
def test_rows_are_those_of_the_table(d_model, layout, base, positions):
    """Odd widths too."""
    positions = torch.tensor(positions, dtype=torch.int64)
    made = Sinusoidal(d_model, base=base, layout=layout)
    for dtype, tolerance in [(torch.float32, 2 * ROUNDED_ONCE), (torch.float64, 1e-13)]:
        table = sinusoidal(200, d_model, base=base, layout=layout, dtype=dtype)
        rows = made.add(torch.zeros(1, len(positions), d_model, dtype=dtype), positions)[0]
        # The table adds angles and the scheme multiplies: in float64 an angle of 200 is off by 200 units at most.
        torch.testing.assert_close(rows, table[positions], rtol=0, atol=tolerance)


@given(position=st.integers(-(10**6), 10**6), d_model=st.integers(1, 20))
def test_far_and_negative_positions_are_exact(position, d_model):
    rows = Sinusoidal(d_model).add(torch.zeros(1, 1, d_model, dtype=torch.float64), torch.tensor([position]))[0, 0]
    angles = [position * 10000.0 ** (-(2 * (column // 2)) / d_model) for column in range(d_model)]
    expected = [(math.cos if column % 2 else math.sin)(angle) for column, angle in enumerate(angles)]
    # A frequency computed in another way is off by a few units of 2**-53, and the angle by as many times 10**6.
    assert rows.tolist() == pytest.approx(expected, rel=0, abs=5e-9)


@given(
    axes=st.lists(st.integers(2, 9), min_size=1, max_size=3),
    layout=st.sampled_from(LAYOUTS),
    coordinates=st.lists(st.integers(-(10**6), 10**6), min_size=12, max_size=12),
)
def test_each_axis_has_the_rows_of_a_table_of_its_width(axes, layout, coordinates):
    positions = torch.tensor(coordinates).reshape(2, 2, 3)[..., : len(axes)]
    made = Sinusoidal(sum(axes), layout=layout, axes=axes)
    assert made.n_axes == len(axes)
    rows = made.add(torch.zeros(2, 2, sum(axes)), positions)
    parts = [
        Sinusoidal(width, layout=layout).add(torch.zeros(2, 2, width), positions[..., axis])
        for axis, width in enumerate(axes)
    ]
    assert torch.equal(rows, torch.cat(parts, -1))
