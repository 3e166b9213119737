"""Studies of checkpoints wherever they are: on this machine, on the hub, or only in the package."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from hub_client import ask, new_reader
from hub_server import COMMIT, HubServer, answers, says_nothing
from huggingface_hub import constants
from refusals import refused
from safetensors.torch import save_file
from small_models import build

from posembed import load_table
from posembed.errors import CheckpointError, PositionTableError, ProbeInputError
from posembed.pretrained import HUB_NAME, installed_folder
from posembed.stored import stored_studies, study_table, table_studies

N_POSITIONS = 40
SIZES = {
    "bert": {"max_position_embeddings": N_POSITIONS},
    # Two rows stand before position 0.
    "roberta": {"max_position_embeddings": N_POSITIONS + 2},
    "gpt2": {"n_positions": N_POSITIONS},
    "whisper": {"max_target_positions": N_POSITIONS},
}
# By the names under which they stand on the hub.
ON_HUB = {"google-bert/bert-base-uncased": "bert", "FacebookAI/roberta-base": "roberta", "gpt2": "gpt2"}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Small checkpoints as `save_pretrained` leaves them, by their layouts."""
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in SIZES}
    for kind, folder in folders.items():
        build(kind, **SIZES[kind]).save_pretrained(folder)
    return folders


@pytest.fixture
def waits(tmp_path, monkeypatch):
    """A reader with empty caches and no checkpoints; the seconds that the client would have waited are noted."""
    monkeypatch.chdir(tmp_path)
    with new_reader(monkeypatch, tmp_path) as waits:
        yield waits


@pytest.fixture
def hub(waits, checkpoints, monkeypatch):
    """A hub that serves those checkpoints; it refuses connections until it is started."""
    server = HubServer({name: checkpoints[kind] for name, kind in ON_HUB.items()})
    ask(server, monkeypatch)
    yield server
    server.stop()


@pytest.fixture
def put(waits, tmp_path, monkeypatch):
    """Copy a checkpoint into the folder that POSEMBED_CHECKPOINTS names."""
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", str(tmp_path / "checkpoints"))

    def put(folder, name):
        return shutil.copytree(folder, tmp_path / "checkpoints" / name)

    return put


@pytest.mark.parametrize(("name", "kind"), ON_HUB.items(), ids=ON_HUB.values())
def test_what_the_hub_has_is_measured(hub, checkpoints, name, kind):
    hub.start()
    (study,) = table_studies([name]).values()
    expected = study_table(str(checkpoints[kind]))
    assert study == replace(expected, source=name, revision=COMMIT)
    assert (study.n_positions, study.offset, study.stored) == (N_POSITIONS, 2 if kind == "roberta" else 0, False)


def test_what_is_on_this_machine_is_measured_without_a_request(hub, put, checkpoints):
    hub.start()
    put(checkpoints["bert"], "gpt2")
    (study,) = table_studies(["gpt2"]).values()
    assert study == replace(study_table(str(checkpoints["bert"])), source="gpt2")
    assert study.revision == "not from the hub"
    assert hub.requests == []


def test_a_path_is_a_source_too_and_is_studied_once_without_a_request(hub, checkpoints):
    path = str(checkpoints["roberta"])
    hub.start()
    assert table_studies(iter([path, path])) == {path: study_table(path)}
    assert (hub.requests, table_studies([])) == ([], {})


def test_without_the_hub_it_is_as_stored_and_what_is_not_stored_is_left_out(hub):
    names = ["gpt2", "sentence-transformers/all-mpnet-base-v2"]
    studies = table_studies([names[0], "someone/unknown", names[1], "FacebookAI/roberta-base"])
    assert list(studies) == names
    for name, study in studies.items():
        assert study == stored_studies()[name]
        assert study.stored


def test_without_the_hub_the_encoder_is_measured_from_its_wheel(hub):
    if installed_folder() is None:
        pytest.skip("needs the encoder's wheel")
    study, stored = table_studies([HUB_NAME])[HUB_NAME], stored_studies()[HUB_NAME]
    assert not study.stored
    assert (study.source, study.revision, study.sha256) == (HUB_NAME, stored.revision, stored.sha256)


def test_a_repository_that_the_hub_does_not_have_is_as_stored_or_left_out(hub):
    hub.start()
    del hub.folders["gpt2", COMMIT]
    studies = table_studies(["gpt2", "someone/unknown", "no name of a repository", "google-bert/bert-base-uncased"])
    assert [(name, study.stored) for name, study in studies.items()] == [
        ("gpt2", True),
        ("google-bert/bert-base-uncased", False),
    ]


SOURCES = ["gpt2", "a/a", "b/b", "FacebookAI/roberta-base"]


@pytest.mark.parametrize("fault", [answers(503), says_nothing], ids=["refuses", "says nothing"])
def test_a_hub_that_is_not_there_is_asked_once_for_all(hub, waits, fault):
    hub.start()
    hub.faults = [fault]
    assert list(table_studies(SOURCES)) == ["gpt2"]
    assert len(hub.requests) == 1
    assert waits == []


def test_a_reader_who_forbids_to_ask_is_obeyed(hub, monkeypatch):
    hub.start()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert table_studies(["gpt2"])["gpt2"].stored
    assert hub.requests == []
    assert constants.HF_HUB_OFFLINE is True


def test_parts_of_a_model(hub, put, checkpoints):
    put(checkpoints["whisper"], "someone/whisper")
    name = "someone/whisper, decoder"
    (study,) = table_studies([name, "someone/whisper, vision nor text"]).values()
    assert study == replace(study_table(load_table("someone/whisper", part="decoder")), source=name)
    assert study.n_positions == N_POSITIONS
    assert table_studies(["openai/whisper-base, decoder"])["openai/whisper-base, decoder"].stored


def test_a_damaged_checkpoint_is_replaced_by_the_stored_study_where_there_is_one(hub, put, checkpoints):
    for name in ("gpt2", "someone/mine"):
        weights = put(checkpoints["gpt2"], name) / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:100])
    assert table_studies(["gpt2"])["gpt2"].stored
    refused(CheckpointError, table_studies, ["gpt2", "someone/mine"])


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("config", "weights", "error"),
    [
        ({"model_type": "llama"}, {"wte.weight": torch.ones(30, 16)}, PositionTableError),
        ({"model_type": "gpt2"}, {"wpe.weight": torch.full((40, 16), torch.nan)}, PositionTableError),
        ({"model_type": "gpt2"}, {"wpe.weight": torch.zeros(4, 16)}, ProbeInputError),
    ],
    ids=["no table", "not finite", "too short"],
)
def test_a_checkpoint_whose_table_cannot_be_studied(hub, put, checkpoints, config, weights, error):
    folder = put(checkpoints["gpt2"], "someone/mine")
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors")
    refused(error, table_studies, ["someone/mine"])
    # Whoever asks next may ask the hub again.
    assert constants.HF_HUB_OFFLINE is False
