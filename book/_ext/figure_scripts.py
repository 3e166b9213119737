"""The scripts of interactive figures, each in a file of its own.

In the page they were up to a third of what had to come before its first words
were shown. book.js loads one when its figure comes near: as a classic script,
for a browser takes no module from a file.
"""

import re
from hashlib import sha256
from os.path import relpath

FOLDER = "_static/figures"
FIGURE = re.compile(
    r'(<div class="posembed-root") (data-posembed="pe-[0-9a-f]{8}".*?)'
    r'<script type="module">\n(.*?)</script>\n?',
    re.DOTALL,
)


def move(pages, out):
    """Take the scripts out of the finished pages."""
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    for page, text in pages.items():

        def moved(figure, folder=page.parent):
            root, rest, script = figure.groups()
            name = f"{sha256(script.encode()).hexdigest()[:8]}.js"
            file = out / FOLDER / name
            file.write_text(f"(() => {{\n{script}}})();\n", encoding="utf-8")
            return f'{root} data-script="{relpath(file, folder)}" {rest}'

        pages[page] = FIGURE.sub(moved, text)
