"""Files of weights for the tests, right and wrong."""

import io
import json
import struct
from functools import partial

import torch
from safetensors.torch import save_file

from posembed.tables.layouts import Entry, Weights

# A table of 131 kB between tensors of ten times as much: who reads more than the table is found out.
WEIGHT = torch.randn(514, 64, generator=torch.Generator().manual_seed(0))
STATE = {"a": torch.zeros(5000, 64), "embeddings.position_embeddings.weight": WEIGHT, "z": torch.zeros(5000, 64)}
FORMS = ["safetensors", "bin", "sharded safetensors", "sharded bin"]


def entry(**changes):
    """A header's entry for a 2 x 2 matrix of float32."""
    return {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]} | changes


def safetensors_bytes(header, data=bytes(16), length=None):
    """A file with this header, a dictionary or bytes, and this claim of the header's length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def saved(value, **options):
    """What torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def shapes_of(shapes, config=None):
    """A checkpoint of which only names and shapes exist."""
    entries = {name: Entry(name, tuple(shape), "float32", name, None) for name, shape in shapes.items()}
    return Weights("here", config or {}, entries)


def write(folder, form="safetensors", state=STATE):
    """Weights as `save_pretrained` leaves them, or as torch once wrote them; each tensor in one of three shards."""
    stem, end, save = ("pytorch_model", "bin", torch.save) if "bin" in form else ("model", "safetensors", save_file)
    folder.mkdir(parents=True, exist_ok=True)
    if form == "old bin":
        save = partial(torch.save, _use_new_zipfile_serialization=False)
    shards = {name: f"{stem}-{number % 3}.{end}" for number, name in enumerate(state)}
    if "sharded" in form:
        (folder / f"{stem}.{end}.index.json").write_text(json.dumps({"weight_map": shards}))
    else:
        shards = dict.fromkeys(state, f"{stem}.{end}")
    for shard in set(shards.values()):
        save({name: state[name] for name in state if shards[name] == shard}, folder / shard)
    return folder
