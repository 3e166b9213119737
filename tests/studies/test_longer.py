"""Ways to read a longer text, and what attention would do in one, where both are known; and the study in miniature."""

from dataclasses import replace

import pytest
import torch

from posembed import RunResult
from posembed.training import RunConfig
from studies import length, length_law, length_said
from studies.search import results_in
from studies.training import longer, reach, remedies
from studies.training.longer import WAYS, inspect_longer
from studies.training.reach import attention_of, inspect_reach, novelty, queries_and_keys, untouched_rows
from studies.training.remedies import inspect_remedies, interpolated, shared
from studies.training.runs import make_model

TINY = {"n_layers": 2, "d_model": 16, "n_heads": 2, "length": 64, "steps": 3, "batch_size": 4, "warmup": 1}


@pytest.fixture(autouse=True)
def few_texts(monkeypatch):
    for module in (longer, reach, remedies):
        monkeypatch.setattr(module, "TEXTS", 4)


def model_of(corpus, scheme, **options):
    config = RunConfig(scheme=scheme, scheme_options={scheme: options} if options else {}, test_length=512, **TINY)
    return make_model(config, corpus).eval(), config


@pytest.fixture
def texts(corpus):
    return corpus.test[: 4 * 512].view(4, 512).long()


@pytest.mark.parametrize("scheme", ["learned", "rope", "fire", "nopos"])
def test_at_the_trained_length_all_ways_are_one(corpus, texts, scheme):
    model, _ = model_of(corpus, scheme)

    def last(way):
        ids, positions, mask = way(texts, 64, 64)
        return model(ids[:, :-1], positions[:-1], attention_mask=mask)[:, -16:]

    plain = model(texts[:, -64:-1])[:, -16:]
    for name, way in WAYS.items():
        assert torch.allclose(last(way), plain, atol=1e-4) == (name != "again"), name


def test_what_changes_nothing_costs_nothing(corpus):
    """Without positions no gap is one, and moving all costs a relative scheme nothing; the rest of the ways differ."""
    none, alibi = (inspect_longer(*model_of(corpus, scheme), corpus) for scheme in ("nopos", "alibi"))
    for n in longer.APART:
        last = none["plain"]["64"]
        assert (
            none["gap"][str(n)] == none["moved"][str(n)] == none["repeat, few"][str(n)] == pytest.approx(last, abs=1e-5)
        )
        assert none["repeat"][str(n)] == pytest.approx(none["plain"][str(n)], abs=1e-5)
        assert alibi["moved"][str(n)] == pytest.approx(alibi["plain"]["64"], abs=1e-4)
        assert len({alibi[way][str(n)] for way in ("plain", "gap", "stack", "repeat", "repeat, few")}) == 5


def test_what_stands_at_the_end_stands_at_the_beginning_again(texts):
    for n in (64, 256):
        ids, positions, _ = WAYS["again"](texts, 64, n)
        assert ids.shape == (4, n) and positions.tolist() == [*range(n)]
        assert torch.equal(ids[:, :32], ids[:, -32:]) and torch.equal(ids[:, 32:], texts[:, 512 - n + 32 :])


def test_in_a_stack_no_position_is_new_and_the_last_block_sees_all(texts):
    ids, positions, mask = WAYS["stack"](texts, 64, 256)
    assert positions.max() == 63 and ids.shape == (4, 256)
    seen = mask[0] & torch.ones(255, 255).tril().bool()
    assert seen[-1].all() and seen.sum(1)[:224].tolist() == [*range(1, 33)] * 7
    offsets = (positions[:-1, None] - positions[:-1])[seen]
    assert offsets.min() == 0 and offsets.max() == 62


@pytest.mark.parametrize("scheme", ["alibi", "shaw", "xpos", "cope", "forgetting", "pope"])
def test_what_is_made_up_at_the_trained_length_is_what_the_model_attends_to(corpus, texts, scheme, monkeypatch):
    model, _ = model_of(corpus, scheme)
    ids, found = texts[:, :63], []
    layers = queries_and_keys(model, ids)
    monkeypatch.setattr("posembed.models.multi_head.attend", lambda q, k, v, **rest: _noted(found, q, k, v, **rest))
    model(ids)
    for whole, part in zip(found, layers, strict=True):
        assert torch.allclose(attention_of(*part, torch.arange(63)), whole[:, :, -1], atol=1e-5)


def _noted(found, q, k, v, **rest):
    every = torch.eye(k.shape[2]).expand(*k.shape[:2], -1, -1)
    found.append(reach.attend(q, k, every, **rest))
    return found[-1] @ v


TOUCHED = [
    ("nopos", {}, 0.0),
    ("shaw", {}, 0.0),
    ("t5", {"max_distance": 32}, 0.0),
    ("t5", {}, 1.0),
    ("alibi", {}, 1.0),
    ("forgetting", {}, 1.0),
    ("rope", {"pairs": "proportional", "fraction": 0.25}, 0.0),
]


@pytest.mark.parametrize(("scheme", "options", "last"), TOUCHED)
def test_what_is_untouched(corpus, texts, scheme, options, last):
    """Nothing of what training had; of what is furthest back in a text of 512 all or nothing."""
    model, _ = model_of(corpus, scheme, **options)
    layer = queries_and_keys(model, texts[:, :63])[0]
    new = novelty(*layer, torch.arange(511)).expand(4, 2, -1)
    # What is made up repeats tokens that are near the beginning, and with them their gates.
    near = 63 - reach.BEGINNING if scheme == "forgetting" else 63
    assert not new[..., -near:].any() and (new[..., :300] == last).all()


def test_rows_are_untouched_from_the_first_that_no_text_had(corpus):
    model, _ = model_of(corpus, "learned")
    share = untouched_rows(model.transformer.position_scheme, 63)
    assert (share(62), share(63)) == (0.0, 1.0)
    sinusoids = untouched_rows(model_of(corpus, "sinusoidal")[0].transformer.position_scheme, 63)
    assert 0 < sinusoids(63) < 1 and sinusoids(62) == 0


REMEDIES = [
    ("nopos", {}, {"sharper"}),
    ("t5", {}, {"sharper", "shared"}),
    ("rope", {"pairs": "proportional", "fraction": 0.5}, {"sharper", "interpolated", "ntk"}),
]


@pytest.mark.parametrize(("scheme", "options", "names"), REMEDIES)
def test_a_scheme_has_the_remedies_that_fit_it_and_is_left_as_it_was(corpus, scheme, options, names):
    model, config = model_of(corpus, scheme, **options)
    before = inspect_longer(model, config, corpus)
    found = inspect_remedies(model, config, corpus)
    assert found.keys() == names and all({*each} == {"96", "128", "256", "512"} for each in found.values())
    assert inspect_longer(model, config, corpus) == before
    assert all(each[n] != before["plain"][n] for each in found.values() for n in each)


def test_angles_that_are_interpolated_are_those_of_the_training(corpus):
    model, config = model_of(corpus, "rope")
    trained, helped = (
        each.transformer.layers[0].attention.position_scheme
        for each in (model, interpolated(model_of(corpus, "rope")[0], config, 256))
    )
    assert torch.allclose(helped.frequencies * 4, trained.frequencies)


def test_shared_buckets_hold_the_number_of_the_furthest_offset_of_the_training(corpus):
    model, config = model_of(corpus, "t5")
    with torch.no_grad():
        helped = shared(model, config, 256)
    bias = helped.transformer.position_scheme.bias_by_offset(-torch.arange(512))
    assert torch.equal(bias[:, 62:], bias[:, [62]].expand(-1, 450)) and bias[:, :63].unique(dim=1).shape[1] > 20


def test_the_study_in_miniature(corpus, monkeypatch):
    """What an untrained model gives, moved a little for each arm and seed, through the fit and all contrasts."""
    model, config = model_of(corpus, "rope")
    reached, asked = inspect_reach(model, config, corpus), inspect_longer(model, config, corpus)

    def run_of(arm, number, seed):
        lost = {
            way: {n: loss + number * seed * int(n) / 1e4 for n, loss in of.items()}
            for way, of in asked.items()
            if way != "half"
        }
        worth = [[each + 1 for each in row] for row in reached["worth"]]
        found = {"reach": reached | {"worth": worth}, "longer": lost, "remedies": {"sharper": {"256": 1.0 + seed}}}
        return RunResult(replace(arm.run, seed=seed), found, {}, "", 1.0)

    by_arm = {
        arm.name: [run_of(arm, number, seed) for seed in arm.seeds] for number, arm in enumerate(length.arms(), start=1)
    }
    found = length_law.fit([by_arm[name][0] for name in length_law.FITTED])
    assert {name: len(each) for name, each in found.items()} == dict.fromkeys(found, 1) | {"law": 2, "draft": 2}
    monkeypatch.setattr(length_law, "COEFFICIENTS", found)
    verdicts = length_law.verdicts(by_arm, length_law.ASKED_AFTER)
    assert verdicts.keys() == {*length_law.TERMS, "name"} and all(r2 < 1 for r2 in verdicts.values())
    runs = [run for its in by_arm.values() for run in its]
    law = length.law_contrasts(runs)
    assert len(law) == 3 * 7 and law["asked: law"].n == len(length.SEEDS)
    contrasts = length.contrasts(runs)
    assert len(contrasts) == 16 * 8 - 3 * 2 and all(each.n == len(length.SEEDS) for each in contrasts.values())


def test_r2_is_one_for_what_was_said_right_and_none_for_the_mean():
    assert length_law.explained([[0.0, 1.0]], [[0.0, 1.0]]) == 1
    assert length_law.explained([[0.5, 0.5]], [[0.0, 1.0]]) == 0
    assert length_law.onset([0.0, 0.2] + [1.0] * 7) == 96 and length_law.onset([0.0] * 9) is None


def test_no_arm_that_is_not_fitted_was_asked_before_the_formula_had_its_coefficients():
    """What is stored keeps the promise of the plan, and the coefficients are those of the fitted runs."""
    runs = results_in(length_said.OUT)
    fitted = length_said.fitted(runs)
    if length_law.COEFFICIENTS:
        for name, found in length_law.fit(fitted).items():
            assert found == pytest.approx(length_law.COEFFICIENTS[name], abs=2e-4)
    else:
        assert {length_said.arm_of(run) for run in runs if "longer" in run.metrics} <= {*length_law.FITTED}


def test_what_is_said_stands_beside_what_came(monkeypatch):
    runs = [run for run in results_in(length_said.OUT) if length_said.arm_of(run) == "nopos"][:1]
    monkeypatch.setattr(
        length_law, "COEFFICIENTS", dict.fromkeys(length_law.TERMS, (1.0,)) | {"law": (1, 1), "draft": (1, 1)}
    )
    head, *rows = length_said.said(runs)
    assert len(rows) == 9 and rows[0][:3] == [runs[0].config.scheme, "1", "80"]
    worth = torch.tensor(runs[0].metrics["reach"]["worth"])
    far = torch.tensor(runs[0].metrics["reach"]["80"]["far"])
    if runs[0].config.scheme == "nopos":
        assert float(rows[0][head.index("law")]) == pytest.approx(float((worth * far).sum()), abs=1e-3)
