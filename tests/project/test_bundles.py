"""What results/ holds is what the package ships, and stays so when results come and go."""

import importlib.util
import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from posembed import RunConfig, RunResult, sinusoidal
from posembed.errors import RunError
from posembed.experiments import parse_result, read_studies, study_table, write_result, write_study, write_table
from posembed.experiments.nopos import MODELS, model_card, run_of_model

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("results_tool", ROOT / "tools" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "results", tmp_path / "stored"


def add_run(folder, seed, *, with_table=True):
    config = RunConfig(seed=seed)
    if with_table:
        write_table(torch.full((4, 2), float(seed)), config, folder)
    write_result(RunResult(config, {"loss": float(seed)}, {}, "a CPU", 1.0), folder)
    return config.key


@pytest.mark.parametrize("study", ["encodings", "nopos", "smoke", "trained-tables"])
def test_the_package_ships_what_results_hold(tool, study):
    assert study in tool.STUDIES
    runs, tables = tool.runs_of(tool.RESULTS / study)
    assert (tool.STORED / f"{study}.json").read_bytes() == runs, "run tools/results.py"
    shipped = tool.STORED / f"{study}.safetensors"
    assert (shipped.read_bytes() if shipped.exists() else None) == tables, "run tools/results.py"


def test_no_other_runs_are_shipped(tool):
    assert {path.stem for path in tool.STORED.glob("*.json")} == set(tool.STUDIES)


def test_runs_and_their_tables_are_bundled(tool, folders):
    from safetensors.torch import load

    results, stored = folders
    keys = {add_run(results / "mine", seed) for seed in (1, 2)}
    tool.store_runs("mine", results, stored)
    runs = [parse_result(each) for each in json.loads((stored / "mine.json").read_text())]
    assert {run.config.key for run in runs} == keys
    tables = load((stored / "mine.safetensors").read_bytes())
    assert {key: tables[key][0, 0].item() for key in tables} == {run.config.key: run.metrics["loss"] for run in runs}


def test_a_study_without_tables_has_no_file_of_them(tool, folders):
    results, stored = folders
    add_run(results / "mine", 1, with_table=False)
    tool.store_runs("mine", results, stored)
    assert [path.name for path in stored.iterdir()] == ["mine.json"]


def test_a_table_of_a_run_that_was_stopped_is_left_out(tool, folders):
    from safetensors.torch import load

    results, stored = folders
    key = add_run(results / "mine", 1)
    write_table(torch.zeros(4, 2), RunConfig(seed=9), results / "mine")
    tool.store_runs("mine", results, stored)
    assert list(load((stored / "mine.safetensors").read_bytes())) == [key]


def test_a_run_whose_table_is_lost_is_an_error_and_nothing_is_written(tool, folders):
    results, stored = folders
    add_run(results / "mine", 1)
    key = add_run(results / "mine", 2, with_table=False)
    with pytest.raises(RunError) as caught:
        tool.store_runs("mine", results, stored)
    assert str(caught.value) == f"the table {key}.npy is missing in mine; run its config again"
    assert not stored.exists()


def test_studies_of_tables_come_and_go(tool, folders):
    results, stored = folders
    path = write_study(study_table(sinusoidal(12, 4)), results / "tables")
    tool.store_tables(results, stored)
    assert (stored / "tables" / path.name).read_bytes() == path.read_bytes()
    path.unlink()
    tool.store_tables(results, stored)
    assert read_studies(stored / "tables") == {}


def test_a_damaged_study_of_a_table_ends_it_before_anything_is_taken_away(tool, folders, monkeypatch):
    results, stored = folders
    path = write_study(study_table(sinusoidal(12, 4)), results / "tables")
    tool.store_tables(results, stored)
    path.write_text("{")
    monkeypatch.setattr(tool, "STUDIES", ())
    monkeypatch.setattr(tool.store_tables, "__defaults__", folders)
    with pytest.raises(SystemExit, match=f"results: {path.name}: it is no JSON; measure the table again"):
        tool.main()
    assert len(read_studies(stored / "tables")) == 1


@pytest.fixture
def kept(tool, tmp_path):
    """A folder that holds the weights of the models that ship."""
    return shutil.copytree(tool.STORED / "models", tmp_path / "kept", ignore=shutil.ignore_patterns("*.md"))


def test_models_are_stored_with_their_cards(tool, kept, tmp_path):
    stored = tmp_path / "stored"
    target = stored / "models"
    target.mkdir(parents=True)
    (target / "0123456789abcdef.safetensors").write_bytes(b"of an earlier study")
    tool.store_models(kept, tool.RESULTS, stored)
    wanted = {path.name: path.read_bytes() for path in kept.iterdir()}
    assert {path.name: path.read_bytes() for path in target.glob("*.safetensors")} == wanted
    assert len(wanted) == len(MODELS)
    cards = (target / "README.md").read_text(encoding="utf-8")
    assert re.findall("^# (.*)$", cards, re.MULTILINE) == list(MODELS)
    for name in MODELS:
        assert model_card(name) in cards
    assert {path.suffix for path in target.iterdir()} == {".safetensors", ".md"}


def test_without_a_folder_the_weights_stay_and_the_cards_are_written_anew(tool, kept, tmp_path):
    stored = tmp_path / "stored"
    stored.mkdir()
    kept = kept.rename(stored / "models")
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    tool.store_models(None, tool.RESULTS, stored)
    assert {path.name: path.read_bytes() for path in kept.glob("*.safetensors")} == before
    shipped = tool.STORED / "models" / "README.md"
    assert (kept / "README.md").read_bytes() == shipped.read_bytes(), "run tools/results.py"


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (Path.unlink, "there are no weights {}; run the config with save_models=True"),
        (
            lambda path: path.write_bytes(b"{"),
            "{} is damaged, or of another run or version; move it and its result away and run it again",
        ),
    ],
    ids=["missing", "damaged"],
)
def test_a_model_that_cannot_be_stored_is_one_line_and_nothing_is_written(tool, kept, tmp_path, harm, message):
    path = kept / f"{run_of_model('masked-nopos').config.key}.safetensors"
    harm(path)
    with pytest.raises(RunError) as caught:
        tool.store_models(kept, tool.RESULTS, tmp_path / "stored")
    assert str(caught.value) == f"the model masked-nopos in kept: {message.format(path.name)}"
    assert not (tmp_path / "stored").exists()
