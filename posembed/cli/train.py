"""``posembed train``: one run. Its options are the settings of `posembed.RunConfig`, made from the class itself."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from .output import complain, facts, print_json, progress, show
from .tables import AsJson

if TYPE_CHECKING:
    from ..experiments import RunConfig, RunResult

Out = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Keep the result here, and the state: a run that was stopped goes on."),
]
SaveModel = Annotated[bool, typer.Option("--save-model", help="Keep the weights too.")]


def train(context: typer.Context) -> None:
    """Train a small language model with a position scheme, and measure it on texts that it has not seen.

    $ posembed train --scheme rope --steps 500

    $ posembed train --help
    """
    with progress("starting"):
        command = training_app()
    # Without standalone_mode an interruption comes back as its exit code.
    raise typer.Exit(command(context.args, prog_name="posembed train", standalone_mode=False) or 0)


def training_app() -> typer.Typer:
    """Make the app that reads the options of a run; it stands alone because RunConfig takes a second to import."""
    from ..experiments import RunConfig

    def run(out: Path | None, save_model: bool, as_json: bool, **options: Any) -> None:
        given = {name: value for name, value in options.items() if value not in (None, [])}
        tuples = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        result = _trained(RunConfig(**given | tuples), out, save_model)
        if as_json:
            print_json({"key": result.config.key} | result.to_dict())
        else:
            show(facts(_as_facts(result)))

    run.__doc__ = (train.__doc__ or "").partition("\n")[0]
    own = [("out", Out, None), ("save_model", SaveModel, False), ("as_json", AsJson, False)]
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, annotation, default in [*_settings(RunConfig), *own]
    ]
    # What typer reads of a function.
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})(run)
    return app


def _settings(config: type[RunConfig]) -> Iterator[tuple[str, Any, None]]:
    """The name and the annotation of an option for each setting of a run; None means that it was not given."""
    said = dict(re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", config.__doc__ or "", re.MULTILINE))
    kinds = get_type_hints(config)
    for each in fields(config):
        kind, more = _kind(kinds[each.name])
        help_text = " ".join(said[each.name].replace("`", "").split())
        default = each.default if each.default not in (None, (), "", MISSING) else False
        # Typer takes False for no default to show.
        shown = str(default) if default is not False else False
        yield each.name, Annotated[kind, typer.Option(help=help_text, show_default=shown, **more)], None


def _kind(hint: Any) -> tuple[Any, dict[str, Any]]:
    """What typer is told of a type, and what else."""
    (hint,) = [one for one in get_args(hint) if one is not NoneType] if NoneType in get_args(hint) else [hint]
    if get_origin(hint) is Mapping:
        return Any, {"parser": json.loads, "metavar": "JSON"}
    if get_origin(hint) is Literal:
        # RunConfig says which there are.
        return str | None, {"metavar": "|".join(get_args(hint))}
    if get_args(hint)[1:] == (...,):
        return list[get_args(hint)[0]] | None, {}
    return hint | None, {}


def _trained(config: RunConfig, out: Path | None, save_model: bool) -> RunResult:
    from ..errors import RunError
    from ..experiments import run_and_store
    from ..experiments import train as train_run

    if save_model and out is None:
        raise RunError("--save-model needs --out, the folder to keep the weights in")
    with progress(config.scheme, config.all_steps) as tell:

        def after_step(step: int, loss: float) -> None:
            tell(f"{config.scheme}, loss {loss:.3f}", step)

        try:
            if out is None:
                return train_run(config, progress=after_step)
            return run_and_store(config, out, save_model=save_model, progress=after_step)
        except (KeyboardInterrupt, SystemExit):
            kept = f"its state is kept in {out}; the same command goes on from there" if out else "give --out to go on"
            complain(f"the run was stopped; {kept}")
            raise


def _as_facts(result: RunResult) -> dict[str, object]:
    config, metrics = result.config, result.metrics
    rows: dict[str, object] = {
        "run": f"{config.scheme}, {config.objective}, seed {config.seed}, {config.key}",
        "loss": f"{metrics['loss']:.4f} nats a guessed token of the test text",
        "validation": f"{metrics['validation_loss']:.4f}",
        "parameters": f"{metrics['parameters']:,}, of them {metrics['scheme_parameters']:,} of the scheme",
        "time": f"{result.minutes:.1f} minutes",
        "machine": result.machine,
    }
    if "perplexity_per_word" in metrics:
        perplexity = metrics["perplexity_per_token"], metrics["perplexity_per_word"]
        rows["perplexity"] = "{:.3f} a token, {:,.0f} a word".format(*perplexity)
    if result.speed:
        rows["speed"] = f"{result.speed['tokens_per_second']:,.0f} tokens a second"
    return rows
