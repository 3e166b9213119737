"""``posembed train``, one run, and ``posembed grid``, a study of many."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Annotated, Any

import typer

import posembed

from ..errors import PosembedError, RunError
from ..progress import say
from .output import facts, one_line, print_json, progress, show
from .tables import AsJson

if TYPE_CHECKING:
    from ..training import RunConfig, RunResult
    from ..training.grid import Settings
    from ..training.plans import Plan

RUNNING = "How it is run"
# What typer is told of a setting, by the annotation in RunConfig; of all others that they are text.
KINDS: dict[str, Any] = {
    **dict.fromkeys(("Count", "Whole", "Seed"), int | None),
    **dict.fromkeys(("Positive", "NotNegative", "Share"), float | None),
    "bool": bool | None,
    "tuple[str, ...]": list[str] | None,
    "tuple[int, ...]": list[int] | None,
}


def train(words: Annotated[list[str] | None, typer.Argument(metavar="[OPTIONS]")] = None) -> None:
    """Train a small language model with a position scheme, and measure it on texts that it has not seen.

    $ posembed train --scheme rope --steps 500

    $ posembed train --help
    """
    with progress("starting"):
        command = training_app()
    # Without standalone_mode an interruption comes back as its exit code.
    raise typer.Exit(command(words or [], prog_name="posembed train", standalone_mode=False) or 0)


def training_app() -> typer.Typer:
    """Make the app that reads the options of a run: the settings of RunConfig, which takes a second to import."""

    def run(out: Path | None, save_model: bool | None, as_json: bool | None, **settings: Any) -> None:
        # A command starts elsewhere; modules of one's own stand in this folder.
        sys.path.append(str(Path.cwd()))
        given = {name: value for name, value in settings.items() if value not in (None, [])}
        # Made anew, it takes the hash of its text.
        with _own_code(given.get("scheme", "")):
            config = replace(posembed.RunConfig.from_dict(posembed.RunConfig().to_dict() | given))
        result = _trained(config, out, bool(save_model))
        if as_json:
            print_json({"key": result.config.key} | result.to_dict())
        else:
            show(facts(_as_facts(result)))

    stored = typer.Option(metavar="FOLDER", help="Keep the result here, and every minute the state.")
    weights = typer.Option("--save-model", help="Keep the weights too.")
    own = {"out": Annotated[Path | None, stored], "save_model": Annotated[bool, weights], "as_json": AsJson}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in {**dict(_settings(posembed.RunConfig)), **own}.items()
    ]
    # What typer reads of a function.
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(no_args_is_help=True, help=train.__doc__, context_settings={"help_option_names": ["-h", "--help"]})(run)
    return app


def _settings(config: type[RunConfig]) -> Iterator[tuple[str, Any]]:
    """The name and the option of each setting of a run, with the words of its docstring."""
    said = dict(re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", config.__doc__ or "", re.MULTILINE))
    for each in fields(config):
        if each.name in ("text_hash", "scheme_hash", "study"):
            continue
        words = " ".join(said[each.name].split()).replace("`", "").replace("None for", "by default")
        written = str(each.type).removesuffix(" | None")
        words += " Say it once for each." if written.startswith("tuple") else ""
        default = "" if each.default in (None, (), "", MISSING) else f" Default: {each.default}."
        more: Any = {"parser": _read_json, "metavar": "JSON"} if written.startswith("Mapping") else {}
        option = typer.Option(help=words + default, show_default=False, **more)
        yield each.name, Annotated[KINDS.get(written, str | None), option]


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # which typer would put into a box
        raise PosembedError(f"""{text!r:.100} is no JSON, as '{{"rope": {{"base": 500.0}}}}' is; mend it""") from None


@contextmanager
def _own_code(scheme: Any) -> Iterator[None]:
    """Say in one line what a scheme of one's own has raised, which may be anything."""
    from ..training.grid import in_one_line

    try:
        yield
    except PosembedError:
        raise
    except Exception as error:
        if ":" not in str(scheme):
            raise
        raise RunError(f"the run failed ({in_one_line(error)})") from None


def _trained(config: RunConfig, out: Path | None, save_model: bool) -> RunResult:
    from ..training import run_and_store
    from ..training.results import file_of

    if save_model and out is None:
        raise RunError("--save-model needs --out, the folder to keep the weights in")
    stored, unfinished = (file_of(config, out or Path(), ending) for ending in ("json", "checkpoint"))
    is_there = out is not None and stored.exists()
    if unfinished.exists():
        say(f"this run was stopped, and goes on from {unfinished.name}; to begin anew move it away")
    work = partial(run_and_store, config, out, save_model=save_model) if out else partial(posembed.train, config)
    try:
        with _own_code(config.scheme), progress(config.scheme, config.steps) as tell:
            result = work(progress=lambda step, loss: tell(f"{config.scheme}, loss {loss:.3f}", step))
    except (KeyboardInterrupt, SystemExit) as end:
        for note in getattr(end, "__notes__", ()):
            say(note)
        raise
    if is_there:
        say(f"this run has a result, which is shown; to train it again move {stored.name} away")
    return result


def _as_facts(result: RunResult) -> dict[str, str | None]:
    config, metrics, speed = result.config, result.metrics, result.speed
    perplexities = [
        f"{metrics[name]:,.{digits}f} a {name.rpartition('_')[2]}"
        for name, digits in (("perplexity_per_token", 3), ("perplexity_per_word", 0))
        if name in metrics
    ]
    return {
        "run": f"{config.scheme}, {config.objective}, seed {config.seed}, {config.key}",
        "loss": f"{metrics['loss']:.4f} nats a guessed token of the test text",
        "perplexity": ", ".join(perplexities) or None,
        "validation": f"{metrics['validation_loss']:.4f}",
        "parameters": f"{metrics['parameters']:,}, of them {metrics['scheme_parameters']:,} of the scheme",
        "speed": f"{speed['tokens_per_second']:,.0f} tokens a second" if speed else None,
        "time": f"{result.minutes:.1f} minutes",
        "machine": result.machine,
    }


def grid(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="encodings, nopos-large (on a GPU) or another study that the package holds."
        ),
    ],
    preset: Annotated[str, typer.Option(help="smoke, in minutes; cpu, the plan of the study.")] = "cpu",
    data: Annotated[str | None, typer.Option(help="Another text for all runs.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is to do, and stop.")] = False,
    engine: Annotated[
        str, typer.Option(help="serial, joblib (processes) or ray (a cluster).", rich_help_panel=RUNNING)
    ] = "joblib",
    n_workers: Annotated[int, typer.Option(help="Runs at a time; -1 for one a core.", rich_help_panel=RUNNING)] = -1,
    gpus: Annotated[
        float,
        typer.Option(help="The share of a GPU that a run with device cuda takes, with Ray.", rich_help_panel=RUNNING),
    ] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Of the results; what has one there is not run again.", rich_help_panel=RUNNING
        ),
    ] = None,
    save_models: Annotated[
        bool, typer.Option("--save-models", help="Keep the weights of each model.", rich_help_panel=RUNNING)
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a study: say how many runs there are, how many are done and about how long the rest takes, then run it.

    $ posembed grid encodings --preset smoke

    $ posembed grid encodings --engine ray --out results/encodings
    """
    folder = out or Path("results") / study
    with progress("looking at what is there"):
        from ..stored import load_plan
        from ..training.grid import Settings
        from ..training.plans import estimate, standing

        choices: dict[str, Any] = {"preset": preset, "engine": engine}  # load_plan and Settings say which there are
        plan = load_plan(study, choices["preset"])
        plan = plan.with_changes(data=data) if data else plan
        settings = Settings(folder, engine=choices["engine"], n_workers=n_workers, gpus=gpus, save_models=save_models)
        if any(config.study for arm in plan.arms for config in (*arm.runs, *arm.trials)):
            raise RunError(f"{study} is trained or measured in ways of its own; make study NAME={study} runs it")
        stand = standing(plan, folder)
        # Of a cluster nobody knows how many runs go on at a time.
        alone = engine == "serial" or "RAY_ADDRESS" in os.environ
        at_once = 1 if alone else max(1, min(len(stand.left), n_workers if n_workers > 0 else os.cpu_count() or 1))
        seconds = estimate(stand.left) / at_once
    there = {"study": plan.name, "preset": plan.preset, "engine": engine, "out": str(folder), "runs": stand.n_runs}
    there |= {"done": stand.n_done, "left": len(stand.left), "at_once": at_once, "estimated_seconds": round(seconds, 1)}
    if not as_json:
        done = f"{stand.n_done} have a result in {folder}, {len(stand.left)} are left"
        show(one_line(f"{plan.name}, preset {plan.preset}: {stand.n_runs} runs, {done}"), style="bold")
        if stand.left:
            duration = timedelta(seconds=max(1, round(seconds)))
            show(f"about {duration} (hours:minutes:seconds), {at_once} at a time; from a few steps that were timed")
    results = {} if dry_run else _run(plan, settings, len(stand.left))
    if as_json:
        runs = {name: [{"key": each.config.key} | each.to_dict() for each in done] for name, done in results.items()}
        print_json(there | {"results": runs})
    else:
        show(facts({name: _in_short(runs) for name, runs in results.items()}))


def _run(plan: Plan, settings: Settings, n_left: int) -> dict[str, list[RunResult]]:
    from ..training.grid import telling
    from ..training.plans import run_plan

    with progress(f"running {plan.name}", n_left) as tell:
        results, remark = run_plan(plan, settings, telling(tell))
    if remark:
        say(f"warning: in the trials, {remark}")
    return results


def _in_short(runs: Sequence[RunResult]) -> str:
    loss, minutes = mean(run.metrics["loss"] for run in runs), sum(run.minutes for run in runs)
    return f"{len(runs)} runs at {runs[0].config.learning_rate:g}: mean test loss {loss:.4f}, {minutes:.1f} minutes"
