"""Runs that go on where they were stopped: the state of a training, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ...errors import CheckpointError, RunError
from .store import write_whole

if TYPE_CHECKING:
    from ..config import RunConfig
    from ..training.loop import Training

# A checkpoint of a later format is refused, as results are.
FORMAT = 1
# What a state that was damaged, or is none, makes of the code that takes it up.
NO_STATE = (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError, EOFError)


@dataclass
class Checkpoint:
    """Where a run keeps its state, and how often.

    A run that finds the file goes on from there and gives the same numbers as one that was never stopped, bit for bit
    (on a GPU as far as its kernels do). The file is one line of JSON with the format, the run and a checksum, then what
    torch.save writes.

    Attributes:
        path: the file.
        steps: after how many steps it is written; None for never.
        seconds: or after how many seconds, whichever comes first; None for never.

    Raises:
        RunError: a number of steps or seconds that is not positive.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig, train
        >>> from posembed.experiments.files.checkpoints import Checkpoint
        >>> config = RunConfig(n_layers=1, d_model=8, n_heads=2, steps=4, batch_size=2)
        >>> kept = Checkpoint(Path(mkdtemp()) / "run.checkpoint", steps=3)
        >>> train(config, checkpoint=kept).metrics == train(config, checkpoint=kept).metrics
        True
    """

    path: Path
    steps: int | None = None
    seconds: float | None = 300.0
    _last: float = field(default_factory=time.monotonic, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        for name in ("steps", "seconds"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not value > 0):
                raise RunError(f"{name} of a checkpoint is {value!r}; it must be positive, or None for never")

    def resume(self, training: Training) -> bool:
        """Go on from the file, where it is; say whether it was.

        Raises:
            CheckpointError: a file that is damaged, of a newer format or of another run; it is left as it is.
        """
        self._last = time.monotonic()
        if not self.path.exists():
            return False
        state = read_state(self.path, training.config)
        if len(state["random"]) != training.team.size:
            raise CheckpointError(
                f"{self.path.name} is of {len(state['random'])} processes and this run of {training.team.size}; "
                "start as many, or move it away"
            )
        try:
            training.restore(state)
        except NO_STATE as error:
            raise CheckpointError(f"{self.path.name} does not fit this version's model ({_line(error)})") from None
        return True

    def keep(self, training: Training) -> None:
        """Write the state if it is time to; a disk that is full is a warning, for the run itself is well."""
        if not self._due(training):
            return
        # Every process has a part of the state; one of them writes.
        state = training.state()
        if training.team.leads:
            try:
                write_whole(self.path, as_bytes(state, training.config))
            except OSError as error:
                warnings.warn(
                    f"{self.path.name} cannot be written ({error.strerror}); the run goes on, and if it is stopped it "
                    "begins again where the file before was written",
                    RuntimeWarning,
                    stacklevel=2,
                )
        self._last = time.monotonic()

    def _due(self, training: Training) -> bool:
        done = len(training.losses)
        by_steps = self.steps is not None and done % self.steps == 0
        late = self.seconds is not None and time.monotonic() - self._last >= self.seconds
        # Clocks differ, and all processes must agree: the first one's counts.
        return by_steps or training.team.sum(float(late and training.team.leads)) > 0


def as_bytes(state: dict[str, Any], config: RunConfig) -> bytes:
    """Return the content of a checkpoint.

    Example:
        >>> import torch
        >>> from posembed import RunConfig
        >>> from posembed.experiments.files.checkpoints import as_bytes
        >>> as_bytes({"losses": torch.zeros(1)}, RunConfig())[:13]
        b'{"format": 1,'
    """
    content = io.BytesIO()
    torch.save(state, content)
    body = content.getvalue()
    head = {"format": FORMAT, "key": config.key, "sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps(head).encode() + b"\n" + body


def read_state(path: Path | str, config: RunConfig) -> dict[str, Any]:
    """Read the state of a run.

    Raises:
        CheckpointError: a file that cannot be read, is damaged, of a newer format or of another run.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.files.checkpoints import read_state
        >>> read_state("none.checkpoint", RunConfig())
        Traceback (most recent call last):
        posembed.errors.CheckpointError: none.checkpoint cannot be read (No such file or directory)
    """
    path = Path(path)
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read ({error.strerror})") from None
    damaged = CheckpointError(f"{path.name} is damaged; move it away, and the run begins anew")
    try:
        said = json.loads(head)
        found, key, digest = said["format"], said["key"], said["sha256"]
    except (ValueError, KeyError, TypeError):
        raise damaged from None
    if found != FORMAT:
        raise CheckpointError(
            f"{path.name} has format {found!r}, this version of posembed reads {FORMAT}; upgrade posembed"
        )
    if key != config.key:
        raise CheckpointError(
            f"{path.name} is of the run {key}, not of {config.key}; give another name or move it away"
        )
    if hashlib.sha256(body).hexdigest() != digest:
        raise damaged
    return torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
