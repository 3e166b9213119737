"""How much of the variance is of position and how much of the token, on states whose shares are known."""

import math

import pytest
import torch

from posembed.layers import position_shares

LENGTH, WORDS, WIDTH = 6, 12, 16


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def every_word_everywhere():
    """Ids in which each position sees each word as often as the others, so that the two are independent."""
    return (torch.arange(WORDS)[:, None] + torch.arange(LENGTH)) % WORDS


def centred(x):
    return x - x.mean(dim=0)


def mean_square(rows):
    return float(centred(rows).square().sum(dim=1).mean())


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_shares_are_the_mean_squares_of_what_was_added(size):
    words, rows, ids = normal(WORDS, WIDTH), size * normal(LENGTH, WIDTH, seed=1), every_word_everywhere()
    (found,) = position_shares([(words[ids] + rows + 5.0).requires_grad_()], ids)
    whole = mean_square(words) + mean_square(rows)
    of_texts = float(centred(words[ids].mean(dim=1)).square().sum(dim=1).mean())
    assert found.total == pytest.approx(whole + of_texts / (WORDS - 1), rel=1e-5)
    assert found.raw_position == pytest.approx(mean_square(rows) / whole, rel=1e-5)
    assert found.raw_token == pytest.approx(mean_square(words) / whole, rel=1e-5)
    assert found.raw_position + found.raw_token == pytest.approx(1, abs=1e-6)


def test_of_noise_position_and_token_explain_nothing_on_average_after_adjustment():
    shares = [
        position_shares([normal(30, LENGTH, WIDTH, seed=seed)], every_word_everywhere()[:1].repeat(30, 1))[0]
        for seed in range(20)
    ]
    adjusted = sum(each.position for each in shares) / len(shares)
    raw = sum(each.raw_position for each in shares) / len(shares)
    by_chance = (LENGTH - 1) / (30 * LENGTH - 1)
    assert abs(adjusted) < 0.3 * by_chance
    assert raw == pytest.approx(by_chance, rel=0.3)


def states_of_one_text_alike(kind, n_texts, seed):
    """Rows of positions plus what goes through a whole text: nothing, a topic, or a running sum."""
    rows, noise = centred(normal(LENGTH, WIDTH)), normal(n_texts, LENGTH, WIDTH, seed=seed + 1)
    whole = {"nothing": noise, "a topic": noise + 3 * noise[:, :1].flip(0), "a running sum": noise.cumsum(dim=1)}[kind]
    # The noise of the topic is that of the first token of another text.
    variance = {"nothing": 1, "a topic": 10, "a running sum": (LENGTH + 1) / 2}[kind]
    return rows + whole, float(rows.square().sum(dim=1).mean()) / WIDTH, variance


@pytest.mark.parametrize("kind", ["nothing", "a topic", "a running sum"])
@pytest.mark.parametrize("n_texts", [4, 30])
def test_states_of_one_text_may_be_alike_as_a_whole(kind, n_texts):
    found = []
    for seed in range(0, 200, 2):
        states, placed, rest = states_of_one_text_alike(kind, n_texts, seed)
        found.append(position_shares([states])[0].position)
    true = placed / (placed + rest)
    error = torch.tensor(found).std() / len(found) ** 0.5
    # A ratio of two estimates is off by a part of the order of one in n_texts.
    assert abs(sum(found) / len(found) - true) < 4 * float(error) + 0.1 * true / n_texts


def test_what_is_token_and_position_at_once_counts_as_position():
    # Each position has a word of its own: the division takes position first.
    ids = torch.arange(LENGTH).expand(8, -1)
    (found,) = position_shares([normal(WORDS, WIDTH)[ids]], ids)
    assert found.position == pytest.approx(1)
    assert found.token == pytest.approx(0, abs=1e-9)
    assert found.rest == pytest.approx(0, abs=1e-9)


def test_layers_are_numbered():
    found = position_shares([normal(4, LENGTH, 8), normal(4, LENGTH, 8, seed=1)])
    assert [each.layer for each in found] == [0, 1]
    assert found[0].token is None


def test_states_that_are_all_alike_have_no_shares():
    (found,) = position_shares([torch.ones(4, LENGTH, 3)])
    assert math.isnan(found.position)
    assert found.total == 0
