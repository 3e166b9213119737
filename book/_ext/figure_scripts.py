"""The scripts of interactive figures, each in a file of its own.

In the page they were up to a third of what had to come before its first words
were shown. book.js loads one when its figure comes near: as a classic script,
for a browser takes no module from a file.
"""

import re
from hashlib import sha256
from pathlib import Path

FOLDER = "_static/figures"
FIGURE = re.compile(
    r'(<div class="posembed-root") (data-posembed="pe-[0-9a-f]{8}".*?)'
    r'<script type="module">\n(.*?)</script>\n?',
    re.DOTALL,
)


def move(app, exception):
    """Take the scripts out of the finished pages."""
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        up = "../" * len(page.parent.relative_to(out).parts)

        def moved(figure, up=up):
            root, rest, script = figure.groups()
            name = f"{FOLDER}/{sha256(script.encode()).hexdigest()[:8]}.js"
            whole = f"(() => {{\n{script}}})();\n"
            (out / name).write_text(whole, encoding="utf-8")
            return f'{root} data-script="{up}{name}" {rest}'

        page.write_text(FIGURE.sub(moved, text), encoding="utf-8")


def setup(app):
    """Move them before the style sheets are united, which reads all scripts.

    Sphinx calls this.
    """
    app.connect("build-finished", move, priority=850)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
