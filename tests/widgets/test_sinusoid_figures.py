"""Figures 3 and 4: the sinusoid explorer and the rotation, their JavaScript against posembed's own tables."""

import itertools
import math

import pytest
import torch
from widget_checks import assert_refused, rows_of, run_tests

from posembed import sinusoidal
from posembed.encodings import RoPE
from posembed.widgets import RotationFigure, SinusoidFigure
from posembed.widgets.sinusoids import BASES, WIDTHS

POSITIONS = [0, 1, 20, 127, 255, 2047]
# Rows that offsets are counted from, and how far: as far as the figure looks in its longest chart.
STARTS, N_OFFSETS = [0, 20, 127], 128


def table(n_positions, d_model, base):
    return sinusoidal(n_positions, d_model, base=base, dtype=torch.float64)


def first_rise(rows):
    """The first offset at which the dot product with row 0 is larger than at the offset before."""
    return int((rows @ rows[0]).diff().gt(0).nonzero()[0, 0]) + 1


def sinusoid_case(d_model, base):
    rows = table(2048, d_model, base)
    return {
        "d_model": d_model,
        "base": base,
        "rows": rows[POSITIONS].tolist(),
        "products": {start: (rows[start : start + N_OFFSETS + 1] @ rows[start]).tolist() for start in STARTS},
        "rise": first_rise(rows),
        "wavelengths": [2 * math.pi * base ** (2 * pair / d_model) for pair in range(d_model // 2)],
    }


def test_sinusoids(tmp_path):
    figure = SinusoidFigure()
    cases = [sinusoid_case(d_model, base) for d_model, base in itertools.product(WIDTHS, BASES)]
    private = (
        "study, aboutWaves, aboutRise, comparison, inPositions, quarters, frequencies, scale, range, grouped, signed, "
        "tiny, lineThrough, fallsBeyond, allWithin, FARTHEST, N_OFFSETS"
    )
    fixtures = {"state": figure.state(), "cases": cases, "positions": POSITIONS}
    run_tests("sinusoids", tmp_path, figure.source(), fixtures, private=private)


def rotation_case(d_model, base):
    vectors = torch.randn(2, d_model, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    positions = torch.tensor([0, 1, 9, 40, 132])
    rope = RoPE(d_model, base=base, layout="interleaved")
    queries, keys = (rope.rotate(vector.expand(len(positions), -1), positions) for vector in vectors)
    return {
        "base": base,
        "query": vectors[0].tolist(),
        "key": vectors[1].tolist(),
        "positions": positions.tolist(),
        "rows": table(int(positions.max()) + 1, d_model, base)[positions].tolist(),
        "queries": queries.tolist(),
        "keys": keys.tolist(),
        "products": (queries @ keys.T).tolist(),
    }


def test_rotation(tmp_path):
    figure = RotationFigure()
    cases = [rotation_case(d_model, base) for d_model in (2, 8, 16) for base in (100.0, 10000.0)]
    private = "offsetScene, ropeScene, spiral, quarters, fixed, apart, range, SCENES, HANDS, tasks, STATE"
    run_tests("rotation", tmp_path, figure.source(), {"state": figure.state(), "cases": cases}, private=private)


@pytest.mark.parametrize(("d_model", "pairs"), [(2, [0]), (16, list(range(8))), (64, [0, 4, 9, 13, 18, 22, 27, 31])])
def test_without_javascript_the_sinusoids_are_a_table_of_some_pairs(d_model, pairs):
    figure = SinusoidFigure()
    figure.d_model, figure.base, figure.position = d_model, 500.0, 7
    assert f"width {d_model} with base 500:" in figure.fallback_html()
    header, *rows = rows_of(figure)
    assert header == ["columns", "wavelength in positions", "sine in row 7", "cosine in row 7"]
    assert [row[0] for row in rows] == [f"{2 * pair} and {2 * pair + 1}" for pair in pairs]
    wanted = table(8, d_model, 500.0)[7]
    for pair, (_, wavelength, sine, cosine) in zip(pairs, rows, strict=True):
        assert float(wavelength) == pytest.approx(2 * math.pi * 500 ** (2 * pair / d_model), abs=0.005 + 1e-9)
        assert [float(sine), float(cosine)] == pytest.approx(wanted[2 * pair : 2 * pair + 2].tolist(), abs=5e-5 + 1e-9)


def test_without_javascript_an_offset_leads_from_row_to_row():
    figure = RotationFigure()
    figure.position, figure.offset = 4, 6
    header, *rows = rows_of(figure)
    assert header == ["pair", "row 4", "turned by, at offset 6", "row 10"]
    wanted = table(11, 8, 100.0)
    for pair, (name, first, turn, second) in enumerate(rows):
        assert name == str(pair)
        assert float(turn.removesuffix(" rad")) == pytest.approx(6 * 100 ** (-pair / 4), abs=5e-4)
        for text, row in ((first, 4), (second, 10)):
            shown = [float(number) for number in text.strip("()").split(", ")]
            assert shown == pytest.approx(wanted[row, 2 * pair : 2 * pair + 2].tolist(), abs=5e-4 + 1e-9)
    assert len(rows) == 4


def test_without_javascript_rope_is_a_table_of_products():
    figure = RotationFigure(view="rope")
    figure.query_position, figure.key_position, figure.shift = 5, 2, 3
    header, *rows = rows_of(figure)
    assert header == ["query at", "key at", "offset", "product"]
    places = [[int(cell) for cell in row[:3]] for row in rows]
    assert places == [[8, 5, -3], [9, 6, -3], [18, 15, -3], [9, 5, -4], [8, 6, -2]]
    rope = RoPE(8, base=100.0, layout="interleaved")
    query, key = (torch.tensor([vector], dtype=torch.float64) for vector in (figure.query, figure.key))
    for (m, n, _), row in zip(places, rows, strict=True):
        wanted = rope.rotate(query, torch.tensor([m])) @ rope.rotate(key, torch.tensor([n])).T
        assert float(row[3]) == pytest.approx(float(wanted), abs=5e-4 + 1e-9)
    products = [row[3] for row in rows]
    assert len(set(products[:3])) == 1
    assert len(set(products)) == 3


def test_what_is_chosen_at_first_is_on_the_sliders():
    figure = SinusoidFigure()
    assert (figure.d_model, figure.base, figure.n_positions, figure.position) == (64, 10000, 128, 20)
    assert (figure.widths, figure.bases) == (WIDTHS, BASES)
    assert figure.d_model in WIDTHS and figure.base in BASES


def test_the_vectors_follow_their_seed():
    assert RotationFigure().state() == RotationFigure().state()
    for vector in (RotationFigure().query, RotationFigure().key):
        assert vector == [round(value, 2) for value in vector]
        # Each hand can be seen, and none hides the others.
        lengths = torch.tensor(vector).view(-1, 2).norm(dim=1)
        assert lengths.min() > 0.4 * lengths.max()


def test_an_unknown_view_is_an_error():
    assert_refused(lambda: RotationFigure(view="clock"), "view is 'clock'; choose among offset, rope")
