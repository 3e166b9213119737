"""Loads a tool of tools/, or of another folder of scripts that is no package."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "tools"


def load(name, folder=TOOLS):
    """A fresh copy of a tool, whose names a test may change."""
    spec = importlib.util.spec_from_file_location(f"tool_{name}", Path(folder) / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # A script finds those beside it.
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module
