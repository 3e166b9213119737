"""One width at both depths, trials as long as the runs, and contrasts of runs with one seed."""

import pytest

from posembed import RunResult
from studies import once_or_again as study


def test_arms_of_a_depth_differ_in_their_positions_alone():
    for depth in study.DEPTHS:
        arms = [
            study.arm(depth, name) for name in ("none", "table once", "table again", "RoPE", "RoPE first", "RoPE last")
        ]
        assert [each.name for each in study.arms() if each.run.n_layers == depth] == [each.name for each in arms]
        assert all(each.run.d_model == 32 and each.run.steps == each.trial.steps == 3000 for each in arms)
        assert all(not {*each.seeds} & {*each.trial_seeds} for each in arms)
        in_layers = {each.run.layers_with_positions for each in arms}
        assert in_layers == {None, (0,), (depth - 1,)}


def test_the_contrasts_are_of_runs_with_one_seed():
    """Each arm has a loss of its own, and a seed adds the same to all."""
    arms = study.arms()
    level = {each.name: k**2 / 10 for k, each in enumerate(arms)}

    def result(config, loss):
        return RunResult(config, {"loss": loss, "validation_loss": abs(config.learning_rate - 1e-2)}, {}, "", 1.0)

    trials = [result(trial, 0.0) for arm in arms for rate in study.RATES for trial in arm.trials_at(rate)]
    reported = [result(run, level[arm.name] + run.seed) for arm in arms for run in arm.runs(trials)]
    found = study.contrasts([*trials, *reported])
    assert len(found) == 13
    for n, seeds in ((4, 5), (12, 3)):
        for one, other in (("table again", "table once"), ("RoPE first", "table once"), ("RoPE last", "RoPE")):
            its = found[f"{n} layers: {one} minus {other}"]
            assert its.mean == pytest.approx(level[f"{n} layers, {one}"] - level[f"{n} layers, {other}"])
            assert its.n == seeds
    deeper = found["RoPE first minus RoPE: 12 layers minus 4"]
    by_depth = [level[f"{n} layers, RoPE first"] - level[f"{n} layers, RoPE"] for n in (12, 4)]
    assert deeper.mean == pytest.approx(by_depth[0] - by_depth[1]) and deeper.n == 3
    assert found["table once: 12 layers minus 4"].mean == pytest.approx(
        level["12 layers, table once"] - level["4 layers, table once"]
    )
