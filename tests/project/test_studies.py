"""The command that the workflow `tables` runs, against a hub on this machine."""

from dataclasses import replace

import pytest
from hub_client import ask, new_reader
from hub_server import COMMIT, HubServer
from small_models import build
from tool import TOOLS, load

from posembed.stored import read_studies, study_table, write_study


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)  # as where it is run as a script
    return load("studies")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one of the checkpoints, small; it refuses connections until it is started."""
    build("bert", max_position_embeddings=40).save_pretrained(tmp_path / "bert")
    server = HubServer({"bert-base-cased": tmp_path / "bert"})
    ask(server, monkeypatch)
    monkeypatch.chdir(tmp_path)
    with new_reader(monkeypatch, tmp_path):
        yield server
    server.stop()


def test_what_is_new_on_the_hub_is_stored_in_both_places_once(tool, hub, tmp_path):
    hub.start()
    expected = replace(study_table(str(tmp_path / "bert")), source="bert-base-cased", revision=COMMIT)
    folders = tmp_path / "results", tmp_path / "stored"
    kept = read_studies(tool.RESULTS / "tables")["gpt2"]
    write_study(kept, folders[0] / "tables")
    names = ["bert-base-cased", "gpt2", "roberta-base"]
    missing = "not to be had from the hub, left as it is"
    found = dict(tool.measure(names, *folders))
    assert found == {names[0]: f"measured anew, revision {COMMIT}", names[1]: missing, names[2]: missing}
    for folder in folders:
        assert read_studies(folder / "tables") == {"bert-base-cased": expected, "gpt2": kept}
    assert dict(tool.measure(names, *folders))[names[0]].startswith("the rows are those")


def test_without_the_hub_it_says_so_in_one_line_and_nothing_is_written(tool, hub, monkeypatch):
    monkeypatch.setattr(tool, "measure", None)
    with pytest.raises(SystemExit, match="^studies: the hub cannot be reached: .+$"):
        tool.main([])
