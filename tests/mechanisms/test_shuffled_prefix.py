"""What a model loses when the tokens before the last one are shuffled."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from small_models import build
from untrained import language_model, random_texts

from posembed.mechanisms import shuffled_prefix
from posembed.mechanisms.shuffled_prefix import _shuffled

WORDS = 6


def last_word(ids):
    """Guesses the word that it has just read."""
    return 3.0 * F.one_hot(ids, WORDS)


def words_so_far(ids):
    """Guesses by frequency: order plays no part at the last token."""
    return F.one_hot(ids, WORDS).double().cumsum(dim=1)


def small_texts(n=20, length=8, seed=0):
    return torch.randint(WORDS, (n, length), generator=torch.Generator().manual_seed(seed))


def test_what_knows_no_order_loses_nothing():
    found = shuffled_prefix(words_so_far, small_texts())
    assert found.difference == 0 and (found.interval.low, found.interval.high) == (0, 0)


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_what_looks_back_no_further_than_what_is_kept_loses_nothing(keep):
    assert shuffled_prefix(last_word, small_texts(), keep=keep).difference == 0


def test_the_losses_are_those_of_all_orders():
    """With three tokens to shuffle, the mean over many shuffles is that over all six orders."""
    ids, keep = small_texts(n=6, length=6), 2
    model = lambda given: last_word(given) + words_so_far(given).roll(1, dims=-1) * given[:, :1, None]
    loss = lambda prefix: F.cross_entropy(model(prefix)[:, -1].double(), ids[:, -1])
    found = shuffled_prefix(model, ids.repeat(100, 1), keep=keep)  # four shuffles of each copy
    assert found.intact == pytest.approx(loss(ids[:, :-1]).item())
    orders = [[*order, 3, 4] for order in itertools.permutations(range(3))]
    everything = torch.stack([loss(ids[:, order]) for order in orders])
    error = everything.std().item() / 400**0.5
    assert found.shuffled == pytest.approx(everything.mean().item(), abs=5 * error)


def test_shuffles_keep_the_words_and_the_last_places():
    ids = torch.arange(12).repeat(200, 1)
    moved = _shuffled(ids, 4, torch.Generator().manual_seed(0))
    assert torch.equal(moved[:, 8:], ids[:, 8:])
    assert torch.equal(moved.sort(dim=1).values, ids)
    # Each word stands at each place about equally often, in 200 texts 25 times.
    counts = torch.stack([torch.bincount(moved[:, place], minlength=8)[:8] for place in range(8)])
    assert counts.min() > 5 and counts.max() < 50


def test_a_language_model_of_ours_is_asked_for_the_last_token():
    model, ids = language_model("learned", dropout=0.3).train(), random_texts(40, 10)
    found = shuffled_prefix(model, ids)
    assert model.training
    model.eval()
    with torch.no_grad():
        wanted = F.cross_entropy(model(ids)[:, -2], ids[:, -1], reduction="none")
    assert found.intact == pytest.approx(wanted.mean().item(), abs=1e-5)
    assert shuffled_prefix(model, ids[:2]).intact == pytest.approx(wanted[:2].mean().item(), abs=1e-5)
    assert found.interval.low <= found.difference <= found.interval.high


def test_a_model_of_transformers():
    model, ids = build("gpt2-lm"), torch.randint(4, 30, (3, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = F.cross_entropy(model(ids).logits[:, -2], ids[:, -1])
    assert shuffled_prefix(model, ids).intact == pytest.approx(wanted.item(), abs=1e-5)


def test_the_last_token_may_stand_behind_the_last_position():
    """A model with 64 positions guesses a 65th token."""
    assert shuffled_prefix(language_model("learned"), random_texts(2, 65)).length == 65


def test_it_follows_its_seed_and_leaves_the_global_state_alone():
    state, ids = torch.get_rng_state(), small_texts()
    found, again, other = (shuffled_prefix(last_word, ids, seed=seed) for seed in (0, 0, 1))
    assert found == again and found.shuffled != other.shuffled
    assert torch.equal(torch.get_rng_state(), state)
