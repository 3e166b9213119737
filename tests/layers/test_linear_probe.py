"""What a linear probe reads from states, where what can be read is known."""

import pytest
import torch

from posembed import sinusoidal
from posembed.layers import linear_probe, retained_input

LENGTH, WIDTH = 8, 24


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def labels(n, kinds=5, seed=0):
    return torch.randint(kinds, (n, LENGTH), generator=torch.Generator().manual_seed(seed))


def test_labels_whose_means_stand_on_a_line_are_read():
    # A regression on one-hot labels would never say a middle one.
    named, test_named = labels(60), labels(20, seed=1)
    states, test_states = (each[..., None] + 0.05 * normal(*each.shape, 1) for each in (named, test_named))
    assert linear_probe(states, named, test_states, test_named).accuracy > 0.99


def test_noise_is_read_no_better_than_chance_allows():
    found = linear_probe(normal(200, LENGTH, WIDTH), labels(200), normal(80, LENGTH, WIDTH, seed=1), labels(80, seed=1))
    assert abs(found.accuracy - 0.2) < 0.06
    assert abs(found.permuted_labels - 0.2) < 0.06
    assert abs(found.chance - 0.2) < 0.06


def test_a_label_never_seen_counts_as_wrong():
    states = torch.eye(6)[labels(40, 4)]
    asked = torch.full((2, LENGTH), 5)
    assert linear_probe(states, labels(40, 4), torch.eye(6)[asked], asked).accuracy == 0


def test_what_does_not_vary_in_the_training_texts_is_no_error():
    named = labels(40)
    states = torch.cat([torch.eye(5)[named], torch.zeros(40, LENGTH, 4)], dim=2)
    assert linear_probe(states, named, states, named).accuracy == 1


@pytest.mark.parametrize("times", [0.0, 0.5, 3.0, -1.0])
def test_the_coefficient_is_how_often_the_vectors_are_there(times):
    vectors = sinusoidal(LENGTH, WIDTH)
    fitted, tested = (10 + normal(400, LENGTH, WIDTH, seed=seed) + times * vectors for seed in (0, 1))
    found = retained_input(fitted, tested, vectors)
    assert found.coefficient == pytest.approx(times, abs=0.1)
    assert found.coefficient_interval.low < times < found.coefficient_interval.high
    # As a model's states are, outside of no_grad.
    again = retained_input(fitted.requires_grad_(), tested.requires_grad_(), vectors.requires_grad_())
    assert again == found


def test_vectors_that_were_turned_are_told_though_no_multiple_of_them_is_left():
    vectors = normal(LENGTH, WIDTH)
    # In other columns: the state holds all of them, and nothing along them.
    moved = torch.cat([torch.zeros(LENGTH, WIDTH), vectors], dim=1)
    wanted = torch.cat([vectors, torch.zeros(LENGTH, WIDTH)], dim=1)
    fitted, tested = (0.1 * normal(200, LENGTH, 2 * WIDTH, seed=seed) + moved for seed in (0, 1))
    found = retained_input(fitted, tested, wanted)
    assert found.r2 > 0.9
    assert abs(found.coefficient) < 0.05
    assert abs(found.cosine) < 0.1


def test_positions_that_left_no_trace_are_not_told():
    found = retained_input(
        normal(300, LENGTH, WIDTH), normal(100, LENGTH, WIDTH, seed=1), normal(LENGTH, WIDTH, seed=2)
    )
    assert found.r2 < 0.05
