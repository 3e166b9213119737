"""Doses of what a longer text costs: drawn positions, RoPE stretched, and the contrasts where they are known."""

from dataclasses import replace

import pytest
import torch

from posembed import RunResult
from posembed.training import RunConfig
from studies import length_doses
from studies.length_law import COEFFICIENTS
from studies.training import drawn, longer, stretched
from studies.training.longer import LENGTHS
from studies.training.runs import make_model, objective_of, train
from studies.training.settings import changed

TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "steps": 2, "batch_size": 2, "warmup": 1}
# What two doses lose at 256 in the runs that are told below.
TOLD = {"t5, max_distance 32": 0.1, "rope, base 100000": 3.0}


@pytest.fixture(autouse=True)
def few_texts(monkeypatch):
    for module in (drawn, longer, stretched):
        monkeypatch.setattr(module, "TEXTS", 4)


def test_drawn_positions_rise_and_come_from_all_that_there_are():
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([drawn.drawn(63, 256, generator) for _ in range(50)])
    assert (draws.diff() > 0).all()
    assert draws.unique().tolist() == list(range(256))


def test_a_model_without_positions_does_not_notice_that_they_are_drawn(corpus):
    config = changed(RunConfig(**TINY), drawn_positions=256)
    model, ids = make_model(config, corpus), corpus.train[None, :64].long()
    plain, its = (
        objective_of(each).loss(model, ids, torch.Generator().manual_seed(0)) for each in (RunConfig(**TINY), config)
    )
    torch.testing.assert_close(plain, its)
    found = drawn.inspect_drawn(model.eval(), config, corpus, 256)
    assert found["drawn"] == pytest.approx(found["as they stand"], abs=1e-4)


def test_a_table_is_asked_at_the_rows_that_are_drawn(corpus):
    config = changed(RunConfig(scheme="learned", test_length=256, **TINY), drawn_positions=256)
    found = drawn.inspect_drawn(make_model(config, corpus).eval(), config, corpus, 255)
    # Of 255 rows all are read where 256 tokens are, of which the last is not read.
    assert found["drawn"]["256"] == pytest.approx(found["as they stand"]["256"], abs=1e-4)
    assert found["drawn"]["64"] != found["as they stand"]["64"]


def test_what_is_stretched_reads_shorter_texts_as_before(corpus):
    config = RunConfig(scheme="rope", **TINY)
    model = make_model(config, corpus).eval()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    found = stretched.inspect_stretched(model, config, corpus)
    assert {name: its["64"] for name, its in found.items()} == dict.fromkeys(found, found["none"]["64"])
    assert len({its["256"] for its in found.values()}) == 4
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())


def test_runs_that_the_study_of_length_has_are_the_same_ones():
    from studies import length

    for ours, theirs in (("rope, base 10000", "rope"), ("rope, base 100", "rope, base 100"), ("nopos", "nopos")):
        assert length_doses.runs()[ours].key == length.arm(theirs).run.key


def test_each_arm_is_asked_what_its_contrasts_need(corpus, monkeypatch):
    monkeypatch.setattr(length_doses, "load_corpus", lambda _: corpus)
    names = "t5, max_distance 64", "scaled_logits+rope", "learned, drawn", "rope, long"
    runs = {**length_doses.runs(), "scaled_logits+rope": length_doses.runs()["rope, scaled"]}
    asked = [length_doses.asked_of(runs[name]).keys() for name in names]
    assert [sorted(each) for each in asked] == [["longer", "reach"], ["longer"], ["drawn"], ["stretched"]]


def test_the_last_block_of_a_stack_is_not_shown_what_is_hidden_and_its_own_past_stays(corpus):
    ids = corpus.test[None, :512].long()
    whole, first = (longer.veiled(ids, 64, 256, hidden)[2][0] for hidden in ([], [0]))
    assert torch.equal(whole, longer.stack(ids, 64, 256)[2][0])
    assert (whole & ~first).nonzero().tolist() == [
        [query, 32 * block] for query in range(224, 255) for block in range(6)
    ]
    # With nothing of the added blocks the last one reads what a text of the trained length has.
    model = make_model(RunConfig(**TINY), corpus).eval()
    found = longer.inspect_beginnings(model, RunConfig(**TINY), corpus)
    assert list(found) == ["all", "first", "middle", "but the first", "none"]
    assert found["none"] == pytest.approx(
        longer.inspect_longer(model, RunConfig(**TINY), corpus)["plain"]["64"], abs=1e-4
    )


def told_runs():
    """Results in which the law is right, and doses but those of `TOLD` lose one thing, in proportion to the length."""
    of_new, _ = COEFFICIENTS["law"]
    results = []
    for arm in length_doses.arms():
        for run in arm.runs([]):
            rise = TOLD.get(arm.name, 1.0 if run.scheme in length_doses.DOSES else 0.0) + run.seed / 100
            new = {str(n): {"new": [[rise * n / 256 / of_new]], "far": [[0.0]]} for n in LENGTHS}
            plain = {"64": 1.0} | {str(n): 1.0 + rise * n / 256 for n in LENGTHS}
            by_way = {way: {"64": 1.0, "128": 2.0, "256": 3.0} for way in ("as they stand", "drawn")}
            by_scaling = {name: {"512": 1.0, "1024": place} for place, name in enumerate(stretched.SCALED)}
            metrics = {"longer": {"plain": plain}, "reach": {"worth": [[1.0]], **new}, "stretched": by_scaling}
            if "drawn" in length_doses.asked_of(run):
                metrics["drawn"] = by_way
            if "beginnings" in length_doses.asked_of(run):
                metrics["beginnings"] = {"all": 3.0, "first": 2.0, "middle": 3.0, "but the first": 1.5, "none": 1.0}
            results.append(RunResult(run, metrics, {}, "", 1.0))
    return results


def test_contrasts_and_the_law_of_runs_that_are_told():
    results = told_runs()
    found = length_doses.contrasts(results)
    assert len(found) == 4 + 8 + 2 + 6 + 4 + 5 and all(each.n == 5 for each in found.values())
    assert found["t5, max_distance 32 minus 128: rise at 256"].mean == pytest.approx(-0.9)
    assert found["rope, base 100000 minus 10000: rise at 128"].mean == pytest.approx(1.0)
    assert found["rope, base 100 minus 10000: rise at 128"].mean == pytest.approx(0)
    assert found["nopos, scaled minus not: loss at 64"].mean == 0
    assert found["yarn minus ntk, trained on 256: loss at 1024"].mean == pytest.approx(1)
    added = {name.split(": ")[1]: each.mean for name, each in length_doses.added_contrasts(results).items()}
    assert added == {
        "without first tokens minus all of them": -1,
        "without middle tokens minus all of them": 0,
        "first tokens alone minus none of them": 0.5,
        "without first tokens minus none of them": 1,
    }
    law = length_doses.law_contrasts(results)
    assert law["all doses: law"].mean == pytest.approx(1, abs=1e-3)
    assert law["all doses: law minus as usual"].mean > 0.5
    assert len(length_doses.right_sides(results)) == 10
    assert all(length_doses.right_sides(results)[name] for name in TOLD)


def test_a_small_run_is_trained_and_asked(monkeypatch, tmp_path):
    run = changed(replace(length_doses.runs()["rope, drawn"], seed=1), **TINY)
    result = length_doses.trained(run)
    assert result.metrics["drawn"].keys() == {"as they stand", "drawn"}
    assert result.metrics["loss"] == train(run).metrics["loss"]
