"""The published numbers: their shapes, and what the paper says of them in words."""

import pytest
from refusals import refused

from posembed.errors import RunError
from posembed.probing import middle_guess_error, random_guess_error
from posembed.stored import PUBLISHED_PERPLEXITY, PUBLISHED_PROBE, PUBLISHED_SCHEMES, published_probe


def test_every_scheme_has_a_number_everywhere():
    assert {len(row) for row in PUBLISHED_PERPLEXITY.values()} == {len(PUBLISHED_SCHEMES)}
    # ALiBi is best and no positions are worst everywhere.
    assert [(min(row), max(row)) for row in PUBLISHED_PERPLEXITY.values()] == [
        (row[3], row[0]) for row in PUBLISHED_PERPLEXITY.values()
    ]
    assert set(PUBLISHED_PROBE) == set(PUBLISHED_SCHEMES)
    # 24 layers, and what enters the first one.
    assert {len(errors) for errors in PUBLISHED_PROBE.values()} == {25}


def test_without_positions_the_first_layer_is_near_a_random_guess_and_the_sixth_is_not():
    shares = published_probe("nopos")
    assert shares[0] == pytest.approx(random_guess_error(1024) / middle_guess_error(1024), rel=0.02)
    assert min(range(25), key=shares.__getitem__) == 6 and shares[6] < 0.07


@pytest.mark.bad_input
def test_a_scheme_that_the_paper_has_not():
    message = "the paper has no 'rope'; choose among nopos, learned, sinusoidal, alibi"
    assert refused(RunError, published_probe, "rope") == message
