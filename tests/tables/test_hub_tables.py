"""Tables from a hub: what is moved, who is told the token, what is kept, and how a hub fails."""

import errno
from pathlib import Path

import pytest
import torch
from hub_client import ask
from hub_server import (
    COMMIT,
    REPO,
    TOKEN,
    On,
    answers,
    cuts_off,
    ignores_range,
    login_page,
    redirects_to,
    says_nothing,
)
from huggingface_hub import constants, hf_hub_download
from made_files import FORMS, STATE, WEIGHT, write
from refusals import refused

from posembed.errors import CheckpointError, CheckpointNotFoundError
from posembed.tables import load_table
from posembed.tables.hub import cache_folder, why_unreachable

OTHER = "fedcba9876543210fedcba9876543210fedcba98"
WEIGHTS = "model.safetensors$"


def refusal(hub, error=CheckpointNotFoundError, **options):
    """The message of an error that leaves nothing behind."""
    message = refused(error, load_table, REPO, **options)
    assert hub.kept() == []
    return message


@pytest.mark.parametrize("form", ["safetensors", "sharded safetensors"])
def test_a_table_costs_its_own_bytes_once(serve, form):
    hub = serve(form)
    table = hub.load()
    assert (table.revision, table.offset, table.source) == (COMMIT, 2, REPO)
    assert WEIGHT.nbytes < table.bytes_read < 3 * WEIGHT.nbytes + 300_000 < 2 * STATE["a"].nbytes
    # What tells of the repository is moved besides.
    assert table.bytes_read <= hub.server.sent < table.bytes_read + 5000
    # Nothing after the first answer is of a branch, which may be pushed to.
    assert all(COMMIT in request for request in hub.server.requests[1:])
    hub.server.forget()
    again = [hub.load(), hub.load(revision="main"), hub.load(revision=COMMIT)]
    assert hub.server.asked == []
    for field in ("name", "offset", "source", "part", "revision", "file", "stored_dtype", "n_class_tokens", "grid"):
        assert {getattr(each, field) for each in again} == {getattr(table, field)}


def test_the_token_goes_to_the_hub_alone(hub, serve):
    storage = serve(as_hub=False).server
    hub.server.faults = [On(WEIGHTS, redirects_to(f"{storage.address}{{path}}"))]
    assert hub.load().revision == COMMIT
    assert {asked.headers["Authorization"] for asked in hub.server.asked} == {f"Bearer {TOKEN}"}
    assert len(storage.asked) >= 2
    assert {asked.headers["Authorization"] for asked in storage.asked} == {None}


@pytest.mark.parametrize("download", [False, True])
def test_a_push_in_between_mixes_nothing(hub, tmp_path, download):
    changed = {name: tensor + 1 for name, tensor in STATE.items()}
    hub.server.folders[REPO, OTHER] = write(tmp_path / "pushed", state=changed)
    hub.server.faults = [On("config", lambda reply: hub.server.branches.update(main=OTHER))]
    assert hub.load(download=download).revision == COMMIT


def test_what_is_called_by_one_word_is_read_too(hub):
    hub.server.folders["gpt2", COMMIT] = hub.folder
    assert torch.equal(load_table("gpt2").weight, WEIGHT[2:])


# What is kept.


def test_each_choice_endpoint_and_revision_is_kept_by_itself(hub, serve):
    hub.load()
    assert torch.equal(load_table(REPO, offset=0).weight, WEIGHT)
    assert torch.equal(load_table(REPO, name="a", offset=0).weight, STATE["a"])
    hub.server.branches["v1.0/é"] = COMMIT
    hub.load(revision="v1.0/é")
    serve()
    hub.server.forget()
    hub.load()
    assert hub.server.asked == []  # the other hub was asked
    assert len(hub.kept()) == 9


def test_refresh_asks_again(hub):
    hub.load()
    hub.server.folders[REPO, OTHER], hub.server.branches["main"] = hub.folder, OTHER
    assert hub.load().revision == COMMIT
    assert hub.load(refresh=True).revision == OTHER
    hub.server.faults = [answers(500)]
    with pytest.raises(CheckpointNotFoundError):
        hub.load(refresh=True)
    assert (hub.load().revision, hub.load(revision=COMMIT).revision) == (OTHER, COMMIT)


DAMAGES = {
    "cut off": lambda data: data[:-100],
    "a changed number": lambda data: data.replace(WEIGHT[9].numpy().tobytes(), bytes(256)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_is_read_anew(hub, name):
    hub.load()
    for path in hub.kept():
        path.write_bytes(DAMAGES[name](path.read_bytes()))
    hub.server.forget()
    hub.load()
    assert hub.server.asked != []


def test_a_table_is_kept_whole_or_not_at_all(hub, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(RuntimeWarning, match=f"{REPO} is not kept for the next time: .* No space left on device"):
        hub.load()
    assert hub.kept() == []


def test_where_it_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("POSEMBED_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "posembed" / "tables"
    monkeypatch.setenv("POSEMBED_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine" / "tables"


# What huggingface_hub has, and whole files.


@pytest.mark.parametrize("form", FORMS)
def test_what_huggingface_hub_has_is_read_there_even_offline(serve, form, monkeypatch):
    hub = serve(form)
    for file in hub.folder.iterdir():
        hf_hub_download(REPO, file.name)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.server.forget()
    assert hub.load().revision == COMMIT
    assert (hub.server.asked, hub.kept()) == ([], [])


def test_offline_nothing_is_asked(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids to ask the hub; unset it" in refusal(hub)
    assert hub.server.asked == []


@pytest.mark.parametrize("form", FORMS)
def test_a_download_is_of_whole_files_and_only_when_asked_for(serve, form):
    hub = serve(form)
    (hub.folder / "tokenizer.json").write_text("not needed")
    if "bin" in form:
        size = sum(path.stat().st_size for path in hub.folder.glob("*.bin"))
        said = refusal(hub, CheckpointError)
        assert f"to download all of its {size:,} bytes, call load_table(..., download=True)" in said
        assert not any("resolve" in request for request in hub.server.requests)
    table = hub.load(download=True)
    assert table.revision == COMMIT and not any("tokenizer" in request for request in hub.server.requests)
    assert table.bytes_read >= sum(path.stat().st_size for path in hub.folder.glob(f"*.{form[-11:].split()[-1]}"))
    hub.server.forget()
    assert torch.equal(hub.load().weight, table.weight)
    assert (hub.server.asked, hub.kept()) == ([], [])


# Faults.

REFUSED = {
    "gated": (On("resolve", answers(403, X_Error_Code="GatedRepo")), "is gated: accept its terms at"),
    "not there": (answers(404, X_Error_Code="RepoNotFound"), "check the spelling, or log in"),
    "no such revision": (answers(404, X_Error_Code="RevisionNotFound"), "has no branch, tag or commit 'main'"),
    "a web page": (login_page, "check the internet connection"),
    "down": (On(WEIGHTS, answers(500), after=1), "it answers 500; check the internet connection, or try again"),
    "a token that is none": (
        answers(401, X_Error_Message="Invalid credentials in Authorization header"),
        "renew the token",
    ),
    "cut off for ever": (On(WEIGHTS, cuts_off(999)), "could not be read from http://127.0.0.1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(hub, name):
    fault, words = REFUSED[name]
    hub.server.faults = [fault]
    assert words in refusal(hub)


def test_a_server_that_ignores_ranges_does_not_give_other_bytes_for_the_table(hub):
    hub.server.faults = [On(WEIGHTS, ignores_range, after=1)]
    assert "load_table(..., download=True) fetches the whole file" in refusal(hub, CheckpointError)


def test_a_repository_without_weights_says_what_was_looked_for(hub):
    (hub.folder / "model.safetensors").unlink()
    assert "holds no weights that can be read: no model.safetensors, " in refusal(hub)


def test_nobody_at_the_address_is_not_waited_for(serve):
    hub = serve(started=False)
    assert "Connection refused; check the internet connection" in refusal(hub)
    assert hub.waits == []


def test_the_doctor_is_told_whether_the_hub_answers(hub, monkeypatch):
    assert why_unreachable() is None
    hub.server.faults = [answers(503)]
    assert why_unreachable() == f"{hub.server.address}: it answers 503"
    hub.server.faults = [login_page]
    assert why_unreachable() is not None
    hub.server.faults = [says_nothing]
    assert why_unreachable(0.1) == f"{hub.server.address}: timed out"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert why_unreachable() == "not asked, because HF_HUB_OFFLINE is set"


def test_a_password_in_the_hubs_address_is_not_shown(hub, monkeypatch):
    ask(hub.server, monkeypatch)
    monkeypatch.setattr(constants, "ENDPOINT", hub.server.address.replace("//", "//me:secret@"))
    hub.server.faults = [answers(503)]
    assert "secret" not in refusal(hub)
