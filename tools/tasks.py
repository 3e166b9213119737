"""Run what is left of the study *Which positions for which task?*, into `results/tasks`; it can be stopped at any time.

Usage: python tools/tasks.py doses [TASK ...]     part 1, of all made tasks or of some: two processes may share them
       python tools/tasks.py positions [ARM ...]  parts 2 and 3, of all arms or of some, such as "learned, both": two
                                                  processes may share them. Arm by arm: what is trained further needs
                                                  the weights. POSEMBED_TASKS names the folder of the real tasks
       python tools/tasks.py left                 how many runs are left
"""

import sys
import time
from pathlib import Path

import torch

from posembed.errors import PosembedError
from posembed.training import doses, read_results, which_positions
from posembed.training.grid import Settings
from posembed.training.plans import Study, run_study, standing

OUT = Path(__file__).resolve().parent.parent / "results" / "tasks"


def study(parts):
    return Study("tasks", "cpu", tuple(parts))


def of_doses(tasks):
    return study(part for task in tasks or doses.TASKS for part in doses.parts_of(task))


def tell(config, result):
    said = "failed" if result is None else f"{result.metrics.get('accuracy', result.metrics['loss']):.3f}"
    print(f"{time.strftime('%H:%M:%S')} {config.key} {config.task} {config.scheme} {config.dose} {said}", flush=True)


def run(parts, **settings):
    remark = run_study(parts, Settings(OUT, "serial", **settings), tell)[1]
    print(f"tasks: done{'; ' if remark else ''}{remark}")


def left():
    for name, parts in (
        ("doses", of_doses(())),
        ("pre-training", study(which_positions.pretraining_parts())),
        ("on real tasks, of what is pre-trained", study(which_positions.further_parts(read_results(OUT)))),
    ):
        found = standing(parts, OUT)
        print(f"tasks: {name}: {len(found.left)} of {found.n_runs} left")


def main(what="", *tasks):
    torch.set_num_threads(1)
    arms = {part.name: part for part in which_positions.pretraining_parts()}
    try:
        if what == "doses" and {*tasks} <= {*doses.TASKS}:
            run(of_doses(tasks))
        elif what == "positions" and {*tasks} <= {*arms}:
            for arm in tasks or arms:
                run(study([arms[arm]]), save_models=True)
                further = which_positions.further_parts(read_results(OUT))
                run(study(part for part in further if part.name.split(", ", 1)[1] == arm))
        elif what == "left":
            left()
        else:
            sys.exit(__doc__)
    except PosembedError as error:
        sys.exit(f"tasks: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
