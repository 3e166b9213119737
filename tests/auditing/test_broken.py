"""The audit finds the faults that were reported, names their kind, and has a script that shows each."""

from dataclasses import dataclass

import pytest
import torch
from port import ROWS, VOCABULARY, BatchMates, Port

from posembed import audit


@dataclass
class Case:
    """A model, the check that must find it broken, words of the kind, and what else it breaks."""

    model: object
    check: str
    kind: str
    settings: dict
    others: tuple[str, ...] = ()


def rope(fault, check, kind, *others, **settings):
    window = settings.get("window")
    known = {"vocab_size": VOCABULARY, "causal": True, "relative": True, "n_layers": 2} | settings
    return Case(Port(fault, window=window), check, kind, known, others)


def table(fault, check, kind, *others, causal=True, **settings):
    known = {"vocab_size": VOCABULARY, "causal": causal, "n_positions": ROWS} | settings
    return Case(Port(fault, scheme="table", causal=causal), check, kind, known, others)


class CountsPadding(torch.nn.Module):
    """A port that takes no positions, and does not count the real tokens itself."""

    def __init__(self):
        super().__init__()
        self.port = Port("counts padding", scheme="table", causal=False)

    def forward(self, ids, mask=None):
        return self.port(ids, None, mask)[0]


BATCH = Case(BatchMates(), "batch mates", "see each other", {"vocab_size": VOCABULARY, "causal": True})
LEFT = Case(CountsPadding(), "padding in front", "count padding", {"vocab_size": VOCABULARY})
CASES = {
    "left padding": LEFT,
    "cache off by one": rope("cache off by one", "in pieces with a cache", "one too high"),
    "cache restarts": rope("restarts", "in pieces with a cache", "begin anew"),
    "cache counts padding": rope("counts padding behind a cache", "in pieces with a cache", "count padding"),
    "mask dropped": rope("mask dropped with a cache", "in pieces with a cache", "mask dropped"),
    "causality lost": rope("causality lost with a cache", "in pieces with a cache", "later tokens"),
    "top left": rope("top left", "in pieces with a cache", ""),
    "bfloat16": rope("bfloat16", "half precision far out", "bfloat16", "shifted positions"),
    "two layouts": rope("two layouts", "shifted positions", "layouts"),
    "heads": rope("heads and sequence exchanged", "order is seen", "heads and sequence"),
    "packing": rope("packing leaks", "packed, none sees another", "see each other", "packed, each as alone"),
    # In a window the first token does not reach the last, as beside a convolution.
    "packing, in a window": rope(
        "packing leaks", "packed, none sees another", "see each other", "packed, each as alone", window=4
    ),
    "window": rope("window off by one", "edge of the window", "off by one", window=4),
    "contiguous": table(
        "taken for contiguous", "packed, each as alone", "begin anew", "padding in front, positions given"
    ),
    "future": rope("sees the next", "the future is unseen", "later tokens", "in pieces with a cache"),
    "padding": table(
        "padding is seen", "padding behind", "padding is seen", "padding in front, positions given", causal=False
    ),
    "wraps": table("wraps", "past the last position", "wraps"),
    "cut": table("cut", "past the last position", "cut"),
    "skips": table("skips a row", "offset of the table", "skipped"),
    "batch": BATCH,
    "too few rows": table("", "past the last position", "fewer positions than were said", n_positions=2 * ROWS),
}


@pytest.mark.parametrize("name", CASES)
def test_the_fault_is_found_and_named(name):
    case = CASES[name]
    report = audit(case.model, **case.settings)
    assert not report.passed
    found = {each.check: each for each in report.broken}
    assert case.check in found, str(report)
    assert case.kind in found[case.check].kind, str(report)
    # One fault is not told as many.
    assert {*found} == {case.check, *case.others}, str(report)


@pytest.mark.parametrize(
    "port", [Port(), Port(scheme="table"), Port(causal=False), Port(scheme="table", causal=False), Port(window=4)]
)
def test_the_right_ports_have_nothing_broken(port):
    rows = ROWS if port.scheme == "table" else None
    known = {"relative": True} if port.scheme == "rope" else {}
    report = audit(
        port, vocab_size=VOCABULARY, causal=port.causal, n_positions=rows, window=port.window, n_layers=2, **known
    )
    assert report.passed, str(report)
    assert report.count("holds") >= 9


@pytest.mark.parametrize(("vocab_size", "seed"), [(3, 0), (VOCABULARY, 4), (VOCABULARY, 30)])
def test_words_that_coincide_break_nothing(vocab_size, seed):
    """With these seeds the last words of two texts are the same, or two words that are exchanged."""
    port = Port(causal=False)
    assert audit(lambda ids: port(ids)[0], vocab_size=vocab_size, n_positions=ROWS, seed=seed).passed
