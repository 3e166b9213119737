"""Texts that the package datasets loads, from local files; and what happens without it, or without the hub."""

import sys

import datasets
import httpx
import pytest
from data.small_texts import prose
from huggingface_hub.errors import HfHubHTTPError

from posembed.data import DatasetText, load_corpus
from posembed.data import corpus as corpus_module
from posembed.errors import CheckpointNotFoundError, CorpusError

PARTS = ("train", "validation", "test")
LINES = [f"{number} {prose(5, seed=number).split()}" for number in range(60)]


@pytest.fixture(autouse=True)
def _cache_of_datasets(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def folder(tmp_path):
    """A dataset of three text files."""
    folder = tmp_path / "three"
    folder.mkdir()
    for part, lines in zip(PARTS, (LINES[:40], LINES[40:50], LINES[50:]), strict=True):
        (folder / f"{part}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


@pytest.fixture
def table(tmp_path):
    """A dataset of one Parquet file with a column of texts and one of numbers."""
    folder = tmp_path / "table"
    folder.mkdir()
    rows = {"content": LINES, "number": list(range(60)), "gaps": [None, *LINES[1:]], "lines": [f"{x}\n" for x in LINES]}
    datasets.Dataset.from_dict(rows).to_parquet(folder / "train.parquet")
    return folder


def told(corpus):
    return {part: corpus.vocabulary.decode(getattr(corpus, part)) for part in PARTS}


def joined(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("tokens", ["characters", "bpe"])
@pytest.mark.parametrize("in_memory", [0, 2**26])
def test_splits_are_parts(folder, tokens, in_memory, monkeypatch):
    monkeypatch.setattr(corpus_module, "IN_MEMORY", in_memory)
    corpus = load_corpus(f"datasets:{folder}", tokens=tokens, vocab_size=300 if tokens == "bpe" else None)
    expected = {"train": joined(LINES[:40]), "validation": joined(LINES[40:50]), "test": joined(LINES[50:])}
    found = told(corpus)
    # A character that only the test has is unknown to a vocabulary of the training part.
    unknown = {character for text in expected.values() for character in text} - set(expected["train"])
    assert not unknown and found == expected
    assert corpus.n_words == {part: len(text.split()) for part, text in expected.items()}


def test_what_has_no_split_is_cut_from_the_end(table):
    corpus = load_corpus(DatasetText(str(table), column="content"))
    assert corpus.name == f"datasets:{table}::content"
    expected = {"train": joined(LINES[:54]), "validation": joined(LINES[54:57]), "test": joined(LINES[57:])}
    assert told(corpus) == expected


def test_a_split_that_is_there_is_taken_and_one_that_is_not_is_cut(folder):
    (folder / "validation.txt").unlink()
    corpus = load_corpus(DatasetText(str(folder)))
    assert told(corpus) == {
        "train": joined(LINES[:38]),
        "validation": joined(LINES[38:40]),
        "test": joined(LINES[50:]),
    }


def test_splits_by_name(folder):
    corpus = load_corpus(DatasetText(str(folder), train="validation", validation="test", test="train"))
    assert told(corpus)["train"] == joined(LINES[40:50])


def test_rows_that_end_their_lines_get_no_more(table):
    corpus = load_corpus(DatasetText(str(table), column="lines"))
    assert told(corpus)["train"] == joined(LINES[:54])


def test_a_changed_dataset_is_another_corpus(folder, cache):
    def load():
        return load_corpus(f"datasets:{folder}", tokens="bpe", vocab_size=300)

    load(), load()
    assert len(list(cache.iterdir())) == 1
    (folder / "test.txt").write_text("changed\n" * 30, encoding="utf-8")
    corpus = load()
    assert told(corpus)["test"] == "changed\n" * 30
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("datasets:imdb", DatasetText("imdb")),
        ("datasets:a/b:c", DatasetText("a/b", "c")),
        ("datasets:a/b:c:d", DatasetText("a/b", "c", "d")),
        ("datasets:a/b::d", DatasetText("a/b", column="d")),
    ],
)
def test_names(name, expected):
    assert DatasetText.parse(name) == expected
    assert expected.name == name


@pytest.mark.parametrize("name", ["wikitext-2", "wikitext-103"])
def test_wikitext_is_asked_for_by_its_name_on_the_hub(monkeypatch, name):
    asked = []

    def load_dataset(*arguments, **options):
        asked.append((arguments, options))
        rows = datasets.Dataset.from_dict({"text": [" = A title = \n", "", " words of it \n"]})
        return datasets.DatasetDict(dict.fromkeys(PARTS, rows))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    corpus = load_corpus(name)
    assert asked == [(("Salesforce/wikitext", f"{name}-raw-v1"), {"revision": None})]
    assert told(corpus)["test"] == " = A title = \n\n words of it \n"
    assert corpus.n_words["test"] == 7


def refusing(error):
    def load_dataset(*arguments, **options):
        raise error

    return load_dataset


def caused(error, cause):
    error.__cause__ = cause
    return error


BROKEN_OFF = caused(
    datasets.exceptions.DatasetGenerationError("An error occurred while generating the dataset"),
    httpx.ReadTimeout("timed out"),
)
NO_SUCH = caused(
    datasets.exceptions.DatasetNotFoundError("Dataset 'a/b' doesn't exist on the Hub or cannot be accessed."),
    HfHubHTTPError("404", response=httpx.Response(404, request=httpx.Request("GET", "https://hub"))),
)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            ConnectionError("Couldn't reach 'Salesforce/wikitext' on the Hub\n(LocalEntryNotFoundError)."),
            CheckpointNotFoundError,
            "datasets:Salesforce/wikitext:wikitext-103-raw-v1 could not be had from the hub (Couldn't reach "
            "'Salesforce/wikitext' on the Hub (LocalEntryNotFoundError)); check the connection",
        ),
        (
            BROKEN_OFF,
            CheckpointNotFoundError,
            "datasets:Salesforce/wikitext:wikitext-103-raw-v1 could not be had from the hub (An err",
        ),
        (
            NO_SUCH,
            CorpusError,
            "datasets:Salesforce/wikitext:wikitext-103-raw-v1 cannot be loaded (Dataset 'a/b' doesn't exist on the Hub "
            "or cannot be accessed); see its page for names and variants",
        ),
        (
            ValueError("BuilderConfig 'x' not found. Available: ['a', 'b']"),
            CorpusError,
            "datasets:Salesforce/wikitext:wikitext-103-raw-v1 cannot be loaded (BuilderConfig 'x' not found. "
            "Available: ['a', 'b']); see its page for names and variants",
        ),
    ],
)
def test_what_the_hub_does_not_give(monkeypatch, error, kind, message):
    monkeypatch.setattr(datasets, "load_dataset", refusing(error))
    with pytest.raises(kind) as caught:
        load_corpus("wikitext-103")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.bad_input
def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError) as caught:
        load_corpus("wikitext-2")
    assert str(caught.value) == (
        "datasets:Salesforce/wikitext:wikitext-2-raw-v1 needs the package datasets; pip install 'posembed[datasets]'"
    )


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"column": "words"}, "has no column 'words'; it has content, number, gaps, lines"),
        ({"column": "number"}, "the column 'number' of datasets:"),
        ({"column": "gaps"}, "row 0 of datasets:"),
        ({"column": "content", "test": "exam"}, "has no split 'exam'; it has train"),
        ({"column": "content", "train": "all"}, "has no split 'all'; it has train"),
        ({"config": "x"}, "cannot be loaded ("),
        ({"path": "no/such/folder"}, "cannot be loaded ("),
    ],
)
def test_what_is_no_text(table, changes, message):
    with pytest.raises(CorpusError) as caught:
        load_corpus(DatasetText(**{"path": str(table)} | changes))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.bad_input
@pytest.mark.parametrize("n_rows", [1, 19])
def test_too_few_rows(tmp_path, n_rows):
    folder = tmp_path / "few"
    folder.mkdir()
    (folder / "train.txt").write_text(joined(LINES[:n_rows]), encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        load_corpus(f"datasets:{folder}")
    wanted = f"has {n_rows} rows and no split for validation and test, which needs at least 20 rows; name a split"
    assert str(caught.value) == f"datasets:{folder} {wanted}"


@pytest.mark.bad_input
def test_a_split_without_rows(monkeypatch):
    rows = datasets.Dataset.from_dict({"text": LINES})
    splits = datasets.DatasetDict(train=rows, validation=rows.filter(lambda row: False), test=rows)
    monkeypatch.setattr(datasets, "load_dataset", lambda *arguments, **options: splits)
    with pytest.raises(
        CorpusError, match="^the validation part of datasets:x has no rows; name a split that has some$"
    ):
        load_corpus("datasets:x")


@pytest.mark.bad_input
def test_an_empty_folder(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises(CorpusError, match="cannot be loaded") as caught:
        load_corpus(f"datasets:{folder}")
    assert "\n" not in str(caught.value)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("datasets:", "'datasets:' names no dataset; write datasets:NAME, datasets:NAME:CONFIG or datasets:NAME:CON"),
        (7, "source is int; give a name, a path or a DatasetText"),
    ],
)
def test_no_source(source, message):
    with pytest.raises(CorpusError) as caught:
        load_corpus(source)
    assert str(caught.value).startswith(message)
