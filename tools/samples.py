"""Make the samples that the part for instructors shows: a page of an assignment, and a notebook that was graded.

Usage: python tools/samples.py

They are stored in book/assets/samples, so that they can be seen before anything is cloned or installed.
"""

import html
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from math_core import LatexToMathML
from nbconvert import HTMLExporter

from course import GRADING, ROOT, make

sys.path.insert(0, str(GRADING))
import house
import judge
import report

FORMULAS = LatexToMathML(fancy_error=False)
OUT = ROOT / "book" / "assets" / "samples"
NAME, SEED = "order-and-lookup", "a sample for all to see"
# What a student wrote in place of the key's answers, and what comes of it.
BEFORE = "%matplotlib inline"
AFTER = """\
first_token = without_mask


def attention(x, wq, wk, wv, causal=False):
    return F.scaled_dot_product_attention(x @ wq, x @ wk, x @ wv, is_causal=causal)


def position_ids(mask):
    return torch.arange(mask.shape[1]).expand(mask.shape)
"""
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>body{{max-width:46rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 sans-serif}}
pre{{overflow:auto;padding:.6rem;border:1px solid #8888}}.anchor-link{{display:none}}</style>{body}</html>
"""


def mathml(tex):
    """A formula."""
    return FORMULAS.convert_with_local_state(tex, displaystyle=False)


def page_of(notebook):
    """A notebook as students get it, without the cell that carries the checks."""
    notebook.cells = notebook.cells[1:]
    exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(notebook)
    # The page loads nothing from elsewhere.
    body = re.sub(r"\$([^$\n]+)\$", lambda found: mathml(html.unescape(found[1])), body)
    title = next(line for line in notebook.cells[0].source.splitlines() if line.startswith("# "))[2:]
    return PAGE.format(title=title, body=body)


def graded(key, course):
    """The page of feedback of a student who took some other ways than the key."""
    key.cells.insert(1, nbformat.v4.new_code_cell(BEFORE))
    key.cells.append(nbformat.v4.new_code_cell(AFTER))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ada.ipynb")
        nbformat.write(key, path)
        # The notebook is ours, and needs no sandbox.
        given = judge.grade("ada", path, path.name, course, NAME, False, "none", house.SECONDS)
    return report.page(given, judge.assignment_of(NAME, course), answers=True)


def samples():
    """The pages by their names."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        make(ROOT / "course" / NAME, made, SEED)
        student, key = (nbformat.read(made / who / NAME / f"{NAME}.ipynb", 4) for who in ("students", "graders"))
        return {"assignment.html": page_of(student), "feedback.html": graded(key, made / "graders")}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, page in samples().items():
        (OUT / name).write_text(page, encoding="utf-8")
    print(f"samples: {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
