"""What is being done, told while somebody waits: a line on stderr every ten seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

# Seconds between two lines.
EVERY = 10.0


def one_line(text: object) -> str:
    """Write a text in one line without control characters, which a file's name or a header could bring along."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words)


def say(message: str) -> None:
    """Write one line to stderr."""
    print(f"posembed: {one_line(message)}", file=sys.stderr)


@contextmanager
def show_progress(doing: str, steps: int | None = None) -> Iterator[Callable[..., None]]:
    """Say from time to time what is being done, how far it is, and about how long the rest takes.

    Yields:
        A function to be called with what is being done next, and with how many steps are done, where they are counted.
    """
    began, over = time.monotonic(), threading.Event()
    # What is being done, how many steps are done, and how many were before: some, where a run is taken up again.
    state: list[Any] = [doing, 0, None]

    def tell(text: str, done: int = 0) -> None:
        state[:] = text, done, max(0, done - 1) if state[2] is None else state[2]

    def write() -> None:
        while not over.wait(EVERY):
            (text, done, before), seconds = state, time.monotonic() - began
            counted = f", {done} of {steps}" if steps else ""
            left = f", about {_clock(seconds * (steps - done) / (done - before))} left" if steps and done else ""
            say(f"{text}{counted}; {_clock(seconds)} gone{left}")

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    try:
        yield tell
    finally:
        over.set()
        writing.join()


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
