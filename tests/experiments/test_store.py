"""Results as files, and grids of runs that go on where they were stopped."""

import json
import math

import pytest

from posembed import RunConfig, RunResult, load_results, run_grid
from posembed.errors import RunError
from posembed.experiments import bundle, missing, parse_result, read_result, read_results, write_result

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 2}
GRID = [RunConfig(scheme=name, seed=seed, **TINY) for name in ("nopos", "alibi") for seed in (1, 2)]


def result(**changes):
    return RunResult(RunConfig(**changes), {"loss": 2.5, "scheme": {"weight": [1.0]}}, {"torch": "2"}, "a CPU", 1.5)


def test_a_result_comes_back(tmp_path):
    path = write_result(result(seed=3), tmp_path)
    assert path.name == f"{RunConfig(seed=3).key}.json"
    assert read_result(path) == result(seed=3)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_failed_write_leaves_nothing_and_keeps_what_was_there(tmp_path, monkeypatch):
    path = write_result(result(), tmp_path)
    before = path.read_text()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        write_result(RunResult(RunConfig(), {"loss": 9.0}, {}, "", 0.0), tmp_path)
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"metrics"', '"metric"'),
        lambda text: text.replace('"format": 1,', ""),
    ],
    ids=["cut", "empty", "another form", "without metrics", "without a format"],
)
def test_a_damaged_result_is_an_error_and_stays(tmp_path, damage):
    path = write_result(result(), tmp_path)
    path.write_text(damage(path.read_text()))
    before = path.read_text()
    with pytest.raises(RunError) as caught:
        run_grid([RunConfig()], engine="serial", out=tmp_path)
    assert f"{path.name} is damaged; move it away" in str(caught.value)
    assert path.read_text() == before


def test_a_result_of_a_newer_version_is_an_error_and_stays(tmp_path):
    path = write_result(result(), tmp_path)
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(RunError, match="has format 2, this version of posembed reads 1; upgrade posembed"):
        missing([RunConfig()], tmp_path)


def test_a_result_under_another_name_is_an_error(tmp_path):
    path = write_result(result(), tmp_path)
    other = path.with_name(f"{RunConfig(seed=5).key}.json")
    path.rename(other)
    with pytest.raises(RunError, match=f"holds the run {RunConfig().key}; give it that name"):
        read_result(other)


def test_the_results_of_a_file_are_an_error(tmp_path):
    path = write_result(result(), tmp_path)
    with pytest.raises(RunError, match=f"{path.name} is a file; give the folder of the results"):
        read_results(path)


def test_nan_is_kept(tmp_path):
    stored = RunResult(RunConfig(), {"loss": math.nan}, {}, "", 0.0)
    assert math.isnan(read_result(write_result(stored, tmp_path)).metrics["loss"])


@pytest.mark.parametrize("engine", ["serial", "joblib"])
def test_a_grid_runs_each_config_once(tmp_path, engine):
    results = run_grid([*GRID, GRID[0]], engine=engine, out=tmp_path, n_workers=2)
    assert [each.config for each in results] == [*GRID, GRID[0]]
    assert len(list(tmp_path.iterdir())) == len(GRID)
    assert read_results(tmp_path) == sorted(results[:-1], key=lambda each: each.config.key)


def test_the_engines_give_the_same_numbers(tmp_path):
    serial = run_grid(GRID, engine="serial", out=tmp_path / "serial")
    joblib = run_grid(GRID, engine="joblib", out=tmp_path / "joblib", n_workers=2)
    assert [each.metrics for each in serial] == [each.metrics for each in joblib]


def test_a_grid_goes_on_where_it_was(tmp_path):
    first = run_grid(GRID[:2], engine="serial", out=tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tmp_path / f".{GRID[2].key}-x.tmp").write_text("half a resu")
    assert missing(GRID, tmp_path) == GRID[2:]
    assert run_grid(GRID, engine="serial", out=tmp_path)[:2] == first
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())


def test_a_bundle_comes_back():
    results = [result(seed=seed) for seed in (2, 1)]
    back = [parse_result(each) for each in json.loads(bundle(results))]
    assert sorted(each.config.seed for each in back) == [1, 2]
    assert bundle(back) == bundle(results)


def test_an_unknown_study_names_those_there_are():
    with pytest.raises(RunError, match="there are no stored results 'nothing'; there are: .*encodings"):
        load_results("nothing")
