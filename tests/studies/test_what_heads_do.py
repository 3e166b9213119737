"""What heads look at and what is lost without them, where it is known; and a small run with a mark."""

from dataclasses import replace

import pytest
import torch

from posembed import RunResult
from posembed.data import Characters
from posembed.training import Causal, RunConfig
from studies import beginning
from studies.training import heads
from studies.training.heads import FROM, attention, late, mean_outputs, read, silenced, swap
from studies.training.marks import Marked
from studies.training.runs import make_model, train
from studies.training.settings import changed

TINY = RunConfig(n_layers=2, d_model=16, n_heads=2, length=32, steps=3, batch_size=4, warmup=1)


@pytest.fixture
def model(corpus):
    return make_model(TINY, corpus).eval()


@pytest.fixture
def texts(corpus):
    return corpus.test[: 8 * 32].view(8, 32).long()


def test_even_attention_has_the_share_of_each_token(model, texts):
    for layer in model.transformer.layers:
        torch.nn.init.zeros_(layer.attention.query.weight)
        torch.nn.init.zeros_(layer.attention.query.bias)
    found = attention(model, read(texts, Causal()))
    share = sum(1 / (place + 1) for place in range(FROM, 31)) / (31 - FROM)
    assert found["evenly"] == pytest.approx(share)
    assert torch.tensor(found["attention"]).flatten().tolist() == pytest.approx([share] * 2 * 2 * 9, rel=1e-5)
    assert torch.tensor(found["first"]).flatten().tolist() == pytest.approx([share] * 4, rel=1e-5)


def test_a_head_that_is_silenced_gives_its_mean_and_the_others_what_they_gave(model, texts):
    means, projection, given = mean_outputs(model, texts), model.transformer.layers[1].attention.output, []
    before = late(model, texts, Causal())

    def looked_at():
        hook = projection.register_forward_pre_hook(lambda _, x: given.append(x[0].detach()))
        model(texts)
        hook.remove()

    looked_at()
    with silenced(model, [(1, 0)], means):
        looked_at()
    whole, without = given
    assert torch.allclose(without[..., :8], means[1][:8].expand(8, 32, 8)) and without[..., :8].std() > 0
    assert torch.allclose(without[..., 8:], whole[..., 8:], atol=1e-6)
    assert late(model, texts, Causal()) == before


def test_what_is_swapped_are_the_last_two_that_are_read(model, texts):
    same = texts.clone()
    same[:, -3] = same[:, -2]
    assert swap(model, same, Causal()) == 0 != swap(model, texts, Causal())


def test_a_mark_is_read_first_and_never_guessed(model, texts):
    losses = Marked().losses(model, texts, torch.Generator())
    assert losses.shape == texts.shape and losses.isfinite().all()
    ids = read(texts, Marked())
    assert (ids[:, 0] == Characters.mask_id).all() and torch.equal(ids[:, 1:], texts[:, :-1])
    assert float(Marked().loss(model, texts, torch.Generator())) == pytest.approx(float(losses.mean()), rel=1e-5)
    # What stands behind a character changes nothing of its loss.
    other = texts.clone()
    other[:, 20:] = texts.flip(0)[:, 20:]
    assert torch.allclose(Marked().losses(model, other, torch.Generator())[:, :20], losses[:, :20], atol=1e-5)


def test_the_study_in_miniature(monkeypatch, corpus):
    """All measures of all arms, and the contrasts of them; without a mark one character tells no positions."""
    monkeypatch.setattr(heads, "TEXTS", 8)
    monkeypatch.setattr(heads, "PROBE_TEXTS", (64, 16))
    monkeypatch.setattr(heads, "PROBE_STEPS", 20)
    results = []
    for arm in beginning.arms():
        small = {"n_layers": 2, "d_model": 16, "n_heads": 2, "length": 32, "steps": 3, "batch_size": 4}
        found = train(replace(arm.run, **small, scheme_options={})).metrics
        layers = found["heads"]["probe of one character"]
        assert len(layers) == 3 and len(found["heads"]["pair"]["heads"]) == 2
        if arm.name == "nopos":
            assert min(layers[1:]) > 7
        for seed in arm.seeds:
            config = replace(arm.run, seed=seed, learning_rate=3e-3)
            results.append(RunResult(config, found, {}, "", 1.0))
        for rate in arm.rates:
            loss = {"validation_loss": 1.0 if rate == 3e-3 else 2.0}
            results += [RunResult(trial, loss, {}, "", 1.0) for trial in arm.trials_at(rate)]
    found = beginning.contrasts(results)
    assert len(found) == 14 and all(each.n == 5 for each in found.values())
    assert changed(TINY, mark=True).key != TINY.key
