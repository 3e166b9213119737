import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from posembed import load_table, sinusoidal
from posembed.tables import PositionTable
from posembed.tables.table import MISSED, TOO_NEAR


def table_of(weight, **changes):
    return PositionTable(weight, **{"name": "wpe.weight", "offset": 0, "source": "here", "bytes_read": 0} | changes)


def smooth(n_positions, d_model, seed=0):
    """Rows that turn slowly from one random direction to the next, as those of learned tables do."""
    steps = torch.randn(n_positions, d_model, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    kernel = torch.exp(-0.5 * ((torch.arange(n_positions)[:, None] - torch.arange(n_positions)) / 4.0) ** 2)
    return (kernel.double() @ steps).float()


def random(n_positions, d_model, seed=0):
    return torch.randn(n_positions, d_model, generator=torch.Generator().manual_seed(seed))


def plain_nearest(weight):
    """Row by row, in float64."""
    rows = weight.double().numpy()
    cosines = [
        [a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) if i != j else -2.0 for j, b in enumerate(rows)]
        for i, a in enumerate(rows)
    ]
    return torch.tensor(np.max(cosines, axis=1))


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_norms_and_cosines_of_very_small_and_very_large_rows(scale):
    weight = random(9, 20)
    scaled = table_of(weight * scale)
    torch.testing.assert_close(scaled.norms, table_of(weight).norms * scale, rtol=1e-6, atol=0.0)
    torch.testing.assert_close(scaled.nearest, table_of(weight).nearest)


@pytest.mark.parametrize("block", [2**23, 50])
@pytest.mark.parametrize(("n_positions", "d_model"), [(2, 1), (2, 3), (17, 4), (40, 64)])
def test_nearest_is_what_plain_loops_give(monkeypatch, n_positions, d_model, block):
    monkeypatch.setattr("posembed.tables.table._BLOCK", block)
    weight = random(n_positions, d_model)
    # Cosines of units rounded to float32.
    torch.testing.assert_close(table_of(weight).nearest.double(), plain_nearest(weight), rtol=0.0, atol=1e-6)


def test_the_memory_of_a_long_table_is_bounded(monkeypatch):
    """All cosines at once would take 400 MB; and they are formed once."""
    sizes = []
    product = torch.Tensor.__matmul__
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: sizes.append(len(a) * b.shape[1]) or product(a, b))
    table = table_of(random(10_000, 4))
    table.nearest.sum(), table.nearest.sum(), table.untrained_rows
    assert sum(sizes) == 10_000**2
    assert max(sizes) <= 2**23


def test_rows_that_cannot_be_compared_have_no_nearest_and_do_not_disturb_the_others():
    weight = random(12, 30)
    spoilt = weight.clone()
    spoilt[[2, 5, 8]] = torch.tensor([0.0, math.nan, math.inf])[:, None]
    kept = [row for row in range(12) if row not in (2, 5, 8)]
    found = table_of(spoilt).nearest
    assert found.isnan().nonzero().flatten().tolist() == [2, 5, 8]
    torch.testing.assert_close(found[kept], table_of(weight[kept]).nearest)


@pytest.mark.parametrize("weight", [torch.ones(1, 4), torch.zeros(3, 4), torch.full((3, 4), math.nan)], ids=str)
def test_without_another_row_to_compare_with_there_is_no_nearest_and_no_bound(weight):
    table = table_of(weight)
    assert bool(table.nearest.isnan().all())
    assert math.isnan(table.random_bound)


def test_non_finite_rows_are_listed():
    weight = random(9, 3)
    weight[3, 1], weight[7, 0], weight[8] = math.nan, math.inf, -math.inf
    table = table_of(weight)
    assert table.non_finite_rows == [3, 7, 8]
    assert table_of(random(4, 2)).non_finite_rows == []
    # What no gradient reached is another thing than what a broken one did.
    assert not set(table.untrained_rows) & {3, 7, 8}


# The bound, and what it finds.


@given(st.integers(2, 800), st.integers(2, 800))
def test_the_bound_is_exceeded_by_a_random_pair_as_rarely_as_it_says(n_rows, d_model):
    """From another distribution: c sqrt(d - 1) / sqrt(1 - c^2) of a random pair is Student's t of d - 1 degrees."""
    bound = table_of(torch.ones(n_rows, d_model)).random_bound
    if bound > 1 - 1e-9:  # where 1 - bound^2 has few digits left
        return
    chance = scipy.stats.t.sf(bound * math.sqrt((d_model - 1) / (1 - bound**2)), d_model - 1)
    assert chance * n_rows * (n_rows - 1) / 2 == pytest.approx(MISSED, rel=1e-6)


def with_zeros(weight):
    weight[[0, 40]] = 0.0
    return weight


UNTRAINED = {
    "all rows equal": (torch.ones(100, 64), []),
    "one row": (torch.ones(1, 64), []),
    "one direction": (torch.ones(100, 64) * torch.linspace(1, 2, 100)[:, None], []),
    "smooth": (smooth(512, 64), []),
    "sinusoid": (sinusoidal(512, 64), []),
    "wide sinusoid": (sinusoidal(1024, 768), []),
    "narrow sinusoid": (sinusoidal(64, 16), []),
    "zeros in a smooth table": (with_zeros(smooth(64, 32)), [0, 40]),
    "zeros in a narrow one": (with_zeros(smooth(64, 3)), [0, 40]),
    "zeros in a column": (with_zeros(torch.ones(64, 1)), [0, 40]),
    "zeros": (torch.zeros(3, 2), [0, 1, 2]),
    "one row of zeros": (torch.zeros(1, 2), [0]),
    # The documented limit.
    "orthogonal rows": (torch.eye(64), list(range(64))),
} | {
    f"random, {n_rows} x {d_model}, seed {seed}": (random(n_rows, d_model, seed), list(range(n_rows)))
    for n_rows, d_model in ((20, 16), (64, 64), (512, 128), (1024, 768), (50, 768))
    for seed in range(3)
}


@pytest.mark.parametrize("name", UNTRAINED)
def test_rows_of_zeros_and_random_vectors_are_untrained_and_those_that_resemble_others_are_not(name):
    weight, rows = UNTRAINED[name]
    assert table_of(weight).untrained_rows == rows


@pytest.mark.parametrize(("n_positions", "d_model"), [(8, 2), (64, 8), (1024, 12)])
def test_nothing_is_said_of_tables_too_narrow_to_tell(n_positions, d_model):
    """A circle's points are as far from each other as random ones are."""
    assert table_of(random(n_positions, d_model)).random_bound > TOO_NEAR
    for weight in (random(n_positions, d_model), sinusoidal(n_positions, d_model)):
        assert table_of(weight).untrained_rows == []


@given(st.sets(st.integers(0, 255), max_size=20), st.integers(0, 1000), st.sampled_from([0.001, 0.1, 1.0]))
def test_exactly_the_random_rows_of_a_smooth_table_are_found(rows, seed, scale):
    """Whatever their length, as long as it is no more than that of the others: training lengthens rows."""
    weight, chosen = smooth(256, 128), sorted(rows)
    drawn = torch.nn.functional.normalize(random(256, 128, seed + 1)[: len(chosen)], dim=1)
    weight[chosen] = scale * weight.norm(dim=1).median() * drawn
    assert table_of(weight).untrained_rows == chosen


@pytest.mark.parametrize("length", [3.0, 100.0])
def test_a_row_like_no_other_is_trained_if_it_is_far_longer(length):
    """all-mpnet-base-v2's first and last rows are six times as long as the rest."""
    weight = sinusoidal(64, 64).clone()
    row = random(1, 64, 0)[0]
    weight[0] = row / row.norm() * weight[1].norm()
    assert table_of(weight).untrained_rows == [0]
    weight[0] *= length
    assert table_of(weight).untrained_rows == []


def test_gpt2_has_one_untrained_row(gpt2_table):
    table = gpt2_table
    assert (table.name, table.offset, tuple(table.weight.shape)) == ("wpe.weight", 0, (1024, 768))
    assert table.untrained_rows == [1023]
    assert table.non_finite_rows == []
    # The figures in the docstring.
    least = table.nearest.sort().values
    assert [f"{value:.3f}" for value in (least[0], least[1], table.random_bound)] == ["0.029", "0.524", "0.210"]


def test_half_of_the_rows_are_shorter_than_the_median():
    """Of an even number of rows it lies between two of them, and that decides here."""
    rows = torch.eye(20, 64)
    rows[:, 20:] = torch.randn(1, 44, generator=torch.Generator().manual_seed(0))
    rows = torch.nn.functional.normalize(rows) * torch.tensor([1.0] * 10 + [2.0] * 10)[:, None]
    rows[19] = 2.4 * torch.nn.functional.normalize(torch.randn(64, generator=torch.Generator().manual_seed(1)), dim=0)
    table = load_table(rows)
    assert table.norms.sort().values[9:11].tolist() == pytest.approx([1.0, 2.0])
    assert table.untrained_rows == [19]
