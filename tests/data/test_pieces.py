"""A text in pieces: nothing is lost, and no word is cut."""

import tracemalloc

import pytest
from data.small_texts import prose
from hypothesis import given
from hypothesis import strategies as st

from posembed.data import _pieces
from posembed.data._pieces import count_words, cut

TEXTS = st.text(alphabet="ab \n\t\u00a0\x1c東", max_size=60)


@given(st.lists(TEXTS), st.integers(1, 20))
def test_nothing_is_lost_and_no_word_is_cut(pieces, size):
    text, found = "".join(pieces), list(cut(pieces, size))
    assert "".join(found) == text
    assert all(found)
    assert [word for piece in found for word in piece.split()] == text.split()
    assert all(piece[0] in " \n\t" for piece in found[1:])


@given(st.lists(TEXTS))
def test_the_cuts_do_not_depend_on_how_the_text_comes(pieces):
    assert list(cut(pieces, 8)) == list(cut(["".join(pieces)], 8))


def test_pieces_have_about_the_size():
    sizes = [len(piece) for piece in cut([prose(5000)], 100)]
    assert all(60 < size <= 100 for size in sizes[:-1])


def test_words_are_counted_as_pythons():
    text = prose(3000)
    assert count_words([text[:7001], text[7001:7003], text[7003:]]) == len(text.split())
    assert count_words([]) == count_words([" \n"]) == 0


@pytest.mark.parametrize("character", ["x", " "])
def test_a_text_without_words_does_not_fill_the_memory(monkeypatch, character):
    monkeypatch.setattr(_pieces, "LONGEST", 1000)
    pieces = (character * 50 for _ in range(10_000))
    tracemalloc.start()
    length = sum(len(piece) for piece in cut(pieces, 100))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert length == 500_000
    assert peak < 50_000
