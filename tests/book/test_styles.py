"""One style sheet for a page: what the pages have stays, what they lack goes, and each icon that is named is there."""

from io import BytesIO
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from tool import load

EXTENSIONS = Path(__file__).resolve().parents[2] / "book" / "_ext"
KNOWN = {"bd-article", "table", "shown", "icon"}


@pytest.fixture(scope="module")
def styles():
    return load("styles", EXTENSIONS)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (".table { color : red }", ".table { color : red }"),
        (".modal { color: red }", ""),
        ("p, .modal { color: red }", "p, .modal { color: red }"),
        # What a rule leaves out, or has as one of several, no page need have.
        (".table:not(.modal) {a: b}", ".table:not(.modal) {a: b}"),
        (".table:is(.modal, .shown) {a: b}", ".table:is(.modal, .shown) {a: b}"),
        ("#modal {a: b}", ""),
        ("@media print { .modal {a: b} }", ""),
        ("@media print { .modal {a: b} .table {a: b} }", "@media print {.table {a: b}}"),
        ("@supports (a: b) { @media print { .table {a: b} } }", "@supports (a: b) {@media print {.table {a: b}}}"),
        ("@keyframes turn { to { a: b } }", "@keyframes turn { to { a: b } }"),
        ('@font-face { font-family: "Font Awesome 6 Free" }', ""),
        ('@font-face { font-family: "Formulas" }', '@font-face { font-family: "Formulas" }'),
        ("/* said */ .table { a: b }", ".table { a: b }"),
    ],
)
def test_a_rule_stays_where_a_page_has_what_it_is_about(styles, rule, kept):
    assert styles.needed(rule, KNOWN) == kept


def test_pages_of_a_site_have_one_style_sheet_with_what_they_need(styles, tmp_path, monkeypatch):
    fonts = {}
    monkeypatch.setattr(styles, "icon_fonts", lambda kept, out: fonts.setdefault("kept", kept) and "")
    (tmp_path / "_static" / "theme").mkdir(parents=True)
    (tmp_path / "_static" / "theme" / "a.css").write_text('.here { a: "b" } .gone { a: "b" }')
    (tmp_path / "_static" / "c.css").write_text(".made-by-a-script { a: b }")
    (tmp_path / "_static" / "d.js").write_text("node.className = 'made-by-a-script'")
    link = '<link rel="stylesheet" href="{}_static/{}" />'
    pages = {}
    for place, up in (("", ""), ("part/", "../")):
        head = link.format(up, "theme/a.css?v=1") + link.format(up, "c.css")
        pages[tmp_path / place / "page.html"] = f'<head>{head}</head><p class="here">'
    styles.unite(pages, tmp_path)
    (united,) = (tmp_path / "_static").glob("styles-*.css")
    assert united.read_text() == '.here { a: "b" }.made-by-a-script { a: b }' == fonts["kept"]
    heads = [page.partition("</head>")[0] for page in pages.values()]
    assert heads == [f"<head>{link.format(up, united.name)}" for up in ("", "../")]


def test_the_fonts_have_the_icons_that_are_named(styles, tmp_path):
    import base64
    import re
    import shutil

    import pydata_sphinx_theme

    theme = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static" / "vendor"
    shutil.copytree(theme, tmp_path / "_static" / "vendor")
    faces = styles.icon_fonts('.a::before{content:"\uf002"}', tmp_path)
    solid, brands = (
        TTFont(BytesIO(base64.b64decode(data))).getBestCmap() or {} for data in re.findall(r"base64,([^\"]+)", faces)
    )
    assert 0xF002 in solid and len(solid) <= 2 and 0xF002 not in brands
