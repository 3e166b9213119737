"""The pages of evidence say what the stored studies hold, all of it."""

import pytest
from tool import load

from posembed import load_study
from posembed.stored import study_names

TOOL = load("evidence")


def test_the_pages_are_those_that_the_studies_make():
    pages = TOOL.made()
    assert {*TOOL.PAGES.glob("*.md")} == {*pages}
    stale = [path.name for path, text in pages.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run make results"


@pytest.mark.parametrize("name", study_names())
def test_a_page_has_every_contrast_and_every_arm(name):
    lines, study = (TOOL.PAGES / f"{name}.md").read_text(encoding="utf-8").splitlines(), load_study(name)
    for row in (*study.contrasts.index, *study.by_arm):
        assert any(line.startswith(f"| {row} |") for line in lines), row
    assert sum(line.startswith("| ") for line in lines) == len(study.contrasts) + len(study.by_arm) + 2 * (
        len(study.planned) + 1
    )
