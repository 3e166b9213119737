import pytest

from posembed.data import load_corpus
from posembed.training import measure


@pytest.fixture(autouse=True)
def few_tokens(monkeypatch):
    """Measure on fewer texts than stored runs were measured on: most tests are about other numbers."""
    monkeypatch.setattr(measure, "TOKENS", 2**12)
    monkeypatch.setattr(measure, "TOKENS_BY_POSITION", 2**13)


@pytest.fixture(scope="session")
def corpus():
    return load_corpus()


@pytest.fixture
def full_disk(monkeypatch):
    """A call from which on no file can be written."""

    def full(_):
        raise OSError(28, "No space left on device")

    return lambda: monkeypatch.setattr("os.fsync", full)
