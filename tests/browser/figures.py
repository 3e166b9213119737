"""What drives every figure: a page that holds it, opened once for each kind of window, and its parts."""

import contextlib

from playwright.sync_api import expect

from .chromium import Record, outside, visit, wait_until_still

# A phone and a desktop.
WIDTHS = [390, 1280]


class Figure:
    """A figure of a page, found by its label, because a page can hold several."""

    chapter: str
    label: str

    def __init__(self, page):
        self.page = page
        self.selector = f".pe-figure[aria-label='{self.label}']"
        self.root = page.locator(self.selector)
        self.status = self.root.get_by_role("status")
        expect(self.root).to_have_count(1)

    def press(self, name):
        self.root.get_by_role("button", name=name, exact=True).click()

    def switch(self, name):
        self.root.get_by_role("switch", name=name).click()

    def slider(self, name):
        return self.root.get_by_role("slider", name=name, exact=True)

    def slide(self, **places):
        """Put sliders at these of their places, counted from 0."""
        for name, place in places.items():
            self.slider(name.replace("_", " ")).fill(str(place))

    def reset(self):
        """Bring a figure that another test has used back to where it begins."""
        self.page.mouse.up()
        for switch in self.root.get_by_role("switch", checked=True).all()[::-1]:
            switch.click()
        self.root.evaluate("(node) => node.scrollIntoView({ block: 'center', behavior: 'instant' })")

    def height(self):
        return self.root.bounding_box()["height"]

    def too_wide(self):
        """Name what stands out of the figure, or stands where only scrolling would show it."""
        wide, visible = self.root.evaluate("(node) => [node.scrollWidth, node.clientWidth]")
        return [*outside(self.page, self.selector), *([f"{wide - visible} px to scroll"] if wide > visible else [])]


@contextlib.contextmanager
def opened_figures(browser, site):
    """Yield a function that opens a figure, once for each kind of window; what went wrong on a page is an error."""
    figures, records = {}, []

    def opened(kind, width, **options):
        key = (kind, width, *sorted(options.items()))
        if key not in figures:
            page = browser.new_page(viewport={"width": width, "height": 900}, **options)
            records.append(Record(page))
            visit(page, f"{site}/{kind.chapter}")
            figures[key] = kind(page)
        figures[key].reset()
        wait_until_still(figures[key].page)
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
