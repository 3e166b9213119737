"""The studies that ``posembed grid`` knows, whole and in miniature.

Their plans are those of `posembed.training.encodings`, `posembed.training.nopos`, `posembed.training.starts`,
`posembed.training.doses`, `posembed.training.depth` and `posembed.training.trained_tables`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import RunError, shown
from .. import depth, doses, encodings, nopos, starts, trained_tables
from ..config import RunConfig
from ..nopos import large
from . import Part, Study


def load_study(name: str, preset: str = "cpu") -> Study:
    """Make the plan of a study.

    Args:
        name: "nopos", "nopos-large", "encodings", "starts", "tasks", "depth" or "trained-tables".
        preset: "smoke", minutes on one core; or "cpu", the plan itself.

    Raises:
        RunError: no such study or preset.

    Example:
        >>> from posembed.training.plans.presets import load_study
        >>> load_study("encodings").n_runs
        72
    """
    if name not in STUDIES:
        raise RunError(f"there is no study {shown(name)}; choose among {', '.join(STUDIES)}")
    if preset not in PRESETS:
        raise RunError(f"the study {shown(name)} has no preset {preset!r}; choose among {', '.join(PRESETS)}")
    study = STUDIES[name]()
    return miniature(study) if preset == "smoke" else study


def _encodings() -> Study:
    return Study("encodings", "cpu", tuple(arm.part for arm in encodings.ARMS))


def _nopos() -> Study:
    return Study("nopos", "cpu", tuple(part for parts in nopos.PARTS.values() for part in parts))


def _nopos_large() -> Study:
    return Study(large.STUDY, "cpu", tuple(large.PARTS.values()))


def _starts() -> Study:
    return Study(starts.STUDY, "cpu", starts.PARTS)


def _trained_tables() -> Study:
    parts = [
        Part(name, tuple(arm.config(seed) for seed in trained_tables.SEEDS))
        for name, arm in trained_tables.ARMS.items()
    ]
    return Study(trained_tables.STUDY, "cpu", tuple(parts), save_tables=True)


def miniature(study: Study) -> Study:
    """The plan of a study in minutes: two small layers, an eighth of each length, one seed, two learning rates.

    Texts of made tasks are short, and stay as they are.
    """
    parts = tuple(
        Part(part.name, (_tiny(part.runs[0]),), tuple(_tiny(config) for config in part.tuning[1:3]))
        for part in study.parts
    )
    return replace(study, preset="smoke", parts=parts)


def _tiny(config: RunConfig) -> RunConfig:
    lengths = {name: getattr(config, name) for name in ("length", "short_length", "test_length")}
    smaller: dict[str, Any] = {name: length // 8 for name, length in lengths.items() if length is not None}
    if config.task is not None:
        # One head of images is wide enough for both of its axes.
        smaller = {"n_heads": 1} if config.task == "digits" else {}
    if config.layers_with_positions is not None:
        smaller["layers_with_positions"] = (0,)
    if config.further_steps is not None:
        smaller["further_steps"] = 10
    sizes: dict[str, Any] = {"n_layers": 2, "d_model": 16, "n_heads": 2, "batch_size": 8, "steps": 20, "warmup": 5}
    if config.device != "cpu":
        smaller |= {"device": "cpu", "data": RunConfig.data, "text_hash": None}
    # Probes would take longer than all else.
    return replace(config, **(sizes | smaller), inspections=(), preset="smoke")


PRESETS = ("smoke", "cpu")
STUDIES: dict[str, Callable[[], Study]] = {
    "nopos": _nopos,
    large.STUDY: _nopos_large,
    "encodings": _encodings,
    starts.STUDY: _starts,
    doses.STUDY: doses.study,
    depth.STUDY: depth.study,
    trained_tables.STUDY: _trained_tables,
}
