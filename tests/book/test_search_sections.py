"""The index of sections: prose alone, as the search knows it, and what readers call a section."""

import json
from types import SimpleNamespace

import pytest
from docutils.core import publish_doctree
from tool import load

PAGE = """
Tables
======
They have rows.

A lookup
--------
Rows of a table::

   code = 1
"""


@pytest.mark.parametrize("called", ["page#a-lookup", "page#gone"])
def test_sections_have_their_words_and_those_that_they_are_called_by(tmp_path, pytestconfig, caplog, called):
    module = load("search_sections", pytestconfig.rootpath / "book" / "_ext")
    (tmp_path / "_static").mkdir()
    (tmp_path / "search-words.yml").write_text(f"{called}: Embeddings", encoding="utf-8")
    env = SimpleNamespace(found_docs={"page", "api"}, get_doctree=lambda name: doctree)
    doctree = publish_doctree(PAGE, settings_overrides={"doctitle_xform": False})
    builder = SimpleNamespace(format="html")
    module.write(SimpleNamespace(env=env, builder=builder, srcdir=tmp_path, outdir=tmp_path), None)
    text = (tmp_path / "_static" / "sections.js").read_text(encoding="utf-8")
    sections, words = json.loads(text.removeprefix("Search.sections = ").removesuffix(";\n"))
    known = "embed" if called == "page#a-lookup" else ""
    assert sections == [["page", "", "Tables", "", 3], ["page", "#a-lookup", "A lookup", known, 3]]
    assert words["row"] == [0, 1, 1, 1] and words["tabl"] == [0, 1, 1, 1] and "code" not in words
    assert words.get("embed", []) == ([1, 0] if known else [])
    assert ("page#gone" in caplog.text) == (not known)
