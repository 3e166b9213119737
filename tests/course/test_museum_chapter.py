"""The chapter shows the code of the exhibits, word for word: neither can change alone."""

import ast
import json
import re

import pytest
from exhibits import MUSEUM, NAMES, ROOT

CHAPTER = ROOT / "book" / "encodings" / "museum-of-bugs.ipynb"


def functions(source):
    """The text of each function, by name; the last one of a name counts."""
    lines = source.splitlines()
    found = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return {node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in found}


def sources(kind):
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def shown():
    """All functions of the chapter, by text."""
    code = [source for source in sources("code") if "%pip" not in source]
    return {text for source in code for text in functions(source).values()}


@pytest.mark.parametrize("name", NAMES)
def test_the_chapter_has_the_exhibits_code(name):
    exhibit = functions((MUSEUM / f"{name}.py").read_text(encoding="utf-8"))
    assert {"broken", "mended", "check", "picture"} <= set(exhibit)
    assert [each for each, text in exhibit.items() if text not in shown()] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_chapter_cites_a_report_that_the_exhibit_names(name):
    docstring = ast.get_docstring(ast.parse((MUSEUM / f"{name}.py").read_text(encoding="utf-8")))
    reports = re.findall(r"([\w.-]+/[\w.-]+)#(\d+)", docstring)
    prose = "\n".join(sources("markdown"))
    links = [
        f"github.com/{repository}/{kind}/{number}" for repository, number in reports for kind in ("issues", "pull")
    ]
    assert any(link in prose for link in links)


def test_each_exhibit_has_a_hint_a_property_and_a_folded_solution():
    prose = "\n".join(sources("markdown"))
    numbers = re.findall(r"^### Exhibit (\d+): ", prose, re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(NAMES) + 1)]
    assert prose.count(":::{admonition} Hint\n:class: dropdown") == len(NAMES)
    assert prose.count("**The property.**") == len(NAMES)
    assert prose.count(":::{admonition} What was wrong\n:class: dropdown") == len(NAMES)
    code = "\n".join(sources("code"))
    assert code.count("print(judge(check, broken, mended))") == len(NAMES)


def test_a_first_visitor_is_told_what_to_see():
    """Each room is in the plan, with its exhibits; a short visit has its own list."""
    prose = "\n".join(sources("markdown"))
    plan = re.findall(r"^\| \[(\d: [^]]+)\]\((museum-\w+)\) \| ([\d, ]+) \|", prose, re.MULTILINE)
    rooms = re.split(r"^\((museum-\w+)\)=\n## ", prose, flags=re.MULTILINE)[1:]
    found = [
        (
            text.split("\n")[0].removeprefix("Room "),
            label,
            ", ".join(re.findall(r"^### Exhibit (\d+)", text, re.MULTILINE)),
        )
        for label, text in zip(rooms[::2], rooms[1::2], strict=True)
        if text.startswith("Room ")
    ]
    assert [(title.lower(), *rest) for title, *rest in found] == plan
    assert "**Ten minutes?** See exhibits 5 and 6" in prose
