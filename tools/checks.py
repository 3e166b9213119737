"""Checks beside the chapters: what stands in tests/book/checks, and how it is run with its chapter.

The checks of `book/<part>/<name>.ipynb` are `tests/book/checks/<part>/<name>.py`. A line `# %% Title` begins a block
and names the section whose sentences it holds; the block runs after the section's last cell of code. With
`# %% Title > name` it runs just after the cell that assigns the name: the first from the section's beginning on.

`weave` puts the blocks between the cells of a notebook that is made to be run and never stored.
"""

import ast
import html
import inspect
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nbformat.v4 import new_code_cell

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
CHECKS = ROOT / "tests" / "book" / "checks"
BEGIN = re.compile(r"^# %% (?P<section>.+?)(?: > (?P<name>\w+))?$")
QUOTE = re.compile(r'# (?P<word>Holds|By definition)(?: in (?P<section>.+?))?: "(?P<text>(?:[^"\n]|\n\s*# +)+)"')
# A comment in a block of code looks like a heading.
FENCED = re.compile(r"(?ms)^```.*?^```")
# A picture inside of a figure, in a sentence; "the same" is none.
DESCRIBED = re.compile(r'<img alt="([^"]+\.)"')
HEADING = re.compile(r"(?m)^#+ +(.+)$")
MAGIC = re.compile(r"(?m)^(\s*)[%!].*$")
NAMES_SOMETHING = re.compile(r"(?m)^ *# (?:Holds|By definition)\b")
TAG = "check"


class CheckFileError(Exception):
    """A file of checks that does not fit its chapter, in one line."""


@dataclass(frozen=True)
class Quote:
    """The beginning or all of a sentence, on one line, with the section it stands in and its line in the file.

    Its word is "Holds", or "By definition" for what no run could refute.
    """

    word: str
    section: str
    text: str
    line: int


@dataclass(frozen=True)
class Block:
    """Checks that run together.

    Attributes:
        section: the title of the section whose sentences it holds.
        name: run after the cell that assigns it; None for after the section.
        line: where its code begins in the file.
    """

    section: str
    name: str | None
    line: int
    source: str

    @property
    def quotes(self):
        """Each sentence that it quotes."""
        for match in QUOTE.finditer(self.source):
            text = " ".join(re.sub(r"\n\s*# ", " ", match["text"]).split())
            line = self.line + self.source.count("\n", 0, match.start())
            yield Quote(match["word"], match["section"] or self.section, text, line)


def files():
    """Every file of checks."""
    return sorted(CHECKS.rglob("*.py"))


def file_of(chapter):
    """The checks of a chapter's notebook."""
    return CHECKS / chapter.relative_to(BOOK).with_suffix(".py")


def blocks(path):
    """The blocks of a file, in order."""
    found, lines = [], path.read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
    if any(line.strip() for line in lines[: starts[0] if starts else None]):
        raise CheckFileError(f"{path.relative_to(ROOT)}:1: what stands before the first `# %%` would never run")
    for start, end in pairwise([*starts, len(lines)]):
        match = BEGIN.match(lines[start])
        if not match:
            raise CheckFileError(f"{path.relative_to(ROOT)}:{start + 1}: a block begins with `# %% Title of a section`")
        source = "\n".join(lines[start + 1 : end]).rstrip() + "\n"
        found.append(Block(match["section"], match["name"], start + 2, source))
        if len(list(found[-1].quotes)) < len(NAMES_SOMETHING.findall(source)):
            where = f"{path.relative_to(ROOT)}:{start + 1}"
            raise CheckFileError(f'{where}: a comment of this block quotes nothing: write `# Holds: "..."`')
    return found


def sections(notebook):
    """By its title each section: its first cell, its last with code, and its text, captions and pictures too."""
    found = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and found:
            shown = [cell.metadata.get("caption", ""), *descriptions(cell)]
            found[-1][2:] = [number, "\n\n".join([found[-1][3], *shown])]
        if cell.cell_type != "markdown":
            continue
        source, begin = FENCED.sub(lambda match: match[0].replace("#", " "), cell.source), 0
        for match in [*HEADING.finditer(source), None]:
            end = match.start() if match else len(source)
            if found:
                found[-1][3] += f"\n\n{cell.source[begin:end]}"
            if match:
                found.append([match[1], number, number, ""])
                begin = match.end()
    return {title: (first, last, text) for title, first, last, text in found}


def descriptions(cell):
    """Of the pictures of a cell, also of those that an interactive figure shows without JavaScript."""
    pages = ["".join(output.get("data", {}).get("text/html", "")) for output in cell.outputs]
    inside = {html.unescape(alt) for page in pages for alt in DESCRIBED.findall(page)}
    stored = cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
    return [*([stored] if stored else []), *sorted(inside)]


def weave(notebook, path):
    """Put the blocks of a file between the cells of a notebook, which is for one run: it is never stored.

    A cell of a check stands after a cell of the chapter; where two stand at one place, they keep the file's order.
    """
    after, cells = placed(notebook, path), []
    begin = f"{inspect.getsource(run_block)}\nget_ipython().run_block = run_block\ndel run_block"
    if after:
        cells.append(check_cell(begin))
    for number, cell in enumerate(notebook.cells):
        cells.append(cell)
        for block in after.get(number, []):
            end = block.line + block.source.count("\n")
            cells.append(check_cell(f"get_ipython().run_block({str(path)!r}, {block.line}, {end})"))
    notebook.cells = cells


def check_cell(source):
    """A cell that must print nothing. One without a number would not be compared."""
    return new_code_cell(source, execution_count=0, metadata={"tags": [TAG]})


def unweave(notebook):
    """Take the checks out again, and count the cells that are left."""
    notebook.cells = [cell for cell in notebook.cells if TAG not in cell.metadata.get("tags", [])]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number


def placed(notebook, path):
    """For the number of each cell the blocks that run after it."""
    found, after = sections(notebook), {}
    for block in blocks(path) if path.exists() else []:
        where = f"{path.relative_to(ROOT)}:{block.line - 1}"
        if block.section not in found:
            raise CheckFileError(f"{where}: the chapter has no section {block.section!r}")
        first, last, _ = found[block.section]
        if block.name:
            cells = range(first, len(notebook.cells))
            last = next((number for number in cells if assigns(notebook.cells[number], block.name)), None)
        if last is None:
            raise CheckFileError(f"{where}: from section {block.section!r} on no cell assigns {block.name!r}")
        after.setdefault(last, []).append(block)
    return after


def assigns(cell, name):
    """Whether a cell of code gives a name a value, at its top level or in a loop there."""
    if cell.cell_type != "code":
        return False
    for statement in ast.parse(MAGIC.sub(r"\1pass", cell.source)).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            if statement.name == name:
                return True
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
                return True
            if isinstance(node, ast.alias) and name == (node.asname or node.name).partition(".")[0]:
                return True
    return False


def run_block(path, start, end):
    """Run the lines from `start` to before `end` of a file in a chapter's kernel.

    They see the chapter's names, those of earlier blocks and `studies`, which no reader has. The chapter sees none of
    theirs, nor that numbers were drawn: its later cells give what they give without checks.
    """
    import random
    import re
    import sys
    import traceback
    from pathlib import Path

    shell, modules = get_ipython(), sys.modules  # noqa: F821
    space = vars(shell).setdefault("space_of_checks", {})
    space.update(shell.user_ns)
    lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    drawn = random.getstate()
    drawn_numpy = modules["numpy"].random.get_state() if "numpy" in modules else None
    drawn_torch = modules["torch"].get_rng_state() if "torch" in modules else None
    # Behind the wheel, whose package it is that is checked.
    root, before = path[: path.index("tests/book/checks")], set(modules)
    sys.path.insert(1, root)
    try:
        # After as many empty lines a traceback names the line of the file.
        exec(compile("\n" * (start - 1) + "".join(lines[start - 1 : end - 1]), path, "exec"), space)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = next((frame.lineno for frame in frames if frame.filename == path), getattr(error, "lineno", None) or start)
        quotes = re.findall(r'# (?:Holds|By definition).*?: "((?:[^"\n]|\n\s*# +)+)"', "".join(lines[start - 1 : at]))
        said = f", which holds {' '.join(quotes[-1].replace('#', ' ').split())!r}" if quotes else ""
        name = path[path.index("tests/book/checks") :]
        raise AssertionError(f"{name}:{at} fails{said}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(root)
        for name in [each for each in modules if each.partition(".")[0] == "studies" and each not in before]:
            del modules[name]
        random.setstate(drawn)
        if drawn_numpy is not None:
            modules["numpy"].random.set_state(drawn_numpy)
        if drawn_torch is not None:
            modules["torch"].set_rng_state(drawn_torch)
