"""Training and measuring, on models that take a second."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from posembed import RunConfig, RunResult, train
from posembed.data import load_corpus, random_windows
from posembed.errors import CorpusError, EncodingInputError, RunError
from posembed.experiments import (
    learning_rate_factor,
    loss_by_position,
    loss_of,
    make_model,
    parameters_of_scheme,
    scaled_losses,
    torch_threads,
)
from posembed.experiments.training.measure import GROUP

TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "length": 16, "batch_size": 8, "steps": 5, "warmup": 2}


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


def test_the_same_config_gives_the_same_numbers():
    config = RunConfig(scheme="learned", test_length=32, **TINY)
    assert train(config).metrics == train(config).metrics


@pytest.mark.parametrize("changes", [{"seed": 1}, {"learning_rate": 1e-2}, {"weight_decay": 0.0}, {"warmup": 5}])
def test_another_config_gives_others(changes):
    base = RunConfig(scheme="learned", **TINY)
    assert train(base).metrics["loss"] != train(RunConfig(**({"scheme": "learned"} | TINY | changes))).metrics["loss"]


def test_the_callers_random_numbers_and_threads_are_left_alone():
    torch.manual_seed(7)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    train(RunConfig(scheme="shaw", **TINY))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_threads_come_back_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), torch_threads(1):
        raise RuntimeError
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("objective", "rate"), [("causal", None), ("masked", 0.15)])
def test_it_learns(objective, rate):
    more = {"objective": objective, "masking_rate": rate, "steps": 60, "learning_rate": 1e-2, "warmup": 5}
    untrained = train(RunConfig(scheme="learned", **(TINY | more | {"steps": 1, "learning_rate": 1e-9})))
    trained = train(RunConfig(scheme="learned", **(TINY | more)))
    assert trained.metrics["loss"] < untrained.metrics["loss"] - 0.8
    assert trained.metrics["curve"][-1] < trained.metrics["curve"][0] - 0.8
    assert trained.metrics["loss"] == pytest.approx(trained.metrics["validation_loss"], abs=0.15)


def batches_of(monkeypatch, **changes):
    """The training windows that a run draws."""
    drawn = []

    def note(*arguments):
        drawn.append(random_windows(*arguments))
        return drawn[-1]

    monkeypatch.setattr("posembed.experiments.training.batches.random_windows", note)
    train(RunConfig(**(TINY | changes)))
    return torch.stack(drawn)


def test_schemes_with_one_seed_see_the_same_batches(monkeypatch):
    batches = batches_of(monkeypatch, scheme="nopos")
    assert len(batches) == TINY["steps"]
    assert torch.equal(batches, batches_of(monkeypatch, scheme="learned"))
    assert not torch.equal(batches, batches_of(monkeypatch, scheme="nopos", seed=1))


def test_a_scheme_without_parameters_leaves_the_other_weights_as_they_are(corpus):
    models = [make_model(RunConfig(scheme=name, **TINY), corpus) for name in ("nopos", "alibi")]
    assert all(torch.equal(*pair) for pair in zip(*(model.parameters() for model in models), strict=True))


def test_the_learning_rate_rises_and_falls():
    config = RunConfig(warmup=10, steps=100)
    factors = [learning_rate_factor(step, config) for step in range(100)]
    assert factors[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert max(factors) == 1.0 and factors[-1] == pytest.approx(0.1)
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert factors[54] == pytest.approx(0.1 + 0.45, abs=0.02)  # half-way along the cosine
    assert learning_rate_factor(0, RunConfig(warmup=0, steps=1)) == pytest.approx(0.1)


def test_a_run_that_diverges_says_so(monkeypatch):
    nan = lambda objective, *_: objective.model.transformer.words.weight.sum() * math.nan
    monkeypatch.setattr("posembed.experiments.training.batches.Objective.forward", nan)
    with pytest.raises(RunError, match="the loss of nopos is nan at step 1; lower the learning rate"):
        train(RunConfig(**TINY))


def test_a_scheme_that_cannot_be_causal_or_masked():
    with pytest.raises(EncodingInputError, match="xpos is not defined for a bidirectional model"):
        train(RunConfig(scheme="xpos", objective="masked", masking_rate=0.15, **TINY))


def test_weight_decay_reaches_linear_layers_only():
    """A step with a learning rate but without a gradient to a row leaves that row as it was."""
    config = RunConfig(scheme="learned", test_length=64, weight_decay=0.5, **(TINY | {"learning_rate": 1e-2}))
    before = make_model(config, load_corpus()).transformer.position_scheme.weight
    after = train(config).model.transformer.position_scheme.weight
    # The last of 16 characters is guessed, not read.
    assert torch.equal(before[15:], after[15:])
    assert not torch.equal(before[:15], after[:15])


def test_the_loss_is_the_mean_over_what_is_guessed(corpus):
    config = RunConfig(scheme="nopos", **TINY)
    model = make_model(config, corpus).eval()
    ids = corpus.test[:1600]
    windows = ids.view(100, 16)
    with torch.no_grad():
        logits = model(windows[:, :-1]).double()
    expected = -logits.log_softmax(-1).gather(-1, windows[:, 1:, None]).mean()
    assert loss_of(model, ids, config) == pytest.approx(float(expected), abs=1e-6)


def test_losses_by_position_average_to_the_loss(corpus):
    config = RunConfig(scheme="nopos", test_length=64, **TINY)
    model = make_model(config, corpus).eval()
    ids = corpus.test[: 64 * 40]
    groups = loss_by_position(model, ids, config)
    assert len(groups) == 64 // GROUP
    weights = torch.tensor([GROUP - 1.0, *[GROUP] * 3])  # nothing is guessed at position 0
    long = RunConfig(scheme="nopos", **(TINY | {"length": 64}))
    assert float((torch.tensor(groups) * weights).sum() / weights.sum()) == pytest.approx(
        loss_of(model, ids, long), abs=2e-5
    )


def test_a_position_beyond_the_trained_ones_shows_in_its_group(corpus):
    """Rows of a table that are spoiled from position 32 on spoil the loss from there on, and not before."""
    config = RunConfig(scheme="learned", test_length=64, **TINY)
    model = make_model(config, corpus).eval()
    ids = corpus.test[: 64 * 40]
    before = torch.tensor(loss_by_position(model, ids, config))
    model.transformer.position_scheme.weight.data[32:] = 30.0
    after = torch.tensor(loss_by_position(model, ids, config))
    assert torch.equal(before[:2], after[:2])
    # The character at position 32 is guessed from those before; all later ones read spoiled rows.
    assert (after[2:] - before[2:]).abs().min() > 1e-3


def test_scalings_change_the_model_while_they_are_measured_only(corpus):
    config = RunConfig(scheme="rope", test_length=64, test_scalings=("linear", "ntk", "yarn", "llama3"), **TINY)
    model = make_model(config, corpus).eval()
    model.requires_grad_(False)
    for parameter in model.parameters():
        parameter.mul_(4)  # so that attention is not flat
    ids = corpus.test[: 64 * 40]
    plain = loss_by_position(model, ids, config)
    scaled = scaled_losses(model, ids, config)
    assert list(scaled) == ["linear", "ntk", "yarn", "llama3"]
    assert len({tuple(plain), *map(tuple, scaled.values())}) == 5
    assert loss_by_position(model, ids, config) == plain


def test_what_a_scheme_has_learned(corpus):
    table = make_model(RunConfig(scheme="learned", test_length=64, **TINY), corpus).transformer.position_scheme
    assert parameters_of_scheme(table)["row_norms"] == pytest.approx(table.weight.norm(dim=1).tolist(), rel=1e-5)
    t5 = make_model(RunConfig(scheme="t5", **TINY), corpus).transformer.position_scheme
    assert parameters_of_scheme(t5)["weight"] == pytest.approx(t5.weight.flatten().tolist(), rel=1e-5)
    assert parameters_of_scheme(make_model(RunConfig(**TINY), corpus).transformer.position_scheme) == {}


def test_progress_is_told_after_every_step():
    told = []
    train(RunConfig(**TINY), progress=lambda step, loss: told.append((step, loss)))
    assert [step for step, _ in told] == [1, 2, 3, 4, 5]
    assert all(2 < loss < 8 for _, loss in told)


def test_it_says_what_it_cost():
    result = train(RunConfig(**TINY))
    assert result.metrics["tokens"] == TINY["steps"] * TINY["batch_size"] * TINY["length"]
    assert result.minutes == result.wall_seconds / 60
    speed = result.speed
    assert 0 < speed["training_seconds"] < result.wall_seconds
    # The seconds are rounded to hundredths, which is much of so short a training.
    most, least = (result.metrics["tokens"] / (speed["training_seconds"] + by) for by in (-5.1e-3, 5.1e-3))
    assert least <= speed["tokens_per_second"] <= most
    assert "flops_utilisation" not in speed  # no GPU
    assert RunResult.from_dict(result.to_dict()).speed == speed


def test_perplexity_is_told_by_token_and_by_word(corpus):
    metrics = train(RunConfig(**TINY)).metrics
    assert metrics["perplexity_per_token"] == pytest.approx(math.exp(metrics["loss"]), rel=1e-4)
    n_words = len(corpus.vocabulary.decode(corpus.test).split())
    expected = math.exp(metrics["loss"] * len(corpus.test) / n_words)
    assert metrics["perplexity_per_word"] == pytest.approx(expected, rel=1e-4)
    masked = train(RunConfig(objective="masked", masking_rate=0.5, **TINY)).metrics
    assert "perplexity_per_word" not in masked  # hidden characters are no text


MASKED = {"objective": "masked", "masking_rate": 0.3}


@pytest.mark.parametrize("more", [{}, MASKED, {"guessed_share": 0.3}, {"short_length": 4, "short_share": 0.5}])
def test_a_step_in_parts_is_the_same_step(more):
    """Parts of a masked step guess different numbers of characters, and count for as much."""
    whole, parts = (losses(scheme="learned", accumulate=accumulate, **more) for accumulate in (1, 4))
    assert parts != whole
    assert parts == pytest.approx(whole, abs=2e-6)  # the order of a sum


def losses(**changes):
    told = []
    train(RunConfig(**(TINY | changes)), progress=lambda _, loss: told.append(loss))
    return told


def test_bfloat16_multiplies_and_float32_remembers():
    plain, half = losses(), losses(precision="bfloat16")
    assert half != plain
    assert half == pytest.approx(plain, abs=0.02)  # eight bits of a number
    model = train(RunConfig(precision="bfloat16", **TINY)).model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.slow
def test_a_compiled_step_is_the_same_step(fresh_environment):
    script = Path(__file__).with_name("compiled_training.py")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, env=fresh_environment)
    assert ran.returncode == 0, ran.stderr
    for plain, compiled in json.loads(ran.stdout).values():
        assert compiled == pytest.approx(plain, abs=1e-5)


def test_dropout_is_drawn_from_the_seed():
    first, again, other = losses(dropout=0.3), losses(dropout=0.3), losses(dropout=0.3, seed=1)
    assert first == again != other
    assert first != losses()


def test_a_wider_feed_forward_network_has_more_weights():
    plain, wide = (train(RunConfig(d_ff=d_ff, **TINY)).metrics["parameters"] for d_ff in (None, 128))
    assert wide - plain == (128 - 64) * (2 * 16 + 1)


def test_byte_pairs(tmp_path, monkeypatch):
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text.txt").write_text("the cat sat on the mat and the dog sat on the cat\n" * 200)
    config = RunConfig(data=str(tmp_path / "text.txt"), tokens="bpe", vocab_size=300, **TINY)
    result = train(config)
    assert result.model.transformer.config.vocab_size < 300 and result.metrics["loss"] < 6
    assert result.metrics["perplexity_per_word"] > result.metrics["perplexity_per_token"]


@pytest.mark.bad_input
@pytest.mark.parametrize("device", ["cuda", "cuda:7", "gpu", "mps"])
def test_a_device_that_is_not_there(device, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    with pytest.raises(RunError) as caught:
        train(RunConfig(device=device, **TINY))
    assert str(caught.value) == f"device is {device!r}, which PyTorch has not here; choose among cpu"


@pytest.mark.bad_input
def test_a_text_that_is_too_short_is_refused_before_the_training(tmp_path):
    (tmp_path / "one-line.txt").write_text("a corpus of one line that has some words in it\n")
    told = []
    with pytest.raises(CorpusError, match="one-line.txt"):
        train(RunConfig(data=str(tmp_path / "one-line.txt"), **TINY), progress=lambda *_: told.append(1))
    with pytest.raises(CorpusError, match="make the pieces shorter"):
        train(RunConfig(test_length=10**7, **TINY), progress=lambda *_: told.append(1))
    assert not told
