"""Probe it with controls.

scikit-learn has every part, any other estimator, and pipelines that nothing here has: for a probe of your own it is the
better choice, and posembed's probes have its `fit` and `predict`. What it leaves to you is what to compare with;
and SciPy's bootstrap takes errors of neighbouring rows for independent ones, where posembed draws blocks.
"""

from posembed import load_table

from .read_table import given as folder

ABSENT = {"transformers": "nothing for this: it hands out the table"}


def given(quick):
    """The table of all-MiniLM-L6-v2, "positions d_model"."""
    return (load_table(*folder(quick)).weight[: 64 if quick else None],)


def posembed(table):
    """Error, interval by blocks, best constant, ten permutations of the labels, five random tables, error by region."""
    from posembed import probe_table

    result = probe_table(table, split="folds")
    of = result.baselines
    return (
        result.test_mae,
        of.constant,
        of.permuted_labels,
        of.random_table,
        result.interval.low,
        result.interval.high,
    )


def plain(table):
    """By scikit-learn: the same with one random table and no errors by region; the interval is for independent rows."""
    import numpy as np
    from scipy.stats import bootstrap
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold, cross_val_predict

    x, at, rng = (
        table.double().numpy(),
        np.arange(len(table)),
        np.random.default_rng(0),
    )
    labels = np.column_stack([at, *(rng.permutation(at) for _ in range(10))])
    probe = RidgeCV(np.logspace(-8, 4, 13), alpha_per_target=True)
    folds = KFold(5, shuffle=True, random_state=0)
    errors = abs(cross_val_predict(probe, x, labels, cv=folds) - labels)
    constant = abs(
        cross_val_predict(DummyRegressor(strategy="median"), x, at, cv=folds)
        - at
    ).mean()
    random = rng.normal(x.mean(axis=0), x.std(), x.shape)
    of_random = abs(cross_val_predict(probe, random, at, cv=folds) - at).mean()
    interval = bootstrap(
        (errors[:, 0],), np.mean, random_state=rng
    ).confidence_interval
    return (
        errors[:, 0].mean(),
        constant,
        errors[:, 1:].mean(),
        of_random,
        interval.low,
        interval.high,
    )


def shown(answer, _):
    """Errors in positions."""
    error, constant, permuted, random, low, high = answer
    controls = (
        f"{constant:.0f}, {permuted:.0f} and {random:.0f} for the controls"
    )
    return f"{error:.1f} off ({low:.1f} to {high:.1f}); {controls}"


def agree(answers, _):
    """Errors of other folds and another choice of the penalty are within a fifth; controls within a tenth."""
    ours, others = answers["posembed"], list(answers.values())
    assert all(abs(each[0] / ours[0] - 1) < 0.2 for each in others)
    assert all(
        abs(each[i] / ours[i] - 1) < 0.1 for each in others for i in (1, 2, 3)
    )
