"""Links that need the repository's address: none while it is not set, and Colab under the title once it is."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from tool import load

COLAB = "https://colab.research.google.com/github/{}/blob/main/book/why/two.ipynb"


@pytest.fixture(scope="module")
def links():
    return load("repository_links", Path(__file__).resolve().parents[2] / "book" / "_ext")


def app(repository):
    options = {"repository_url": f"https://github.com/{repository}"}
    return SimpleNamespace(config=SimpleNamespace(html_theme_options=options))


def context(repository):
    launch = [{"type": "link", "url": COLAB.format(repository)}]
    source = [{"url": f"https://github.com/{repository}"}, {"url": f"https://github.com/{repository}/issues/new"}]
    groups = [{"type": "group", "buttons": each} for each in (launch, source)]
    other = [{"type": "group", "buttons": [{"url": "_sources/why/two.ipynb"}]}, {"javascript": "window.print()"}]
    return {"header_buttons": [*groups, *other], "body": "<h1>Two</h1><p>text</p><h1>no title</h1>"}


def test_without_an_address_no_button_needs_it(links):
    page = context("OWNER/posembed")
    links.leave_out_or_show(app("OWNER/posembed"), "why/two", "page.html", page, None)
    assert "feedback" not in page
    assert page["header_buttons"] == context("OWNER/posembed")["header_buttons"][2:]
    assert page["body"] == context("OWNER/posembed")["body"]


def test_with_one_colab_stands_under_the_title(links):
    page = context("ann/book")
    links.leave_out_or_show(app("ann/book"), "why/two", "page.html", page, None)
    assert page["feedback"] == "https://github.com/ann/book/issues/new?title=About%20the%20page%20why/two"
    assert page["header_buttons"] == context("ann/book")["header_buttons"]
    assert page["body"].startswith(f'<h1>Two</h1>\n<p class="under-title"><a href="{COLAB.format("ann/book")}">')
    assert page["body"].count("under-title") == 1


@pytest.mark.parametrize("owner", ["OWNER", "ann"])
def test_previews_and_the_sitemap_have_an_address_once_it_is_set(links, owner):
    address = f"https://{owner}.github.io/book/"
    options = {"repository_url": f"https://github.com/{owner}/book"}
    config = SimpleNamespace(html_theme_options=options, html_baseurl=address, ogp_image="a.webp", ogp_site_url="")
    tags = set()
    links.say_whether_published(SimpleNamespace(tags=tags), config)
    published = owner != "OWNER"
    assert (config.html_baseurl, config.ogp_site_url) == (address if published else "",) * 2
    assert (config.ogp_image, tags) == (("a.webp", {"published"}) if published else (None, set()))


def test_the_book_is_cited_as_citation_cff_says(links):
    config = SimpleNamespace(copyright="2026")
    document = SimpleNamespace(settings=SimpleNamespace(env=SimpleNamespace(config=config)))
    directive = links.Cite(
        "cite-this", [], {}, [], 1, 0, "", SimpleNamespace(document=document), SimpleNamespace(reporter=None)
    )
    (entry,) = (node.astext() for node in directive.run())
    said = yaml.safe_load((links.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    for field in (said["title"], said["authors"][0]["name"], said["repository-code"], "year = {2026}"):
        assert field in entry
    assert entry.count("{") == entry.count("}")
