"""Sinusoids with trained frequencies: where they start, and what trains them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed import sinusoidal
from posembed.encodings import LearnableSinusoidal

LAYOUTS = ["interleaved", "concat"]


@given(
    d_model=st.integers(1, 33),
    layout=st.sampled_from(LAYOUTS),
    base=st.floats(1.5, 1e6),
    positions=st.lists(st.integers(0, 199), max_size=8),
)
def test_at_first_they_are_the_sinusoids_of_the_paper(d_model, layout, base, positions):
    """Odd widths too."""
    positions = torch.tensor(positions, dtype=torch.int64)
    made = LearnableSinusoidal(d_model, base=base, layout=layout)
    assert made.frequencies.shape == ((d_model + 1) // 2,) and made.frequencies.dtype == torch.float32
    table = sinusoidal(200, d_model, base=base, layout=layout)[positions]
    rows = made.add(torch.zeros(1, len(positions), d_model), positions)[0]
    # The frequencies are float32: an angle of up to 200 is off by 200 times half a unit of a number below one.
    torch.testing.assert_close(rows, table, rtol=0, atol=200 * 2.0**-25 + 2.0**-24)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("d_model", [1, 6, 7])
def test_the_rows_are_sines_and_cosines_of_the_frequencies(layout, d_model):
    made = LearnableSinusoidal(d_model, layout=layout)
    made.frequencies.data = torch.tensor([0.3, -0.02, 1.7, 0.005])[: (d_model + 1) // 2]
    sines, cosines = ([[f(p * w) for w in made.frequencies.tolist()] for p in (-4, 0, 9)] for f in (math.sin, math.cos))
    if layout == "concat":
        expected = [s + c[: d_model // 2] for s, c in zip(sines, cosines, strict=True)]
    else:
        expected = [[(c if j % 2 else s)[j // 2] for j in range(d_model)] for s, c in zip(sines, cosines, strict=True)]
    rows = made.add(torch.zeros(1, 3, d_model), torch.tensor([-4, 0, 9]))[0]
    torch.testing.assert_close(rows, torch.tensor(expected), rtol=0, atol=2.0**-24)


def test_the_gradient_in_float32_is_position_times_the_other_function():
    made, positions = LearnableSinusoidal(4), torch.tensor([2, 5])
    upstream = vectors(1, 2, 4)
    made.add(torch.zeros(1, 2, 4), positions).backward(upstream)
    expected = [
        sum(
            p * (upstream[0, i, 2 * pair] * math.cos(p * w) - upstream[0, i, 2 * pair + 1] * math.sin(p * w))
            for i, p in enumerate((2, 5))
        )
        for pair, w in enumerate(made.frequencies.tolist())
    ]
    # Four products of float32 numbers of about five.
    torch.testing.assert_close(made.frequencies.grad, torch.stack(expected), rtol=0, atol=2e-6)


def test_frequencies_that_are_cast_to_bfloat16_let_far_rows_drift_as_the_docstring_says():
    made = LearnableSinusoidal(64)
    rows = made.rows(torch.arange(5000))
    row = made.to(torch.bfloat16).rows(torch.tensor([4000]))
    assert torch.cdist(row, rows).argmin() == 4001
    said = " ".join(LearnableSinusoidal.__doc__.split())
    assert "Keep the scheme in float32 for long texts" in said and "position 4000 comes nearest to 4001's" in said
