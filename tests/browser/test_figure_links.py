"""What a reader sets in a figure stands in the address: who opens it sees the same, and what is damaged is let be."""

import re
from operator import methodcaller as do

import pytest
from playwright.sync_api import expect

from .chromium import into_view
from .kinds import Comparison, Lookup, Models, Probe, Properties, Repairs, Rotation, Shuffle, Sinusoids

SET = {
    Shuffle: [do("switch", "add positions"), do("move", "coding", "ArrowLeft")],
    Repairs: [do("key", "wipe", "ArrowLeft"), do("line", 2)],
    Comparison: [do("pick", "NoPos", 3), do("switch", "RoPE"), do("press", "Show the curve")],
    Models: [do("type", "<b>We hold</b>"), do("pick", right="RoPE", positions="0, 2, 4, …: stretched")],
    Lookup: [do("press", "5 ran"), do("press", "Take a gradient step")],
    Rotation: [do("view", "rope"), do("slide", query_at=4, key_at=20, shift_both=33)],
    Sinusoids: [do("choose", 768, 1e6, 127)],
    Properties: [do("pick", 1), do("keep", 20, 11)],
    Probe: [do("pick", split="half", points="permuted labels"), do("key", "position", "Home")],
}
KINDS = [each if k < 4 else pytest.param(each, marks=pytest.mark.slow) for k, each in enumerate(SET)]
ADDRESS = re.compile(r"#(pe-[0-9a-f]{8})=(\w+)=(\S+)$")
# Numbers, texts, and where controls stand; which rows the last step has changed is not kept.
KEPT = "input, select, [aria-pressed], [role=slider], td:not(.pe-mark), text, .pe-word"
SEEN = f"""(figure) => [...figure.querySelectorAll("{KEPT}")]
  .map((node) => [node.value, node.checked, node.ariaPressed, node.ariaValueNow, node.textContent].join())"""
# An address with a checksum that is right, of a text that no figure wrote.
FORGED = """([name, text]) => `#${name}=${[...(name + text)]
  .reduce((sum, each) => (31 * sum + each.codePointAt(0)) % 2 ** 32, 0).toString(36)}=${encodeURIComponent(text)}`"""


def found(kind, page):
    """The figure of a page that was opened at its address, untouched."""
    page.locator(f".pe-figure[aria-label='{kind.label}']").wait_for()
    figure = kind(page)
    if kind is Models:
        figure.wait()
    return figure


def set_by_hand(kind, page):
    """The figure, set, when the address has what was set last."""
    figure, before = kind(page), page.url
    into_view(figure.root)
    for step in SET[kind]:
        step(figure)
    page.mouse.move(1, 1)
    page.wait_for_function("(before) => location.href !== before", arg=before)
    page.wait_for_timeout(500)
    assert ADDRESS.search(page.url)
    return figure


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_who_opens_the_address_sees_what_was_set(open_address, site, built, kind):
    for folder in (site, built.as_uri()) if kind is Shuffle else (site,):
        page = open_address(f"{folder}/{kind.chapter}", awake=True)
        first = kind(page).root.evaluate(SEEN)
        wanted = set_by_hand(kind, page).root.evaluate(SEEN)
        assert wanted != first
        other = found(kind, open_address(page.url, width=390 if kind is Shuffle else 1280))
        expect(other.root).to_be_in_viewport()
        assert other.root.evaluate(SEEN) == wanted
        # What was typed is text.
        assert other.root.locator("b", has_text=re.compile("^We hold$")).count() == 0


def test_nothing_is_kept_of_a_figure_that_was_not_touched(open_address, site):
    page = open_address(f"{site}/{Comparison.chapter}", awake=True)
    into_view(Comparison(page).root)
    # A mouse that passes chooses a place.
    box = Comparison(page).root.get_by_role("img").first.bounding_box()
    before = Comparison(page).status.text_content()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    expect(Comparison(page).status).not_to_have_text(before)
    page.wait_for_timeout(500)
    assert "#" not in page.url


def test_what_is_damaged_of_another_figure_or_forged_is_let_be(open_address, site):
    """And no error is reported: `open_address` would say it."""
    page = open_address(f"{site}/{Shuffle.chapter}", awake=True)
    first = Shuffle(page).order()
    assert set_by_hand(Shuffle, page).order() != first
    name, sign, text = ADDRESS.search(page.url).groups()
    mean = '{"order":["<img src=x onerror=alert(1)>"],"positions":"</script><b>"}'
    for address in (
        f"#{name}={sign}={text[:-4]}",
        f"#{name}={sign}={text.replace('true', 'false')}",
        f"#{name}={sign}=%E0%A4%A",
        f"#{name}",
        f"#{name}==",
        f"#pe-00000000={sign}={text}",
        "#%\"'=<b>=",
        *(page.evaluate(FORGED, [name, each]) for each in (mean, "null", "[1]", '{"__proto__":{"order":1}}', "{")),
    ):
        other = open_address(f"{site}/{Shuffle.chapter}{address}")
        into_view(other.locator("[data-posembed]").first)
        assert found(Shuffle, other).order() == first
        assert other.locator("img[src=x]").count() == 0


def test_sections_and_the_way_back_go_on_working(open_address, site):
    page = open_address(f"{site}/{Shuffle.chapter}", awake=True)
    start, section = page.url, page.locator("section[id]").last.get_attribute("id")
    n_entries = page.evaluate("history.length")
    figure = set_by_hand(Shuffle, page)
    kept, order = page.url, figure.order()
    # An address takes the place of the one before: the way back leads where it led.
    assert page.evaluate("history.length") == n_entries
    page.evaluate("(id) => (location.hash = id)", section)
    expect(page.locator(f"[id='{section}']")).to_be_in_viewport()
    page.wait_for_timeout(400)
    assert page.url == f"{start}#{section}"
    page.go_back()
    assert (page.url, figure.order()) == (kept, order)
    # One that is put into the bar of an open page.
    figure.press("First order")
    page.wait_for_timeout(500)
    page.evaluate("() => scrollTo(0, document.documentElement.scrollHeight)")
    page.evaluate("(address) => location.assign(address)", kept)
    expect(figure.root).to_be_in_viewport()
    assert figure.order() == order
