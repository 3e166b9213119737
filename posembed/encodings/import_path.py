"""Schemes of one's own by import path, "module:Class", which worker processes can import too."""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path

from ..errors import EncodingInputError
from .interface import PositionScheme


def own_scheme(path: str) -> type[PositionScheme]:
    """Import the class that a path "module:Class" names.

    Raises:
        EncodingInputError: a module that cannot be imported or was changed since it was; no `PositionScheme`.

    Example:
        >>> from posembed.encodings.import_path import own_scheme
        >>> own_scheme("posembed.encodings.rope:RoPE").__name__
        'RoPE'
    """
    return _unchanged(path)[0]


def source_hash(name: str) -> str | None:
    """The hash of the source files of those schemes of a name that are given by import path; None for no such one."""
    return "+".join(_unchanged(part.strip())[1] for part in name.split("+") if ":" in part) or None


def _unchanged(path: str) -> tuple[type[PositionScheme], str]:
    kind, file, hash_of_import = _imported(path)
    if _hash(file) != hash_of_import:
        raise EncodingInputError(f"{file.name} has changed since it was imported; start Python anew")
    return kind, hash_of_import


@cache
def _imported(path: str) -> tuple[type[PositionScheme], Path, str]:
    """The class, its source file, and the hash that the file had when the class was first asked for."""
    module_name, _, name = path.partition(":")
    if module_name == "__main__":
        raise EncodingInputError(
            f"{path!r} is in a script or notebook, which no other process can import; write the class into a file, "
            f"such as mine.py, and give 'mine:{name}'"
        )
    invalidate_caches()  # the file may be new
    try:
        kind = getattr(import_module(module_name), name, None)
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise EncodingInputError(
            f"{module_name!r} cannot be imported ({why}); its file must be in this folder, or be installed"
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, PositionScheme)):
        raise EncodingInputError(f"{module_name!r} has no PositionScheme {name!r}; give 'module:Class'")
    file = Path(inspect.getfile(kind))
    return kind, file, _hash(file)


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes() if file.is_file() else b"").hexdigest()[:16]
