"""Inside the sandbox: runs the cells of a notebook, then answers what the grader asks of its names.

It reads messages from standard input and answers on standard output. No test, no right answer and no function that a
question hands over is in here: whatever a submission patches, reads or forges, the grader outside compares values.
"""

import io
import json
import os
import random
import resource
import signal
import sys
import types
import warnings

from absent import AbsentError, EachByItself, take_away
from watch import Watch
from wire import decode, encode, write

# Magics that do something in any shell; all others belong to a notebook on a screen, or to a machine of its own.
MAGICS = {"time", "capture", "writefile"}


# How much longer than its time of the processor something may take by the clock: the machine may be busy with others.
STALLED = 5


class TooLongError(BaseException):
    """A cell or a call took too long; no `except Exception` of a submission catches it."""


def main():
    """Run the notebook cell by cell, then answer, until nothing is asked any more."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for each in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(each, stop)
    notes = []
    shell = new_shell(notes)
    write(answers, {"ready": True})
    for line in asked:
        request = json.loads(line)
        if "number" not in request:
            continue  # a reply to what did not wait for it, since its time was over
        number = {"number": request["number"]}

        def ask(message, number=number):
            write(answers, message | number)
            return json.loads(asked.readline())

        write(answers, answer(shell, request, notes, ask) | number)
        notes.clear()


def stop(why, _):
    """End the cell or the call that runs now."""
    raise TooLongError(why == signal.SIGALRM)


def allow(seconds):
    """Give the next cell or call so many seconds of the processor; 0 takes the limit away."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(STALLED * seconds)


def new_shell(notes):
    """A shell as a notebook has it, without plots on a screen and without otter's checks, which need their files."""
    import numpy as np
    import torch
    from IPython.core.interactiveshell import InteractiveShell

    otter = types.ModuleType("otter")
    otter.Notebook = lambda *_, **__: types.SimpleNamespace(check=lambda *_: None, check_all=lambda *_: None)
    sys.modules["otter"] = otter
    # As in a notebook, a module that a cell has written can be imported.
    sys.path.append("")
    warnings.simplefilter("ignore")
    # Its history would be a file, and its colours are for a terminal.
    shell = InteractiveShell.instance(colors="NoColor")
    shell.history_manager.enabled = False
    shell.ast_transformers.append(EachByItself())
    skip_what_is_of_a_screen(shell, notes)
    load_in_this_process(torch.utils.data.DataLoader)
    run_as_written(torch)
    # Grading again shall give the same.
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    return shell


def skip_what_is_of_a_screen(shell, notes):
    """Take magics and lines for the system as habits: they are skipped, and a note says so."""
    line_magic, cell_magic = shell.run_line_magic, shell.run_cell_magic

    def on_line(name, line, *args, **kwargs):
        if name in MAGICS:
            return line_magic(name, line, *args, **kwargs)
        return notes.append(f"%{name}")

    def on_cell(name, line, cell):
        if name in MAGICS:
            return cell_magic(name, line, cell)
        return notes.append(f"all of it, which begins with %%{name}")

    def of_system(command, *_, **__):
        notes.append(f"!{command.split(maxsplit=1)[0] if command.strip() else ''}")
        return []

    shell.run_line_magic, shell.run_cell_magic = on_line, on_cell
    shell.system = shell.getoutput = of_system


def load_in_this_process(loader):
    """No process can be started here, and data that other processes load are the same data."""
    make = loader.__init__

    def in_this_process(self, *args, **kwargs):
        # Its sixth argument, after the data: batch_size, shuffle, sampler, batch_sampler, num_workers.
        args = (*args[:5], 0, *args[6:]) if len(args) > 5 else args
        kwargs |= {} if len(args) > 5 else {"num_workers": 0}
        for name in ("prefetch_factor", "multiprocessing_context"):
            kwargs.pop(name, None)
        make(self, *args, **kwargs | {"persistent_workers": False})

    loader.__init__ = in_this_process


def run_as_written(torch):
    """No compiler can be started here, no watch sees into what was compiled, and it gives the same as it is written."""

    def same(function=None, *_, **__):
        return same if function is None else function

    torch.compile = torch.jit.script = torch.jit.trace = same


def answer(shell, request, notes, ask):
    """What was asked for: to run a cell, the values of names, or what a function gives.

    Args:
        shell: where the cells run.
        request: what was asked.
        notes: what was skipped.
        ask: asks the grader back, and gives its reply.
    """
    if "addresses" in request:
        # What is used by all is watched from outside.
        resource.setrlimit(resource.RLIMIT_AS, (request["addresses"],) * 2)
        return {}
    if "away" in request:
        take_away(request["away"])
        return {}
    if "cell" in request:
        return {"error": run(shell, request["cell"], request["seconds"]), "notes": list(notes)}
    if "get" in request:
        return {"values": {name: value_of(shell.user_ns, name, request["seconds"]) for name in request["get"]}}
    return called(shell.user_ns, request, ask)


def run(shell, cell, seconds):
    """Run one cell; return what went wrong first, in a line, or ""."""
    failed = []
    shell.showtraceback = lambda *_, **__: failed.append(sys.exc_info()[1])
    allow(seconds)
    try:
        done = shell.run_cell(cell)
        return said(next(filter(None, [*failed, done.error_before_exec, done.error_in_exec]), None), seconds)
    except BaseException as error:  # what IPython does not catch
        return said(error, seconds)
    finally:
        allow(0)
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()


def said(error, seconds):
    """An error in one line; "" for none."""
    if error is None:
        return ""
    if isinstance(error, TooLongError):
        by_clock = error.args[:1] == (True,)
        return f"took more than {STALLED * seconds} s by the clock" if by_clock else f"took more than {seconds} s"
    return f"{type(error).__name__}: {error}"


def value_of(names, name, seconds):
    """The value of a name, encoded; a function with the name by which it can be called."""
    if name not in names:
        return {"missing": True}
    allow(seconds)
    try:
        return {"value": named(names[name], name)}
    except BaseException as error:
        return {"error": said(error, seconds)}
    finally:
        allow(0)


def called(names, request, ask=None):
    """What a function gives; with what it used that its question forbids."""
    watch = Watch(request["without"])
    allow(request["seconds"])
    try:
        function = names[request["call"]]
        arguments, options = (decode(request[key], lambda *f: given(names, ask, *f)) for key in ("args", "kwargs"))
        with watch:
            # Encoded here, since a tensor of a class of its own may compute what it holds only when it is asked.
            value = named(function(*arguments, **options), None)
        return {"value": value, "used": watch.used}
    except AbsentError as error:
        return {"error": said(error, 0), "absent": str(error), "used": watch.used}
    except BaseException as error:
        slow = isinstance(error, TooLongError)
        return {"error": said(error, request["seconds"]), "too slow": slow, "used": watch.used}
    finally:
        allow(0)


def named(value, name):
    """A value, encoded; a function gets the name by which it can be called."""
    encoded = encode(value)
    return encoded | {"function": name} if isinstance(encoded, dict) and "function" in encoded else encoded


def given(names, ask, name, place):
    """A function that the grader passes: one of the submission's own, or one that the grader keeps and computes."""
    if place is None:
        return names[name]

    def computed_outside(*args, **kwargs):
        reply = ask({"place": place, "args": encode(args), "kwargs": encode(kwargs)})
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return decode(reply["value"], None)

    return computed_outside


if __name__ == "__main__":
    main()
