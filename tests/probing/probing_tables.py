"""Tables of which it is known what they hold."""

import numpy as np


def linear_table(n=60, d_model=24, noise=0.0, seed=0):
    """Row p is p times a direction, plus a mean, plus noise: linear probes read it exactly where there is none."""
    rng = np.random.default_rng(seed)
    direction, mean = rng.normal(size=(2, d_model))
    return np.arange(n)[:, None] * direction + mean + noise * rng.normal(size=(n, d_model))


def random_table(n=60, d_model=24, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d_model))


def with_spectrum(n, d_model, values, seed=0):
    """Centred rows with these singular values."""
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(n, len(values)))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(rng.normal(size=(d_model, len(values))))[0]
    return (left * values) @ right.T


def rotation(d_model, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d_model, d_model)))[0]
