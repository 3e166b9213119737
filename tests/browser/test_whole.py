"""The book as one file, PDF and EPUB, and pictures of its pages."""

import contextlib
import gzip
import re
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from posixpath import dirname, join, normpath
from unicodedata import normalize
from xml.etree import ElementTree

import pytest
from PIL import Image

from .built import ROOT, sources
from .chromium import CompressingHandler, serve_folder
from .figures import WIDTHS

TOOLS = ROOT / "tools"
XHTML = "{http://www.w3.org/1999/xhtml}"
OPF = "{http://www.idpf.org/2007/opf}"
# With answers, figures, formulas and wide tables, of several parts; the nightly workflow prints all.
SOME = ["intro", "notation", "why/permutation-equivariance", "encodings/museum-of-bugs", "schemes/rope", "glossary"]
# What stands on the page of chapter 1 behind an answer that a reader would press.
ANSWER = "not twice and good once"


@pytest.fixture(scope="module")
def tools(built):
    """The tools, which import each other by their names."""
    sys.path.insert(0, str(TOOLS))
    import epub
    import lighthouse
    import pdf
    import screenshots
    import whole

    yield {"epub": epub, "lighthouse": lighthouse, "pdf": pdf, "screenshots": screenshots, "whole": whole}
    sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def pages(tools):
    return tools["whole"].pages("test", SOME)


@pytest.fixture(scope="module")
def book(tools, tmp_path_factory):
    """The parts of the EPUB by their names."""
    epub = tools["epub"]
    epub.ROOT = tmp_path_factory.mktemp("epub")
    epub.TARGET = epub.ROOT / "book.epub"
    epub.main()
    with zipfile.ZipFile(epub.TARGET) as file:
        first = file.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        return {name.removeprefix("book/"): file.read(name) for name in file.namelist()}


def documents(book):
    return {name: ElementTree.fromstring(data) for name, data in book.items() if name.endswith((".xhtml", ".opf"))}


@pytest.mark.slow
def test_epub(book):
    """It holds every page and all that it lists, its links lead somewhere, and answers are open without a script."""
    found = documents(book)
    listed = {item.get("id"): item.get("href") for item in found["package.opf"].iter(f"{OPF}item")}
    assert {*listed.values()} == {*book} - {"mimetype", "META-INF/container.xml", "package.opf"}
    read = [listed[entry.get("idref")] for entry in found["package.opf"].iter(f"{OPF}itemref")]
    assert read == ["nav.xhtml", *(f"{name}.xhtml" for name in sources())]
    names = {name: [node.get("id") for node in page.iter() if node.get("id")] for name, page in found.items()}
    assert [name for name, ids in names.items() if len(ids) != len({*ids})] == []
    dead = []
    for name, page in found.items():
        nodes = [(a, "href") for a in page.iter(f"{XHTML}a")] + [(image, "src") for image in page.iter(f"{XHTML}img")]
        for address in (node.get(attribute) for node, attribute in nodes):
            file, _, place = address.partition("#")
            target = normpath(join(dirname(name), file)) if file else name
            if not re.match(r"https?:|mailto:", address) and (
                target not in book or place not in ["", *names.get(target, [])]
            ):
                dead.append((name, address))
    assert dead == []
    tags = {node.tag for page in found.values() for node in page.iter()}
    assert f"{XHTML}script" not in tags and "{http://www.w3.org/1998/Math/MathML}math" in tags
    assert all(node.get("open") == "" for page in found.values() for node in page.iter(f"{XHTML}details"))
    assert ANSWER in " ".join("".join(found["why/permutation-equivariance.xhtml"].itertext()).split())


@pytest.fixture(scope="module")
def pdf(built, chromium, tmp_path_factory):
    import pypdf

    # By itself, because the tests have a browser of theirs.
    file = tmp_path_factory.mktemp("pdf") / "some.pdf"
    subprocess.run([sys.executable, "tools/pdf.py", "--to", file, *SOME], cwd=ROOT, check=True)
    return pypdf.PdfReader(file)


def flat(outline):
    for each in outline:
        yield from flat(each) if isinstance(each, list) else [each]


@pytest.mark.slow
def test_pdf(pdf, pages):
    """One test, because printing takes its time: bookmarks, numbers of the contents, links, answers."""
    assert 40 < len(pdf.pages) < 150
    marks = [(each.title, pdf.get_destination_page_number(each)) for each in flat(pdf.outline)]
    expected = [title for page in pages for title in [page.title, *(title for _, title in page.sections)]]
    parts = {page.part for page in pages}
    # A part and its first page can have one name: what is compared is the rest, in its order.
    assert [title for title, _ in marks if title not in parts] == [title for title in expected if title not in parts]
    assert parts - {None} <= {title for title, _ in marks}
    # Letters that are drawn as one are letters again.
    words = [normalize("NFKC", "".join(page.extract_text().split())) for page in pdf.pages]
    first = dict(marks)[pages[0].title]
    for title, number in marks:
        bare = "".join(title.split())
        # Upright letters of a formula can come out as others.
        if bare.isascii() and title not in parts:
            assert bare in words[number], title
    listed = "".join(words[1:first])
    for page in pages:
        place = next(number for title, number in marks if title == page.title) + 1
        line = re.escape("".join(page.title.split()))
        assert re.search(rf"{line}\D*{place}(?!\d\d\d)", listed), page.title
    named = {name.lstrip("/") for name in pdf.named_destinations}
    links = [link.get_object() for page in pdf.pages for link in page.get("/Annots") or ()]
    inside = {str(link["/Dest"]).lstrip("/") for link in links if "/Dest" in link}
    assert len(inside) > len(expected) and inside <= named
    outside = [link["/A"].get("/URI", "") for link in links if "/A" in link]
    assert [address for address in outside if not address.startswith("https://")] == []
    assert "".join(ANSWER.split()) in "".join(words)


def test_one_page_is_a_book_with_its_title_and_the_scripts_of_its_figures(tools):
    html = tools["pdf"].document(tools["whole"].pages("pdf", ["encodings/relative-positions"]))
    scripts = re.findall(r'<script src="(_static/figures/[0-9a-f]{8}\.js)"></script>', html)
    assert len(scripts) == html.count("data-posembed=") > 1
    assert all((tools["whole"].HTML / script).is_file() for script in scripts)
    assert html.count('class="title-page"') == 1


def test_maps_are_in_the_colours_of_paper(tools):
    (page,) = tools["whole"].pages("test", ["encodings/museum-of-bugs"])
    pictures = page.article.select("svg.plot image")
    assert pictures and all(picture["class"] == ["on-light"] for picture in pictures)


@pytest.mark.slow
def test_pictures_are_as_wide_as_the_window_and_as_high_as_the_page(tools, browser, tmp_path, monkeypatch):
    changed = {"TARGET": tmp_path, "ROOT": tmp_path, "start_browser": lambda: contextlib.nullcontext(browser)}
    for name, value in changed.items():
        monkeypatch.setattr(tools["screenshots"], name, value)
    tools["screenshots"].main(["schemes/rope"])
    made = {path.stem: Image.open(path) for path in tmp_path.glob("*.png")}
    assert {*made} == {f"schemes-rope-{width}-{mode}" for width in WIDTHS for mode in ("light", "dark")}
    for name, picture in made.items():
        assert f"-{picture.width}-" in name and picture.height > 2000
        # A part that was not drawn has one colour.
        strips = [picture.crop((0, top, 390, top + 600)) for top in range(0, picture.height - 600, 600)]
        assert min(len(strip.getcolors(1 << 18)) for strip in strips) > 20, name


def test_what_cannot_be_made_is_said_in_a_line(tools, monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="pdf: there is no page 'why/wherefore'; there are intro, what-we-can-say,"):
        tools["whole"].pages("pdf", ["schemes/rope", "why/wherefore"])
    with pytest.raises(SystemExit, match="screenshots: there is no page 'why/wherefore'; there are alternatives"):
        tools["screenshots"].main(["why/wherefore"])
    monkeypatch.setattr(tools["screenshots"], "find_chromium", lambda: None)
    with pytest.raises(SystemExit, match="screenshots: it needs Chromium; install"):
        tools["screenshots"].main([])
    monkeypatch.setattr(tools["whole"], "HTML", tmp_path)
    with pytest.raises(SystemExit, match="epub: nothing is built yet; run `make book` first"):
        tools["epub"].main()


def test_a_low_score_ends_the_measurement_with_a_line(tools, monkeypatch, capsys):
    """With scores of our own: Lighthouse's need a machine that does nothing else."""
    scores = {"phone": {"Performance": 96, "SEO": 100}, "desktop": {"Performance": 94, "SEO": 100}}
    monkeypatch.setattr(tools["lighthouse"].shutil, "which", lambda name: name)
    monkeypatch.setattr(tools["lighthouse"], "measure", lambda address, device: scores[device])
    with pytest.raises(SystemExit, match="lighthouse: 1 of these have a score below 95: schemes/rope, desktop"):
        tools["lighthouse"].main(["schemes/rope"])
    assert capsys.readouterr().out.splitlines() == [
        "lighthouse: 1/1 schemes/rope, phone: Performance 96, SEO 100",
        "lighthouse: 1/1 schemes/rope, desktop: Performance 94, SEO 100 (medians of 3)",
    ]
    once_late = iter([{"SEO": 90}, {"SEO": 97}, {"SEO": 98}, {"SEO": 99}])
    monkeypatch.setattr(tools["lighthouse"], "measure", lambda address, device: next(once_late))
    with pytest.raises(SystemExit) as ended:
        tools["lighthouse"].main(["schemes/rope"])
    assert ended.value.code == 0


def test_pages_are_sent_compressed(tools, built):
    with serve_folder(tools["whole"].HTML, CompressingHandler) as address:
        request = urllib.request.urlopen(f"{address}/schemes/rope.html")
        sent = request.read()
        assert request.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(sent) == (ROOT / "_build" / "html" / "schemes" / "rope.html").read_bytes()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}/nothing.html")
