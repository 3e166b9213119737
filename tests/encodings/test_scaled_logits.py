"""Scalable-softmax against powers of n, attention without it, and the largest weight among ever more keys."""

import math

import pytest
import torch
from small_schemes import vectors

from posembed.encodings import ALiBi, RoPE, ScaledLogits, Shaw
from posembed.models import attend
from posembed.models.attention import rotated


def weights(one, q, k, at):
    """Attention weights: what attention makes of the rows of the identity."""
    eye = torch.eye(k.shape[2], dtype=q.dtype).expand(*k.shape[:2], -1, -1)
    return attend(*rotated(one, q, k, at, at), eye, causal=True, scheme=one, positions=at, key_positions=at)


def drawn(seq):
    return vectors(2, 3, seq, 4, seed=1, dtype=torch.float64), vectors(2, 3, seq, 4, dtype=torch.float64)


def test_it_is_the_papers_formula():
    """n^(s z) for each of the n logits z of a query, divided by their sum."""
    (q, k), one, at = drawn(6), ScaledLogits(3).double(), torch.arange(6)
    one.scale.data = torch.tensor([0.2, 0.43, 1.5], dtype=torch.float64)
    logits = q @ k.mT / 2
    powers = torch.pow((at + 1.0)[:, None], one.scale.detach()[:, None, None] * logits).tril()
    expected = powers / powers.sum(-1, keepdim=True)
    torch.testing.assert_close(weights(one, q, k, at), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [2, 10, 500])
def test_with_a_scale_of_one_over_log_n_the_query_of_n_keys_stays_as_it_is(n):
    one, x = ScaledLogits(3, start=1 / math.log(n)), vectors(1, 3, 1, 4)
    torch.testing.assert_close(one.rotate(x, torch.tensor([n - 1])), x, rtol=1e-6, atol=0)
    assert torch.equal(one.rotate_keys(x, torch.tensor([n - 1])), x)


def test_the_largest_weight_does_not_fade():
    """One logit of 3 among zeros: without the scale its weight goes to nothing, with it to one once s times 3 is more
    than 1."""
    one = ScaledLogits(1).double()
    largest = {}
    for n in (10, 100, 1000):
        k = torch.zeros(1, 1, n, 4, dtype=torch.float64)
        k[..., 0, 0] = 6.0  # divided by the root of the head's width, 2
        q = torch.zeros_like(k)
        q[..., 0] = 1.0
        unscaled = attend(q, k, torch.eye(n).double()[None, None], causal=True)
        largest[n] = float(unscaled[0, 0, -1, 0]), float(weights(one, q, k, torch.arange(n)).detach()[0, 0, -1, 0])
    assert largest[10][0] > 0.6 and largest[1000][0] < 0.03
    assert largest[10][1] < largest[100][1] < largest[1000][1] and largest[10][1] > 0.6


def test_it_composes_with_a_rotation_in_any_order():
    (q, _), at = drawn(5), torch.arange(5) + 3
    one, rope = ScaledLogits(3).double(), RoPE(4)
    for made in (one + rope, rope + one):
        torch.testing.assert_close(made.rotate(q, at), rope.rotate(one.rotate(q, at), at), rtol=0, atol=1e-12)
        assert torch.equal(made.rotate_keys(q, at), rope.rotate(q, at))


def test_shaws_part_of_a_logit_is_scaled_and_alibis_is_not():
    (q, k), at, one = drawn(5), torch.arange(5), ScaledLogits(3).double()
    factor = one.scale.detach()[:, None, None] * (at + 1.0).double().log()[:, None]
    shaw, alibi = Shaw(4, std=1.0).double(), ALiBi(3)
    turned = (one + shaw).rotate(q, at)
    scaled = (one + shaw).bias(turned, k, at, at)
    torch.testing.assert_close(scaled, factor * shaw.bias(q, k, at, at), rtol=0, atol=1e-12)
    assert torch.equal((one + alibi).bias(turned, k, at, at), alibi.bias(q, k, at, at))


def test_a_text_that_is_moved_has_other_logits():
    """Keys are counted from position 0: where a text begins elsewhere its queries count those before it too."""
    (q, k), one = drawn(5), ScaledLogits(3).double()
    at = torch.arange(5)
    assert not torch.allclose(weights(one, q, k, at), weights(one, q, k, at + 100), atol=1e-3)
