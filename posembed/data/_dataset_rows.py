"""The rows of a dataset as a corpus: loaded, checked and cut into parts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from ..errors import CheckpointNotFoundError, CorpusError
from ._texts import PARTS, PERIOD
from .dataset_text import DatasetText

# Rows that are in memory at a time.
ROWS = 64


class DatasetRows:
    """The rows of a dataset, which lie on the disk."""

    def __init__(self, text: DatasetText):
        self.name, self._column = text.name, text.column
        self._parts = _parts(text, _loaded(text))
        for part, rows in self._parts.items():
            _check_rows(part, rows, text)
        self.n_bytes = sum(rows.data.nbytes for rows in self._parts.values())

    def fingerprint(self) -> str:
        """What no other text has; datasets makes it of the files and their times, or of the commit on the hub."""
        prints = [self._parts[part]._fingerprint for part in PARTS]
        return f"dataset {' '.join(prints)} {self._column}"

    def pieces(self, part: str) -> Iterator[str]:
        """Read the rows of a part."""
        rows = self._parts[part].with_format(None).select_columns([self._column])
        number = 0
        for batch in rows.iter(batch_size=ROWS):
            for row in batch[self._column]:
                if row is None:
                    raise CorpusError(f"row {number} of {self.name}'s {part} part is empty; leave it out or fill it")
                yield row if row.endswith("\n") else f"{row}\n"
                number += 1


def _loaded(text: DatasetText) -> Any:
    """The splits of a dataset, by their names."""
    try:
        import datasets
    except ImportError:
        raise CorpusError(f"{text.name} needs the package datasets; pip install 'posembed[datasets]'") from None
    try:
        return datasets.load_dataset(text.path, text.config, revision=text.revision)
    except Exception as error:  # datasets, pyarrow and the hub's client each raise their own kinds
        reason = textwrap.shorten(str(error) or type(error).__name__, width=300, placeholder=" [...]").rstrip(".")
        if _is_of_the_hub(error):
            raise CheckpointNotFoundError(
                f"{text.name} could not be had from the hub ({reason}); check the connection"
            ) from error
        raise CorpusError(f"{text.name} cannot be loaded ({reason}); see its page for names and variants") from error


def _is_of_the_hub(error: BaseException | None) -> bool:
    """Whether this, or what it came from, is about the connection, not about a name that is not there."""
    if isinstance(error, FileNotFoundError | ValueError):
        return False
    while error is not None:
        library = type(error).__module__.partition(".")[0]
        if isinstance(error, ConnectionError | TimeoutError) or library in ("httpx", "requests", "huggingface_hub"):
            return True
        error = error.__cause__ or error.__context__
    return False


def _parts(text: DatasetText, splits: Any) -> dict[str, Any]:
    """The rows of each part; what has no split of its own is cut from the end of the training split."""
    found = {}
    for part in PARTS:
        wanted = getattr(text, part)
        name = wanted or part
        if name in splits:
            found[part] = splits[name]
        elif wanted is not None:
            raise CorpusError(f"{text.name} has no split {name!r}; it has {', '.join(splits)}")
    missing = [part for part in PARTS if part not in found]
    return found | _cut(found["train"], missing, text) if missing else found


def _cut(rows: Any, missing: list[str], text: DatasetText) -> dict[str, Any]:
    """Cut the missing parts from the end of the training split."""
    size, left = len(rows) // PERIOD, len(rows)
    if size == 0:
        wanted = " and ".join(missing)
        raise CorpusError(
            f"{text.name} has {left} rows and no split for {wanted}, which needs at least {PERIOD} rows; name a split"
        )
    found = {}
    for part in reversed(missing):
        found[part] = rows.select(range(left - size, left))
        left -= size
    return found | {"train": rows.select(range(left))}


def _check_rows(part: str, rows: Any, text: DatasetText) -> None:
    if text.column not in rows.column_names:
        raise CorpusError(f"{text.name} has no column {text.column!r}; it has {', '.join(rows.column_names)}")
    kind = rows.features[text.column]
    if getattr(kind, "dtype", None) not in ("string", "large_string", "string_view"):
        raise CorpusError(f"the column {text.column!r} of {text.name} is no text but {kind}; choose another")
    if len(rows) == 0:
        raise CorpusError(f"the {part} part of {text.name} has no rows; name a split that has some")
