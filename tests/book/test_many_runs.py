"""The page on many runs: its Python runs, and its commands are ones that posembed has."""

import re
import shlex
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
import typer.main
from tool import load

import posembed
from posembed import RunConfig
from posembed.cli.app import app
from posembed.cli.training import training_app
from posembed.training.grid import Engine

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "practice" / "many-runs.md").read_text(encoding="utf-8")
TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "batch_size": 2, "steps": 2, "warmup": 1}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def lines_of_bash():
    return [line for block in blocks("bash") for line in block.replace("\\\n", " ").splitlines()]


def commands():
    lines = [line for line in lines_of_bash() if re.search(r"(^|\s)posembed (train|grid|results) ", line)]
    return [line[line.index("posembed ") :].partition(" > ")[0] for line in lines]


@pytest.mark.slow
def test_the_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(posembed, "RunConfig", partial(posembed.RunConfig, **TINY))
    for code in blocks("python"):
        exec(compile(code.replace("steps=500", "steps=2"), "many-runs.md", "exec"), {})
    assert len(list((tmp_path / "results" / "mine").glob("*.json"))) == 6


@pytest.mark.parametrize("command", commands())
def test_the_commands_can_be_read(command):
    """They are parsed with all their options, and not run."""
    name, *options = shlex.split(command)[1:]
    found = typer.main.get_command(training_app() if name == "train" else app)
    found = found if name == "train" else found.commands[name]
    context = found.make_context(name, options)
    assert context.params


def test_every_engine_is_told():
    engines = set(get_args(Engine))
    told = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    # Everything else there is a setting.
    assert engines <= told and all(name in RunConfig.__dataclass_fields__ for name in told - engines)


def test_the_recipe_for_larger_models_has_the_presets_that_are_named():
    lines = [line for line in lines_of_bash() if "lab/train_gpt2.py" in line]
    presets = load("presets", ROOT / "lab")
    assert (ROOT / "lab" / "train_gpt2.py").is_file()
    assert {re.search(r"--preset (\S+)", line)[1] for line in lines} == {"gpu", "paper-125M"} <= set(presets.PRESETS)


def test_the_defaults_are_what_the_page_says():
    assert "learning rate of 0.01, which all eight schemes chose there." in PAGE
    config = posembed.RunConfig(scheme="learned")
    assert (config.start_std, config.scale_embeddings, config.learning_rate) == (64**-0.5, False, 0.01)
    study = posembed.load_study("own-rates")
    chosen = [runs[0].config for arm, runs in study.by_arm.items() if arm.endswith("start B")]
    assert (len(chosen), {each.learning_rate for each in chosen}) == (8, {0.01})
    assert {(each.weight_std, each.scale_embeddings) for each in chosen} == {(64**-0.5, False)}
