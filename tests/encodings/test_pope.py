"""PoPE: its logits by the formula, what they depend on, and attention with queries and keys twice as wide as values."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from small_schemes import build, vectors
from transformers import LlamaConfig, LlamaModel

from posembed import scheme
from posembed.encodings import PoPE
from posembed.errors import EncodingInputError
from posembed.models import MultiHeadAttention, attend, use_scheme

D_HEAD, N_HEADS = 8, 2
# Sums of a few products in float64, of numbers around one; an angle of 1,000 radians leaves three digits fewer.
EXACT, FAR = {"rtol": 0, "atol": 1e-12}, {"rtol": 0, "atol": 1e-11}


def drawn(n=6, *, heads=N_HEADS, seed=0):
    """Queries and keys in float64."""
    return [vectors(1, heads, n, D_HEAD, seed=seed + k, dtype=torch.float64) for k in range(2)]


def made(**options):
    """A scheme whose phases are drawn between its bounds, in float64."""
    one = PoPE(D_HEAD, N_HEADS, **options).double()
    one.delta.data = -6 * torch.rand(N_HEADS, D_HEAD, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return one


def products(one, q, k, at, keys_at):
    return one.rotate(q, at) @ one.rotate_keys(k, keys_at).mT


def softplus(x):
    return math.log1p(math.exp(x))


@torch.no_grad()
def by_the_formula(q, k, at, keys_at, delta, base):
    """Every sum of columns by itself."""
    found = torch.empty(*q.shape[:3], k.shape[2], dtype=torch.float64)
    for b, h, i, j in itertools.product(*map(range, found.shape)):
        found[b, h, i, j] = sum(
            softplus(float(q[b, h, i, c]))
            * softplus(float(k[b, h, j, c]))
            * math.cos(float(keys_at[j] - at[i]) * base ** (-c / D_HEAD) + float(delta[h, c]))
            for c in range(D_HEAD)
        )
    return found


@pytest.mark.parametrize("base", [100.0, 10000.0])
def test_products_are_the_formula(base):
    (q, k), one = drawn(), made(base=base)
    at, keys_at = torch.tensor([5, 6, 7, 40, 2, 0]), torch.tensor([0, 3, 6, 41, 900, 7])
    expected = by_the_formula(q, k, at, keys_at, one.delta, base)
    torch.testing.assert_close(products(one, q, k, at, keys_at), expected, **EXACT)


def test_attention_is_that_of_the_formula_with_the_scale_of_the_head_before():
    (q, k), one, at = drawn(), made(), torch.arange(6)
    v = vectors(1, N_HEADS, 6, D_HEAD, seed=7, dtype=torch.float64)
    logits = by_the_formula(q, k, at, at, one.delta, 10000.0) / math.sqrt(D_HEAD)
    expected = logits.masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf).softmax(-1) @ v
    where = {"positions": at, "key_positions": at}
    ours = attend(one.rotate(q, at), one.rotate_keys(k, at), v, causal=True, scheme=one, **where)
    torch.testing.assert_close(ours, expected, **EXACT)
    x = vectors(1, 6, 16, dtype=torch.float64)
    layers = [MultiHeadAttention(16, N_HEADS, one, causal=True, logit_scale=each).double() for each in (None, 8**-0.5)]
    layers[1].load_state_dict(layers[0].state_dict())
    torch.testing.assert_close(layers[0](x), layers[1](x), **EXACT)


def test_equal_offsets_give_equal_products():
    (q, k), one, at = drawn(), made(), torch.arange(6)
    near = products(one, q, k, at, at)
    torch.testing.assert_close(products(one, q, k, at + 1000, at + 1000), near, **FAR)
    assert not torch.allclose(products(one, q, k, at + 1, at), near)


def test_without_frequencies_and_phases_it_is_attention_of_softplus():
    (q, k), one = drawn(), PoPE(D_HEAD, N_HEADS).double()
    one.frequencies = torch.zeros(D_HEAD, dtype=torch.float64)
    at, keys_at = torch.tensor([5, 0, 7, 40, 2, 0]), torch.arange(6)
    torch.testing.assert_close(products(one, q, k, at, keys_at), F.softplus(q) @ F.softplus(k).mT, **EXACT)


def test_phases_are_held_between_their_bounds_where_they_are_read():
    (q, k), one, at = drawn(), made(), torch.arange(6)
    ends = {}
    for delta in (-9.0, -2 * math.pi, 0.0, 1.0):
        one.delta.data.fill_(delta)
        ends[delta] = products(one, q, k, at, at)
    for delta, end in ((-9.0, -2 * math.pi), (1.0, 0.0), (-2 * math.pi, 0.0)):  # a whole turn is none
        torch.testing.assert_close(ends[delta], ends[end], **EXACT)
    assert PoPE(8, 2).delta.shape == (2, 8) and not PoPE(8, 2).delta.any()


def test_a_magnitude_is_that_of_every_position():
    one, (_, k) = build("pope").double(), drawn()
    cos, sin = one.rotate_keys(k, torch.arange(6)).chunk(2, -1)
    torch.testing.assert_close(torch.hypot(cos, sin), F.softplus(k), **EXACT)
    for column, speed in enumerate(10000.0 ** (-torch.arange(D_HEAD).double() / D_HEAD)):
        turned = torch.atan2(sin[..., column], cos[..., column])[..., :3]  # before half a turn
        torch.testing.assert_close(turned, (torch.arange(3) * speed).expand_as(turned), **EXACT)


@pytest.mark.parametrize("name", ["alibi+pope", "pope+scaled_logits", "scaled_logits+pope", "learned+pope"])
def test_in_a_sum_it_turns_first(name):
    q, k = drawn()
    both = scheme(name, d_model=16, n_heads=N_HEADS, n_positions=9, causal=True).double()
    parts = {type(part).__name__: part for part in both.parts}
    expected, at = parts["PoPE"].rotate(q, torch.arange(6)), torch.arange(6)
    expected = parts["ScaledLogits"].rotate(expected, at) if "ScaledLogits" in parts else expected
    assert both.widens == 2 and torch.equal(both.rotate(q, at), expected)
    assert torch.equal(both.rotate_keys(k, at), parts["PoPE"].rotate_keys(k, at))


@pytest.mark.parametrize("name", ["rope+pope", "pope+xpos", "pope+cope", "shaw+pope"])
def test_beside_what_reads_the_width_of_a_head_it_is_refused(name):
    with pytest.raises(EncodingInputError, match="is made for the width of a head; join it with schemes that are not"):
        scheme(name, d_model=16, n_heads=2, causal=True)


def test_each_query_head_of_a_group_has_its_own_phases():
    """As with the keys repeated, one for each query head, which then have its phases."""
    (q, _), (_, k), one, at = drawn(heads=4), drawn(heads=2), PoPE(D_HEAD, 4).double(), torch.arange(6)
    one.delta.data = -6 * torch.rand(4, D_HEAD, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    each = k.repeat_interleave(2, 1)
    expected = by_the_formula(q, each, at, at, one.delta, 10000.0)
    keys = one.rotate_keys(k, at).repeat_interleave(2, 1)
    torch.testing.assert_close(one.rotate(q, at) @ keys.mT, expected, **EXACT)


def test_a_llama_with_fewer_key_heads_attends_by_the_formula():
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 9}
    config = LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=9)
    torch.manual_seed(0)
    model, ids = LlamaModel(config).double().eval(), torch.tensor([[3, 1, 4, 1, 5, 2]])
    one, layer = use_scheme(model, "pope").scheme.layer(0), model.layers[0]
    one.delta.data.uniform_(-6, 0)
    (weights,) = model(ids, output_attentions=True).attentions
    x = layer.input_layernorm(model.embed_tokens(ids))
    q, k = (
        each(x).unflatten(-1, (-1, D_HEAD)).transpose(1, 2) for each in (layer.self_attn.q_proj, layer.self_attn.k_proj)
    )
    at = torch.arange(6)
    logits = by_the_formula(q, k.repeat_interleave(2, 1), at, at, one.delta, 10000.0) / math.sqrt(D_HEAD)
    expected = logits.masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf).softmax(-1)
    torch.testing.assert_close(weights, expected, **EXACT)
