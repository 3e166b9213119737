import json

import pytest
import torch
from safetensors.torch import save_file

from posembed import sinusoidal
from posembed.cli import main

N, WIDTH = 64, 32
# A row that was never trained.
UNTRAINED = 40


@pytest.fixture(scope="session")
def waves():
    """A sinusoid with a row of zeros."""
    weight = sinusoidal(N, WIDTH).clone()
    weight[UNTRAINED] = 0
    return weight


@pytest.fixture(scope="session")
def checkpoint_folder(tmp_path_factory, waves):
    """A folder of small checkpoints in GPT-2's layout."""
    folder = tmp_path_factory.mktemp("checkpoints")
    broken = waves.clone()
    broken[3] = torch.nan
    for name, weight in (("waves", waves), ("owner/broken", broken), ("other", sinusoidal(N // 2, WIDTH))):
        (folder / name).mkdir(parents=True)
        config = {"model_type": "gpt2", "n_positions": len(weight), "n_embd": WIDTH}
        (folder / name / "config.json").write_text(json.dumps(config))
        save_file({"wpe.weight": weight}, folder / name / "model.safetensors")
    return folder


@pytest.fixture
def checkpoints(tmp_path, monkeypatch, checkpoint_folder):
    """The same folder, which POSEMBED_CHECKPOINTS names; nothing else is reachable."""
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", str(checkpoint_folder))
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return checkpoint_folder


@pytest.fixture
def call(capsys, monkeypatch):
    """A function that runs a command in this process, and returns its exit code, what it printed and complained."""

    # A slow machine has more to tell.
    monkeypatch.setattr("posembed.progress.EVERY", 1e6)

    def call(*words, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        return end.value.code or 0, *capsys.readouterr()

    return call


@pytest.fixture
def data(call):
    """A function that runs a command with --json, which must succeed, and returns what it printed."""

    def data(*words):
        code, printed, complained = call(*words, "--json")
        assert (code, complained) == (0, "")
        return json.loads(printed, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return data
