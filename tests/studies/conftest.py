import pytest

from posembed.data import load_corpus
from posembed.training import measure
from studies.training import inspections


@pytest.fixture(autouse=True)
def few_tokens(monkeypatch):
    """Measure on fewer texts than stored runs were measured on: most tests are about other numbers."""
    monkeypatch.setattr(measure, "TOKENS", 2**12)
    monkeypatch.setattr(measure, "TOKENS_BY_POSITION", 2**13)
    monkeypatch.setattr(inspections, "FITTED", 2**11)
    monkeypatch.setattr(inspections, "TESTED", 2**10)
    monkeypatch.setattr(inspections, "PROBE_STEPS", 150)


@pytest.fixture(scope="session")
def corpus():
    return load_corpus()
