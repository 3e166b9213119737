"""Who runs what, where several grids share a folder: a lock for each run, which ends with the process that holds it.

The lock is the operating system's (flock), on a file KEY.lock that begins with a dot. A process that is killed loses
it at that moment, so there is nothing to grow stale and nobody's clock matters. Between machines it holds where the
folder's file system passes such locks on, as NFS does. Where there are none a run may be done twice: that costs time,
and both write the same result.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import RunError
from ..config import RunConfig

# Windows has none.
HAVE_LOCKS = importlib.util.find_spec("fcntl") is not None
# What a file system answers that knows no locks.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def claim(config: RunConfig, folder: Path | str) -> Iterator[bool]:
    """Take a run for this process inside the block, unless another one has it.

    Args:
        config: the run.
        folder: of the results; it is made if need be.

    Yields:
        Whether the run is this process's.

    Raises:
        RunError: a folder that cannot be written.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.claims import claim
        >>> folder = mkdtemp()
        >>> with claim(RunConfig(), folder) as mine, claim(RunConfig(), folder) as mine_too:
        ...     print(mine, mine_too)
        True False
    """
    path = claim_path(config, folder)
    if not HAVE_LOCKS:
        yield True
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = _take(path)
    except OSError as error:
        raise RunError(f"cannot write to the folder {Path(folder).name} ({error.strerror})") from None
    if handle is None:
        yield False
        return
    try:
        _sweep(config, folder)
        yield True
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def claim_path(config: RunConfig, folder: Path | str) -> Path:
    """Where the lock of a run is.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.claims import claim_path
        >>> claim_path(RunConfig(), "results").name[0]
        '.'
    """
    return Path(folder) / f".{config.key}.lock"


def left_behind(config: RunConfig, folder: Path | str) -> bool:
    """Whether a process had the run and was killed.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.claims import claim, claim_path, left_behind
        >>> folder = mkdtemp()
        >>> with claim(RunConfig(), folder):
        ...     print(left_behind(RunConfig(), folder))
        False
        >>> claim_path(RunConfig(), folder).touch()
        >>> left_behind(RunConfig(), folder)
        True
    """
    path = claim_path(config, folder)
    if not HAVE_LOCKS or not path.exists():
        return False
    handle = os.open(path, os.O_RDWR)
    try:
        return _lock(handle, path)
    finally:
        os.close(handle)


def _take(path: Path) -> int | None:
    """Open and lock a file; None where another has it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _lock(handle, path):
                os.close(handle)
                return None
            if _is(handle, path):
                _sign(handle)
                return handle
        except BaseException:
            os.close(handle)
            raise
        # Who had it has just removed it: this is a lock on a file without a name.
        os.close(handle)


def _lock(handle: int, path: Path) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        warnings.warn(
            f"the folder {path.parent.name} knows no locks; another grid in it may repeat a run",
            RuntimeWarning,
            stacklevel=2,
        )
    return True


def _sign(handle: int) -> None:
    """Write down who has the lock, for people to read; on a full disk it is a lock all the same."""
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps({"host": socket.gethostname(), "process": os.getpid()}).encode())


def _is(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _sweep(config: RunConfig, folder: Path | str) -> None:
    """Remove what a killed process had half-written for this run; nobody else can be writing for it."""
    for left in Path(folder).glob(f".{config.key}-*.tmp"):
        left.unlink(missing_ok=True)
