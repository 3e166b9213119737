"""Results, trained tables and models as files, and the results that are stored: all are read, under their names."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
import torch
from refusals import refused

from posembed import RunConfig, RunResult, load_results, train
from posembed.errors import RunError
from posembed.stored import load_tables, studies, study_names, summary
from posembed.stored.studies import bundle_tables
from posembed.training import (
    make_model,
    missing,
    read_model,
    read_result,
    read_results,
    read_tables,
    run_and_store,
    write_model,
    write_result,
    write_table,
)
from posembed.training.results import file_of, parse_result

RESULTS = Path(__file__).resolve().parents[2] / "results"
TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16}


def result(**changes):
    return RunResult(RunConfig(**changes), {"loss": 2.5, "scheme": {"weight": [1.0]}}, {"torch": "2"}, "a CPU", 1.5)


def test_a_result_comes_back(tmp_path):
    path = write_result(result(seed=3), tmp_path)
    assert path.name == f"{RunConfig(seed=3).key}.json"
    assert read_result(path) == result(seed=3)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert parse_result(json.loads(path.read_text())) == result(seed=3)
    write_result(RunResult(RunConfig(), {"loss": 0}, {}, "", 0.0), tmp_path)
    assert missing([RunConfig(seed=3), RunConfig(seed=4), RunConfig(), RunConfig(seed=4)], tmp_path) == [
        RunConfig(seed=4)
    ]


@pytest.mark.parametrize(
    "write",
    [
        lambda loss, folder: write_result(RunResult(RunConfig(), {"loss": loss}, {}, "", 0.0), folder),
        lambda loss, folder: write_table(torch.full((3, 2), loss), RunConfig(), folder),
    ],
    ids=["result", "table"],
)
def test_a_failed_write_leaves_nothing_and_keeps_what_was_there(tmp_path, full_disk, write):
    path = write(1.0, tmp_path)
    before = path.read_bytes()
    full_disk()
    assert "No space left" in refused(OSError, write, 2.0, tmp_path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "is damaged, or of another kind; move it away"),
        (lambda text: "", "is damaged, or of another kind; move it away"),
        (lambda text: "[]", "is damaged, or of another kind; move it away"),
        (lambda text: text.replace('"metrics"', '"metric"'), "is damaged, or of another kind; move it away"),
        (
            lambda text: text.replace('"metrics": {', '"metrics": 5, "speed": {'),
            "is damaged, or of another kind; move it away",
        ),
        (
            lambda text: text.replace('"wall_seconds": 1.5', '"wall_seconds": "long"'),
            "is damaged, or of another kind; move it away",
        ),
        (lambda text: text.replace('"format": 1,', ""), "is damaged, or of another kind; move it away"),
        # Of two entries of one name the second would count, without a word.
        (
            lambda text: text.replace('"wall_seconds"', '"wall_seconds": 9.5, "wall_seconds"'),
            "is damaged, or of another kind; move it away",
        ),
        (
            lambda text: text.replace('"format": 1', '"format": 2'),
            ": it has format 2, this version of posembed reads 1",
        ),
        (
            lambda text: text.replace('"seed"', '"optimizer": "nag", "seed"'),
            ": optimizer is 'nag'; posembed has no opt",
        ),
        (lambda text: text.replace('"seed": 0', '"seed": 1'), f"holds the run {RunConfig(seed=1).key}; give it that"),
    ],
    ids=[
        "cut",
        "empty",
        "another form",
        "without metrics",
        "no metrics",
        "no time",
        "without a format",
        "an entry twice",
        "newer",
        "retired",
        "another run",
    ],
)
def test_a_result_that_cannot_be_read_is_an_error_and_stays(tmp_path, damage, message):
    path = write_result(result(), tmp_path)
    path.write_text(damage(path.read_text()))
    before = path.read_text()
    said = refused(RunError, read_results, tmp_path)
    assert said.startswith(path.name) and message in said
    assert refused(RunError, missing, [RunConfig()], tmp_path) == said
    assert path.read_text() == before


ALTERED = [
    *({"metrics": value} for value in (None, {}, [2.5], {"loss": None}, {"loss": "2.5"})),
    *({"metrics": {"loss": value}} for value in (math.nan, math.inf, -2.5)),
    *({"metrics": {"loss": 2.5, "validation_loss": value}} for value in (math.nan, -2.5)),
    *({"wall_seconds": value} for value in ("an hour", None, -1.0, math.nan, math.inf, True)),
    *({"speed": value} for value in (None, "fast", {"tokens_per_second": "many"}, {"tokens_per_second": math.nan})),
]


@pytest.mark.bad_input
@pytest.mark.parametrize("change", ALTERED, ids=str)
def test_a_result_that_was_altered_by_hand_is_damaged(tmp_path, change):
    path = write_result(result(), tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert refused(RunError, read_results, tmp_path).startswith(
        f"{path.name} is damaged, or of another kind; move it away"
    )


@pytest.mark.bad_input
def test_what_is_not_there_is_named(tmp_path):
    path = write_result(result(), tmp_path)
    assert refused(RunError, read_results, path) == f"{path.name} is a file; give the folder of the results"
    studies = ", ".join(study_names())
    said = f"there is no folder 'nothing'; give one, or the name of a study: {studies}"
    assert refused(RunError, load_results, "nothing") == said


def test_the_table_of_a_folder_says_of_each_value_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2, 3):
        write_result(result(scheme="learned", seed=seed), "nopos")
    table = load_results(Path("nopos")).set_index("config.seed")
    assert list(table["config.scheme"]) == ["learned"] * 3 and list(table["metrics.scheme"]) == [{"weight": [1.0]}] * 3
    assert table.loc[2, "key"] == RunConfig(scheme="learned", seed=2).key
    assert dict(table.loc[3, ["metrics.loss", "versions.torch", "machine", "wall_seconds"]]) == {
        "metrics.loss": 2.5,
        "versions.torch": "2",
        "machine": "a CPU",
        "wall_seconds": 1.5,
    }
    # The study of the package keeps its name; a path means the folder.
    assert len(load_results("./nopos")) == 3 < len(load_results("nopos"))


def test_the_arms_of_a_folder_are_the_settings_that_differ(tmp_path):
    for seed in (1, 2):
        for rate in (0.01, 0.001):
            write_result(result(scheme="learned", seed=seed, learning_rate=rate), tmp_path / "mine")
    table = load_results(tmp_path / "mine")
    assert set(table["study"]) == {"mine"} and table.groupby("arm")["seed"].apply(sorted).to_dict() == {
        "learning rate 0.001": [1, 2],
        "learning rate 0.01": [1, 2],
    }
    one = table[(table["arm"] == "learning rate 0.01") & (table["seed"] == 1)]
    assert summary(one).loc["learning rate 0.01"].isna().tolist() == [False, True, True, False]


@pytest.mark.bad_input
@pytest.mark.parametrize("diverged", [float("nan"), float("inf")])
def test_a_run_that_diverged_is_not_left_out_in_silence(diverged):
    losses = {"steady": (1.0, 2.0, 3.0), "wild": (1.0, diverged, 3.0), "lost": (float("nan"),) * 3}
    rows = [{"arm": arm, "seed": seed, "metrics.loss": loss} for arm in losses for seed, loss in enumerate(losses[arm])]
    with pytest.warns(UserWarning, match=r"^runs are left out, for their loss is no number: wild \(33%\)$"):
        assert summary(pd.DataFrame(rows))["n"].to_dict() == {"steady": 3, "wild": 2}


@pytest.mark.bad_input
def test_a_bad_file_is_named_and_no_table_is_made_without_it(tmp_path):
    path, _ = (write_result(result(seed=seed), tmp_path) for seed in range(2))
    path.write_text("{")
    said = f"{path.name} is damaged, or of another kind; move it away and run its config again"
    assert refused(RunError, load_results, tmp_path) == said
    (tmp_path / "empty").mkdir()
    said = f"there are no results in {str(tmp_path / 'empty')!r}; give the folder with the runs' JSON files"
    assert refused(RunError, load_results, tmp_path / "empty") == said


# Tables.


TABLE = torch.randn(12, 8, generator=torch.Generator().manual_seed(0))


def test_tables_come_back_in_half_precision_by_the_keys_of_their_configs(tmp_path):
    configs = [RunConfig(seed=seed) for seed in (1, 2)]
    paths = [write_table(torch.nn.Parameter(TABLE * config.seed), config, tmp_path) for config in configs]
    assert [path.name for path in paths] == [f"{config.key}.npy" for config in configs]
    (tmp_path / ".half-written.tmp").write_text("half a tab")
    tables = read_tables(tmp_path)
    assert set(tables) == {config.key for config in configs}
    assert tables[configs[1].key].dtype == torch.float32
    assert torch.equal(tables[configs[1].key], (TABLE * 2).half().float())


def test_a_bundle_of_tables_comes_back_and_does_not_depend_on_the_order(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "files", lambda _: tmp_path)
    content = bundle_tables({"b": TABLE, "a": 2 * TABLE})
    assert content == bundle_tables({"a": 2 * TABLE, "b": TABLE})
    (tmp_path / "mine.safetensors").write_bytes(content)
    back = load_tables("mine")
    assert set(back) == {"a", "b"} and torch.equal(back["a"], (2 * TABLE).half().float())


# Models.


@pytest.mark.parametrize("more", [{"scheme": "learned"}, {"scheme": "t5", "layers_with_positions": (0,)}])
def test_a_model_comes_back(tmp_path, corpus, more):
    config = RunConfig(seed=2, **TINY, **more)
    model = make_model(RunConfig(seed=5, **TINY, **more), corpus)
    write_model(model, config, tmp_path)
    back = read_model(config, tmp_path)
    pairs = zip(model.state_dict().items(), back.state_dict().items(), strict=True)
    assert all(one == other and torch.equal(x, y) for (one, x), (other, y) in pairs)
    assert not back.training


@pytest.mark.bad_input
def test_a_model_that_cannot_be_used(tmp_path, corpus):
    config, other = RunConfig(**TINY), RunConfig(**TINY | {"d_model": 16})
    path = file_of(config, tmp_path, "safetensors")
    assert f"{path.name} is not there" in refused(RunError, read_model, config, tmp_path)
    content = write_model(make_model(config, corpus), config, tmp_path).read_bytes()
    broken = [
        content[: len(content) // 2],
        content.replace(b'"format":"1"', b'"format":"2"'),
        write_model(make_model(config, corpus), RunConfig(seed=1, **TINY), tmp_path).read_bytes(),
        write_model(make_model(other, corpus), config, tmp_path).read_bytes(),
    ]
    for each in broken:
        path.write_bytes(each)
        said = refused(RunError, read_model, config, tmp_path)
        assert said.startswith(f"{path.name} is not there, is damaged, or of another run or version; move it and its")


def test_a_text_without_blanks_has_a_result_that_can_be_read(tmp_path):
    """Its words are as long as it is, and a perplexity by the word is more than a number can say."""
    text = tmp_path / "dna.txt"
    text.write_text("".join("ACGT"[k * k % 7 % 4] for k in range(20_000)))
    config = RunConfig(n_layers=1, d_model=8, n_heads=2, steps=3, batch_size=2, length=16, data=str(text))
    result = run_and_store(config, tmp_path / "out")
    assert "perplexity_per_word" not in result.metrics and result.metrics["perplexity_per_token"] > 1
    assert [each.metrics for each in read_results(tmp_path / "out")] == [result.metrics]
    # As earlier versions stored it.
    (path,) = (tmp_path / "out").glob("*.json")
    path.write_text(path.read_text().replace('"loss":', '"perplexity_per_word": Infinity, "loss":', 1))
    assert len(read_results(tmp_path / "out")) == 1


def test_a_text_that_ends_in_white_space_is_measured_whole(tmp_path):
    """What is asked for after the training must not cost it: words in the test part."""
    (text := tmp_path / "few.txt").write_text("some words here " * 1000 + "\n" * 1100)
    tiny = {"n_layers": 1, "d_model": 8, "n_heads": 2, "steps": 2, "batch_size": 2, "length": 16}
    config = RunConfig(**tiny, scheme="sinusoidal", data=str(text))
    assert "perplexity_per_word" not in run_and_store(config, tmp_path / "out").metrics
    text.unlink()
    assert "few.txt is not the text" in refused(RunError, train, config)
