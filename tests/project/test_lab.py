"""The recipe for larger models: a tiny one is trained for a few steps, and goes on where it was stopped."""

import json
import subprocess
import sys

import pytest
from tool import ROOT

TINY = ["steps=4", "length=16", "n_layers=1", "d_model=16", "n_heads=2", "batch_size=2", "vocab_size=300", "warmup=1"]


@pytest.mark.slow
def test_a_tiny_model_is_trained_and_its_result_stored_once(tmp_path, fresh_environment):
    for name in ("accelerate", "datasets", "tokenizers"):
        pytest.importorskip(name)
    words = [sys.executable, ROOT / "lab" / "train_gpt2.py", "--scheme", "alibi", "--out", tmp_path / "out"]
    words += ["--set", f"text={ROOT / 'CONTRIBUTING.md'}", *TINY]
    environment = fresh_environment | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    for _ in range(2):
        ran = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr[-1000:]
    (path,) = (tmp_path / "out").glob("*.json")
    result = json.loads(path.read_text())
    assert result["config"]["scheme"] == "alibi" and result["metrics"]["tokens"] == 4 * 2 * 16
    # At the start every one of three hundred tokens is as likely: log 300 nats.
    assert 5 < result["metrics"]["validation_loss"] < 6 and len(result["metrics"]["curve"]) == 4
    assert {"format", "config", "metrics", "versions", "machine", "wall_seconds"} == set(result)
