"""The trained models of the NoPos study that ship with the package, and what each says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from posembed.data import frequency_loss
from posembed.stored import MODELS
from posembed.stored.studies import TRAINED_AGAIN
from posembed.training import RunResult

from .nopos_contrasts import lowest_error, reported


def run_of_model(name: str, runs: Sequence[RunResult]) -> RunResult:
    """The run of the study that trains a model of the package: the first seed of its arm."""
    return reported(MODELS[name], runs)[0]


def model_card(name: str, runs: Sequence[RunResult]) -> str:
    """What a model is, what it was trained on, how good it is and what it is not for, in Markdown."""
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
    if name in TRAINED_AGAIN:
        rows["weights"] = (
            "in half precision, trained again from the same seed, for those of the run were not kept: "
            "another machine adds in another order, and the loss is off by up to 0.0002"
        )
    table = "\n".join(f"| {what} | {value} |" for what, value in rows.items())
    return f"""# {name}

| | |
| --- | --- |
{table}

Load it with `posembed.stored.load_model("{name}")`. It is for looking into: probe its layers, shuffle
its texts, take its positions away. It has read one text and is no use for writing; what holds for it need not hold for
a large model.
"""
