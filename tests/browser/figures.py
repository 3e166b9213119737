"""What drives every figure: a page that holds it, opened once for each kind of window, and its parts."""

import contextlib
import functools
import json
import re

from playwright.sync_api import expect

from .built import HTML
from .chromium import Record, into_view, outside, visit, wait_until_still

# A phone and a desktop.
WIDTHS = [390, 1280]
TOUCHED = {"has_touch": True, "is_mobile": True}
NUMBER = r"[-−]?\d+(?:\.\d+)?(?:e[-−]?\d+)?"


def numbers(text):
    """Read the numbers of a text, or of a path's coordinates."""
    return [float(each.replace("−", "-")) for each in re.findall(NUMBER, text)]


def shows(text, value, rounding):
    """Whether the first number of a text agrees with a value, to the decimals that it has."""
    decimals = len(re.search(r"\d+(?:\.(\d+))?", text)[1] or "")
    return abs(numbers(text)[0] - value) <= 0.5 * 10**-decimals + rounding


def attributes(locator, name):
    """List an attribute of every element that is found."""
    return locator.evaluate_all("(nodes, name) => nodes.map((node) => node.getAttribute(name))", name)


class Figure:
    """A figure of a page, found by its label, because a page can hold several."""

    chapter: str
    label: str
    # What stands in one line, and must not be longer than its place.
    lines: str
    # By how many pixels the boxes of two texts in a drawing may overlap, since they are a little higher than their
    # digits; and by how many the number at the end of an axis may stand out of its drawing, which cuts nothing off.
    overlap, overhang = 0, 1
    # Whether its switches are on at first, and the steps, such as `do("press", "Start again")`, to where it begins.
    switched, begins = False, ()

    def __init__(self, page):
        self.page = page
        self.selector = f".pe-figure[aria-label='{self.label}']"
        self.root = page.locator(self.selector)
        self.status = self.root.get_by_role("status")
        expect(self.root).to_have_count(1)

    def given(self, *names):
        """What the page gives to this figure: the one state that has these names."""
        (state,) = self.given_all(*names)
        return state

    def given_all(self, *names):
        """What the page gives to its figures of this kind: the states that have these names."""
        addresses = attributes(self.page.locator("[data-script]"), "data-script")
        scripts = [(HTML / "_static" / name.partition("_static/")[2]).read_text(encoding="utf-8") for name in addresses]
        found = re.findall(r"^const state = (.*);$", "\n".join(scripts), re.MULTILINE)
        return [state for state in map(json.loads, found) if state.keys() >= set(names)]

    def button(self, name):
        return self.root.get_by_role("button", name=name, exact=True)

    def press(self, name):
        self.button(name).click()

    def choice(self, name):
        return self.root.get_by_role("combobox", name=name, exact=True)

    def switch(self, name):
        self.root.get_by_role("switch", name=name).click()

    def slider(self, name):
        return self.root.get_by_role("slider", name=name, exact=True)

    def key(self, name, key):
        """Press a key in a slider."""
        self.slider(name).press(key)

    def slide(self, **places):
        """Put sliders at these of their places, counted from 0."""
        for name, place in places.items():
            self.slider(name.replace("_", " ")).fill(str(place))

    def swipe(self, name, places):
        """Move a finger along a slider, over these places in pixels from its left end."""
        box = self.slider(name).bounding_box()
        touch(self.page, [(box["x"] + place, box["y"] + box["height"] / 2) for place in places])

    def reset(self):
        """Bring a figure that another test has used back to where it begins."""
        self.page.mouse.up()
        self.page.mouse.move(1, 1)
        for running in self.root.get_by_role("button", name=re.compile("^pause ")).all():
            running.click()
        for switch in self.root.get_by_role("switch", checked=not self.switched).all()[::-1]:
            switch.click()
        into_view(self.root)
        for step in self.begins:
            step(self)
        wait_until_still(self.page)

    def height(self):
        return self.root.bounding_box()["height"]

    def too_wide(self):
        """Name what stands out of the figure, or stands where only scrolling would show it."""
        wide, visible = self.root.evaluate("(node) => [node.scrollWidth, node.clientWidth]")
        return [*outside(self.page, self.selector), *([f"{wide - visible} px to scroll"] if wide > visible else [])]

    def changes(self):
        """What a reader can do, each with something that is read out: a step of `changed_by`."""
        return [functools.partial(step, self) for step in self.changed_by]

    def states(self):
        """Bring the figure to states with the longest and shortest words and numbers, by the steps of `shown_by`."""
        for steps in self.shown_by:
            for step in steps:
                step(self)
            yield


@contextlib.contextmanager
def opened_figures(browser, site):
    """Yield a function that opens a figure, once for each kind of window; what went wrong on a page is an error."""
    figures, records = {}, []

    def opened(kind, width=1280, **options):
        key = (kind, width, *sorted(options.items()))
        if key not in figures:
            page = browser.new_page(viewport={"width": width, "height": 900}, **options)
            records.append(Record(page))
            visit(page, f"{site}/{kind.chapter}")
            figures[key] = kind(page)
        figures[key].reset()
        return figures[key]

    yield opened
    for figure in figures.values():
        figure.page.close()
    assert [fault for record in records for fault in record.faults()] == []


def touch(page, places):
    """Move a finger over the page, from the first of the places to the last."""
    session = page.context.new_cdp_session(page)
    kinds = ["touchStart", *["touchMove"] * (len(places) - 1)]
    for kind, (x, y) in zip(kinds, places, strict=True):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()
