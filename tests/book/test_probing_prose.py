"""Numbers that the sentences of chapters 6 to 8 state, held against the package, stored runs and stored studies."""

import re

import numpy as np
import pytest
import torch
from prose import cells, printed, said, source
from transformers import Qwen2VLTextConfig
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen

from posembed import load_table, probe_table, properties, sinusoidal
from posembed.probing import identical_word_attention
from posembed.training import stored_studies
from posembed.training.trained_tables import ARMS, contrasts, errors, reported, trained

TABLES, TRAINED, PROPERTIES = "probing/position-tables", "probing/trained-tables", "probing/three-properties"
ONCE_ENOUGH = "probing/once-enough"


@pytest.fixture(scope="module")
def table(encoder):
    return load_table(encoder.model)


@pytest.fixture(scope="module")
def gpt2():
    return stored_studies()["gpt2"]


@pytest.fixture(scope="module")
def by_arm():
    return {name: errors(arm) for name, arm in ARMS.items()}


def test_the_sizes(gpt2):
    said(
        TABLES,
        "There are 256 equations and 385 numbers to choose.",
        "GPT-2's table has 1,024 rows of 768 numbers.",
        "fitting 769 numbers more than halves the error on 1,024 random rows",
    )
    assert (gpt2.n_positions, gpt2.d_model) == (1024, 768)


def test_least_squares_on_all_of_gpt2(gpt2):
    said(
        TABLES,
        "Least squares fitted to all of them leaves an error of 1.4 positions.",
        "Yes: a constant guess has 256.",
        "That is about 118 positions",
    )
    score = gpt2.score("ols", "all")
    assert (round(score.test_mae, 1), score.constant, round(score.random_table)) == (1.4, 256, 118)


def test_what_surrounds_the_odd_rows(table):
    said(TABLES, "The even rows surround each odd one but the last.")
    split = probe_table(table, split="even-odd")
    lone = [row for row in split.positions if not {row - 1, row + 1} <= set(split.train_positions)]
    assert lone == [511]


def test_a_random_walk_does_as_well_as_gpt2(gpt2):
    said(TABLES, "The walk has less than 1 % of a constant guess's error, as GPT-2's table has.")
    walked = float(re.search(r"random walk: ([\d.]+)", printed(TABLES)).group(1))
    score = gpt2.score("ridge", "even-odd")
    assert walked / 128 < 0.01 and score.test_mae / score.constant < 0.01


def test_the_two_explanations(by_arm):
    found = contrasts(by_arm)
    said(
        TRAINED,
        "are read some twenty positions worse than the causal models' rows, and with as many guesses",
        "with short texts the masked models' first 32 rows are read better, the causal ones' worse",
        "in the masked models 93 or 94 of these 95 rows still look untrained",
    )
    assert found["masked, head: short minus long"].high < 0 < found["causal, head: short minus long"].low
    direct, fair = found["masked minus causal"], found["masked minus causal, as many guesses"]
    assert direct.mean == pytest.approx(20, abs=2) and fair.mean == pytest.approx(direct.mean, abs=2)
    for weight in trained(ARMS["masked, short"]):
        untrained = load_table(weight).untrained_rows
        assert min(untrained) >= 32 and len(untrained) > (127 - 32) / 2


def test_the_comparison_made_afterwards():
    said(TRAINED, "Their losses before the long texts came are close")
    loss = {k: np.mean([r.metrics["curve"][35] for r in reported(ARMS[f"{k}, short"])]) for k in ("masked", "causal")}
    assert abs(loss["masked"] - loss["causal"]) < 0.1
    run = reported(ARMS["masked, short"])[0]
    # The curve has 40 points; the 36th ends where nine tenths of the steps do.
    assert len(run.metrics["curve"]) * run.config.short_share == 36


def test_the_shape(table, gpt2):
    said(
        TABLES,
        "about two turns of a spring",
        "128 positions is the error of a constant guess",
    )
    assert round(gpt2.n_positions / gpt2.helix["period"]) == 2
    assert probe_table(table).baselines.constant == 128


def test_erased_and_kept():
    said(
        TABLES,
        "Without the first twelve of 384 directions nothing is left that *this probe* reads",
        "Without the first *two* components it reads the positions as well as before",
    )
    erased = {
        int(k): float(mae) for k, mae in re.findall(r"first +(\d+): kept +[\d.]+, erased +([\d.]+)", printed(TABLES))
    }
    assert erased[12] == pytest.approx(128, abs=0.5)
    whole = float(re.search(r"all-MiniLM-L6-v2 +([\d.]+) \( *11", printed(TABLES)).group(1))
    assert erased[2] == pytest.approx(whole, abs=0.1)


def test_the_intervention():
    said(
        TABLES,
        "A change of 0.67 means that the output vectors are off by two thirds of their length.",
        "Moving the rows as far within a random subspace does a third of that.",
        "the model's outputs change three times as much as by the control",
    )
    pattern = r"(\d+) components: change ([\d.]+), random subspace ([\d.]+), moved as far ([\d.]+)"
    change = {int(k): (float(whole), float(far)) for k, whole, _, far in re.findall(pattern, printed(TABLES))}
    assert change[12][0] == 0.67
    assert change[12][1] / change[12][0] == pytest.approx(1 / 3, abs=0.05)
    assert change[2][0] / change[2][1] == pytest.approx(3, abs=0.35)


def test_how_far_sinusoidal_rows_are_in_order():
    said(PROPERTIES, "up to distance 5 in one and 24 in the other, whose first rise comes at 25")
    for width, last in ((64, 5), (384, 24)):
        rows = sinusoidal(128, width, dtype=torch.float64)
        assert properties(rows, max_offset=last).monotonicity == 1
        assert properties(rows, max_offset=last + 1).monotonicity < 1


def test_the_stripes_of_the_encoder(table):
    said(
        PROPERTIES,
        "with stripes every five to six positions beside the diagonal",
        "in nearly perfect order for three steps and then loses it",
    )
    rows = table.weight[1:49].double()
    products = rows @ rows.T
    by_offset = [products.diagonal(k).mean().item() for k in range(20)]
    peaks = [k for k in range(1, 19) if by_offset[k - 1] < by_offset[k] > by_offset[k + 1]]
    assert all(gap in (5, 6) for gap in np.diff([0, *peaks]))
    assert properties(table.weight[:128], max_offset=3).monotonicity > 0.99
    assert properties(table.weight[:128], max_offset=5).monotonicity < 0.7


def test_how_regular_walks_and_formulas_of_other_sizes_are():
    said(
        TABLES,
        "a random walk of many columns passes it",
        "even the sinusoidal table of the encoder's size fails it",
    )
    walks = {
        columns: [
            probe_table(np.random.default_rng(seed).normal(size=(512, columns)).cumsum(axis=0)).test_mae
            for seed in range(5)
        ]
        for columns in (1, 4, 64, 384)
    }
    assert max(walks[384]) < 1 < max(walks[64]) < 5 < 20 < min(walks[4]) and min(walks[1]) > 40
    # The best constant guess for the second half has 64.
    by_width = {width: probe_table(sinusoidal(512, width), split="half").test_mae for width in (8, 16, 32, 384)}
    assert max(by_width[width] for width in (8, 16, 32)) < 10 < 64 < by_width[384]


def test_which_lists_leave_symmetry_out():
    said(PROPERTIES, "which is why the last two lists above leave it out.")
    lists = []
    for cell in cells(PROPERTIES):
        if "which is why the last two lists" in source(cell):
            break
        lists += ["".join(output["text"]) for output in cell.get("outputs", []) if "text" in output]
    of_tables, (above, last) = lists[1], lists[-2:]
    assert of_tables.count("symmetry 1.000") == 4
    assert "symmetry" not in above + last and "invariant" in above and "invariant" in last


def test_what_one_vector_for_all_rows_changes():
    said(PROPERTIES, "With the $c$ of the cell below, expect changes between a tenth and a half")
    rows, changes = sinusoidal(48, 64, dtype=torch.float64), []
    before = properties(rows)
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        after = properties(rows + torch.randn(64, dtype=torch.float64, generator=generator))
        changes.append(
            (before.monotonicity - after.monotonicity, before.translation_invariance - after.translation_invariance)
        )
        assert after.symmetry == pytest.approx(1)
    # Not so with each c, which is why the exercise names its own.
    assert 0.1 < min(changes[0]) < max(changes[0]) < 0.5
    assert min(map(min, changes)) < 0.1 and max(map(max, changes)) > 0.5
    # The answer counts what moves by more than a hundredth.
    assert min(map(min, changes)) > 0.01


def test_another_draw_of_words_gives_head_9_other_weights(encoder):
    said(PROPERTIES, "Head 9 gives, with these words, 7 to 18 % of its weight to position 0")
    others = identical_word_attention(encoder.model, length=48, words=16, heads=None, seed=1)[9][1:, 0]
    assert others.min() < 0.06 and others.max() < 0.12


def test_three_numbers_turn_the_parts_of_one_rope():
    said(
        ONCE_ENOUGH,
        "lets each of them turn a part of the pairs of columns of one RoPE: 16, 24 and 24 pairs of a head of 128 in "
        "the implementation of transformers",
        "The tokens of a text have the same number three times, and for them M-RoPE *is* RoPE.",
    )
    rotary = qwen.Qwen2VLRotaryEmbedding(Qwen2VLTextConfig(hidden_size=128, num_attention_heads=1))
    x, at = torch.zeros(1, 9, 128), torch.arange(9)
    same = rotary(x, at.expand(3, 1, 9))[0][0]
    torch.testing.assert_close(same, (at[:, None] * rotary.inv_freq).cos().repeat(1, 2))
    # The parts divide one range of frequencies.
    assert (rotary.inv_freq.diff() < 0).all()
    for axis, pairs in enumerate((range(16), range(16, 40), range(40, 64))):
        alone = torch.zeros(3, 1, 9, dtype=torch.long)
        alone[axis] = 1000 * at
        turned = (rotary(x, alone)[0][0, :, :64] != 1).any(0).nonzero().flatten()
        assert turned.tolist() == [*pairs]
