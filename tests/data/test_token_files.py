"""Corpora in files: what is in them, and what becomes of them when something goes wrong."""

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from data.small_texts import prose

from posembed.data import _token_files, byte_pairs, load_corpus
from posembed.data import corpus as module
from posembed.errors import CorpusError

TEXT = prose(2000).replace("\r\n", "\n")
PARTS = ("train", "validation", "test")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    return path


@pytest.fixture
def in_files(monkeypatch):
    """Characters too become files, as those of a large text do."""
    monkeypatch.setattr(module, "IN_MEMORY", 0)


def bpe(path):
    return load_corpus(path, tokens="bpe", vocab_size=300)


def the_folder(cache):
    (folder,) = cache.iterdir()
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_characters_in_files_are_those_in_memory(path, monkeypatch, cache):
    whole = load_corpus(path)
    assert not cache.exists()
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    monkeypatch.setattr(_token_files, "ENCODED", 50)
    mapped = load_corpus(path)
    assert mapped.vocabulary.characters == whole.vocabulary.characters
    assert mapped.n_words == whole.n_words
    for part in PARTS:
        assert isinstance(getattr(mapped, part), np.memmap)
        assert np.array_equal(getattr(mapped, part), getattr(whole, part).numpy())


def test_the_sidecar_tells_what_the_files_are(path, cache):
    corpus = bpe(path)
    about = json.loads((the_folder(cache) / "about.json").read_text())
    assert about["format"] == _token_files.FORMAT
    assert about["vocab_size"] == len(corpus.vocabulary) == 300
    assert about["source"] == str(path)
    assert {part: about["parts"][part]["n_tokens"] for part in PARTS} == {
        part: len(getattr(corpus, part)) for part in PARTS
    }


def test_a_large_vocabulary_has_wider_numbers(tmp_path, in_files):
    path = tmp_path / "text.txt"
    characters = [chr(point) for point in range(0x21, 0x11000) if not 0xD800 <= point < 0xE000]
    path.write_text("".join(characters) * 2, encoding="utf-8")
    corpus = load_corpus(path)
    assert len(corpus.vocabulary) > 2**16
    assert corpus.train.dtype == np.uint32
    assert corpus.vocabulary.decode(corpus.train[60_000:60_020]) == "".join(characters[60_000:60_020])


def test_the_second_time_nothing_is_made(path, monkeypatch, cache):
    first = bpe(path)
    before = contents(the_folder(cache))
    monkeypatch.setattr(_token_files, "write", None)
    monkeypatch.setattr(byte_pairs.BytePairs, "of", None)
    second = bpe(path)
    assert contents(the_folder(cache)) == before
    assert second.vocabulary.to_json() == first.vocabulary.to_json()
    assert np.array_equal(first.train, second.train)


def test_each_text_and_each_size_has_its_own(path, cache):
    bpe(path)
    load_corpus(path, tokens="bpe", vocab_size=280)
    assert len(list(cache.iterdir())) == 2
    times = path.stat()
    # As long and as old as before.
    path.write_text(TEXT[::-1], encoding="utf-8", newline="\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = bpe(path)
    assert changed.vocabulary.decode(changed.train[:50]).startswith(TEXT[::-1][:50])
    assert len(list(cache.iterdir())) == 3


def test_a_text_is_known_wherever_it_lies(path, cache, monkeypatch):
    bpe(path)
    moved = path.rename(path.with_name("moved.txt"))
    monkeypatch.setattr(_token_files, "write", None)
    assert bpe(moved).name == str(moved)


def shorten(folder):
    path = folder / "train.bin"
    path.write_bytes(path.read_bytes()[:-2])


def flip(folder):
    content = bytearray((folder / "test.bin").read_bytes())
    content[7] ^= 1
    (folder / "test.bin").write_bytes(content)


def change_vocabulary(folder):
    path = folder / "vocabulary.json"
    path.write_text(path.read_text().replace("ab", "ba"))
    path.write_text(path.read_text() + " ")


def older(folder):
    tell(folder, format=0)


def tell(folder, **changes):
    about = json.loads((folder / "about.json").read_text())
    (folder / "about.json").write_text(json.dumps(about | changes))


DAMAGES = {
    "shorter": shorten,
    "a bit": flip,
    "vocabulary": change_vocabulary,
    "older": older,
    "no sidecar": lambda folder: (folder / "about.json").unlink(),
    "half a sidecar": lambda folder: (folder / "about.json").write_text('{"format": 1,'),
    "a list": lambda folder: (folder / "about.json").write_text("[1]"),
    "no dtype": lambda folder: tell(folder, parts={}),
    "unknown tokens": lambda folder: tell(folder, tokens="words"),
    "no part": lambda folder: (folder / "validation.bin").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_is_made_anew(path, cache, damage):
    bpe(path)
    before = contents(the_folder(cache))
    damage(the_folder(cache))
    assert contents(the_folder(cache)) != before
    corpus = bpe(path)
    assert corpus.vocabulary.decode(corpus.test) == TEXT[-(len(TEXT) // 20) :]
    folders = [folder for folder in cache.iterdir() if not folder.name.startswith(".")]
    assert [contents(folder) for folder in folders] == [before]


@pytest.mark.bad_input
def test_what_is_newer_is_left_alone(path, cache):
    bpe(path)
    tell(the_folder(cache), format=_token_files.FORMAT + 1)
    before = contents(the_folder(cache))
    with pytest.raises(CorpusError, match="was written by a newer version of posembed; upgrade it, or move") as caught:
        bpe(path)
    assert "\n" not in str(caught.value)
    assert contents(the_folder(cache)) == before


def test_a_failure_leaves_nothing(path, cache, monkeypatch):
    def full(file, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CorpusError) as caught:
        bpe(path)
    expected = (
        "the tokens cannot be kept (No space left on device); free some space, or let POSEMBED_CACHE name another"
    )
    assert str(caught.value).startswith(expected)
    assert list(cache.iterdir()) == []


@pytest.mark.bad_input
def test_a_cache_that_is_no_folder(path, tmp_path, monkeypatch):
    monkeypatch.setenv("POSEMBED_CACHE", str(path))
    with pytest.raises(CorpusError, match=r"^the tokens cannot be kept \(Not a directory\); free some space, or let"):
        bpe(path)


def test_two_at_a_time(path, cache, monkeypatch):
    """Another process makes the same corpus meanwhile: its files stay, and are the same."""
    write = _token_files.write

    def twice(folder, *arguments):
        write(folder, *arguments)
        write(folder, *arguments)

    monkeypatch.setattr(_token_files, "write", twice)
    corpus = bpe(path)
    assert corpus.vocabulary.decode(corpus.train[:30]).startswith(TEXT[:30])
    assert [folder.name.startswith(".") for folder in cache.iterdir()] == [False]


def test_what_a_killed_process_left_is_swept_away(path, cache):
    old, new = cache / ".old.part", cache / ".new.part"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    bpe(path)
    assert not old.exists() and new.exists()


def test_a_mapped_file_cannot_be_changed_by_mistake(path):
    with pytest.raises(ValueError, match="read-only"):
        bpe(path).train[0] = 0


def test_a_text_is_never_whole_in_memory(tmp_path, in_files, monkeypatch):
    monkeypatch.setattr(_token_files, "ENCODED", 2**14)
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    load_corpus(path)
    path.write_text(TEXT * 100, encoding="utf-8", newline="\n")
    tracemalloc.start()
    corpus = load_corpus(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(corpus.train) > 800_000
    # Two vocabularies, each with a table of the code points, are no part of the text.
    assert peak - 2 * 0x110000 < 400_000


@torch.no_grad()
def test_a_model_trains_on_a_mapped_corpus(path):
    """What the trainer asks of a corpus, with files instead of tensors."""
    from posembed import TransformerConfig
    from posembed.data import random_windows
    from posembed.models import LanguageModel

    corpus = bpe(path)
    model = LanguageModel(TransformerConfig(vocab_size=len(corpus.vocabulary), n_layers=1, d_model=8, n_heads=2))
    windows = random_windows(corpus.train, 16, 4, torch.Generator().manual_seed(0))
    loss = torch.nn.functional.cross_entropy(model(windows[:, :-1]).mT, windows[:, 1:])
    assert corpus.perplexities(loss.item()).per_token == pytest.approx(len(corpus.vocabulary), rel=0.1)
