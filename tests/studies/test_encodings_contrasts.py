"""The contrasts of chapters 3 and 4."""

from posembed import RunResult
from studies.encodings import ARMS, contrasts


def test_every_planned_contrast_is_what_was_put_in():
    """With losses that are known: each scheme has its own, past the trained length they rise by 1, scaled by half."""

    def made(config):
        loss = 2.0 + 0.1 * [arm.name for arm in ARMS].index(config.scheme) + 0.01 * config.seed**2
        rising = [loss] * 4 + [loss + 1.0] * 28
        scaled = {name: [loss] * 4 + [loss + 0.5] * 28 for name in config.test_scalings}
        metrics = {"loss": loss, "validation_loss": config.learning_rate, "loss_by_position": rising}
        return RunResult(config, metrics | {"loss_by_position_scaled": scaled}, {}, "", 1.0)

    found = contrasts([made(config) for arm in ARMS for config in (*arm.trials, *arm.runs)])
    assert [(each.n, each.p < 1e-6) for each in found.values()] == [(5, True)] * 21
    means = {name: round(each.mean, 9) for name, each in found.items()}
    assert means.pop("learned minus sinusoidal") == 0.1
    assert means.pop("learnable_sinusoidal minus sinusoidal") == 0.2
    assert [means.pop(f"{arm.name} minus nopos") for arm in ARMS[1:]] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert {means.pop(f"{arm.name}, past the trained length") for arm in ARMS} == {1.0}
    assert means == {f"rope, {name} minus unscaled": -0.5 for name in ("linear", "ntk", "yarn", "llama3")}
