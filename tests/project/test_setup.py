"""What a newcomer can run into before anything is installed: each in one line that says what to do."""

import http.server
import subprocess
from types import SimpleNamespace

import pytest
from refusals import refused
from tool import ROOT, load


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """The set-up tool, working in an empty folder."""
    tool = load("setup")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "VENV", tmp_path / ".venv")
    return tool


@pytest.mark.parametrize(
    ("names", "value", "words"),
    [
        (("sys", "version_info"), (3, 10, 4), ["Python 3.10;", "make PYTHON=python3.13 book"]),
        (("sys", "version_info"), (3, 14, 0), ["Python 3.14;", "make PYTHON=python3.13 book"]),
        (("os", "access"), lambda path, mode: False, ["cannot write", "folder of your own"]),
        (("shutil", "disk_usage"), lambda path: SimpleNamespace(free=10**9), ["1.0 GB of disk are free"]),
    ],
)
def test_what_is_missing_is_named_with_the_way_out(setup, monkeypatch, names, value, words):
    setup.check_machine()
    monkeypatch.setattr(getattr(setup, names[0]), names[1], value)
    message = refused(SystemExit, setup.check_machine)
    assert all(word in message for word in words)


def test_no_internet_ends_in_pips_message_and_one_line(setup, tmp_path, monkeypatch, capsys):
    pip = tmp_path / "python"
    pip.write_text("#!/bin/sh\necho Collecting numpy\necho ERROR: No matching distribution found for torch\nexit $code")
    pip.chmod(0o755)
    monkeypatch.setattr(setup, "venv_python", lambda: pip)
    monkeypatch.setenv("code", "0")
    setup.pip_install("the pinned packages (many)")
    assert capsys.readouterr() == ("set-up: installing the pinned packages (many)\n", "")
    monkeypatch.setenv("code", "1")
    message = refused(SystemExit, setup.pip_install, "the pinned packages (many)", "-r", "lock.txt")
    assert message.startswith("set-up: could not install the pinned packages. Check the internet connection")
    assert capsys.readouterr().err.strip() == "ERROR: No matching distribution found for torch"


def test_progress_is_read_from_what_pip_prints(setup):
    progress = setup.Progress(4)
    lines = """Ignoring colorama: markers 'sys_platform == "win32"' don't match your environment
Collecting one==1.0 (from -r lock.txt (line 2))
  Downloading one-1.0-py3-none-any.whl.metadata (2 kB)
Processing /wheels/two-2.0-py3-none-any.whl (from -r lock.txt (line 3))
Collecting three==3.0 (from -r lock.txt (line 4))
  Using cached three-3.0-py3-none-any.whl (1.4 MB)
""".splitlines(keepends=True)
    for line in lines:
        progress.read(line)
    assert str(progress) == "set-up: 2 of 3 packages"
    progress.read("Downloading one-1.0-py3-none-any.whl (527 MB)\n")
    assert str(progress) == "set-up: 3 of 3 packages"
    progress.read("Installing collected packages: one, two, three\n")
    assert str(progress) == "set-up: unpacking 3 packages"


def test_make_says_it_when_there_is_no_python():
    command = ["make", "setup", "PYTHON=python-that-is-not-there"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode != 0
    assert "no python-that-is-not-there here; install Python 3.11 to 3.13" in result.stderr


@pytest.mark.parametrize("build", ["default", "cpu"])
def test_the_lock_is_installed_as_it_is_and_pytorch_of_the_build_that_is_wanted(setup, monkeypatch, build):
    asked = []
    monkeypatch.setattr(setup, "create_venv", lambda: None)
    monkeypatch.setattr(setup, "pip_install", lambda what, *arguments, total=0: asked.append((arguments, total)))
    monkeypatch.setattr(setup.sys, "platform", "linux")
    setup.install_packages(build)
    if build == "cpu":
        (before, _), *asked = asked
        assert before[1].startswith("torch==") and before[2:] == ("--index-url", setup.CPU_INDEX)
    (lock, n_pins), *others = asked
    assert lock == ("--no-deps", "-r", setup.LOCK) and n_pins > 200
    # Of the default build only torch itself knows what it needs of CUDA.
    needs_cuda = ["torch"] if build == "default" else []
    assert [arguments[-1] for arguments, _ in others] == [*needs_cuda, setup.ENCODER]


def test_a_finished_step_is_known_by_what_it_was_made_from(setup, monkeypatch, tmp_path):
    stamp, python, lock = (tmp_path / name for name in ("stamp", "python", "lock.txt"))
    monkeypatch.setattr(setup, "TORCH_BUILD", stamp)
    assert setup.previous_torch() == "default"
    monkeypatch.setattr(setup, "STAMPS", {"packages": stamp})
    monkeypatch.setattr(setup, "venv_python", lambda: python)
    lock.write_text("torch==2.13.0")
    made_from = setup.fingerprint("3.11", lock)
    stamp.write_text(made_from)
    assert setup.previous_torch() == made_from  # a build that was chosen once is kept
    assert not setup.is_done("packages", made_from)  # somebody removed the interpreter
    python.touch()
    assert setup.is_done("packages", made_from)
    lock.write_text("torch==2.14.0")
    assert not setup.is_done("packages", setup.fingerprint("3.11", lock))


def test_serving_says_what_is_missing_or_in_the_way(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    book = load("book")
    monkeypatch.setattr(book, "HTML", tmp_path)
    assert "book: nothing is built yet; run `make book` first" in refused(SystemExit, book.serve, 0)
    (tmp_path / "index.html").write_text("built")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as busy:
        port = busy.server_address[1]
        message = refused(SystemExit, book.serve, port)
    assert message == f"book: port {port} is in use or not allowed; name another: make serve PORT={port + 1}"
