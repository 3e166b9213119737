"""From sources to findings; one that cannot be read leaves the others as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PosembedError, ReportError
from ..tables import PositionTable, load_table
from .findings import STEPS, Findings, Rows, examine


@dataclass(frozen=True)
class Refused:
    """A source that could not be read.

    Attributes:
        label: its short name.
        reason: the error.

    Example:
        >>> from posembed.errors import CheckpointNotFoundError
        >>> from posembed.report.gather import Refused
        >>> Refused("gpt3", CheckpointNotFoundError("gpt3 is nowhere")).label
        'gpt3'
    """

    label: str
    reason: PosembedError


# How many times `tell` is called for each source.
STEPS_OF_A_SOURCE = 1 + len(STEPS)


def gather(
    sources: Sequence[Any],
    *,
    label: Sequence[str] | None = None,
    part: str | Sequence[str | None] | None = None,
    revision: str | Sequence[str | None] | None = None,
    name: str | Sequence[str | None] | None = None,
    offset: int | Sequence[int | None] | None = None,
    download: bool = False,
    refresh: bool = False,
    rows: Rows = None,
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Findings | Refused]:
    """Read the tables of several sources and compute all that a report says about them.

    Args:
        sources: each whatever `posembed.load_table` takes.
        label: a short name for each, by default what `labels` finds.
        part: as for `load_table`, one for all sources, or a list with one (or None) for each.
        revision: likewise.
        name: likewise.
        offset: likewise.
        download: as for `load_table`.
        refresh: likewise.
        rows: which rows are probed and compared, as for `posembed.probe_table`.
        seed: of the probes.
        tell: called with what is done next, `STEPS_OF_A_SOURCE` times for each source.

    Returns:
        The findings of each source, or its error.

    Raises:
        ReportError: no source, a list of options or labels for another number of sources, or several sources of which
            none can be read.
        PosembedError: there is one source, and it cannot be read.

    Example:
        >>> import torch
        >>> from posembed import sinusoidal
        >>> from posembed.report.gather import gather
        >>> found, refused = gather([sinusoidal(64, 16), torch.zeros(3, 3, 3)])
        >>> found.label, refused.label
        ('table 1', 'table 2')
    """
    if not sources:
        raise ReportError("a report needs at least one source: a hub id, a checkpoint folder, a table")
    each = {"part": part, "revision": revision, "name": name, "offset": offset}
    options = [
        {option: _of(option, value, number, len(sources)) for option, value in each.items()}
        for number in range(len(sources))
    ]
    if label is not None and len(label) != len(sources):
        raise ReportError(f"{len(label)} labels do not fit {len(sources)} sources; give one for each, or none")
    entries: list[Findings | Refused] = []
    for source, short, its in zip(sources, label or labels(sources, options), options, strict=True):
        tell(f"{short}: reading the table")
        try:
            table = _load(source, its | {"download": download, "refresh": refresh})
        except PosembedError as error:
            entries.append(Refused(short, error))
            continue
        entries.append(examine(table, short, rows=rows, seed=seed, tell=tell))
    _check_any_found(entries)
    return entries


def _of(option: str, value: Any, number: int, n_sources: int) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if len(value) == 1:
        return value[0]
    if len(value) != n_sources:
        raise ReportError(
            f"{option} is given {len(value)} times for {n_sources} sources; give it once, or once for each"
        )
    return value[number]


def _load(source: Any, options: dict[str, Any]) -> PositionTable:
    return source if isinstance(source, PositionTable) else load_table(source, **options)


def _check_any_found(entries: list[Findings | Refused]) -> None:
    refused = [entry for entry in entries if isinstance(entry, Refused)]
    if len(refused) < len(entries):
        return
    if len(refused) == 1:
        raise refused[0].reason
    reasons = "; ".join(f"{entry.label}: {entry.reason}" for entry in refused)
    raise ReportError(f"none of the {len(refused)} sources can be read, so there is nothing to report: {reasons}")


def labels(sources: Sequence[Any], options: Sequence[dict[str, Any]]) -> list[str]:
    """Find a short name for each source, different from all others.

    Args:
        sources: what `gather` was given.
        options: those of each source.

    Returns:
        The name on the hub, the last part of a path, or the source's number; with the part of the model, and with a
        number where the same name comes twice. The owner of a name on the hub is left out where the rest tells enough.

    Example:
        >>> from pathlib import Path
        >>> from posembed.report.gather import labels
        >>> labels(["gpt2", Path("models") / "mine", "openai/whisper", "gpt2"], [{}, {}, {"part": "decoder"}, {}])
        ['gpt2 (1)', 'mine', 'whisper decoder', 'gpt2 (2)']
    """
    names = [_name(source, number, its) for number, (source, its) in enumerate(zip(sources, options, strict=True), 1)]
    short = [name.rpartition("/")[2] or name for name in names]
    names = [name if short.count(last) > 1 else last for name, last in zip(names, short, strict=True)]
    counts, seen = Counter(names), Counter[str]()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(f"{name} ({seen[name]})" if counts[name] > 1 else name)
    return distinct


def _name(source: Any, number: int, options: dict[str, Any]) -> str:
    if isinstance(source, PositionTable):
        source, options = source.source, {"part": source.part}
    if not isinstance(source, str | Path):
        return f"table {number}"
    path = Path(source)
    # A hub id has an owner that tells models apart; a folder's place does not.
    name = path.name if path.exists() or isinstance(source, Path) else str(source)
    return " ".join(word for word in (name or str(path.resolve()), options.get("part")) if word)
