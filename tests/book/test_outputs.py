"""What cells print: whole on a desktop, and shaped so that a phone shows it."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from tool import load

SOURCE = Path(__file__).resolve().parents[2] / "book" / "_ext" / "outputs.py"
PAGE = '<div class="output{} highlight-myst-ansi"><div class="highlight"><pre><span></span>{}</pre></div></div>'
CONTRASTS = """\
                            mean    low   high
learned minus sinusoidal   0.045  0.025  0.064
nopos minus learned       -0.010 -0.020  0.001
"""
SEEDS = """\
nopos    loses 4.41 (4.32 to 4.51)
         and &lt;.1 with the last 8 in place
longest: loses 4.49 (4.39 to 4.60)
"""


@pytest.fixture(scope="module")
def outputs():
    return load("outputs", SOURCE.parent)


def shaped(outputs, text):
    page = PAGE.format(" stream", text)
    found = BeautifulSoup(outputs.OUTPUT.sub(outputs.shape, page), "html.parser")
    # On a desktop, and for who copies it, it is what it was.
    assert found.pre.get_text().rstrip("\n") == BeautifulSoup(page, "html.parser").pre.get_text().rstrip("\n")
    return found


@pytest.mark.parametrize("text", ["caught: rows 256 and 257 are identical", "one two\n  three"])
def test_outputs_without_columns_wrap(outputs, text):
    found = shaped(outputs, text)
    assert found.div["class"] == ["output", "stream", "running", "highlight-myst-ansi"]
    assert found.select(".line") == []


def test_a_message_that_was_filled_is_filled_anew(outputs):
    found = shaped(outputs, "caught: two tokens of one text get the same vector:\nis the table indexed by it?\n")
    (joint,) = found.select(".filled")
    assert joint.get_text() == "\n"
    assert shaped(outputs, "state 0: read in 1.00\nstate 1: read in 0.97\n").select(".filled") == []


def test_columns_stay_beside_their_labels_and_a_title_stands_alone(outputs):
    found = shaped(outputs, "mean of five seeds:\n\n" + CONTRASTS)
    title, _, *rows = found.select(".line")
    assert title["class"] == ["line", "alone"] and not title.select(".label")
    assert [row["class"] for row in rows] == [["line", "in-columns"]] * 3
    assert [row.select_one(".label").get_text().strip() for row in rows] == [
        "",
        "learned minus sinusoidal",
        "nopos minus learned",
    ]
    assert {row.select_one(".label")["style"] for row in rows} == {"--ch: 26"}


def test_lines_that_speak_for_themselves_wrap_as_they_are(outputs):
    rows = shaped(outputs, SEEDS).select(".line")
    assert [row["class"] for row in rows] == [["line", "alone"]] * 3
    assert [row.select(".label") for row in rows] == [[]] * 3


def test_a_sign_may_take_one_of_the_blanks_behind_a_label(outputs):
    text = "               mean   low\nminus         0.012 -0.07\nuntied minus -0.104  0.01\n"
    rows = shaped(outputs, text).select(".line")
    assert [row["class"] for row in rows] == [["line", "in-columns"]] * 3
    assert [row.select_one(".rest").get_text() for row in rows] == ["  mean   low", " 0.012 -0.07", "-0.104  0.01"]


def test_heads_stay_above_their_columns(outputs):
    text = "            none   12\nmajority  monotonicity  0.96\n"
    assert {row["class"][1] for row in shaped(outputs, text).select(".line")} == {"in-columns"}


def test_marked_outputs_are_left_alone(outputs):
    html = PAGE.format("", 'gpt2 <span class="k"> 0.33</span>')
    assert outputs.OUTPUT.sub(outputs.shape, html) == html
