"""Chromium for the browser tests and the pictures: find it, serve a folder to it, open pages, note what goes wrong."""

import contextlib
import functools
import gzip
import http.server
import os
import shutil
import threading
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
HOME = "http://127.0.0.1"
# Without a graphics card, with nothing of its own to say on the network, and with no way to another host.
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@functools.cache
def find_chromium():
    """Return the path of the browser named in POSEMBED_CHROMIUM, else of one on PATH, else of playwright's own."""
    named = os.environ.get("POSEMBED_CHROMIUM")
    paths = map(shutil.which, [named] if named else NAMES)
    found = next((Path(path) for path in paths if path), None)
    return found if found or named else _playwrights_own()


def _playwrights_own():
    try:
        with sync_playwright() as playwright:
            path = Path(playwright.chromium.executable_path)
    except Error:
        return None
    return path if path.exists() else None


@contextlib.contextmanager
def serve_folder(folder, handler=None):
    """Serve a folder on this machine only, on a free port, and yield its address."""
    handler = functools.partial(handler or QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"{HOME}:{server.server_port}"
        finally:
            server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """Keep requests out of the tests' output."""


class CompressingHandler(QuietHandler):
    """Files as a host of pages sends them: text compressed."""

    def do_GET(self):
        """Send a file."""
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        data, kind = path.read_bytes(), self.guess_type(path)
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)
        self.send_header("Cache-Control", "max-age=600")
        if kind.startswith("text/") or kind.endswith(("javascript", "json", "xml")):
            data = gzip.compress(data)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def start_browser():
    """Start Chromium and yield it; it ends with the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def open_page(width, height, colour_scheme="light"):
    """Yield an empty page in a browser of its own; when the block ends, what went wrong on the page is raised."""
    with start_browser() as browser:
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colour_scheme)
        record = Record(page)
        yield page
    if record.faults():
        raise RuntimeError("; ".join(record.faults()))


class Record:
    """What a page did from now on: its errors, its messages, the requests refused, and those to other hosts."""

    def __init__(self, page):
        self.errors, self.messages, self.refused, self.elsewhere, self._finished = [], [], [], [], []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note_message)
        page.on("request", self._note_request)
        page.on("response", self._note_response)
        page.on("requestfinished", lambda request: self._finished.append(request))

    def _note_message(self, message):
        if message.type == "error":
            self.messages.append(f"{message.text} ({message.location.get('url', '')})")

    def _note_request(self, request):
        if not request.url.startswith((HOME, "blob:", "data:", "file:")):
            self.elsewhere.append(request.url)

    def _note_response(self, response):
        if response.status >= 400:
            self.refused.append(f"{response.status} {response.url}")

    def faults(self):
        """List all of them, in words."""
        return [
            *(f"error: {error}" for error in self.errors),
            *(f"console: {message}" for message in self.messages),
            *(f"refused: {answer}" for answer in self.refused),
            *(f"another host: {url}" for url in self.elsewhere),
        ]

    def transferred(self):
        """Count the bytes of all response bodies; by itself Python's server does not compress them."""
        return sum(request.sizes()["responseBodySize"] for request in self._finished if request.url.startswith(HOME))


def visit(page, address):
    """Go to an address and wait until the page's figures run and its fonts are there."""
    answer = page.goto(address)
    if answer and not answer.ok:
        raise RuntimeError(f"{address} answers {answer.status}; is the book being built at this moment?")
    wait_until_ready(page)


def wait_until_ready(page):
    """Look at each of the page's figures until it runs, which it does when it comes near, and wait for the fonts."""
    # At a link's place nothing is scrolled.
    for figure in [] if "#" in page.url else page.locator(".posembed-root").all():
        into_view(figure)
        figure.locator(".pe-figure").wait_for(state="attached")
        page.evaluate("() => scrollTo(0, 0)")
    page.evaluate(FONTS)
    wait_until_still(page)


def wait_until_still(page):
    """Wait until no transition or animation runs; colours are final only then."""
    page.evaluate(STILL)


# What a page promises it may never keep, and an evaluation has no time limit of its own.
FONTS = """() => Promise.race([
  document.fonts.ready.then(() => null),
  new Promise((_, refuse) => setTimeout(() => refuse(new Error("no fonts after a minute")), 60000)),
])"""
# A paused animation never ends, and one of a page that is not drawn may take its time: both are still enough.
STILL = """() => Promise.race([
  Promise.allSettled(document.getAnimations()
    .filter((each) => each.playState === "running" && each.effect.getComputedTiming().endTime < Infinity)
    .map((animation) => animation.finished)),
  new Promise((resolve) => setTimeout(resolve, 5000)),
])"""


def into_view(locator, block="center"):
    """Scroll at once until an element stands in the middle of the window, or at its "start" or "end"."""
    locator.evaluate("(node, block) => node.scrollIntoView({ block, behavior: 'instant' })", block)


def middle(locator):
    """Return where on the page the middle of an element is."""
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def styles(locator, name):
    """List a style as the browser has computed it, of every element that is found."""
    return locator.evaluate_all("(nodes, name) => nodes.map((node) => getComputedStyle(node)[name])", name)


@contextlib.contextmanager
def printed(page):
    """A page as it is printed, inside the block."""
    page.emulate_media(media="print")
    wait_until_still(page)
    try:
        yield
    finally:
        page.emulate_media(media="screen")


def outside(page, selector="body"):
    """Name the elements that stand out of a part of the page on the right and are not in something that scrolls."""
    return page.evaluate(OUTSIDE, selector)


OUTSIDE = """(selector) => {
  const part = document.querySelector(selector);
  const edge = Math.min(part.getBoundingClientRect().right, innerWidth) + 1;
  const clips = (node) => getComputedStyle(node).overflowX !== "visible";
  const scrolls = (node) => node !== part && (clips(node) || scrolls(node.parentElement));
  const right = (node) => Math.round(node.getBoundingClientRect().right);
  return [...part.querySelectorAll("*")]
    .filter((node) => node.checkVisibility() && right(node) > edge && !scrolls(node.parentElement))
    .map((node) => `${node.tagName} ${node.getAttribute("class")} to ${right(node)}`);
}"""
