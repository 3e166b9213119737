"""The repository's address: set everywhere at once, checked before anything is published."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tool import load

TOOL = Path(__file__).resolve().parents[2] / "tools" / "repository.py"
# In parts, because `set` rewrites this file too.
OWNER, NAME = "OWNER", "posembed"
PLACEHOLDER = f"{OWNER}/{NAME}"
PYPROJECT = f"""[project.urls]
Repository = "https://github.com/{PLACEHOLDER}"
Issues = "https://github.com/{PLACEHOLDER}/issues"
"""
README = f"""[tests](https://img.shields.io/github/actions/workflow/status/{PLACEHOLDER}/test.yml?branch=main)
[Colab](https://colab.research.google.com/github/{PLACEHOLDER}/blob/main/book/one.ipynb)
[Binder](https://mybinder.org/v2/gh/{PLACEHOLDER}/main?urlpath=git-pull%3Frepo%3Dgithub.com%2F{OWNER}%2F{NAME}%26x)
[book](https://{OWNER}.github.io/{NAME}/one.html)
git clone https://github.com/{PLACEHOLDER}.git or {PLACEHOLDER}.
"""
UNRELATED = f"""THE COPYRIGHT {OWNER} OR CONTRIBUTORS; {OWNER}/other; {NAME}/{NAME}.py
{OWNER}/{NAME}-extras, {OWNER}/{NAME}.js, CO{OWNER}/{NAME}, not-{OWNER}/{NAME}, {OWNER}/{NAME}_old
"""


@pytest.fixture
def project(tmp_path):
    """A small project in git, with the tool and this test file among its files."""
    root = tmp_path / "project"
    write(root, "pyproject.toml", PYPROJECT)
    write(root, "README.md", README)
    write(root, "book/one.ipynb", json.dumps({"cells": [{"source": [f"%pip install git+https://x/{PLACEHOLDER}"]}]}))
    write(root, "docs/ünïcode name.md", f"see {PLACEHOLDER}\r\n")
    write(root, "LICENSE", UNRELATED)
    write(root, ".gitignore", "_build/\n")
    write(root, "_build/page.html", PLACEHOLDER)
    (root / "image.png").write_bytes(b"\x89PNG\0" + PLACEHOLDER.encode())
    (root / "tools").mkdir()
    shutil.copy(TOOL, root / "tools")
    shutil.copy(__file__, root / "tools" / "test_copy.py")
    git(root, "init", "--quiet")
    git(root, "add", "pyproject.toml", "README.md")  # the others stay untracked
    return root


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def git(root, *arguments):
    subprocess.run(["git", "-C", root, *arguments], check=True, env=environment(), capture_output=True)


def environment(**changes):
    # A hook that runs these tests has GIT_DIR set to the real repository.
    return {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | changes


def run(root, *arguments, **changes):
    command = [sys.executable, root / "tools" / "repository.py", *arguments]
    options = {"capture_output": True, "text": True, "cwd": root.parent, "env": environment(**changes)}
    return subprocess.run(command, check=False, **options)


def contents(root):
    paths = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def assert_refused(result, *words):
    assert result.returncode != 0
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    for word in words:
        assert word in result.stderr


def test_set_writes_the_address_everywhere(project):
    result = run(project, "set", "ann/order-book")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "set-repository: the address is ann/order-book; 4 files changed\n"
    assert (project / "pyproject.toml").read_text() == PYPROJECT.replace(PLACEHOLDER, "ann/order-book")
    expected = README.replace(PLACEHOLDER, "ann/order-book").replace(f"{OWNER}%2F{NAME}", "ann%2Forder-book")
    expected = expected.replace(f"{OWNER}.github.io/{NAME}", "ann.github.io/order-book")
    assert (project / "README.md").read_text() == expected
    assert "git+https://x/ann/order-book" in (project / "book/one.ipynb").read_text()
    assert (project / "docs/ünïcode name.md").read_bytes() == b"see ann/order-book\r\n"


def test_set_leaves_the_rest_alone_and_set_again_changes_nothing(project):
    before = contents(project)
    run(project, "set", "ann/order-book")
    after = contents(project)
    for name in ("LICENSE", "image.png", "_build/page.html", "tools/repository.py", "tools/test_copy.py"):
        assert after[name] == before[name], name
    result = run(project, "set", "ann/order-book")
    assert result.stdout == "set-repository: the address is ann/order-book; 0 files changed\n"
    assert contents(project) == after


@pytest.mark.parametrize("second", [f"bob/{NAME}", f"{NAME}/{NAME}", "bob/bob.github.io"])
def test_one_address_after_another_is_the_same_as_the_second_alone(project, second):
    (project / "tools" / "test_copy.py").unlink()  # it names the first address
    once = project.parent / "once"
    shutil.copytree(project, once)
    assert run(once, "set", second).returncode == 0
    assert run(project, "set", "ann/order-book").returncode == 0
    assert run(project, "set", second).returncode == 0
    pages = "bob.github.io" if second == "bob/bob.github.io" else second.replace("/", ".github.io/")
    assert f"https://{pages}/one.html" in (project / "README.md").read_text()
    assert run(project, "check").returncode == 0
    assert contents(project) == contents(once)


def test_set_reaches_a_file_that_came_in_later(project):
    run(project, "set", "ann/order-book")
    write(project, "late.md", PLACEHOLDER)
    assert run(project, "set", "ann/order-book").stdout.endswith("1 file changed\n")
    assert (project / "late.md").read_text() == "ann/order-book"


def test_set_keeps_file_modes_and_links_and_passes_over_deleted_files(project):
    write(project, "run.sh", f"#!/bin/sh\n# {PLACEHOLDER}\n")
    (project / "run.sh").chmod(0o755)
    outside = project.parent / "outside.md"
    outside.write_text(PLACEHOLDER)
    (project / "link.md").symlink_to(outside)
    (project / "README.md").unlink()
    assert run(project, "set", "ann/order-book").returncode == 0
    assert (project / "run.sh").stat().st_mode & 0o777 == 0o755
    assert outside.read_text() == PLACEHOLDER


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "is no address"),
        ("  ", "is no address"),
        ("ann", "one owner and one name"),
        ("ann/order/book", "one owner and one name"),
        ("/ann/book", "one owner and one name"),
        ("ann book/x", "has a space"),
        ("ann/order-book\n", "has a space"),
        (" ann/order-book", "has a space"),
        ("https://github.com/ann/order-book", "is a full address"),
        ("github.com/ann", "is a full address"),
        ("git@github.com:ann/order-book", "is a full address"),
        (PLACEHOLDER, "is a placeholder"),
        (f"{OWNER}/book", "is a placeholder"),
        ("owner/name", "is a placeholder"),
        ("/book", "GitHub user"),
        ("ann-/book", "GitHub user"),
        ("an--n/book", "GitHub user"),
        ("a_n/book", "GitHub user"),
        ("änn/book", "GitHub user"),
        ("a" * 40 + "/book", "GitHub user"),
        ("ann/", "repository name"),
        ("ann/..", "repository name"),
        ("ann/bo+ok", "repository name"),
        ("ann/" + "b" * 101, "repository name"),
        ("ann/book.git", "ends in .git"),
        ("tools/repository.py", "also a path"),
    ],
)
def test_set_refuses_what_is_not_an_address(project, given, why):
    tool = load("repository", project / "tools")
    with pytest.raises(SystemExit) as error:
        tool.parse(given)
    assert why in error.value.code and "make set-repository REPOSITORY=owner/name" in error.value.code
    assert "\n" not in error.value.code


def test_a_refused_address_changes_nothing(project):
    before = contents(project)
    assert_refused(run(project, "set", "ann"), "one owner and one name")
    assert contents(project) == before


@pytest.mark.parametrize("given", ["a/b", "a" * 39 + "/" + "b" * 100, "A-1/.github", "0x/pos_embed.v2"])
def test_set_takes_every_address_that_github_allows(project, given):
    assert str(load("repository", project / "tools").parse(given)) == given


def test_check_fails_while_the_address_is_the_placeholder(project):
    assert_refused(
        run(project, "check"),
        f"publishing: the repository address is still {PLACEHOLDER}; run make set-repository REPOSITORY=owner/name",
    )


@pytest.mark.parametrize("text", [PLACEHOLDER, f"https://{OWNER}.github.io/{NAME}/", f"%2F{OWNER}%2F{NAME}"])
def test_check_names_the_files_that_still_have_the_placeholder(project, text):
    run(project, "set", "ann/order-book")
    result = run(project, "check")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    write(project, "late.md", text)
    write(project, "book/two.md", text)
    command = "make set-repository REPOSITORY=ann/order-book"
    assert_refused(run(project, "check"), "publishing:", "book/two.md", "late.md", command)


@pytest.mark.parametrize(
    ("pyproject", "why"),
    [
        (None, "has no [project.urls] Repository"),
        ("project = 1\n", "has no [project.urls] Repository"),
        ("[project", "has no [project.urls] Repository"),
        ('[project.urls]\nRepository = "https://example.org/x"\n', "it must read https://github.com/owner/name"),
    ],
)
def test_a_pyproject_without_the_address_is_named(project, pyproject, why):
    path = project / "pyproject.toml"
    path.unlink() if pyproject is None else path.write_text(pyproject)
    for command in (["set", "ann/order-book"], ["check"]):
        assert_refused(run(project, *command), "pyproject.toml", why)


def test_without_git_or_outside_of_it_one_line_says_so(project):
    assert_refused(run(project, "set", "ann/order-book", PATH=""), "git is needed")
    shutil.rmtree(project / ".git")
    assert_refused(run(project, "set", "ann/order-book"), "git could not list")


def test_an_interrupted_set_can_be_run_again(project, monkeypatch):
    """pyproject.toml is written last, so the address to replace is still known."""
    tool = load("repository", project / "tools")

    def refuse(path, content):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", refuse)
        with pytest.raises(SystemExit, match="cannot write README.md: Permission denied; free it and run this again"):
            tool.set_address("ann/order-book")
    assert (project / "pyproject.toml").read_text() == PYPROJECT
    assert [path.name for path in tool.files()][-1] == "pyproject.toml"
    assert run(project, "set", "ann/order-book").returncode == 0
    assert run(project, "check").returncode == 0
