"""Figures 3 and 4: the sinusoid explorer and the rotation, their JavaScript against posembed's own tables."""

import itertools
import math
import re

import pytest
import torch
from running_node import run_tests

from posembed import sinusoidal
from posembed.encodings import RoPE
from posembed.widgets import RotationFigure, SinusoidFigure
from posembed.widgets.rotation import FARTHEST, VIEWS
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
        "tiny, lineThrough, FARTHEST, N_OFFSETS"
    )
    fixtures = {"state": figure.state(), "cases": cases, "positions": POSITIONS}
    run_tests("sinusoids", tmp_path, figure.source(), fixtures, private=private)


def rotation_case(d_model, base, seed):
    figure = RotationFigure(d_model=d_model, base=base, seed=seed)
    positions = torch.tensor([0, 1, 9, 40, 132])
    rope = RoPE(d_model, base=base, layout="interleaved")
    queries, keys = (
        rope.rotate(torch.tensor([vector] * len(positions), dtype=torch.float64), positions)
        for vector in (figure.query, figure.key)
    )
    return {
        "base": base,
        "query": figure.query,
        "key": figure.key,
        "positions": positions.tolist(),
        "rows": table(int(positions.max()) + 1, d_model, base)[positions].tolist(),
        "queries": queries.tolist(),
        "keys": keys.tolist(),
        "products": (queries @ keys.T).tolist(),
    }


def test_rotation(tmp_path):
    figure = RotationFigure()
    cases = [rotation_case(d_model, base, seed=d_model) for d_model in (2, 8, 16) for base in (100.0, 10000.0)]
    private = "offsetScene, ropeScene, spiral, quarters, fixed, apart, STATE"
    run_tests("rotation", tmp_path, figure.source(), {"state": figure.state(), "cases": cases}, private=private)


def rows_of(figure):
    rows = re.findall(r"<tr>(.*?)</tr>", figure.fallback_html())
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


@pytest.mark.parametrize(
    ("d_model", "pairs"), [(2, [0]), (6, [0, 1, 2]), (16, list(range(8))), (64, [0, 4, 9, 13, 18, 22, 27, 31])]
)
def test_without_javascript_the_sinusoids_are_a_table_of_some_pairs(d_model, pairs):
    figure = SinusoidFigure(d_model=d_model, base=500.0, position=7)
    header, *rows = rows_of(figure)
    assert header == ["columns", "wavelength in positions", "sine in row 7", "cosine in row 7"]
    assert [row[0] for row in rows] == [f"{2 * pair} and {2 * pair + 1}" for pair in pairs]
    wanted = table(8, d_model, 500.0)[7]
    for pair, (_, wavelength, sine, cosine) in zip(pairs, rows, strict=True):
        assert float(wavelength) == pytest.approx(2 * math.pi * 500 ** (2 * pair / d_model), abs=0.005 + 1e-9)
        assert [float(sine), float(cosine)] == pytest.approx(wanted[2 * pair : 2 * pair + 2].tolist(), abs=5e-5 + 1e-9)


def test_without_javascript_the_sinusoids_say_which_they_are():
    caption = re.search(r"<caption>(.*?)</caption>", SinusoidFigure(d_model=128, base=1e6).fallback_html())[1]
    assert "width 128 with base 1000000:" in caption


def test_without_javascript_an_offset_leads_from_row_to_row():
    header, *rows = rows_of(RotationFigure(position=4, offset=6))
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
    figure = RotationFigure(view="rope", query_position=5, key_position=2, shift=3)
    header, *rows = rows_of(figure)
    assert header == ["query at", "key at", "offset", "product"]
    places = [[int(cell) for cell in row[:3]] for row in rows]
    assert places == [[8, 5, 3], [9, 6, 3], [18, 15, 3], [9, 5, 4], [8, 6, 2]]
    rope = RoPE(8, base=100.0, layout="interleaved")
    query, key = (torch.tensor([vector], dtype=torch.float64) for vector in (figure.query, figure.key))
    for (m, n, _), row in zip(places, rows, strict=True):
        wanted = rope.rotate(query, torch.tensor([m])) @ rope.rotate(key, torch.tensor([n])).T
        assert float(row[3]) == pytest.approx(float(wanted), abs=5e-4 + 1e-9)
    products = [row[3] for row in rows]
    assert len(set(products[:3])) == 1
    assert len(set(products)) == 3


def test_a_width_and_a_base_of_ones_own_join_the_sliders():
    figure = SinusoidFigure(d_model=96, base=500.0, n_positions=50, position=49)
    assert figure.widths == [4, 8, 16, 32, 64, 96, 128, 256, 512, 768]
    assert figure.bases == [10, 100, 500, 1000, 10000, 100000, 1000000]
    assert (figure.d_model, figure.base, figure.n_positions, figure.position) == (96, 500, 50, 49)
    assert (SinusoidFigure().widths, SinusoidFigure().bases) == (WIDTHS, BASES)


@pytest.mark.parametrize("view", VIEWS)
def test_the_rotation_starts_where_it_is_told(view):
    figure = RotationFigure(view=view, position=40, offset=24, query_position=32, key_position=0, shift=100)
    places = [figure.position, figure.offset, figure.query_position, figure.key_position, figure.shift]
    assert (figure.view, places) == (view, [40, 24, 32, 0, 100])


def test_the_vectors_follow_their_seed():
    assert RotationFigure().state() == RotationFigure().state() != RotationFigure(seed=1).state()
    for vector in (RotationFigure().query, RotationFigure().key):
        assert vector == [round(value, 2) for value in vector]
        # Each hand can be seen, and none hides the others.
        lengths = torch.tensor(vector).view(-1, 2).norm(dim=1)
        assert lengths.min() > 0.4 * lengths.max()


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ({"d_model": 7}, ["d_model is 7", "even width up to 1024"]),
        ({"d_model": 0}, ["d_model is 0", "even width"]),
        ({"d_model": 1026}, ["d_model is 1026", "up to 1024"]),
        ({"base": 1.0}, ["base is 1.0", "above 1"]),
        ({"base": math.inf}, ["base is inf", "above 1"]),
        ({"base": math.nan}, ["base is nan", "above 1"]),
        ({"n_positions": 1}, ["n_positions is 1", "2 to 512"]),
        ({"n_positions": 513}, ["n_positions is 513", "2 to 512"]),
        ({"position": 128}, ["position is 128", "0 to 127"]),
        ({"position": -1}, ["position is -1", "0 to 127"]),
    ],
)
def test_what_the_sinusoid_figure_cannot_draw_is_an_error(options, pieces):
    assert_error(SinusoidFigure, options, pieces)


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ({"view": "clock"}, ["view is 'clock'", "offset, rope"]),
        ({"d_model": 3}, ["d_model is 3", "even width up to 16"]),
        ({"d_model": 0}, ["d_model is 0", "even width"]),
        ({"d_model": 18}, ["d_model is 18", "up to 16"]),
        ({"base": 0.5}, ["base is 0.5", "above 1"]),
        ({"base": math.nan}, ["base is nan", "above 1"]),
        *(({name: most + 1}, [f"{name} is {most + 1}", f"0 to {most}"]) for name, most in FARTHEST.items()),
        *(({name: -1}, [f"{name} is -1"]) for name in FARTHEST),
    ],
)
def test_what_the_rotation_figure_cannot_draw_is_an_error(options, pieces):
    assert_error(RotationFigure, options, pieces)


def assert_error(figure, options, pieces):
    with pytest.raises(ValueError) as caught:
        figure(**options)
    message = str(caught.value)
    assert "\n" not in message
    assert [piece for piece in pieces if piece not in message] == []
