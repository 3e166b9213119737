"""The Forgetting Transformer against loops over every query and key, ALiBi, and attention whose weights are gated."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import ALiBi, Forgetting
from posembed.models import KeyValueCache, MultiHeadAttention


def made(n_heads=2, dtype=torch.float64):
    one = Forgetting(4, n_heads).to(dtype)
    one.gate.weight.data, one.gate.bias.data = vectors(n_heads, 4, dtype=dtype), vectors(n_heads, seed=7, dtype=dtype)
    return one


def causal(n_queries, n_keys):
    """The queries are the last of the keys."""
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)


def bias_of(one, x, visible):
    k, at = torch.zeros(len(x), one.n_heads, x.shape[1], 4), torch.arange(x.shape[1])
    q, its = k[:, :, -visible.shape[-2] :], at[-visible.shape[-2] :]
    return one.bias(q, k, its, at, visible=visible, gates=one.gates(x))


def by_loops(one, x, visible):
    """The paper's formulas, entry by entry: f_t = sigmoid(w . x_t + b), and the log of their product from j + 1 on."""
    batch, n_keys, _ = x.shape
    bias = torch.zeros(batch, one.n_heads, visible.shape[-2], n_keys, dtype=x.dtype)
    for b, h, i, j in itertools.product(*map(range, bias.shape)):
        product = 1.0
        for t in range(j + 1, n_keys):
            if visible.expand_as(bias)[b, h, i, t]:
                product /= 1 + math.exp(-(one.gate.weight[h] @ x[b, t] + one.gate.bias[h]).item())
        bias[b, h, i, j] = math.log(product)
    return bias


@given(n_queries=st.integers(1, 4), before=st.integers(0, 3), n_heads=st.integers(1, 3))
def test_it_is_the_papers_formula(n_queries, before, n_heads):
    x, visible = vectors(2, n_queries + before, 4, dtype=torch.float64), causal(n_queries, n_queries + before)
    one = made(n_heads)
    torch.testing.assert_close(bias_of(one, x, visible), by_loops(one, x, visible), rtol=0, atol=1e-12)


def test_what_a_query_may_not_see_is_not_forgotten_for():
    """Padding, and texts that are packed: as the texts alone."""
    x, one = vectors(2, 6, 4, dtype=torch.float64), made()
    visible = causal(6, 6) & torch.tensor([[1, 0, 1, 1, 0, 1], [1, 1, 1, 0, 1, 1]], dtype=torch.bool)[:, None, None]
    torch.testing.assert_close(bias_of(one, x, visible), by_loops(one, x, visible), rtol=0, atol=1e-12)
    alone, kept = x[:1, [0, 2, 3, 5]], torch.tensor([0, 2, 3, 5])
    expected = bias_of(one, alone, causal(4, 4)).tril()
    torch.testing.assert_close(bias_of(one, x, visible)[:1, :, kept][..., kept].tril(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_heads", [1, 4, 12])
def test_gates_that_are_all_alike_are_alibi(n_heads):
    """With log f = -m the bias falls by m at each step, whatever the tokens say."""
    one, alibi, at = Forgetting(4, n_heads), ALiBi(n_heads), torch.arange(9)
    one.gate.weight.data.zero_()
    one.gate.bias.data = -torch.log(torch.expm1(alibi.slopes.float()))
    q = torch.zeros(2, n_heads, 9, 4)
    ours = bias_of(one, vectors(2, 9, 4), causal(9, 9)).tril()
    torch.testing.assert_close(ours, alibi.bias(q, q, at, at).tril().expand_as(ours), rtol=1e-5, atol=1e-6)


def test_a_gate_is_a_factor_on_the_weight_of_every_key_before():
    """Weights are exp(q k) times the product of gates, divided by their sum: no softmax of a bias."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 2, Forgetting(8, 2), causal=True).double().eval()
    torch.nn.init.normal_(layer.position_scheme.gate.weight)
    x = vectors(1, 5, 8, dtype=torch.float64)
    q, k, v = (each(x).unflatten(-1, (2, 4)).transpose(1, 2) for each in (layer.query, layer.key, layer.value))
    kept = layer.position_scheme.gate(x).sigmoid().mT  # "batch heads seq"
    weights = torch.zeros(1, 2, 5, 5, dtype=torch.float64)
    for i, j in itertools.product(range(5), range(5)):
        if j <= i:
            weights[..., i, j] = (q[..., i, :] * k[..., j, :] / 2).sum(-1).exp() * kept[..., j + 1 : i + 1].prod(-1)
    mixed = (weights / weights.sum(-1, keepdim=True)) @ v
    expected = layer.output(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)


def test_a_token_that_forgets_all_is_a_new_start():
    """As if what stands before it were another text."""
    layer = MultiHeadAttention(8, 2, Forgetting(8, 2), causal=True).double().eval()
    gate = layer.position_scheme.gate
    gate.weight.data.zero_()
    gate.weight.data[:, 0], gate.bias.data[:] = -1000.0, 20.0
    x = vectors(1, 7, 8, dtype=torch.float64)
    x[..., 0] = 0.0
    x[:, 3, 0] = 1.0
    torch.testing.assert_close(layer(x)[:, 3:], layer(x[:, 3:]), rtol=0, atol=1e-12)
    assert not torch.allclose(layer(x)[:, 2], layer(x[:, 2:])[:, 0])


def test_positions_given_from_outside_do_not_matter():
    layer, x = MultiHeadAttention(8, 2, Forgetting(8, 2), causal=True).eval(), vectors(1, 5, 8)
    assert torch.equal(layer(x, torch.tensor([9, 2, 7, 7, 100])), layer(x))


def test_a_cache_keeps_gates_beside_keys():
    layer, x, cache = MultiHeadAttention(8, 2, Forgetting(8, 2), causal=True).eval(), vectors(2, 6, 8), KeyValueCache()
    torch.nn.init.normal_(layer.position_scheme.gate.weight)
    steps = torch.cat([layer(x[:, :2], cache=cache), *(layer(x[:, [i]], cache=cache) for i in range(2, 6))], 1)
    torch.testing.assert_close(steps, layer(x), rtol=0, atol=1e-6)
    other = x.clone()
    other[:, 3] += 1.0  # a gate in the middle
    assert not torch.allclose(layer(other)[:, 5], layer(x)[:, 5], atol=1e-4)


def test_at_first_half_is_kept():
    one = Forgetting(768, 12)
    kept = one.gates(torch.randn(2, 50, 768)).exp()
    assert kept.shape == (2, 12, 50) and abs(kept.mean() - 0.5) < 0.05


@pytest.mark.parametrize("autocast", [False, True], ids=["cast", "autocast"])
def test_many_gates_are_summed_in_float32(autocast):
    one, x = made(dtype=torch.bfloat16), vectors(1, 2000, 4).bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found = bias_of(one, x, causal(1, 2000))
    assert found.dtype == torch.float32
    exact = bias_of(one.double(), x.double(), causal(1, 2000))
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-4)
