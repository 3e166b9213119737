import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and the folder of corpora in it."""
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "corpora"
