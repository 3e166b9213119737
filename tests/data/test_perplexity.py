"""Perplexity per token and per word, by hand."""

import math

import pytest
import torch

from posembed.data import Characters, Corpus, load_corpus, perplexities
from posembed.errors import CorpusError


def test_by_hand():
    """Nine characters, two words: a model that finds each of two characters as likely has lost 9 log 2 nats on them."""
    text = "ab ab\nab "
    assert len(text) == 9 and text.split() == ["ab", "ab", "ab"]
    found = perplexities(math.log(2), n_tokens=9, n_words=3)
    assert found.tokens_per_word == 3
    assert found.per_token == pytest.approx(2)
    # Each word is one of eight, with the white space that follows it.
    assert found.per_word == pytest.approx(8)


def test_other_tokens_of_the_same_text_give_the_same_per_word():
    total, n_words = 1234.5, 321
    found = [perplexities(total / n_tokens, n_tokens=n_tokens, n_words=n_words) for n_tokens in (400, 2000)]
    assert found[0].per_word == pytest.approx(found[1].per_word)
    assert found[0].per_token > found[1].per_token


def test_of_a_corpus(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one two three four\n" * 100, encoding="utf-8")
    corpus = load_corpus(path)
    for part in ("train", "validation", "test"):
        text = corpus.vocabulary.decode(getattr(corpus, part))
        assert corpus.n_words[part] == len(text.split())
        assert corpus.perplexities(1.5, part) == perplexities(1.5, n_tokens=len(text), n_words=len(text.split()))
    assert corpus.perplexities(1.5) == corpus.perplexities(1.5, "test")


def test_what_is_too_large_for_a_number_is_infinite():
    assert perplexities(11.0, n_tokens=1000, n_words=1).per_word == math.inf


EMPTY = Corpus("empty", Characters("a"), *(torch.zeros(5, dtype=torch.long) for _ in range(3)))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: perplexities(math.nan, n_tokens=1, n_words=1), "the loss is nan; it must be a number of nats"),
        (lambda: perplexities(-0.1, n_tokens=1, n_words=1), "the loss is -0.1; it must be a number of nats of at"),
        (lambda: perplexities(1.0, n_tokens=5, n_words=0), "the text has 5 tokens and 0 words; a perplexity needs"),
        (lambda: load_corpus().perplexities(1.0, "dev"), "the words of 'dev' were not counted; those of train, "),
        (lambda: EMPTY.perplexities(1.0), "the words of 'test' were not counted; those of no part were"),
    ],
)
def test_bad_input(act, message):
    with pytest.raises(CorpusError) as caught:
        act()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
