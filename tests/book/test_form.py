"""The form of a numbered chapter: answer first, a picture on the first screen, as long as one reads, plain words."""

import re

import pytest
from prose import BOOK, cells, prose, source
from tool import load

measure = load("measure")
CHAPTERS = [path.relative_to(BOOK).with_suffix("").as_posix() for path in measure.numbered_chapters()]
# Who says so? And: what a test says is significant, and nothing else is.
NOT_SAID = re.compile(
    r"(?i)\byou (?:may|will often|may have) read\b"
    r"|\bholds? after the correction|\b(?:left|leaves?) (?:after|by) the correction"
)


@pytest.fixture(params=CHAPTERS)
def chapter(request):
    return request.param


def test_a_chapter_keeps_within_its_bounds(chapter):
    found = measure.measured(BOOK / f"{chapter}.ipynb")
    assert {name: value for name, value in found.items() if value > measure.BOUNDS.get(name, value)} == {}
    assert found["pictures"] > 0


def test_the_first_screen_has_the_question_and_its_answer(chapter):
    first = source(cells(chapter)[0])
    question, answer = first.index("**The question:**"), first.index(":::{admonition} Answer\n:class: tip\n")
    assert question < answer < first.index("**How sure:**") < first.index("\nYou need ")


def test_caveats_stand_in_one_list_before_the_exercises(chapter):
    titles = re.findall(r"(?m)^## (.+)$", prose(chapter))
    assert titles[-4:] == ["What this does not show", "Exercises", "What to remember", "Sources"]


def test_nothing_is_said_by_hearsay_or_in_an_idiom(chapter):
    assert NOT_SAID.findall(prose(chapter)) == []


def test_what_is_measured_is_prose():
    text = "One [two](three) $x + y$ four. Five 9.5\n\n| 1.5 | a |\n\n- six 2.5 and 3 %\n\n```\n7.5 8.5 9.5\n```\n"
    assert measure.words(text) == 14
    assert measure.longest_sentence(text) == 5
    assert measure.most_results(text) == 2
