"""The page that posembed report writes: fit for a phone, accessible, in light, in dark and in print."""

import contextlib

import pytest
from safetensors.torch import save_file

from posembed import sinusoidal
from posembed.cli import main

from .axe import violations
from .colours import READABLE, WHITE, contrast, ink_and_paper


@pytest.fixture(scope="module")
def report(tmp_path_factory, fresh_environment):
    """The address of a page about two tables and a source that cannot be read."""
    folder = tmp_path_factory.mktemp("report")
    for name, n_positions in (("first", 64), ("second" + "x" * 60, 48)):
        save_file({"wpe.weight": sinusoidal(n_positions, 32)}, folder / f"{name}.safetensors")
    sources = [str(path) for path in sorted(folder.glob("*.safetensors"))]
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setenv("PYTHONPATH", fresh_environment["PYTHONPATH"])
        main(["report", *sources, str(folder / "missing"), "-o", str(folder / "page.html")])
    return (folder / "page.html").as_uri()


def test_fits_and_is_accessible(open_address, report):
    page = open_address(report, color_scheme="dark")
    for width, colours, stacked in ((1280, "light", False), (390, "dark", True)):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=colours)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        for part in ("p", "pre", "td", "tbody th"):
            assert contrast(*ink_and_paper(page.locator(part).first)) >= READABLE, part
        # Pictures are side by side on a desktop and stacked on a phone.
        first, second = (picture.bounding_box() for picture in page.locator("img").all()[:2])
        assert (first["x"] == second["x"]) == stacked
        assert (first["y"] == second["y"]) != stacked
    # Dark on light.
    page.emulate_media(media="print")
    for part in ("h2", "p", "td", "pre"):
        assert contrast(ink_and_paper(page.locator(part).first)[0], WHITE) >= READABLE, part
