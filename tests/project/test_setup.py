"""What a newcomer can run into before anything is installed: each in one line that says what to do."""

import http.server
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """The set-up tool, working in an empty folder, that installs nothing."""
    tool = load("setup")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "VENV", tmp_path / ".venv")
    return tool


def said(error):
    message = str(error.value.code)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("version", [(3, 10, 4), (3, 14, 0), (2, 7, 18)])
def test_another_python_is_named_with_the_way_out(setup, monkeypatch, version):
    monkeypatch.setattr(setup.sys, "version_info", version)
    with pytest.raises(SystemExit) as error:
        setup.check_machine()
    assert f"Python {version[0]}.{version[1]};" in said(error)
    assert "make PYTHON=python3.13 book" in said(error)


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 9), (3, 13, 1)])
def test_the_tested_pythons_are_accepted(setup, monkeypatch, version):
    monkeypatch.setattr(setup.sys, "version_info", version)
    setup.check_machine()


def test_an_unwritable_folder(setup, monkeypatch):
    monkeypatch.setattr(setup.os, "access", lambda path, mode: False)
    with pytest.raises(SystemExit) as error:
        setup.check_machine()
    assert "cannot write" in said(error) and "folder of your own" in said(error)


def test_a_full_disk(setup, monkeypatch):
    monkeypatch.setattr(setup.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**9))
    with pytest.raises(SystemExit) as error:
        setup.check_machine()
    assert "1.0 GB of disk are free" in said(error)


def test_a_python_that_cannot_make_environments(setup, monkeypatch):
    broken = subprocess.CompletedProcess([], 1, "", "No module named ensurepip\n")
    monkeypatch.setattr(setup.subprocess, "run", lambda *a, **k: broken)
    with pytest.raises(SystemExit) as error:
        setup.create_venv()
    assert "apt install python3-venv" in said(error) and "No module named ensurepip" in said(error)


def test_no_internet(setup, monkeypatch, capsys):
    broken = subprocess.CompletedProcess([], 1, "", "ERROR: No matching distribution found for torch\n")
    monkeypatch.setattr(setup.subprocess, "run", lambda *a, **k: broken)
    with pytest.raises(SystemExit) as error:
        setup.pip_install("the pinned packages", "-r", "lock.txt")
    assert "internet connection" in said(error)
    assert "No matching distribution found for torch" in capsys.readouterr().err


def test_make_says_it_when_there_is_no_python():
    command = ["make", "setup", "PYTHON=python-that-is-not-there"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode != 0
    assert "no python-that-is-not-there here; install Python 3.11 to 3.13" in result.stderr


def test_the_torch_build_is_remembered(setup, monkeypatch, tmp_path):
    monkeypatch.setattr(setup, "TORCH_BUILD", tmp_path / "build")
    assert setup.previous_torch() == "default"
    (tmp_path / "build").write_text("cpu")
    assert setup.previous_torch() == "cpu"


def test_a_finished_step_is_known_by_what_it_was_made_from(setup, monkeypatch, tmp_path):
    stamp, python = tmp_path / "stamp", tmp_path / "python"
    monkeypatch.setattr(setup, "STAMPS", {"packages": stamp})
    monkeypatch.setattr(setup, "venv_python", lambda: python)
    lock = tmp_path / "lock.txt"
    lock.write_text("torch==2.13.0")
    made_from = setup.fingerprint("3.11", lock)
    stamp.write_text(made_from)
    assert not setup.is_done("packages", made_from)  # somebody removed the interpreter
    python.touch()
    assert setup.is_done("packages", made_from)
    lock.write_text("torch==2.14.0")
    assert not setup.is_done("packages", setup.fingerprint("3.11", lock))


def test_a_port_in_use_is_named_with_the_next_one(tmp_path):
    (tmp_path / "index.html").write_text("built")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as busy:
        port = busy.server_address[1]
        code = (
            f"import sys; sys.path.insert(0, 'tools'); import book, pathlib; "
            f"book.HTML = pathlib.Path({str(tmp_path)!r}); book.serve({port})"
        )
        result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1
    assert (
        result.stderr.strip() == f"book: port {port} is in use or not allowed; name another: make serve PORT={port + 1}"
    )


def test_serving_before_building_says_what_to_do(tmp_path):
    code = (
        "import sys; sys.path.insert(0, 'tools'); import book, pathlib; "
        f"book.HTML = pathlib.Path({str(tmp_path)!r}); book.serve(0)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.stderr.strip() == "book: nothing is built yet; run `make book` first"
