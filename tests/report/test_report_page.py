"""The page stands alone, says what it must, and no text from a checkpoint becomes a part of it."""

import dataclasses
import itertools
import re

import pytest
from bs4 import BeautifulSoup
from matplotlib import colormaps
from matplotlib.colors import to_hex

from posembed.errors import CheckpointError
from posembed.report.gather import Refused
from posembed.report.page import render
from posembed.report.pictures import KINDS

EVIL = """<script>alert(1)</script>"'><img src=x onerror=alert(2)> {{ 7 * 7 }} ]]> --> &amp;"""
# What three tables may weigh together.
MOST = 3_000_000


def parsed(html):
    return BeautifulSoup(html, "html.parser")


@pytest.fixture(scope="module")
def soup(page):
    return parsed(page)


@pytest.fixture(scope="module")
def evil(findings, made):
    """A page of a table whose every text is hostile."""
    table = dataclasses.replace(findings.table, source=EVIL, name=EVIL, file=EVIL, revision=EVIL, stored_dtype=EVIL)
    found = dataclasses.replace(findings, label=EVIL, table=table, beyond=CheckpointError(EVIL))
    return render([found, Refused(EVIL, CheckpointError(EVIL))], made)


def test_hostile_text_stays_text(evil):
    tree = parsed(evil)
    assert tree.find_all("script") == tree.find_all("img") == []
    assert not [tag for tag in tree.find_all(True) if any(name.startswith("on") for name in tag.attrs)]
    assert "49" not in tree.title.text
    shown = EVIL.replace(" %", "\N{NO-BREAK SPACE}%")
    assert shown in tree.title.text
    # As the name of the tensor, of the file, of the source, and as the reason why it could not be read.
    cells = [cell.get_text() for cell in tree.select("td .what")]
    assert f"{EVIL} in {EVIL}" in cells and EVIL in cells
    assert any(EVIL in figure["aria-label"] for figure in tree.find_all("svg"))
    assert any(EVIL in note.get_text() for note in tree.select(".refusal"))


def test_hostile_text_opens_and_closes_no_element(evil, findings, made):
    """The same page with harmless texts of the same kind has the same elements."""
    table = dataclasses.replace(findings.table, source="a", name="a", file="a", revision="a", stored_dtype="a")
    found = dataclasses.replace(findings, label="a", table=table, beyond=CheckpointError("a"))
    harmless = render([found, Refused("a", CheckpointError("a"))], made)
    names = [[tag.name for tag in parsed(page).find_all(True)] for page in (evil, harmless)]
    assert names[0] == names[1]


def test_nothing_is_asked_of_any_host(page, evil):
    for html in (page, evil):
        tree = parsed(html)
        assert not tree.find_all(["script", "link", "iframe", "object", "embed", "form", "base"])
        addresses = [
            tag[name] for tag in tree.find_all(True) for name in ("src", "href", "xlink:href") if tag.get(name)
        ]
        assert addresses
        assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
        assert "default-src 'none'" in tree.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
        assert "@import" not in html and "url(" not in str(tree.style)


def test_addresses_in_the_page_lead_somewhere(soup):
    ids = [tag["id"] for tag in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    for tag in soup.find_all(True):
        for name in ("href", "xlink:href", "aria-labelledby", "aria-describedby"):
            if (value := tag.get(name)) and not value.startswith("data:"):
                assert value.removeprefix("#") in ids
        for value in re.findall(r"url\(#([^)]*)\)", str(tag.attrs)):
            assert value in ids


def test_landmarks_headings_and_names(soup):
    assert soup.html["lang"] == "en"
    assert all(len(soup.find_all(name)) == 1 for name in ("h1", "main", "header", "nav", "footer", "title"))
    levels = [int(tag.name[1]) for tag in soup.find_all(re.compile(r"^h[1-6]$"))]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for table in soup.find_all("table"):
        assert table.caption.get_text(strip=True)
        assert all(cell.get("scope") for cell in table.find_all("th"))
    for drawing in soup.find_all("svg"):
        assert drawing["role"] == "img" and len(drawing["aria-label"]) > 20


def test_every_figure_says_what_one_sees_its_split_and_its_baseline(soup):
    sections = {kind.key: soup.find(id=kind.key) for kind in KINDS}
    for section in sections.values():
        (figure,) = section.find_all("figure")
        assert figure.find("svg") and len(figure.figcaption.get_text()) > 40
    for key, split in (("between", "even-odd split"), ("beyond", "half split")):
        said = sections[key].figcaption.get_text()
        for part in (split, "constant guess", "permuted labels", "random table", "interval"):
            assert part in said, (key, part)
    for key in ("dot-products", "offsets", "regions", "spectrum", "components"):
        assert "Baseline" in sections[key].figcaption.get_text(), key


def test_the_date_the_version_and_the_revision_are_stated(soup, made):
    from posembed import __version__

    assert soup.find("time")["datetime"] == made.isoformat()
    assert f"posembed {__version__}" in soup.header.get_text()
    (line,) = [row for row in soup.find_all("tr") if row.th and row.th.get_text() == "revision"]
    assert "c0ffee" in line.td.get_text()


def test_the_row_that_was_never_trained_is_named(soup):
    assert "Row 40 looks untrained" in soup.find(id="short").get_text()
    assert "Row 40 looks untrained" in soup.find(id="rows").get_text()


def test_an_error_stands_in_its_place_and_the_others_are_whole(findings, broken, made):
    refused = Refused("gone", CheckpointError("it is damaged"))
    soup = parsed(render([findings, refused, broken], made))
    assert [each.get_text() for each in soup.select("thead th")] == ["waves", "gone", "broken"]
    assert "This source could not be read: it is damaged" in soup.find(id="short").get_text()
    assert len(soup.find(id="rows").find_all("svg")) == 2
    between = soup.find(id="between").find_all("figure")
    assert [bool(figure.find("svg")) for figure in between] == [True, False]
    assert "This could not be computed" in between[1].get_text() and "NaN" in between[1].get_text()


def test_every_line_of_the_table_has_a_cell_for_each_source(findings, broken, made):
    soup = parsed(render([findings, Refused("gone", CheckpointError("damaged")), broken], made))
    covered = 0
    for row in soup.select("tbody tr:not(.group)"):
        cells = row.find_all("td")
        covered = covered - 1 if covered else int(cells[1]["rowspan"]) - 1
        assert len(cells) == (3 if cells[1].get("rowspan") else 2)
    assert covered == 0


def test_three_tables_are_less_than_three_megabytes(findings, made):
    """Noise packs worst; real tables have less of it."""
    import torch

    from posembed.tables import as_table

    noise = as_table(torch.randn(1024, 768, generator=torch.Generator().manual_seed(0)))
    assert 3 * len(render([dataclasses.replace(findings, table=noise)], made).encode()) < MOST


def test_the_same_findings_give_the_same_page(findings, page, made):
    assert render([findings], made) == page


def test_dark_colours_are_only_for_screens(page):
    style = parsed(page).style.get_text()
    assert "@media screen and (prefers-color-scheme: dark)" in style
    assert style.count("prefers-color-scheme: dark") == 1
    # Every colour of a figure that a dark page could not show has another one there, but for a colour map's ends.
    used = set(re.findall(r"var\((--c-[0-9a-f]{6})", page))
    dark = set(re.findall(r"(--c-[0-9a-f]{6}):", style))
    bright = {name for name in used if min(int(name[at : at + 2], 16) for at in (4, 6, 8)) > 0x80}
    ends = {f"--c-{to_hex(colormaps['PuOr'](end))[1:]}" for end in (0.0, 1.0)}
    assert used - dark - bright == ends
