"""T5's buckets by whole numbers, against transformers at every distance, and the bias that is read from them."""

import pytest
import torch

from posembed.encodings import T5

FAR = (20, 33, 64, 128, 300, 512)
CONFIGS = [(n_buckets, far) for n_buckets in (8, 12, 16, 32, 48, 64) for far in FAR if far > n_buckets // 2]


def bucket_of(distance, n_buckets, max_distance):
    """exact + floor(log(distance / exact) / log(max_distance / exact) * wide), where no logarithm is rounded."""
    exact = n_buckets // 2
    wide = n_buckets - exact
    if distance < exact:
        return distance
    steps = 0
    while steps < wide - 1 and distance**wide * exact ** (steps + 1) >= exact**wide * max_distance ** (steps + 1):
        steps += 1
    return exact + steps


@pytest.mark.parametrize(("n_buckets", "max_distance"), CONFIGS)
def test_the_bucket_of_every_distance(n_buckets, max_distance):
    distances = range(max_distance + 3)
    past = -torch.tensor([*distances, 10**6, 10**9])
    expected = [bucket_of(distance, n_buckets, max_distance) for distance in distances]
    causal = T5(1, causal=True, n_buckets=n_buckets, max_distance=max_distance)
    assert causal.bucket(past).tolist() == [*expected, n_buckets - 1, n_buckets - 1]
    assert not causal.bucket(-past).any()  # all that is ahead shares the bucket of distance 0
    half = n_buckets // 2
    expected = [*(bucket_of(distance, half, max_distance) for distance in distances), half - 1, half - 1]
    both = T5(1, causal=False, n_buckets=n_buckets, max_distance=max_distance)
    assert both.bucket(past).tolist() == expected
    assert both.bucket(-past).tolist() == [0, *(half + bucket for bucket in expected[1:])]


def test_the_first_bucket_of_the_future_stays_empty_in_a_bidirectional_model():
    assert T5(1, causal=False).bucket(torch.tensor([0, 1])).tolist() == [0, 17]
    assert 16 not in T5(1, causal=False).bucket(torch.arange(-300, 301))
    assert set(T5(1, causal=True).bucket(torch.arange(-300, 1)).tolist()) == set(range(32))
