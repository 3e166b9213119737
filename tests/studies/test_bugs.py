"""Sixty reported bugs: each is one, what finds it is what is stored, and the page and the README say so."""

import importlib.util
import json
from pathlib import Path

import pytest

from posembed import audit
from studies.bugs import SETTINGS, SINCE, first, later
from studies.bugs import __main__ as bugs
from studies.bugs.reference import settings

ROOT = Path(__file__).resolve().parents[2]
STORED = json.loads(bugs.PATH.read_text(encoding="utf-8"))
ALL = [(bug, part) for part, its in (("first", first.bug), ("later", later.bug)) for bug in its]
SPEC = importlib.util.spec_from_file_location("bugs_page", ROOT / "tools" / "bugs_page.py")
bugs_page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bugs_page)


def test_there_are_sixty_each_with_a_report_of_its_own():
    assert len({bug.report for bug, _ in ALL}) == len(ALL) == 60
    assert [bug["report"] for bug in STORED["bugs"]] == [bug.report for bug, _ in ALL]


@pytest.mark.parametrize(("bug", "part"), ALL, ids=[bug.model.__name__ for bug, _ in ALL])
def test_each_changes_the_logits_of_a_model_that_is_right(bug, part):
    assert bugs.differs(bug)
    same = bugs.Bug(bug.report, bug.wrong, bug.right, bug.right)
    assert not bugs.differs(same) and not bugs.failing(bug.right(), bug.right())


@pytest.mark.parametrize("at", [*range(0, 60, 7), *(pytest.param(at, marks=pytest.mark.slow) for at in range(60))])
def test_what_is_stored_is_what_finds_it(at):
    found = bugs.asked(*ALL[at])
    assert found == STORED["bugs"][at]


RIGHT = {tuple(getattr(bug.right, name) for name in SETTINGS): bug.right for bug, _ in ALL}


@pytest.mark.parametrize("right", [*RIGHT.values()][::5])
def test_the_right_models_have_nothing_broken(right):
    report = audit(right(), **settings(right()))
    assert report.passed, str(report)


def test_the_page_is_made_from_what_is_stored():
    assert bugs_page.PAGE.read_text(encoding="utf-8") == bugs_page.page()


def test_nearly_all_are_found_by_the_fewest():
    found = [bugs_page.finders(bug) for bug in STORED["bugs"] if bugs_page.finders(bug)]
    chosen = bugs_page.fewest(STORED["bugs"])
    enough = bugs_page.NEARLY_ALL * len(found)
    assert bugs_page.covered(found, chosen) >= enough
    assert all(bugs_page.covered(found, {*chosen} - {name}) < enough for name in chosen)


def test_the_readme_has_both_numbers():
    found = [bug for bug in STORED["bugs"] if bug["broken"]]
    frozen = [bug for bug in found if bug["part"] == "later" and bug["report"] not in SINCE]
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    of_later = f"of the twenty that were written after its checks were frozen {len(frozen)}, and one more since"
    assert len(SINCE) == 1 and f"finds {len(found)} of sixty reported bugs, and {of_later}" in said
