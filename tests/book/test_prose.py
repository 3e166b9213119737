"""What the landing page says of the table it shows."""

from prose import BOOK
from tool import load


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
