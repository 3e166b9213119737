"""The ladders of sizes: how large their models are, and what is told of a run on its way."""

from dataclasses import replace

import pytest

from posembed import RunResult
from posembed.models import LanguageModel
from posembed.training.runs import transformer_config
from studies import ladder, ladder_large

# Of the State of the Union addresses, and of enwik8, whose rare characters share one.
VOCABULARIES = {"sotu": 83, "enwik8": 466}


def n_parameters(config):
    config = replace(config, device="cpu")
    model = LanguageModel(transformer_config(config, VOCABULARIES[config.data]))
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("width", ladder.WIDTHS)
def test_a_width_has_the_parameters_of_the_plan(width):
    assert n_parameters(ladder.run("learned", width)) == ladder.WIDTHS[width]


@pytest.mark.parametrize("n_layers", ladder_large.PARAMETERS)
def test_a_depth_has_the_parameters_of_the_plan(n_layers):
    assert n_parameters(ladder_large.run("learned", n_layers)) == ladder_large.PARAMETERS[n_layers]


def with_losses(*losses):
    config = ladder_large.run("nopos", 3)
    return RunResult(config, {"losses_at": {str(10 * n): loss for n, loss in enumerate(losses, 1)}}, {}, "", 1.0)


def test_where_a_loss_is_reached_is_read_between_two_measurements():
    run = with_losses(3.0, 2.0, 1.0, 0.5)
    assert ladder_large.share_reached(run, 1.5) == pytest.approx(25 / 40)
    assert ladder_large.share_reached(run, 3.5) == 0.25 and ladder_large.share_reached(run, 0.1) == 1.0


def test_a_run_whose_loss_rises_again_is_not_settled():
    assert ladder_large.is_settled(with_losses(3.0, 2.0, 2.05, 1.9))
    assert not ladder_large.is_settled(with_losses(3.0, 1.4, 1.45, 1.6))


def test_a_slope_is_that_of_gaps_that_fall_by_as_much_with_each_doubling():
    doublings = {3: 0.0, 4: 1.163}
    gaps = {n: [1.0 - 0.1 * each] * 2 for n, each in doublings.items()}
    assert ladder_large.slope_of(gaps).mean == pytest.approx(-0.1, rel=1e-3)
