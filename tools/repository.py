"""Set or check the repository's address, which is a placeholder until the owner of the project names it.

`[project.urls] Repository` in pyproject.toml defines the address; everything else that has it is a copy.

Usage: python tools/repository.py set owner/name
       python tools/repository.py check
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = ROOT / "pyproject.toml"
FORM = "make set-repository REPOSITORY=owner/name"
PREFIX = "https://github.com/"
# GitHub's rules. Owner: letters, digits and single hyphens between them, 39 at most. Name: 100 characters at most.
OWNER_RULE = re.compile(r"(?=.{1,39}$)[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
NAME_RULE = re.compile(r"[A-Za-z0-9._-]{1,100}")
# A longer name that only begins or ends with ours is another address; a clone address ends in .git.
START = r"(?:(?<![\w.-])|(?<=%2F))"
END = r"(?![\w-])(?!\.(?!git\b)\w)"


class Address(NamedTuple):
    """Where the project lives on GitHub."""

    owner: str
    name: str

    def __str__(self):
        return f"{self.owner}/{self.name}"

    @property
    def pages(self):
        """The address of the published book, without https://."""
        site = f"{self.owner}.github.io"
        return site if self.name.lower() == site.lower() else f"{site}/{self.name}"


# In two parts, so that `set` does not rewrite this line.
PLACEHOLDER = Address("OWNER", "posembed")


def fail(message):
    sys.exit(message)


def parse(text):
    """Read what the user gave as owner/name, or say in one line what is wrong with it."""
    problem = problem_with(text)
    if problem:
        fail(f"set-repository: {text!r} {problem}. Give owner/name, as GitHub has them: {FORM}")
    return Address(*text.split("/"))


def problem_with(text):
    if not text.strip():
        return "is no address"
    if ":" in text or "github.com" in text.lower():
        return "is a full address"
    if re.search(r"\s", text):
        return "has a space in it"
    if text.count("/") != 1:
        return "is not one owner and one name with a slash between them"
    return problem_with_parts(*text.split("/"))


def problem_with_parts(owner, name):
    if owner.upper() == PLACEHOLDER.owner:
        return "is a placeholder"
    if not OWNER_RULE.fullmatch(owner):
        return "does not begin with a GitHub user or organisation (letters, digits, single hyphens between, 39 at most)"
    if not NAME_RULE.fullmatch(name) or name in {".", ".."}:
        return "does not end with a GitHub repository name (letters, digits, '.', '_', '-', 100 at most)"
    if name.lower().endswith(".git"):
        return "ends in .git, which is not part of the name"
    if (ROOT / owner / name).exists():
        return "is also a path in this project, which a later change could not tell from the address"
    return None


def current():
    """Read the address that pyproject.toml defines."""
    try:
        url = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        fail(f"repository: pyproject.toml has no [project.urls] Repository to read ({type(error).__name__}: {error})")
    found = re.fullmatch(re.escape(PREFIX) + r"([^/\s]+)/([^/\s]+)", str(url))
    if not found:
        fail(f"repository: Repository in pyproject.toml is {url!r}; it must read {PREFIX}owner/name")
    return Address(*found.groups())


def files():
    """Yield every text file that git tracks or would track, pyproject.toml last.

    It defines the address: while it is unchanged, a `set` that was interrupted can be run again.
    """
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        result = subprocess.run(command, check=False, capture_output=True)
    except OSError:
        fail("repository: git is needed to list the project's files; install it and run this again")
    if result.returncode:
        fail(f"repository: git could not list the project's files: {last_line(result.stderr)}")
    paths = {ROOT / name for name in result.stdout.decode("utf-8", "surrogateescape").split("\0") if name}
    for path in [*sorted(paths - {PYPROJECT}), PYPROJECT]:
        # A link's target is listed by itself if it is ours; a deleted file may still be in the index.
        if path.is_file() and not path.is_symlink() and b"\0" not in read(path):
            yield path


def last_line(output):
    return (output.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]


def read(path):
    try:
        return path.read_bytes()
    except OSError as error:
        fail(f"repository: cannot read {path.relative_to(ROOT)}: {error.strerror}")


def write(path, content):
    try:
        path.write_bytes(content)
    except OSError as error:
        fail(f"repository: cannot write {path.relative_to(ROOT)}: {error.strerror}; free it and run this again")


def pattern(addresses):
    """Match any of the addresses: owner/name, the same inside a URL's query, and the address of the book."""
    forms = []
    for address in addresses:
        owner, name = re.escape(address.owner), re.escape(address.name)
        forms.append(f"{owner}(?P<slash{len(forms)}>/|%2F){name}")
        forms.append(re.escape(address.pages))
    return re.compile(f"{START}(?:{'|'.join(forms)}){END}".encode())


def replacement(new):
    def replace(match):
        slash = next((text for text in match.groups() if text), None)
        return new.pages.encode() if slash is None else new.owner.encode() + slash + new.name.encode()

    return replace


def set_address(text):
    new, old = parse(text), current()
    # The placeholder too: a file may have come in after the address was set.
    wanted, replace, changed = pattern({old, PLACEHOLDER}), replacement(new), 0
    for path in files():
        before = read(path)
        after = wanted.sub(replace, before)
        if after != before:
            write(path, after)
            changed += 1
    print(f"set-repository: the address is {new}; {changed} {'file' if changed == 1 else 'files'} changed")


def check():
    if current() == PLACEHOLDER:
        fail(f"publishing: the repository address is still {PLACEHOLDER}; run {FORM}")
    wanted = pattern({PLACEHOLDER})
    left = [str(path.relative_to(ROOT)) for path in files() if wanted.search(read(path))]
    if left:
        fail(
            f"publishing: the placeholder {PLACEHOLDER} is still in {', '.join(left)}; "
            f"run make set-repository REPOSITORY={current()}"
        )


def main():
    parser = argparse.ArgumentParser(description="Set or check the repository's address.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("set", help="write owner/name everywhere").add_argument("address", help="owner/name on GitHub")
    commands.add_parser("check", help="fail while the address is the placeholder")
    arguments = parser.parse_args()
    if arguments.command == "set":
        set_address(arguments.address)
    else:
        check()


if __name__ == "__main__":
    main()
