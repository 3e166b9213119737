"""The doctor says what is there, and what runs instead of what is not."""

import json
import threading
from pathlib import Path

import pytest
from hub_server import REPO, HubServer, answers, says_nothing

from posembed.cli import _checks
from posembed.cli._checks import (
    Check,
    all_checks,
    check_cache,
    check_checkpoints,
    check_encoder,
    check_hub,
    check_library,
)


@pytest.fixture
def endpoint(monkeypatch):
    """A function that sets the hub's address, and whether it may be asked."""

    def endpoint(address, offline=False):
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)

    return endpoint


@pytest.fixture
def checks(monkeypatch):
    """A function that puts other findings in the place of what is here."""

    def checks(*found):
        monkeypatch.setattr("posembed.cli._checks.all_checks", lambda: iter(found))

    return checks


def test_everything_is_looked_at(monkeypatch, endpoint):
    endpoint("http://127.0.0.1:9")
    found = list(all_checks())
    names = [check.name for check in found]
    assert len(names) == len(set(names))
    assert {"Python", "torch", "GPU", "POSEMBED_CHECKPOINTS", "posembed's cache", "the hub's cache", "the hub"} <= {
        *names
    }
    assert not [check for check in found if check.state == "broken"]
    assert all(check.instead for check in found if check.state == "missing")


def test_in_json_and_for_people(checks, call):
    checks(Check("torch", "ok", "2.0"), Check("the hub", "missing", "no answer\x1b[2J", "the caches"))
    code, printed, complained = call("doctor", "--json")
    assert (code, complained) == (0, "")
    found = json.loads(printed)
    assert found["ok"] is True
    assert found["checks"][1] == {
        "name": "the hub",
        "state": "missing",
        "found": "no answer\x1b[2J",
        "instead": "the caches",
    }
    code, printed, complained = call("doctor", columns=60)
    assert (code, complained) == (0, "")
    assert "\x1b" not in printed
    assert printed.splitlines()[0].split() == ["ok", "torch", "2.0"]


def test_what_is_broken_and_needed_is_told_by_the_exit_code(checks, call):
    checks(Check("torch", "broken", "cannot be imported: no such file", "install it again: pip install torch"))
    code, printed, complained = call("doctor")
    assert (code, complained) == (1, "") and "install it again" in printed


def test_a_library_that_cannot_be_imported_is_broken(tmp_path, monkeypatch):
    (tmp_path / "damaged_library.py").write_text("raise RuntimeError('half\\ninstalled')")
    monkeypatch.syspath_prepend(tmp_path)
    assert check_library("damaged_library").state == "broken"
    assert "half installed" in check_library("damaged_library").found


@pytest.mark.parametrize("name", ["cache_folder", "installed_folder", "why_unreachable"])
def test_what_a_damaged_library_keeps_from_being_looked_at(endpoint, monkeypatch, name):
    def damaged(*_):
        raise ImportError("libcudart.so: cannot open")

    endpoint("http://127.0.0.1:9")
    home = "posembed.pretrained" if name == "installed_folder" else "posembed.tables.hub"
    monkeypatch.setattr(f"{home}.{name}", damaged)
    broken = [check for check in all_checks() if check.state == "broken"]
    assert [check.found for check in broken] == ["cannot be looked at: libcudart.so: cannot open"]


def test_checkpoints_are_listed(checkpoints):
    found = check_checkpoints()
    assert found.state == "ok"
    assert found.found == f"{checkpoints}: other, owner/broken, waves"


def test_many_checkpoints_are_counted(tmp_path, monkeypatch):
    for number in range(10):
        (tmp_path / f"model-{number}").mkdir()
        (tmp_path / f"model-{number}" / "config.json").touch()
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", str(tmp_path))
    assert check_checkpoints().found.endswith("model-5 and 4 more")


@pytest.mark.parametrize("value", [None, "", "no/such/folder", "."])
def test_a_folder_of_checkpoints_that_is_none_is_missing(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POSEMBED_CHECKPOINTS", raising=False)
    if value is not None:
        monkeypatch.setenv("POSEMBED_CHECKPOINTS", value)
    found = check_checkpoints()
    assert found.state == "missing" and "the hub" in found.instead


def test_caches_have_a_size_and_links_count_once(tmp_path, monkeypatch):
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path))
    assert check_cache().found == f"{tmp_path / 'tables'}, empty as yet"
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "one").write_bytes(bytes(2_000_000))
    (tmp_path / "tables" / "link").symlink_to(tmp_path / "tables" / "one")
    assert check_cache().found == f"{tmp_path / 'tables'}, 2 files, 2.0 MB"


def test_a_cache_that_cannot_be_written_is_missing(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path / "file"))
    found = check_cache()
    assert found.state == "missing" and "anew" in found.instead


@pytest.mark.parametrize("there", [True, False])
def test_the_encoder(tmp_path, monkeypatch, there):
    (tmp_path / "config.json").touch()
    monkeypatch.setattr("posembed.pretrained.installed_folder", lambda: tmp_path if there else None)
    assert check_encoder().state == ("ok" if there else "missing")


def test_a_hub_that_is_not_asked(endpoint):
    endpoint("http://127.0.0.1:9", offline=True)
    found = check_hub()
    assert found.state == "missing" and "HF_HUB_OFFLINE" in found.found


def test_a_hub_that_answers(endpoint, tmp_path):
    server = HubServer(tmp_path, REPO)
    endpoint(server.address)
    server.start()
    try:
        # That it knows no such model is an answer.
        assert check_hub().state == "ok"
        server.faults = [answers(503)]
        found = check_hub()
        assert (found.state, found.found) == ("missing", f"{server.address}: it answers 503")
        server.faults = [says_nothing]
        found = check_hub(patience=0.2)
        assert found.found == f"{server.address}: nothing came for 0.2 s" and "caches" in found.instead
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:9", "http://127.0.0.1:9: [Errno"),
        ("http://someone:secret@127.0.0.1:9", "http://127.0.0.1:9: [Errno"),
        ("no address", "HF_ENDPOINT is not the address of a hub"),
        ("http://[::1", "HF_ENDPOINT is not the address of a hub"),
        ("file:///etc", "HF_ENDPOINT is not the address of a hub"),
    ],
)
def test_a_hub_that_does_not_answer(endpoint, address, said):
    endpoint(address)
    found = check_hub(patience=1.0)
    assert found.state == "missing" and found.found.startswith(said) and "caches" in found.instead


def test_a_hub_that_hangs_is_not_waited_for(endpoint, monkeypatch):
    never = threading.Event()
    endpoint("http://127.0.0.1:9")
    monkeypatch.setattr("posembed.tables.hub._ask", lambda *_: never.wait(30) and None)
    found = check_hub(patience=0.01)
    never.set()
    assert (found.state, found.found) == ("missing", "http://127.0.0.1:9: no answer within 0.01 s")


def test_posembed_itself_runs_as_a_module():
    assert (Path(_checks.__file__).parents[1] / "__main__.py").exists()
