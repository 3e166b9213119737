"""The glossary: in order, with every scheme, and previews of its entries in the pages that link to them."""

import re

import yaml
from prose import BOOK
from tool import load

GLOSSARY = (BOOK / "glossary.md").read_text(encoding="utf-8")


def test_every_scheme_has_an_entry_that_leads_to_its_page():
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    (schemes,) = (entry["sections"] for entry in entries if entry["file"] == "schemes/index")
    assert {page["file"] for page in schemes} == {*re.findall(r"<(schemes/[\w-]+)>", GLOSSARY)}


def test_a_page_brings_the_entries_that_it_links_to_without_links(tmp_path):
    entry = '<dt id="term-{0}">{0}<a href="#term-{0}">#</a></dt><dd><p>A <a href="#term-b">b</a> of {0}.</p></dd>'
    glossary = f"<article>{entry.format('a')}{entry.format('b')}</article></body>"
    page = '<nav href="#term-b"></nav><article><a href="../glossary.html#term-a">a</a></article></body>'
    pages = {tmp_path / "glossary.html": glossary, tmp_path / "why" / "page.html": page, tmp_path / "x.html": "</body>"}
    load("previews", BOOK / "_ext").add(pages, tmp_path)
    template = '<template id="terms"><div id="term-a"><p>A b of a.</p></div></template>\n'
    assert [*pages.values()][1:] == [page.replace("</body>", f"{template}</body>"), "</body>"]
