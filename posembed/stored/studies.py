"""Studies that ship with the package: each in one file that holds its plan, its runs and what was to be compared.

Some of the models and tables that their runs trained ship too, so that they can be probed at once.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jaxtyping import Float
from torch import Tensor

from ..errors import RunError, shown
from ..models import LanguageModel
from ..public import public
from ..serialization import Record
from ..stats import Interval, family
from ..training.config import RunConfig
from ..training.plans import Arm, Plan, miniature
from ..training.results import RunResult, of_format, parse_result, read_json
from ..training.weights import read_model

if TYPE_CHECKING:
    import pandas

BUNDLE, FORMAT = ".json.gz", 2

# The first seed of these arms of the study `nopos`.
MODELS = {
    "causal-nopos": "causal, nopos",
    "causal-learned": "causal, learned",
    "causal-alibi": "causal, alibi",
    "causal-rope": "causal, rope",
    "masked-nopos": "masked, nopos",
    "masked-learned": "masked, learned",
}
# The weights of these two runs were not kept: they were trained again from the same seed, and go in half precision.
TRAINED_AGAIN = ("causal-alibi", "causal-rope")
MODEL_FOLDER = "models"


@dataclass(frozen=True, repr=False)
class Study(Record):
    """What a study asked, ran and found.

    Attributes:
        name: of the study.
        about: its plan in words, with what was to be compared.
        by_arm: the reported runs of each arm, in the order of their seeds.
        trials: the runs that chose the arms' learning rates.
        planned: what was to be compared, by family and name.

    Example:
        >>> from posembed import load_study
        >>> study = load_study("encodings")
        >>> study.runs.groupby("arm")["loss"].mean().idxmax()
        'nopos'
        >>> print(f"{study.contrasts.loc['rope minus nopos', 'mean']:.3f}")
        -0.472
    """

    name: str
    about: str
    by_arm: Mapping[str, Sequence[RunResult]]
    trials: Sequence[RunResult]
    planned: Mapping[str, Mapping[str, Interval]]

    @cached_property
    def runs(self) -> pandas.DataFrame:
        """The reported runs, a row each, with "arm", "seed", "learning_rate", "key" and each metric by its name."""
        import pandas

        return pandas.DataFrame([_row(arm, run) for arm, runs in self.by_arm.items() for run in runs])

    @cached_property
    def contrasts(self) -> pandas.DataFrame:
        """What was to be compared, a row each, as `posembed.stats.family` gives it, each family corrected by itself.

        Its last column, "family", says which; names are those of the plan.
        """
        import pandas

        return pandas.concat([family(found).assign(family=name) for name, found in self.planned.items()])


def load_study(name: str) -> Study:
    """Load a study from the package: its plan in words, its runs and its contrasts.

    Args:
        name: of the study; the error lists those there are.

    Returns:
        The study; `Study.runs` and `Study.contrasts` are tables. Losses are in nats a guessed token.

    Raises:
        RunError: no such study, or its file is damaged or of a newer format.

    Example:
        >>> from posembed import load_study
        >>> loss = load_study("nopos").runs.pivot(index="seed", columns="arm", values="loss")
        >>> bool((loss["causal, nopos"] > loss["causal, learned"]).all())
        True
    """

    def study(stored: Mapping[str, Any]) -> Study:
        by_key = {key: parse_result(run) for key, run in stored["runs"].items()}
        by_arm = {arm["arm"]: [by_key[key] for key in arm["runs"]] for arm in stored["plan"]}
        trials = {key: by_key[key] for arm in stored["plan"] for key in arm["trials"] if key in by_key}
        planned = {
            group: {contrast: Interval(*numbers) for contrast, numbers in found.items()}
            for group, found in stored["contrasts"].items()
        }
        return Study(name, stored["about"], by_arm, [*trials.values()], planned)

    return _read(name, study)


@public(RunError)
def load_plan(name: str, preset: Literal["smoke", "cpu"] = "cpu") -> Plan:
    """Load what a study runs, as `posembed grid` does.

    Args:
        name: of the study; the error lists those there are.
        preset: "smoke", minutes on one core; or "cpu", the plan itself.

    Raises:
        RunError: no such study or preset, or its file is damaged or of a newer format.

    Example:
        >>> from posembed.stored import load_plan
        >>> load_plan("encodings").n_runs
        72
    """

    def plan(stored: Mapping[str, Any]) -> Plan:
        told = {key: run["config"] for key, run in stored["runs"].items()} | stored["untrained"]
        arms = [Arm(arm["arm"], *(_configs(arm[kind], told) for kind in ("runs", "trials"))) for arm in stored["plan"]]
        return Plan(name, tuple(arms), save_tables=stored["save_tables"])

    return miniature(_read(name, plan)) if preset == "smoke" else _read(name, plan)


def study_names() -> list[str]:
    """List the studies that ship with the package.

    Example:
        >>> from posembed.stored import study_names
        >>> "encodings" in study_names()
        True
    """
    return sorted(each.name.removesuffix(BUNDLE) for each in _folder().iterdir() if each.name.endswith(BUNDLE))


def load_runs(study: str) -> list[RunResult]:
    """Load all stored runs of a study from the package, those that chose the learning rates too.

    Args:
        study: its name; the error lists those there are.

    Raises:
        RunError: no such study, or its file is damaged or of a newer format.

    Example:
        >>> from posembed.stored import load_runs
        >>> load_runs("encodings")[0].config.data
        'sotu'
    """
    return _read(study, lambda stored: [parse_result(each) for each in stored["runs"].values()])


def bundle(about: str, plan: Plan, runs: Mapping[str, Any], planned: Mapping[str, Mapping[str, Interval]]) -> bytes:
    """The content of a study's file.

    Args:
        about: its plan in words.
        plan: what it runs, with the learning rates that were chosen.
        runs: as their files hold them, by key.
        planned: what was to be compared, by family and name.
    """
    configs = {config.key: config for arm in plan.arms for config in (*arm.runs, *arm.trials)}
    arms = [
        {"arm": arm.name, "runs": [run.key for run in arm.runs], "trials": [trial.key for trial in arm.trials]}
        for arm in plan.arms
    ]
    whole = {
        "format": FORMAT,
        "about": about,
        "save_tables": plan.save_tables,
        "plan": arms,
        "untrained": {key: config.to_dict() for key, config in configs.items() if key not in runs},
        "contrasts": {group: {name: astuple(each) for name, each in found.items()} for group, found in planned.items()},
        "runs": runs,
    }
    # Without a date: the same study is the same file.
    return gzip.compress(json.dumps(whole, separators=(",", ":")).encode(), mtime=0)


def load_model(name: str) -> LanguageModel:
    """Load a trained model from the package: 4 layers, width 64, trained on pieces of 64 characters of "sotu".

    Args:
        name: "causal-nopos", "causal-learned", "causal-alibi", "causal-rope", "masked-nopos" or "masked-learned".

    Returns:
        The model on the CPU, in evaluation mode.

    Raises:
        RunError: no such model.

    Example:
        >>> from posembed.data import load_corpus
        >>> from posembed.stored import load_model
        >>> vocabulary = load_corpus().vocabulary
        >>> logits = load_model("causal-nopos")(vocabulary.encode("the state of the unio")[None])
        >>> vocabulary.decode([int(logits[0, -1].argmax())])
        'n'
    """
    return read_model(run_of_model(name).config, Path(str(_folder() / MODEL_FOLDER)))


def run_of_model(name: str) -> RunResult:
    """The run that trained a model of the package.

    Args:
        name: of the model.

    Raises:
        RunError: no such model.

    Example:
        >>> from posembed.stored import run_of_model
        >>> run_of_model("masked-learned").config.masking_rate
        0.15
    """
    if name not in MODELS:
        raise RunError(f"there is no model {shown(name)}; choose among {', '.join(MODELS)}")
    return load_study("nopos").by_arm[MODELS[name]][0]


def bundle_tables(tables: Mapping[str, Float[Tensor, "n_positions d_model"]]) -> bytes:
    """The content of the file that ships in the package, in float16, which halves it."""
    from safetensors.torch import save

    return save({key: tables[key].half() for key in sorted(tables)})


def load_tables(study: str) -> dict[str, Float[Tensor, "n_positions d_model"]]:
    """Load the trained tables of a study from the package, by the keys of the runs' configs.

    Args:
        study: its name.

    Raises:
        RunError: no tables of such a study.

    Example:
        >>> from posembed.stored import load_tables
        >>> next(iter(load_tables("trained-tables").values())).shape
        torch.Size([128, 64])
    """
    from safetensors.torch import load

    stored = _folder() / f"{study}.safetensors"
    return {key: weight.float() for key, weight in load(stored.read_bytes()).items()}


def _configs(keys: Sequence[str], told: Mapping[str, Any]) -> tuple[RunConfig, ...]:
    return tuple(RunConfig.from_dict(told[key]) for key in keys)


def _row(arm: str, run: RunResult) -> dict[str, Any]:
    config = run.config
    return {"arm": arm, "seed": config.seed, "learning_rate": config.learning_rate, "key": config.key, **run.metrics}


def _read(name: str, parse: Callable[[Mapping[str, Any]], Any]) -> Any:
    """What a study's file holds, as it is parsed."""
    if name not in (names := study_names()):
        raise RunError(f"there is no study {shown(name)}; choose among {', '.join(names)}")
    path = Path(str(_folder() / f"{name}{BUNDLE}"))
    return read_json(path, lambda stored: parse(of_format(stored, FORMAT)), "install posembed again")


def _folder() -> Any:
    return files("posembed.stored")
