"""T5's buckets by whole numbers, against transformers at every distance, and the bias that is read from them."""

import peers
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import T5
from posembed.errors import EncodingInputError

CONFIGS = [(n_buckets, far) for n_buckets in (8, 12, 16, 32, 48, 64) for far in (20, 33, 64, 128, 300, 512)]
CONFIGS = [(n_buckets, far) for n_buckets, far in CONFIGS if far > n_buckets // 2]


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


@given(
    n_buckets=st.integers(2, 64),
    beyond=st.integers(1, 500),
    distances=st.lists(st.integers(0, 600), max_size=20),
)
def test_the_bucket_of_any_distance_in_any_config(n_buckets, beyond, distances):
    far = n_buckets // 2 + beyond
    made = T5(1, causal=True, n_buckets=n_buckets, max_distance=far)
    past = -torch.tensor(distances, dtype=torch.int64)
    assert made.bucket(past).tolist() == [bucket_of(distance, n_buckets, far) for distance in distances]


@pytest.mark.parametrize("their", [peers.t5_buckets_transformers, peers.t5_buckets_x_transformers])
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
@pytest.mark.parametrize(("n_buckets", "max_distance"), CONFIGS)
def test_buckets_are_those_of_transformers(n_buckets, max_distance, causal, their):
    offsets = torch.cat([torch.arange(-max_distance - 3, max_distance + 4), torch.tensor([-(10**9), 10**9])])
    ours = T5(1, causal=causal, n_buckets=n_buckets, max_distance=max_distance).bucket(offsets)
    assert torch.equal(ours, their(offsets, not causal, n_buckets, max_distance))


@pytest.mark.parametrize(
    ("causal", "n_buckets", "max_distance", "distance"),
    [(True, 17, 27, 18), (True, 36, 392, 84), (True, 48, 81, 54), (True, 46, 164, 107), (False, 34, 27, 18)],
)
def test_where_float32_logarithms_miss_a_bucket_whole_numbers_do_not(causal, n_buckets, max_distance, distance):
    """Of the 46,173 configs with up to 64 buckets and a max_distance of 20 to 512 they miss one distance in 14."""
    offsets = -torch.arange(max_distance + 3)
    made = T5(1, causal=causal, n_buckets=n_buckets, max_distance=max_distance)
    theirs = peers.t5_buckets_transformers(offsets, not causal, n_buckets, max_distance)
    assert (made.bucket(offsets) != theirs).nonzero().flatten().tolist() == [distance]
    side = n_buckets if causal else n_buckets // 2
    assert int(made.bucket(torch.tensor(-distance))) == bucket_of(distance, side, max_distance)


@pytest.mark.parametrize(
    "their", [peers.t5_bias_transformers, peers.t5_bias_x_transformers], ids=["transformers", "x_transformers"]
)
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
def test_the_bias_is_that_of_transformers(causal, their):
    made, q, k = T5(4, causal=causal), vectors(1, 4, 6, 8), vectors(1, 4, 300, 8)
    bias = made.bias(q, k, torch.arange(294, 300), torch.arange(300))
    assert torch.equal(bias, their(made.weight.detach(), 6, 300, not causal))


def test_the_bias_is_the_number_of_the_bucket_for_each_head():
    made, offsets = T5(3, causal=False, n_buckets=8, max_distance=10), torch.arange(-20, 21)
    bias = made.bias_by_offset(offsets)
    for index, bucket in enumerate(made.bucket(offsets).tolist()):
        assert torch.equal(bias[:, index], made.weight[bucket])


def test_the_gradient_of_a_bucket_is_the_sum_over_its_pairs():
    made, positions = T5(2, causal=True, n_buckets=4, max_distance=5), torch.arange(6)
    upstream = vectors(2, 6, 6)
    made.bias(torch.zeros(1, 2, 6, 4), torch.zeros(1, 2, 6, 4), positions, positions).backward(upstream)
    buckets = made.bucket(positions - positions[:, None])
    for bucket in range(4):
        expected = (upstream * (buckets == bucket)).sum((1, 2))
        torch.testing.assert_close(made.weight.grad[bucket], expected, rtol=0, atol=1e-5)  # up to 21 terms


def test_the_bucket_of_the_first_one_ahead_stays_empty_in_a_bidirectional_model():
    assert 16 not in T5(1, causal=False).bucket(torch.arange(-300, 301))
    assert set(T5(1, causal=True).bucket(torch.arange(-300, 1)).tolist()) == set(range(32))


def test_a_causal_one_is_for_causal_models_only():
    assert T5(2, causal=True).objectives == {"causal"}
    assert T5(2, causal=False).objectives == {"causal", "bidirectional"}


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("n_heads", "options", "message"),
    [
        (0, {"causal": True}, "n_heads is 0; it must be a whole number of at least 1"),
        (2.0, {"causal": True}, "n_heads is 2.0"),
        (
            2,
            {"causal": True, "n_buckets": 1},
            "n_buckets is 1; it must be at least 2, in a bidirectional model at least 4",
        ),
        (2, {"causal": False, "n_buckets": 2}, "n_buckets is 2; it must be"),
        (2, {"causal": False, "n_buckets": 33}, "n_buckets is 33; it must be at least 2, in a bidirectional model"),
        (2, {"causal": True, "max_distance": 16}, "max_distance is 16; with 32 buckets it must be above 16"),
        (2, {"causal": False, "max_distance": 8}, "max_distance is 8; with 32 buckets it must be above 8"),
        (2, {"causal": True, "n_buckets": 32.0}, "n_buckets is 32.0"),
        (2, {"causal": True, "max_distance": 128.0}, "max_distance is 128.0"),
    ],
    ids=str,
)
def test_a_named_error_in_one_line(n_heads, options, message):
    with pytest.raises(EncodingInputError) as error:
        T5(n_heads, **options)
    assert message in str(error.value) and "\n" not in str(error.value)
