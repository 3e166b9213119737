"""Reading positions off a table: in closed form, against 10,000 steps of gradient descent.

The column of errors is the mean absolute error of rows left out, in positions, and not a difference from float64.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LinearRegression, RidgeCV
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from posembed import load_encoder, sinusoidal
from posembed.probing import LeastSquares, Part, Ridge, split_rows
from posembed.tables import as_table

from .case import Candidate, Case
from .goals import faster_at_no_larger_error

STEPS, QUICK_STEPS = 10_000, 300
# The one with the smallest training loss is taken; the search is not timed.
STEP_SIZES = tuple(factor * 10.0**-power for power in (4, 3, 2) for factor in (1, 3))
OPTIMISERS: Mapping[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": torch.optim.SGD,
    "SGD with momentum 0.9": partial(torch.optim.SGD, momentum=0.9),
    "Adam": torch.optim.Adam,
}
STRENGTHS = tuple(10.0**power for power in range(-10, 5))
RIVAL = "gradient descent"


@dataclass(frozen=True)
class Given:
    """A table, "n_positions d_model" in float64, and the rows to fit to and to test on."""

    table: np.ndarray
    parts: tuple[Part, ...]
    n_steps: int


def cases(quick: bool) -> list[Case]:
    """The sinusoids of 2017, the real table at hand by two splits, and GPT-2's where its folder is."""
    if quick:
        return [_case("sinusoids 40 x 8", partial(_sinusoids, 40, 8), "even-odd", 40, QUICK_STEPS)]
    found = [
        _case("sinusoids 512 x 768, even-odd", partial(_sinusoids, 512, 768), "even-odd", 512, STEPS),
        *(_case(f"all-MiniLM-L6-v2 512 x 384, {split}", _minilm, split, 512, STEPS) for split in ("even-odd", "folds")),
        _case("all-MiniLM-L6-v2's first 128 rows x 384, even-odd", lambda: _minilm()[:128], "even-odd", 128, STEPS),
    ]
    if (Path(os.environ.get("POSEMBED_CHECKPOINTS", "")) / "gpt2" / "config.json").exists():
        found.append(_case("GPT-2's first 512 rows x 768, even-odd", _gpt2, "even-odd", 512, STEPS))
    return found


def _case(name: str, table: Callable[[], np.ndarray], split: Any, n_rows: int, n_steps: int) -> Case:
    steps = f"{n_steps} steps over all rows, of the size whose training loss is smallest; torch.nn.Linear, float32"
    ridge, sklearns = (
        "one of 15 strengths, by five folds of its rows",
        "one of 15 strengths, by leaving out single rows",
    )
    candidates = [
        _candidate("posembed least squares", partial(_fit, LeastSquares)),
        _candidate("posembed ridge", partial(_fit, Ridge), ridge),
        *(_candidate(f"{RIVAL}, {name}", partial(_descend, name), steps) for name in OPTIMISERS),
        _candidate("scikit-learn LinearRegression", partial(_fit_scaled, LinearRegression)),
        _candidate("scikit-learn RidgeCV", partial(_fit_scaled, partial(RidgeCV, STRENGTHS)), sklearns),
    ]
    # The best constant is a quarter of the rows off. No error is zero, and the second number makes its unit a position.
    return Case(
        "probes",
        name,
        lambda: Given(table(), tuple(split_rows(np.arange(n_rows), split)), n_steps),
        candidates,
        lambda given: torch.tensor([0.0, 1.0], dtype=torch.float64),
        n_rows / 4,
        [faster_at_no_larger_error(RIVAL, 200)],
    )


def _candidate(name: str, probe: Callable[[Given], Callable[..., np.ndarray]], note: str = "") -> Candidate:
    """From a probe of some rows to their errors in all parts."""

    def make(given: Given) -> Callable[[], Tensor]:
        threadpool_limits(torch.get_num_threads())  # NumPy and scikit-learn would take all cores
        predicted = probe(given)

        def call() -> Tensor:
            errors = [np.abs(predicted(part.train, part.test) - part.test) for part in given.parts]
            return torch.tensor([np.concatenate(errors).mean(), 1.0], dtype=torch.float64)

        return call

    return Candidate(name, make, note)


def _fit(estimator: Callable[[], Any], given: Given) -> Callable[..., np.ndarray]:
    """The probes of posembed scale by themselves."""
    return lambda train, test: estimator().fit(given.table[train], train).predict(given.table[test])


def _fit_scaled(estimator: Callable[[], Any], given: Given) -> Callable[..., np.ndarray]:
    def predicted(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        x, centre, scale = _scaled(given.table[train])
        return estimator().fit(x, train).predict((given.table[test] - centre) / scale)

    return predicted


def _descend(optimiser: str, given: Given) -> Callable[..., np.ndarray]:
    losses = {size: _descended(optimiser, size, given, given.parts[0].train)[0] for size in STEP_SIZES}
    size = min(losses, key=lambda each: losses[each])

    def predicted(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        _, predict = _descended(optimiser, size, given, train)
        return predict(given.table[test])

    return predicted


def _descended(optimiser: str, size: float, given: Given, train: np.ndarray) -> tuple[float, Callable[..., np.ndarray]]:
    """Return the training loss after all steps, infinite where they diverge, and what predicts from rows."""
    scaled, centre, scale = _scaled(given.table[train])
    x, mean, spread = torch.from_numpy(scaled).float(), train.mean(), train.std()
    y = torch.from_numpy((train - mean) / spread).float()[:, None]
    torch.manual_seed(0)
    model = nn.Linear(x.shape[1], 1)
    steps = OPTIMISERS[optimiser](model.parameters(), lr=size)
    for step in range(given.n_steps):
        steps.zero_grad()
        loss = F.mse_loss(model(x), y)
        if step % 1000 == 0 and not math.isfinite(loss.item()):
            break
        loss.backward()
        steps.step()
    with torch.no_grad():
        final = float(F.mse_loss(model(x), y))

    def predict(rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            out = model(torch.from_numpy((rows - centre) / scale).float())
        return out[:, 0].double().numpy() * spread + mean

    return (final if math.isfinite(final) else math.inf), predict


def _scaled(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Centre, and divide by one root mean square: column by column would blow up those that hold nothing."""
    centre = rows.mean(axis=0)
    moved = rows - centre
    scale = float(np.sqrt((moved**2).mean()))
    return moved / scale, centre, scale


# The tables.


def _minilm() -> np.ndarray:
    return as_table(load_encoder().model).weight.double().numpy()


def _gpt2() -> np.ndarray:
    return as_table("gpt2").weight[:512].double().numpy()


def _sinusoids(n_positions: int, d_model: int) -> np.ndarray:
    return sinusoidal(n_positions, d_model).double().numpy()
