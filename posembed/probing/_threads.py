"""One thread for matrices too small to be shared out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager:
    """Keep linear algebra to one thread for the length of a with block.

    On tables of a thousand rows several threads save little, where other processes want the same cores they cost a
    hundred times as much, and the last digits would depend on how many there are.
    """
    return _controller().limit(limits=1)


@cache
def _controller() -> ThreadpoolController:
    # Looking for the libraries takes milliseconds. Those that the probes use are loaded before this is called.
    return ThreadpoolController()
