"""From a config to a result: training runs, grids of them, and results as files."""

from ..inference import torch_threads
from ..stats import Interval, difference, interval
from .config import RunConfig
from .grid import run_and_store, run_grid
from .loop import Training, learning_rate_factor
from .measure import text_losses
from .objectives import Causal, Masked
from .results import (
    RunResult,
    missing,
    read_result,
    read_results,
    write_result,
)
from .runs import make_model, train
from .weights import read_model, read_tables, write_model, write_table

__all__ = [
    "Causal",
    "Interval",
    "Masked",
    "RunConfig",
    "RunResult",
    "Training",
    "difference",
    "interval",
    "learning_rate_factor",
    "make_model",
    "missing",
    "read_model",
    "read_result",
    "read_results",
    "read_tables",
    "run_and_store",
    "run_grid",
    "text_losses",
    "torch_threads",
    "train",
    "write_model",
    "write_result",
    "write_table",
]
