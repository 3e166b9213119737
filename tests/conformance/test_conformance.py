"""Every scheme agrees with independent implementations, and the page of the book says what they found."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from conformance import page
from conformance.agreements import AGREEMENTS, WITHOUT_PEER
from conformance.faults import FAULTS
from conformance.fingerprint import LIBRARIES, ROOT, fingerprint

import posembed

PINNED = dict(
    line.split(" ;")[0].split("==")
    for line in (ROOT / "requirements" / "lock.txt").read_text().splitlines()
    if "==" in line
)
AS_PINNED = all(version(name).split("+")[0] == PINNED[name] for name in LIBRARIES)


@pytest.mark.parametrize("agreement", AGREEMENTS, ids=lambda each: f"{each.scheme}, {each.peer}, {each.what}")
def test_a_scheme_agrees_with_its_peer(agreement):
    assert agreement.difference() <= agreement.allowed


@pytest.mark.parametrize("agreement", AGREEMENTS, ids=lambda each: f"{each.scheme}, {each.peer}, {each.what}")
def test_the_allowance_is_not_much_wider_than_what_is_found(agreement):
    """Else it would let a mistake through. Differences of exactly zero need none."""
    found = agreement.difference()
    assert found == 0 or agreement.allowed <= 100 * found


def test_every_scheme_has_a_peer_or_is_said_to_have_none():
    assert {each.scheme for each in AGREEMENTS} | set(WITHOUT_PEER) == set(posembed.schemes())
    assert not {each.scheme for each in AGREEMENTS} & set(WITHOUT_PEER)


@pytest.mark.skipif(not AS_PINNED, reason="other versions of the peers are installed than the page was made with")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: f"{each.peer}, {each.what}")
def test_a_fault_is_still_there_and_not_ours(fault):
    assert fault.theirs() != fault.ours()


@pytest.mark.skipif(not AS_PINNED, reason="other versions of the peers are installed than the page was made with")
def test_the_page_is_what_the_comparisons_give():
    fresh = page.render([each.difference() for each in AGREEMENTS])
    stored = page.PAGE.read_text(encoding="utf-8")
    assert page.without_measurements(stored) == page.without_measurements(fresh), "run `make conformance`"


def test_a_stale_page_fails_the_build(tmp_path):
    command = [sys.executable, "tools/conformance_page.py", "check"]
    assert subprocess.run(command, cwd=ROOT).returncode == 0
    stale = tmp_path / "conformance.md"
    stale.write_text(page.PAGE.read_text(encoding="utf-8").replace(fingerprint(), "0" * 16), encoding="utf-8")
    done = subprocess.run([*command, "--page", stale], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0 and "make conformance" in done.stderr
