"""Against the real hub, where it answers; everywhere else the tests say that it did not."""

import urllib.error
import urllib.request

import pytest
import torch
from huggingface_hub import constants
from refusals import refused

from posembed import pretrained
from posembed.errors import CheckpointNotFoundError
from posembed.tables import load_table
from posembed.tables.hub import why_unreachable

pytestmark = pytest.mark.hub
ADDRESS = f"https://huggingface.co/{pretrained.HUB_NAME}/resolve/main/config.json"


@pytest.fixture(scope="session", autouse=True)
def hub():
    if constants.HF_HUB_OFFLINE:
        pytest.skip("HF_HUB_OFFLINE is set; these tests run where the Hugging Face hub may be asked")
    try:
        urllib.request.urlopen(urllib.request.Request(ADDRESS, method="HEAD"), timeout=10).close()
    except (urllib.error.URLError, TimeoutError, OSError):
        pytest.skip("the Hugging Face hub does not answer; these tests run where it does")


def test_the_hubs_encoder_is_the_installed_one(encoder, monkeypatch):
    monkeypatch.setattr(pretrained, "installed_folder", lambda: None)
    model, tokenizer = pretrained.load_encoder()
    mine, theirs = encoder.model.state_dict(), model.state_dict()
    assert mine.keys() == theirs.keys()
    assert [name for name in mine if not mine[name].equal(theirs[name])] == []
    sentence = "I do like coding"
    assert tokenizer(sentence)["input_ids"] == encoder.tokenizer(sentence)["input_ids"]


@pytest.fixture
def nothing_kept(tmp_path, monkeypatch):
    """Nothing is kept from before: neither here nor in huggingface_hub's cache."""
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("POSEMBED_CHECKPOINTS", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


REAL = [
    ("bert-base-cased", "position_embeddings.weight", 512, 0),
    ("roberta-base", "position_embeddings.weight", 512, 2),
    ("gpt2", "wpe.weight", 1024, 0),
]


@pytest.mark.parametrize(("repo_id", "name", "n_positions", "offset"), REAL)
def test_a_real_table_costs_a_few_megabytes_once(nothing_kept, monkeypatch, repo_id, name, n_positions, offset):
    table = load_table(repo_id)
    assert (tuple(table.weight.shape), table.offset, table.stored_dtype) == ((n_positions, 768), offset, "float32")
    assert table.name.endswith(name)
    assert len(table.revision) == 40
    assert bool(torch.isfinite(table.weight).all())
    stored = (n_positions + offset) * 768 * 4
    assert stored < table.bytes_read <= 1.01 * stored + 600_000
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for again in (load_table(repo_id), load_table(repo_id, revision=table.revision)):
        assert torch.equal(again.weight, table.weight)
        assert again.revision == table.revision


def test_the_hub_answers_the_doctor(nothing_kept):
    assert why_unreachable() is None


@pytest.mark.parametrize(
    ("repo_id", "revision", "words"),
    [
        ("posembed-tests/there-is-no-such-model", None, "check the spelling"),
        ("gpt2", "no-such-branch", "no branch, tag or commit 'no-such-branch'"),
    ],
)
def test_what_the_hub_does_not_know(nothing_kept, repo_id, revision, words):
    assert words in refused(CheckpointNotFoundError, load_table, repo_id, revision=revision)
