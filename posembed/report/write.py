"""Make a report, and write it into a file: all of it, or nothing."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ReportError
from .findings import Findings
from .gather import STEPS_OF_A_SOURCE, Refused, gather


@dataclass(frozen=True)
class WrittenReport:
    """A report in a file.

    Attributes:
        path: the file.
        n_bytes: its size.
        refusals: what the page shows an error in place of, one line each.

    Example:
        >>> from pathlib import Path
        >>> from posembed.report import WrittenReport
        >>> WrittenReport(Path("report.html"), 1000, []).refusals
        []
    """

    path: Path
    n_bytes: int
    refusals: list[str]


def make_report(sources: Sequence[Any], *, made: datetime.date | None = None, **options: Any) -> str:
    """Make a page about one or more position tables, side by side.

    The page stands alone: no script, no font and no picture from elsewhere. A source that cannot be read, or a table
    that something cannot be computed for, is shown with the error in its place.

    Args:
        sources: each whatever `posembed.load_table` takes.
        made: the date that the page states; by default today's.
        **options: as for `posembed.report.gather.gather`: label, part, revision, name, offset, download, refresh, rows,
            seed and tell.

    Returns:
        The page, HTML.

    Raises:
        ReportError: no source, a list of options for another number of sources, or several sources of which none can
            be read.
        PosembedError: there is one source, and it cannot be read.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.report import make_report
        >>> page = make_report([sinusoidal(64, 16)])
        >>> page[:15], "<script" in page
        ('<!DOCTYPE html>', False)
    """
    return _page(gather(sources, **options), made, options)


def write_report(
    sources: Sequence[Any], path: str | Path, *, made: datetime.date | None = None, **options: Any
) -> WrittenReport:
    """Make a page and write it into a file. An older file is replaced when the page is ready, and not before.

    Args:
        sources: as for `make_report`.
        path: the file. Whether it can be written is found out before anything is computed.
        made: as for `make_report`.
        **options: as for `make_report`.

    Returns:
        Where it is, how large, and what it shows errors for.

    Raises:
        ReportError: the path is a folder, its folder does not exist, or nothing can be written there; else as for
            `make_report`.
        PosembedError: as for `make_report`.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from posembed import sinusoidal
        >>> from posembed.report import write_report
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = write_report([sinusoidal(64, 16)], Path(folder) / "report.html")
        ...     written.path.stat().st_size == written.n_bytes
        True
    """
    target = _checked(Path(path))
    entries = gather(sources, **options)
    content = _page(entries, made, options).encode("utf-8", "replace")
    _replace(target, content)
    return WrittenReport(target, len(content), _refusals(entries))


def _page(entries: list[Findings | Refused], made: datetime.date | None, options: dict[str, Any]) -> str:
    # Only here, because a command that prints the same numbers draws nothing.
    from .page import render

    today = datetime.datetime.now(datetime.UTC).date()
    return render(entries, made or today, tell=options.get("tell", lambda text: None))


def n_steps(n_sources: int) -> int:
    """Count how often `make_report` calls ``tell`` if all goes well.

    Example:
        >>> from posembed.report import n_steps
        >>> n_steps(2) - n_steps(1)
        6
    """
    from .pictures import KINDS

    return n_sources * STEPS_OF_A_SOURCE + len(KINDS)


def _refusals(entries: list[Findings | Refused]) -> list[str]:
    lines: list[str] = []
    for entry in entries:
        errors = [str(entry.reason)] if isinstance(entry, Refused) else entry.refusals()
        lines += [f"{entry.label}: {error}" for error in errors]
    return lines


def _checked(path: Path) -> Path:
    """The file to write, after a try to write beside it: permissions alone do not tell."""
    try:
        if path.is_dir():
            raise ReportError(f"{path} is a folder; name a file in it, such as {path / 'report.html'}")
        target = path.resolve()
        if not target.parent.is_dir():
            raise ReportError(f"{path} cannot be written: there is no folder {target.parent}; make it, or name another")
        if target.exists() and not (target.is_file() and os.access(target, os.W_OK)):
            raise ReportError(f"{path} cannot be written: it is no ordinary file, or is protected; name another")
    except (OSError, RuntimeError, ValueError) as error:
        # A name too long, links in a circle, a name with a zero byte.
        if isinstance(error, ReportError):
            raise
        raise _unwritable(path, error) from None
    _replace(target, None)
    return target


def _replace(target: Path, content: bytes | None) -> None:
    """Write a file beside the target and put it in its place; without content only try."""
    beside = target.with_name(f".{target.name[:80]}.{os.getpid()}.part")
    try:
        try:
            beside.write_bytes(content or b"")
            if content is not None:
                beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(target, error) from None


def _unwritable(path: Path, error: Exception) -> ReportError:
    reason = getattr(error, "strerror", None) or error
    return ReportError(f"{path!s:.300} cannot be written: {reason}; name another file")
