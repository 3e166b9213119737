import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """The matrices here are small, and threads that wait for a busy core take a hundred times as long."""
    with threadpool_limits(limits=1):
        yield
