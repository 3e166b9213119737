"""Every scheme agrees with independent implementations, and the page of the book says what they found."""

from importlib.metadata import version
from pathlib import Path

import pytest
from conformance import page
from conformance.agreements import AGREEMENTS, WITHOUT_PEER
from conformance.faults import FAULTS

import posembed
from posembed.errors import PositionOutOfRangeError

ROOT = Path(__file__).resolve().parents[2]
PINNED = dict(
    line.split(" ;")[0].split("==")
    for line in (ROOT / "requirements" / "lock.txt").read_text().splitlines()
    if "==" in line
)
AS_PINNED = all(version(name).split("+")[0] == PINNED[name] for name in page.LIBRARIES)


@pytest.mark.parametrize("agreement", AGREEMENTS, ids=lambda each: f"{each.scheme}, {each.peer}, {each.what}")
def test_a_scheme_agrees_with_its_peer(agreement):
    assert agreement.difference() <= agreement.allowed


def test_every_scheme_has_a_peer_or_is_said_to_have_none():
    assert {each.scheme for each in AGREEMENTS} | set(WITHOUT_PEER) == set(posembed.schemes())
    assert not {each.scheme for each in AGREEMENTS} & set(WITHOUT_PEER)


@pytest.mark.skipif(not AS_PINNED, reason="other versions of the peers are installed than the page was made with")
def test_the_page_says_what_the_comparisons_find():
    stored = page.PAGE.read_text(encoding="utf-8")
    assert page.differing(stored) == [], "run `make conformance`"
    assert page.differing(stored.replace("off by 0.86", "no difference")) != []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: f"{each.peer}, {each.what}")
def test_a_fault_is_not_ours(fault):
    """What theirs is, the page says, when it is made."""
    assert fault.ours() in (
        "a table",
        "no difference",
        "finite",
        f"{PositionOutOfRangeError.__name__}, which says what to do",
    ) or (fault.ours().startswith(("0 of ", "64 values")))
