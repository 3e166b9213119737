"""Reading from a hub that does its duty: what is moved, in how many requests."""

import itertools
import sys

import pytest
import torch
from hub_server import COMMIT, REPO, TOKEN, On, ignores_range, redirects_to, says
from huggingface_hub import constants
from hypothesis import given
from hypothesis import strategies as st

from posembed.errors import CheckpointError, PositionTableError
from posembed.tables._cache import Pieces
from posembed.tables._hub import FIRST, HubCheckpoint
from posembed.tables._hub_file import HubFile

SINGLE = [("bert", "safetensors"), ("roberta", "safetensors"), ("gpt2", "safetensors"), ("gpt2-lm", "safetensors")]
SEVERAL = [("bert", "sharded safetensors"), ("gpt2", "bin"), ("roberta", "bin"), ("bert", "sharded bin")]


def assert_found(table, checkpoint):
    assert torch.equal(table.weight, checkpoint.weight)
    assert (table.source, table.revision) == (REPO, COMMIT)


@pytest.mark.parametrize(("kind", "form", "most"), [(*each, 4) for each in SINGLE] + [(*each, 8) for each in SEVERAL])
def test_only_the_table_is_moved(serve, checkpoints, kind, form, most):
    hub = serve(checkpoints(kind, form))
    table = hub.load()
    assert_found(table, hub.checkpoint)
    assert hub.server.n_answered <= most
    assert hub.server.sent == table.bytes_read <= hub.checkpoint.budget
    # The budget means something: the rest of the checkpoint would not fit into it many times.
    assert sum(file.stat().st_size for file in hub.checkpoint.folder.iterdir()) > 5 * hub.checkpoint.budget
    assert hub.waits == []


def test_a_header_longer_than_the_first_look_takes_one_request_more(serve, checkpoints):
    hub = serve(checkpoints("bert", "long header"))
    assert_found(hub.load(), hub.checkpoint)
    with (hub.checkpoint.folder / "model.safetensors").open("rb") as file:
        assert int.from_bytes(file.read(8), "little") > FIRST
    assert hub.server.n_answered == 4
    assert hub.server.sent <= hub.checkpoint.budget


def test_every_request_after_the_first_names_the_commit(hub):
    hub.load()
    asked = [request.split("/resolve/")[1].partition("/")[0] for request in hub.server.requests]
    assert asked == ["main"] + [COMMIT] * (len(asked) - 1)


def test_nothing_but_files_is_asked_for(hub, monkeypatch):
    """huggingface_hub 2.4 asks, once a process, for a list of coding agents whenever it is asked for headers."""
    if (agents := sys.modules.get("huggingface_hub.utils._detect_agent")) is not None:
        monkeypatch.setattr(agents, "_registry", None)
        monkeypatch.setattr(constants, "AGENT_HARNESSES_PATH", "no such file")
    hub.load()
    assert len(hub.server.requests) == 3
    assert all(request.startswith(f"GET /{REPO}/resolve/") for request in hub.server.requests)


def test_nothing_packed_is_asked_for(hub):
    hub.load()
    assert {asked.headers["Accept-Encoding"] for asked in hub.server.asked} == {"identity"}


def test_the_second_load_asks_nobody(hub):
    first = hub.load()
    hub.server.forget()
    second = hub.load()
    assert_found(second, hub.checkpoint)
    assert hub.server.asked == []
    assert (second.name, second.offset, second.file) == (first.name, first.offset, first.file)
    (record,) = (path for path in hub.kept() if path.suffix == ".safetensors")
    assert second.bytes_read == record.stat().st_size <= hub.checkpoint.budget


@pytest.mark.parametrize("form", ["sharded safetensors", "bin", "sharded bin"])
def test_the_second_load_of_other_forms_asks_nobody_either(serve, checkpoints, form):
    """That there is no model.safetensors is remembered too."""
    hub = serve(checkpoints("bert", form))
    hub.load()
    hub.server.stop()
    assert_found(hub.load(), hub.checkpoint)


def test_a_checkpoint_without_a_config_needs_the_offset_and_no_more(hub, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "model.safetensors").symlink_to(hub.checkpoint.folder / "model.safetensors")
    hub.server.folders[COMMIT] = bare
    with pytest.raises(PositionTableError, match="offset=") as caught:
        hub.load()
    assert "\n" not in str(caught.value)
    hub.server.forget()
    assert_found(hub.load(offset=0), hub.checkpoint)
    assert hub.server.n_answered <= 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_storage_is_followed(hub, serve, status):
    storage = serve(hub.checkpoint, as_hub=False).server
    storage.faults = [says(X_Repo_Commit=None)]
    hub.server.faults = [redirects_to(f"{storage.address}{{path}}", status)]
    assert_found(hub.load(), hub.checkpoint)
    assert hub.server.n_answered == 0
    assert len(hub.server.asked) == storage.n_answered <= 4
    assert hub.server.sent + storage.sent <= hub.checkpoint.budget


def test_only_the_hub_itself_is_given_the_token(hub, serve):
    storage = serve(hub.checkpoint, as_hub=False).server
    hub.server.faults = [redirects_to(f"{storage.address}{{path}}")]
    hub.load()
    assert {asked.headers["Authorization"] for asked in hub.server.asked} == {f"Bearer {TOKEN}"}
    assert {asked.headers["Authorization"] for asked in storage.asked} == {None}


def test_the_storage_is_asked_for_the_range_that_the_hub_was_asked_for(hub, serve):
    """The hub signs an address for one range, so that each range needs an address of its own."""
    storage = serve(hub.checkpoint, as_hub=False).server
    hub.server.faults = [redirects_to(f"{storage.address}{{path}}")]
    hub.load()
    assert [asked.range for asked in hub.server.asked] == [asked.range for asked in storage.asked]


def test_a_relative_redirect_is_followed_with_the_token(hub):
    """As the hub answers for a repository that was renamed."""

    def renamed(reply):
        if "old-name" in reply.asked.path:
            redirects_to(reply.asked.path.replace("someone/old-name", REPO), 307)(reply)

    hub.server.faults = [renamed]
    checkpoint = HubCheckpoint("someone/old-name")
    assert checkpoint.config()["model_type"] == "bert"
    assert [asked.headers["Authorization"] for asked in hub.server.asked] == [f"Bearer {TOKEN}"] * 2
    assert checkpoint.n_requests == 1


@pytest.mark.parametrize("form", ["safetensors", "sharded bin"])
def test_connections_are_used_again(serve, checkpoints, monkeypatch, form):
    """Nobody is greeted anew for every request, though some are answered by a redirect and some by a 404."""
    hub = serve(checkpoints("bert", form))
    storage = serve(hub.checkpoint, as_hub=False).server
    hub.server.faults = [On("-of-|safetensors$", redirects_to(f"{storage.address}{{path}}"))]
    greeted = {hub.server: 0, storage: 0}
    for server in greeted:

        def greet(*_, server=server):
            greeted[server] += 1
            return True

        monkeypatch.setattr(server, "verify_request", greet)
    hub.load()
    assert list(greeted.values()) == [1, 1]
    assert len(hub.server.asked) >= 3


def test_a_server_that_ignores_range_serves_what_stands_at_the_front(hub):
    """The end of the answer is not waited for: the connection is closed."""
    hub.server.faults = [ignores_range]
    file = HubCheckpoint(REPO).open("model.safetensors")
    path = hub.checkpoint.folder / "model.safetensors"
    assert file.read(0, FIRST) == path.read_bytes()[:FIRST]
    assert file.size == path.stat().st_size > 8 * hub.server.sent


def test_what_was_read_is_not_asked_for_again(hub):
    file = HubCheckpoint(REPO).open("model.safetensors")
    content = (hub.checkpoint.folder / "model.safetensors").read_bytes()
    hub.server.forget()
    for start, stop, n_requests in [
        (0, FIRST, 0),
        (FIRST + 5, FIRST + 10, 1),
        (FIRST, 2 * FIRST, 3),
        (9, FIRST + 99, 3),
    ]:
        assert file.read(start, stop) == content[start:stop]
        assert len(hub.server.asked) == n_requests


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4), (0, 2**62)])
def test_what_is_not_in_the_file_is_refused(hub, start, stop):
    file = HubCheckpoint(REPO).open("model.safetensors")
    with pytest.raises(CheckpointError, match="were asked for"):
        file.read(start, stop)


def test_no_header_makes_us_ask_for_a_gigabyte():
    file = HubFile("model.safetensors", 2**40, Pieces(2**40), lambda *_: pytest.fail("asked"))
    with pytest.raises(CheckpointError, match="too many for a table"):
        file.read(0, 2**30 + 1)


def test_what_stands_nearby_comes_along(hub):
    """A request costs more than a few kilobytes: the header of a zip's record comes with what follows it."""
    file = HubCheckpoint(REPO).open("model.safetensors")
    hub.server.forget()
    file.read(FIRST + 100, FIRST + 130)
    file.read(FIRST + 130, FIRST + 10_000)
    assert len(hub.server.asked) == 1


def test_the_directory_of_a_zip_is_one_request(serve, checkpoints):
    """However it is read: zipfile begins with the last 22 bytes."""
    hub = serve(checkpoints("bert", "bin"))
    file = HubCheckpoint(REPO).open("pytorch_model.bin")
    hub.server.forget()
    file.read(file.size - 22, file.size)
    file.read(file.size - 50_000, file.size - 10)
    assert len(hub.server.asked) == 1


READS = st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 200_000)).map(sorted), max_size=12)


@given(reads=READS, ending=st.sampled_from(["safetensors", "bin"]))
def test_whatever_is_read_in_whatever_order_is_what_the_file_holds(reads, ending):
    content = bytes(itertools.islice(itertools.cycle(range(251)), 200_000))
    fetched = []

    def fetch(name, start, stop):
        fetched.append((start, stop))
        return content[start:stop]

    file = HubFile(f"model.{ending}", len(content), Pieces(len(content)), fetch)
    for start, stop in reads:
        already = len(fetched)
        assert file.read(start, stop) == content[start:stop]
        assert file.read(start, stop) == content[start:stop]
        # Nothing is asked for that does not bring something new, nor what lies outside of the file.
        assert all(0 <= begin < end <= len(content) for begin, end in fetched[already:])
    assert file.bytes_read == sum(stop - start for start, stop in fetched)
