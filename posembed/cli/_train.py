"""``posembed train``: one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _options as options
from ._output import print_json
from ._settings import with_settings
from ._terminal import facts, progress, show
from ._training_bar import training_bar

if TYPE_CHECKING:
    from ..experiments import RunConfig, RunResult

EXAMPLES = (
    "posembed train --scheme rope --steps 500",
    "posembed train --scheme learned --objective masked --masking-rate 0.15 --out results/mine",
    "posembed train --scheme alibi --data my-text.txt --device cuda --precision bfloat16 --compile --json",
)


@with_settings
def train(
    given: dict[str, Any],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep the result here, and the state every few minutes: a run that was stopped goes on.",
            rich_help_panel=options.HOW_SHOWN,
            show_default=False,
        ),
    ] = None,
    save_model: Annotated[
        bool, typer.Option("--save-model", help="Keep the weights too.", rich_help_panel=options.HOW_SHOWN)
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a small language model with a position scheme, and measure it on texts that it has not seen."""
    with progress("starting"):
        from ..errors import RunError
        from ..experiments import RunConfig

        config = RunConfig(**given)
        if save_model and out is None:
            raise RunError("--save-model needs --out, the folder to keep the weights in")
    result = _run(config, out, save_model)
    if as_json:
        print_json({"key": config.key} | result.to_dict())
        return
    show(facts(_as_facts(result)))


def _run(config: RunConfig, out: Path | None, save_model: bool) -> RunResult:
    from ..errors import RunError
    from ..experiments import train

    with training_bar(config.scheme, config.all_steps, config.batch_size * config.length) as after_step:
        if out is None:
            return train(config, progress=after_step)
        try:
            return _run_in(out, config, save_model, after_step)
        except OSError as error:
            raise RunError(f"the result cannot be written to {out} ({error.strerror}); make room") from None


def _run_in(out: Path, config: RunConfig, save_model: bool, after_step: Any) -> RunResult:
    from ..errors import RunError
    from ..experiments import missing, read_result
    from ..experiments.files.store import file_of
    from ..experiments.grids.claims import claim
    from ..experiments.grids.engines import Settings
    from ..experiments.grids.grid import check_grid
    from ..experiments.grids.runs import Keeping, run_and_store

    keeping = Keeping(models=save_model)
    check_grid([config], "serial", Settings(out, keeping=keeping))
    with claim(config, out) as mine:
        if not mine:
            raise RunError(f"this run is under way in {out} already; wait for it, or choose another --out")
        if missing([config], out):
            return run_and_store(config, out, keeping=keeping, progress=after_step)
    return read_result(file_of(config, out, "json"))


def _as_facts(result: RunResult) -> dict[str, str]:
    config, metrics, speed = result.config, result.metrics, result.speed
    rows = {
        "run": f"{config.scheme}, {config.objective}, seed {config.seed}, {config.key}",
        "loss": f"{metrics['loss']:.4f} nats a guessed token of the test text",
        "perplexity": _perplexity(metrics),
        "validation": f"{metrics['validation_loss']:.4f}",
        "parameters": f"{metrics['parameters']:,}, of them {metrics['scheme_parameters']:,} of the scheme",
        "tokens": f"{metrics['tokens']:,} in training" if "tokens" in metrics else None,
        "speed": f"{speed['tokens_per_second']:,.0f} tokens a second" if speed else None,
        "flops": f"{speed['flops_utilisation']:.1%} of the GPU's" if "flops_utilisation" in speed else None,
        "time": f"{result.minutes:.1f} minutes",
        "machine": result.machine,
    }
    return {name: value for name, value in rows.items() if value is not None}


def _perplexity(metrics: dict[str, Any]) -> str | None:
    if "perplexity_per_word" not in metrics:
        return None
    return f"{metrics['perplexity_per_token']:.3f} a token, {metrics['perplexity_per_word']:,.0f} a word"
