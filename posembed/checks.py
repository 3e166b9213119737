"""A check that many functions make of their arguments."""

from __future__ import annotations

from typing import Any

from .errors import PosembedError, ProbeInputError


def check_whole(name: str, value: Any, least: int = 1, error: type[PosembedError] = ProbeInputError) -> None:
    """Refuse what is no whole number of at least so much; True is none."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise error(f"{name} is {value!r}; it must be a whole number of at least {least}")
