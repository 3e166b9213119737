"""List what the chapters claim, and the cell or the test that holds each claim.

Usage: python tools/claims.py

A claim is a quick answer, a point of "What to remember", the description of a picture, a caption behind its first
sentence, or a sentence with a number or a comparison. Definitions, theorems and proofs, questions, and what is quoted
from a source or links to one are none.

What holds it names it in a comment of the chapter's checks (tests/book/checks, see tools/checks.py): `# Holds: "the
beginning or all of the sentence"` where the sentence stands in the section that the block names, `# Holds in What to
remember: "..."` where it stands in another. So does `# By definition: "..."`, for a sentence that says no more than a
definition. What the repository itself must show is held by a test in tests/book that quotes it. A comment whose section
or sentence is gone, and a claim that nothing names, are errors. The list is written to _build/claims.md, for a person
to read.
"""

import ast
import re
import sys
from dataclasses import dataclass

import checks
import nbformat
from chapters import BOOK, BUILD, ROOT, chapters

LIST = BUILD / "claims.md"
TESTS = ROOT / "tests" / "book"
# Texts of fewer words stand in sentences by chance.
FEWEST_WORDS = 3
# What is no claim: blocks of mathematics, of theorems with their proofs, exercises, tables, code, references.
NO_CLAIM = re.compile(
    r"(?s)\$\$.*?\$\$|```.*?```|^:::+\{(?:prf:|exercise|solution).*?^:::+$|^\|.*?$|^\(.*?\)=$|^:\w+:.*?$|^#.*?$"
    r"|^## (?:Sources|References).*",
    re.MULTILINE,
)
# What stands in a margin is a claim like any other.
MARGIN = re.compile(r"(?ms)^:::\{margin\}$(.*?)^:::$")
NUMBER = re.compile(
    r"(?<![\w{^_-])\d[\d,.]*|(?i:\b(?:twice|half|thirds?|quarter)\b"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten) (?:of|times)\b)"
)
COMPARISON = re.compile(r"(?i)\b(?:than|never|always|no more|the (?:most|least|best|worst|only))\b")
# These say where something stands, not what was found.
POINTER = re.compile(
    r"\[[^]]*\]\([^)]*\)|\{(?:ref|doc|eq|prf:ref|numref)\}`[^`]*`|\(\d+\)"
    r"|half precision|(?i:\b(?:chapters?|exhibits?|transformers) [\d.]+(?: and \d+)?)"
)


@dataclass(frozen=True)
class Claim:
    """One statement of a chapter.

    Attributes:
        kind: "quick answer", "remember", "picture", "caption" or "sentence".
        text: on one line.
    """

    kind: str
    text: str


def one_line(text):
    return " ".join(text.split())


def claims(notebook):
    """All claims of a chapter, in reading order."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found += _of_text(cell.source)
            continue
        found += [Claim("picture", one_line(alt)) for alt in checks.descriptions(cell)]
        found += [Claim("caption", text) for text in sentences(cell.metadata.get("caption", ""))[1:]]
    return found


def _of_text(source):
    answers = re.findall(r"(?s)<details>(.*?)</details>", source)
    found = [Claim("quick answer", one_line(re.sub(r"<[^>]*>", " ", answer))) for answer in answers]
    rest = re.sub(r"(?s)^:::\{admonition\} Quick question.*?^:::$", "", source, flags=re.MULTILINE)
    before, _, remember = rest.partition("## What to remember")
    remember = remember.partition("\n## ")[0].partition("\n**Next")[0]
    found += [Claim("sentence", text) for text in sentences(before) if is_claim(text)]
    return found + [Claim("remember", one_line(point)) for point in re.split(r"(?m)^- ", remember)[1:]]


def sentences(text):
    """The sentences outside of what is no claim, each on one line."""
    text = MARGIN.sub(r"\1", NO_CLAIM.sub("\n\n", text))
    paragraphs = re.split(r"\n\s*\n|^\s*(?:-|\d+\.) ", text, flags=re.MULTILINE)
    # A stop ends a sentence where a capital, a formula or a mark follows; inside of a formula it does not.
    ends = re.compile(r"(?<=[.?!:])[*_)\"]*\s+(?=[A-Z*`$\[])")
    return [sentence for paragraph in paragraphs for sentence in ends.split(one_line(paragraph)) if sentence]


def is_claim(sentence):
    quoted = "{cite" in sentence or "](https://" in sentence
    if sentence.endswith("?") or quoted or sentence.startswith(("You need", "The page takes")):
        return False
    said = POINTER.sub("", re.sub(r"\$[^$]*\$|`[^`]*`", "", sentence))
    return bool(NUMBER.search(said) or COMPARISON.search(said))


def named_in_checks(path, notebook):
    """What a chapter's checks quote, and what holds it; and what is wrong with them, a line each."""
    by_section, named, wrong = texts_by_section(notebook), [], []
    try:
        checks.placed(notebook, path)
    except checks.CheckFileError as error:
        return named, [str(error)]
    for block in checks.blocks(path) if path.exists() else []:
        for quote in block.quotes:
            where = f"{path.relative_to(ROOT)}:{quote.line}"
            if quote.section not in by_section:
                wrong.append(f"{where}: the chapter has no section {quote.section!r}")
            elif quote.text not in by_section[quote.section]:
                wrong.append(f"{where}: section {quote.section!r} does not say {quote.text!r}")
            named.append((quote.text, f"{path.name}:{quote.line}" if quote.word == "Holds" else "its definition"))
    return named, wrong


def texts_by_section(notebook):
    """All that each section says, on one line: as it is written, and as its claims are read."""
    found = {}
    for title, (_, _, text) in checks.sections(notebook).items():
        answers = re.findall(r"(?s)<details>(.*?)</details>", text)
        found[title] = one_line(" ".join([text, *(re.sub(r"<[^>]*>", " ", answer) for answer in answers)]))
    return found


def named_in_tests():
    """Every text in a test of the book, and the test's name."""
    for path in sorted(TESTS.glob("test_*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                texts = [one_line(node.value) for node in ast.walk(function) if _is_text(node)]
                for text in texts:
                    if len(text.split()) >= FEWEST_WORDS:
                        yield text, f"{path.name}::{function.name}"


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def holders(claim, named):
    return sorted({holder for text, holder in named if text in claim.text or claim.text in text})


def listed(path, tests):
    """A chapter's part of the list, the number of its claims, and what is wrong, a line each."""
    notebook = nbformat.read(path, as_version=4)
    own, wrong = named_in_checks(checks.file_of(path), notebook)
    found = claims(notebook)
    lines = [f"\n## {path.relative_to(BOOK).with_suffix('')}\n", "| kind | claim | held by |", "| --- | --- | --- |"]
    for claim in found:
        by = holders(claim, [*own, *tests])
        text = claim.text.replace("|", "\\|")
        lines.append(f"| {claim.kind} | {text} | {', '.join(by) or '**nothing**'} |")
        if not by:
            wrong.append(f"{path.stem}: nothing holds the {claim.kind} {claim.text!r}")
    return lines, len(found), wrong


def without_chapter(paths):
    """Files of checks whose chapter is gone."""
    files = {checks.file_of(path) for path in paths}
    return [f"{path.relative_to(ROOT)}: no chapter has these checks" for path in checks.files() if path not in files]


def main():
    tests, text, n_claims = list(named_in_tests()), ["# What the chapters claim, and what holds it"], 0
    wrong = without_chapter(chapters())
    for path in chapters():
        lines, n, its = listed(path, tests)
        text += lines
        n_claims += n
        wrong += its
    LIST.parent.mkdir(exist_ok=True)
    LIST.write_text("\n".join(text) + "\n", encoding="utf-8")
    if wrong:
        sys.exit("\n".join(f"claims: {line}" for line in wrong))
    print(f"claims: all {n_claims} in the chapters are held; {LIST.relative_to(ROOT)} says by what", flush=True)


if __name__ == "__main__":
    main()
