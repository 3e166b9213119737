"""``posembed train`` and ``posembed grid``: what they print, and what they refuse in one line."""

import contextlib
import inspect
import json
import os
import shlex
import signal
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from posembed import RunConfig, train
from posembed.cli.training import training_app
from posembed.errors import RunError
from posembed.stored import load_plan
from posembed.training import read_results, run_grid, runs
from posembed.training.plans import standing

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 3, "warmup": 1}
WORDS = [word for name, value in TINY.items() for word in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_there_is_an_option_for_every_setting_with_its_words():
    options = inspect.signature(training_app().registered_commands[0].callback).parameters
    settings = [each.name for each in fields(RunConfig) if not each.name.endswith("_hash") and each.name != "study"]
    assert list(options) == [*settings, "out", "save_model", "as_json"]
    told = {name: option.annotation.__metadata__[0] for name, option in options.items()}
    assert told["scheme"].help == (
        'a name for posembed.scheme, or of one\'s own the import path of its class, "module:Class". Default: nopos.'
    )
    assert told["learning_rate"].help.endswith("Default: 0.01.")
    assert told["test_length"].help.endswith("in which the loss is measured too; by default not.")
    assert all(each.help.endswith(".") for each in told.values())


def test_train_gives_the_run_of_its_options(data):
    more = ["--scheme", "rope", "--seed", 3, "--test-length", 32, "--no-scale-embeddings"]
    more += ["--test-scalings", "ntk", "--test-scalings", "linear", "--scheme-options", '{"rope": {"base": 500.0}}']
    found = data("train", *WORDS, *more)
    config = RunConfig(
        scheme="rope",
        seed=3,
        test_length=32,
        scale_embeddings=False,
        test_scalings=("ntk", "linear"),
        scheme_options={"rope": {"base": 500.0}},
        **TINY,
    )
    assert RunConfig.from_dict(found["config"]) == config and found["key"] == config.key
    assert found["metrics"] == json.loads(json.dumps(train(config).metrics))


def test_train_for_people(call):
    code, printed, complained = call("train", *WORDS, "--scheme", "alibi")
    assert (code, complained) == (0, "")
    result, flat = train(RunConfig(scheme="alibi", **TINY)), " ".join(printed.split())
    metrics = result.metrics
    for part in (
        f"alibi, causal, seed 0, {result.config.key}",
        f"{metrics['loss']:.4f} nats a guessed token",
        f"{metrics['perplexity_per_token']:.3f} a token, {metrics['perplexity_per_word']:,.0f} a word",
        f"{metrics['parameters']:,}, of them 0 of the scheme",
        "tokens a second",
        result.machine,
    ):
        assert part in flat, part
    assert not list(Path().iterdir())
    assert "a word" not in call("train", *WORDS, "--objective", "masked", "--masking-rate", 0.5)[1]


def test_train_keeps_a_result_and_does_not_train_again(call, data, monkeypatch):
    words = ["train", *WORDS, "--out", "results", "--save-model"]
    first = data(*words)
    key = RunConfig(**TINY).key
    assert {each.name for each in Path("results").iterdir()} == {f"{key}.json", f"{key}.safetensors"}
    monkeypatch.setattr("posembed.training.runs.make_model", lambda *_: pytest.fail("trained again"))
    code, printed, complained = call(*words, "--json")
    assert (code, json.loads(printed)) == (0, first) and "this run has a result, which is shown; " in complained


@pytest.mark.bad_input
def test_a_damaged_result_is_not_announced(call):
    path = Path("results") / f"{RunConfig(**TINY).key}.json"
    path.parent.mkdir()
    path.write_text("{")
    refused(call, ["train", *WORDS, "--out", "results"], f"{path.name} is damaged")


@pytest.mark.parametrize("more", [[], ["--out", "results"]], ids=["here", "in a folder"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_run_that_is_interrupted_leaves_its_state_and_says_how_to_go_on(call, data, monkeypatch, number, code, more):
    """The signal comes between the first and the second of three steps."""
    words = ["train", *WORDS, "--scheme=rope", "--seed=3", "--scheme-options", '{"rope": {"base": 500.0}}', *more]
    config = RunConfig(scheme="rope", seed=3, scheme_options={"rope": {"base": 500.0}}, **TINY)
    with monkeypatch.context() as patch:
        tell = contextlib.nullcontext(lambda text, step=0: step == 1 and os.kill(os.getpid(), number))
        patch.setattr("posembed.cli.training.progress", lambda *_: tell)
        ended, printed, complained = call(*words)
    assert (ended, printed) == (code, "")
    where, how = complained.splitlines()
    assert where.startswith(f"posembed: stopped after step 2 of 3, which are kept in {config.key}.checkpoint; ")
    assert how.startswith("posembed: stopped; go on with: posembed train ") and "--seed=3" in how
    again = shlex.split(how.partition("go on with: posembed ")[2])
    assert again == [str(word) for word in words]
    ended, printed, complained = call(*again, "--json")
    assert ended == 0 and "this run was stopped, and goes on from" in complained
    assert json.loads(printed)["metrics"] == json.loads(json.dumps(train(config).metrics))
    assert not list(Path().rglob("*.checkpoint"))


def refused(call, words, part):
    code, printed, complained = call(*words)
    (line,) = complained.splitlines()
    assert line.startswith("posembed: ") and part in line, line
    return code, printed


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--scheme", "rop"], "there is no scheme 'rop'; did you mean 'rope'?"),
        (["--steps", 0], "steps is 0; it must be a whole number of at least 1"),
        (["--objective", "next"], "choose among causal, masked"),
        (["--device", "cuda:99"], "device is 'cuda:99', which PyTorch has not here"),
        (["--data", "nothing.txt"], "nothing.txt"),
        (["--scheme-options", "{bad"], """'{bad' is no JSON, as '{"rope": {"base": 500.0}}' is; mend it"""),
        (["--scheme-options", "[1]"], "give a Mapping"),
        (["--save-model"], "--save-model needs --out"),
        (["--out", "a-file"], "cannot write to the folder 'a-file' (File exists); make room, or"),
    ],
)
def test_a_run_that_cannot_be_is_one_line(call, words, part):
    Path("a-file").write_text("")
    assert refused(call, ["train", *WORDS, *words], part) == (1, "")


def test_grid_says_beforehand_what_there_is_to_do(call, data):
    found = data("grid", "encodings", "--preset", "smoke", "--dry-run", "--engine", "serial", "--out", "mine")
    n_runs = load_plan("encodings", "smoke").n_runs
    assert (found["runs"], found["done"], found["left"], found["at_once"]) == (n_runs, 0, n_runs, 1)
    assert found["estimated_seconds"] > 0 and found["results"] == {}
    words = ["grid", "encodings", "--preset", "smoke", "--dry-run", "--n-workers", "3"]
    code, printed, complained = call(*words, columns=200)
    assert (code, complained) == (0, "")
    assert f"encodings, preset smoke: {n_runs} runs, 0 have a result in results/encodings, {n_runs} are left" in printed
    assert "(hours:minutes:seconds), 3 at a time; from a few steps that were timed" in printed
    assert not list(Path().iterdir())


SMALL = {"n_layers": 1, "d_model": 8, "n_heads": 2, "steps": 2, "batch_size": 2, "length": 16, "test_length": 32}


@pytest.fixture
def study(monkeypatch):
    """The study of encodings, in seconds."""
    plan = load_plan("encodings", "smoke").with_changes(**SMALL, test_scalings=())
    plan = replace(plan, arms=tuple(replace(arm, trials=()) for arm in plan.arms[:5]))
    monkeypatch.setattr("posembed.stored.load_plan", lambda *_: plan)
    return plan


def test_grid_runs_what_is_left(call, data, study):
    run_grid(study.arms[0].runs, engine="serial", out="mine")
    words = ["grid", "encodings", "--engine", "serial", "--out", "mine"]
    code, printed, complained = call(*words, columns=200)
    assert (code, complained) == (0, "")
    assert "5 runs, 1 have a result in mine, 4 are left" in printed
    results = {result.config.key: result for result in read_results("mine")}
    for arm in study.arms:
        loss, rate = results[arm.runs[0].key].metrics["loss"], arm.runs[0].learning_rate
        (line,) = [line for line in printed.splitlines() if line.startswith(f"{arm.name} ")]
        assert f"1 runs at {rate:g}: mean test loss {loss:.4f}, " in line
    assert len(results) == 5
    found = data(*words)
    assert (found["done"], found["left"], found["estimated_seconds"]) == (5, 0, 0.0)
    assert {runs[0]["key"] for runs in found["results"].values()} == set(results)
    assert standing(study, "mine").n_done == 5


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (
            ["glue"],
            "there is no study 'glue'; choose among beginning, causes, depth, encodings, far-questions, "
            "ladder, length, length-doses, nopos, nopos-large, once-or-again, one-start, own-rates, past-length, "
            "starts, tasks, trained-tables",
        ),
        (["nopos", "--preset", "tpu"], "preset is 'tpu'; choose among smoke, cpu"),
        (["nopos", "--engine", "spark"], "engine is 'spark'; choose among serial, joblib, ray"),
        (["nopos"], "nopos is trained or measured in ways of its own; make study NAME=nopos runs it"),
        (["nopos", "--n-workers", "0"], "n_workers is 0; it must be a whole number from 1 on"),
        (["nopos", "--gpus", "-1"], "gpus is -1.0; it must be a finite number of at least 0"),
    ],
)
def test_a_grid_that_cannot_be_is_one_line(call, words, part):
    assert refused(call, ["grid", *words], part) == (1, "")
    assert not list(Path().iterdir())


def test_runs_that_fail_are_one_line_and_the_exit_code(call, monkeypatch, study):
    plain = runs.measure
    monkeypatch.setattr(runs, "measure", lambda *given: 1 / 0 if given[-1].scheme == "learned" else plain(*given))
    words = ["grid", "encodings", "--engine", "serial", "--out", "mine"]
    code, printed = refused(call, words, "1 of 5 runs failed, the others are stored; learned, seed 1")
    assert code == 1 and "5 are left" in printed
    assert len(read_results("mine")) == 4


def test_a_changed_text_is_another_run_and_a_stored_one_is_announced(call, data):
    text, words = Path("mine.txt"), ["train", *WORDS, "--data", "mine.txt", "--out", "results"]
    text.write_text("To be or not to be. " * 60, encoding="utf-8")
    first = data(*words)
    code, _, complained = call(*words)
    assert code == 0 and f"this run has a result, which is shown; to train it again move {first['key']}" in complained
    text.write_text("all work and no play, " * 60, encoding="utf-8")
    second = data(*words)
    assert second["key"] != first["key"] and second["metrics"]["loss"] != first["metrics"]["loss"]
    # A stored result keeps its key, and its config does not go on with another text.
    (stored,) = [each for each in read_results("results") if each.config.key == first["key"]]
    with pytest.raises(RunError, match="mine.txt is not the text that the config was made for"):
        train(stored.config)


def test_a_scheme_of_ones_own_stands_in_this_folder(data, monkeypatch):
    monkeypatch.setattr("sys.path", list(sys.path))
    text = "from posembed.encodings import ALiBi\n\nclass Mine(ALiBi):\n    pass\n"
    Path("scheme_of_this_folder.py").write_text(text)
    found = data("train", *WORDS, "--scheme", "scheme_of_this_folder:Mine")
    assert found["config"]["scheme"] == "scheme_of_this_folder:Mine" and found["config"]["scheme_hash"]
    assert found["metrics"]["loss"] == data("train", *WORDS, "--scheme", "alibi")["metrics"]["loss"]


@pytest.mark.bad_input
def test_a_scheme_of_ones_own_that_fails_is_one_line(call, monkeypatch):
    Path("failing.py").write_text(
        "from posembed import PositionScheme\n\nclass Fails(PositionScheme):\n"
        "    def add(self, x, positions):\n        return x + 1 / 0\n"
    )
    monkeypatch.syspath_prepend(Path().absolute())
    words = ["train", *WORDS, "--scheme", "failing:Fails"]
    refused(call, words, "the run failed (ZeroDivisionError: division by zero, in failing.py, line 5)")
