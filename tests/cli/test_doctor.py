"""The doctor says what is there, and what runs instead of what is not."""

import json

import pytest

from posembed.cli import doctor
from posembed.cli.doctor import Check, all_checks


@pytest.fixture
def endpoint(monkeypatch):
    """A function that sets the hub's address, and whether it may be asked."""

    def endpoint(address, offline=False):
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)

    return endpoint


def test_everything_is_looked_at(monkeypatch, endpoint):
    endpoint("http://127.0.0.1:9")
    monkeypatch.delenv("POSEMBED_CHECKPOINTS", raising=False)
    found = {check.name: check for check in all_checks()}
    assert {"Python", "torch", "GPU", "POSEMBED_CHECKPOINTS", "posembed's cache", "the hub"} <= set(found)
    assert not [check for check in found.values() if check.state == "broken"]
    assert all(check.instead for check in found.values() if check.state == "missing")
    assert found["POSEMBED_CHECKPOINTS"][1:3] == ("missing", "not set, or no folder in it holds a config.json")
    assert found["the hub"].state == "missing" and "127.0.0.1:9" in found["the hub"].found


def test_in_json_and_for_people(monkeypatch, call):
    checks = [Check("torch", "ok", "2.0"), Check("the hub", "missing", "no answer\x1b[2J", "the caches")]
    monkeypatch.setattr("posembed.cli.doctor.all_checks", lambda: iter(checks))
    code, printed, complained = call("doctor", "--json")
    assert (code, complained) == (0, "")
    assert json.loads(printed) == {"ok": True, "checks": [check._asdict() for check in checks]}
    code, printed, complained = call("doctor", columns=60)
    assert (code, complained) == (0, "")
    lines = [line.rstrip() for line in printed.splitlines()]
    assert lines == ["torch    ok: 2.0", "the hub  missing: no answer\\x1b[2J; the caches"]


def test_a_library_that_cannot_be_imported_is_broken_and_told_by_the_exit_code(call, tmp_path, monkeypatch, endpoint):
    (tmp_path / "damaged_library.py").write_text("raise RuntimeError('half\\ninstalled')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("posembed.cli.doctor.LIBRARIES", ("damaged_library",))
    endpoint("http://127.0.0.1:9", offline=True)
    code, printed, complained = call("doctor", columns=120)
    assert (code, complained) == (1, "")
    assert "damaged_library       broken: RuntimeError: half installed; mend or install" in printed


def test_checkpoints_are_listed(checkpoints, monkeypatch):
    assert doctor.checkpoints() == (True, f"{checkpoints}: other, owner/broken, waves")
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", str(checkpoints / "waves"))
    assert doctor.checkpoints() == (False, "not set, or no folder in it holds a config.json")


def test_a_cache_that_cannot_be_written_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path))
    assert doctor.cache() == (True, str(tmp_path / "tables"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path / "file"))
    assert doctor.cache() == (False, f"{tmp_path / 'file' / 'tables'} cannot be written")
