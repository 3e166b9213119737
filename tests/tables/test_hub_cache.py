"""What is kept of a hub's answers, and what is not."""

import errno
import threading
import time
import warnings
from pathlib import Path

import pytest
import torch
from hub_server import COMMIT, REPO, On, answers, cuts_off
from huggingface_hub import constants, hf_hub_download
from hypothesis import given
from hypothesis import strategies as st

from posembed.errors import CheckpointNotFoundError
from posembed.tables import _cache
from posembed.tables._cache import Pieces, cache_folder, keep, recall
from posembed.tables._hub import HubCheckpoint

OTHER = "fedcba9876543210fedcba9876543210fedcba98"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


RECORDS = st.dictionaries(
    st.text("abc@/.-é", min_size=1),
    st.one_of(
        st.none().map(Pieces),
        st.builds(Pieces, st.integers(0, 2**40), st.dictionaries(st.integers(0, 2**40), st.binary(max_size=50))),
    ),
    max_size=4,
)


@given(record=RECORDS)
def test_what_is_packed_is_what_is_unpacked(record):
    data = _cache._packed(record, REPO, COMMIT)
    assert _cache._unpacked(data, REPO, COMMIT) == record


@pytest.mark.parametrize("data", [b"", b"\0" * 8, b"\xff" * 99, b"\2\0\0\0\0\0\0\0{}", b"\x02\0\0\0\0\0\0\0[]"])
def test_nothing_but_a_record_is_taken_for_one(folder, data):
    keep(REPO, COMMIT, COMMIT, {})
    (record,) = files(folder)
    record.write_bytes(data)
    assert recall(REPO, COMMIT) is None


def test_a_changed_byte_changes_nothing_that_is_recalled(folder):
    """Either it is seen, and nothing is recalled, or it stands where it does not matter."""
    keep(REPO, "main", COMMIT, {"config.json": Pieces(2, {0: b"{}"}), "model.safetensors": Pieces(None)})
    kept = recall(REPO, "main")
    for path in files(folder):
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert recall(REPO, "main") in (None, kept)
        for length in range(0, len(whole), 10):
            path.write_bytes(whole[:length])
            assert recall(REPO, "main") is None
        path.write_bytes(whole[:-1] + b"?")
        assert recall(REPO, "main") is None
        path.write_bytes(whole)
    assert recall(REPO, "main") == kept is not None


def test_a_record_of_another_repository_or_commit_is_none(folder):
    """A file that was moved, or a file system that does not know capitals from small letters."""
    keep(REPO, "main", COMMIT, {})
    (record,) = (path for path in files(folder) if path.suffix == ".safetensors")
    record.rename(record.with_name(f"{OTHER}.safetensors"))
    assert recall(REPO, OTHER) is None
    record.parent.rename(record.parent.with_name("someone--some-MODEL"))
    assert recall("someone/some-MODEL", OTHER) is None


def test_nothing_is_kept_at_first(folder):
    assert recall(REPO, "main") is None
    assert not folder.exists()


def test_a_commit_is_recalled_by_its_own_name_too(folder):
    keep(REPO, "main", COMMIT, {"config.json": Pieces(None)})
    for revision in ("main", COMMIT):
        commit, record, n_bytes = recall(REPO, revision)
        assert (commit, record) == (COMMIT, {"config.json": Pieces(None)})
        assert n_bytes > 0
    assert recall(REPO, "v2") is None
    assert recall("gpt2", "main") is None


def test_where_it_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("POSEMBED_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / "home" / ".cache" / "posembed" / "tables"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "posembed" / "tables"
    monkeypatch.setenv("POSEMBED_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "home" / "mine" / "tables"


def assert_found(hub, table):
    assert torch.equal(table.weight, hub.checkpoint.weight)


def test_a_damaged_record_is_read_anew(hub):
    hub.load()
    for damage in (lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"\xff" * 99), Path.unlink):
        for path in hub.kept():
            damage(path)
            hub.server.forget()
            assert_found(hub, hub.load())
            assert hub.server.asked != []
    hub.server.forget()
    assert_found(hub, hub.load())
    assert hub.server.asked == []


def test_after_a_fault_the_next_load_begins_anew(hub):
    hub.server.faults = [On("safetensors", cuts_off(1000), after=1)]
    with pytest.raises(CheckpointNotFoundError):
        hub.load()
    assert hub.kept() == []
    hub.server.faults = []
    assert_found(hub, hub.load())


def test_a_disk_that_cannot_be_written_loses_nothing_but_the_next_time(hub, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(RuntimeWarning, match=f"{REPO} is not kept for the next time: No space left on device") as caught:
        assert_found(hub, hub.load())
    assert len(caught) == 1
    assert hub.kept() == []


def test_a_place_that_is_no_folder_loses_nothing_either(hub):
    hub.cache.parent.mkdir(exist_ok=True)
    hub.cache.write_text("a file")
    with pytest.warns(RuntimeWarning, match="not kept"):
        assert_found(hub, hub.load())


def test_a_user_without_a_home_loses_nothing_either(hub, monkeypatch):
    monkeypatch.delenv("POSEMBED_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.warns(RuntimeWarning, match="not kept for the next time: Could not determine home directory"):
        assert_found(hub, hub.load())


def test_an_interrupted_write_leaves_nothing(folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        keep(REPO, "main", COMMIT, {})
    assert files(folder) == []


def test_many_at_once_find_nothing_half_written(folder):
    """Each write replaces the whole file: whoever reads in between finds an old one or a new one."""
    records = [{"model.safetensors": Pieces(n, {0: bytes([n]) * 100_000})} for n in range(2)]
    keep(REPO, "main", COMMIT, records[0])
    done = threading.Event()

    def write(record):
        while not done.is_set():
            keep(REPO, "main", COMMIT, record)

    writers = [threading.Thread(target=write, args=(record,)) for record in records]
    for writer in writers:
        writer.start()
    try:
        found = [recall(REPO, "main") for _ in range(100)]
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert all(each is not None and each[1] in records for each in found)
    assert len(files(folder)) == 2


def test_refresh_asks_again(hub, checkpoints):
    hub.load()
    newer = checkpoints("gpt2")
    hub.server.folders[OTHER], hub.server.branches["main"] = newer.folder, OTHER
    assert hub.load().revision == COMMIT
    table = hub.load(refresh=True)
    assert (table.revision, torch.equal(table.weight, newer.weight)) == (OTHER, True)
    hub.server.forget()
    assert hub.load().revision == OTHER
    # The older one is still there.
    assert_found(hub, hub.load(revision=COMMIT))
    assert hub.server.asked == []


def test_refresh_without_a_hub_is_an_error_and_keeps_what_there_is(hub):
    hub.load()
    hub.server.faults = [answers(500)]
    with pytest.raises(CheckpointNotFoundError):
        hub.load(refresh=True)
    assert_found(hub, hub.load())


@pytest.mark.parametrize("revision", ["v1.0", "refs/pr/1", "feature/naïve", COMMIT])
def test_branches_tags_and_commits(hub, revision):
    hub.server.branches[revision] = COMMIT
    assert_found(hub, hub.load(revision=revision))
    assert "main" not in " ".join(hub.server.requests)
    hub.server.forget()
    assert hub.load(revision=revision).revision == COMMIT
    assert hub.server.asked == []


def test_several_tables_of_one_commit_are_kept_together(hub):
    hub.load()
    table = hub.load(name="embeddings.token_type_embeddings.weight", offset=0)
    hub.server.forget()
    assert torch.equal(hub.load(name=table.name, offset=0).weight, table.weight)
    assert_found(hub, hub.load())
    assert hub.server.asked == []


BAD_REVISIONS = ["..", "a/../b", "../main", "a\nb", "a\x00b", "a b", "/main", "main/", "a//b", "C:x", "x" * 201, "a\\b"]


@pytest.mark.bad_input
@pytest.mark.parametrize("revision", BAD_REVISIONS)
def test_revisions_that_cannot_be(hub, revision):
    with pytest.raises(CheckpointNotFoundError, match="is not the name of a branch, a tag or a commit") as caught:
        hub.load(revision=revision)
    assert "\n" not in str(caught.value)
    assert hub.server.asked == []


BAD_IDS = [
    "..",
    "../gpt2",
    "a/../b",
    "a/b/c",
    "/etc",
    "/etc/passwd",
    "a b",
    "gpt2\n",
    "x" * 97,
    "a--b",
    "~",
    "a/.b",
    "é",
    "",
]


@pytest.mark.bad_input
@pytest.mark.parametrize("repo_id", BAD_IDS)
def test_names_that_no_repository_has(hub, repo_id):
    with pytest.raises(CheckpointNotFoundError, match="the name of a repository on the hub") as caught:
        HubCheckpoint(repo_id)
    assert "\n" not in str(caught.value)
    assert hub.server.asked == []


def test_a_repository_needs_no_owner(hub):
    hub.server.repo = "gpt2"
    assert HubCheckpoint("gpt2").config()["model_type"] == "bert"


@pytest.fixture
def no_real_waits(monkeypatch):
    """huggingface_hub's own client waits between its tries, too."""
    monkeypatch.setattr(time, "sleep", lambda _: None)


def test_what_huggingface_hub_has_is_read_there(hub):
    for name in ("config.json", "model.safetensors"):
        hf_hub_download(REPO, name)
    hub.server.forget()
    table = hub.load()
    assert_found(hub, table)
    assert (table.revision, hub.server.asked, hub.kept()) == (COMMIT, [], [])
    assert table.bytes_read <= hub.checkpoint.budget


def test_where_huggingface_hub_has_no_weights_the_hub_is_asked(hub):
    hf_hub_download(REPO, "config.json")
    hub.server.forget()
    assert_found(hub, hub.load())
    assert hub.server.n_answered <= 4


def test_only_the_missing_shards_are_asked_for(serve, checkpoints):
    hub = serve(checkpoints("bert", "sharded safetensors"))
    for name in ("config.json", "model.safetensors.index.json"):
        hf_hub_download(REPO, name)
    hub.server.forget()
    for n_asked in (2, 0):
        assert_found(hub, hub.load())
        assert len(hub.server.asked) == n_asked
        assert all("-of-" in request for request in hub.server.requests)
        hub.server.forget()


@pytest.mark.parametrize("form", ["bin", "sharded bin"])
def test_offline_the_form_that_is_there_will_do(serve, checkpoints, monkeypatch, form):
    """Whether there is a better form cannot be asked, and need not be."""
    hub = serve(checkpoints("bert", form))
    for file in hub.checkpoint.folder.iterdir():
        hf_hub_download(REPO, file.name)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert_found(hub, hub.load())


def test_refresh_leaves_huggingface_hubs_files_out_too(hub):
    for name in ("config.json", "model.safetensors"):
        hf_hub_download(REPO, name)
    hub.server.forget()
    assert_found(hub, hub.load(refresh=True))
    assert hub.server.n_answered == 3


@pytest.mark.parametrize("form", ["safetensors", "sharded safetensors", "bin", "sharded bin"])
def test_a_download_is_of_whole_files_and_only_when_asked_for(serve, checkpoints, form):
    hub = serve(checkpoints("roberta", form))
    table = hub.load(download=True)
    assert_found(hub, table)
    assert table.revision == COMMIT
    assert [asked.range for asked in hub.server.asked if asked.method == "GET"] == [None] * sum(
        asked.method == "GET" for asked in hub.server.asked
    )
    assert table.bytes_read >= (hub.checkpoint.folder / table.file).stat().st_size
    hub.server.forget()
    assert_found(hub, hub.load())
    assert (hub.server.asked, hub.kept()) == ([], [])


def test_what_was_downloaded_before_does_not_count_as_moved(hub):
    hub.load(download=True)
    assert hub.load(download=True).bytes_read <= hub.checkpoint.budget


REFUSED = {
    "404, no repository": (answers(404, X_Error_Code="RepoNotFound"), CheckpointNotFoundError, "check the spelling"),
    "404, no revision": (answers(404, X_Error_Code="RevisionNotFound"), CheckpointNotFoundError, "no branch, tag"),
    "404, no weights": (On("model", answers(404, X_Error_Code="EntryNotFound")), CheckpointNotFoundError, REPO),
    "403, gated": (answers(403, X_Error_Code="GatedRepo"), CheckpointNotFoundError, "accept its terms"),
    "500": (On("safetensors", answers(500)), CheckpointNotFoundError, "could not be downloaded: "),
    "cut off": (On("safetensors$", cuts_off(1000)), CheckpointNotFoundError, "could not be downloaded: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_download_that_fails_is_one_line(hub, no_real_waits, name):
    fault, error, piece = REFUSED[name]
    hub.server.faults = [fault]
    with pytest.raises(error, match=piece) as caught:
        hub.load(download=True)
    assert "\n" not in str(caught.value)
    assert hub.kept() == []
    hub.server.faults = []
    assert_found(hub, hub.load(download=True))


def test_a_download_without_a_hub_is_one_line(serve, checkpoints, no_real_waits):
    hub = serve(checkpoints(), started=False)
    with pytest.raises(
        CheckpointNotFoundError, match="could not be downloaded: .*; check the internet connection"
    ) as caught:
        hub.load(download=True)
    assert "\n" not in str(caught.value)


def test_loading_warns_of_nothing(hub):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hub.load()
        hub.load()
