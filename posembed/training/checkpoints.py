"""Runs that go on where they were stopped: the state of a training, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..errors import CheckpointError
from .config import RunConfig
from .loop import Training
from .results import file_of, write_whole

FORMAT = 3
# What asks a process to end: Ctrl-C, `kill`, and a terminal that is closed, of which Windows does not tell.
ASKING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
# How often a state is written: what is lost where a process is killed.
SECONDS = 60.0


@contextmanager
def kept(
    training: Training, named: Path | str | None, progress: Callable[[int, float], Any] | None = None
) -> Iterator[Callable[[], None]]:
    """Take a run up from its checkpoint where there is one, and keep one until it is trained and measured.

    Args:
        training: the run.
        named: the file of its state.
        progress: called after each step with the number of steps done and the loss.

    Yields:
        What is to be called after each step. The state is written every minute, after the last step, and where
        Ctrl-C, SIGTERM or SIGHUP asks for an end: these are held back until a step is whole, so that no number is lost.
        If no file is named, it is written where an end is asked for alone, to one in the current folder.

    Raises:
        CheckpointError: a checkpoint that is damaged, of another version or of another run; it is left as it is.
    """
    path = Path(named) if named else file_of(training.config, Path(), "checkpoint").absolute()
    if path.exists():
        _take_up(training, path)
    last = time.monotonic()
    with held_back() as held:
        # Measuring leaves the state alone, and need not be waited for.
        held.at_once = training.is_done

        def after_step() -> None:
            nonlocal last
            if named and (training.is_done or time.monotonic() - last >= SECONDS):
                _write(training, path)
                last = time.monotonic()
            held.end()
            held.at_once = training.is_done
            if progress:
                progress(len(training.losses), training.losses[-1])

        try:
            yield after_step
        except (KeyboardInterrupt, SystemExit) as end:
            # A second one may not cut the writing short.
            held.at_once = False
            if _write(training, path):
                end.add_note(
                    f"stopped after step {len(training.losses)} of {training.n_steps}, which are kept in {path.name}; "
                    "the same call in the same folder goes on from there"
                )
            raise
    if named is None:
        path.unlink(missing_ok=True)


class Held:
    """A signal that asks the process to end, noted but not obeyed yet.

    Attributes:
        number: of the signal that has come; None where none has.
        at_once: whether one that comes from now on is obeyed where it comes.
    """

    number: int | None = None
    at_once: bool = False

    def end(self) -> None:
        """Obey it now, if one has come."""
        if self.number is not None:
            raise KeyboardInterrupt if self.number == signal.SIGINT else SystemExit(128 + self.number)


@contextmanager
def held_back(tell: Callable[[], None] = lambda: None) -> Iterator[Held]:
    """Note Ctrl-C, SIGTERM and SIGHUP inside the block, with a call as soon as one comes; obey them at its end."""
    held = Held()

    def note(number: int, _: Any) -> None:
        held.number = number
        tell()
        if held.at_once:
            held.end()

    # Only the main thread of a process may be asked; a worker of a grid leaves Ctrl-C to the grid, which passes it on.
    mine = ASKING if threading.current_thread() is threading.main_thread() else ()
    heard = [number for number in mine if signal.getsignal(number) != signal.SIG_IGN]  # as `nohup` has SIGHUP
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    held.end()


def _write(training: Training, path: Path) -> bool:
    """Write the state, and say whether that went well; a full disk is a warning, for the run itself is well."""
    content = io.BytesIO()
    torch.save(training.state(), content)
    body = content.getvalue()
    try:
        write_whole(path, _head(training.config, body) + body)
    except OSError as error:
        warnings.warn(
            f"{path.name} cannot be written ({error.strerror}); the run goes on, and if it is stopped it begins again "
            "where the file before was written",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def _take_up(training: Training, path: Path) -> None:
    content = path.read_bytes()
    body = content[content.find(b"\n") + 1 :]
    if content != _head(training.config, body) + body:
        raise CheckpointError(
            f"{path.name} is damaged, or of another run than {training.config.key} or another version of posembed; "
            "move it away, and the run begins anew"
        )
    training.restore(torch.load(io.BytesIO(body), map_location="cpu", weights_only=True))


def _head(config: RunConfig, body: bytes) -> bytes:
    """The first line of a file, which no other run, content or format has."""
    return f"posembed checkpoint {FORMAT}, run {config.key}, {hashlib.sha256(body).hexdigest()}\n".encode()
