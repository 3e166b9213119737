"""Byte pairs, against the package tokenizers itself."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from data.small_texts import prose
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.implementations import ByteLevelBPETokenizer

from posembed.data import BytePairs, Characters, load_corpus
from posembed.data import byte_pairs as module
from posembed.errors import CorpusError

SIGNS = ["\N{REPLACEMENT CHARACTER}", "\N{SYMBOL FOR SUBSTITUTE}"]
TEXT = prose(3000)
PAIRS = BytePairs.of(TEXT, vocab_size=300)


def theirs(text, vocab_size):
    tokenizer = ByteLevelBPETokenizer(add_prefix_space=False)
    tokenizer.train_from_iterator([text], vocab_size=vocab_size, special_tokens=SIGNS, show_progress=False)
    return tokenizer


def test_the_tokens_are_those_of_tokenizers():
    expected = theirs(TEXT, 300)
    assert json.loads(PAIRS.to_json())["model"] == json.loads(expected.to_str())["model"]
    assert PAIRS.encode(TEXT).tolist() == expected.encode(TEXT).ids
    assert len(PAIRS) == expected.get_vocab_size()


@pytest.mark.parametrize("size", [1, 40, 10**6])
def test_cutting_a_text_changes_no_token(monkeypatch, size):
    monkeypatch.setattr(module, "SIZE", size)
    assert torch.equal(PAIRS.encode(TEXT), torch.tensor(PAIRS._tokenizer.encode(TEXT).ids))
    in_pieces = BytePairs.of((TEXT[at : at + 3] for at in range(0, len(TEXT), 3)), vocab_size=300)
    assert in_pieces.to_json() == PAIRS.to_json()


@given(st.text(max_size=40))
def test_every_text_comes_back(text):
    assert PAIRS.decode(PAIRS.encode(text)) == text


def test_a_text_may_hold_the_signs():
    text = f"a{SIGNS[0]}b{SIGNS[1]}c"
    ids = PAIRS.encode(text).tolist()
    assert PAIRS.mask_id not in ids and PAIRS.unknown_id not in ids
    assert PAIRS.decode(ids) == text


def test_the_signs_are_those_of_characters():
    letters = Characters("ab")
    assert (PAIRS.unknown_id, PAIRS.mask_id) == (letters.unknown_id, letters.mask_id)
    assert PAIRS.decode([0, 1]) == letters.decode([0, 1]) == "".join(SIGNS)


def test_half_a_character_is_an_unknown_one():
    assert PAIRS.decode(PAIRS.encode("東")[:-1]) == SIGNS[0]


def test_the_vocabulary_comes_back():
    assert torch.equal(BytePairs(PAIRS.to_json()).encode(TEXT), PAIRS.encode(TEXT))


OTHER = """
import sys
from posembed.data import BytePairs
pairs = BytePairs.of(sys.stdin.buffer.read().decode(), vocab_size=300)
sys.stdout.buffer.write(pairs.to_json().encode())
"""


def test_other_processes_train_the_same(fresh_environment):
    environment = fresh_environment | {"RAYON_NUM_THREADS": "3", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", OTHER]
    told = subprocess.run(command, input=TEXT.encode(), env=environment, capture_output=True, check=True).stdout
    assert told.decode() == PAIRS.to_json()


def test_a_corpus_of_byte_pairs(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    text = TEXT.replace("\r\n", "\n")
    part = len(text) // 20
    corpus = load_corpus(path, tokens="bpe", vocab_size=300)
    assert corpus.vocabulary.decode(corpus.train) == text[: -2 * part]
    assert corpus.vocabulary.decode(corpus.validation) == text[-2 * part : -part]
    assert corpus.vocabulary.decode(corpus.test) == text[-part:]
    assert corpus.vocabulary.to_json() == BytePairs.of(text[: -2 * part], vocab_size=300).to_json()
    assert isinstance(corpus.train, np.memmap) and corpus.train.dtype == np.uint16


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: BytePairs.of("", vocab_size=300), "a vocabulary needs a text to be trained on; the text is empty"),
        (lambda: BytePairs.of(TEXT, vocab_size=257), "vocab_size is 257; it must be a whole number of at least 258"),
        (lambda: BytePairs.of(TEXT, vocab_size=300.0), "vocab_size is 300.0; it must be a whole number"),
        (lambda: PAIRS.decode([5, 300]), "id 300 is outside the vocabulary of 300 tokens"),
        (lambda: PAIRS.decode([-1]), "id -1 is outside the vocabulary of 300 tokens"),
        (lambda: PAIRS.encode("a\ud800b"), "the text holds half a character, a lone surrogate; decode it anew"),
        (lambda: BytePairs("no tokenizer"), "this is no tokenizer: "),
        (lambda: load_corpus(tokens="words"), "tokens is 'words'; choose among characters, bpe"),
        (
            lambda: load_corpus(vocab_size=300),
            "vocab_size is 300, but characters have none; leave it out, or set",
        ),
    ],
)
def test_bad_input(act, message):
    with pytest.raises(CorpusError) as caught:
        act()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
