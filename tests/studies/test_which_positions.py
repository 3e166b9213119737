"""Pre-training, training on real tasks from it, [CLS] elsewhere, and the plan of which positions for which task."""

import json
import os
from functools import partial
from pathlib import Path

import pytest
import torch
from refusals import refused

from posembed import RunResult
from posembed.encodings import ALiBi
from posembed.errors import RunError, TaskError
from posembed.training import Masked, read_results, run_and_store
from posembed.training.plans import Plan, standing
from studies.training.cls import MaskedBehindCLS, cls_positions
from studies.training.learned_positions import learned_positions
from studies.training.runs import load_data, make_model, train
from studies.training.settings import changed, run_of, setting
from studies.training.tasks import load_task, overlap
from studies.training.untied import Untied
from studies.which_positions import (
    ARMS,
    CLASSES,
    MOVED,
    TASKS,
    contrasts,
    correlation,
    further,
    further_arms,
    pretraining,
    pretraining_arms,
    properties_of,
)

RESULTS = Path(__file__).resolve().parents[2] / "results" / "tasks"
SMALL = {"n_layers": 1, "d_model": 8, "n_heads": 2, "steps": 3, "batch_size": 4, "warmup": 1, "length": 16}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A text, and a folder of real tasks, of our own making; the settings of a run on them."""
    words = ["who", "barks", "the", "dog", "number", "zero", "one", "two", "three", "four"]
    text = "".join(f"{word} {words[n % 7]} {words[n % 3]}\n" for n in range(60) for word in words)
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    (tmp_path / "sst2").mkdir()
    for part in ("train", "dev", "test"):
        (tmp_path / "sst2" / f"sst2_{part}.tsv").write_text("the dog\t1\nnumber one\t0\n" * 4, encoding="utf-8")
    qas = [{"question": "who barks", "answers": [{"answer_start": 4, "text": "dog"}]} for _ in range(2)]
    paragraphs = [{"context": f"the dog {words[n % 10]} {n}", "qas": qas} for n in range(20)]
    paragraphs += [{"context": f"the one {n}", "qas": [{"question": "who", "answers": []}]} for n in range(20)]
    (tmp_path / "xquad").mkdir()
    (tmp_path / "xquad" / "xquad.en.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    monkeypatch.setenv("POSEMBED_TASKS", str(tmp_path))
    return {"data": str(tmp_path / "text.txt"), "subwords": 60}


IN_POSITIONS = {"scheme": None, "scheme_options": None}


def pretrained(made, scheme="learned+shaw", **changes):
    return run_of(scheme=scheme, objective="masked", masking_rate=0.2, **made, **SMALL | {"cls": "tied"} | changes)


def on_task(start, task, **changes):
    new = {"objective": "task", "task": task, "masking_rate": None, "inspections": [], "start": start.told}
    return changed(start, **new | changes)


def stored(config, folder, **options):
    return run_and_store(config, folder, **options, train=partial(train, folder=folder))


@pytest.mark.parametrize("cls", ["tied", "untied", "moved"])
def test_a_task_begins_with_what_was_learned_before(cls, made, tmp_path):
    start = pretrained(made, cls=cls, inspections=["positions"])
    model = stored(start, tmp_path, save_model=True).model
    for task in ("sst2", "xquad-moved"):
        config = on_task(start, task, learning_rate=1e-12, weight_decay=0.0)
        result = stored(config, tmp_path)
        for name, value in model.transformer.state_dict().items():
            assert torch.allclose(result.model.transformer.state_dict()[name], value, atol=1e-9), name
        assert result.metrics["counted"]["train"] > 0
    assert {"f1", "with answer", "without answer"} <= set(result.metrics)


@pytest.mark.bad_input
def test_a_start_that_is_not_there(made, tmp_path, monkeypatch):
    config = on_task(pretrained(made), "sst2")
    assert "is not there" in refused(RunError, stored, config, tmp_path)
    assert refused(TaskError, load_task, on_task(pretrained(made), "sst2", subwords=None, cls=None)).startswith(
        "sst2 is read in subwords; say how many"
    )
    monkeypatch.delenv("POSEMBED_TASKS")
    assert refused(TaskError, load_task, config).endswith("name the folder that holds them in POSEMBED_TASKS")


def test_cls_stands_first_and_is_never_asked_for(made):
    config = pretrained(made)
    model, ids = make_model(config, load_data(config)).eval(), torch.arange(5, 11).view(2, 3)
    shown = []
    model.transformer.register_forward_pre_hook(lambda _, given: shown.append(given))
    found = MaskedBehindCLS(0.5).losses(model, ids, torch.Generator().manual_seed(0))
    seen, hidden = Masked(0.5).hide(ids, torch.Generator().manual_seed(0))
    ((read, positions),) = shown
    assert read.tolist() == [[2, *row] for row in seen.tolist()] and positions is None
    assert found.isnan().tolist() == [[True, *row] for row in (~hidden).tolist()]


def test_a_moved_cls_stands_anywhere_in_its_text_and_the_words_keep_their_order():
    tokens = torch.arange(6) < torch.tensor([6, 4]).repeat(300)[:, None]
    positions = cls_positions(tokens, torch.Generator().manual_seed(0))
    assert (positions.sort().values == torch.arange(6)).all()
    assert (positions[:, 1:].diff() > 0).all()
    assert set(positions[::2, 0].tolist()) == set(range(6)) and set(positions[1::2, 0].tolist()) == set(range(4))


def test_untied_nothing_but_the_first_token_is_another():
    at, q = torch.arange(4), torch.zeros(2, 3, 4, 8)
    alibi = ALiBi(3)
    untied = Untied(alibi, 3)
    torch.nn.init.constant_(untied.to_first, 5.0)
    for positions in (at, at.expand(2, 4)):
        bias = untied.bias(q, q, positions, positions).expand(2, 3, 4, 4)
        assert (bias[:, :, 0] == 0).all() and (bias[:, :, 1:, 0] == 5).all()
        assert torch.equal(bias[0, :, 1:, 1:], alibi.bias(q, q, at, at)[:, 1:, 1:])


def test_what_was_learned_of_positions(made):
    config = pretrained(made, scheme_options={"shaw": {"vectors": "sinusoidal", "max_distance": None}}, cls="untied")
    found = learned_positions(make_model(config, load_data(config)).eval(), 16)
    assert {name: len(each["map"]) for name, each in found.items()} == {"attention": 15, "table": 15, "relative": 13}
    # Products of sinusoids depend on the offset alone, and are symmetric.
    assert found["relative"]["translation_invariance"] == found["relative"]["symmetry"] == pytest.approx(1)
    relative = learned_positions(make_model(pretrained(made, "shaw"), load_data(config)).eval(), 16)
    assert set(relative) == {"attention", "relative"}
    runs = [RunResult(config, {"positions": each}, {}, "", 1.0) for each in (found, found)]
    assert properties_of("table", runs)["symmetry"] == pytest.approx(found["table"]["symmetry"])


def test_the_overlap_of_spans_is_f1_of_their_tokens():
    spans, others = torch.tensor([[2, 5], [0, 0], [1, 1]]), torch.tensor([[4, 7], [0, 0], [3, 4]])
    assert overlap(spans, others).tolist() == [0.5, 1.0, 0.0]


def complete(score):
    """Results of the whole plan; a score by task, arm and seed."""
    runs = []
    for arm, start in zip((*ARMS, *MOVED), pretraining_arms(), strict=True):
        known = [*start.trials, *start.chosen([result(config, {}) for config in start.trials])]
        known = [result(config, {}) for config in known]
        runs += known
        for task in TASKS if len(arm) == 2 else CLASSES:
            part = further(task, start, known)
            values = {config.key: score(task, arm, config.seed) for config in (*part.trials, *part.runs)}
            names = ("accuracy", "f1", "with answer", "without answer")
            runs += [result(config, dict.fromkeys(names, values[config.key])) for config in (*part.trials, *part.runs)]
    return runs


def result(config, metrics):
    return RunResult(config, {"validation_loss": config.learning_rate} | metrics, {}, "", 1.0)


def test_every_planned_contrast_is_what_was_put_in():
    form = {"absolute": 0.0, "relative": 0.1, "both": 0.3, "moved": 0.5, "untied": 0.7}
    kind = {"learned": 0.02, "sinusoidal": 0.0, "learnable_sinusoidal": 0.03}
    runs = complete(lambda task, arm, seed: form[arm[-1]] + kind[arm[0]] + 0.01 * seed**2)
    found = contrasts(runs)
    assert len(found) == 72 and {each.n for each in found.values()} == {5}
    means = {name: round(each.mean, 9) for name, each in found.items()}
    assert means["trec, learned: both minus relative"] == 0.2
    assert means["sst2, both: learnable_sinusoidal minus sinusoidal"] == 0.03
    assert means["learned, without answer: relative minus absolute"] == 0.1
    assert means["sst2, learned, absolute: moved minus tied"] == 0.5 - 0.0
    assert means["trec, learned, relative: untied minus tied"] == 0.6
    assert len(further_arms(runs)) == 9 * 4 + 3 * 2 + 2 * 2 and not further_arms([])


def test_the_arms_differ_in_their_positions_alone():
    runs = {arm: pretraining(*arm).runs[0] for arm in ARMS}
    assert len({run.key for run in runs.values()}) == 9
    # And, by kind, in the size that words begin with.
    told = {(arm[0] == "learned", json.dumps(run.told | IN_POSITIONS, sort_keys=True)) for arm, run in runs.items()}
    assert len(told) == len({learned for learned, _ in told}) == 2
    assert runs["sinusoidal", "both"].scheme_options == runs["sinusoidal", "relative"].scheme_options


@pytest.mark.bad_input
def test_a_correlation_is_over_schemes():
    schemes = dict(enumerate([1.0, 2.0, 4.0, 3.0]))
    r, p = correlation(schemes, {name: -value for name, value in schemes.items()})
    # Two of the 24 orders of four schemes are as extreme.
    assert r == pytest.approx(-1) and p == pytest.approx(2 / 24)
    for others in ({0: 1.0}, dict.fromkeys(schemes, 1.0)):
        assert refused(RunError, correlation, schemes, others).startswith("a correlation needs the same 3 to 9 schemes")


def test_every_planned_run_is_there():
    arms = pretraining_arms() + further_arms(read_results(RESULTS))
    assert len(arms) == 12 + 9 * 4 + 2 * 2 + 3 * 2
    assert standing(Plan("tasks", tuple(arms)), RESULTS).left == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "said"), [("word", 0.23), ("word-moved", 0.50), ("xquad", 0.40), ("xquad-moved", 0.47)]
)
def test_the_best_constant_guess_of_a_span(task, said):
    """What the chapter names beside F1: the span, or none, that agrees best with all of a task's answers."""
    config = next(run.config for run in read_results(RESULTS) if setting(run.config, "task") == task)
    if task.startswith("xquad") and "POSEMBED_TASKS" not in os.environ:
        pytest.skip("needs the real tasks: folders sst2, trec, cola and xquad in the one that POSEMBED_TASKS names")
    labels = load_task(config).test.labels
    spans = torch.combinations(torch.arange(config.length), with_replacement=True)
    best = max(float(overlap(span.expand_as(labels), labels).mean()) for span in spans)
    assert round(best, 2) == said
