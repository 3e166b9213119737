"""One attention for every scheme: against whole matrices, for whole texts, padded, packed and cached ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from models.reference import CASES, D_HEAD, N_HEADS, ONE_WAY, attention, gates, made
from refused.models import Given

from posembed import PositionScheme
from posembed.errors import ModelInputError
from posembed.models import attend
from posembed.models.attention import rotated

# Sums of at most a few hundred products in float64, of numbers around one.
EXACT = {"rtol": 0, "atol": 1e-12}
# The same in float32.
FLOAT32 = {"rtol": 0, "atol": 5e-6}


def drawn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def inputs(n_queries, n_keys=None, batch=2, n_kv_heads=N_HEADS, dtype=torch.float64):
    n_keys = n_queries if n_keys is None else n_keys
    q = drawn(batch, N_HEADS, n_queries, D_HEAD, seed=1, dtype=dtype)
    k = drawn(batch, n_kv_heads, n_keys, D_HEAD, seed=2, dtype=dtype)
    v = drawn(batch, n_kv_heads, n_keys, D_HEAD, seed=3, dtype=dtype)
    return q, k, v


def ours_and_the_formulas(one, parts, causal, key_positions=None, attention_mask=None, scale=None):
    """What attend makes of queries, keys and values, and what the formula does; queries are the last of the keys."""
    q, k, v = parts
    key_positions = torch.arange(k.shape[2]) if key_positions is None else key_positions
    positions, given = key_positions[..., k.shape[2] - q.shape[2] :], {"attention_mask": attention_mask, "scale": scale}
    given["gates"] = gates(one, k.shape[0], k.shape[2], k.dtype)
    ours = attend(q, k, v, scheme=one, positions=positions, key_positions=key_positions, causal=causal, **given)
    return ours, attention(q, k, v, one, positions, key_positions, causal, attention_mask, scale)


def allowed(*shape):
    return drawn(*shape, seed=5) > -0.5


# The sizes of the inputs, and what else attention is given.
ASKED = {
    "one token": ({"n_queries": 1}, {}),
    "a text": ({"n_queries": 7}, {}),
    "a longer text": ({"n_queries": 40}, {}),
    "a token behind others": ({"n_queries": 1, "n_keys": 9}, {}),
    "tokens behind others": ({"n_queries": 3, "n_keys": 9}, {}),
    "one key head": ({"n_queries": 13, "n_kv_heads": 1}, {}),
    "two key heads": ({"n_queries": 13, "n_kv_heads": 2}, {}),
    "positions of each row": (
        {"n_queries": 9},
        {"key_positions": torch.stack([torch.arange(9), torch.tensor([0, 0, 0, 1, 2, 3, 4, 5, 6])])},
    ),
    # T5 does not divide by the root of the head width.
    "another scale": ({"n_queries": 7}, {"scale": 1.0}),
    "a mask of keys": ({"n_queries": 11}, {"attention_mask": allowed(2, 11)}),
    "a mask of integers": ({"n_queries": 11}, {"attention_mask": allowed(2, 11).long()}),
    "a mask of pairs": ({"n_queries": 11}, {"attention_mask": allowed(2, 11, 11)}),
    "a mask for all texts": ({"n_queries": 11}, {"attention_mask": allowed(1, 11, 11)}),
    "a mask for each head": ({"n_queries": 11}, {"attention_mask": allowed(2, N_HEADS, 11, 11)}),
    "a mask of several blocks": ({"n_queries": 600}, {"attention_mask": allowed(2, 600)}),
}


@pytest.mark.parametrize(("name", "causal"), CASES)
@pytest.mark.parametrize("asked", ASKED)
def test_it_is_the_formula(name, causal, asked):
    sizes, given = ASKED[asked]
    ours, expected = ours_and_the_formulas(made(name, causal), inputs(**sizes), causal, **given)
    torch.testing.assert_close(ours, expected, **EXACT)


@pytest.mark.parametrize("name", ["nopos", "t5", "alibi", "shaw", "cope", "fire", "forgetting"])
@settings(max_examples=15)
@given(data=st.data())
def test_it_is_the_formula_for_any_length_block_and_position(name, data):
    """Long enough for several blocks of queries, with positions that jump or begin anywhere."""
    causal = name in ONE_WAY or data.draw(st.booleans())
    n_keys = data.draw(st.integers(1, 700))
    parts = inputs(data.draw(st.integers(1, n_keys)), n_keys, batch=1)
    steps = data.draw(st.sampled_from([torch.ones(n_keys, dtype=torch.long), torch.arange(n_keys) % 3]))
    key_positions = steps.cumsum(0) + data.draw(st.integers(0, 1000))
    ours, expected = ours_and_the_formulas(made(name, causal), parts, causal, key_positions)
    torch.testing.assert_close(ours, expected, **EXACT)


@pytest.mark.parametrize(("name", "causal"), CASES)
@pytest.mark.parametrize("length", [9, 600])
def test_gradients_are_those_of_the_formula(name, causal, length):
    """For queries, keys, values and every parameter of the scheme."""
    one, parts = made(name, causal), [each.requires_grad_() for each in inputs(length, batch=1)]
    target, wanted = drawn(1, N_HEADS, length, D_HEAD, seed=4), [*parts, *one.parameters()]
    found = [
        torch.autograd.grad((out * target).sum(), wanted, allow_unused=True)
        for out in ours_and_the_formulas(one, parts, causal)
    ]
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            # A parameter's gradient adds up the logits of all pairs.
            torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["nopos", "t5", "alibi", "shaw", "cope", "rope"])
def test_a_query_that_sees_nothing_gets_zeros_and_harms_no_gradient(name):
    """As the first, padded, rows of a left-padded batch do."""
    one, (q, k, v), positions = made(name, True), inputs(9), torch.arange(9)
    allowed = torch.ones(2, 9, dtype=torch.bool)
    allowed[0, :4] = False
    parts = [each.requires_grad_() for each in (q, k, v)]
    ours = attend(*parts, scheme=one, positions=positions, key_positions=positions, causal=True, attention_mask=allowed)
    assert bool((ours[0, :, :4] == 0).all())
    gradients = torch.autograd.grad(ours.sum(), [*parts, *one.parameters()], allow_unused=True)
    assert all(bool(torch.isfinite(each).all()) for each in gradients if each is not None)


@pytest.mark.parametrize(("name", "causal"), CASES)
def test_float32_is_as_exact_as_float32_can_be(name, causal):
    one, positions = made(name, causal), torch.arange(300)
    exact = attention(*inputs(300), one, positions, positions, causal)
    single = one.to(torch.float32)
    at = {"positions": positions, "key_positions": positions, "gates": gates(one, 2, 300, torch.float32)}
    ours = attend(*inputs(300, dtype=torch.float32), scheme=single, causal=causal, **at)
    torch.testing.assert_close(ours.double(), exact, **FLOAT32)


@pytest.mark.parametrize("name", ["t5", "alibi", "shaw", "kerple", "cope", "rope+alibi"])
def test_bfloat16_does_not_round_the_bias(name):
    """A bias of hundreds has steps of two in bfloat16; kept in float32 the error stays that of the inputs."""
    one, positions = made(name, True), torch.arange(2000, 2300)
    q, k, v = inputs(300, dtype=torch.bfloat16)
    exact = attention(q.double(), k.double(), v.double(), one.double(), positions, positions, True)
    ours = attend(q, k, v, scheme=one, positions=positions, key_positions=positions, causal=True)
    assert ours.dtype == torch.bfloat16
    # Three digits of weights and values, and of the queries' products inside Shaw's bias.
    torch.testing.assert_close(ours.double(), exact, rtol=0, atol=3e-2)


@pytest.mark.parametrize("name", [name for name, causal in CASES if causal])
def test_a_rank_attends_with_its_queries_to_the_keys_of_all(name):
    """Context parallelism: queries that are not the last of the keys, and keys in another order."""
    one, (q, k, v), at = made(name, True), inputs(8), torch.arange(8)
    read = gates(one, 2, 8)
    expected = attention(q, k, v, one, at, at, True)
    mine, order = torch.tensor([0, 1, 6, 7]), torch.tensor([0, 1, 6, 7, 2, 3, 4, 5])
    given = {"positions": mine, "key_positions": order, "gates": None if read is None else read[..., order]}
    ours = attend(q[:, :, mine], k[:, :, order], v[:, :, order], causal="positions", scheme=one, **given)
    torch.testing.assert_close(ours, expected[:, :, mine], **EXACT)
    # Without a scheme, and behind a mask of keys.
    seen = torch.tensor([[1, 1, 0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 0, 1]], dtype=torch.bool)
    plain = attend(q, k, v, causal=True, attention_mask=seen)
    how = {"positions": mine, "key_positions": order, "attention_mask": seen[:, order]}
    mixed = attend(q[:, :, mine], k[:, :, order], v[:, :, order], causal="positions", **how)
    torch.testing.assert_close(mixed, plain[:, :, mine], **EXACT)


def test_a_bias_by_offset_is_never_a_whole_matrix():
    """4,000 queries by 4,000 keys and four heads would be 256 MB; no tensor that is made comes near."""
    one, positions = made("alibi", True, dtype=torch.float32), torch.arange(4000)
    q, k, v = inputs(4000, batch=1, dtype=torch.float32)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        attend(q, k, v, scheme=one, positions=positions, key_positions=positions, causal=True)
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert largest < 4000 * 4000


def test_neither_are_weights_where_queries_are_wider_than_values():
    one, (q, k, v) = made("pope", True, dtype=torch.float32), inputs(4000, batch=1, dtype=torch.float32)
    q, k = rotated(one, q, k, *[torch.arange(4000)] * 2)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        attend(q.detach(), k, v, scheme=one, causal=True)
    assert max(event.self_cpu_memory_usage for event in profile.events()) < 4000 * 4000


@pytest.mark.bad_input
def test_a_trace_would_fix_the_length_and_is_refused():
    q = torch.zeros(1, 2, 3, 4)
    with pytest.raises(ModelInputError, match="torch.jit.trace fixes the length that it sees; use torch.export"):
        torch.jit.trace(lambda q: attend(q, q, q, causal=True), (q,), check_trace=False)


class ForAllHeads(PositionScheme):
    """One bias for all heads, made of positions."""

    def bias(self, q, k, positions, key_positions):
        return (key_positions - positions[:, None]).abs().sqrt().neg()[None].double()


class NoBiasToday(PositionScheme):
    """A bias that may be left out."""

    def bias(self, q, k, positions, key_positions):
        return None


@pytest.mark.parametrize("one", [ForAllHeads(), NoBiasToday()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", [9, 300])
def test_a_bias_may_be_one_for_all_heads_or_none(one, causal, length):
    ours, expected = ours_and_the_formulas(one, inputs(length), causal)
    torch.testing.assert_close(ours, expected, **EXACT)


def test_dropout_drops_and_keeps_the_mean():
    one, (q, k, v), positions = made("alibi", True), inputs(50), torch.arange(50)
    torch.manual_seed(0)
    kept = attend(q, k, v, scheme=one, positions=positions, key_positions=positions, causal=True)
    runs = torch.stack(
        [
            attend(q, k, v, scheme=one, positions=positions, key_positions=positions, causal=True, dropout=0.5)
            for _ in range(400)
        ]
    )
    assert not torch.equal(runs[0], runs[1])
    # The mean of 400 runs is off by a twentieth of one run's spread.
    assert float((runs.mean(0) - kept).abs().mean()) < 0.1 * float(runs.std(0).mean())


@pytest.mark.parametrize(("heads", "queries", "keys"), [(4, 5, 5), (1, 5, 5), (4, 1, 5), (4, 5, 1)])
def test_one_number_may_stand_for_several(heads, queries, keys):
    q, k, v = inputs(5, dtype=torch.float32)
    at, few, all_of_them = torch.arange(5), Given((heads, queries, keys)), Given((4, 5, 5))
    few.given = torch.randn(few.given.shape, generator=torch.Generator().manual_seed(0))
    all_of_them.given = few.given.expand(4, 5, 5)
    found = [attend(q, k, v, scheme=s, positions=at, key_positions=at, causal=True) for s in (few, all_of_them)]
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", ["alibi", "t5", "shaw"])
def test_many_queries_may_meet_few_keys(name):
    one, (q, _, _), (_, k, v) = made(name, False), inputs(600), inputs(9)
    places = {"positions": torch.arange(600), "key_positions": torch.arange(9)}
    ours = attend(q, k, v, scheme=one, causal=False, **places)
    torch.testing.assert_close(ours, attention(q, k, v, one, causal=False, **places), **EXACT)
