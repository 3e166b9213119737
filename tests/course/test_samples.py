"""What the part for instructors shows of the course is what the course makes."""

import pytest
from tool import load


@pytest.mark.slow
def test_the_stored_samples_are_made_of_the_course():
    tool = load("samples")
    made = tool.samples()
    assert {path.name: path.read_text(encoding="utf-8") for path in tool.OUT.iterdir()} == made
    assert "permutation equivariant" in made["assignment.html"]
    assert "which this question forbids" in made["feedback.html"] and "http" not in "".join(made.values())
