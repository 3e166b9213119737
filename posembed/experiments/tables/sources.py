"""Studies of the tables of checkpoints: measured now where they can be had, else as the package keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...errors import CheckpointError, CheckpointNotFoundError
from ...pretrained import HUB_NAME, WHEEL, installed_folder
from ...tables import load_table
from ...tables.hub import why_unreachable
from .measure import study_table
from .record import TableStudy
from .store import stored_studies

_WITH_PART = re.compile(r"(.+), (encoder|decoder|text|vision)")


def table_studies(sources: Iterable[str]) -> dict[str, TableStudy]:
    """Study the tables of checkpoints, measured now where they can be had, else as stored in the package.

    What is on this machine is used first: folders, caches, and for `posembed.load_encoder`'s model the installed wheel.
    For the others the hub is asked. Once it cannot be reached it is left alone: a time-out is waited for once.

    Args:
        sources: names on the hub, or what else `posembed.load_table` takes as text. Of a model with several tables,
            with the part: "openai/whisper-base, decoder".

    Returns:
        The studies by source, in the order given. Left out is what can neither be had nor is stored. A study with
        `stored` true comes from the package; its revision and date say what was measured.

    Raises:
        CheckpointError: a checkpoint is there but damaged or refused, and none is stored.
        PositionTableError: a checkpoint has no position table, or several.
        ProbeInputError: or another error of `study_table`, for a table that is too short or not finite.
        RunError: a stored study is damaged or of a newer format.

    Example:
        >>> from posembed.experiments import table_studies
        >>> list(table_studies(["sentence-transformers/all-MiniLM-L6-v2"]))
        ['sentence-transformers/all-MiniLM-L6-v2']
    """
    found = {source: _studied_here(source) for source in dict.fromkeys(sources)}
    for source in [source for source, study in found.items() if study is None]:
        if why_unreachable() is not None:
            break
        found[source] = _studied(source)
    kept = stored_studies() if None in found.values() else {}
    studies = {source: study or kept.get(source) for source, study in found.items()}
    return {source: study for source, study in studies.items() if study is not None}


def _studied_here(source: str) -> TableStudy | None:
    """A study of what is on this machine, without a request."""
    with _offline():
        found = _studied(source)
    folder = installed_folder()
    if found is not None or source != HUB_NAME or folder is None:
        return found
    return replace(study_table(str(folder)), source=HUB_NAME, revision=f"PyPI {WHEEL.replace('==', ' ')}")


def _studied(source: str) -> TableStudy | None:
    """A study; None where the checkpoint cannot be had."""
    named = _WITH_PART.fullmatch(source)
    name, part = named.groups() if named else (source, None)
    try:
        table = load_table(name, part=part)
    except CheckpointNotFoundError:
        return None
    except CheckpointError:
        if source not in stored_studies():
            raise
        return None
    return replace(study_table(table), source=source)


@contextmanager
def _offline() -> Iterator[None]:
    """Ask no hub inside the block, as with HF_HUB_OFFLINE in the environment."""
    try:
        from huggingface_hub import constants
    except ValueError:  # an HF_ENDPOINT that is no address: nothing can be asked
        yield
        return
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
