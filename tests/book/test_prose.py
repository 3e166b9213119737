"""Numbers that the chapters' sentences state, held against the encoder and the outputs they speak of."""

import re

import pytest
from prose import BOOK, printed, prose
from tool import load

EQUIVARIANCE, LOOKUP = "why/permutation-equivariance", "why/embedding-lookup"


def number_after(text, pattern):
    return float(re.search(pattern + r"\s+(-?[\d.,]+)", text).group(1).replace(",", ""))


@pytest.mark.parametrize(
    ("chapter", "sentence", "value"),
    [
        (EQUIVARIANCE, "BERT encoder of six layers", lambda config: config.num_hidden_layers == 6),
        (EQUIVARIANCE, "all twelve heads", lambda config: config.num_attention_heads == 12),
        (LOOKUP, "The encoder has 512 position rows", lambda config: config.max_position_embeddings == 512),
    ],
)
def test_what_is_said_of_the_encoder(encoder, chapter, sentence, value):
    assert sentence in prose(chapter)
    assert value(encoder.model.config)


def test_about_a_quarter():
    assert "the outputs differ by about a quarter of the largest one" in prose(EQUIVARIANCE)
    text = printed(EQUIVARIANCE)
    assert 0.2 < number_after(text, "intact +largest difference") < 0.3
    assert 0.2 < number_after(text, "shuffled +largest difference") < 0.3


def test_position_zero_stands_out():
    assert "its row is several times longer than the next ones" in prose(LOOKUP)
    lengths = [float(x) for x in re.search(r"position((?: +[\d.]+)+)", printed(LOOKUP)).group(1).split()]
    assert lengths[0] > 4 * max(lengths[1:])


def test_shares_of_the_model():
    text = prose(LOOKUP)
    assert "Half of this small model is its word table. Its positions are one parameter in a hundred" in text
    shares = re.findall(r"(word|position) +[\d,]+ rows +[\d,]+ numbers +([\d.]+)%", printed(LOOKUP))
    assert {name: round(float(share)) for name, share in shares} == {"word": 52, "position": 1}


def test_the_landing_page_speaks_of_the_table_it_shows(encoder):
    assert "The 512 position rows of a real encoder" in (BOOK / "intro.md").read_text()
    assert encoder.model.embeddings.position_embeddings.num_embeddings == 512


def test_the_landing_pages_map_is_drawn_from_the_table(encoder):
    """Drawn again, the map is the committed picture, up to what the compression of a picture loses."""
    import numpy as np
    from PIL import Image

    pictures = load("pictures")
    for path, colours in pictures.MAPS.items():
        stored = np.asarray(Image.open(path).convert("RGB"), dtype=float)
        drawn = np.asarray(pictures.position_map(colours), dtype=float)
        # Measured: 10.5 of 255 for the compression alone, 41 for the same table with its rows shuffled.
        assert np.abs(stored - drawn).mean() < 15
