"""Measure, layer by layer, what published models hold of their positions, through the Hugging Face hub.

GPT-2 reads texts of the corpus in its own subwords, a vision Transformer pieces of the two photographs that come with
scikit-learn. What is measured is that of the chapter *Is once enough?* (`posembed.layers.depth_profile`). It is written
to `results/layers/`; the workflow `tables` runs this and proposes what is new.

Usage: python tools/layers.py [NAME ...]    by default those of the chapter
"""

import json
import sys

import torch
from sklearn.datasets import load_sample_images
from transformers import AutoModel, AutoTokenizer

from posembed.data import load_corpus
from posembed.errors import PosembedError
from posembed.layers import depth_profile
from posembed.tables.hub import why_unreachable
from posembed.training.results import write_whole
from results import RESULTS

NAMES = ("gpt2", "google/vit-base-patch16-224")
FOLDER = "layers"
# Texts or pieces of photographs, how many of them are held out, and how many tokens a text has.
N_FITTED, N_TESTED, LENGTH = 192, 64, 64


def texts(name):
    """Texts of the corpus in the subwords of a model, one after the other, "texts length"."""
    corpus = load_corpus()
    words = corpus.vocabulary.decode(torch.cat([corpus.validation, corpus.test]))
    ids = torch.tensor(AutoTokenizer.from_pretrained(name)(words)["input_ids"])
    n = min(len(ids) // LENGTH, N_FITTED + N_TESTED)
    return ids[: n * LENGTH].view(n, LENGTH)


def photographs(size):
    """Pieces of two photographs, at places that are drawn, from -1 to 1, "pieces 3 size size"."""
    photos = [torch.tensor(each).permute(2, 0, 1) / 127.5 - 1 for each in load_sample_images().images]
    random = torch.Generator().manual_seed(0)
    pieces = []
    for number in range(N_FITTED + N_TESTED):
        photo = photos[number % len(photos)]
        top, left = (int(torch.randint(side - size + 1, (), generator=random)) for side in photo.shape[1:])
        pieces.append(photo[:, top : top + size, left : left + size])
    return torch.stack(pieces)


def profile(name):
    """What a model of the hub holds of its positions; its first token, [CLS], is left out where it reads images."""
    model = AutoModel.from_pretrained(name).eval()
    reads_images = hasattr(model.config, "image_size")
    given = photographs(model.config.image_size) if reads_images else texts(name)
    return depth_profile(model, given, skip=int(reads_images))


def main(names):
    if reason := why_unreachable():
        sys.exit(f"layers: the hub cannot be reached: {reason}")
    for name in names or NAMES:
        try:
            found = profile(name)
        except (PosembedError, OSError) as error:
            sys.exit(f"layers: {name}: {error}")
        path = RESULTS / FOLDER / f"{name.replace('/', '--')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(found.to_dict(), indent=1) + "\n").encode())
        print(f"layers: {found}\nlayers: written to {path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
