"""Results as a table, run by run or arm by arm: those of a folder, or those that the package stores."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RunError, shown
from ..public import public
from ..stats import interval
from ..training.results import RunResult, read_results
from .studies import load_study, study_names

if TYPE_CHECKING:
    import pandas


@public(RunError)
def load_results(source: Path | str) -> pandas.DataFrame:
    """Load results as a table, one row a run: those of a folder, or the reported ones of a study of the package.

    Runs of one arm differ in their seed alone. An arm of a study has its name there; of a folder it is told by the
    settings in which its runs differ. One scheme may be in several arms: what is compared is arms, as `summary` does.
    By ``config.scheme`` alone they are thrown together: in the study "nopos" T5 would then lead RoPE.

    Args:
        source: the name of a study, or a folder of `run_grid`, ``posembed train`` or ``posembed grid``; a folder with
            the name of a study is given with its path, such as "./nopos".

    Returns:
        The table. Its columns are ``study`` (of a folder, its name), ``arm``, ``seed``, ``key``, ``machine`` and
        ``wall_seconds``; the others say where a value comes from, as ``config.scheme`` and the other settings do,
        ``metrics.loss`` and the other metrics, ``speed.tokens_per_second``, ``versions.torch``. Losses are in nats a
        guessed token. What a study tried to choose its learning rates is `load_study`'s ``trials``.

    Raises:
        RunError: no such study or folder; a folder without results, or with a file that is damaged, which is named.

    Warns:
        UserWarning: a scheme is in several arms.

    Example:
        >>> from posembed import load_results
        >>> table = load_results("encodings")
        >>> bool((table[table["arm"] == "rope"]["metrics.loss"] > 1).all())
        True
    """
    table = table_of(source)
    n_arms = table.groupby("config.scheme")["arm"].nunique()
    if several := ", ".join(f"{scheme} in {n}" for scheme, n in n_arms.items() if n > 1):
        advice = "group by 'arm', for by 'config.scheme' they are mixed"
        warnings.warn(f"a scheme is in several arms ({several}); {advice}", stacklevel=3)
    return table


def table_of(source: Path | str) -> pandas.DataFrame:
    """The table of `load_results`, for those who compare arms."""
    import pandas

    if isinstance(source, str) and source in study_names():
        name, by_arm = source, load_study(source).by_arm
        arms, runs = [arm for arm, its in by_arm.items() for _ in its], [run for its in by_arm.values() for run in its]
    else:
        runs = _of_folder(Path(source))
        name, arms = Path(source).resolve().name, _told(runs)
    seeds, keys = [run.config.seed for run in runs], [run.config.key for run in runs]
    first = pandas.DataFrame({"study": name, "arm": arms, "seed": seeds, "key": keys})
    # A metric never hides the setting that has the same name.
    return first.join(pandas.json_normalize([run.to_dict() for run in runs], max_level=1))


def _of_folder(folder: Path) -> list[RunResult]:
    if not folder.is_dir():
        studies = ", ".join(study_names())
        raise RunError(f"there is no folder {str(folder)!r}; give one, or the name of a study: {studies}")
    runs = read_results(folder)
    if not runs:
        raise RunError(f"there are no results in {str(folder)!r}; give the folder with the runs' JSON files")
    return runs


def summary(
    source: Path | str | pandas.DataFrame, *, metric: str = "loss", against: str | None = None
) -> pandas.DataFrame:
    """Sum up results arm by arm: a mean over seeds, its interval and, if asked, the difference from another arm.

    Args:
        source: as for `load_results`, or its table.
        metric: of the runs.
        against: the arm to compare with; runs are paired by their seeds.

    Returns:
        A row for each arm with that metric, with the columns "mean", "low", "high" and "n" of
        `posembed.stats.interval`, whose ends are NaN for a single run; with `against`, "minus", "minus_low",
        "minus_high" and "pairs" too.

    Raises:
        RunError: what `load_results` refuses; a metric or an arm that is not there; an arm with a seed twice.

    Warns:
        UserWarning: runs of an arm are left out, for they have no such number, as one that diverged.

    Example:
        >>> from posembed.stored import summary
        >>> table = summary("encodings", against="nopos")
        >>> print(f"{table.loc['rope', 'mean']:.3f}, {table.loc['rope', 'minus']:.3f}")
        1.315, -0.472
    """
    import pandas

    table = table_of(source) if isinstance(source, Path | str) else source
    numbers = [name for name in table.select_dtypes("number") if name.startswith("metrics.")]
    if (column := f"metrics.{metric}") not in numbers:
        metrics = ", ".join(name.removeprefix("metrics.") for name in numbers)
        raise RunError(f"there is no metric {shown(metric)} that is a number; choose among {metrics}")
    finite = np.isfinite(table[column])
    known = finite.groupby(table["arm"], sort=False).mean()
    # An arm without any has no row, which can be seen.
    if lost := ", ".join(f"{arm} ({1 - share:.0%})" for arm, share in known.items() if 0 < share < 1):
        warnings.warn(f"runs are left out, for their {metric} is no number: {lost}", stacklevel=2)
    groups = table[finite].groupby("arm", sort=False)
    if twice := [arm for arm, rows in groups if rows["seed"].duplicated().any()]:
        raise RunError(f"the arm {shown(twice[0])} has a seed twice, which would make its interval too narrow")
    by_arm = {arm: rows.set_index("seed")[column] for arm, rows in groups}
    if against is not None and against not in by_arm:
        raise RunError(f"there is no arm {shown(against)}; choose among {', '.join(map(repr, by_arm))}")
    rows = [_mean(values) for values in by_arm.values()]
    if against is not None:
        names = {"mean": "minus", "low": "minus_low", "high": "minus_high", "n": "pairs"}
        pairs = [_mean((values - by_arm[against]).dropna()) for values in by_arm.values()]
        rows = [row | {names[name]: each[name] for name in names} for row, each in zip(rows, pairs, strict=True)]
    return pandas.DataFrame(rows, index=[*by_arm])


def _mean(values: pandas.Series) -> dict[str, float]:
    """What is known of a mean; of one value no interval, and of none nothing."""
    if len(values) < 2:
        return {"mean": float(values.mean()), "low": math.nan, "high": math.nan, "n": len(values)}
    found = asdict(interval(values))
    del found["p"]
    return found


def _told(runs: Sequence[RunResult]) -> list[str]:
    """The arm of each run of a folder, by the settings in which they differ; of a hash eight digits."""
    settings = [run.config.to_dict() for run in runs]
    differ = [name for name in settings[0] if name != "seed" and len({str(each[name]) for each in settings}) > 1]
    words = [
        [
            f"{name.replace('_', ' ')} {_short(name, each[name])}"
            for name in differ
            if each[name] not in (None, "", [], {})
        ]
        for each in settings
    ]
    return [", ".join(told) or run.config.scheme for told, run in zip(words, runs, strict=True)]


def _short(name: str, value: Any) -> str:
    return str(value)[:8] if name.endswith("_hash") else f"{value:g}" if isinstance(value, float) else str(value)
