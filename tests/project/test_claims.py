"""The command that lists what the chapters claim, on a chapter of a page."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tool import load

CHAPTER = """# A chapter

Half of the rows are {how}. What does this mean for 3 of them? The word is defined here.

:::{prf:theorem} All 7 of them
There are never more than 7.
:::

In the paper it is 12 {cite:p}`someone2020`.

## What to remember

- Rows are even.

**Next:** more.
"""
QUESTION = "<details><summary>Two.</summary>Right, two.</details>"


@pytest.fixture
def tool(monkeypatch, tmp_path):
    tool = load("claims")
    for name, value in {"BOOK": tmp_path, "ROOT": tmp_path, "TESTS": tmp_path, "LIST": tmp_path / "claims.md"}.items():
        monkeypatch.setattr(tool, name, value)
    for name, value in {"BOOK": tmp_path, "ROOT": tmp_path, "CHECKS": tmp_path / "checks"}.items():
        monkeypatch.setattr(tool.checks, name, value)
    monkeypatch.setattr(tool, "chapters", lambda: [tmp_path / "page.ipynb"])
    return tool


def write(folder, checks, how="even"):
    picture = new_code_cell("plot()", metadata={"mystnb": {"image": {"alt": "Two lines that cross."}}})
    page = [new_markdown_cell(CHAPTER.replace("{how}", how)), picture, new_markdown_cell(QUESTION)]
    nbformat.write(new_notebook(cells=page), folder / "page.ipynb")
    (folder / "checks").mkdir(exist_ok=True)
    (folder / "checks" / "page.py").write_text(checks)


HELD = """\
# %% A chapter
# Holds: "Half of the rows"
# By definition in What to remember: "Rows are even."
# %% What to remember
# Holds: "Two lines
# that cross."
"""


def said(tool):
    with pytest.raises(SystemExit) as stop:
        tool.main()
    return str(stop.value).splitlines()


def test_what_nothing_holds_is_named_and_definitions_theorems_questions_and_quotations_are_no_claims(tool, tmp_path):
    write(tmp_path, "")
    assert said(tool) == [
        "claims: page: nothing holds the sentence 'Half of the rows are even.'",
        "claims: page: nothing holds the remember 'Rows are even.'",
        "claims: page: nothing holds the picture 'Two lines that cross.'",
        "claims: page: nothing holds the quick answer 'Two. Right, two.'",
    ]


def test_a_comment_and_a_test_hold_a_claim_and_the_list_says_which(tool, tmp_path, capsys):
    write(tmp_path, HELD)
    (tmp_path / "test_prose.py").write_text("def test_two():\n    said('Two. Right, two.')\n")
    tool.main()
    assert "all 4 in the chapters are held" in capsys.readouterr().out
    rows = (tmp_path / "claims.md").read_text().splitlines()
    assert "| sentence | Half of the rows are even. | page.py:2 |" in rows
    assert "| remember | Rows are even. | its definition |" in rows
    assert "| quick answer | Two. Right, two. | test_prose.py::test_two |" in rows


def test_a_comment_whose_sentence_or_section_is_gone_is_an_error_with_its_file(tool, tmp_path):
    checks = HELD + '# Holds: "Two. Right, two."\n# Holds in A chapter: "of the rows are even"\n'
    write(tmp_path, checks)
    tool.main()
    write(tmp_path, checks, how="odd")
    assert said(tool) == ["claims: checks/page.py:8: section 'A chapter' does not say 'of the rows are even'"]
    write(tmp_path, checks.replace("in A chapter", "in Another"))
    assert said(tool) == ["claims: checks/page.py:8: the chapter has no section 'Another'"]
    # In its own section alone: the sentence stands in the other.
    write(tmp_path, checks.replace(" in A chapter", ""))
    assert said(tool) == ["claims: checks/page.py:8: section 'What to remember' does not say 'of the rows are even'"]
    write(tmp_path, checks + "# %% Another\n")
    assert said(tool)[0] == "claims: checks/page.py:9: the chapter has no section 'Another'"


def test_checks_without_a_chapter_are_an_error(tool, tmp_path):
    write(tmp_path, HELD + '# Holds: "Two. Right, two."\n')
    (tmp_path / "checks" / "gone.py").write_text("# %% A chapter\nassert True\n")
    assert said(tool) == ["claims: checks/gone.py: no chapter has these checks"]
