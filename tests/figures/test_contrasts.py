"""Contrasts as a table."""

import xml.etree.ElementTree as ElementTree

import pandas as pd
from refusals import refused

from posembed.errors import FigureInputError
from posembed.figures import contrast_table, forest_plot, number_table
from posembed.stats import Interval, family, interval

FOUND = family(
    {
        "order: <a> minus b": Interval(0.12345, 0.1, 0.2, 5, 0.0001),
        "order: a minus c": Interval(-0.0004, -0.1, 0.1, 5, 0.9),
        "lookup: a minus b": Interval(1.0, 0.5, 1.5, 5, 0.02),
    }
)


def cells(table):
    """The words of each row of the HTML, with how many rows a cell spans."""
    root = ElementTree.fromstring(table._repr_html_())
    return [[(cell.text, int(cell.get("rowspan", 1))) for cell in row] for row in root.iter("tr")]


def test_each_row_has_its_numbers_and_a_group_is_said_once():
    head, *rows = cells(contrast_table(FOUND, of="task"))
    assert [words for words, _ in head] == ["task", "contrast", "mean", "95 % interval, 5 seeds", "Holm"]
    assert rows[0][:2] == [("order", 2), ("<a> minus b", 1)] and rows[2][0] == ("lookup", 1)
    assert [words for words, _ in rows[0][2:]] == ["0.123", "0.100 to 0.200", "<0.001"]
    # Never minus zero, and nothing before the point of a p but where it is one.
    assert [words for words, _ in rows[1]] == ["a minus c", "0.000", "−0.100 to 0.100", "0.900"]


def test_text_has_the_words_of_the_html_in_columns():
    table = contrast_table(FOUND, digits=1)
    lines = repr(table).splitlines()
    assert len(lines) == 1 + len(FOUND) and len({line.rindex(" to ") for line in lines[1:]}) == 1
    for line, row in zip(lines, cells(table), strict=True):
        assert line.split() == " ".join(words for words, _ in row).split()


def test_the_number_of_seeds_is_a_column_where_it_differs():
    some = family({"a": Interval(0.0, -1.0, 1.0, 5, 0.5), "b": Interval(0.0, -1.0, 1.0, 3, 0.5)})
    head, *rows = cells(contrast_table(some))
    assert head[3:] == [("seeds", 1), ("Holm", 1)] and [row[3][0] for row in rows] == ["5", "3"]


def test_numbers_are_whole_and_what_is_none_is_a_dash():
    found = {("a", 0): [-0.001, 2, Interval(-0.5, -1.0, 0.25, 3), "-1 to 1"], ("a", 1): [None, 3, None, float("nan")]}
    frame = pd.DataFrame.from_dict(found, orient="index", columns=["share", "n", "gap", "control"])
    frame.index = pd.MultiIndex.from_tuples(found, names=["model", "state"])
    head, *rows = cells(number_table(frame, digits=1))
    assert [words for words, _ in head] == ["model", "state", "share", "n", "gap", "control"]
    assert rows[0] == [("a", 2), ("0", 1), ("0.0", 1), ("2", 1), ("−0.5 (−1.0 to 0.2)", 1), ("−1 to 1", 1)]
    assert [words for words, _ in rows[1]] == ["1", "–", "3", "–", "–"]


def test_a_name_without_its_group_is_refused():
    assert "'plain' has no colon behind its task" in refused(
        FigureInputError, contrast_table, FOUND.rename(index={"order: a minus c": "plain"}), of="task"
    )


def test_a_forest_plot_has_a_row_each_and_fills_what_holds():
    found = family({"apart": interval([1.0, 1.01, 1.02]), "open": interval([-0.5, 0.1, 0.4])})
    (axes,) = forest_plot(found, alt="Two contrasts.", margin=0.1).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["apart", "open"]
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    assert [mark.get_xdata()[0] for mark in marks] == found["mean"].tolist()
    assert marks[0].get_markerfacecolor() == marks[0].get_color() != marks[1].get_markerfacecolor()
