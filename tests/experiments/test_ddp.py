"""One run on several processes: the same batches, and the same loss as in one."""

import json
import subprocess
import sys

import pytest
import torch

from posembed import RunConfig, train
from posembed.data import load_corpus
from posembed.errors import RunError
from posembed.experiments import read_results
from posembed.experiments.files.model_files import read_model
from posembed.experiments.training.batches import draw_batch
from posembed.experiments.training.ddp import joined, main, read_config
from posembed.experiments.training.team import Team

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 8, "steps": 12, "warmup": 2}
MASKED = {"scheme": "learned", "objective": "masked", "masking_rate": 0.3, "accumulate": 2}


@pytest.mark.slow
def test_two_processes_give_the_loss_of_one(tmp_path, fresh_environment):
    """Parts guess different numbers of hidden characters; the sums are in another order, in float32."""
    (tmp_path / "config.json").write_text(json.dumps(TINY | MASKED))
    words = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "posembed.experiments.training.ddp",
    ]
    words += [str(tmp_path / "config.json"), "--out", str(tmp_path / "results"), "--save-model"]
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=fresh_environment)
    assert ran.returncode == 0, ran.stderr
    (result,) = read_results(tmp_path / "results")
    config = RunConfig(**TINY, **MASKED)
    assert result.config == config and ran.stdout == f"{config.key}: done\n"
    assert result.machine.endswith("CPU, 1 thread, 2 processes")
    alone = train(config)
    assert result.metrics["loss"] == pytest.approx(alone.metrics["loss"], abs=1e-5)
    assert result.metrics["curve"] == pytest.approx(alone.metrics["curve"], abs=1.01e-4)  # of four digits
    model = read_model(config, tmp_path / "results")
    pairs = zip(model.parameters(), alone.model.parameters(), strict=True)
    assert all(torch.allclose(*pair, atol=1e-4) for pair in pairs)
    assert sorted(each.suffix for each in (tmp_path / "results").iterdir()) == [".json", ".safetensors"]


@pytest.mark.parametrize("more", [{}, MASKED, {"guessed_share": 0.4}, {"short_length": 4, "short_share": 0.5}])
def test_the_parts_of_all_processes_are_the_step(more):
    config = RunConfig(**TINY, **more)
    text, generator = load_corpus().train, torch.Generator().manual_seed(0)
    batch = draw_batch(text, 0, config, generator)
    shares = [Team(rank, 4 // config.accumulate).share(batch, config) for rank in range(4 // config.accumulate)]
    parts = [part for share in shares for part, _ in share]
    assert torch.equal(torch.cat([part.seen for part in parts]), batch.seen)
    assert torch.equal(torch.cat([part.wanted for part in parts]), batch.wanted)
    weights = [weight for share in shares for _, weight in share]
    assert sum(weights) == pytest.approx(1.0)
    guesses = [part.wanted.numel() if part.guessed is None else int(part.guessed.sum()) for part in parts]
    assert weights == pytest.approx([each / sum(guesses) for each in guesses])


@pytest.mark.bad_input
@pytest.mark.parametrize(("size", "accumulate"), [(3, 1), (4, 4), (16, 1)])
def test_a_step_that_cannot_be_shared_out(size, accumulate):
    config = RunConfig(**TINY, accumulate=accumulate)
    with pytest.raises(RunError, match=f"the batch_size is 8; {size} processes, each with {accumulate} parts"):
        train(config, team=Team(0, size))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config.json is not JSON; write settings such as"),
        ("[1]", "config.json holds no settings"),
        ('{"stepps": 3}', "this version of posembed has no setting 'stepps'"),
        ('{"steps": 0}', "steps is 0; it must be a whole number of at least 1"),
        ('{"betas": 3}', "betas are 3; they must be two numbers"),
        ('{"test_scalings": 3}', "test_scalings are 3; they must be a tuple of names"),
    ],
)
def test_a_file_that_is_no_config(tmp_path, text, message, capsys):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(RunError) as caught:
        read_config(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert main([str(path), "--out", str(tmp_path / "results")]) == 1
    assert capsys.readouterr().err == f"posembed: {caught.value}\n"


@pytest.mark.bad_input
def test_a_gpu_with_a_number_among_several_processes(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    wanted = "device is 'cuda:1'; with torchrun it must be 'cpu' or 'cuda'"
    with pytest.raises(RunError, match=wanted), joined(RunConfig(device="cuda:1")):
        pass


def test_a_run_that_has_a_result_is_left_as_it_is(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY))
    words = [str(path), "--out", str(tmp_path / "results")]
    assert main(words) == 0
    (result,) = (tmp_path / "results").iterdir()
    before = result.stat().st_mtime_ns
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [f"{result.stem}: done", f"{result.stem}: has a result already"]
    assert result.stat().st_mtime_ns == before
