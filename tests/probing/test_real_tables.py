"""What is known of real tables. GPT-2's is not part of the project: these run where POSEMBED_CHECKPOINTS has it."""

import pytest

from posembed.probing import probe_table, spectrum
from posembed.tables import load_table


@pytest.fixture(scope="module")
def minilm(encoder):
    return load_table(encoder.model)


def test_five_folds_of_gpt2s_first_512_rows(gpt2_table):
    least_squares = probe_table(gpt2_table, probe="ols", split="folds", rows=512)
    assert 0.9 < least_squares.test_mae < 1.2
    ridge = probe_table(gpt2_table, probe="ridge", split="folds", rows=512)
    assert ridge.test_mae == pytest.approx(0.84, abs=0.05)
    for result in (least_squares, ridge):
        assert result.interval.high < 0.05 * min(result.baselines.constant, result.baselines.random_table)
        # A constant that knows all labels errs by a quarter of their range.
        assert result.baselines.permuted_labels > 0.95 * 512 / 4


def test_gpt2_from_its_first_half_to_the_second(gpt2_table):
    """It can be read between rows that were seen, and not beyond them."""
    assert probe_table(gpt2_table, probe="ols").test_mae == pytest.approx(2, abs=0.5)
    beyond = probe_table(gpt2_table, probe="ols", split="half")
    assert beyond.test_mae == pytest.approx(68, abs=2)
    permuted = probe_table(gpt2_table, probe="ols").baselines.permuted_labels
    assert permuted > 400 > 256.0 == probe_table(gpt2_table, probe="ols").baselines.constant


def test_three_centred_components_hold_nine_tenths_of_gpt2(gpt2_table):
    found = spectrum(gpt2_table)
    assert found.n_components_for(0.9) == 3
    assert sum(found.explained_variance_ratio[:3]) == pytest.approx(0.9039, abs=5e-5)


def test_two_components_of_gpt2_are_a_helix_of_about_two_turns(gpt2_table):
    helix = spectrum(gpt2_table).helix
    assert helix.components == (0, 1)
    assert 1.7 < 1024 / helix.period < 2.1
    assert helix.share > 0.8
    assert abs(abs(helix.phase) - 90) < 10


def test_minilms_table_is_read_with_more_error(minilm):
    ridge = probe_table(minilm, probe="ridge")
    assert ridge.interval.high < 0.2 * ridge.baselines.constant
