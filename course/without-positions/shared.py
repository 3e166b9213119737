# ruff: noqa: F821 (names of course/grading/checking.py, behind which `make course` puts this)
"""What the tests of this assignment share; `make course` puts it behind course/grading/checking.py.

A run that was planned is trained again: numbers that no training gave are found out.
"""

import functools
import random

SIZES = {"n_layers": 2, "d_model": 32, "n_heads": 2, "length": 32, "batch_size": 8, "steps": 150}
SIZES |= {"learning_rate": 0.01, "warmup": 20, "weight_std": 0.18, "scale_embeddings": False}


def planned(plan):
    """Arms and seeds of a plan, as it should be."""
    from posembed import schemes

    plan = entries("plan", plan)
    arms, seeds = plan.get("arms"), wholes("seeds", plan.get("seeds"))
    assert isinstance(arms, list) and len(arms) == 3, "arms: put a list of three names"
    assert all(isinstance(arm, str) for arm in arms), "arms: put names"
    assert set(arms) <= set(schemes()) and len(set(arms)) == 3, f"arms: three different ones of {', '.join(schemes())}"
    assert arms[0] == "nopos", "arms: begin with nopos, with which the two others are compared"
    assert min(seeds) >= 0, "seeds: put a list of whole numbers"
    assert len(set(seeds)) == len(seeds), "seeds: the same seed twice is the same run twice"
    assert 3 <= len(seeds) <= 4, f"seeds: with {len(seeds)} there is too little to see, or too long to wait"
    return arms, seeds


def told_losses(losses, arms):
    """The losses of each arm by its seeds."""
    told = entries("losses", losses)
    assert set(told) == set(arms), "arms that were planned were not run, or others were"
    return {
        arm: {seed: number(f"losses[{arm!r}]", each) for seed, each in entries("losses", told[arm]).items()}
        for arm in arms
    }


def config_of(scheme, seed, **changes):
    """The run that the plan asks for."""
    from posembed import RunConfig

    return RunConfig(**SIZES | {"scheme": scheme, "seed": seed} | changes)


def run_of(settings, scheme, seed):
    """The run that a submission's settings ask for; the grader imports no module and reads no file that they name."""
    from posembed import RunConfig

    given = settings(scheme, seed)
    assert isinstance(given, dict), "settings gives no dictionary: does it return its result?"
    assert (given.get("scheme", "nopos"), given.get("data", "sotu")) == (scheme, "sotu"), (
        f"asked for {scheme} with seed {seed}, it gives another run"
    )
    return RunConfig(**given)


@functools.cache
def trained_again(scheme, seed):
    """A planned run, trained by the grader."""
    from posembed import train

    return train(config_of(scheme, seed))


def seeds_again(env, what, seeds, n):
    """Those of the planned seeds with which the grader trains again, as the submission's own number draws them."""
    return random.Random(seed_of(env, what)).sample(seeds, n)


def refuse_other_runs(env, plan, settings, losses):
    """Nothing, unless a run of an arm, trained again, gives another loss than was told."""
    arms, seeds = planned(plan)
    told, measure = told_losses(losses, arms), plain(plan.get("measure"))
    # Each arm with another seed: whoever trained one seed of all and made up the others has at most one of these.
    for arm, seed in zip(arms, seeds_again(env, "runs", seeds, len(arms)), strict=True):
        assert run_of(settings, arm, seed).to_dict() == config_of(arm, seed).to_dict(), (
            "settings: the sizes are others than those above question 1"
        )
        right = trained_again(arm, seed).metrics.get(measure)
        assert isinstance(right, float), f"measure: {measure!r} is no metric of a run"
        assert abs(told[arm].get(seed, -1.0) - right) < 0.01, (
            f"losses: {arm} with seed {seed}, trained again, has {right:.3f}: were these numbers trained as planned?"
        )


def is_chance(told, right):
    """Whether a p value is the right one, or that with three decimals, as it is often written."""
    return min(abs(told - each) for each in (right, round(right, 3))) < 0.02 * right + 1e-6


def probe_errors(model):
    """The error of a linear probe for the position at each layer of a model."""
    from posembed.data import load_corpus, windows_in_order

    corpus = load_corpus("sotu")
    found, positions = [], torch.arange(SIZES["length"]).double()
    with torch.no_grad():
        both = [
            model.eval().transformer.hidden_states(windows_in_order(part, SIZES["length"], 256))
            for part in (corpus.validation, corpus.test)
        ]
    for fit, test in zip(*both, strict=True):
        rows = [_features(states.float()) for states in (fit, test)]
        labels = [positions.repeat(len(states)) for states in (fit, test)]
        weights = torch.linalg.lstsq(rows[0], labels[0], driver="gelsd").solution
        found.append(float((rows[1] @ weights - labels[1]).abs().mean()))
    return found


def _features(states):
    rows = states.flatten(0, 1).double()
    return torch.cat([rows, rows.square(), torch.ones(len(rows), 1)], dim=1)
