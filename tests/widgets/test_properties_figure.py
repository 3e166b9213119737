"""Figure 7: its numbers are the package's, and its JavaScript reads rows, diagonals and mirror cells as it does."""

import itertools
import math

import numpy as np
import pytest
import torch
from widget_checks import assert_refused, rows_of, run_tests, unpacked

from posembed import sinusoidal
from posembed.encodings import ALiBi
from posembed.similarity import properties_of_matrix
from posembed.widgets import PropertiesFigure
from posembed.widgets.properties_map import DECIMALS, MOST_ROWS, PROPERTIES

AT = torch.arange(20)
OFFSETS = AT - AT[:, None]
BIAS = ALiBi(2).bias_by_offset(OFFSETS.flatten())[0].reshape(OFFSETS.shape)
MASKED = BIAS.masked_fill(OFFSETS > 0, -math.inf)


def drawn(n, seed=0, dtype=torch.float64):
    return torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


WAVES = sinusoidal(48, 64, dtype=torch.float64)
MATRICES = {
    "sinusoids, dot products": WAVES @ WAVES.T,
    "sinusoids, query times key": WAVES @ drawn(64, seed=9) @ WAVES.T,
    "steeper ahead": torch.where(OFFSETS > 0, 2 * BIAS, BIAS),
    "masked": MASKED,
    "attention": MASKED.softmax(-1),
    "drawn": drawn(33).numpy(),
    "half precision": drawn(16, seed=1, dtype=torch.bfloat16),
    "ties": drawn(24, seed=2).round(),
    "one far larger": drawn(12, seed=3).index_fill(0, torch.tensor([4]), 900.0),
    "tiny": 1e-200 * drawn(9, seed=4),
    "huge": 1e300 * drawn(9, seed=5).numpy(),
    "largest": drawn(MOST_ROWS, seed=6),
    "two rows": drawn(2, seed=7),
    "three rows": drawn(3, seed=8),
    "all alike": torch.full((5, 5), 3.0),
    "zeros": torch.zeros(4, 4),
    "two masked rows": torch.tensor([[1.0, -math.inf], [2.0, 3.0]]),
}


def exact(matrix):
    return np.asarray(matrix.double() if isinstance(matrix, torch.Tensor) else matrix, dtype=np.float64)


def counted(line):
    """The pairs of a row's side, from near to far, one by one: how many there are, and how many are in order."""
    found = [(near > far) + (near == far) / 2 for near, far in itertools.combinations(line, 2)]
    return {"inOrder": float(sum(found)), "all": len(found)}


def case(name, matrix, max_offset):
    """What the package says of a matrix, and what its definitions say of each row and diagonal."""
    (packed,) = PropertiesFigure({name: matrix}, max_offset=max_offset).matrices
    # In the unit of the state, a power of two: no digit changes, and squares of very large numbers are finite.
    values = exact(matrix) / packed["unit"]
    if name == "attention":  # its zeros are what a mask hides
        values = np.where(np.tri(len(values), dtype=bool), values, -math.inf)
    n = len(values)
    reach = n if max_offset is None else max_offset
    rows = [
        {"left": counted(row[max(0, i - reach) : i][::-1]), "right": counted(row[i + 1 : i + 1 + reach])}
        for i, row in enumerate(values)
    ]
    nullable = lambda line: [float(value) if np.isfinite(value) else None for value in line]
    lines = [(offset, np.diagonal(values, offset)) for offset in range(1 - n, n)]
    diagonals = [
        {"offset": offset, "first": max(0, -offset), "values": nullable(line)}
        | ({"mean": float(line.mean()), "deviation": float(line.std())} if np.isfinite(line).all() else {})
        for offset, line in lines
    ]
    return {
        "packed": packed,
        "values": [nullable(row) for row in values],
        "max_offset": max_offset,
        "reach": reach,
        "properties": properties_of_matrix(matrix, max_offset=max_offset).to_dict(),
        "rows": rows,
        "diagonals": diagonals,
    }


def test_the_module(tmp_path):
    cases = [case(name, matrix, max_offset) for name, matrix in MATRICES.items() for max_offset in (None, 1, 7)]
    private = "bounds, valueAxis, placeAxis, sides, studied, account, range"
    run_tests("properties", tmp_path, PropertiesFigure.source(), {"cases": cases}, private=private)


@pytest.mark.parametrize("name", MATRICES)
def test_the_state_holds_the_matrix_and_the_package_s_numbers(name):
    values = exact(MATRICES[name])
    for max_offset in (None, 5):
        (packed,) = PropertiesFigure({name: MATRICES[name]}, max_offset=max_offset).matrices
        got, order = unpacked(packed)
        seen = np.isfinite(values) & (np.tri(len(values), dtype=bool) | (name != "attention"))
        assert np.array_equal(np.isfinite(got), seen)
        largest = np.abs(values[seen]).max()
        # A step is between 2^-17 and 2^-16 of the largest.
        assert np.abs(got[seen] / (largest or 1) - values[seen] / (largest or 1)).max() <= 2.0**-16
        for line, places in zip(values, order, strict=True):
            assert np.array_equal(line[:, None] > line, places[:, None] > places)
        measured = properties_of_matrix(MATRICES[name], max_offset=max_offset).to_dict()
        assert packed["properties"] == pytest.approx({each: measured[each] for each in PROPERTIES}, abs=10**-DECIMALS)


def test_multiples_of_a_half_stay_what_they_are():
    packed = PropertiesFigure({"bias": BIAS}).matrices[0]
    assert np.array_equal(unpacked(packed)[0], exact(BIAS))


def test_what_is_chosen_at_first():
    figure = PropertiesFigure({"bias": BIAS, "masked": MASKED, "attention": MASKED.softmax(-1)}, note="Of ALiBi.")
    assert [each["future"] for each in figure.matrices] == ["open", "absent", "absent"]
    assert (figure.matrix, figure.cell, figure.note) == ("bias", [6, 3], "Of ALiBi.")


def test_what_is_given_is_left_as_it_was():
    matrix = drawn(6).requires_grad_()
    PropertiesFigure({"tensor": matrix})
    assert torch.equal(matrix, drawn(6))


def test_a_few_large_cells_leave_the_others_their_colours():
    full = lambda matrix: PropertiesFigure({"mine": matrix}).matrices[0]
    matrix = drawn(20).clamp(-1, 1)
    spiked = matrix.clone()
    spiked[3, 9] = 900
    plain, spiked = full(matrix), full(spiked)
    assert plain["full"] * plain["unit"] == pytest.approx(1, abs=1e-5)
    assert spiked["full"] * spiked["unit"] == pytest.approx(1, abs=1e-3)
    # The main diagonal, which no property looks at, has no say.
    assert full(matrix + 50 * torch.eye(20))["full"] * 32 == pytest.approx(1, abs=1e-4)
    # Nor have zeros that stand for what is not seen: five cells are more than 2 % of the past, and less of all.
    causal = torch.full((20, 20), 0.1).tril()
    causal[10:15, 3] = 1.0
    assert full(causal)["full"] == 1
    causal[0, 1] = 0.01
    assert full(causal)["full"] == pytest.approx(0.1)


def test_the_cell_at_first_has_a_row_a_diagonal_and_a_mirror():
    cell = lambda n: PropertiesFigure({"mine": drawn(n)}).cell
    assert [cell(n) for n in (2, 3, 10, 64)] == [[1, 0], [1, 0], [3, 1], [21, 10]]


def test_without_javascript_it_is_a_table_of_the_three_numbers():
    matrices = {"masked <bias>": MASKED, "attention": MASKED.softmax(-1), "drawn": drawn(9)}
    figure = PropertiesFigure(matrices, max_offset=4)
    header, *rows = rows_of(figure)
    assert header == ["matrix", "monotonicity", "translation invariance", "symmetry"]
    assert [row[0] for row in rows] == ["masked &lt;bias&gt;", "attention", "drawn"]
    for row, matrix in zip(rows, matrices.values(), strict=True):
        found = properties_of_matrix(matrix, max_offset=4).to_dict()
        assert row[1:] == ["undefined" if found[name] is None else f"{found[name]:.3f}" for name in PROPERTIES]
    assert rows[0][3] == "undefined"
    assert "offsets up to 4" in figure.fallback_html()
    assert "offsets up to" not in PropertiesFigure(matrices).fallback_html()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        ({"matrices": [drawn(5)]}, ["matrices is a list", "give a Mapping"]),
        ({"matrices": {"mine": [[1.0, 2.0], [3.0, 4.0]]}}, ["matrices is {'mine': [[1.0", "give a Mapping"]),
        ({"matrices": {"mine": drawn(5)[None]}}, ["mine: matrix is a Tensor", "seq seq"]),
        ({"matrices": {"mine": torch.ones(1, 1)}}, ["mine has 1 rows; give 2 to 64"]),
        ({"matrices": {"mine": drawn(65)}}, ["mine has 65 rows", f"2 to {MOST_ROWS}", "one of 2: [::2, ::2]"]),
        ({"matrices": {"mine": np.ones((512, 512))}}, ["mine has 512 rows", "[::8, ::8]"]),
    ],
)
def test_what_cannot_be_drawn_is_an_error_that_says_why(arguments, pieces):
    assert_refused(lambda: PropertiesFigure(**arguments), *pieces)
