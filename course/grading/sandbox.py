"""Inside the sandbox: runs the cells of a notebook, then answers what the grader asks of its names.

It reads messages from standard input and answers on standard output. No test and no right answer is in here: whatever
a submission patches, reads or forges, the grader outside compares values.
"""

import io
import json
import os
import resource
import signal
import sys
import types
import warnings

from wire import decode, encode, write


class TooLongError(BaseException):
    """A cell or a call took too long; no `except Exception` of a submission catches it."""


def main():
    """Run the notebook, then answer, until nothing is asked any more."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, stop)
    shell = new_shell()
    write(answers, {"ready": True})
    submission = json.loads(asked.readline())
    # What is used by all is watched from outside.
    limits = submission["limits"]
    resource.setrlimit(resource.RLIMIT_AS, (limits["addresses"],) * 2)
    errors = [[number, error] for number, cell in submission["cells"] if (error := run(shell, cell, limits["cell"]))]
    write(answers, {"errors": errors, "number": submission["number"]})
    for line in asked:
        request = json.loads(line)
        write(answers, answer(shell.user_ns, request, limits["call"]) | {"number": request["number"]})


def stop(*_):
    """End the cell that runs now."""
    raise TooLongError


def new_shell():
    """A shell as a notebook has it, without plots on a screen and without otter's checks, which need their files."""
    from IPython.core.interactiveshell import InteractiveShell

    otter = types.ModuleType("otter")
    otter.Notebook = lambda *_, **__: types.SimpleNamespace(check=lambda *_: None)
    sys.modules["otter"] = otter
    warnings.simplefilter("ignore")
    # Its history would be a file, and its colours are for a terminal.
    shell = InteractiveShell.instance(colors="NoColor")
    shell.history_manager.enabled = False
    shell.showtraceback = lambda *_, **__: None
    return shell


def run(shell, cell, seconds):
    """Run one cell; return what went wrong, in a line, or ""."""
    signal.alarm(seconds)
    try:
        done = shell.run_cell(cell)
        return said(done.error_before_exec or done.error_in_exec, seconds)
    except BaseException as error:  # what IPython does not catch
        return said(error, seconds)
    finally:
        signal.alarm(0)
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()


def said(error, seconds):
    """An error in one line; "" for none."""
    if error is None:
        return ""
    if isinstance(error, TooLongError):
        return f"took more than {seconds} s"
    return f"{type(error).__name__}: {error}"


def answer(names, request, seconds):
    """What the grader asked for: the value of a name, or what a function gives."""
    signal.alarm(seconds)
    try:
        if "get" in request:
            return {"value": named(names.get(request["get"]), request["get"])}
        arguments, options = (decode(request[key], lambda *f: given(names, *f)) for key in ("args", "kwargs"))
        return {"value": named(names[request["call"]](*arguments, **options), None)}
    except BaseException as error:
        return {"error": said(error, seconds), "too slow": isinstance(error, TooLongError)}
    finally:
        signal.alarm(0)


def named(value, name):
    """A value, encoded; a function with the name by which it can be called."""
    encoded = encode(value)
    return encoded | {"function": name} if isinstance(encoded, dict) and "function" in encoded else encoded


def given(names, name, source):
    """A function that the grader passes: one of the submission's own, or one that comes as its source."""
    if source is None:
        return names[name]
    scope = {}
    exec(source, scope)
    return scope["candidate"]


if __name__ == "__main__":
    main()
