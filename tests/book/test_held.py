"""The line that ends a chapter: how many checks hold its sentences, and where they stand."""

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document
from tool import load

FILE = "tests/book/checks/why/two.py"


@pytest.fixture
def held(pytestconfig, tmp_path, monkeypatch):
    module = load("repository_links", pytestconfig.rootpath / "book" / "_ext")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).write_text("# %% Two\nassert True\nfor x in y:\n    assert x  # assert\n")
    return module


def last_line(held, repository, page="why/two"):
    options = {"repository_url": f"https://github.com/{repository}", "repository_branch": "main"}
    app = SimpleNamespace(env=SimpleNamespace(docname=page), config=SimpleNamespace(html_theme_options=options))
    document = new_document(page)
    document += nodes.section("", nodes.title("", "Two"), nodes.section("", nodes.title("", "Sources")))
    held.say_what_holds(app, document)
    return document[0][-1]


def test_it_leads_to_the_file_once_there_is_an_address(held):
    line = last_line(held, "ann/book")
    assert line.astext() == "What holds these sentences: 2 checks"
    assert line[0]["refuri"] == f"https://github.com/ann/book/blob/main/{FILE}"


def test_it_names_the_file_while_there_is_none(held):
    line = last_line(held, "OWNER/posembed")
    assert line.astext() == f"What holds these sentences: 2 checks, in {FILE}"
    assert not list(line.findall(nodes.reference))


def test_a_page_without_checks_has_no_such_line(held):
    assert last_line(held, "ann/book", page="intro").astext() == "Sources"
