"""Steps with short pieces, and causal models that guess a share of the characters."""

import pytest
import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from posembed import RunConfig, train
from posembed.data import load_corpus
from posembed.experiments import batch_loss, loss_of, make_model
from posembed.models import LanguageModel

TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "length": 16, "batch_size": 8, "steps": 5, "warmup": 2}


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


def shown_in_training(config):
    """What a causal model is shown, step by step; the last character of a piece is only guessed."""
    shown = []

    def note(module, given):
        if isinstance(module, LanguageModel) and module.training:
            shown.append(given[0])

    hook = register_module_forward_pre_hook(note)
    try:
        train(config)
    finally:
        hook.remove()
    return shown


@pytest.mark.parametrize("short_share", [0.2, 0.9])
def test_a_step_with_short_pieces_reads_as_many_characters(short_share):
    config = RunConfig(**(TINY | {"steps": 10}), short_length=4, short_share=short_share)
    pieces = [(len(ids), ids.shape[1] + 1) for ids in shown_in_training(config)]
    n_short = int(10 * short_share)
    assert pieces == [(8 * 4, 4)] * n_short + [(8, 16)] * (10 - n_short)
    assert {number * length for number, length in pieces} == {config.batch_size * config.length}


def test_without_them_all_pieces_have_one_length():
    assert {tuple(ids.shape) for ids in shown_in_training(RunConfig(**TINY))} == {(8, 15)}


@pytest.mark.parametrize("changes", [{"guessed_share": 0.15}, {"short_length": 4, "short_share": 0.5}])
def test_each_gives_another_model(changes):
    plain, other = (train(RunConfig(scheme="learned", **TINY, **more)).metrics["loss"] for more in ({}, changes))
    assert plain != other


def test_short_pieces_leave_the_far_rows_of_a_table_as_they_were(corpus):
    """Of 4 characters the last is guessed, not read; the length that is measured stays the full one."""
    config = RunConfig(scheme="learned", short_length=4, short_share=0.99, **TINY)
    before = make_model(config, corpus).transformer.position_scheme.weight
    result = train(config)
    after = result.model.transformer.position_scheme.weight
    assert torch.equal(before[3:], after[3:])
    assert not torch.equal(before[:3], after[:3])
    assert result.metrics["loss"] == loss_of(result.model, corpus.test, RunConfig(scheme="learned", **TINY))


def test_short_pieces_of_a_masked_model_train_one_row_more(corpus):
    config = RunConfig(
        scheme="learned", objective="masked", masking_rate=0.15, short_length=4, short_share=0.99, **TINY
    )
    before = make_model(config, corpus).transformer.position_scheme.weight
    after = train(config).model.transformer.position_scheme.weight
    assert torch.equal(before[4:], after[4:])
    assert not (before[:4] == after[:4]).all(dim=1).any()


def guesses(model, ids, config, generator):
    """What a model is shown, what it answers, where its loss says anything of the answers, and the loss."""
    calls = []

    def note(_, given, answer):
        answer.retain_grad()
        calls.append((given[0], answer))

    hook = model.register_forward_hook(note)
    loss = batch_loss(model, ids, config, generator)
    hook.remove()
    loss.backward()
    ((shown, logits),) = calls
    return shown, logits.detach(), (logits.grad != 0).any(dim=-1), loss.item()


def test_a_causal_model_guesses_the_share_that_it_is_told(corpus):
    config = RunConfig(guessed_share=0.15, **(TINY | {"length": 512}))
    model, generator = make_model(config, corpus), torch.Generator().manual_seed(0)
    ids = corpus.train[: 512 * 32].view(32, 512)
    shown, logits, guessed, loss = guesses(model, ids, config, generator)
    # Of 16352 draws: four standard deviations of .0028. Of a quarter of each piece: of .0056; of one piece: of .016.
    assert guessed.float().mean().item() == pytest.approx(0.15, abs=0.012)
    assert all(part.float().mean().item() == pytest.approx(0.15, abs=0.023) for part in guessed.chunk(4, dim=1))
    assert all(piece.float().mean().item() == pytest.approx(0.15, abs=0.064) for piece in guessed)
    # Nothing is hidden from it, and the loss is the mean over what it guesses.
    assert torch.equal(shown, ids[:, :-1])
    each = -logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    assert loss == pytest.approx(each[guessed].mean().item(), abs=1e-5)
    assert not torch.equal(guessed, guesses(model, ids, config, generator)[2])


def test_without_a_share_it_guesses_every_character(corpus):
    config = RunConfig(**TINY)
    ids = corpus.train[: 16 * 8].view(8, 16)
    assert guesses(make_model(config, corpus), ids, config, torch.Generator())[2].all()


def test_the_measured_loss_is_over_every_character(corpus):
    config = RunConfig(guessed_share=0.15, **TINY)
    model = make_model(config, corpus).eval()
    assert loss_of(model, corpus.test, config) == loss_of(model, corpus.test, RunConfig(**TINY))
