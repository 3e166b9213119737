import pytest

from posembed.data import load_corpus


@pytest.fixture(scope="session")
def corpus():
    return load_corpus()
