"""Four questions at the end of a text: their answers stand in it, and a small model is trained and asked."""

from dataclasses import replace

import pytest
import torch

from posembed import RunResult
from studies import far_questions
from studies.training import questions
from studies.training.questions import ASKED, BEGIN, COUNT, COUNTS, FIRST, KEY, LETTERS, MARK, NAMES, SHORTEST, draw
from studies.training.runs import train


@pytest.mark.parametrize("length", [SHORTEST, 64, 256])
def test_each_answer_is_what_stands_in_the_text(length):
    ids, order, back = draw(50, length, torch.Generator().manual_seed(0))
    for text, which, (key, name) in zip(ids.tolist(), order.tolist(), back.tolist(), strict=True):
        body, end = text[:-ASKED], text[-ASKED:]
        assert body[0] == BEGIN and LETTERS <= body[1] < NAMES and len(text) == length
        assert sorted(which) == [0, 1, 2, 3]
        asked = dict(zip(which, zip(end[::2], end[1::2], strict=True), strict=True))
        assert asked[0] == (FIRST, body[1])
        assert asked[1] == (KEY, body[-key + 1]) and body[-key] == KEY and body.count(KEY) == 1
        assert asked[2] == (body[-name], body[-name + 1]) and body.count(asked[2][0]) == 1
        assert asked[3] == (COUNT, COUNTS + body.count(MARK))
        assert sum(NAMES <= each < COUNTS for each in body) == questions.NAMED


def test_a_model_that_knows_the_answers_is_right_in_each(monkeypatch):
    """Answers are told apart by question, whatever their order in a text."""
    asked = draw(6, 64, torch.Generator().manual_seed(1))
    wrong = asked.order[:, 0]

    def oracle(ids, positions=None):
        logits = torch.nn.functional.one_hot(asked.ids[:, 1:], questions.VOCABULARY).float()
        logits[:, 1 - ASKED] = 0
        return logits

    right = questions.answered(oracle, asked)
    assert (right.sum(1) == 3).all() and (right.argmin(1) == wrong).all()


def test_a_small_model_is_trained_and_asked(monkeypatch):
    monkeypatch.setattr(questions, "FIXED", 8)
    monkeypatch.setattr(questions, "LENGTHS", (128, 256))
    small = replace(far_questions.arm("learned").run, n_layers=1, d_model=8, n_heads=1, steps=2, batch_size=2, warmup=1)
    found = train(small).metrics
    assert found["asked"]["plain"].keys() == {"64", "128", "256"} and found["asked"]["far"].keys() == {"256"}
    assert found["loss"] > 0 and found["parameters"] > 0
    assert "asked" not in train(replace(small, test_length=None)).metrics


def test_the_contrasts_are_of_runs_that_have_learned_a_question():
    """RoPE in all seeds; the table in two, which is too few; of the others nobody."""

    def run_of(arm, seed):
        able = arm.name == "rope" or (arm.name == "learned" and seed < 3)
        right = dict.fromkeys(questions.QUESTIONS, 0.9 if able else 0.1)
        plain = {"64": right, "256": dict.fromkeys(right, 0.4 + seed / 100)}
        asked = {"plain": plain, "far": plain, "gap": {"128": dict.fromkeys(right, 0.5)}, "no gap": right}
        asked |= {way: {"256": dict.fromkeys(right, 0.1)} for way in ("last", "far, last")}
        config = next(each for each in arm.runs(trials) if each.seed == seed)
        return RunResult(config, {"asked": asked}, {}, "", 1.0)

    arms = far_questions.arms()
    trials = [
        RunResult(trial, {"validation_loss": abs(rate - 1e-2)}, {}, "", 1.0)
        for arm in arms
        for rate in far_questions.RATES
        for trial in arm.trials_at(rate)
    ]
    runs = [*trials, *(run_of(arm, seed) for arm in arms for seed in far_questions.SEEDS)]
    found = far_questions.contrasts(runs)
    assert {name.split(",")[0] for its in found.values() for name in its} == {"rope"}
    assert [len(its) for its in found.values()] == [4, 8] and all(each.n == 5 for each in found["primary"].values())
    assert round(found["primary"]["rope, needle: gap minus none"].mean, 2) == -0.4
    assert round(found["secondary"]["rope, first: at 256 minus its end"].mean, 2) == 0.33
