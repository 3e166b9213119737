"""Gradient descent beside torch's loop, and beside what theory says of it."""

import numpy as np
import pytest
import torch
from probing_tables import random_table

from posembed.probing import GradientDescent
from posembed.probing.estimators import fitted_scaling

# More columns, more rows, as many.
shapes = pytest.mark.parametrize(("n", "d_model"), [(10, 30), (30, 10), (20, 20)])


def start_of(d_model, seed):
    """Where it starts from: what it is after no steps, in units of the scaled table."""
    x = np.vstack([np.zeros(d_model), np.eye(d_model)])
    at_zero, *along = GradientDescent(n_steps=0, seed=seed).fit(x, np.zeros(d_model + 1)).predict(x)
    return (np.array(along) - at_zero) * fitted_scaling(x).scale


@shapes
def test_it_is_the_loop_that_people_write(n, d_model):
    x, y = random_table(n, d_model), np.arange(float(n))
    rows, targets = torch.tensor(fitted_scaling(x).apply(x)), torch.tensor(y - y.mean())
    weight = torch.tensor(start_of(d_model, 5), requires_grad=True)
    # mse_loss has the gradient 2 X^T (X w - y) / n.
    step = n / (2 * float(torch.linalg.matrix_norm(rows, 2)) ** 2)
    for _ in range(50):
        (gradient,) = torch.autograd.grad(torch.nn.functional.mse_loss(rows @ weight, targets), weight)
        weight = (weight - step * gradient).detach().requires_grad_()
    expected = (rows @ weight).detach().numpy() + y.mean()
    np.testing.assert_allclose(GradientDescent(n_steps=50, seed=5).fit(x, y).predict(x), expected, rtol=1e-9)


def test_the_start_is_that_of_a_linear_layer_and_follows_the_seed():
    start = start_of(100, 0)
    assert np.abs(start).max() <= 100**-0.5
    assert np.std(start) == pytest.approx(100**-0.5 / 3**0.5, rel=0.2)
    assert not np.allclose(start, start_of(100, 1))
    np.testing.assert_array_equal(start, start_of(100, 0))
