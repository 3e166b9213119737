"""What results/ holds is what the package ships, and stays so when results come and go."""

import gzip
import json
import shutil

import pytest
from refusals import refused
from tool import load

from posembed.errors import RunError
from posembed.stored.studies import BUNDLE
from studies.bundles import SHIPPED, bundle_of

tool = load("results")


@pytest.fixture
def folders(tmp_path):
    """Copies of the results that are small, and a folder for what they become."""
    for study in ("trained-tables", "tables"):
        shutil.copytree(tool.RESULTS / study, tmp_path / "results" / study)
    return tmp_path / "results", tmp_path / "stored"


def assert_same_bundle(*contents):
    """Two files hold the same: another zlib packs it into other bytes, another processor adds in another order."""
    shipped, made = (json.loads(gzip.decompress(content)) for content in contents)
    numbers = [
        {(group, name): value for group, found in each.pop("contrasts").items() for name, value in found.items()}
        for each in (shipped, made)
    ]
    assert shipped == made, "run tools/results.py"
    assert numbers[0].keys() == numbers[1].keys(), "run tools/results.py"
    for name, contrast in numbers[0].items():
        assert contrast == pytest.approx(numbers[1][name], rel=1e-6, abs=1e-9), name


@pytest.mark.parametrize("study", SHIPPED)
def test_the_package_ships_what_results_hold(study):
    assert {path.name for path in tool.STORED.glob("*.json*")} == {f"{name}{BUNDLE}" for name in SHIPPED}
    assert_same_bundle((tool.STORED / f"{study}{BUNDLE}").read_bytes(), bundle_of(study, tool.RESULTS / study))


def test_runs_and_their_tables_are_written_and_a_lost_table_is_an_error(folders):
    results, stored = folders
    tool.store_runs("trained-tables", *folders)
    written = {path.name: path.read_bytes() for path in stored.iterdir()}
    bundle, tables = f"trained-tables{BUNDLE}", "trained-tables.safetensors"
    assert written.keys() == {bundle, tables} and written[tables] == (tool.STORED / tables).read_bytes()
    assert_same_bundle((tool.STORED / bundle).read_bytes(), written[bundle])
    lost = next((results / "trained-tables").glob("*.npy"))
    lost.unlink()
    message = refused(RunError, tool.store_runs, "trained-tables", *folders)
    assert message == f"the table {lost.name} is missing in trained-tables; run its config again"
    assert {path.name: path.read_bytes() for path in stored.iterdir()} == written


def test_studies_of_tables_come_and_go_and_a_damaged_one_takes_nothing_away(folders):
    results, stored = folders
    tool.store_tables(*folders)
    first, *others = sorted((results / "tables").glob("*.json"))
    assert {path.name for path in (stored / "tables").iterdir()} == {path.name for path in (first, *others)}
    first.write_text("{")
    assert f"{first.name} is damaged, or of another kind; measure the table again" in refused(
        RunError, tool.store_tables, *folders
    )
    assert (stored / "tables" / first.name).exists()
    first.unlink()
    tool.store_tables(*folders)
    assert {path.name for path in (stored / "tables").iterdir()} == {path.name for path in others}


@pytest.mark.bad_input
def test_models_are_stored_with_their_cards_or_not_at_all(tmp_path):
    kept, stored = tmp_path / "kept", tmp_path / "stored"
    shipped = shutil.copytree(tool.STORED / "models", kept)
    (stored / "models").mkdir(parents=True)
    (stored / "models" / "0123456789abcdef.safetensors").write_bytes(b"of an earlier study")
    tool.store_models(kept, tool.RESULTS, stored)
    wanted = {path.name: path.read_bytes() for path in shipped.iterdir()}
    assert {path.name: path.read_bytes() for path in (stored / "models").iterdir()} == wanted, "run tools/results.py"
    path = sorted(kept.glob("*.safetensors"))[0]
    path.write_bytes(b"{")
    assert f"in kept: {path.name} is not there, is damaged, or of another run or version" in refused(
        RunError, tool.store_models, kept, tool.RESULTS, tmp_path / "other"
    )
    assert not (tmp_path / "other").exists()
