import pytest

from .built import HTML, NOT_BUILT
from .chromium import Record, find_chromium, serve_folder, start_browser, visit
from .figures import WIDTHS, opened_figures

NO_CHROMIUM = "no Chromium: install chromium or google-chrome, or name one in POSEMBED_CHROMIUM"


@pytest.fixture(scope="session")
def chromium():
    """The path of the browser; without one what needs it is skipped, and counted."""
    if (path := find_chromium()) is None:
        pytest.skip(NO_CHROMIUM)
    return path


@pytest.fixture(scope="session")
def browser(chromium):
    """One Chromium for all tests."""
    with start_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def built():
    """The folder of the built book."""
    if not (HTML / "index.html").exists():
        pytest.fail(NOT_BUILT, pytrace=False)
    return HTML


@pytest.fixture(scope="session")
def site(built):
    """The address of the built book, on this machine only."""
    with serve_folder(built) as address:
        yield address


@pytest.fixture
def open_address(browser):
    """A function that opens an address in a window of its own; a page that reports an error fails the test.

    With `awake` each figure of the page has been looked at and runs; else they wait, as for a reader.
    """
    contexts, records = [], []

    def open_address(address, *, width=1280, height=900, awake=False, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        page = contexts[-1].new_page()
        records.append(Record(page))
        visit(page, address) if awake else page.goto(address)
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert [fault for record in records for fault in record.faults()] == []


@pytest.fixture(params=WIDTHS, ids=lambda width: f"{width}px")
def width(request):
    """A phone's width, and a desktop's."""
    return request.param


@pytest.fixture(scope="module")
def opened(browser, site):
    """A function that opens a figure, once for each kind of window; the tests of a module share the pages."""
    with opened_figures(browser, site) as opened:
        yield opened
