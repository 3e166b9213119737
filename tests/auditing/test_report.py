"""What a report says of itself."""

import json

from posembed.auditing import AuditReport, CheckResult

REPORT = AuditReport(
    "Mine",
    (
        CheckResult("order is seen", "holds", error=0.5),
        CheckResult("padding behind", "broken", part="encoder", kind="padding is seen", error=0.25, script="print(1)"),
        CheckResult("in pieces with a cache", "does not apply", "it takes no cache"),
    ),
)


def test_it_passes_where_something_holds_and_nothing_is_broken():
    assert not REPORT.passed
    assert AuditReport("Mine", REPORT.checks[::2]).passed
    assert not AuditReport("Mine", REPORT.checks[2:]).passed  # nothing holds
    assert [each.check for each in REPORT.broken] == ["padding behind"]
    assert (REPORT.count("holds"), REPORT.count("not decided")) == (1, 0)


def test_it_is_printed_as_a_table_with_the_scripts_below():
    lines = str(REPORT).splitlines()
    assert lines[0] == REPORT.summary == "Mine: 1 broken, 1 hold"
    assert lines[2].split() == ["encoder:", "padding", "behind", "broken", "2e-01", "padding", "is", "seen"]
    assert lines[3].endswith("it takes no cache")
    assert lines[-2:] == ["# padding behind", "print(1)"]
    assert repr(REPORT) == str(REPORT)


def test_it_is_data():
    told = json.loads(json.dumps(REPORT.to_dict()))
    assert told["checks"][1]["kind"] == "padding is seen"
    table = REPORT.to_frame().set_index("check")
    assert table["verdict"].value_counts().to_dict() == {"holds": 1, "broken": 1, "does not apply": 1}
    assert table.loc["padding behind", "error"] == 0.25 and table.loc["padding behind", "script"] == "print(1)"
