"""Studies that ship, as tables: what a chapter reads."""

import gzip
import json
import warnings

import pandas
import pytest
from refusals import refused

from posembed import load_results, load_study
from posembed.errors import RunError
from posembed.stats import difference, interval
from posembed.stored import load_plan, load_runs, stored_studies, studies, study_names, summary


def test_a_row_for_each_reported_run_and_a_row_for_each_contrast():
    study = load_study("encodings")
    assert study.about.startswith("The study of chapters 3 and 4")
    assert list(study.runs.groupby("arm", sort=False).groups) == list(study.by_arm)
    assert set(study.runs["seed"]) == {1, 2, 3, 4, 5} and len(study.runs) == 40
    for arm, runs in study.by_arm.items():
        rows = study.runs[study.runs["arm"] == arm]
        assert rows["loss"].tolist() == [run.metrics["loss"] for run in runs]
        assert rows["key"].tolist() == [run.config.key for run in runs]
    loss = study.runs.pivot(index="seed", columns="arm", values="loss")
    for one, other in (("rope", "nopos"), ("learned", "sinusoidal")):
        wanted = difference(loss[one], loss[other])
        row = study.contrasts.loc[f"{one} minus {other}"]
        assert (row["mean"], row["low"], row["n"]) == (pytest.approx(wanted.mean), pytest.approx(wanted.low), 5)
    assert set(study.contrasts["family"]) == {"planned"}


def test_each_family_is_corrected_by_itself():
    contrasts = load_study("tasks").contrasts
    sizes = contrasts.groupby("family").size()
    assert dict(sizes) == {"doses": 36, "doses, longer": 12, "schemes": 72}
    for family, rows in contrasts.groupby("family"):
        assert rows["holm"].min() == pytest.approx(min(1, rows["p"].min() * sizes[family]))


def test_results_name_their_study_arm_and_seed():
    """By its scheme alone a run with positions dropped would stand among those that have them."""
    with pytest.warns(UserWarning, match=r"several arms \(alibi in 4, learned in 11, .* group by 'arm', for by"):
        table = load_results("nopos")
    runs = load_study("nopos").runs
    assert list(table.columns[:3]) == ["study", "arm", "seed"] and set(table["study"]) == {"nopos"}
    assert table["key"].tolist() == runs["key"].tolist() and table["arm"].tolist() == runs["arm"].tolist()
    assert table.groupby(["arm", "seed"]).size().max() == 1
    means = table.groupby("arm")["metrics.loss"].mean().round(3)
    assert (means["causal, rope"], means["causal, learned"]) == (1.251, 1.348)
    # The trap of which the warning and the docstring speak.
    mixed = table.groupby("config.scheme")["metrics.loss"].mean()
    assert mixed["t5"] < mixed["rope"] and means["causal, rope"] < means["causal, t5"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(load_results("encodings")) == 40 and len(summary("nopos")) == 40


def test_a_summary_has_an_interval_for_each_arm_and_pairs_its_seeds():
    table, study = summary("nopos", against="causal, nopos"), load_study("nopos")
    assert list(table.index) == list(study.by_arm)
    assert table["n"].tolist() == [len(runs) for runs in study.by_arm.values()]
    planned = study.contrasts.loc["causal: learned minus nopos"]
    found = table.loc["causal, learned", ["minus", "minus_low", "minus_high", "pairs"]]
    assert found.tolist() == pytest.approx(planned[["mean", "low", "high", "n"]].tolist(), abs=1e-6)
    own = interval(study.runs.set_index("arm").loc["causal, learned", "loss"].tolist())
    assert table.loc["causal, learned", ["mean", "low", "high"]].tolist() == [own.mean, own.low, own.high]
    assert "there is no arm 'rope'; choose among 'causal, nopos'" in refused(RunError, summary, "nopos", against="rope")
    assert refused(RunError, summary, "nopos", metric="los").startswith(
        "there is no metric 'los' that is a number; choose among loss,"
    )
    assert "choose among loss," in refused(RunError, summary, "nopos", metric="scheme")
    runs = load_results("encodings")
    twice = pandas.concat([runs, runs[runs["arm"] == "rope"]])
    assert "'rope' has a seed twice" in refused(RunError, summary, twice)


def test_what_is_read_is_shown_in_short():
    """Printed, all tables were half a million characters, and one study more than a million."""
    (name, table), *_ = stored_studies().items()
    study = load_study("nopos")
    assert repr(table).startswith(f"TableStudy(source={name!r}, revision=") and "scores=..." in repr(table)
    assert repr(study) == "Study(name='nopos', about=..., by_arm=..., trials=..., planned=...)"
    assert repr(load_runs("nopos")[0]).startswith("RunResult(config=..., metrics=..., versions=")
    assert max(map(len, map(repr, [table, study, load_runs("nopos")[0]]))) < 1000


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A package with one study, whose file can be changed."""
    content = json.loads(gzip.decompress((studies._folder() / "nopos-large.json.gz").read_bytes()))
    monkeypatch.setattr(studies, "_folder", lambda: tmp_path)

    def write(change=lambda content: None, cut=None):
        change(content)
        (tmp_path / "mine.json.gz").write_bytes(gzip.compress(json.dumps(content).encode())[:cut])

    write()
    return write


DAMAGE = {
    "cut off": {"cut": 1000},
    "without its plan": {"change": lambda content: content.pop("plan")},
    "without a run": {"change": lambda content: content["runs"].popitem()},
    "a contrast of words": {"change": lambda content: content["contrasts"]["planned"].update(a="b")},
    "runs of another kind": {"change": lambda content: content.update(runs=[1, 2])},
}


@pytest.mark.bad_input
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_bundle_is_one_line_with_its_file(shipped, damage):
    assert load_study("mine").name == "mine"
    shipped(**damage)
    said = "mine.json.gz is damaged, or of another kind; install posembed again"
    assert refused(RunError, load_study, "mine") == said


@pytest.mark.bad_input
def test_what_is_not_there_or_of_another_version_is_one_line(shipped):
    assert study_names() == ["mine"]
    for load in (load_study, load_plan, load_runs):
        assert refused(RunError, load, "theirs") == "there is no study 'theirs'; choose among mine"
    assert refused(RunError, load_plan, "mine", "large") == "preset is 'large'; choose among smoke, cpu"
    shipped(lambda content: content.update(format=3))
    assert "has format 3, this version of posembed reads 2; upgrade posembed" in refused(RunError, load_study, "mine")
