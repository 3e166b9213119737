"""From a config to a result: training runs, grids of them, stored results and what they say."""

from ..stats import Interval, difference, interval
from .config import RunConfig
from .files.store import (
    bundle,
    load_results,
    load_runs,
    missing,
    parse_result,
    read_result,
    read_results,
    write_result,
    write_whole,
)
from .files.weights import bundle_tables, load_tables, read_tables, write_table
from .grids.grid import run_and_store, run_grid
from .tables.measure import study_table
from .tables.record import CONTROLS, Products, SplitScore, TableStudy
from .tables.sources import table_studies
from .tables.store import read_studies, stored_studies, write_study
from .training.measure import loss_by_position, loss_of, parameters_of_scheme, scaled_losses
from .training.train import RunResult, batch_loss, learning_rate_factor, make_model, torch_threads, train

__all__ = [
    "CONTROLS",
    "Interval",
    "Products",
    "RunConfig",
    "RunResult",
    "SplitScore",
    "TableStudy",
    "batch_loss",
    "bundle",
    "bundle_tables",
    "difference",
    "interval",
    "learning_rate_factor",
    "load_results",
    "load_runs",
    "load_tables",
    "loss_by_position",
    "loss_of",
    "make_model",
    "missing",
    "parameters_of_scheme",
    "parse_result",
    "read_result",
    "read_results",
    "read_studies",
    "read_tables",
    "run_and_store",
    "run_grid",
    "scaled_losses",
    "stored_studies",
    "study_table",
    "table_studies",
    "torch_threads",
    "train",
    "write_result",
    "write_study",
    "write_table",
    "write_whole",
]
