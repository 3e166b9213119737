"""From a config to a result: training runs, grids of them, stored results and what they say."""

from .config import RunConfig
from .grid import run_and_store, run_grid
from .intervals import Interval, difference, interval
from .measure import loss_by_position, loss_of, parameters_of_scheme, scaled_losses
from .store import bundle, load_results, load_runs, missing, parse_result, read_result, read_results, write_result
from .train import RunResult, batch_loss, learning_rate_factor, make_model, torch_threads, train

__all__ = [
    "Interval",
    "RunConfig",
    "RunResult",
    "batch_loss",
    "bundle",
    "difference",
    "interval",
    "learning_rate_factor",
    "load_results",
    "load_runs",
    "loss_by_position",
    "loss_of",
    "make_model",
    "missing",
    "parameters_of_scheme",
    "parse_result",
    "read_result",
    "read_results",
    "run_and_store",
    "run_grid",
    "scaled_losses",
    "torch_threads",
    "train",
    "write_result",
]
