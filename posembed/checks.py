"""What is given must be of its kind: each check is one line where a user's argument comes in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

from .errors import EncodingInputError, PosembedError, shown


def check_whole(name: str, value: Any, error: type[PosembedError] = EncodingInputError, *, least: int = 1) -> None:
    """Raise the error unless the value is a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise error(f"{name} is {shown(value)}; it must be a whole number of at least {least}")


def check_choice(
    name: str, value: Any, choices: Iterable[str], error: type[PosembedError] = EncodingInputError
) -> None:
    """Raise the error unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise error(f"{name} is {shown(value)}; choose among {', '.join(choices)}")


def check_flag(name: str, value: Any, error: type[PosembedError] = EncodingInputError) -> None:
    """Raise the error unless the value is True or False."""
    if not isinstance(value, bool):
        raise error(f"{name} is {shown(value)}; give True or False")


def check_kind(name: str, value: Any, kind: Any, wanted: str, error: type[PosembedError] = EncodingInputError) -> None:
    """Raise the error unless the value is of a kind, or of one of several, which `wanted` says in words."""
    if not isinstance(value, kind):
        raise error(f"{name} is {shown(value)}; give {wanted}")


def check_each(name: str, values: Any, kind: Any, wanted: str, error: type[PosembedError] = EncodingInputError) -> list:
    """Return the values as a list, or raise the error unless they can be listed and each is of the kind."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise error(f"{name} is {shown(values)}; give {wanted}")
    listed = list(values)
    for number, value in enumerate(listed):
        check_kind(f"{name}[{number}]", value, kind, wanted, error)
    return listed


def is_there(path: str | Path) -> bool:
    """Whether a file or folder is there; no, where a text is empty, "here" for `Path`, or too long, where it raises."""
    return os.path.exists(path)  # noqa: PTH110


def checked_path(path: Any, wanted: str, error: type[PosembedError]) -> Path:
    """Return a path, of something that is there or not, or raise the error where no file can have it."""
    if isinstance(path, str | Path) and str(path):
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return Path(path)
        except (OSError, ValueError) as reason:
            why = getattr(reason, "strerror", None) or reason
            raise error(f"{shown(str(path))} is no path ({why}); give {wanted}") from None
        return Path(path)
    raise error(f"{shown(path)} is no path; give {wanted}")
