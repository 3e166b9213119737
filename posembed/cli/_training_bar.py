"""The progress of a training run, with its loss and its speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ._terminal import one_line

# Of how many steps the loss that is shown is the mean, about: single ones jump about.
SMOOTHED = 20


@contextmanager
def training_bar(doing: str, steps: int, tokens_a_step: int) -> Iterator[Callable[[int, float], None]]:
    """Show on stderr, where that is a terminal, how far a run is, its loss and its tokens per second.

    Args:
        doing: what is trained.
        steps: how many there are.
        tokens_a_step: how many tokens each reads.

    Yields:
        A function to be called after each step with the number of steps done and the loss, as `posembed.train` does.

    Example:
        >>> from posembed.cli._training_bar import training_bar
        >>> with training_bar("rope", 2, 64) as after_step:
        ...     after_step(1, 4.5)
        ...     after_step(2, 4.4)
    """
    to_whom = Console(stderr=True)
    said = TextColumn("loss {task.fields[loss]}  {task.fields[speed]} tokens/s")
    shown = [TextColumn("{task.description}", markup=False), BarColumn(bar_width=16), MofNCompleteColumn(), said]
    times = [TimeElapsedColumn(), TimeRemainingColumn()]
    with Progress(*shown, *times, console=to_whom, transient=True, disable=not to_whom.is_terminal) as bars:
        task = bars.add_task(one_line(doing), total=steps, loss="", speed="")
        meter = Meter(tokens_a_step)

        def after_step(step: int, loss: float) -> None:
            smooth, speed = meter.after_step(step, loss)
            bars.update(task, completed=step, loss=f"{smooth:.3f}", speed=f"{speed:,.0f}" if speed else "")

        yield after_step


class Meter:
    """The smoothed loss and the speed of a run, from where it began or was taken up.

    Args:
        tokens_a_step: how many tokens each step reads.
        clock: gives the time in seconds.

    Example:
        >>> from posembed.cli._training_bar import Meter
        >>> meter = Meter(100, clock=iter([0.0, 2.0]).__next__)
        >>> meter.after_step(1, 3.0), meter.after_step(2, 3.0)
        ((3.0, 0.0), (3.0, 50.0))
    """

    def __init__(self, tokens_a_step: int, clock: Callable[[], float] = time.monotonic):
        self._tokens, self._clock = tokens_a_step, clock
        self._start, self._taken = 0.0, -1
        self._loss = 0.0

    def after_step(self, step: int, loss: float) -> tuple[float, float]:
        """Return the smoothed loss, and the tokens per second since the first step that was told; of that one 0."""
        self._taken += 1
        if not self._taken:
            # What came before, a text that was loaded and a program that was compiled, is no training.
            self._start, self._loss = self._clock(), loss
            return loss, 0.0
        self._loss += (loss - self._loss) / SMOOTHED
        return self._loss, self._taken * self._tokens / max(self._clock() - self._start, 1e-9)
