"""What the static figures draw is what they were given, and each describes itself."""

import matplotlib
import pytest
import torch

from posembed.figures import (
    DescribedFigure,
    lookup_cost_curves,
    new_figure,
    similarity_maps,
    styled,
    table_maps,
    token_differences,
)
from posembed.lookup import LookupCost

FIGURES = {
    "differences": lambda alt: token_differences(["a", "b"], {"x": torch.tensor([0.1, 0.2])}, alt=alt),
    "maps": lambda alt: table_maps({"x": torch.eye(3)}, alt=alt),
    "similarity": lambda alt: similarity_maps({"x": torch.eye(3)}, alt=alt),
    "costs": lambda alt: lookup_cost_curves([LookupCost("dense", 10, 1e-3, 100)], alt=alt),
}


@pytest.fixture(params=FIGURES.values(), ids=FIGURES)
def draw(request):
    return request.param


def test_the_alt_text_travels_with_the_png(draw):
    data, metadata = draw("What it shows.")._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == "What it shows."
    assert data["image/png"].startswith(b"\x89PNG")
    assert "What it shows." in data["text/plain"]


def test_the_same_figure_gives_the_same_bytes(draw):
    first, second = (draw("Twice.")._repr_mimebundle_()[0]["image/png"] for _ in range(2))
    assert first == second


def test_drawing_leaves_the_readers_style_alone(draw):
    before = dict(matplotlib.rcParams)
    draw("Quiet.")._repr_mimebundle_()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.bad_input
@pytest.mark.parametrize("alt", ["", "  \n"])
def test_a_figure_without_alt_text_is_refused(draw, alt):
    with pytest.raises(ValueError, match="needs an alt text"):
        draw(alt)


def test_differences_are_drawn_as_given_and_rounding_at_its_resolution():
    values = torch.tensor([0.25, 1e-9, 0.0])
    axes = token_differences(["a", "b", "c"], {"x": values}, alt="Three points.").axes[0]
    resolution = torch.finfo(torch.float32).eps
    assert axes.lines[0].get_ydata() == pytest.approx([0.25, resolution, resolution], rel=1e-6)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]


@pytest.mark.bad_input
@pytest.mark.parametrize("values", [torch.tensor([0.1]), torch.tensor([0.1, -0.1])], ids=["too few", "negative"])
def test_differences_that_fit_no_axis_are_refused(values):
    with pytest.raises(ValueError, match="needs 2 differences of zero or more"):
        token_differences(["a", "b"], {"x": values}, alt="Refused.")


def test_maps_share_one_scale_that_is_white_at_zero():
    small, large = torch.full((2, 2), 0.5), torch.full((2, 2), -4.0)
    figure = table_maps({"small": small, "large": large}, alt="Two tables.")
    images = [axes.images[0] for axes in figure.axes[:2]]
    assert [image.get_clim() for image in images] == [(-4.0, 4.0)] * 2
    assert images[1].get_array().min() == -4.0


def test_similarity_is_the_cosine_of_every_two_rows():
    table = torch.tensor([[1.0, 0.0], [1.0, 1.0], [-2.0, 0.0]])
    shown = similarity_maps({"x": table}, alt="Three rows.").axes[0].images[0].get_array()
    root = 2**-0.5
    # float32 is what imshow gets.
    assert shown.flatten().tolist() == pytest.approx([1, root, -1, root, 1, -root, -1, -root, 1], abs=1e-7)


def test_costs_are_drawn_in_milliseconds_and_megabytes():
    costs = [LookupCost("dense", 10, 2e-3, 5_000_000), LookupCost("sparse", 10, 1e-3, 1_000_000)]
    left, right = lookup_cost_curves(costs, alt="Two ways.").axes
    assert [line.get_ydata()[0] for line in left.lines] == pytest.approx([2.0, 1.0])
    assert [line.get_ydata()[0] for line in right.lines] == pytest.approx([5.0, 1.0])


def test_a_figure_of_ones_own_takes_the_style():
    @styled
    def draw():
        return new_figure("Mine.")

    figure, axes = draw()
    assert isinstance(figure, DescribedFigure)
    assert not axes.spines["top"].get_visible()
