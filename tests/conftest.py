import importlib.util
import os
import signal
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import torch
from threadpoolctl import threadpool_limits

# The tensors here are small, and the workers of pytest-xdist would fight over the cores.
torch.set_num_threads(1)

# Where the tests run in the background of a shell, or under nohup, they and what they start would not hear these.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The same examples on every machine: a test that fails is one that the next run can repeat. No timed limit, because a
# busy machine is not an error; no database, because the examples do not depend on it.
hypothesis.settings.register_profile("posembed", derandomize=True, deadline=None, database=None, max_examples=60)
hypothesis.settings.load_profile("posembed")


@pytest.fixture(scope="session", autouse=True)
def _one_thread_for_numpy():
    """The same for NumPy's and SciPy's matrices."""
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(autouse=True)
def _checks_of_a_user(request):
    """Tests marked bad_input run as a user would: without the hook of the root conftest.py."""
    if request.node.get_closest_marker("bad_input") is None:
        yield
        return
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def fresh_environment():
    """For an interpreter that a test starts: it imports the posembed that the tests import, installed or not."""
    package = Path(importlib.util.find_spec("posembed").origin).parent
    paths = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture(scope="session")
def encoder():
    """The real encoder. Shared, so a test must leave it as it was."""
    import posembed
    from posembed.errors import CheckpointNotFoundError

    try:
        return posembed.load_encoder()
    except CheckpointNotFoundError as error:
        pytest.skip(f"needs the real encoder: {error}")


@pytest.fixture(scope="session")
def gpt2_table():
    """GPT-2's real position table, which is no part of the project."""
    if not Path(os.environ.get("POSEMBED_CHECKPOINTS", ""), "gpt2", "config.json").is_file():
        pytest.skip("needs GPT-2's position table: a folder gpt2 in the one that POSEMBED_CHECKPOINTS names")
    from posembed import load_table

    return load_table("gpt2")
