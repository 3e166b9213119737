"""``posembed grid``: a study of many runs."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from .output import complain, one_line, print_json, progress, show
from .tables import AsJson

if TYPE_CHECKING:
    from ..experiments import RunConfig, RunResult
    from ..experiments.grid import Settings
    from ..experiments.plans import Study

RUNNING = "How it is run"


def grid(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="nopos, encodings or trained-tables.")],
    preset: Annotated[str, typer.Option(help="smoke, in minutes; cpu, the plan of the study.")] = "cpu",
    data: Annotated[str | None, typer.Option(help="Another text for all runs.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is to do, and stop.")] = False,
    engine: Annotated[
        str, typer.Option(help="serial, joblib (processes) or ray (a cluster).", rich_help_panel=RUNNING)
    ] = "joblib",
    n_workers: Annotated[int, typer.Option(help="Runs at a time; -1 for one a core.", rich_help_panel=RUNNING)] = -1,
    gpus: Annotated[
        float, typer.Option(help="The share of a GPU that a run takes, with Ray.", rich_help_panel=RUNNING)
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

    $ posembed grid nopos --preset smoke

    $ posembed grid encodings --engine ray --out results/encodings
    """
    folder = out or Path("results") / study
    with progress("looking at what is there"):
        from ..experiments import read_results
        from ..experiments.estimate import estimate
        from ..experiments.grid import Settings
        from ..experiments.plans import standing
        from ..experiments.plans.presets import load_study

        plan = load_study(study, preset)
        plan = plan.with_changes(data=data) if data else plan
        settings = Settings(folder, engine=engine, n_workers=n_workers, gpus=gpus, save_models=save_models)
        stand = standing(plan, folder)
        time = estimate(stand.left, read_results(folder))
    at_once = _at_once(stand.left, engine, n_workers)
    before = {
        "study": plan.name,
        "preset": plan.preset,
        "engine": engine,
        "out": str(folder),
        "runs": stand.n_runs,
        "done": stand.n_done,
        "left": len(stand.left),
        "at_once": at_once,
        "estimated_seconds": round(time.seconds / at_once, 1),
        "estimated": time.source if stand.left else None,
        "remark": plan.remark or None,
    }
    if not as_json:
        _say(before)
    results = {} if dry_run else _run(plan, settings, len(stand.left))
    if as_json:
        runs = {name: [{"key": each.config.key} | each.to_dict() for each in done] for name, done in results.items()}
        print_json(before | {"results": runs})
    elif results:
        show("", _as_table(results))


def _at_once(left: Sequence[RunConfig], engine: str, n_workers: int) -> int:
    """How many runs go on at a time, for the estimate; of a cluster nobody knows."""
    if engine == "serial" or "RAY_ADDRESS" in os.environ:
        return 1
    return max(1, min(len(left), n_workers if n_workers > 0 else os.cpu_count() or 1))


def _say(before: Mapping[str, Any]) -> None:
    there = f"{before['done']} have a result in {before['out']}, {before['left']} are left"
    show(one_line(f"{before['study']}, preset {before['preset']}: {before['runs']} runs, {there}"), style="bold")
    if before["left"]:
        time = timedelta(seconds=max(1, round(before["estimated_seconds"])))
        show(f"about {time} (hours:minutes:seconds), {before['at_once']} at a time; estimated {before['estimated']}")
    if before["remark"]:
        show(one_line(before["remark"]), style="dim")


def _run(plan: Study, settings: Settings, n_left: int) -> dict[str, list[RunResult]]:
    from ..experiments.plans import run_study

    done: list[RunConfig] = []
    with progress(f"running {plan.name}", n_left) as tell:

        def after_run(config: RunConfig, result: RunResult | None) -> None:
            done.append(config)
            how = "failed" if result is None else f"loss {result.metrics['loss']:.3f}"
            tell(f"{config.scheme}, seed {config.seed}: {how}", len(done))

        try:
            results, remark = run_study(plan, settings, after_run)
        except (KeyboardInterrupt, SystemExit):
            complain(f"stopped; what is done is kept in {settings.out}, and the same command goes on from there")
            raise
    if remark:
        complain(f"warning: in the tuning, {remark}")
    return results


def _as_table(results: Mapping[str, Sequence[RunResult]]) -> Table:
    """A line for each part: the mean of its runs' losses."""
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_row("", "runs", "learning rate", "test loss", "minutes", style="dim")
    for name, runs in results.items():
        loss = statistics.mean(run.metrics["loss"] for run in runs)
        minutes = sum(run.minutes for run in runs)
        lines.add_row(name, str(len(runs)), f"{runs[0].config.learning_rate:g}", f"{loss:.4f}", f"{minutes:.1f}")
    return lines
