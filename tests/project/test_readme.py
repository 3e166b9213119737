"""What the README shows works as it says."""

import re
import subprocess
import sys

import pytest
from tool import ROOT

from posembed import schemes

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("encoder")
def test_the_python_of_the_readme_prints_what_its_comments_say(fresh_environment):
    """In a process of its own, as a reader's: the shape checks of pytest keep attention from being exported."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))
    expected = re.findall(r"^ *print\(.*\)  # (.+)$", code, re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=fresh_environment)
    assert done.returncode == 0, done.stderr
    assert len(expected) > 3
    assert done.stdout.splitlines() == expected


def test_the_commands_and_files_of_the_readme_are_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", README))
    assert {"book", "test", "test-all", "serve", "help"} <= named <= targets
    linked = re.findall(r"\]\((?!https?://)([^)#]+)\)", README)
    assert linked
    assert [path for path in linked if not (ROOT / path).is_file()] == []


def test_as_many_schemes_are_compared_and_timed_as_the_readme_says():
    assert "Twelve of the fifteen schemes are compared with independent implementations, and five are timed" in README
    pages = ((ROOT / "book" / f"{page}.md").read_text(encoding="utf-8") for page in ("conformance", "benchmarks"))
    # The rows of a table that has a column of schemes, and headings.
    said = (
        " ".join(re.findall(r"^(?:##+ |\*\*|\| (?=\w+ \|))([^|\n]*)", page, re.MULTILINE)).lower() for page in pages
    )
    compared, timed = ({name for name in schemes() if re.search(rf"\b{name}\b", each)} for each in said)
    assert (len(compared), len(timed), len(schemes())) == (12, 5, 15)
