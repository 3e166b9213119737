"""A grid of runs that take some seconds each, in a program of its own: python interrupted_grid.py ENGINE FOLDER."""

import signal
import sys

SEEDS = (1, 2, 3)
SIZES = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 1500, "warmup": 2}


def configs():
    from posembed import RunConfig

    return [RunConfig(scheme="learned", seed=seed, **SIZES) for seed in SEEDS]


if __name__ == "__main__":
    from posembed import run_grid

    # Where the tests run in the background of a shell, what they start would not hear Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run_grid(configs(), engine=sys.argv[1], out=sys.argv[2], n_workers=2)
