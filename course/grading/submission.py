"""What is handed in: which files of a folder could be it, and what stands in a notebook."""

import hashlib
import json
import os
import re
from dataclasses import dataclass, field

# A notebook with all its pictures is smaller.
LARGEST = 50 * 2**20


@dataclass
class Submission:
    """A notebook that was handed in.

    Attributes:
        cells: of each cell its number, its kind, its source and what it printed.
        assignment: its name; "" where the metadata do not say.
        course: what tells it from the same assignment of another seed; "" where the metadata do not say.
        student: whose numbers it holds; "" where all have the same.
        digest: of the file.
    """

    cells: list = field(default_factory=list)
    assignment: str = ""
    course: str = ""
    student: str = ""
    digest: str = ""

    @property
    def code(self):
        """Number and source of each cell with code."""
        return [(number, source) for number, kind, source, _ in self.cells if kind == "code"]


def submissions(folder):
    """Every file of the folder that could be one: its student's name and its path, in a fixed order."""
    found = []
    for path in sorted(folder.iterdir(), key=lambda each: os.fsencode(each.name)):
        if _is_of_a_machine(path):
            continue
        if path.is_dir() and not path.is_symlink():
            inside = [p for p in path.rglob("*.ipynb") if not any(map(_is_of_a_machine, [p, *p.parents]))]
            found += [(path.name, each) for each in sorted(inside, key=os.fsencode) or [path]]
        else:
            found.append((path.stem, path))
    return found


def _is_of_a_machine(path):
    """What no student made: copies that Jupyter keeps, what macOS puts into archives, hidden files but notebooks."""
    if path.name.startswith("._") or path.name in ("__MACOSX", ".ipynb_checkpoints"):
        return True
    return path.name.startswith(".") and path.suffix != ".ipynb" and path.name != ".ipynb"


def read(path):
    """The submission that stands in a file; ValueError says in a line why it is none."""
    if path.is_symlink() or not path.is_file():
        raise ValueError(
            "there is no notebook in it" if path.is_dir() and not path.is_symlink() else "it is no plain file"
        )
    if path.suffix != ".ipynb":
        raise ValueError("it is no notebook; ask for the .ipynb file")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has more than {LARGEST // 2**20} MB")
    try:
        content = path.read_bytes()
        notebook = json.loads(content)
        cells = [
            (n, str(cell.get("cell_type")), writable("".join(cell.get("source") or "")), writable(printed(cell)))
            for n, cell in enumerate(notebook["cells"], 1)
            if isinstance(cell, dict)
        ]
        told = notebook.get("metadata", {}).get("posembed", {})
        names = [str(told.get(name, "")) for name in ("assignment", "course", "student")]
        return Submission(cells, *names, hashlib.sha256(content).hexdigest())
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is no notebook, or only a part of one") from None


def writable(text):
    """A text with a question mark for each half of a character, of which JSON can tell and which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def printed(cell):
    """What a cell printed, as text; a picture is named."""
    said = []
    for output in cell.get("outputs") or []:
        data = output.get("data", {})
        said.append("".join(output.get("text") or data.get("text/plain") or ""))
        said += ["[a picture: see the notebook]"] if any(kind.startswith("image/") for kind in data) else []
    return "\n".join(each for each in said if each)


def printable(name):
    """A name or reason with nothing in it that could break a line of a table, or be a formula of a spreadsheet."""
    name = name.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")
    name = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)
    # An address in memory is another one each time.
    name = re.sub(r"\b0x[0-9a-fA-F]{6,}", "0x…", name)
    return f"'{name}" if name.startswith(("=", "+", "-", "@")) else name
