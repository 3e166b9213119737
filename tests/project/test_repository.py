"""The repository's address: set everywhere at once, checked before anything is published."""

import shutil
import subprocess
from pathlib import Path

import pytest
from refusals import refused
from tool import TOOLS, load

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
def project(tmp_path, monkeypatch):
    """A small project in git, with the tool and this test file among its files."""
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):  # a hook that runs these tests sets them
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "project"
    texts = {
        "pyproject.toml": PYPROJECT,
        "README.md": README,
        "book/one.ipynb": f"git+https://x/{PLACEHOLDER}",
        "docs/ünïcode name.md": f"see {PLACEHOLDER}\r\n",
        "LICENSE": UNRELATED,
        ".gitignore": "_build/\n",
        "_build/page.html": PLACEHOLDER,
        "image.png": f"\0{PLACEHOLDER}",
        "tools/repository.py": (TOOLS / "repository.py").read_text(encoding="utf-8"),
        "tools/test_copy.py": Path(__file__).read_text(encoding="utf-8"),
    }
    for name, text in texts.items():
        write(root, name, text)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    subprocess.run(["git", "-C", root, "add", "pyproject.toml", "README.md"], check=True)  # the others stay untracked
    return root


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


@pytest.fixture
def tool(project):
    return load("repository", project / "tools")


def contents(root):
    paths = (path for path in root.rglob("*") if path.is_file() and not {".git", "__pycache__"} & set(path.parts))
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def test_set_writes_the_address_everywhere_and_leaves_the_rest_alone(project, tool, capsys):
    (project / "docs" / "link.md").symlink_to(project / "_build" / "page.html")
    before = contents(project)
    tool.set_address("ann/order-book")
    assert capsys.readouterr().out == "set-repository: the address is ann/order-book; 4 files changed\n"
    after = contents(project)
    expected = README.replace(PLACEHOLDER, "ann/order-book").replace(f"{OWNER}%2F{NAME}", "ann%2Forder-book")
    expected = expected.replace(f"{OWNER}.github.io/{NAME}", "ann.github.io/order-book")
    assert {name: text.decode() for name, text in after.items() if text != before[name]} == {
        "pyproject.toml": PYPROJECT.replace(PLACEHOLDER, "ann/order-book"),
        "README.md": expected,
        "book/one.ipynb": "git+https://x/ann/order-book",
        "docs/ünïcode name.md": "see ann/order-book\r\n",
    }
    write(project, "late.md", PLACEHOLDER)
    tool.set_address("ann/order-book")
    assert capsys.readouterr().out == "set-repository: the address is ann/order-book; 1 file changed\n"
    assert contents(project) == after | {"late.md": b"ann/order-book"}


@pytest.mark.parametrize("second", [f"bob/{NAME}", f"{NAME}/{NAME}", "bob/bob.github.io"])
def test_one_address_after_another_is_the_same_as_the_second_alone(project, tool, second):
    (project / "tools" / "test_copy.py").unlink()  # it names the first address
    once = Path(shutil.copytree(project, project.parent / "once"))
    load("repository", once / "tools").set_address(second)
    tool.set_address("ann/order-book")
    tool.set_address(second)
    tool.check()
    assert contents(project) == contents(once)
    pages = "bob.github.io" if second == "bob/bob.github.io" else second.replace("/", ".github.io/")
    assert f"https://{pages}/one.html" in (project / "README.md").read_text()


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
def test_set_refuses_what_is_not_an_address(tool, given, why):
    said = refused(SystemExit, tool.parse, given)
    assert why in said and "make set-repository REPOSITORY=owner/name" in said


@pytest.mark.parametrize("given", ["a/b", "a" * 39 + "/" + "b" * 100, "A-1/.github", "0x/pos_embed.v2"])
def test_set_takes_every_address_that_github_allows(tool, given):
    assert str(tool.parse(given)) == given


@pytest.mark.parametrize("text", [PLACEHOLDER, f"https://{OWNER}.github.io/{NAME}/", f"%2F{OWNER}%2F{NAME}"])
def test_check_fails_while_the_placeholder_is_anywhere(project, tool, text):
    form = "make set-repository REPOSITORY=owner/name"
    assert refused(SystemExit, tool.check) == f"publishing: the repository address is still {PLACEHOLDER}; run {form}"
    tool.set_address("ann/order-book")
    tool.check()
    write(project, "book/two.md", text)
    said = refused(SystemExit, tool.check)
    assert "still in book/two.md; run make set-repository REPOSITORY=ann/order-book" in said


@pytest.mark.parametrize(
    ("pyproject", "why"),
    [
        ("project = 1\n", "has no [project.urls] Repository"),
        ("[project", "has no [project.urls] Repository"),
        ('[project.urls]\nRepository = "https://example.org/x"\n', "it must read https://github.com/owner/name"),
    ],
)
def test_a_pyproject_without_the_address_is_named(project, tool, pyproject, why):
    write(project, "pyproject.toml", pyproject)
    assert why in refused(SystemExit, tool.check) and why in refused(SystemExit, tool.set_address, "ann/order-book")


def test_an_interrupted_set_can_be_run_again(project, tool, monkeypatch):
    """pyproject.toml is written last, so the address to replace is still known."""

    def refuse(path, content):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", refuse)
        said = refused(SystemExit, tool.set_address, "ann/order-book")
    assert said.endswith("cannot write README.md: Permission denied; free it and run this again")
    assert [path.name for path in tool.files()][-1] == "pyproject.toml"
    tool.set_address("ann/order-book")
    tool.check()
