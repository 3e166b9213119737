"""The page that posembed report writes: fit for a phone, accessible, in light, in dark and in print."""

import pytest
import torch

from posembed import sinusoidal
from posembed.report import write_report

from .axe import violations
from .chromium import styles
from .colours import LIGHT_AND_DARK, READABLE, WHITE, contrast, ink_and_paper

LONG = "an/owner-with-a-name-that-does-not-end/" + "x" * 80


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The address of a page about a table that is well, one with a row of NaN, and a source that cannot be read."""
    well, ill = sinusoidal(64, 32), sinusoidal(48, 32).clone()
    ill[3] = torch.nan
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report([well, ill, torch.zeros(2, 2, 2)], path, label=["well", LONG, "missing"])
    return path.as_uri()


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_fits_and_is_accessible(open_address, report, width, colours):
    page = open_address(report, width=width, color_scheme=colours)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    for part in ("figcaption", ".kind svg text", ".refusal", "td .what"):
        ink, paper = ink_and_paper(page.locator(part).first)
        if part.endswith("text"):
            ink = styles(page.locator(part), "fill")[0]
        assert contrast(ink, paper) >= READABLE, part


def test_side_by_side_on_a_desktop_and_stacked_on_a_phone(open_address, report):
    for width, stacked in ((1280, False), (390, True)):
        page = open_address(report, width=width)
        first, second = (figure.bounding_box() for figure in page.locator("#rows figure").all())
        assert (first["x"] == second["x"]) == stacked
        assert (first["y"] == second["y"]) != stacked


def test_is_printed_dark_on_light(open_address, report):
    page = open_address(report, color_scheme="dark")
    page.emulate_media(media="print")
    for part in ("h2", "figcaption", "td .what", ".refusal"):
        assert contrast(ink_and_paper(page.locator(part).first)[0], WHITE) >= READABLE, part
