"""A figure in a page: the same drawing, in the page's colours and letters."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from posembed.figures import COLOURS, new_figure, table_heat
from posembed.report.svg import inline_svg


def pictures(svg):
    found = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", svg)
    return [Image.open(io.BytesIO(base64.b64decode(each))) for each in found]


def drawn(plot, key="k", alt="A figure."):
    figure, axes = new_figure(alt, size=(4.0, 3.0))
    plot(axes)
    return inline_svg(figure, key)


def test_colours_are_the_pages_to_change():
    svg = drawn(lambda axes: axes.plot([0, 1], color=COLOURS[1]))
    name = COLOURS[1].lower().removeprefix("#")
    assert f"stroke: var(--c-{name}, #{name})" in svg
    assert not re.search(r"(?<!, )#[0-9a-f]{6}", svg)


def test_the_background_is_the_pages():
    assert "#ffffff" not in drawn(lambda axes: axes.plot([0, 1]))


def test_names_of_two_figures_do_not_meet():
    svgs = [drawn(lambda axes: axes.plot([0, 1], "o"), key) for key in ("first", "second")]
    names = [set(re.findall(r' id="([^"]*)"', svg)) for svg in svgs]
    assert names[0] and not names[0] & names[1]
    for svg, its in zip(svgs, names, strict=True):
        uses = re.findall(r'(?:href="#|url\(#)([^")]*)', svg)
        assert uses and set(uses) <= its
        assert "<style" not in svg


def test_letters_stay_letters_and_cannot_be_markup():
    svg = drawn(lambda axes: axes.set_title("</svg><script>"), alt='a "name" <b>')
    assert "<script" not in svg and "&lt;/svg&gt;&lt;script&gt;" in svg
    assert 'aria-label="a &quot;name&quot; &lt;b&gt;"' in svg


def test_points_share_their_style():
    many, few = (drawn(lambda axes, n=n: (axes.plot(range(n), "o"), axes.set_axis_off())) for n in (400, 2))
    assert many.count("<use") - few.count("<use") == 398
    assert many.count("style=") - few.count("style=") < 20


def test_places_keep_a_hundredth_of_a_point():
    values = np.random.default_rng(0).normal(size=60)
    figure, axes = new_figure("Noise.", size=(4.0, 3.0))
    (line,) = axes.plot(values)
    svg = inline_svg(figure, "k")
    # What matplotlib draws: 72 points an inch, from the bottom; a drawing counts from the top.
    expected = line.get_transform().transform(np.column_stack([np.arange(60), values])) * 72 / figure.dpi
    paths = [re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", path) for path in re.findall(r'd="([^"]*)"', svg)]
    longest = np.array(max(paths, key=len), dtype=float)
    assert longest == pytest.approx(np.column_stack([expected[:, 0], 3 * 72 - expected[:, 1]]), abs=0.0051)


def test_rasters_are_packed_in_few_colours_and_keep_what_is_clear():
    import torch

    noise = torch.randn(50, 50, generator=torch.Generator().manual_seed(0))
    heat = pictures(inline_svg(table_heat(noise, alt="Noise."), "k"))
    assert {picture.mode for picture in heat} == {"P"}
    svg = drawn(lambda axes: axes.scatter([0, 1], [0, 1]).set_rasterized(True))
    (dots,) = pictures(svg)
    clear = np.asarray(dots.convert("RGBA"))[..., 3]
    assert clear.min() == 0 and clear.max() > 250
