"""Links that need the repository's address: none while it is not set, and Colab under the title once it is."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tool import load

COLAB = "https://colab.research.google.com/github/{}/blob/main/book/why/two.ipynb"


@pytest.fixture(scope="module")
def links():
    return load("repository_links", Path(__file__).resolve().parents[2] / "book" / "_ext")


def context(repository):
    launch = [{"type": "link", "url": COLAB.format(repository)}]
    source = [{"url": f"https://github.com/{repository}"}, {"url": f"https://github.com/{repository}/issues/new"}]
    groups = [{"type": "group", "buttons": each} for each in (launch, source)]
    other = [{"type": "group", "buttons": [{"url": "_sources/why/two.ipynb"}]}, {"javascript": "window.print()"}]
    return {"header_buttons": [*groups, *other], "body": "<h1>Two</h1><p>text</p><h1>no title</h1>"}


def test_without_an_address_no_button_needs_it(links):
    page = context("OWNER/posembed")
    links.leave_out_or_show(None, "why/two", "page.html", page, None)
    assert page["header_buttons"] == context("OWNER/posembed")["header_buttons"][2:]
    assert page["body"] == context("OWNER/posembed")["body"]


def test_with_one_colab_stands_under_the_title(links):
    page = context("ann/book")
    links.leave_out_or_show(None, "why/two", "page.html", page, None)
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
