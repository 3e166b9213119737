"""Tables from a hub: what is moved, who is told the token, what is kept, and every way in which a hub fails."""

import errno
import os
import subprocess
import sys
import time
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
    says,
    says_nothing,
    stalls,
)
from huggingface_hub import constants, hf_hub_download
from made_files import FORMS, STATE, WEIGHT, write
from refusals import refused

from posembed.errors import CheckpointError, CheckpointNotFoundError
from posembed.tables import hub as hub_module
from posembed.tables import load_table
from posembed.tables.hub import cache_folder, why_unreachable

OTHER = "fedcba9876543210fedcba9876543210fedcba98"
WEIGHTS = "model.safetensors$"


def refusal(hub, error=CheckpointNotFoundError, source=REPO, **options):
    """The message of an error that leaves nothing behind and moves little."""
    message = refused(error, load_table, source, **options)
    assert hub.kept() == []
    return message


@pytest.mark.parametrize("form", FORMS)
def test_a_table_costs_its_own_bytes_once(serve, form):
    hub = serve(form)
    table = hub.load()
    assert (table.revision, table.offset, table.source) == (COMMIT, 2, REPO)
    assert WEIGHT.nbytes < hub.server.sent < 3 * WEIGHT.nbytes + 300_000 < 2 * STATE["a"].nbytes
    # Nothing after the first answer is of a branch, which may be pushed to.
    assert all(COMMIT in request for request in hub.server.requests[1:])
    hub.server.forget()
    again = [hub.load(), hub.load(revision="main"), hub.load(revision=COMMIT)]
    assert hub.server.asked == []
    for field in ("name", "offset", "source", "part", "revision", "file", "stored_dtype", "n_class_tokens", "grid"):
        assert {getattr(each, field) for each in again} == {getattr(table, field)}
    assert {each.bytes_read for each in again} <= {path.stat().st_size for path in hub.kept()}


def test_the_token_goes_to_the_hub_alone(hub, serve):
    storage = serve(as_hub=False).server
    hub.server.faults = [On(WEIGHTS, redirects_to(f"{storage.address}{{path}}"))]
    assert hub.load().revision == COMMIT
    assert {asked.headers["Authorization"] for asked in hub.server.asked} == {f"Bearer {TOKEN}"}
    assert len(storage.asked) >= 2
    assert {asked.headers["Authorization"] for asked in storage.asked} == {None}


def test_without_a_token_or_with_one_that_cannot_be_sent(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_Gehe\u00efm")
    message = refusal(hub)
    assert "Gehe" not in message and "characters that no token has; renew it" in message
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    hub.load()
    assert {asked.headers["Authorization"] for asked in hub.server.asked} == {None}


def test_a_push_in_between_mixes_nothing(hub, tmp_path):
    hub.server.folders[REPO, OTHER] = tmp_path / "nothing here"
    hub.server.faults = [lambda reply: hub.server.branches.update(main=OTHER)]
    assert hub.load().revision == COMMIT


# What is kept.


def test_each_choice_endpoint_and_revision_is_kept_by_itself(hub, serve):
    hub.load()
    whole = load_table(REPO, offset=0)
    assert torch.equal(whole.weight, WEIGHT)
    assert torch.equal(load_table(REPO, name="a", offset=0).weight, STATE["a"])
    hub.server.branches["v1.0/é"] = COMMIT
    hub.load(revision="v1.0/é")
    serve()
    hub.server.forget()
    hub.load()
    assert hub.server.asked == []  # the other hub was asked
    assert len(hub.kept()) == 9


def test_refresh_asks_again(hub, tmp_path):
    hub.load()
    hub.server.folders[REPO, OTHER], hub.server.branches["main"] = hub.folder, OTHER
    assert hub.load().revision == COMMIT
    assert hub.load(refresh=True).revision == OTHER
    hub.server.faults = [answers(500)]
    with pytest.raises(CheckpointNotFoundError):
        hub.load(refresh=True)
    assert (hub.load().revision, hub.load(revision=COMMIT).revision) == (OTHER, COMMIT)


DAMAGES = {
    "empty": lambda data: b"",
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
    hub.server.forget()
    hub.load()
    assert hub.server.asked == []


def test_a_pipe_in_the_cache_is_not_waited_for(hub, monkeypatch):
    hub.load()
    for path in hub.kept():
        path.unlink()
        os.mkfifo(path)
    with monkeypatch.context() as waiting:
        waiting.setattr(hub_module.np, "load", lambda path: pytest.fail(f"{path} was opened"))
        hub.load()
    assert len(hub.kept()) == 2  # in the place of the pipes


@pytest.mark.parametrize("mirror", [False, True])
def test_a_pipe_in_the_cache_of_the_hubs_client_is_refused(serve, monkeypatch, mirror):
    hub = serve(as_hub=not mirror)
    if mirror:
        ask(hub.server, monkeypatch, mirror=True)
    hub.load(download=True)
    kept = hub.cache.parent
    for pattern in (f"snapshots/{COMMIT}/model.safetensors", "refs/main"):
        (path,) = kept.glob(f"**/{pattern}")
        path.unlink()
        os.mkfifo(path)
        said = refused(CheckpointNotFoundError, load_table, REPO, download=True)
        assert said == f"{path} is no regular file; remove it and try again"
        path.unlink()
        hub.load(download=True)


def test_a_table_under_the_name_of_another_is_not_taken(hub):
    hub.load()
    first, second = hub.kept()
    first.write_bytes(second.read_bytes())
    hub.server.forget()
    hub.load(revision=COMMIT)
    hub.load()
    assert hub.server.asked != []


def test_a_table_is_kept_whole_or_not_at_all(hub, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", full)
        with pytest.warns(RuntimeWarning, match=f"{REPO} is not kept for the next time: No space left on device"):
            hub.load()
    assert hub.kept() == []
    hub.cache.parent.mkdir(exist_ok=True)
    monkeypatch.setenv("POSEMBED_CACHE", str(hub.folder / "config.json"))
    with pytest.warns(RuntimeWarning, match="is not kept for the next time"):
        hub.load()


def test_where_it_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("POSEMBED_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "posembed" / "tables"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "posembed" / "tables"
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


@pytest.mark.parametrize("download", [False, True])
def test_whole_files_of_one_hub_are_not_taken_for_those_of_another(serve, monkeypatch, download):
    hub, other = serve(), serve(as_hub=False)
    hub.load(download=True)
    changed = {name: tensor + 1 for name, tensor in STATE.items()}
    write(other.folder, state=changed)
    ask(other.server, monkeypatch, mirror=True)
    assert torch.equal(load_table(REPO, download=download).weight, WEIGHT[2:] + 1)
    other.server.forget()
    load_table(REPO)
    assert other.server.asked == []
    ask(hub.server, monkeypatch)
    hub.load()


def test_offline_nothing_is_asked(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids to ask the hub; unset it" in refusal(hub)
    assert hub.server.asked == []


@pytest.mark.parametrize("form", ["safetensors", "sharded bin"])
def test_a_download_is_of_whole_files_and_only_when_asked_for(serve, form):
    hub = serve(form)
    table = hub.load(download=True)
    assert table.revision == COMMIT
    assert {asked.headers["Range"] for asked in hub.server.asked} == {None}
    assert table.bytes_read >= (hub.folder / table.file).stat().st_size
    hub.server.forget()
    assert hub.load().bytes_read < 3 * WEIGHT.nbytes
    assert (hub.server.asked, hub.kept()) == ([], [])


def test_torchs_old_format_is_refused_with_the_way_out(hub):
    (write(hub.folder, "old bin") / "model.safetensors").unlink()
    assert "bytes, call load_table(..., download=True)" in refusal(hub, CheckpointError)
    hub.load(download=True)


# Faults.

MENDED = {
    "busy": (On(WEIGHTS, answers(503), times=1), [1.0]),
    "cut off in the table, twice": (On(WEIGHTS, cuts_off(999), times=2, after=1), [1.0, 3.0]),
    "silent in the table": (On(WEIGHTS, stalls(999), times=1, after=1), [1.0]),
    "not even a status": (On(WEIGHTS, says_nothing, times=1), [1.0]),
    "too many requests": (On("config", answers(429), times=2), [1.0, 3.0]),
    "a moment of the hub": (On("config", answers(500), times=1), [1.0]),
}
REFUSED = {
    "gated": (answers(403, X_Error_Code="GatedRepo"), "is gated: accept its terms at"),
    "not there": (answers(404, X_Error_Code="RepoNotFound"), "check the spelling, or log in"),
    "no such revision": (answers(404, X_Error_Code="RevisionNotFound"), "has no branch, tag or commit 'main'"),
    "no weights": (On("model", answers(404)), "holds no weights that can be read"),
    "a web page": (login_page, "a web page came instead; is there a network's login page"),
    "down": (On(WEIGHTS, answers(500), after=1), "it answers 500; check the internet connection, or try again"),
    "ignores Range": (On(WEIGHTS, ignores_range), "it ignores Range; load_table(..., download=True)"),
    "no commit": (says(X_Repo_Commit="../../somewhere"), "as of no commit"),
    "a token that is none": (
        answers(401, X_Error_Message="Invalid credentials in Authorization header"),
        "renew the token",
    ),
    "another commit": (On(WEIGHTS, says(X_Repo_Commit=OTHER)), "as of no commit, or of another"),
    "a teapot": (answers(418), "it answers 418"),
    "cut off for ever": (On(WEIGHTS, cuts_off(999)), "could not be read from http://127.0.0.1"),
    "too short": (On(WEIGHTS, says(Content_Length=None)), None),
    "a redirect to a file": (redirects_to("file:///etc/passwd"), "could not be read"),
    "a redirect to nowhere": (redirects_to("http://[::1"), "could not be read"),
    "a redirect to itself": (redirects_to("{path}"), "redirects"),
    "a range of the beginning": (On(WEIGHTS, says(Content_Range="bytes 0-9/999999"), after=1), "it ignores Range"),
    "bytes without a range": (On(WEIGHTS, says(Content_Range=None), after=1), "it ignores Range"),
    "an endless config": (On("config", ignores_range), None),
}
# One of each kind is tried whenever the tests are run.
QUICK = [
    "busy",
    "cut off in the table, twice",
    "gated",
    "not there",
    "no such revision",
    "no weights",
    "a web page",
    "down",
    "ignores Range",
    "no commit",
]


def names(faults):
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in faults]


@pytest.mark.parametrize("name", names(MENDED))
def test_mended_by_another_try(hub, monkeypatch, name):
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.8)
    fault, waits = MENDED[name]
    hub.server.faults = [fault]
    hub.load()
    assert hub.waits == waits


@pytest.mark.parametrize("name", names(REFUSED))
def test_refused_in_one_line(hub, name):
    fault, words = REFUSED[name]
    hub.server.faults = [fault]
    if words is None:  # only the header is wrong, and nothing depends on it
        hub.load()
    else:
        assert words in refusal(hub)
    # Nothing makes us read the file, or wait for ever.
    assert hub.server.sent < 8 * WEIGHT.nbytes
    assert sum(hub.waits) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("form", ["safetensors", "bin"])
@pytest.mark.parametrize("after", range(1, 6))
def test_wherever_a_hub_goes_away_it_is_the_hub_that_is_named(serve, form, after):
    hub = serve(form)
    hub.server.faults = [On("model", answers(404, X_Error_Code="RepoNotFound"), after=after)]
    if after < len(hub.server.requests) or form == "bin":
        assert "check the spelling" in refusal(hub)


def test_in_the_directory_of_a_zip_too_it_is_the_hub_that_is_named(serve):
    hub = serve("bin")
    hub.server.faults = [On("pytorch_model.bin$", answers(500), after=2)]
    assert "it answers 500" in refusal(hub)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [answers(500), On(WEIGHTS, cuts_off(1000)), answers(403, X_Error_Code="GatedRepo")])
def test_a_download_that_fails_is_one_line(hub, monkeypatch, fault):
    monkeypatch.setattr(time, "sleep", lambda _: None)  # huggingface_hub's own waits
    hub.server.faults = [fault]
    refusal(hub, download=True)
    hub.server.faults = []
    hub.load(download=True)


@pytest.mark.parametrize("told", [{"Retry_After": "999999"}, {"RateLimit": '"resolvers";r=0;t=999999'}], ids=str)
def test_a_hub_does_not_say_how_long_a_download_waits(hub, monkeypatch, told):
    monkeypatch.setattr(time, "sleep", (naps := []).append)  # huggingface_hub's own waits
    hub.server.faults = [answers(429, **told)]
    assert "429" in refusal(hub, download=True)
    hub.server.faults = [On(WEIGHTS, answers(429, **told), times=2)]
    hub.load(download=True)
    assert naps and max(naps) <= 8


def test_nobody_at_the_address_is_not_waited_for(serve):
    hub = serve(started=False)
    assert "Connection refused; check the internet connection" in refusal(hub)
    assert hub.waits == []


@pytest.mark.bad_input
@pytest.mark.parametrize("revision", ["..", "a/../b", "a\nb", "a b", "/main", "a//b", "C:x", "x" * 201])
def test_revisions_that_cannot_be(hub, revision):
    assert "is not the name of a branch, a tag or a commit" in refusal(hub, revision=revision)
    assert hub.server.asked == []


def test_the_doctor_is_told_whether_the_hub_answers(hub, serve, monkeypatch):
    hub.server.folders["gpt2", COMMIT] = hub.folder
    assert why_unreachable() is None
    hub.server.faults = [answers(401)]
    assert why_unreachable() is None
    hub.server.faults = [answers(503)]
    assert why_unreachable() == f"{hub.server.address}: it answers 503"
    hub.server.faults = [login_page]
    assert "login page" in why_unreachable()
    hub.server.faults = [says_nothing]
    assert why_unreachable(0.1) == f"{hub.server.address}: nothing came for 0.1 s"
    monkeypatch.setattr(hub_module, "_ask", lambda _: time.sleep(9))
    assert why_unreachable(-0.4) == f"{hub.server.address}: no answer within -0.4 s"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert why_unreachable() == "not asked, because HF_HUB_OFFLINE is set"


@pytest.mark.parametrize(
    "address", ["", "no address", "file:///etc", "http://", "http://u:secret@[::1", "http://x:99999"]
)
def test_an_endpoint_that_is_no_address_is_refused_at_once(hub, monkeypatch, address):
    monkeypatch.setattr(constants, "ENDPOINT", address)
    assert refusal(hub).startswith("HF_ENDPOINT is not the address of a hub; unset it")
    assert why_unreachable() == refusal(hub)


@pytest.mark.slow
def test_an_endpoint_that_the_client_cannot_be_imported_with(fresh_environment):
    program = "from posembed.cli import main; main(['table', 'owner/model'])"
    environment = fresh_environment | {"HF_ENDPOINT": "http://[::1"}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert ran.stderr.startswith("posembed: HF_ENDPOINT is not the address of a hub")
