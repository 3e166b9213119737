"""The table of the fourth assignment: what its maker says of it is so, whatever the seed."""

import hashlib
import io
import json
import re

import numpy as np
import pytest
from tool import TOOLS, load

from posembed import load_table, properties
from posembed.probing import LeastSquares, Ridge
from posembed.stats import mean_interval

SEEDS = range(10)
FOLDER = TOOLS.parent / "course" / "honest-probe"


def made(seed):
    """Files and truth, as JSON gives it back."""
    files, truth = load("data", FOLDER).make(load("draws", FOLDER.parent).Draws(FOLDER.name, seed))
    return files, json.loads(json.dumps(truth))


@pytest.fixture(scope="module", params=SEEDS)
def course(request):
    """A table, what its students are told of it, and what is true of it."""
    for_students, truth = made(request.param)
    table = np.load(io.BytesIO(for_students["table.npy"]))
    return table.astype(float), json.loads(for_students["report.json"]), truth


def marks_of(truth):
    first, last = truth["offset"], truth["offset"] + truth["n_positions"] - 1
    return [first, first + truth["cut_at"] - 1, last]


def stretch_of(course, kind):
    table, _, truth = course
    (name,) = (name for name, each in truth["kinds"].items() if each == kind)
    return table[slice(*truth["stretches"][name])]


def error(x, train, test, probe=LeastSquares):
    at = np.arange(len(x))
    return np.abs(probe().fit(x[train], at[train]).predict(x[test]) - at[test])


def test_every_machine_makes_the_same_bytes():
    table = np.load(io.BytesIO(made(0)[0]["table.npy"]))
    assert table.dtype == np.float32
    assert hashlib.sha256(table.tobytes()).hexdigest()[:16] == "abee796fd4022c60"


def test_courses_differ():
    truths = [made(seed)[1] for seed in SEEDS]
    for name in ("offset", "n_positions", "cut_at", "period", "kinds", "holds"):
        found = [str(truth[name]) for truth in truths]
        assert max(map(found.count, found)) <= len(SEEDS) / 2, name


def test_untrained_rows_are_hidden_by_what_all_share_and_by_nothing_else(course):
    table, _, truth = course
    assert load_table(table).untrained_rows == []
    centred = load_table(table - table.mean(axis=0))
    assert centred.untrained_rows == truth["untrained"]
    lengths, untrained, marks = np.linalg.norm(table, axis=1), truth["untrained"], marks_of(truth)
    trained = np.setdiff1d(np.arange(len(table)), untrained + marks)
    assert lengths[trained].min() < lengths[untrained].max() < lengths[trained].max()
    assert lengths[marks].min() > 1.3 * np.delete(lengths, marks).max()
    assert np.array_equal(np.union1d(trained, marks), np.arange(truth["offset"], marks[-1] + 1))
    assert (table != 0).mean() > 0.99


def test_no_step_tells_where_a_stretch_begins(course):
    table, _, truth = course
    ordinary = np.setdiff1d(np.arange(truth["offset"] + 1, marks_of(truth)[-1]), marks_of(truth))
    steps = np.linalg.norm(np.diff(table[ordinary], axis=0), axis=1)
    of_neighbours = steps[np.diff(ordinary) == 1]
    assert of_neighbours.max() < 1.8 * np.median(of_neighbours)
    for kind in ("helix", "walk", "curve", "circle"):
        mean = np.linalg.norm(np.diff(stretch_of(course, kind), axis=0), axis=1).mean()
        assert abs(mean / of_neighbours.mean() - 1) < 0.04, kind


@pytest.mark.parametrize("probe", [LeastSquares, Ridge])
@pytest.mark.parametrize("start", [0, 1])
def test_what_linear_maps_read(course, probe, start):
    for kind in ("helix", "walk", "curve", "circle"):
        x = stretch_of(course, kind)
        n, at = len(x), np.arange(len(x))
        between = error(x, at[start::2], at[1 - start :: 2], probe)
        onward = error(x, at[: (n + 1) // 2], at[(n + 1) // 2 :], probe).mean() / (n / 8)
        if kind in ("helix", "walk"):
            assert between.mean() < 0.8 and mean_interval(between).high < n / 4 / 8, kind
            assert onward < 0.5 if kind == "helix" else 1.25 < onward < 4, kind
        else:
            assert between.mean() > 0.75 * n / 4 and mean_interval(between).high > n / 4 and onward > 3, kind


@pytest.mark.parametrize("start", [0, 1])
def test_what_the_nearest_row_reads(course, start):
    for kind in ("helix", "walk", "curve", "circle"):
        x = stretch_of(course, kind)
        train, test = np.arange(start, len(x), 2), np.arange(1 - start, len(x), 2)
        apart = np.linalg.norm(x[test][:, None] - x[train], axis=-1)
        found = np.abs(train[apart.argmin(axis=1)] - test).mean()
        assert found > 0.8 * len(x) / 4 if kind == "circle" else found == 1, kind


def test_what_products_say(course):
    found = {}
    for kind in ("helix", "walk", "curve", "circle"):
        x = stretch_of(course, kind)
        found[kind] = properties(x - x.mean(axis=0)).translation_invariance
    assert found.pop("circle") > max(found.values()) + 0.08
    x, period = stretch_of(course, "circle"), course[2]["period"]
    apart = {k: np.linalg.norm(x[k:] - x[:-k], axis=1).mean() for k in range(4, 25)}
    assert min(apart, key=apart.get) == period


def test_what_claims_name_is_so(course):
    table, report, truth = course
    n, at = len(table), np.arange(len(table))
    assert sorted(truth["holds"].values()) == [False] * 5 + [True] * 5
    first, last = map(int, re.search(r"(\d+) to (\d+)", report["claims"]["1"]).groups())
    rows = at[truth["offset"] + first : truth["offset"] + last + 1]
    assert error(table, rows, rows).max() < 1e-6
    random = np.random.default_rng(0).normal(size=table.shape)
    assert error(random, at, at).mean() > 3.5 * error(table, at, at).mean()
    cosines = load_table(table).nearest.numpy()
    assert cosines[n - 6 : n - 1].min() > 0.5 > load_table(table).random_bound
    assert set(range(n - 6, n)) <= set(truth["untrained"])
