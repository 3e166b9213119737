"""Make the built book one EPUB 3, which needs no script: its pages as XHTML, with their pictures and MathML.

Usage: python tools/epub.py
"""

import datetime
import re
import time
import uuid
import zipfile
from base64 import b64decode
from html import escape
from posixpath import relpath

import whole
from bs4 import Comment, Tag
from chapters import BUILD, ROOT

TARGET = BUILD / "positional-embeddings.epub"
STYLES = ROOT / "tools" / "epub.css"
# The style sheet that holds the font of the formulas.
FORMULAS = whole.HTML / "_static" / "formulas.css"
TAG, FONT_DATA = re.compile(r"<[^>]*>"), re.compile(r"base64,([^\"]+)")
COVER = "_images/what-it-learned.webp"
FONT = "formulas.woff2"
KINDS = {"xhtml": "application/xhtml+xml", "css": "text/css", "woff2": "font/woff2", "jpg": "image/jpeg"}
KINDS |= {"svg": "image/svg+xml"} | {name: f"image/{name}" for name in ("png", "webp", "gif")}
XML = '<?xml version="1.0" encoding="utf-8"?>\n'
XHTML = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'
# Of a script, or of HTML that is no XHTML.
DROPPED, ATTRIBUTES = (
    "script, style, link",
    ("data-posembed", "data-script", "tabindex", "border", "valign", "align", "loading"),
)


CONTAINER = (
    f'{XML}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def xhtml(page):
    """A page as a document of its own."""
    article = page.article
    for node in article.select(DROPPED):
        node.decompose()
    for comment in article.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    for node in article.find_all(True):
        for name in ATTRIBUTES:
            node.attrs.pop(name, None)
    for formula in article.find_all("math"):
        formula["xmlns"] = "http://www.w3.org/1998/Math/MathML"
    # HTML has names in lower case.
    for drawing in article.select("svg.plot"):
        drawing["viewBox"] = drawing.attrs.pop("viewbox")
        for node in drawing.find_all("clippath"):
            node.name = "clipPath"
        for node in drawing.find_all("image"):
            node["preserveAspectRatio"] = node.attrs.pop("preserveaspectratio", "none")
    # MathML 3 knows these of few elements only.
    for node in article.select("math :is([displaystyle], [scriptlevel]):not(mstyle)"):
        sizes = {name: node.attrs.pop(name) for name in ("displaystyle", "scriptlevel") if name in node.attrs}
        node.wrap(Tag(name="mstyle", attrs=sizes))
    for link in article.find_all("a", href=True):
        file, place = page.target(link["href"])
        if file is not None:
            there = relpath(file.removesuffix(".html") + ".xhtml", folder(page))
            link["href"] = there + (f"#{place}" if place else "")
    return wrapped(page.title, relpath("book.css", folder(page)), str(article))


def folder(page):
    return page.name.rpartition("/")[0] or "."


def wrapped(title, styles, body):
    return (
        f'{XML}<!DOCTYPE html>\n<html {XHTML} lang="en" xml:lang="en"><head><title>{escape(title)}</title>'
        f'<link rel="stylesheet" href="{styles}"/></head><body>{body}</body></html>'
    )


def navigation(pages):
    """The contents: parts, pages and sections."""
    lines = []
    for part, group in whole.parts(pages):
        entries = "".join(map(entry, group))
        lines.append(f"<li><span>{escape(part)}</span><ol>{entries}</ol></li>" if part else entries)
    body = f'<nav epub:type="toc" id="toc"><h1>Contents</h1><ol>{"".join(lines)}</ol></nav>'
    return wrapped("Contents", "book.css", body)


def entry(page):
    address = f"{page.name}.xhtml"
    sections = "".join(
        f'<li><a href="{escape(f"{address}#{place}")}">{escape(title)}</a></li>' for place, title in page.sections
    )
    return f'<li><a href="{address}">{escape(page.title)}</a>{f"<ol>{sections}</ol>" if sections else ""}</li>'


def package(pages, pictures, config):
    """What the book holds, and in which order it is read."""
    day = datetime.datetime.fromtimestamp((whole.HTML / "index.html").stat().st_mtime, datetime.UTC)
    name = uuid.uuid5(uuid.NAMESPACE_URL, config["repository"]["url"])
    items = [item("nav", "nav.xhtml", "nav"), item("styles", "book.css"), item("font", FONT)]
    for number, page in enumerate(pages):
        properties = [name for name, tag in (("mathml", "math"), ("svg", "svg")) if page.article.find(tag)]
        items.append(item(f"page-{number}", f"{page.name}.xhtml", " ".join(properties)))
    for number, path in enumerate(pictures):
        items.append(item(f"picture-{number}", path, "cover-image" if path == COVER else ""))
    spine = "".join(f'<itemref idref="page-{number}"/>' for number in range(len(pages)))
    return (
        f'{XML}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="name" xml:lang="en">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="name">urn:uuid:{name}</dc:identifier>'
        f"<dc:title>{escape(config['title'])}</dc:title><dc:creator>{escape(config['author'])}</dc:creator>"
        f"<dc:language>en</dc:language><dc:rights>{escape(TAG.sub('', config['html']['extra_footer']))}</dc:rights>"
        f'<meta property="dcterms:modified">{day:%Y-%m-%dT%H:%M:%SZ}</meta></metadata>'
        f'<manifest>{"".join(items)}</manifest><spine><itemref idref="nav"/>{spine}</spine></package>'
    )


def item(name, path, properties=""):
    kind = KINDS[path.rpartition(".")[2]]
    more = f' properties="{properties}"' if properties else ""
    return f'<item id="{name}" href="{path}" media-type="{kind}"{more}/>'


def main():
    """Write the EPUB."""
    start, pages, config = time.monotonic(), whole.pages("epub"), whole.config()
    pictures = sorted({move_picture(page, image) for page in pages for image in page.article.find_all("img")})
    files = {f"{page.name}.xhtml": xhtml(page) for page in pages}
    files |= {"nav.xhtml": navigation(pages), "package.opf": package(pages, pictures, config)}
    files |= {
        "book.css": STYLES.read_bytes(),
        FONT: b64decode(FONT_DATA.search(FORMULAS.read_text(encoding="utf-8"))[1]),
    }
    files |= {path: (whole.HTML / path).read_bytes() for path in pictures}
    with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_DEFLATED) as book:
        # Readers look for it at this place of the file.
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr("META-INF/container.xml", CONTAINER)
        for path, content in files.items():
            book.writestr(f"book/{path}", content)
    size, seconds = TARGET.stat().st_size / 1e6, time.monotonic() - start
    print(f"epub: {TARGET.relative_to(ROOT)}, {len(pages)} pages, {size:.1f} MB, in {seconds:.0f} s")


def move_picture(page, image):
    """Name a picture of a page as it is named in the whole, and let the page lead there."""
    path, _ = page.target(image["src"])
    image["src"] = relpath(path, folder(page))
    return path


if __name__ == "__main__":
    main()
