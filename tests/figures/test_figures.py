"""What holds for every static figure, and what the small ones draw."""

import base64
import io
import math
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused

from posembed import figures, probe_table, scheme, sinusoidal
from posembed.figures import (
    DIVERGING,
    DescribedFigure,
    curves,
    new_figure,
    similarity_maps,
    styled,
    table_heat,
    table_maps,
    token_differences,
)
from posembed.figures.looks import SEQUENTIAL_BELOW
from posembed.probing import spectrum
from posembed.stats import family, interval
from posembed.tables import load_table

TABLE, OFFSETS = sinusoidal(48, 16), torch.arange(-20, 1)


def made(name):
    return scheme(name, d_model=16, n_heads=1, n_positions=32, causal=True)


# Each by its name in the package: what it is given beside the alt text.
FIGURES = {
    "added_maps": lambda: ({"x": made("learned")}, {"n_positions": 4, "d_model": 16}),
    "bias_curves": lambda: (made("t5"), {"offsets": OFFSETS}),
    "counted_map": lambda: (made("cope"), ["a", "b"], [True, False]),
    "curves": lambda: ({"x": [1, 2], "y": [[1, 2], [2, 3]]},),
    "damping_curves": lambda: (made("xpos"), {"distances": -OFFSETS, "pairs": [0, 3]}),
    "explained_variance": lambda: ({"x": spectrum(TABLE)},),
    "forest_plot": lambda: (family({"a minus b": interval([1.0, 1.1])}),),
    "frequency_curves": lambda: ({"x": made("rope")},),
    "helix_portrait": lambda: (spectrum(TABLE),),
    "logit_maps": lambda: ({"x": made("fire")}, {"n_positions": 4}),
    "probe_scatter": lambda: (probe_table(TABLE),),
    "row_health": lambda: (load_table(TABLE),),
    "seed_scores": lambda: ({"x": [1.0, 2.0]},),
    "similarity_maps": lambda: ({"x": TABLE},),
    "table_heat": lambda: (TABLE,),
    "table_maps": lambda: ({"x": TABLE},),
    "token_differences": lambda: (["a", "b"], {"x": torch.tensor([0.1, 0.2])}),
    "weight_maps": lambda: (made("nopos"), {"n_positions": 4}),
}
NO_FIGURES = {"COLOURS", "DIVERGING", "LOOKS", "SEQUENTIAL"} | {
    "DescribedFigure",
    "Look",
    "look_of",
    "new_figure",
    "styled",
}
KEYWORDS = ("added_maps", "bias_curves", "damping_curves", "logit_maps", "weight_maps")


def test_every_figure_is_here():
    assert FIGURES.keys() == set(figures.__all__) - NO_FIGURES


@pytest.mark.parametrize("name", FIGURES)
def test_each_describes_itself_warns_of_nothing_and_leaves_the_readers_style_alone(name, recwarn):
    before = dict(matplotlib.rcParams)
    torch.manual_seed(0)
    given = FIGURES[name]()
    *given, options = given if name in KEYWORDS else (*given, {})
    draw = lambda alt: getattr(figures, name)(*given, alt=alt, **options)
    recwarn.clear()
    torch.set_warn_always(True)  # also of what torch warns of once in a process
    try:
        data, metadata = draw("What it shows.")._repr_mimebundle_()
    finally:
        torch.set_warn_always(False)
    assert [str(warning.message) for warning in recwarn] == []
    assert metadata["image/png"]["alt"] == "What it shows."
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"] == "<figure: What it shows.>"
    assert dict(matplotlib.rcParams) == before
    assert re.search(r"\d.*\.$", getattr(figures, name)(*given, **options).alt)


def test_what_is_drawn_is_said_in_numbers():
    by_name = {"ALiBi": [3, 2, 1], "learned": [[3, 0, 2], [5, 2, 2]]}
    figure = curves(by_name, xlabel="step", ylabel="loss", marks={"here": 1})
    falls = "ALiBi begins at 3 and ends at 1; learned begins at 4 and ends at 2, between 1 and 4."
    assert figure.alt == f"loss by step: {falls}"
    figure.axes[0].set_title("by then")
    assert figure.alt == f"by then, loss by step: {falls}"
    assert table_maps({"x": torch.eye(3)}).alt == "x, row by column: a map of 3 rows and 3 columns, from 0 to 1."
    rows = figures.seed_scores({"learned": [2.0, 2.5], "T5": [1.0, 1.25]}, xlabel="loss").alt
    assert re.fullmatch(r"loss: learned, T5, numbers from -?[\d.]+ to [\d.]+\.", rows)
    assert figures.new_figure()[0].alt == "An empty figure."


def test_the_same_figure_gives_the_same_bytes():
    draw = lambda: table_maps({"x": torch.eye(3)}, alt="Twice.", size=(2.5, 1.25))._repr_mimebundle_()
    (data, metadata), (again, _) = draw(), draw()
    assert data == again
    assert (metadata["image/png"]["width"], metadata["image/png"]["height"]) == (250, 125)
    assert data["image/png"][16:24] == (400).to_bytes(4) + (200).to_bytes(4)  # at 160 dots an inch


def test_differences_are_drawn_as_given_and_rounding_at_its_resolution():
    values = torch.tensor([0.25, 1e-9, 0.0])
    axes = token_differences(["a", "b", "c"], {"x": values}, alt="Three points.").axes[0]
    resolution = torch.finfo(torch.float32).eps
    assert axes.lines[0].get_ydata() == pytest.approx([0.25, resolution, resolution], rel=1e-6)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.texts] == ["unchanged but for rounding"]
    two = token_differences(["a", "b"], {"x": np.ones(2), "y": np.ones(2)}, alt="Twice the same.").axes[0]
    one, other = (line.get_xdata() for line in two.lines)
    assert (one < other).all() and not two.texts


def test_ticks_below_one_are_powers_where_some_are():
    for least, ticks in ((1e-6, {"1", "1e−2", "1e−4"}), (1e-3, {"1", "0.1", "0.01"})):
        figure = figures.curves({"x": [least, 1.0]}, log_y=True, alt="A line that rises.")
        figure.draw_without_rendering()
        shown = {label.get_text() for label in figure.axes[0].get_yticklabels()}
        assert ticks <= shown and ("0.01" in shown) == (least == 1e-3)


@pytest.mark.bad_input
@pytest.mark.parametrize("values", [torch.tensor([0.1]), torch.tensor([0.1, -0.1])], ids=["too few", "negative"])
def test_differences_that_fit_no_axis_are_refused(values):
    message = refused(ValueError, token_differences, ["a", "b"], {"x": values}, alt="Refused.")
    assert "needs 2 differences of zero or more" in message


@pytest.mark.parametrize("kind", [np.float32, np.float64, int])
def test_differences_are_drawn_at_the_resolution_of_their_format(kind):
    least = np.finfo(kind if kind is not int else float).eps
    for given in (np.array([0, 2], kind), torch.tensor(np.array([0, 2], kind))):
        figure = token_differences(["a", "b"], {"x": given}, alt="Two differences.")
        assert figure.axes[0].lines[0].get_ydata().tolist() == [least, 2]


def test_maps_share_one_scale_that_is_white_at_zero():
    small, large = torch.full((2, 2), 0.5), torch.tensor([[-4.0, math.nan], [0.0, 0.0]])
    figure = table_maps({"small": small, "large": large}, alt="Two tables.")
    images = [axes.images[0] for axes in figure.axes[:2]]
    assert [image.get_clim() for image in images] == [(-4.0, 4.0)] * 2
    assert images[1].get_array().min() == -4.0


@pytest.mark.parametrize(
    ("numbers", "ends", "hues"),
    [
        ([[-1.0, 2.0]], (-2, 2), "both"),
        ([[0.0, 2.0]], (0, 2), "orange"),
        ([[0.5, 2.0]], (0, 2), "orange"),
        ([[-3.0, 0.0]], (-3, 0), "blue"),
        ([[0.0, 0.0]], (0, 1), "orange"),
        # Rounding gives no number a sign of its own, and infinity is no end.
        ([[-1e-9, 2.0, math.inf]], (0, 2), "orange"),
    ],
)
def test_numbers_of_one_sign_have_their_half_of_the_colours(numbers, ends, hues):
    (image,) = table_maps({"x": torch.tensor(numbers)}, alt="A row.").axes[0].images
    assert image.get_clim() == ends
    low, zero, high = (image.cmap(image.norm(each)) for each in (ends[0], 0, ends[1]))
    assert min(zero[:3]) > 0.95
    blue, orange = (tuple(DIVERGING(each)) for each in (0.0, 1.0))
    assert (low == blue, high == orange) == (hues != "orange", hues != "blue")
    assert blue[2] > 2 * blue[0] and orange[0] > 2 * orange[2]


def test_similarity_is_the_cosine_of_every_two_rows():
    table = torch.tensor([[1.0, 0.0], [1.0, 1.0], [-2.0, 0.0]])
    shown = similarity_maps({"x": table}, alt="Three rows.").axes[0].images[0].get_array()
    root = 2**-0.5
    # float32 is what imshow gets.
    assert shown.flatten().tolist() == pytest.approx([1, root, -1, root, 1, -root, -1, -root, 1], abs=1e-7)


@pytest.mark.parametrize("scale", [1e-100, 1e-13, 1e100])
def test_cosines_are_the_same_at_any_scale(scale):
    rows = torch.randn(8, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shown, exact = (
        similarity_maps({"x": each}, alt="Rows.").axes[0].images[0].get_array() for each in (rows * scale, rows)
    )
    np.testing.assert_allclose(shown, exact, atol=1e-6)


def test_of_a_long_table_some_rows_are_compared_and_the_axes_count_all():
    """The cosines of all 65,536 rows would take 34 GB."""
    table = torch.arange(20_000.0)[:, None] + torch.tensor([1.0, -1e4])
    axes = similarity_maps({"x": table}, alt="Many rows.").axes[0]
    assert axes.images[0].get_array().shape == (4000, 4000)
    assert axes.get_xlim() == (-0.5, 19_999.5) and axes.get_ylim() == (19_999.5, -0.5)


def test_a_figure_of_ones_own_takes_the_style():
    figure, axes = styled(lambda: new_figure("Mine."))()
    assert isinstance(figure, DescribedFigure)
    assert not axes.spines["top"].get_visible()


def test_figures_of_lines_are_drawn_as_svg_too():
    draw = lambda alt: figures.curves({"a learned table": [0.5, 0.25], "RoPE": [0.3, 0.2]}, alt=alt, xlabel="offset")
    data, metadata = draw("A line.")._repr_mimebundle_()
    again, _ = draw("A line.")._repr_mimebundle_()
    other, _ = draw("Another.")._repr_mimebundle_()
    drawing = ElementTree.fromstring(data["image/svg+xml"])
    texts = [node.text for node in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "offset" in texts and "a learned table" in texts
    # Its line has the look of the scheme.
    assert "stroke: #2f4db8" in data["image/svg+xml"]
    assert metadata["image/svg+xml"] == metadata["image/png"]
    assert data == again
    names = [
        {node.get("id") for node in ElementTree.fromstring(each["image/svg+xml"]).iter()} for each in (data, other)
    ]
    assert names[0] & names[1] == {None}
    # No rule of it is one of the page that it stands in.
    assert "<style" not in data["image/svg+xml"]


def test_numbers_that_are_words_keep_their_digits():
    figure, axes = new_figure("Words.")
    axes.set_title("at 0.0001234")
    axes.plot([0, 1])
    assert ">at 0.0001234<" in figure._repr_mimebundle_()[0]["image/svg+xml"]


def test_ticks_of_logarithmic_axes_have_no_exponents():
    """A word of a drawing is a tspan only where part of it is smaller or higher."""
    draw = {"log_x": True, "log_y": True, "alt": "A line that falls."}
    drawing = figures.curves({"one": [1e-2, 1e-16]}, x=[1e-3, 1], **draw)._repr_mimebundle_()[0]["image/svg+xml"]
    assert "<tspan" not in drawing
    assert {">0.001<", ">1e−16<"} <= {*re.findall(">[^<>]+<", drawing)}


def test_maps_are_drawn_with_one_point_for_each_cell():
    """So they are sharp at any size, and a page can exchange their colours."""
    numbers = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))
    drawing = ElementTree.fromstring(table_maps({"x": numbers}, alt="Cells.")._repr_mimebundle_()[0]["image/svg+xml"])
    cells, scale = drawing.iter("{http://www.w3.org/2000/svg}image")
    picture = Image.open(io.BytesIO(base64.b64decode(cells.get("href").removeprefix("data:image/png;base64,"))))
    assert picture.size == (8, 32) and "pixelated" in cells.get("style") and scale.get("href") != cells.get("href")
    # Those of the map, up to the 256 that a small file has.
    exact = np.array(DIVERGING(numbers.numpy() / numbers.abs().max().item() / 2 + 0.5, bytes=True))[..., :3]
    assert np.abs(np.array(picture.convert("RGB")).astype(int) - exact).max() <= 8


def test_a_scale_of_colours_has_few_rows_that_a_reader_mixes():
    drawing = ElementTree.fromstring(
        table_maps({"x": -torch.eye(3)}, alt="Cells.")._repr_mimebundle_()[0]["image/svg+xml"]
    )
    *_, scale = drawing.iter("{http://www.w3.org/2000/svg}image")
    data = scale.get("href").removeprefix("data:image/png;base64,")
    rows = Image.open(io.BytesIO(base64.b64decode(data)))
    assert rows.width == 1 and rows.height < 40 and len(data) < 300 and scale.get("preserveAspectRatio") == "none"
    # The least number comes first: the drawing turns it over.
    exact = SEQUENTIAL_BELOW(np.linspace(0.5, 199.5, 200) / 200, bytes=True)
    mixed = np.array(rows.resize((1, 200), Image.Resampling.BILINEAR))[:, 0].astype(int)
    assert np.abs(mixed - exact).max() <= 8


def test_more_maps_than_fit_into_a_row_stand_in_pairs():
    place = lambda n: [
        axes.get_subplotspec().get_geometry()[:2]
        for axes in table_maps({str(k): torch.eye(2) for k in range(n)}, alt="Diagonals.").axes[:n]
    ]
    assert place(3) == [(1, 3)] * 3 and place(4) == [(2, 2)] * 4 and place(5) == [(3, 2)] * 5


def test_what_is_too_large_is_no_svg():
    figure, axes = new_figure("Many points.")
    axes.plot(torch.rand(5000, generator=torch.Generator().manual_seed(0)), "o")
    assert "image/svg+xml" not in figure._repr_mimebundle_()[0]
    assert "image/svg+xml" not in table_heat(torch.rand(600, 600), alt="Noise.")._repr_mimebundle_()[0]


def test_what_is_masked_makes_a_gap():
    (line,) = figures.curves({"x": np.ma.masked_array([1.0, 1e6], mask=[0, 1])}, alt="A point.").axes[0].lines
    assert line.get_ydata()[0] == 1 and np.isnan(line.get_ydata()[1])
