"""How the command behaves in a shell: exit codes, one line for each error, pipes, a quick start."""

import io
import json
import os
import subprocess
import sys
import warnings

import pytest

from posembed.cli._guard import guarded
from posembed.cli._terminal import one_line
from posembed.errors import CheckpointNotFoundError, PosembedError

# What makes a start slow; the help needs none of it.
SLOW = {"torch", "numpy", "matplotlib", "sklearn", "scipy", "transformers", "huggingface_hub", "jinja2"}


def test_help_starts_without_anything_slow(fresh_environment):
    program = (
        "import sys\n"
        "from posembed.cli import main\n"
        "for words in (['--help'], ['probe', '--help'], ['train', '--help'], ['grid', '--help'], ['--version']):\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit as end:\n"
        "        assert not end.code, end.code\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=fresh_environment)
    assert ran.returncode == 0, ran.stderr
    assert not SLOW & set(ran.stdout.splitlines()[-1].split())


def test_version(call):
    from posembed import __version__

    assert call("--version") == (0, f"posembed {__version__}\n", "")


@pytest.mark.parametrize("command", ["table", "probe", "properties", "report", "train", "grid", "doctor"])
def test_help_teaches_by_examples(call, command):
    code, printed, _ = call(command, "--help")
    assert code == 0
    examples = [line.strip() for line in printed.splitlines() if line.strip().startswith("$ posembed")]
    assert len(examples) >= 2 and all(f" {command}" in example for example in examples)
    assert f"$ posembed {command}" in call("--help")[1]


@pytest.mark.parametrize(
    "words",
    [
        ["tabel", "gpt2"],
        ["table", "gpt2", "--rows", "3"],
        ["probe", "gpt2", "--probe", "magic"],
        ["probe", "gpt2", "--split", "thirds"],
        ["probe", "gpt2", "--rows", "x"],
        ["probe", "gpt2", "--rows", ":"],
        ["probe", "gpt2", "--rows", "1:2:3"],
        ["probe", "gpt2", "--seed", "many"],
        ["properties", "gpt2", "--max-offset", "0"],
        ["properties", "gpt2", "--similarity", "love"],
        ["table", "gpt2", "--offset", "two"],
        ["table", "one", "two"],
        ["report", "-o", "page.html"],
    ],
    ids=" ".join,
)
def test_a_call_that_is_not_understood_ends_with_2(call, words):
    code, printed, complained = call(*words)
    assert (code, printed) == (2, "")
    assert complained.startswith("posembed: ") and complained.endswith(" --help\n")
    assert len(complained.splitlines()) == 1


@pytest.mark.parametrize("command", ["table", "probe", "properties", "report"])
@pytest.mark.parametrize("source", ["no/such/folder/here", "../nowhere", " ", "a\nname\x1b[2J"])
def test_an_error_is_one_line(checkpoints, call, command, source):
    code, printed, complained = call(command, source)
    assert (code, printed) == (1, "")
    (line,) = complained.splitlines()
    assert line.startswith("posembed: ") and line.isprintable()


@pytest.mark.parametrize("output", ["missing/page.html", "checkpoints", "checkpoints/waves/config.json/page.html"])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(checkpoints, call, monkeypatch, output):
    monkeypatch.setattr("posembed.report.write.gather", lambda *_, **__: pytest.fail("the work began"))
    code, printed, complained = call("report", "waves", "-o", output)
    assert (code, printed) == (1, "")
    assert len(complained.splitlines()) == 1 and "name" in complained


def test_an_interruption_is_quiet(checkpoints, call, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("posembed.tables.load_table", interrupt)
    assert call("table", "waves") == (130, "", "")


def test_an_error_of_ours_that_is_an_oserror_too_is_one_line(capsys):
    import typer

    def unreachable():
        raise CheckpointNotFoundError("the hub\nis away")

    with pytest.raises(typer.Exit) as end:
        guarded(unreachable)()
    assert end.value.exit_code == 1
    assert capsys.readouterr().err == "posembed: the hub is away\n"


def test_a_library_that_cannot_be_imported_is_one_line(call, checkpoints, tmp_path, monkeypatch):
    (tmp_path / "damaged_library.py").write_text("raise ImportError('libcudart.so: cannot open\\nshared object')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("posembed.tables.load_table", lambda *_, **__: __import__("damaged_library"))
    said = "a library cannot be imported: libcudart.so: cannot open shared object"
    assert call("table", "waves") == (1, "", f"posembed: {said}; `posembed doctor` says which, and what to do\n")


def test_a_mistake_of_ours_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        guarded(lambda: 1 / 0)()


def test_a_warning_is_one_line(capsys):
    guarded(lambda: warnings.warn("the table is not kept", RuntimeWarning, stacklevel=1))()
    assert capsys.readouterr().err == "posembed: warning: the table is not kept\n"


def test_a_reader_that_leaves_early_is_no_error(checkpoints, fresh_environment):
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "posembed", "table", "waves"]
    environment = fresh_environment | {"POSEMBED_CHECKPOINTS": str(checkpoints)}
    ran = subprocess.run(words, check=False, stdout=writing, stderr=subprocess.PIPE, env=environment)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_a_terminal_without_blocks_gets_letters(checkpoints, call, monkeypatch):
    paper = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", paper)
    assert call("table", "waves")[0] == 0
    printed = paper.buffer.getvalue().decode("ascii")
    assert "@" * 40 in printed and "\\u" not in printed


def test_progress_is_for_terminals(checkpoints, call, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    code, printed, _ = call("probe", "waves", "--json")
    assert code == 0 and json.loads(printed)["n_rows"] == 64
    # What is drawn in between depends on how fast the machine is; the last step is always drawn.
    assert "the description length" in screen.getvalue()


@pytest.mark.parametrize(
    ("text", "line"),
    [("two\nlines", "two lines"), ("\x1b[31mred", "\\x1b[31mred"), ("\u202eback", "\\u202eback"), ("ünï", "ünï")],
)
def test_no_text_moves_the_cursor(text, line):
    assert one_line(text) == one_line(PosembedError(text)) == line
