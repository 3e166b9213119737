"""Training and measuring, on models that take a second: what a step reads, how weights change, what is measured."""

import json
import math

import pytest
import torch
from refusals import refused
from torch.nn.modules.module import register_module_forward_pre_hook

from posembed import RunConfig, RunResult, train
from posembed.encodings import LinearScaling, NoPos, RoPE
from posembed.errors import CorpusError, RunError
from posembed.models import LanguageModel
from posembed.training import Causal, Masked, Training, learning_rate_factor, loop, make_model, torch_threads
from posembed.training.loop import make_optimizer
from posembed.training.measure import GROUP, loss_by_position, loss_of, parameters_of_scheme, scaled_losses

TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "length": 16, "batch_size": 8, "steps": 5, "warmup": 2}
MASKED = {"objective": "masked", "masking_rate": 0.3}


def losses(**changes):
    told = []
    train(RunConfig(**(TINY | changes)), progress=lambda step, loss: told.append((step, loss)))
    assert [step for step, _ in told] == list(range(1, len(told) + 1))
    return [loss for _, loss in told]


def test_the_same_config_gives_the_same_numbers_and_another_one_others():
    first = losses(scheme="learned", dropout=0.1)
    assert first == losses(scheme="learned", dropout=0.1)
    for changes in ({"seed": 1}, {"learning_rate": 3e-3}, {"weight_decay": 0.5}, {"warmup": 5}, {"dropout": 0.0}):
        assert first != losses(**{"scheme": "learned", "dropout": 0.1} | changes)


def test_the_callers_random_numbers_and_threads_are_left_alone():
    torch.manual_seed(7)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    train(RunConfig(scheme="shaw", **TINY))
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(RuntimeError), torch_threads(threads + 1):
        assert torch.get_num_threads() == threads + 1
        raise RuntimeError
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("more", [{}, {"objective": "masked", "masking_rate": 0.15}], ids=["causal", "masked"])
def test_it_learns(more):
    result = train(RunConfig(scheme="learned", **TINY | more | {"steps": 60, "learning_rate": 1e-2, "warmup": 5}))
    # At the start every one of some eighty characters is as likely.
    assert result.metrics["loss"] < math.log(80) - 0.8
    assert result.metrics["curve"][-1] < result.metrics["curve"][0] - 0.8
    assert result.metrics["loss"] == pytest.approx(result.metrics["validation_loss"], abs=0.25)


# What a step reads.


def shown_in_training(**changes):
    """What a causal model is shown, step by step; the last character of a piece is only guessed."""
    calls = []
    hook = register_module_forward_pre_hook(lambda *call: calls.append((call, torch.is_grad_enabled())))
    train(RunConfig(**TINY | changes))
    hook.remove()
    return [given[0] for (module, given), training in calls if isinstance(module, LanguageModel) and training]


def test_schemes_with_one_seed_see_the_same_pieces():
    pieces = torch.stack(shown_in_training(scheme="nopos"))
    assert pieces.shape == (5, 8, 15)
    assert torch.equal(pieces, torch.stack(shown_in_training(scheme="learned")))
    assert not torch.equal(pieces, torch.stack(shown_in_training(seed=1)))


@pytest.mark.parametrize(("more", "n_trained"), [({}, 3), (MASKED, 4)], ids=["causal", "masked"])
def test_rows_that_no_piece_reaches_stay_as_they_were(corpus, more, n_trained):
    """Of 4 characters a causal model guesses the last and does not read it. Weight decay is of linear layers alone."""
    config = RunConfig(scheme="learned", test_length=16, weight_decay=0.5, **TINY | {"length": 4}, **more)
    before = make_model(config, corpus).transformer.position_scheme.weight
    after = train(config).model.transformer.position_scheme.weight
    assert torch.equal(before[n_trained:], after[n_trained:])
    assert not (before[:n_trained] == after[:n_trained]).all(dim=1).any()


def test_a_causal_model_guesses_every_token_but_the_first(corpus):
    model, ids = make_model(RunConfig(**TINY), corpus).eval(), corpus.train[: 16 * 8].view(8, 16)
    each = -model(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    losses = Causal().losses(model, ids, torch.Generator())
    assert losses[:, 0].isnan().all() and torch.allclose(losses[:, 1:], each, atol=1e-5)
    assert Causal().loss(model, ids, torch.Generator()).item() == pytest.approx(each.mean().item(), abs=1e-5)


def test_a_masked_model_guesses_what_is_hidden_and_sees_the_rest(corpus):
    config = RunConfig(**TINY, **MASKED)
    model, ids, shown = make_model(config, corpus), corpus.train[: 16 * 8].view(8, 16), []
    hook = model.transformer.register_forward_hook(lambda _, given, answer: shown.append((given[0], answer)))
    loss, losses = (act(model, ids, torch.Generator().manual_seed(0)) for act in (Masked(0.3).loss, Masked(0.3).losses))
    hook.remove()
    (seen, states), (again, _) = shown
    assert torch.equal(seen, again)
    hidden = seen == corpus.vocabulary.mask_id
    assert torch.equal(seen[~hidden], ids[~hidden]) and 0.15 < hidden.float().mean() < 0.45
    each = -model.logits(states).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    assert loss.item() == pytest.approx(each[hidden].mean().item(), abs=1e-5)
    assert torch.allclose(losses[hidden], each[hidden], atol=1e-5) and losses[~hidden].isnan().all()


# How weights change.


def test_the_learning_rate_rises_and_falls():
    config = RunConfig(warmup=10, steps=100)
    factors = [learning_rate_factor(step, config) for step in range(100)]
    assert factors[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert max(factors) == 1.0 and factors[99] == pytest.approx(0.1)
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert factors[54] == pytest.approx(0.55)  # half-way along the cosine
    assert learning_rate_factor(0, RunConfig(warmup=0, steps=1)) == pytest.approx(0.1)


def test_adamw_decays_linear_layers_alone_and_has_each_weight_in_one_group(corpus):
    config = RunConfig(scheme="learned", learning_rate=0.01, weight_decay=0.3, **TINY)
    model = make_model(config, corpus)
    optimizer = make_optimizer(model, config)
    decayed, kept = optimizer.param_groups
    assert isinstance(optimizer, torch.optim.AdamW)
    assert [(each["lr"], each["betas"], each["eps"]) for each in (decayed, kept)] == [(0.01, (0.9, 0.98), 1e-8)] * 2
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.3, 0.0)
    ids = [id(each) for each in (*decayed["params"], *kept["params"])]
    assert sorted(ids) == sorted(id(each) for each in model.parameters())
    assert all(each.ndim == 2 for each in decayed["params"])
    assert any(each is model.transformer.position_scheme.weight for each in kept["params"])


def test_large_gradients_are_cut(corpus, monkeypatch):
    norms, cut = [], torch.nn.utils.clip_grad_norm_

    def note(parameters, norm):
        parameters = list(parameters)
        cut(parameters, norm)
        norms.append(float(torch.stack([each.grad.norm() for each in parameters]).norm()))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", note)
    train(RunConfig(**TINY | {"learning_rate": 0.3, "steps": 3}))
    assert max(norms) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize(
    ("after", "said"),
    [(0, "step 1; nothing is learned by then, so look"), (1, "step 2; lower the learning rate (0.01)")],
)
def test_a_run_that_diverges_says_so(after, said):
    model = torch.nn.Linear(1, 1)

    def draw_loss(generator):
        return model.weight.sum() * (math.nan if len(training.losses) == after else 1.0)

    training = Training(model, draw_loss, RunConfig(**TINY))
    assert refused(RunError, training.run).startswith(f"the loss of nopos is nan at {said}")


# Positions in some layers only.


def schemes_of(model):
    return [type(layer.attention.position_scheme) for layer in model.transformer.layers]


def test_positions_on_some_layers_only(corpus):
    more = TINY | {"n_layers": 2, "scheme": "rope", "scheme_options": {"rope": {"base": 50.0}}}
    model = make_model(RunConfig(layers_with_positions=(1,), **more), corpus)
    everywhere, nowhere = (
        make_model(RunConfig(**more), corpus),
        make_model(RunConfig(layers_with_positions=(), **more), corpus),
    )
    assert schemes_of(model) == [NoPos, RoPE]
    assert model.transformer.layers[1].attention.position_scheme.base == 50.0
    # The same weights: RoPE draws no numbers.
    assert torch.equal(model.transformer.words.weight, everywhere.transformer.words.weight)
    ids = torch.arange(2, 18)[None]
    assert not torch.allclose(model(ids), everywhere(ids)) and not torch.allclose(model(ids), nowhere(ids))
    assert torch.equal(
        nowhere(ids), make_model(RunConfig(**more | {"scheme": "nopos", "scheme_options": {}}), corpus)(ids)
    )


# What is measured.


def test_the_loss_is_the_mean_over_what_is_guessed(corpus):
    model = make_model(RunConfig(**TINY), corpus).eval()
    windows = corpus.test[:1600].view(100, 16)
    with torch.no_grad():
        logits = model(windows[:, :-1]).double()
    expected = -logits.log_softmax(-1).gather(-1, windows[:, 1:, None]).mean()
    assert loss_of(model, corpus.test[:1600], Causal(), 16) == pytest.approx(float(expected), abs=1e-6)


def test_losses_by_position_average_to_the_loss(corpus):
    config = RunConfig(test_length=64, **TINY)
    model, ids = make_model(config, corpus).eval(), corpus.test[: 64 * 40]
    groups = loss_by_position(model, ids, Causal(), 64)
    weights = torch.tensor([GROUP - 1.0, *[GROUP] * 3])  # nothing is guessed at position 0
    mean = float((torch.tensor(groups) * weights).sum() / weights.sum())
    assert mean == pytest.approx(loss_of(model, ids, Causal(), 64), abs=2e-5)


def test_a_position_beyond_the_trained_ones_shows_in_its_group(corpus):
    """Rows of a table that are spoiled from position 32 on spoil the loss from there on, and not before."""
    config = RunConfig(scheme="learned", test_length=64, **TINY)
    model, ids = make_model(config, corpus).eval(), corpus.test[: 64 * 20]
    before = loss_by_position(model, ids, Causal(), 64)
    with torch.no_grad():
        model.transformer.position_scheme.weight[32:] = (
            torch.randn(32, 16, generator=torch.Generator().manual_seed(0)) * 20
        )
    after = loss_by_position(model, ids, Causal(), 64)
    assert after[:2] == before[:2]
    assert all(abs(a - b) > 1e-3 for a, b in zip(after[2:], before[2:], strict=True))


def test_scalings_are_tried_on_the_trained_model_and_taken_back(corpus):
    names = ("linear", "ntk", "yarn", "llama3")
    config = RunConfig(scheme="rope", test_length=64, test_scalings=names, **TINY)
    model, ids = make_model(config, corpus).eval(), corpus.test[: 64 * 20]
    with torch.no_grad():  # attention must count for something
        for parameter in model.transformer.layers.parameters():
            parameter.mul_(8)
    plain, found = loss_by_position(model, ids, Causal(), 64), scaled_losses(model, ids, Causal(), config)
    assert list(found) == list(names)
    assert len({tuple(each) for each in [plain, *found.values()]}) == 5
    assert loss_by_position(model, ids, Causal(), 64) == plain
    # The test length is four times the trained one, so positions are squeezed by four.
    squeezed = RoPE(8, scaling=LinearScaling(factor=4.0))
    for layer in model.transformer.layers:
        layer.attention.position_scheme = squeezed
    assert loss_by_position(model, ids, Causal(), 64) == found["linear"]


def test_what_a_scheme_has_learned(corpus):
    table = make_model(RunConfig(scheme="learned", test_length=64, **TINY), corpus).transformer.position_scheme
    assert parameters_of_scheme(table)["row_norms"] == pytest.approx(table.weight.norm(dim=1).tolist(), rel=1e-5)
    t5 = make_model(RunConfig(scheme="t5", **TINY), corpus).transformer.position_scheme
    assert parameters_of_scheme(t5)["weight"] == pytest.approx(t5.weight.flatten().tolist(), rel=1e-5)
    assert parameters_of_scheme(make_model(RunConfig(**TINY), corpus).transformer.position_scheme) == {}


def test_a_run_says_what_it_gave_and_what_it_cost(corpus):
    result = train(RunConfig(scheme="learned", test_length=32, **TINY))
    metrics, speed = result.metrics, result.speed
    assert metrics["tokens"] == 5 * 8 * 16 and len(metrics["curve"]) == 5
    assert metrics["parameters"] == sum(each.numel() for each in result.model.parameters())
    assert metrics["scheme_parameters"] == 32 * 16 and len(metrics["loss_by_position"]) == 2
    assert metrics["perplexity_per_token"] == pytest.approx(math.exp(metrics["loss"]), rel=1e-4)
    n_words = len(corpus.vocabulary.decode(corpus.test).split())
    expected = math.exp(metrics["loss"] * len(corpus.test) / n_words)
    assert metrics["perplexity_per_word"] == pytest.approx(expected, rel=1e-4)
    assert result.minutes == result.wall_seconds / 60 and 0 < speed["training_seconds"] < result.wall_seconds
    # The seconds are rounded to hundredths, which is much of so short a training.
    most, least = (metrics["tokens"] / (speed["training_seconds"] + by) for by in (-5.1e-3, 5.1e-3))
    assert least <= speed["tokens_per_second"] <= (most if most > 0 else math.inf)
    told = json.loads(json.dumps(result.to_dict()))
    back = RunResult.from_dict(told)
    assert (back.metrics, back.speed, back.config) == (metrics, speed, result.config)
    # Hidden characters are no text.
    assert "perplexity_per_word" not in train(RunConfig(**TINY, **MASKED)).metrics


# What cannot be trained.


@pytest.mark.bad_input
@pytest.mark.parametrize("device", ["cuda", "cuda:7", "gpu", "mps"])
def test_a_device_that_is_not_there(device, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    message = refused(RunError, train, RunConfig(device=device, **TINY))
    assert message == f"device is {device!r}, which PyTorch has not here; choose among cpu"


@pytest.mark.bad_input
def test_what_cannot_be_trained_is_refused_before_the_training(tmp_path):
    (tmp_path / "one-line.txt").write_text("a corpus of one line that has some words in it\n")
    told = []
    for changes, error, message in (
        ({"data": str(tmp_path / "one-line.txt")}, CorpusError, "one-line.txt"),
        ({"test_length": 10**6}, CorpusError, "make the pieces shorter"),
    ):
        config = RunConfig(**TINY | changes)
        assert message in refused(error, train, config, progress=lambda *_: told.append(1))
    assert not told


def test_a_loss_that_is_no_number_is_not_left_out_of_a_mean(monkeypatch):
    usual = loop.Training.run

    def then_spoiled(self, *arguments, **options):
        usual(self, *arguments, **options)
        # Behind position 20 the model answers with NaN.
        forward = self.model.forward
        spoil = lambda logits: logits.where((torch.arange(logits.shape[1]) < 20)[:, None], math.nan)
        self.model.forward = lambda *given, **named: spoil(forward(*given, **named))

    monkeypatch.setattr(loop.Training, "run", then_spoiled)
    message = refused(RunError, train, RunConfig(**TINY | {"length": 32}))
    assert message.startswith("the loss of NoPos is no number on some of the text")
    found = train(RunConfig(**TINY | {"length": 16, "test_length": 64})).metrics["loss_by_position"]
    assert [math.isnan(each) for each in found] == [False, True, True, True]
