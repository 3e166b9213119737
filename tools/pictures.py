"""Draw the pictures that are committed: the maps on the landing page, and the README's screenshot of the built book.

The screenshot needs Chromium; where there is none, only the maps are drawn.
"""

import io
import sys
from pathlib import Path

import numpy as np
import torch.nn.functional as F
from PIL import Image

from posembed import load_encoder
from posembed.figures.looks import DIVERGING, DIVERGING_ON_DARK

ROOT = Path(__file__).resolve().parent.parent
MAPS = {
    ROOT / "book" / "assets" / f"what-it-learned{name}.webp": colours
    for name, colours in {"": DIVERGING, "-dark": DIVERGING_ON_DARK}.items()
}
SCREENSHOT = ROOT / "book" / "assets" / "screenshot.webp"


def position_map(colours):
    """Cosine similarity of every two rows of the encoder's real position table, in colours of the book's maps."""
    table = load_encoder().model.embeddings.position_embeddings.weight.detach().double()
    rows = F.normalize(table, dim=1)
    shades = colours((rows @ rows.T).numpy() / 2 + 0.5, bytes=True)
    return Image.fromarray(np.asarray(shades)[..., :3])


def main():
    for path, colours in MAPS.items():
        position_map(colours).save(path, quality=82, method=6)
        print(f"pictures: {path.relative_to(ROOT)}, {path.stat().st_size / 1e3:.0f} kB")
    sys.path.insert(0, str(ROOT / "tests" / "browser"))
    from chromium import find_chromium, open_page, serve_folder

    if find_chromium() is None or not (ROOT / "_build" / "html" / "index.html").exists():
        sys.exit("pictures: the screenshot needs Chromium and the built book (make book); it was left as it is")
    with serve_folder(ROOT / "_build" / "html") as address, open_page(1280, 800) as page:
        page.goto(f"{address}/why/permutation-equivariance.html")
        # A figure starts when it comes near.
        page.locator("#try-it-shuffle-the-words").scroll_into_view_if_needed()
        page.locator(".pe-figure .pe-word").first.wait_for()
        page.get_by_role("switch", name="add positions").check()
        page.get_by_role("button", name="coding").press("ArrowLeft")
        page.locator("#try-it-shuffle-the-words").evaluate("e => e.scrollIntoView()")
        page.wait_for_timeout(500)
        Image.open(io.BytesIO(page.screenshot())).save(SCREENSHOT, quality=85, method=6)
    print(f"pictures: {SCREENSHOT.relative_to(ROOT)}, {SCREENSHOT.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
