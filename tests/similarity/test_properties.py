import math
import sys
from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from small_models import build

from posembed import scheme
from posembed.errors import PositionTableError, PropertiesInputError
from posembed.similarity import Properties, properties, properties_of_matrix
from posembed.tables import load_table

NAN, INF = math.nan, math.inf
FORMATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_distance(n):
    at = torch.arange(n, dtype=torch.float64)
    return -(at[:, None] - at).abs()


def toeplitz(by_offset):
    """From the numbers of the offsets 1 - n to n - 1."""
    at = torch.arange((len(by_offset) + 1) // 2)
    return by_offset[at - at[:, None] + len(at) - 1]


def same(one, other, tolerance=0.0):
    assert asdict(one) == pytest.approx(asdict(other), rel=0, abs=tolerance, nan_ok=True)


# The definitions as plain loops, entry by entry.


def plain_monotonicity(matrix, max_offset=None, past_only=False):
    n, points, pairs = len(matrix), 0.0, 0
    for i in range(n):
        for side in (-1,) if past_only else (-1, 1):
            for near in range(1, n):
                for far in range(near + 1, (max_offset or n) + 1):
                    if 0 <= i + side * far < n:
                        a, b = matrix[i][i + side * near], matrix[i][i + side * far]
                        points += 1.0 if a > b else 0.5 if a == b else 0.0
                        pairs += 1
    return points / pairs if pairs else NAN


def plain_invariance(matrix, past_only=False):
    n = len(matrix)
    diagonals = {
        offset: [matrix[i][i + offset] for i in range(n) if 0 <= i + offset < n]
        for offset in range(1 - n, 0 if past_only else n)
        if offset
    }
    everything = [each for diagonal in diagonals.values() for each in diagonal]
    if not everything or len(set(everything)) == 1:
        return NAN
    spread = lambda numbers: sum((each - sum(numbers) / len(numbers)) ** 2 for each in numbers)
    return 1 - sum(map(spread, diagonals.values())) / spread(everything)


def plain_symmetry(matrix):
    n = len(matrix)
    mean = sum(map(sum, matrix)) / n**2
    total = sum((matrix[i][j] - mean) ** 2 for i in range(n) for j in range(n))
    if len({each for row in matrix for each in row}) == 1:
        return NAN
    return 1 - sum((matrix[i][j] - matrix[j][i]) ** 2 for i in range(n) for j in range(n)) / (4 * total)


def plain_locality(matrix):
    n = len(matrix)
    return sum(matrix[i][j] / 2 ** abs(i - j) for i in range(n) for j in range(n)) / n


# Few different numbers, so that there are ties of every kind.
sizes = st.integers(1, 9)
numbers = st.integers(-2, 2) | st.sampled_from([0.1, -0.7, 1e-9, 1e9])
matrices = sizes.flatmap(lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=n, max_size=n))
offsets = st.none() | st.integers(1, 11)


@given(matrices, offsets)
def test_the_three_are_those_of_plain_loops(matrix, max_offset):
    # The future of a causal map is looked at below.
    matrix[0][-1] = matrix[0][-1] or 1
    found = properties_of_matrix(torch.tensor(matrix, dtype=torch.float64), max_offset=max_offset)
    assert found.monotonicity == pytest.approx(plain_monotonicity(matrix, max_offset), rel=1e-14, nan_ok=True)
    assert found.translation_invariance == pytest.approx(plain_invariance(matrix), abs=1e-13, nan_ok=True)
    assert found.symmetry == pytest.approx(plain_symmetry(matrix), abs=1e-13, nan_ok=True)


@given(matrices, offsets, st.sampled_from([0.0, -INF]))
def test_causal_maps_are_measured_on_the_past(matrix, max_offset, future):
    n = len(matrix)
    causal = [[matrix[i][j] if j <= i else future for j in range(n)] for i in range(n)]
    causal[-1][0] = causal[-1][0] or 1
    if n == 1:
        return
    found = properties_of_matrix(torch.tensor(causal, dtype=torch.float64), max_offset=max_offset)
    wanted = plain_monotonicity(causal, max_offset, past_only=True)
    assert found.monotonicity == pytest.approx(wanted, rel=1e-14, nan_ok=True)
    invariance = plain_invariance(causal, past_only=True)
    assert found.translation_invariance == pytest.approx(invariance, abs=1e-13, nan_ok=True)
    assert math.isnan(found.symmetry)


def test_what_a_mask_hides_makes_no_map_relative():
    """An even spread over the past and one of ALiBi's kind; with the future as zeros the first came out at one half."""
    at = torch.arange(64.0)
    behind = at[:, None] - at
    for slope, wanted in ((0.0, 0.16), (0.5, 0.995)):
        attention = (-slope * behind).masked_fill(behind < 0, -INF).softmax(-1)
        assert properties_of_matrix(attention).translation_invariance == pytest.approx(wanted, abs=0.005)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 99))
def test_a_table_has_the_properties_of_its_dot_products(n, width, seed):
    """Of whole numbers, whose products are exact."""
    table = random(n, width, seed=seed).mul(2).round()
    found, wanted = properties(table), properties_of_matrix(table @ table.T)
    # Its products may happen to look like those of a causal map, as the identity does not.
    if not torch.equal((table @ table.T).tril(), table @ table.T):
        same(found, wanted, 1e-12)


# What the numbers must be where mathematics knows them.


@pytest.mark.parametrize("constant", [0.0, 1e9])
def test_a_toeplitz_matrix_is_translation_invariant_exactly(constant):
    matrix = toeplitz(random(2 * 40 - 1) + constant)
    assert properties_of_matrix(matrix).translation_invariance == 1.0


@pytest.mark.parametrize("max_offset", [None, 3])
def test_what_leaves_the_order_and_the_shape_leaves_the_properties(max_offset):
    matrix = random(30, 30).mul(100).round()
    found = properties_of_matrix(matrix, max_offset=max_offset)
    for changed in (matrix + 7, 4 * matrix, 0.3 * matrix, matrix.flip(0, 1), 1e200 * matrix, 1e-200 * matrix):
        same(properties_of_matrix(changed, max_offset=max_offset), found, 1e-13)
    negated = properties_of_matrix(-matrix, max_offset=max_offset)
    assert negated.monotonicity == pytest.approx(1 - found.monotonicity, abs=1e-15)
    assert properties_of_matrix(matrix.T, max_offset=max_offset).symmetry == pytest.approx(found.symmetry, abs=1e-14)


WALK = random(300, 6).cumsum(0)
LONG = {
    "independent": random(300, 6) + 2,
    "walk": WALK,
    "equal": torch.full((300, 3), 0.7),
    "three rows": WALK[:3],
    "two rows in turn": WALK[:2].repeat(9, 1),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize(("max_offset", "similarity"), [(None, "dot"), (50, "cosine"), (2, "dot"), (1, "dot")])
def test_of_many_rows_what_is_sampled_is_near_and_the_rest_the_same(monkeypatch, name, max_offset, similarity):
    options = {"max_offset": max_offset, "similarity": similarity}
    whole = properties(LONG[name], **options)
    monkeypatch.setattr(sys.modules[properties.__module__], "MOST_ROWS", 2)
    monkeypatch.setattr(sys.modules[properties.__module__], "N_SIMILARITIES", 2**13)
    with pytest.warns(RuntimeWarning, match=f"of {len(LONG[name])} rows monotonicity is estimated"):
        sampled = properties(LONG[name], **options)
    # Four standard errors; of few rows it is all of them.
    off = 0.01 if len(LONG[name]) == 300 else 1e-12
    assert sampled.monotonicity == pytest.approx(whole.monotonicity, abs=off, nan_ok=True)
    same(replace(sampled, monotonicity=0.0), replace(whole, monotonicity=0.0), tolerance=1e-11)


def test_long_tables_need_no_matrix_of_all_their_similarities():
    """Of 65,536 rows it would have 34 GB."""
    at = torch.arange(65536, dtype=torch.float64)[:, None] * math.pi / 65536
    with pytest.warns(RuntimeWarning, match="of 65,536 rows"):
        same(properties(torch.cat([at.sin(), at.cos()], 1)), Properties(1.0, 1.0, 1.0, NAN), tolerance=1e-6)


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_every_format_is_computed_in_float64(dtype):
    matrix, table = random(20, 20).to(dtype), random(20, 6).to(dtype)
    same(properties_of_matrix(matrix), properties_of_matrix(matrix.double()))
    same(properties(table), properties(table.double()))
    if dtype != torch.bfloat16:
        same(properties_of_matrix(matrix.numpy()), properties_of_matrix(matrix))
        same(properties(table.numpy()), properties(table))


def test_cosine_is_the_dot_product_of_rows_of_norm_one():
    table = random(30, 6) * torch.logspace(-100, 100, 30, dtype=torch.float64)[:, None]
    unit = table / table.norm(dim=1, keepdim=True)
    same(properties(table, similarity="cosine"), properties(unit), 1e-12)


@pytest.mark.parametrize(
    ("max_offset", "property_of_it", "promised"),
    [(None, "translation_invariance", 0.801), (50, "monotonicity", 0.992)],
)
def test_gpt2s_table(gpt2_table, max_offset, property_of_it, promised):
    """The figures that the design promises."""
    found = properties(gpt2_table, max_offset=max_offset)
    assert getattr(found, property_of_it) == pytest.approx(promised, abs=0.002)


# Locality.


def softmax(n, seed=0):
    return random(n, n, seed=seed).softmax(-1)


@pytest.mark.parametrize("n", [1, 2, 17])
def test_locality_is_that_of_plain_loops(n):
    matrix = softmax(n)
    assert properties_of_matrix(matrix).locality == pytest.approx(plain_locality(matrix.tolist()), rel=1e-14)


@pytest.mark.parametrize("n", [8, 512])
@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_rows_sum_to_one_as_well_as_their_format_can(dtype, n):
    found, wanted = (properties_of_matrix(each).locality for each in (softmax(n).to(dtype), softmax(n)))
    assert found == pytest.approx(wanted, rel=2 * torch.finfo(dtype).eps)


@pytest.mark.parametrize(
    "matrix",
    [
        softmax(9) * 1.001,
        softmax(9) - torch.tensor([0.5, -0.5] + 7 * [0.0]),
        random(9, 9),
        softmax(9).masked_fill(torch.ones(9, 9).triu(1).bool(), -INF),
    ],
    ids=["sums above one", "a negative entry", "noise", "masked"],
)
def test_what_is_no_attention_map_has_no_locality(matrix):
    assert math.isnan(properties_of_matrix(matrix).locality)


# What is undefined, and what is rounding.


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
@pytest.mark.parametrize("value", [0.0, 0.1, -3e4])
def test_a_constant_matrix_has_ties_and_nothing_that_varies(value, dtype):
    same(properties_of_matrix(torch.full((7, 7), value, dtype=dtype)), Properties(0.5, NAN, NAN, NAN))


@given(st.integers(2, 40), st.integers(1, 300), st.integers(0, 999), st.sampled_from(["dot", "cosine"]))
def test_equal_rows_are_tied_whatever_the_rounding_of_their_products(n, width, seed, similarity):
    found = properties(random(1, width, seed=seed).expand(n, width), similarity=similarity)
    same(found, Properties(0.5 if n > 2 else NAN, NAN, NAN, NAN))


def test_groups_of_equal_rows_are_tied_whatever_the_rounding_of_their_products():
    """Rows a a a a b b b b ...: each side has ties inside a group, and the groups' order is that of exact numbers."""
    groups = torch.tensor([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [-1.0, 0.0]], dtype=torch.float64)
    exact = groups.repeat_interleave(4, 0)
    turned = exact @ torch.linalg.qr(random(300, 2)).Q.T
    assert properties(turned).monotonicity == properties_of_matrix(exact @ exact.T).monotonicity


@pytest.mark.parametrize("n_rows", [1, 2])
def test_one_or_two_rows_have_no_pair_of_offsets_and_at_most_one_similarity(n_rows):
    same(properties(random(n_rows, 4)), Properties(NAN, NAN, NAN if n_rows == 1 else 1.0, NAN))


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_the_last_digit_of_a_constant_is_no_variance(dtype):
    """A uniform map whose entries differ in their last digit, as rounding leaves it."""
    eps = torch.finfo(dtype).eps
    uniform = torch.full((8, 8), 1 / 8, dtype=dtype)
    uniform[::2, ::3] += eps / 8
    found = properties_of_matrix(uniform)
    assert math.isnan(found.translation_invariance) and math.isnan(found.symmetry)
    uniform[::2, ::3] += 16 * eps / 8
    assert not math.isnan(properties_of_matrix(uniform).translation_invariance)


# What is returned.


def test_locality_is_printed_where_it_is_defined():
    """It is asked of attention maps alone; a symmetry that is undefined is said to be so."""
    past, far = torch.ones(4, 4).tril().log(), "monotonicity 0.500, translation invariance"
    assert str(properties_of_matrix(past)) == f"{far} undefined, symmetry undefined"
    assert str(properties_of_matrix(past.softmax(1))).startswith(far)
    assert str(properties_of_matrix(past.softmax(1))).endswith("locality 0.701")


# What is refused.


def test_rows_are_chosen_and_the_others_need_not_be_finite():
    table = random(20, 4)
    table[3, 1] = NAN
    same(properties(table, rows=(5, 20)), properties(table[5:]), 1e-15)
    assert "row 3 of the table" in refused(PositionTableError, properties, table, rows=(2, 20))


@pytest.mark.parametrize("place", [(0, 1), (0, slice(1, None)), (4, 8), (7, 8)], ids=["entry", "row", "end", "last"])
def test_zeros_among_minus_infinities_are_a_bias_and_no_mask(place):
    """As in a prefix that every query sees, or in blocks: the future is open there, and its zeros count."""
    matrix = by_distance(9).masked_fill(torch.ones(9, 9).triu(1).bool(), -INF)
    matrix[place] = 0.0
    assert "minus infinity may only fill the whole future" in refused(PositionTableError, properties_of_matrix, matrix)


def test_heads_are_measured_one_by_one():
    maps = random(2, 3, 9, 9)
    for text, of_text in zip(maps, properties_of_matrix(maps, max_offset=4), strict=True):
        for matrix, head in zip(text, of_text, strict=True):
            same(head, properties_of_matrix(matrix, max_offset=4))
    assert len(properties_of_matrix(maps[0].numpy())) == 3


@pytest.mark.parametrize("name", ["alibi", "t5", "kerple"])
@pytest.mark.parametrize("causal", [True, False])
def test_a_bias_of_offsets_has_the_properties_of_its_matrix(name, causal):
    torch.manual_seed(0)
    one, at, q = scheme(name, n_heads=2, causal=causal), torch.arange(20), torch.zeros(1, 2, 20, 4)
    with torch.no_grad():
        bias = one.bias(q, q, at, at)
    if one.objectives == {"causal"}:
        bias = bias.masked_fill(torch.ones(20, 20).triu(1).bool(), -torch.inf)
    for head, matrix in zip(properties(one, n=20, max_offset=5), bias, strict=True):
        same(head, properties_of_matrix(matrix, max_offset=5))


@pytest.mark.parametrize("name", ["learned", "sinusoidal", "learnable_sinusoidal"])
def test_what_a_scheme_adds_has_the_properties_of_its_rows(name):
    one, at = scheme(name, d_model=8, n_positions=20), torch.arange(12)
    with torch.no_grad():
        same(properties(one, n=12), properties(one.add(torch.zeros(1, 12, 8), at)[0]))


def test_what_a_sum_is_measured_by_is_each_of_its_parts():
    for part, alone in zip(scheme("kerple+alibi", n_heads=2), ("kerple", "alibi"), strict=True):
        assert properties(part, n=9) == properties(scheme(alone, n_heads=2), n=9)
    assert len(properties(scheme("nopos+alibi", n_heads=2), n=9)) == 2


def test_a_part_of_a_model_is_chosen_as_for_load_table():
    model = build("bart")
    same(properties(model, part="decoder"), properties(load_table(model, part="decoder")))


@pytest.mark.parametrize("hidden", [-1e4, -65504.0, -1e9, torch.finfo(torch.float32).min])
def test_what_a_mask_holds_in_place_of_minus_infinity_is_taken_for_it(hidden):
    logits = torch.randn(9, 9, generator=torch.Generator().manual_seed(0))
    future = torch.ones(9, 9, dtype=torch.bool).triu(1)
    wanted = properties_of_matrix(logits.masked_fill(future, -torch.inf))
    for masked in (logits.masked_fill(future, hidden), logits + torch.zeros(9, 9).masked_fill(future, hidden)):
        assert repr(properties_of_matrix(masked)) == repr(wanted) and math.isnan(wanted.symmetry)


def test_a_bias_that_falls_far_hides_nothing():
    """ALiBi of long texts reaches -5,000, a step at a time."""
    at = 1000.0 * torch.arange(12)
    assert properties_of_matrix(-(at - at[:, None]).abs()).symmetry == 1
    assert len(properties_of_matrix(torch.full((2, 5, 5), 0.2))) == 2  # all rows are even, and none is padding


def test_a_choice_of_rows_or_similarity_is_kept_for_what_a_scheme_adds_and_refused_for_its_bias():
    table = scheme("learned", d_model=8, n_positions=30)
    torch.nn.init.normal_(table.weight, 1.0)
    for choice in ({"similarity": "cosine"}, {"rows": 10}):
        assert properties(table, n=30, **choice) == properties(table, **choice)
        message = refused(PropertiesInputError, properties, scheme("alibi", n_heads=2), n=9, **choice)
        assert "the bias of ALiBi takes n and max_offset" in message
