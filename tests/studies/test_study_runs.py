"""What studies train otherwise: short pieces first, a share of the tokens, further steps, without positions."""

import os
import signal

import pytest
import torch
from refusals import refused
from torch.nn.modules.module import register_module_forward_pre_hook

from posembed.encodings import NoPos
from posembed.errors import RunError
from posembed.models import LanguageModel
from posembed.training import Causal
from studies.training import runs
from studies.training.guesses import SomeGuessed
from studies.training.runs import StudyTraining, make_model, train
from studies.training.settings import changed, run_of

TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "length": 16, "batch_size": 8, "steps": 5, "warmup": 2}


def losses(**changes):
    told = []
    train(run_of(**(TINY | changes)), progress=lambda step, loss: told.append((step, loss)))
    assert [step for step, _ in told] == list(range(1, len(told) + 1))
    return [loss for _, loss in told]


@pytest.mark.parametrize("short_share", [0.2, 0.9])
def test_a_step_with_short_pieces_reads_as_many_characters(short_share):
    calls = []
    hook = register_module_forward_pre_hook(lambda *call: calls.append((call, torch.is_grad_enabled())))
    train(run_of(**TINY | {"steps": 10}, short_length=4, short_share=short_share))
    hook.remove()
    shown = [given[0] for (module, given), training in calls if isinstance(module, LanguageModel) and training]
    n_short = int(10 * short_share)
    assert [(len(ids), ids.shape[1] + 1) for ids in shown] == [(8 * 4, 4)] * n_short + [(8, 16)] * (10 - n_short)


def test_a_causal_model_guesses_the_share_that_it_is_told(corpus):
    model, generator = make_model(run_of(**(TINY | {"length": 512})), corpus), torch.Generator().manual_seed(0)
    ids, answers = corpus.train[: 512 * 32].view(32, 512), []
    hook = model.register_forward_hook(lambda _, given, answer: answer.retain_grad() or answers.append(answer))
    objective = SomeGuessed(0.15)
    loss = objective.loss(model, ids, generator)
    hook.remove()
    loss.backward()
    guessed = (answers[0].grad != 0).any(dim=-1)
    # Of 16352 draws: four standard deviations of 0.0028. Of a quarter of each piece: of 0.0056.
    assert guessed.float().mean().item() == pytest.approx(0.15, abs=0.012)
    assert all(part.float().mean().item() == pytest.approx(0.15, abs=0.023) for part in guessed.chunk(4, dim=1))
    # Nothing is hidden from it, the loss is the mean over what it guesses, and measured are all.
    each = -answers[0].detach().log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    assert loss.item() == pytest.approx(each[guessed].mean().item(), abs=1e-5)
    with torch.no_grad():
        found = [each.losses(model, ids, generator)[:, 1:] for each in (objective, Causal())]
        assert torch.equal(*found)


def test_the_learning_rate_rises_and_falls_anew(corpus):
    config = run_of(**TINY | {"steps": 100, "warmup": 10}, further_steps=50)
    training = StudyTraining(make_model(config, corpus), corpus, config)
    factors = [training.rate_factor(step) for step in range(training.n_steps)]
    assert len(factors) == 150 and factors[99] == factors[149] == pytest.approx(0.1)
    assert factors[100:110] == factors[:10] and factors[109] == 1.0


def schemes_of(model):
    return [type(layer.attention.position_scheme) for layer in model.transformer.layers]


def test_before_the_further_steps_the_run_is_the_same():
    plain = losses(scheme="learned")
    assert losses(scheme="learned", further_steps=4, drops_positions=True)[:5] == plain


@pytest.mark.parametrize("scheme", ["learned+t5", "rope"])
def test_positions_are_dropped_everywhere_and_training_goes_on_where_it_was(scheme):
    config = run_of(scheme=scheme, further_steps=2, drops_positions=True, **TINY | {"n_layers": 2, "steps": 60})
    told = []
    result = train(config, progress=lambda _, loss: told.append(loss))
    model = result.model.eval()
    assert schemes_of(model) == [NoPos, NoPos] and isinstance(model.transformer.position_scheme, NoPos)
    # Nothing says where a token stands: of the tokens before the last one, one layer sees no order.
    ids, positions = torch.tensor([[2, 3, 4, 5], [4, 2, 3, 5]]), torch.arange(4)
    last = model.transformer.layers[0](model.transformer.embed(ids, positions), positions)[:, -1]
    torch.testing.assert_close(last[0], last[1])
    # The first loss after the positions are gone is that of the trained model without them, not of a new one.
    assert told[60] < 0.85 * told[0]
    assert result.metrics["tokens"] == 62 * 8 * 16 and len(result.metrics["curve"]) == 40


def test_a_run_adds_positions_as_its_config_says_and_counts_the_tables(corpus):
    tiny = TINY | {"n_layers": 3, "d_model": 8, "steps": 3}
    counted = {}
    for added in ("input", "every layer", "layers anew"):
        result = train(run_of(scheme="learned", positions_added=added, **tiny))
        assert result.model.transformer.config.positions_added == added
        counted[added] = (result.metrics["scheme_parameters"], result.metrics["parameters"])
    one = 16 * 8
    assert [counted[added][0] for added in counted] == [one, one, 3 * one]
    assert counted["layers anew"][1] - counted["input"][1] == 2 * one
    moved = result.model.transformer
    assert not torch.equal(moved.added_anew[0].weight, moved.added_anew[1].weight)
    begun = make_model(result.config, corpus).transformer.added_anew
    assert torch.equal(begun[0].weight, begun[1].weight)


@pytest.mark.parametrize(
    "more",
    [
        {"scheme": "learned", "dropout": 0.2, "short_length": 4, "short_share": 0.6, "guessed_share": 0.5},
        {"scheme": "learned", "steps": 6, "further_steps": 6, "drops_positions": True},
        {"scheme": "rope", "steps": 10, "further_steps": 2, "drops_positions": True, "inspections": ["watched"]},
    ],
    ids=["short pieces", "stopped after positions are dropped", "stopped before"],
)
def test_a_run_that_is_interrupted_goes_on_with_the_same_numbers(tmp_path, more):
    config, path, begun = run_of(**{**TINY, "steps": 12, **more}), tmp_path / "run.checkpoint", []
    with pytest.raises(KeyboardInterrupt):
        train(config, checkpoint=path, progress=lambda done, _: done == 7 and os.kill(os.getpid(), signal.SIGINT))
    taken_up = train(config, checkpoint=path, progress=lambda step, _: begun.append(step))
    whole = train(config)
    assert begun[0] == 9 and taken_up.metrics == whole.metrics
    pairs = zip(taken_up.model.state_dict().values(), whole.model.state_dict().values(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


def test_a_run_that_is_interrupted_while_it_is_watched_goes_on_with_the_same_numbers(tmp_path, monkeypatch):
    config, path = run_of(scheme="rope", **TINY | {"steps": 12}, inspections=["watched"]), tmp_path / "run.checkpoint"
    whole, watched, done = train(config), runs.probed_layers, []

    def interrupted(model, *given):
        if len(done) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        done.append(watched(model, *given))
        return done[-1]

    with monkeypatch.context() as patch:
        patch.setattr(runs, "probed_layers", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(config, checkpoint=path)
    assert len(done) == 2
    assert train(config, checkpoint=path).metrics == whole.metrics


def test_a_setting_that_no_study_has():
    assert refused(RunError, train, run_of(**TINY, flux=1)).startswith("there is no setting 'flux'; choose among short")
    said = refused(RunError, train, run_of(**TINY, inspections=["hands"]))
    assert said == "there are no inspections hands of texts"
    assert changed(run_of(cls="tied"), cls=None, steps=3) == run_of(steps=3)
