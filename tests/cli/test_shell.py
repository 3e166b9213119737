"""How the command behaves in a shell: exit codes, one line for each error, pipes, a quick start."""

import io
import json
import re
import subprocess
import sys
import time
import warnings

import pytest

from posembed.cli import main
from posembed.cli.output import one_line, progress
from posembed.errors import CheckpointNotFoundError

# What makes a start slow; the help needs none of it.
SLOW = {"torch", "numpy", "matplotlib", "sklearn", "scipy", "transformers", "huggingface_hub", "nbconvert"}


def test_help_starts_without_anything_slow(fresh_environment):
    program = (
        "import sys\n"
        "from posembed.cli import main\n"
        "for words in (['--help'], ['probe', '--help'], ['report', '--help'], ['grid', '--help'], ['--version']):\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit as end:\n"
        "        assert not end.code, end.code\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=fresh_environment)
    assert ran.returncode == 0, ran.stderr
    assert not SLOW & set(ran.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("command", ["table", "probe", "properties", "report", "audit", "train", "grid", "doctor"])
def test_help_teaches_by_examples(call, command):
    code, printed, _ = call(command, "--help")
    assert code == 0
    assert f" $ posembed {command} " in printed
    assert f" {command} " in call("--help")[1]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["tabel", "gpt2"], "Did you mean 'table'?"),
        (["table", "gpt2", "--rows", "3"], "--rows"),
        (["table", "one", "two"], "two"),
        (["table", "gpt2", "--offset", "two"], "'--offset'"),
        (["probe", "gpt2", "--probe", "magic"], "ridge"),
        (["probe", "gpt2", "--split", "thirds"], "folds"),
        (["probe", "gpt2", "--rows", "x"], "'--rows'"),
        (["probe", "gpt2", "--rows", "None"], "'None' is no choice of rows; say 512"),
        (["probe", "gpt2", "--rows", "1:2:3:4"], "'--rows'"),
        (["properties", "gpt2", "--similarity", "love"], "cosine"),
        (["report", "-o", "page.html"], "SOURCE"),
        (["train", "--steps", "many"], "'--steps'"),
        (["grid", "nopos", "--n-workers", "many"], "'--n-workers'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_call_that_is_not_understood_ends_with_2(call, words, part):
    code, printed, complained = call(*words)
    assert (code, printed) == (2, "")
    assert part in complained and "Usage: posembed" in complained


@pytest.mark.parametrize("command", ["table", "probe", "properties"])
@pytest.mark.parametrize("source", ["no/such/folder/here", " ", "a\nname\x1b[2J"])
def test_an_error_is_one_line(checkpoints, call, command, source):
    code, printed, complained = call(command, source)
    assert (code, printed) == (1, "")
    (line,) = complained.splitlines()
    assert line.startswith("posembed: ") and line.isprintable()


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (CheckpointNotFoundError("the hub\nis away"), 1, "the hub is away"),
        (KeyboardInterrupt(), 130, "posembed: stopped"),
        (ImportError("libcudart.so: cannot open\nshared object"), 1, "libcudart.so: cannot open shared object; `posem"),
    ],
)
def test_what_stops_a_command_is_one_line(call, checkpoints, monkeypatch, raised, code, said):
    def stop(*_, **__):
        raise raised

    monkeypatch.setattr("posembed.tables.load_table", stop)
    ended, printed, complained = call("table", "waves")
    assert (ended, printed) == (code, "")
    (line,) = complained.splitlines()
    assert line.startswith("posembed: ") and said in line


def test_a_mistake_of_ours_keeps_its_traceback(checkpoints, monkeypatch):
    monkeypatch.setattr("posembed.tables.load_table", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["table", "waves"])


def test_a_warning_is_one_line(call, checkpoints, monkeypatch):
    from posembed.tables import load_table

    def load(*words, **options):
        warnings.warn("the table\nis not kept", RuntimeWarning, stacklevel=1)
        return load_table(*words, **options)

    monkeypatch.setattr("posembed.tables.load_table", load)
    code, _, complained = call("table", "waves")
    assert (code, complained) == (0, "posembed: warning: the table is not kept\n")


def test_without_typer_the_command_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("posembed.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    # Python prints it to stderr and ends with the code 1.
    assert end.value.code == 'posembed: there is no typer here; pip install "posembed[cli]"'


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
    assert "probing the rows" in screen.getvalue()


def test_without_a_terminal_there_is_a_line_from_time_to_time(monkeypatch, capsys):
    monkeypatch.setattr("posembed.progress.EVERY", 0.01)
    said = []
    monkeypatch.setattr("posembed.progress.say", said.append)
    with progress("starting", 400) as tell:
        wait_for(lambda: said)
        tell("rope, loss 2.314", 100)
        wait_for(lambda: said[-1].startswith("rope"))
    n_lines = len(said)
    assert re.fullmatch(r"starting, 0 of 400; 0:00:\d\d gone", said[0])
    assert re.fullmatch(r"rope, loss 2.314, 100 of 400; 0:0\d:\d\d gone, about 0:\d\d:\d\d left", said[-1])
    with progress("looking around"):
        wait_for(lambda: said[-1].startswith("looking around; 0:00:"))
    assert not [line for line in said[n_lines:] if "looking" not in line]


def wait_for(condition):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("nothing was said")


@pytest.mark.parametrize(
    ("text", "line"),
    [("two\nlines", "two lines"), ("\x1b[31mred", "\\x1b[31mred"), ("\u202eback", "\\u202eback"), ("ünï", "ünï")],
)
def test_no_text_moves_the_cursor(text, line):
    assert one_line(text) == line
