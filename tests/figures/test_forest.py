"""Contrasts as a forest plot."""

from posembed.figures import forest_plot
from posembed.stats import family, interval


def test_a_forest_plot_has_a_row_each_and_fills_what_holds():
    found = family({"apart": interval([1.0, 1.01, 1.02]), "open": interval([-0.5, 0.1, 0.4])})
    (axes,) = forest_plot(found, alt="Two contrasts.", margin=0.1).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["apart", "open"]
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    assert [mark.get_xdata()[0] for mark in marks] == found["mean"].tolist()
    assert marks[0].get_markerfacecolor() == marks[0].get_color() != marks[1].get_markerfacecolor()
