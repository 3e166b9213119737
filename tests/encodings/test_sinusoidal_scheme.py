"""The sinusoidal encoding as a scheme: the rows of the table at any position."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed import sinusoidal
from posembed.encodings import Sinusoidal
from posembed.errors import EncodingInputError

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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_they_are_added(layout):
    x, positions = vectors(2, 5, 6), torch.tensor([[3, 8, 0, 1, 99], [7, 7, 2, 4, 1]])
    rows = sinusoidal(100, 6, layout=layout)[positions]
    torch.testing.assert_close(Sinusoidal(6, layout=layout).add(x, positions), x + rows, rtol=0, atol=5e-7)


@given(position=st.integers(-(10**6), 10**6), d_model=st.integers(1, 20))
def test_far_and_negative_positions_are_exact(position, d_model):
    rows = Sinusoidal(d_model).add(torch.zeros(1, 1, d_model, dtype=torch.float64), torch.tensor([position]))[0, 0]
    angles = [position * 10000.0 ** (-(2 * (column // 2)) / d_model) for column in range(d_model)]
    expected = [(math.cos if column % 2 else math.sin)(angle) for column, angle in enumerate(angles)]
    # A frequency computed in another way is off by a few units of 2**-53, and the angle by as many times 10**6.
    assert rows.tolist() == pytest.approx(expected, rel=0, abs=5e-9)


def test_in_bfloat16_only_the_sum_is_rounded():
    positions = torch.arange(999_936, 1_000_000)
    made = Sinusoidal(64).to(torch.bfloat16)
    rows = made.add(torch.zeros(64, 64, dtype=torch.bfloat16), positions)
    exact = Sinusoidal(64).add(torch.zeros(64, 64, dtype=torch.float64), positions)
    # Half a unit of bfloat16 between one half and one, and the rounding to float32 before.
    assert (rows.double() - exact).abs().max() <= 2.0**-9 + ROUNDED_ONCE
    assert len(rows.unique(dim=0)) == 64


def test_there_is_nothing_to_train_or_to_save():
    assert not list(Sinusoidal(8).parameters()) and not Sinusoidal(8).state_dict()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("d_model", "options", "message"),
    [
        (0, {}, "d_model is 0; for interleaved it must be a whole number of at least 1"),
        (2.0, {}, "d_model is 2.0"),
        (1, {"layout": "tensor2tensor"}, "for tensor2tensor it must be a whole number of at least 2"),
        (4, {"layout": "paper"}, "layout is 'paper'; choose among interleaved, concat, tensor2tensor"),
        (4, {"base": 0.0}, "base is 0.0; it must be a positive number"),
        (4, {"base": math.nan}, "base is nan"),
        (4, {"base": math.inf}, "base is inf"),
    ],
    ids=str,
)
def test_a_named_error_in_one_line(d_model, options, message):
    with pytest.raises(EncodingInputError) as error:
        Sinusoidal(d_model, **options)
    assert message in str(error.value) and "\n" not in str(error.value)
