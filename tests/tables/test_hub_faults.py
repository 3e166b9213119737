"""Every way in which a hub fails: mended by another try, or refused in one line that says what to do."""

import re
import socket
import subprocess
import sys
import time

import httpx
import huggingface_hub
import pytest
import torch
from hub_server import (
    COMMIT,
    REPO,
    TOKEN,
    On,
    answers,
    chunked,
    cuts_off,
    drips,
    ignores_range,
    login_page,
    redirects_to,
    says,
    says_nothing,
    sends_only,
    stalls,
)
from huggingface_hub import constants
from huggingface_hub.utils import get_session

from posembed.errors import CheckpointNotFoundError
from posembed.tables import _ranges
from posembed.tables._http import NoAnswerError, redirected
from posembed.tables._hub import HubCheckpoint, why_unreachable
from posembed.tables._ranges import LONGEST_WAIT, asked_wait

OTHER = "fedcba9876543210fedcba9876543210fedcba98"
WEIGHTS = "model.safetensors$"


def refusal(hub, error=CheckpointNotFoundError, **options):
    """The one line that loading ends with; nothing of it is left in the cache."""
    with pytest.raises(error) as caught:
        hub.load(**options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 400
    assert TOKEN not in message
    assert hub.kept() == []
    return message


def assert_found(hub, waits):
    assert torch.equal(hub.load().weight, hub.checkpoint.weight)
    assert hub.waits == waits
    hub.server.faults = [answers(500)]
    hub.load()  # what was kept is whole


def mended(fault, waits, **which):
    return On(WEIGHTS, fault, **{"times": len(waits), **which}), waits


STALLED = {
    "stalls in the table": mended(stalls(50_000), [1.0], after=1),
    "stalls before its first byte": mended(stalls(), [1.0]),
    "not even a status": mended(says_nothing, [1.0]),
}
BROKEN = {
    "500": mended(answers(500), [1.0]),
    "500 twice": mended(answers(500), [1.0, 3.0]),
    "502": mended(answers(502, b"<html>Bad gateway</html>"), [1.0]),
    "503": mended(answers(503), [1.0, 3.0], after=1),
    "504": mended(answers(504), [1.0]),
    "408": mended(answers(408), [1.0]),
    "429": mended(answers(429), [1.0]),
    "429 that says how long to wait": mended(answers(429, Retry_After="7"), [7.0]),
    "429 in the hub's own words": mended(answers(429, RateLimit='"resolvers";r=0;t=12'), [12.0]),
    "cut off in the first look": mended(cuts_off(1000), [1.0]),
    "cut off in the table": mended(cuts_off(50_000), [1.0], after=1),
    "cut off before its first byte": mended(cuts_off(0), [1.0]),
    "closed without an answer": mended(says(Content_Length="a few"), [1.0]),
    "fewer bytes than asked for": mended(sends_only(1000), [1.0]),
    "no length": (says(Content_Length=None), []),
    "chunks": (chunked, []),
}


@pytest.mark.parametrize("name", BROKEN)
def test_another_try_mends(hub, name):
    fault, waits = BROKEN[name]
    hub.server.faults = [fault]
    assert_found(hub, waits)


@pytest.mark.parametrize("name", STALLED)
def test_another_try_mends_what_stalls(hub, impatient, name):
    fault, waits = STALLED[name]
    hub.server.faults = [fault]
    assert_found(hub, waits)


@pytest.mark.parametrize("fault", [cuts_off(50_000), stalls(50_000)], ids=["cut", "stall"])
def test_what_broke_off_goes_on_where_it_stopped(hub, impatient, fault):
    hub.server.faults = [On(WEIGHTS, fault, times=1, after=1)]
    hub.load()
    _, broken, rest = hub.asked_ranges("model.safetensors")
    first, last = map(int, broken.removeprefix("bytes=").split("-"))
    assert rest == f"bytes={first + 50_000}-{last}"
    assert hub.server.sent <= hub.checkpoint.budget


@pytest.mark.parametrize("after", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_goes_on_failing_is_asked_three_times(hub, status, after):
    hub.server.faults = [On(WEIGHTS, answers(status), after=after)]
    message = refusal(hub)
    assert f"model.safetensors of {REPO} could not be read from {hub.server.address}" in message
    assert f"the answer is {status}, 3 times; try again later" in message
    assert (hub.waits, len(hub.asked_ranges("model.safetensors"))) == ([1.0, 3.0], 3 + after)


def test_a_hub_that_wants_a_long_rest_is_not_waited_for(hub):
    hub.server.faults = [answers(429, Retry_After="3600")]
    assert "429; it asks to be left alone for 3600 s" in refusal(hub)
    assert (hub.waits, len(hub.server.asked)) == ([], 1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"retry-after": "5"}, 5),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"ratelimit": '"api";r=0;t=55'}, 55),
        ({"ratelimit": '"api";r=7;t=55'}, 0),
        ({"ratelimit": "ask again"}, 0),
    ],
)
def test_how_long_a_server_asks_to_wait(headers, seconds):
    assert asked_wait(headers) == seconds


def test_a_date_to_wait_for_may_be_in_the_future():
    wait = asked_wait({"retry-after": "Fri, 21 Oct 2225 07:28:00 GMT"})
    assert wait > LONGEST_WAIT


def test_always_cut_off(hub):
    hub.server.faults = [On(WEIGHTS, cuts_off(20_000), after=1)]
    assert "try again later" in refusal(hub)
    # Each of the three tries brought its part and nothing was read twice.
    assert hub.server.sent < hub.checkpoint.budget


@pytest.mark.parametrize("fault", [stalls(), stalls(5000), says_nothing], ids=["at once", "later", "mute"])
def test_always_stalled(hub, fault, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    hub.server.faults = [On(WEIGHTS, fault)]
    assert "nothing came for 0.2 s, 3 times; try again later" in refusal(hub)
    assert hub.waits == [1.0, 3.0]


def test_a_server_that_only_drips(hub, impatient):
    """A byte now and then never lets a timeout pass, and would take hours."""
    hub.server.faults = [On(WEIGHTS, drips)]
    assert re.search(r"only \d+ bytes came within 0.8 s, 3 times; try again later", refusal(hub))


def test_connection_refused(serve, checkpoints):
    hub = serve(checkpoints(), started=False)
    message = refusal(hub)
    assert "Connection refused; check the internet connection" in message
    assert "POSEMBED_CHECKPOINTS" in message
    assert hub.waits == []


def test_no_such_host(hub, monkeypatch):
    def nobody(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    assert "Name or service not known; check the internet connection" in refusal(hub)


def test_an_endpoint_that_no_name_server_knows(hub, point_at):
    """HF_ENDPOINT is the user's."""
    point_at("http://a b")
    assert "a b" in refusal(hub)


def test_offline(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    message = refusal(hub)
    assert "HF_HUB_OFFLINE forbids" in message
    assert REPO in message
    assert hub.server.asked == []


def test_offline_what_was_kept_is_enough(hub, monkeypatch):
    hub.load()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_TOKEN", "not used \x01")
    assert torch.equal(hub.load().weight, hub.checkpoint.weight)


def shifted(content_range):
    """The range beside the one that it is."""
    first, last, size = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", content_range).groups())
    return f"bytes {first + 1}-{last + 1}/{size}"


def not_found(code, status=404, **headers):
    return answers(status, X_Error_Code=code, **headers)


REFUSED = {
    "401, a private or misspelt name": (
        [not_found("RepoNotFound", 401, X_Error_Message="Repository not found")],
        CheckpointNotFoundError,
        ["there is no checkpoint at", REPO, "private", "check the spelling", "hf auth login"],
    ),
    "401 in no words": ([answers(401)], CheckpointNotFoundError, ["check the spelling", "hf auth login"]),
    "401, a token that is not good": (
        [answers(401, X_Error_Message="Invalid credentials in Authorization header")],
        CheckpointNotFoundError,
        ["with this token; renew it", "HF_TOKEN", "hf auth login"],
    ),
    "401, gated": (
        [not_found("GatedRepo", 401)],
        CheckpointNotFoundError,
        ["gated", "accept its terms at", REPO, "hf auth login"],
    ),
    "403, gated": (
        [not_found("GatedRepo", 403)],
        CheckpointNotFoundError,
        ["gated", "accept its terms at", REPO, "hf auth login"],
    ),
    "403": (
        [answers(403, X_Error_Message="Access to this resource is disabled.")],
        CheckpointNotFoundError,
        ["refuses config.json", "403 Access to this resource is disabled"],
    ),
    "404, no repository": ([not_found("RepoNotFound")], CheckpointNotFoundError, ["check the spelling"]),
    "404, no revision": (
        [not_found("RevisionNotFound")],
        CheckpointNotFoundError,
        ["no branch, tag or commit 'main'"],
    ),
    "404, no weights": ([On("pytorch|safetensors", not_found("EntryNotFound"))], CheckpointNotFoundError, [REPO]),
    "404 for everything": ([answers(404)], CheckpointNotFoundError, [REPO]),
    "404 for what was there": ([On(WEIGHTS, answers(404), after=1)], CheckpointNotFoundError, ["no longer on the hub"]),
    "416": ([On(WEIGHTS, answers(416), after=1)], CheckpointNotFoundError, ["416"]),
    "418": ([answers(418)], CheckpointNotFoundError, ["418"]),
    "204": ([answers(204)], CheckpointNotFoundError, ["204"]),
    "a redirect to nowhere": ([answers(302)], CheckpointNotFoundError, ["redirects to no address"]),
    "a redirect to a file": ([redirects_to("file:///etc/passwd")], CheckpointNotFoundError, ["redirects", "file:"]),
    "a redirect to another protocol": (
        [redirects_to("ftp://127.0.0.1/x")],
        CheckpointNotFoundError,
        ["redirects", "ftp:"],
    ),
    "a redirect to no host": ([redirects_to("http://")], CheckpointNotFoundError, ["redirects"]),
    "a redirect to a broken address": (
        [redirects_to("http://[::1")],
        CheckpointNotFoundError,
        ["redirects to no address"],
    ),
    "a redirect to itself": ([redirects_to("{path}")], CheckpointNotFoundError, ["redirects more than 8 times"]),
    "a redirect to an odd port": (
        [redirects_to("http://127.0.0.1:99999/x")],
        CheckpointNotFoundError,
        ["redirects to no address"],
    ),
    "a web page for the config": ([login_page], CheckpointNotFoundError, ["a web page came instead", "login page"]),
    "a web page that does not say so": (
        [login_page, says(Content_Type=None)],
        CheckpointNotFoundError,
        ["a web page came instead", "login page"],
    ),
    "a web page for the weights": (
        [On(WEIGHTS, login_page)],
        CheckpointNotFoundError,
        ["a web page came instead", "login page"],
    ),
    "a web page for the table": (
        [On(WEIGHTS, login_page, after=1)],
        CheckpointNotFoundError,
        ["a web page came instead"],
    ),
    "ignores Range, says no length": (
        [On(WEIGHTS, ignores_range), On(WEIGHTS, says(Content_Length=None))],
        CheckpointNotFoundError,
        ["does not say how long the file is", "download=True"],
    ),
    "packed": ([On(WEIGHTS, says(Content_Encoding="gzip"))], CheckpointNotFoundError, ["packed", "download=True"]),
    "length too long": (
        [On(WEIGHTS, says(Content_Length=lambda true: str(int(true) + 100)), after=1)],
        CheckpointNotFoundError,
        ["were asked for", "download=True"],
    ),
    "length too short": (
        [On(WEIGHTS, says(Content_Length=lambda true: str(int(true) - 100)), after=1)],
        CheckpointNotFoundError,
        ["were asked for", "download=True"],
    ),
    "length below zero": ([On(WEIGHTS, says(Content_Length="-1"))], CheckpointNotFoundError, ["3 times"]),
    "length of the whole file": (
        [On("config", says(Content_Length=str(2**40)))],
        CheckpointNotFoundError,
        ["too many"],
    ),
    "length of the config too long": (
        [On("config", says(Content_Length=lambda true: str(int(true) + 100))), On("config", cuts_off(10**6))],
        CheckpointNotFoundError,
        ["3 times"],
    ),
    "another range": ([On(WEIGHTS, says(Content_Range=shifted), after=1)], CheckpointNotFoundError, ["were asked for"]),
    "no range": ([On(WEIGHTS, says(Content_Range=None))], CheckpointNotFoundError, ["without saying which"]),
    "a range of nobody knows how much": (
        [On(WEIGHTS, says(Content_Range=lambda true: true.partition("/")[0] + "/*"))],
        CheckpointNotFoundError,
        ["without saying which"],
    ),
    "a range in other units": (
        [On(WEIGHTS, says(Content_Range="rows 1-2/3"))],
        CheckpointNotFoundError,
        ["without saying which"],
    ),
    "another size": (
        [On(WEIGHTS, says(Content_Range=lambda true: true + "0"), after=1)],
        CheckpointNotFoundError,
        ["changed between two requests", "try again"],
    ),
    "another tag": (
        [On(WEIGHTS, says(ETag='"other"'), after=1)],
        CheckpointNotFoundError,
        ["changed between two requests"],
    ),
    "another tag after a break": (
        [On(WEIGHTS, cuts_off(999), times=1), On(WEIGHTS, says(ETag='"other"'), after=1)],
        CheckpointNotFoundError,
        ["changed between two requests"],
    ),
    "another commit": (
        [On(WEIGHTS, says(X_Repo_Commit=OTHER))],
        CheckpointNotFoundError,
        ["changed while it was read", "try again"],
    ),
    "words that draw on the terminal": (
        [answers(403, X_Error_Message="\x1b[2J" + "no " * 500)],
        CheckpointNotFoundError,
        ["no no no", "[...]"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(hub, name):
    faults, error, pieces = REFUSED[name]
    hub.server.faults = faults
    message = refusal(hub, error)
    assert [piece for piece in pieces if piece not in message] == []
    # None of them makes us read the file, or wait for ever.
    assert hub.server.sent < 2 * hub.checkpoint.budget
    assert sum(hub.waits) <= 4


def test_a_server_that_ignores_range_is_read_as_far_as_the_table(hub):
    """Which here stands at the front of the file; what follows it is not waited for."""
    hub.server.faults = [ignores_range]
    assert_found(hub, [])


def test_a_server_that_ignores_range_does_not_make_us_read_the_file(serve, checkpoints):
    hub = serve(checkpoints("bert", "table far behind"))
    hub.server.faults = [ignores_range]
    message = refusal(hub)
    assert "ignores Range; load_table(..., download=True) fetches the whole file instead" in message
    assert hub.server.sent < hub.checkpoint.budget


def test_then_the_whole_file_may_be_fetched(serve, checkpoints):
    hub = serve(checkpoints("bert", "table far behind"))
    hub.server.faults = [ignores_range]
    table = hub.load(download=True)
    assert torch.equal(table.weight, hub.checkpoint.weight)
    assert table.bytes_read >= (hub.checkpoint.folder / "model.safetensors").stat().st_size
    hub.server.forget()
    assert torch.equal(hub.load().weight, hub.checkpoint.weight)
    assert hub.server.asked == []


def test_a_repository_that_is_not_there(hub):
    with pytest.raises(CheckpointNotFoundError, match="check the spelling") as caught:
        HubCheckpoint("someone/some-modle").config()
    message = str(caught.value)
    assert f"{hub.server.address}/someone/some-modle" in message
    assert hub.waits == []


def test_a_revision_that_is_not_there(hub):
    assert f"{REPO} has no branch, tag or commit 'v2'" in refusal(hub, CheckpointNotFoundError, revision="v2")


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_storage_that_refuses(hub, serve, status):
    """A file that the storage lacks is not one that the repository lacks."""
    storage = serve(hub.checkpoint, as_hub=False).server
    storage.faults = [answers(status)]
    hub.server.faults = [On(WEIGHTS, redirects_to(f"{storage.address}{{path}}"))]
    assert str(status) in refusal(hub)


def test_a_storage_that_is_not_there(hub, serve):
    storage = serve(hub.checkpoint, as_hub=False, started=False).server
    hub.server.faults = [On(WEIGHTS, redirects_to(f"{storage.address}{{path}}"))]
    assert "Connection refused" in refusal(hub)
    # The hub answered a moment ago: this may be a moment's trouble.
    assert hub.waits == [1.0, 3.0]


def test_a_storage_whose_file_changes_is_noticed_by_the_hubs_own_tag(hub, serve):
    storage = serve(hub.checkpoint, as_hub=False).server
    tags = iter(['"one"', '"two"'])
    storage.faults = [says(ETag=lambda _: next(tags))]
    there = redirects_to(f"{storage.address}{{path}}")
    hub.server.faults = [On(WEIGHTS, there)]
    hub.load()  # storages have their own tags, which may differ between two of their machines
    hub.server.faults = [On(WEIGHTS, there), On(WEIGHTS, says(X_Linked_Etag='"other"'), after=1)]
    tags = iter(['"one"', '"one"'])
    with pytest.raises(CheckpointNotFoundError, match="changed between two requests"):
        hub.load(refresh=True)


def test_the_commit_is_the_one_that_the_hub_names_not_its_storage(hub, serve):
    storage = serve(hub.checkpoint, as_hub=False).server
    storage.faults = [says(X_Repo_Commit=OTHER)]
    hub.server.faults = [redirects_to(f"{storage.address}{{path}}")]
    assert hub.load().revision == COMMIT


def test_a_push_in_between_mixes_nothing(hub, checkpoints):
    """What is read after it is still of the commit that the first answer named."""
    hub.server.folders[OTHER] = checkpoints("roberta").folder

    def push(reply):
        hub.server.branches["main"] = OTHER

    hub.server.faults = [push]
    table = hub.load()
    assert torch.equal(table.weight, hub.checkpoint.weight)
    assert table.revision == COMMIT


def test_a_push_in_between_mixes_nothing_in_one_file_either(hub, checkpoints):
    file = HubCheckpoint(REPO).open("model.safetensors")
    hub.server.folders[OTHER], hub.server.branches["main"] = checkpoints("roberta").folder, OTHER
    content = (hub.checkpoint.folder / "model.safetensors").read_bytes()
    assert file.read(0, 200_000) == content[:200_000]


def test_a_mirror_that_names_no_commit_is_read_and_not_kept(hub):
    hub.server.faults = [says(X_Repo_Commit=None)]
    table = hub.load()
    assert torch.equal(table.weight, hub.checkpoint.weight)
    assert (table.revision, hub.kept()) == (None, [])


def test_a_commit_that_is_none_is_not_believed(hub):
    """It would become part of addresses and of the names of files."""
    hub.server.faults = [says(X_Repo_Commit="../../somewhere")]
    assert hub.load().revision is None
    assert hub.kept() == []


@pytest.mark.parametrize("fault", [chunked, says(Content_Length=None)], ids=["chunks", "no length"])
def test_a_config_without_end_is_not_read_to_its_end(hub, monkeypatch, fault):
    monkeypatch.setattr(_ranges, "LARGEST_WHOLE", 100)
    hub.server.faults = [fault]
    assert "config.json" in (message := refusal(hub))
    assert "too many for a file that describes a checkpoint" in message


def test_an_empty_file_of_weights(hub, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "model.safetensors").touch()
    hub.server.folders[COMMIT] = empty
    file = HubCheckpoint(REPO).open("model.safetensors")
    assert (file.size, file.read(0, 0)) == (0, b"")


@pytest.mark.parametrize(
    ("target", "reason"),
    [("http://hub.example/x", "http:"), ("http:/x", "http:"), ("javascript:alert(1)", "javascript:")],
)
def test_encryption_is_not_given_up_on_the_way(target, reason):
    with pytest.raises(NoAnswerError, match=reason):
        redirected("https://hub.example/y", target)


def test_encryption_may_be_gained_on_the_way():
    assert redirected("http://hub.example/y", "https://hub.example/y") == "https://hub.example/y"


@pytest.mark.parametrize("token", ["hf_Gehe\u00efm", "hf_Gehe\x01m"])
def test_a_token_that_cannot_be_sent_is_an_error_without_the_token(hub, monkeypatch, token):
    monkeypatch.setenv("HF_TOKEN", token)
    message = refusal(hub)
    assert "Gehe" not in message
    assert "the token for the hub holds characters that no token has; renew it (HF_TOKEN" in message


def test_a_token_that_cannot_be_read(hub, monkeypatch):
    def unreadable():
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(huggingface_hub, "get_token", unreadable)
    assert "the token for the hub cannot be read: [Errno 13] Permission denied; renew it" in refusal(hub)
    assert "the token for the hub cannot be read" in why_unreachable()


def test_without_a_token_none_is_sent(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    hub.load()
    assert {asked.headers["Authorization"] for asked in hub.server.asked} == {None}


@pytest.fixture
def older_client():
    """What huggingface_hub before 2.0 talks through: httpx, whose errors are other classes than httpx2's."""
    huggingface_hub.set_client_factory(lambda: httpx.Client(timeout=None, follow_redirects=True))
    assert type(get_session()) is httpx.Client
    yield
    huggingface_hub.set_client_factory(huggingface_hub.utils._http.default_client_factory)


@pytest.mark.parametrize("name", ["cut off in the table", "stalls in the table", "not even a status", "chunks"])
def test_the_older_client_is_mended_the_same_way(older_client, hub, impatient, name):
    fault, waits = (BROKEN | STALLED)[name]
    hub.server.faults = [fault]
    assert_found(hub, waits)


@pytest.mark.parametrize("name", ["length below zero", "a redirect to a file", "a redirect to itself"])
def test_the_older_client_refuses_the_same(older_client, hub, name):
    faults, error, pieces = REFUSED[name]
    hub.server.faults = faults
    message = refusal(hub, error)
    assert [piece for piece in pieces if piece not in message] == []


def test_the_older_client_meets_nobody(older_client, serve, checkpoints):
    hub = serve(checkpoints(), started=False)
    assert "Connection refused; check the internet connection" in refusal(hub)


def test_the_doctor_is_told_whether_the_hub_answers(hub, serve, monkeypatch):
    hub.server.repo = "gpt2"
    assert why_unreachable() is None
    hub.server.faults = [answers(503)]
    assert why_unreachable() == f"{hub.server.address}: it answers 503"
    hub.server.faults = [answers(407)]
    assert why_unreachable() == f"{hub.server.address}: it answers 407"
    hub.server.faults = [answers(401)]
    assert why_unreachable() is None
    hub.server.faults = [answers(200, Content_Type="text/html")]
    assert "login page" in why_unreachable()
    hub.server.faults = [says_nothing]
    assert why_unreachable(0.1) == f"{hub.server.address}: nothing came for 0.1 s"
    closed = serve(hub.checkpoint, started=False).server
    assert "Connection refused" in why_unreachable()
    assert closed.address in why_unreachable()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert why_unreachable() == "not asked, because HF_HUB_OFFLINE is set"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "no address",
        "file:///etc",
        "http://",
        "http://u:secret@[::1",
        "http://x:99999",
        "127.0.0.1:80",
        "http://x:port",
    ],
)
def test_an_endpoint_that_is_no_address_is_refused_at_once(hub, point_at, address):
    point_at(address)
    assert refusal(hub).startswith("HF_ENDPOINT is not the address of a hub; unset it")
    assert why_unreachable() == refusal(hub)


@pytest.mark.parametrize("address", ["http://[::1", "http://127.0.0.1:99999"])
def test_an_endpoint_that_the_client_cannot_be_imported_with(fresh_environment, address):
    program = "from posembed.cli import main; main(['table', 'owner/model'])"
    environment = fresh_environment | {"HF_ENDPOINT": address}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert ran.stderr.startswith("posembed: HF_ENDPOINT is not the address of a hub")


def test_nothing_here_waits_for_real(hub):
    began = time.monotonic()
    hub.server.faults = [answers(429, Retry_After="29")]
    refusal(hub)
    assert hub.waits == [29.0, 29.0]
    assert time.monotonic() - began < 20
