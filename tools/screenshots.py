"""Take a picture of every page of the built book: on a phone and on a desktop, in light and in dark.

Usage: python tools/screenshots.py [PAGE ...]    such as intro or schemes/rope; by default all
"""

import io
import sys
import time

import whole
from chapters import BUILD, ROOT
from PIL import Image

sys.path.insert(0, str(ROOT / "tests" / "browser"))
from chromium import find_chromium, serve_folder, start_browser, visit, wait_until_still

TARGET = BUILD / "screenshots"
WIDTHS, MODES = (390, 1280), ("light", "dark")
# Chromium draws no higher picture at once.
HIGHEST = 16_000
EAGER = """() => {
  // Sections that a phone draws when they come near.
  const all = document.createElement("style");
  all.textContent = ".bd-article section { content-visibility: visible !important; }";
  document.head.append(all);
  return Promise.all([...document.images].map((image) => {
    image.loading = "eager";
    return image.decode().catch(() => null);
  }));
}"""


def names():
    """Every page that shows something, as it is named in an address."""
    found = (path.relative_to(whole.HTML) for path in sorted(whole.HTML.rglob("*.html")))
    # The first address only leads to the first page.
    return [
        path.with_suffix("").as_posix() for path in found if path.parts[0] != "_static" and str(path) != "index.html"
    ]


def take(page, address):
    """A picture of a whole page, its figures drawn."""
    visit(page, address)
    page.evaluate(EAGER)
    wait_until_still(page)
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    picture = Image.new("RGB", (width, height))
    for top in range(0, height, HIGHEST):
        part = {"x": 0, "y": top, "width": width, "height": min(HIGHEST, height - top)}
        data = page.screenshot(full_page=True, clip=part, animations="disabled")
        picture.paste(Image.open(io.BytesIO(data)), (0, top))
    return picture


def main(chosen):
    """Write the pictures."""
    if find_chromium() is None:
        sys.exit(whole.NO_CHROMIUM.format("screenshots"))
    whole.needs_book("screenshots")
    pages = names()
    if unknown := sorted({*chosen} - {*pages}):
        sys.exit(f"screenshots: there is no page {unknown[0]!r}; there are {', '.join(pages)}")
    pages, start = chosen or pages, time.monotonic()
    TARGET.mkdir(parents=True, exist_ok=True)
    with serve_folder(whole.HTML) as address, start_browser() as browser:
        for number, name in enumerate(pages, 1):
            print(f"screenshots: {number} of {len(pages)}, {name}", flush=True)
            for width in WIDTHS:
                for mode in MODES:
                    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=mode)
                    path = TARGET / f"{name.replace('/', '-')}-{width}-{mode}.png"
                    take(page, f"{address}/{name}.html").save(path)
                    page.close()
    made = len(pages) * len(WIDTHS) * len(MODES)
    print(f"screenshots: {made} in {TARGET.relative_to(ROOT)}, in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
