"""What search engines and previews are told: a sentence of the page, and addresses once there are some."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_doctree
from tool import load

SOURCE = Path(__file__).resolve().parents[2] / "book" / "_ext" / "previews.py"
ADDRESS = "https://ann.github.io/order-book/"
PAGE = """
Title
=====

.. note:: Not the page's own text.

Is ``nn.Embedding`` or ... more than a lookup "table"? This is the
second sentence. This one is too long, LONG.

- and a list
""".replace("LONG", "word " * 30)


@pytest.fixture(scope="module")
def previews():
    return load("previews", SOURCE.parent)


@pytest.fixture
def app(tmp_path):
    """What of Sphinx the extension uses, for a book that has an address."""
    config = SimpleNamespace(html_baseurl=ADDRESS, html_title="Positional embeddings")
    builder = SimpleNamespace(get_target_uri=lambda name: f"{name}.html")
    env = SimpleNamespace(found_docs={"why/two", "intro"})
    return SimpleNamespace(config=config, builder=builder, env=env, outdir=tmp_path)


@pytest.fixture
def context():
    return {"title": "Title", "pageurl": f"{ADDRESS}why/two.html"}


@pytest.fixture(scope="module")
def doctree():
    return publish_doctree(PAGE, settings_overrides={"doctitle_xform": False})


def test_a_page_is_described_by_its_beginning(previews, app, context, doctree):
    previews.describe(app, "why/two", "page.html", context, doctree)
    described = 'content="Is nn.Embedding or ... more than a lookup &quot;table&quot;? This is the second sentence."'
    assert context["metatags"].count(described) == 2
    assert f'property="og:image" content="{ADDRESS}_static/screenshot.webp"' in context["metatags"]
    assert f'property="og:url" content="{ADDRESS}why/two.html"' in context["metatags"]


def test_a_long_sentence_is_shortened(previews):
    page = publish_doctree("Title\n=====\n\n" + "word " * 60 + "end.", settings_overrides={"doctitle_xform": False})
    assert len(previews.beginning(page)) <= previews.LONGEST
    assert previews.beginning(page).endswith("word …")


def test_a_page_of_entries_alone_is_described_by_its_title(previews, app, context):
    page = publish_doctree("Glossary\n========\n\n- an entry", settings_overrides={"doctitle_xform": False})
    previews.describe(app, "why/two", "page.html", context, page)
    assert 'name="description" content="Glossary of the book Positional embeddings"' in context["metatags"]


def test_without_an_address_nothing_needs_one(previews, app, context, doctree):
    app.config.html_baseurl = previews.PLACEHOLDER + "github.io/order-book/"
    previews.describe(app, "why/two", "page.html", context, doctree)
    previews.write_sitemap(app, None)
    assert "description" in context["metatags"]
    assert "http" not in context["metatags"]
    assert context["pageurl"] is None
    assert not (app.outdir / "sitemap.xml").exists()


def test_the_sitemap_lists_the_pages(previews, app):
    previews.write_sitemap(app, None)
    text = (app.outdir / "sitemap.xml").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if "<loc>" in line] == [
        f"<url><loc>{ADDRESS}{name}.html</loc></url>" for name in ("intro", "why/two")
    ]
