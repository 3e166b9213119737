"""The studies that ``posembed grid`` knows, in sizes from minutes on one core to the paper's own.

A study is parts; a part is runs that share one learning rate, and the tuning runs that choose it, where it is not
given. Plans are those of `posembed.experiments.encodings`, `posembed.experiments.nopos` and
`posembed.experiments.trained_tables`; "smoke" is the plan in miniature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import RunError
from .. import encodings, nopos, trained_tables
from ..config import RunConfig
from .gpu import gpu
from .paper import paper
from .study import Part, Study


def load_study(name: str, preset: str = "cpu") -> Study:
    """Make the plan of a study.

    Args:
        name: "nopos", "encodings" or "trained-tables".
        preset: "smoke", minutes on one core; "cpu", the plan itself; of "nopos" also "gpu", tens of millions of
            parameters on a text such as enwik8, and "paper", the sizes of Haviv et al. (2022).

    Raises:
        RunError: no such study or preset.

    Example:
        >>> from posembed.experiments.plans.presets import load_study
        >>> load_study("encodings").n_runs
        72
    """
    if name not in STUDIES:
        raise RunError(f"there is no study {name!r}; choose among {', '.join(STUDIES)}")
    presets = STUDIES[name]
    if preset not in presets:
        raise RunError(f"the study {name!r} has no preset {preset!r}; choose among {', '.join(presets)}")
    return presets[preset]()


def _encodings() -> Study:
    parts = [
        Part(arm.scheme, tuple(arm.config(encodings.RATES[0], seed) for seed in encodings.SEEDS), tuple(arm.tuning()))
        for arm in encodings.ARMS
    ]
    return Study("encodings", "cpu", tuple(parts))


def _nopos() -> Study:
    return Study("nopos", "cpu", tuple(part for parts in nopos.PARTS.values() for part in parts))


def _trained_tables() -> Study:
    parts = [
        Part(name, tuple(arm.config(seed) for seed in trained_tables.SEEDS))
        for name, arm in trained_tables.ARMS.items()
    ]
    return Study(trained_tables.STUDY, "cpu", tuple(parts), save_tables=True)


def miniature(study: Study) -> Study:
    """The plan of a study in minutes: two small layers, an eighth of each length, one seed, two learning rates.

    Example:
        >>> from posembed.experiments.plans.presets import load_study, miniature
        >>> miniature(load_study("trained-tables")).n_runs
        5
    """
    parts = tuple(
        Part(part.name, (_tiny(part.runs[0]),), tuple(_tiny(config) for config in part.tuning[1:3]))
        for part in study.parts
    )
    return replace(study, preset="smoke", parts=parts)


def _tiny(config: RunConfig) -> RunConfig:
    lengths = {name: getattr(config, name) for name in ("length", "short_length", "test_length")}
    smaller: dict[str, Any] = {name: length // 8 for name, length in lengths.items() if length is not None}
    if config.layers_with_positions is not None:
        smaller["layers_with_positions"] = (0,)
    if config.further_steps is not None:
        smaller["further_steps"] = 10
    sizes: dict[str, Any] = {"n_layers": 2, "d_model": 16, "n_heads": 2, "batch_size": 8, "steps": 20, "warmup": 5}
    # Probes would take longer than all else.
    return replace(config, **sizes, **smaller, inspections=(), preset="smoke")


STUDIES: dict[str, dict[str, Callable[[], Study]]] = {
    "nopos": {"smoke": lambda: miniature(_nopos()), "cpu": _nopos, "gpu": gpu, "paper": paper},
    "encodings": {"smoke": lambda: miniature(_encodings()), "cpu": _encodings},
    "trained-tables": {"smoke": lambda: miniature(_trained_tables()), "cpu": _trained_tables},
}
