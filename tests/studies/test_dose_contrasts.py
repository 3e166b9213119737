"""The doses: their plan, and their contrasts on runs whose differences are known."""

from posembed import RunResult
from studies.doses import ARMS, DEGREES, PROPERTIES, TASKS, arm_of, contrasts, dose_arms, run, violation


def test_the_plan_of_the_doses():
    arms = dose_arms()
    assert len(arms) == len(TASKS) * (13 + 4) == len({arm.name for arm in arms})
    assert len({config.key for arm in arms for config in (*arm.trials, *arm.runs)}) == 68 * 11
    for arm in arms:
        assert not {config.seed for config in arm.trials} & {config.seed for config in arm.runs}
    doses = [[violation(violated, degrees) for degrees in DEGREES] for violated in PROPERTIES]
    assert all(each == sorted(each) and each[0] > 0 for each in doses)


def test_every_planned_contrast_of_the_doses_is_what_was_put_in():
    """With accuracies that are known: a dose costs its degrees, ten times as much of the second property."""

    def made(config):
        (violated, degrees), *_ = (config.study["dose"] or {"symmetry": 0.0}).items()
        cost = degrees / 48 * {"monotonicity": 0.1, "translation_invariance": 0.2, "symmetry": -0.1}[violated]
        accuracy = 0.5 - cost + 0.01 * config.seed**2
        return RunResult(config, {"accuracy": accuracy, "validation_loss": config.learning_rate}, {}, "", 1.0)

    arms = [arm_of("order", *arm) for arm in ARMS]
    found = contrasts([made(config) for arm in arms for config in (*arm.trials, *arm.runs)], ["order"])
    assert len(found) == 9 and {each.n for each in found.values()} == {5}
    assert {name: round(each.mean, 9) for name, each in found.items()} == {
        "order: monotonicity, doses minus none": -0.0625,
        "order: monotonicity, largest dose minus none": -0.1,
        "order: translation_invariance, doses minus none": -0.125,
        "order: translation_invariance, largest dose minus none": -0.2,
        "order: symmetry, doses minus none": 0.0625,
        "order: symmetry, largest dose minus none": 0.1,
        "order: monotonicity minus translation_invariance": 0.0625,
        "order: monotonicity minus symmetry": -0.125,
        "order: translation_invariance minus symmetry": -0.1875,
    }


def test_the_undosed_arm_is_one_run_for_all_properties():
    assert len({run("order", violated, 0.0, seed=1).key for violated in PROPERTIES}) == 1
