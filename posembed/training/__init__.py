"""From a config to a result: training runs, grids of them, stored results and what they say."""

from ..inference import torch_threads
from ..stats import Interval, difference, interval
from .config import RunConfig
from .grid import run_and_store, run_grid
from .loop import learning_rate_factor
from .results import (
    RunResult,
    load_runs,
    missing,
    read_result,
    read_results,
    write_result,
)
from .results_table import load_results
from .runs import make_model, train
from .table_record import (
    CONTROLS,
    Products,
    SplitScore,
    TableStudy,
    read_studies,
    stored_studies,
    write_study,
)
from .table_study import study_table, table_studies
from .weights import load_tables, read_model, read_tables, write_model, write_table

__all__ = [
    "CONTROLS",
    "Interval",
    "Products",
    "RunConfig",
    "RunResult",
    "SplitScore",
    "TableStudy",
    "difference",
    "interval",
    "learning_rate_factor",
    "load_results",
    "load_runs",
    "load_tables",
    "make_model",
    "missing",
    "read_model",
    "read_result",
    "read_results",
    "read_studies",
    "read_tables",
    "run_and_store",
    "run_grid",
    "stored_studies",
    "study_table",
    "table_studies",
    "torch_threads",
    "train",
    "write_model",
    "write_result",
    "write_study",
    "write_table",
]
