"""Leaves the solutions of exercises out of a chapter: for `make book SOLUTIONS=no` and for slides."""

import re

# A page's own text may stand before a solution and after it in the same cell.
START = re.compile(r"(?s)^:::+\{solution-start\}.*", re.MULTILINE)
END = re.compile(r"(?s).*^:::+\{solution-end\}\s*?\n:::+", re.MULTILINE)


def without_solutions(cells):
    """The cells that stand outside of solutions."""
    inside = False
    for cell in cells:
        text = "".join(cell["source"])
        is_text = cell["cell_type"] == "markdown"
        if inside and is_text and END.search(text):
            inside, text = False, END.sub("", text, count=1)
        if not inside and is_text and START.search(text):
            inside, text = True, START.sub("", text)
            if text.strip():
                yield cell | {"source": text}
            continue
        if not inside and text.strip():
            yield cell | {"source": text} if is_text else cell
