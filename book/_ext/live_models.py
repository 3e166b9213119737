"""Models that pages run: a script for each, with its weights in eight bits.

A figure fetches one when a reader touches it, as a classic script: a browser
reads no other file beside a page that is opened from a disk.
"""

from posembed.errors import FigureInputError
from posembed.stored import MODELS, load_model
from posembed.widgets.eight_bit import script

FOLDER = "_static/models"


def write(pages, out):
    """Write those that a page can run. No page changes."""
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        try:
            text = script(name, load_model(name))
        except FigureInputError:
            continue
        path = out / FOLDER / f"{name}.js"
        path.write_text(text, encoding="utf-8", newline="")
