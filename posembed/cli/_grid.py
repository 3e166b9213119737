"""``posembed grid``: a study of many runs."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from . import _options as options
from ._guard import complain
from ._output import print_json
from ._terminal import one_line, progress, show

if TYPE_CHECKING:
    from ..experiments import RunConfig, RunResult
    from ..experiments.grids.engines import Settings
    from ..experiments.grids.estimate import Estimate
    from ..experiments.plans.studies import Standing
    from ..experiments.plans.study import Study

RUNNING = "How it is run"
EXAMPLES = (
    "posembed grid nopos --preset smoke",
    "posembed grid nopos --preset paper --dry-run",
    "posembed grid encodings --engine ray --out results/encodings",
)


def grid(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="nopos, encodings or trained-tables.", show_default=False)
    ],
    preset: Annotated[
        str,
        typer.Option(
            help="smoke, in minutes; cpu, the plan of the study; of nopos also gpu (25 million parameters) and paper.",
            rich_help_panel=options.WHAT_DONE,
        ),
    ] = "cpu",
    data: Annotated[
        str | None,
        typer.Option(help="Another text for all runs.", rich_help_panel=options.WHAT_DONE, show_default=False),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what there is to do, and stop.", rich_help_panel=options.WHAT_DONE),
    ] = False,
    engine: Annotated[
        str,
        typer.Option(help="serial, joblib (processes) or ray (a cluster).", rich_help_panel=RUNNING),
    ] = "joblib",
    n_workers: Annotated[int, typer.Option(help="Runs at a time; -1 for one a core.", rich_help_panel=RUNNING)] = -1,
    gpus: Annotated[
        float, typer.Option(help="The share of a GPU that a run takes, with Ray.", rich_help_panel=RUNNING)
    ] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Of the results; by default results/STUDY. What has a result there is not run again.",
            rich_help_panel=RUNNING,
            show_default=False,
        ),
    ] = None,
    save_models: Annotated[
        bool, typer.Option("--save-models", help="Keep the weights of each model.", rich_help_panel=RUNNING)
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run a study: say how many runs there are, how many are done and about how long the rest takes, then run it."""
    with progress("looking at what is there"):
        from ..experiments.files.store import read_results
        from ..experiments.grids.engines import Settings
        from ..experiments.grids.estimate import estimate
        from ..experiments.grids.grid import check_grid
        from ..experiments.grids.runs import Keeping
        from ..experiments.plans.presets import load_study
        from ..experiments.plans.studies import standing

        plan = load_study(study, preset)
        plan = plan if data is None else plan.with_changes(data=data)
        folder = Path("results") / study if out is None else out
        keeping = Keeping(models=save_models, tables=plan.save_tables)
        settings = Settings(folder, n_workers=n_workers, gpus=gpus, keeping=keeping)
        check_grid([], engine, settings)
        stand = standing(plan, folder)
        time = estimate(stand.left, read_results(folder))
    before = _before(plan, stand, time, engine, settings)
    if not as_json:
        _say(before, plan)
    results = {} if dry_run else _run(plan, engine, settings, stand)
    if as_json:
        listed = {name: [{"key": each.config.key} | each.to_dict() for each in runs] for name, runs in results.items()}
        print_json(before | {"results": listed})
    elif results:
        show("", _as_table(results))


def _before(plan: Study, stand: Standing, time: Estimate, engine: str, settings: Settings) -> dict[str, Any]:
    at_once = _at_once(stand.left, engine, settings.n_workers)
    return {
        "study": plan.name,
        "preset": plan.preset,
        "engine": engine,
        "out": str(settings.out),
        "runs": stand.n_runs,
        "done": stand.n_done,
        "left": len(stand.left),
        "at_once": at_once,
        "estimated_seconds": round(time.seconds / at_once, 1),
        "estimated": time.source if stand.left else None,
        "remark": plan.remark or None,
    }


def _at_once(configs: Sequence[RunConfig], engine: str, n_workers: int) -> int:
    """How many runs go on at a time, for the estimate; of a cluster nobody knows."""
    if engine == "serial" or not configs:
        return 1
    if n_workers == -1:
        elsewhere = engine == "ray" and "RAY_ADDRESS" in os.environ
        on_gpus = any(config.device != "cpu" for config in configs)
        n_workers = 1 if elsewhere or on_gpus else os.cpu_count() or 1
    return min(n_workers, len(configs))


def _say(before: dict[str, Any], plan: Study) -> None:
    there = f"{before['done']} have a result in {before['out']}, {before['left']} are left"
    show(one_line(f"{plan.name}, preset {plan.preset}: {before['runs']} runs, {there}"), style="bold")
    if before["left"]:
        at_once = f", {before['at_once']} at a time" if before["at_once"] > 1 else ""
        show(f"about {duration(before['estimated_seconds'])}{at_once}; an estimate, {before['estimated']}")
    if plan.remark:
        show(one_line(plan.remark), style="dim")


def duration(seconds: float | int) -> str:
    """Write a time in the two largest of its units.

    Example:
        >>> from posembed.cli._grid import duration
        >>> duration(0.4), duration(75), duration(3 * 86400 + 7300)
        ('1 s', '1 min 15 s', '3 days 2 h')
    """
    left, parts = max(1, round(seconds)), list[str]()
    for name, size in (("days", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {'day' if (name, count) == ('days', 1) else name}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def _run(plan: Study, engine: str, settings: Settings, stand: Standing) -> dict[str, list[RunResult]]:
    from ..experiments.plans.studies import run_study

    with progress(f"running {plan.name}", len(stand.left)) as next_step:
        next_step("the first runs")

        def after_run(config: RunConfig, result: RunResult | None) -> None:
            how = "failed" if result is None else f"loss {result.metrics['loss']:.3f}"
            next_step(f"{config.scheme}, seed {config.seed}: {how}")

        results, remark = run_study(plan, engine, settings, after_run)
    if remark:
        complain(f"warning: in the tuning, {remark}")
    return results


def _as_table(results: dict[str, list[RunResult]]) -> Table:
    """A line for each part: the mean of its runs' losses."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("left", "right", "right", "right", "right"):
        grid.add_column(justify=justify)
    grid.add_row("", "runs", "learning rate", "test loss", "minutes", style="dim")
    for name, runs in results.items():
        loss = statistics.mean(run.metrics["loss"] for run in runs)
        minutes = sum(run.minutes for run in runs)
        grid.add_row(name, str(len(runs)), f"{runs[0].config.learning_rate:g}", f"{loss:.4f}", f"{minutes:.1f}")
    return grid
