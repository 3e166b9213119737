import json
import math
import os
import shutil
import stat
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_files import entry, one_line, peak_memory, safetensors_bytes
from safetensors.torch import save_file
from small_models import _BUILDERS, TABLES, build
from torch import nn

from posembed.encodings import Learned
from posembed.errors import CheckpointError, CheckpointNotFoundError, PosembedError, PositionTableError
from posembed.tables import PositionTable, as_table, find_position_rows, load_table

pytestmark = pytest.mark.bad_input
WITHOUT = sorted(set(_BUILDERS) - {table.kind for table in TABLES})


def refused(error, source, **wanted):
    with pytest.raises(error) as caught:
        load_table(source, **wanted)
    return one_line(caught)


@pytest.fixture(autouse=True)
def _nothing_around(tmp_path, monkeypatch):
    """No checkpoint of the machine's own is found, and no hub is asked."""
    monkeypatch.delenv("POSEMBED_CHECKPOINTS", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def no_hub(monkeypatch):
    """Whoever asks the hub hears which id it was asked for."""
    asked = []

    class AskedError(Exception):
        pass

    def ask(source, **options):
        asked.append((source, options))
        raise AskedError

    monkeypatch.setattr("posembed.tables._hub.HubCheckpoint", ask)
    return asked, AskedError


# Models of transformers, saved and alive.


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder that save_pretrained makes of a small model."""
    folders = {}

    def folder(kind):
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp(kind)
            build(kind).save_pretrained(folders[kind])
        return folders[kind]

    return folder


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_saved_model_has_the_table_of_the_live_one(table, saved):
    model, folder = build(table.kind), saved(table.kind)
    live = find_position_rows(model, part=table.part)
    found = load_table(folder, part=table.part)
    assert torch.equal(found.weight, live.rows)
    assert (found.name.removesuffix(".weight"), found.offset) == (live.name, live.offset)
    assert (found.source, found.file, found.stored_dtype) == (str(folder), "model.safetensors", "float32")
    # The header, the table, and config.json; at most the whole of the small file besides.
    assert 0 < found.bytes_read <= sum(file.stat().st_size for file in folder.iterdir()) + live.parameter.nbytes


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_live_model_has_the_same_table(table, saved):
    model = build(table.kind)
    found, stored = load_table(model, part=table.part), load_table(saved(table.kind), part=table.part)
    assert torch.equal(found.weight, stored.weight)
    for field in ("offset", "part", "n_class_tokens", "grid", "stored_dtype"):
        assert getattr(found, field) == getattr(stored, field), field
    assert (found.name, found.source) == (table.name, type(model).__name__)
    assert (found.bytes_read, found.file, found.revision) == (0, None, None)


@pytest.mark.parametrize("form", ["zip", "old", "sharded safetensors", "sharded zip", "one file", "prefixed"])
@pytest.mark.parametrize("kind", ["roberta", "gpt2-lm", "vit"])
def test_every_form_of_a_checkpoint_gives_the_same_table(kind, form, saved, tmp_path):
    state, expected = build(kind).state_dict(), load_table(saved(kind))
    source = in_form(form, state, tmp_path)
    shutil.copy(saved(kind) / "config.json", tmp_path)
    found = load_table(source)
    assert torch.equal(found.weight, expected.weight)
    assert (found.offset, found.grid, found.n_class_tokens) == (expected.offset, expected.grid, expected.n_class_tokens)


def in_form(form, state, folder):
    # Tied weights once more: safetensors stores no tensor twice.
    state = {name: tensor.clone() for name, tensor in state.items()}
    if form in ("zip", "old"):
        torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=form == "zip")
    elif form == "one file":
        save_file(state, folder / "model.safetensors")
        return folder / "model.safetensors"
    elif form == "prefixed":
        save_file({f"_orig_mod.module.{name}": tensor for name, tensor in state.items()}, folder / "model.safetensors")
    else:
        zipped = form.endswith("zip")
        stem, ending, save = ("pytorch_model", "bin", torch.save) if zipped else ("model", "safetensors", save_file)
        names = sorted(state)
        shards = {f"{stem}-{n + 1:05}-of-00003.{ending}": names[n::3] for n in range(3)}
        for shard, held in shards.items():
            save({name: state[name] for name in held}, folder / shard)
        index = {"metadata": {}, "weight_map": {name: shard for shard, held in shards.items() for name in held}}
        (folder / f"{stem}.{ending}.index.json").write_text(json.dumps(index))
    return folder


def test_of_shards_only_the_one_with_the_table_is_opened(tmp_path):
    state = build("gpt2").state_dict()
    in_form("sharded safetensors", state, tmp_path)
    shards = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    for shard in set(shards.values()) - {shards["wpe.weight"]}:
        (tmp_path / shard).write_bytes(b"no safetensors file")
    found = load_table(tmp_path)
    assert torch.equal(found.weight, state["wpe.weight"])
    assert found.file == shards["wpe.weight"]


@pytest.mark.parametrize("kind", WITHOUT)
def test_a_model_without_a_table_says_what_it_has_instead_saved_and_alive(kind, saved):
    from_file = refused(PositionTableError, saved(kind))
    alive = refused(PositionTableError, build(kind))
    assert "has no position table" in from_file
    instead = {message.partition("has no position table; it ")[2].partition(" ")[2] for message in (from_file, alive)}
    assert len(instead) == 1
    assert instead != {""}


@pytest.mark.parametrize("kind", ["bart", "clip", "whisper"])
def test_several_tables_ask_for_a_part(kind, saved):
    for source in (saved(kind), build(kind)):
        assert "several position tables; choose with part=" in refused(PositionTableError, source)
        assert "part='nothing'" in refused(PositionTableError, source, part="nothing")


@pytest.mark.parametrize(
    ("kind", "expected"), [("bfloat16", torch.float32), ("float16", torch.float32), ("float64", torch.float64)]
)
@pytest.mark.parametrize("form", ["zip", "old", "one file", "alive", "tensor"])
def test_halves_are_widened_exactly_and_doubles_kept(kind, expected, form, tmp_path):
    model = build("gpt2").to(getattr(torch, kind))
    weight = model.wpe.weight.detach()
    source = {"alive": model, "tensor": weight}.get(form)
    found = load_table(in_form(form, model.state_dict(), tmp_path) if source is None else source)
    assert (found.stored_dtype, found.weight.dtype) == (kind, expected)
    assert torch.equal(found.weight, weight.to(expected))
    assert torch.equal(found.weight.to(weight.dtype), weight)


def test_openais_clip_has_two_tables(tmp_path):
    state = {
        "positional_embedding": torch.rand(77, 8),
        "visual.positional_embedding": torch.rand(50, 8),
        "visual.conv1.weight": torch.rand(8, 3, 4, 4),
    }
    save_file(state, tmp_path / "clip.safetensors")
    text, vision = (load_table(tmp_path / "clip.safetensors", part=part) for part in ("text", "vision"))
    assert torch.equal(text.weight, state["positional_embedding"])
    assert torch.equal(vision.weight, state["visual.positional_embedding"])
    assert (text.grid, vision.grid, vision.n_class_tokens) == (None, (7, 7), 1)
    assert torch.equal(vision.patches[6, 6], vision.weight[-1])


def test_a_vision_tables_patches_are_where_the_image_has_them(saved):
    """The rows of the grid are those that the model adds to the patches, in the order of its convolution."""
    model, table = build("vit"), load_table(saved("vit"))
    pixels = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    embeddings = model.embeddings
    with torch.no_grad():
        patches = embeddings.patch_embeddings.projection(pixels)[0].permute(1, 2, 0)
        added = embeddings(pixels)[0, table.n_class_tokens :].reshape(*table.grid, -1) - patches
    torch.testing.assert_close(added, table.patches)


# Where a name is looked for.


def test_the_order_of_places(tmp_path, monkeypatch, no_hub):
    asked, error = no_hub
    collection = tmp_path / "collection"
    make(collection / "owner" / "model", 1.0)
    make(tmp_path / "here" / "owner" / "model", 2.0)
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", str(collection))
    assert load_table("owner/model").weight[0, 0] == 1.0
    assert load_table("owner/model").source == "owner/model"
    for options in ({"revision": "main"}, {"refresh": True}):
        with pytest.raises(error):
            load_table("owner/model", **options)
    monkeypatch.chdir(tmp_path / "here")
    assert load_table("owner/model").weight[0, 0] == 2.0
    with pytest.raises(error):
        load_table("owner/other", download=True)
    assert [(source, options["revision"], options["refresh"], options["download"]) for source, options in asked] == [
        ("owner/model", "main", False, False),
        ("owner/model", None, True, False),
        ("owner/other", None, False, True),
    ]


def make(folder, value):
    folder.mkdir(parents=True)
    save_file({"wpe.weight": torch.full((4, 2), value)}, folder / "model.safetensors")


@pytest.mark.parametrize("folder", ["", "nowhere", "a file"])
def test_a_collection_that_is_not_there_does_no_harm(folder, tmp_path, monkeypatch, no_hub):
    (tmp_path / "a file").write_text("x")
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", folder)
    with pytest.raises(no_hub[1]):
        load_table("gpt2")


@pytest.mark.parametrize("source", ["../secret", "..", "."])
def test_an_id_cannot_lead_out_of_the_collection(tmp_path, monkeypatch, source):
    make(tmp_path / "secret", 1.0)
    (tmp_path / "collection").mkdir()
    (tmp_path / "some" / "where").mkdir(parents=True)
    monkeypatch.setenv("POSEMBED_CHECKPOINTS", str(tmp_path / "collection"))
    monkeypatch.chdir(tmp_path / "some" / "where")
    refused(CheckpointNotFoundError, source)
    assert "nor the name of a repository" in refused(CheckpointNotFoundError, "../secret")


ODD = ["", " ", "-", "a b", "a--b", "a\nb", "a\0b", "\ud800", "x" * 5000]
PATHS = [
    "../../etc/passwd-that-is-not-there",
    "/no/such/folder",
    "a/b/c",
    "~/gpt2",
    "gpt2/",
    "C:\\gpt2",
    "https://x/gpt2",
]


@pytest.mark.parametrize("source", ODD + PATHS)
def test_a_string_that_names_nothing_is_refused_in_one_line(source):
    assert "nor the name of a repository on the hub" in refused(CheckpointNotFoundError, source)


def test_a_path_is_never_an_id(no_hub):
    assert "there is no file or folder 'gpt2'" in refused(CheckpointNotFoundError, Path("gpt2"))
    assert no_hub[0] == []


def test_a_revision_of_a_folder_is_refused(tmp_path):
    make(tmp_path / "gpt2", 1.0)
    assert "which has no revisions; leave out revision=" in refused(CheckpointError, "gpt2", revision="main")


# Files and folders that are no checkpoint, or a broken one.


def test_an_empty_folder_hears_what_was_looked_for(tmp_path):
    message = refused(CheckpointNotFoundError, tmp_path)
    for name in ("model.safetensors", "pytorch_model.bin.index.json", ".pth"):
        assert name in message


def test_a_file_that_is_no_checkpoint(tmp_path):
    for name, data in {"passwd": b"root:x:0:0\n", "empty": b"", "one": b"\x01"}.items():
        (tmp_path / name).write_bytes(data)
        assert "is no checkpoint: it is neither" in refused(CheckpointError, name)


def test_a_file_of_any_name_is_known_by_its_beginning(tmp_path):
    state = {"wpe.weight": torch.rand(4, 2)}
    save_file(state, tmp_path / "odd: name\n")
    torch.save(state, tmp_path / "zipped")
    torch.save(state, tmp_path / "older", _use_new_zipfile_serialization=False)
    for name in ("odd: name\n", "zipped", "older"):
        assert torch.equal(load_table(tmp_path / name).weight, state["wpe.weight"])


def test_a_folder_with_one_file_of_another_name(tmp_path):
    state = {"wpe.weight": torch.rand(4, 2)}
    torch.save({"state_dict": state, "step": 7}, tmp_path / "last.ckpt")
    found = load_table(tmp_path)
    assert torch.equal(found.weight, state["wpe.weight"])
    assert (found.name, found.file) == ("state_dict.wpe.weight", "last.ckpt")
    torch.save(state, tmp_path / "first.ckpt")
    assert "holds several files of weights; give the path of one of them: first.ckpt, last.ckpt" in refused(
        CheckpointError, tmp_path
    )


def test_the_config_beside_a_file_of_a_name_of_its_own_is_not_believed(saved, tmp_path):
    """In a folder of downloads, the config.json is whose it may be."""
    shutil.copy(saved("roberta") / "model.safetensors", tmp_path / "downloaded.safetensors")
    shutil.copy(saved("bert") / "config.json", tmp_path)
    assert "there is no config.json" in refused(PositionTableError, tmp_path / "downloaded.safetensors")
    assert load_table(tmp_path / "downloaded.safetensors", offset=2).offset == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "config.json is damaged"),
        ("[]", "config.json holds a JSON list, not an object"),
        ("null", "config.json holds a JSON NoneType"),
        ("{", "config.json is damaged"),
        ('{"a":' * 50_000, "config.json is nested too deeply"),
        ('{"model_type": "ro\ud800berta"}', "config.json is damaged"),
        ('{"model_type": "roberta", "pad_token_id": 4' + "0" * 5000 + "}", "config.json is damaged"),
        ('{"model_type": "roberta", "pad_token_id": 40000}', "has 20 rows, so 40001 cannot stand before"),
        ('{"model_type": "roberta", "pad_token_id": "1"}', "has the pad_token_id '1'"),
        ('{"model_type": {"a": []}, "architectures": [["x"]], "pad_token_id": []}', "config.json has no model_type"),
    ],
    ids=lambda value: value[:20],
)
def test_a_broken_config(saved, tmp_path, text, words):
    shutil.copy(saved("roberta") / "model.safetensors", tmp_path)
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert words in refused(PosembedError, tmp_path)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_KEYS = [
    *("model_type", "architectures", "pad_token_id", "text_config", "vision_config", "image_size", "patch_size"),
    *("position_embedding_type", "alibi", "attn_config", "n_cls_tokens", "hidden_size", "n_positions", "id2label"),
]
_PLAUSIBLE = st.sampled_from(["roberta", "bert", "opt", "vit", 1, 4, 16, [8, 8], {"model_type": "roberta"}])


@given(st.dictionaries(st.sampled_from(_KEYS), _PLAUSIBLE | _JSON))
@pytest.mark.parametrize("name", ["x.position_embeddings.weight", "vision_model.pos_embed", "unheard_of.weight"])
def test_no_config_breaks_the_reader(tmp_path_factory, name, config):
    folder = tmp_path_factory.getbasetemp() / "configs"
    folder.mkdir(exist_ok=True)
    weight = torch.arange(34.0).reshape(17, 2)
    save_file({name: weight}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    try:
        table = load_table(folder)
    except PosembedError as error:
        assert "\n" not in str(error)
    else:
        assert torch.equal(table.weight, weight[table.offset :])


@pytest.mark.parametrize(
    ("shard", "words"),
    [
        ("../outside.safetensors", "'../outside.safetensors' cannot be the name of a file inside a checkpoint"),
        ("/etc/passwd", "cannot be the name of a file inside"),
        ("a/../../b", "cannot be the name of a file inside"),
        ("..\\b", "cannot be the name of a file inside"),
        ("C:b", "cannot be the name of a file inside"),
        ("", "cannot be the name of a file inside"),
        ("a\nb", r"'a\nb' cannot be the name"),
        ("a\0b", "cannot be the name of a file inside"),
        (3, "names a file 3, which is no name"),
        (None, "names a file None, which is no name"),
        (["x"], "which is no name"),
        ("missing.safetensors", "names the file missing.safetensors, which is not there"),
        ("other.safetensors", "says that 'wpe.weight' is in other.safetensors, which does not hold it"),
        ("folder", "which is not there"),
    ],
    ids=str,
)
def test_an_index_that_leads_astray_is_refused(tmp_path, shard, words):
    checkpoint = tmp_path / "checkpoint"
    (checkpoint / "folder").mkdir(parents=True)
    for path in (tmp_path / "outside.safetensors", checkpoint / "other.safetensors"):
        save_file({"another": torch.rand(4, 2)}, path)
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"wpe.weight": shard}}))
    assert words in refused(CheckpointError, checkpoint)


@pytest.mark.parametrize("index", [{}, {"weight_map": None}, {"weight_map": []}, {"weight_map": {}}], ids=str)
def test_an_index_without_a_map_is_refused(tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "has no weight_map" in refused(CheckpointError, tmp_path)


def sparse(path, size, start=b""):
    """A file of this size that takes no room on the disk."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "pytorch_model.bin", "config.json", "model.safetensors.index.json"]
)
def test_a_file_of_terabytes_is_refused_without_reading_it(tmp_path, name):
    if name == "config.json":
        save_file({"wpe.weight": torch.rand(4, 2)}, tmp_path / "model.safetensors")
    sparse(tmp_path / name, 2**41, b"{" if name.endswith("json") else safetensors_bytes({"a": entry()}, length=2**40))
    before = peak_memory()
    tracemalloc.start()
    refused(CheckpointError, tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22
    assert peak_memory() - before < 2**26


def test_links_are_followed_as_huggingface_hubs_cache_needs(tmp_path):
    make(tmp_path / "blobs", 3.0)
    snapshot = tmp_path / "snapshots" / "0"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to(tmp_path / "blobs" / "model.safetensors")
    assert load_table(snapshot).weight[0, 0] == 3.0


def test_links_to_nowhere_and_in_circles(tmp_path):
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "gone")
    refused(CheckpointNotFoundError, tmp_path)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    refused(CheckpointNotFoundError, tmp_path / "circle")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    assert "is neither a file nor a folder" in refused(CheckpointError, tmp_path / "model.safetensors")
    refused(CheckpointNotFoundError, tmp_path)


def test_what_may_not_be_read_is_named(tmp_path, monkeypatch):
    """The tests may run as root, who may read everything, so the refusal is the system's only in part."""
    make(tmp_path / "gpt2", 1.0)
    (tmp_path / "gpt2" / "model.safetensors").chmod(0)
    opened = Path.open

    def guarded(path, *arguments, **options):
        if path.exists() and not path.stat().st_mode & stat.S_IRUSR:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", guarded)
    assert "model.safetensors cannot be read: Permission denied" in refused(CheckpointError, "gpt2")


@pytest.mark.parametrize(("method", "name"), [("exists", "gpt2"), ("iterdir", "gpt2"), ("stat", "model.safetensors")])
def test_a_system_that_refuses_is_quoted(tmp_path, monkeypatch, method, name):
    make(tmp_path / "gpt2", 1.0)
    real = getattr(Path, method)

    def refusing(path, **options):
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, **options)

    monkeypatch.setattr(Path, method, refusing)
    assert "gpt2 cannot be read: Permission denied" in refused(CheckpointError, "gpt2")


def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    make(tmp_path / "gpt2", 1.0)
    path = tmp_path / "gpt2" / "model.safetensors"
    opened = Path.open

    def shrinking(self, *arguments, **options):
        os.truncate(path, 20)
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", shrinking)
    assert "model.safetensors ended at byte 20 while it was read" in refused(CheckpointError, "gpt2")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_rows_that_are_not_finite_are_loaded_and_listed(tmp_path, value):
    weight = torch.rand(6, 3)
    weight[[2, 5], 1] = value
    save_file({"wpe.weight": weight}, tmp_path / "model.safetensors")
    table = load_table(tmp_path)
    assert table.non_finite_rows == [2, 5]
    assert torch.equal(table.weight.nan_to_num(9.0), weight.nan_to_num(9.0))


def test_one_row_is_a_table(tmp_path):
    save_file({"wpe.weight": torch.ones(1, 3)}, tmp_path / "model.safetensors")
    assert load_table(tmp_path).n_positions == 1


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_quantised_tables_are_refused_in_every_form(tmp_path, kind):
    tensor = torch.ones(6, 4).to(kind)
    save_file({"wpe.weight": tensor}, tmp_path / "model.safetensors")
    torch.save({"wpe.weight": tensor}, tmp_path / "zip.bin")
    sources = [tmp_path / "model.safetensors", tmp_path / "zip.bin"]
    if kind != torch.float8_e4m3fn:  # younger than the old format
        sources.append(tmp_path / "old.bin")
        torch.save({"wpe.weight": tensor}, sources[-1], _use_new_zipfile_serialization=False)
    model = nn.Module()
    model.wpe = nn.Parameter(tensor, requires_grad=False)
    for source in sources:
        assert "quantised and integer tables have no scale here" in refused(CheckpointError, source)
    for source in (tensor, model):
        assert "quantised and integer tables have no scale here" in refused(PositionTableError, source)


@pytest.mark.parametrize(
    "name", ["модель.wpe.weight", "模型/wpe.weight", "a b.wpe", "\u202eevil.wpe.weight", "x" * 3000 + ".wpe"]
)
def test_names_of_any_letters(tmp_path, name):
    save_file({name: torch.rand(4, 2)}, tmp_path / "model.safetensors")
    if name.startswith("模型/"):
        assert load_table(tmp_path, name=name, offset=0).name == name
        return
    assert load_table(tmp_path).name == name
    one = refused(PositionTableError, tmp_path, offset=4)
    assert one.isprintable()


def test_a_checkpoint_of_ten_thousand_tensors(tmp_path):
    names = [f"layers.{number}.attn.q_proj.weight" for number in range(10_000)]
    header = {name: entry(shape=[0], data_offsets=[0, 0]) for name in names} | {"wpe.weight": entry()}
    (tmp_path / "model.safetensors").write_bytes(safetensors_bytes(header))
    assert load_table(tmp_path).weight.shape == (2, 2)
    assert "the closest are" in refused(PositionTableError, tmp_path, name="layers.7.attn.q_proj.weigth")


# What is in memory.


def test_an_embedding():
    plain, padded = nn.Embedding(9, 4), nn.Embedding(9, 4, padding_idx=1)
    assert torch.equal(load_table(plain).weight, plain.weight)
    assert torch.equal(load_table(padded).weight, padded.weight[2:])
    assert torch.equal(load_table(padded, offset=0).weight, padded.weight)
    assert (load_table(padded).offset, load_table(padded).source) == (2, "Embedding(9, 4)")


def test_a_module_of_ones_own_and_a_scheme_of_this_package():
    module = nn.Sequential(nn.Linear(4, 4))
    module.pos_emb = nn.Parameter(torch.rand(1, 7, 4))
    assert torch.equal(load_table(module).weight, module.pos_emb[0])
    learned = Learned(8, 4)
    assert torch.equal(load_table(learned).weight, learned.weight)
    whole = nn.ModuleDict({"words": nn.Embedding(9, 4), "positions": learned})
    assert (load_table(whole).name, len(load_table(whole))) == ("positions.weight", 8)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f4", "<f8"])
def test_an_array(kind):
    array = np.arange(12).reshape(4, 3).astype(kind)
    for given_array in (array, array[None], np.asfortranarray(array)):
        table = load_table(given_array)
        assert table.weight.dtype == (torch.float64 if "f8" in kind else torch.float32)
        assert table.weight.tolist() == array.tolist()
    assert load_table(array, offset=1).weight.tolist() == array[1:].tolist()


@pytest.mark.parametrize(
    "made",
    [
        lambda: build("gpt2"),
        lambda: nn.Embedding(6, 4),
        lambda: torch.rand(6, 4),
        lambda: torch.rand(6, 4, dtype=torch.float64),
        lambda: np.random.default_rng(0).random((6, 4), dtype=np.float32),
        lambda: nn.Parameter(torch.rand(1, 6, 4)),
    ],
)
def test_the_table_shares_no_memory_and_no_gradient_with_its_source(made):
    source = made()
    table = load_table(source)
    kept = table.weight.clone()
    for tensor in source.parameters() if isinstance(source, nn.Module) else [source]:
        with torch.no_grad():
            tensor[...] = 77.0
    assert torch.equal(table.weight, kept)
    assert not table.weight.requires_grad
    table.weight[...] = 5.0


def test_as_table():
    table = load_table(torch.rand(4, 2))
    assert as_table(table) is table
    assert load_table(table) is table
    assert torch.equal(as_table(table.weight).weight, table.weight)
    assert isinstance(as_table(build("gpt2")), PositionTable)


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (torch.rand(4), {}, "is no position table: that is a matrix"),
        (torch.rand(2, 4, 3), {}, "is no position table"),
        (torch.rand(0, 3), {}, "is no position table"),
        (torch.rand(3, 0), {}, "is no position table"),
        (torch.rand(()), {}, "is no position table"),
        (torch.rand(4, 2, device="meta"), {}, "on the meta device"),
        (torch.rand(4, 2).to_sparse(), {}, "is sparse; give it as an ordinary"),
        (torch.rand(4, 2, dtype=torch.complex64), {}, "is of complex64 numbers"),
        (torch.rand(4, 2), {"offset": 4}, "has 4 rows, so 4 cannot stand before position 0"),
        (torch.rand(4, 2), {"offset": -1}, "so -1 cannot stand"),
        (torch.rand(4, 2), {"offset": True}, "offset=True is no number of rows"),
        (torch.rand(4, 2), {"offset": 1.0}, "offset=1.0 is no number of rows"),
        (torch.rand(4, 2), {"part": "text"}, "part= and name= choose among several tables; a Tensor is one"),
        (torch.rand(4, 2), {"name": "wpe"}, "part= and name= choose"),
        (torch.rand(4, 2), {"revision": "main"}, "revision= is for checkpoints on the hub; a Tensor has none"),
        (torch.rand(4, 2), {"part": ""}, "part='' is no name"),
        (torch.rand(4, 2), {"name": 3}, "name=3 is no name"),
        (np.zeros((4, 2), dtype=np.int8), {}, "is of int8 numbers"),
        (np.zeros((4, 2), dtype=object), {}, "is of object numbers"),
        (np.zeros((4, 2), dtype=np.longdouble), {}, "quantised and integer tables"),
        (np.zeros(4, dtype=np.float32), {}, "is no position table"),
        (np.ma.masked_equal(np.eye(3), 1.0), {}, "has masked entries"),
        (nn.Linear(2, 2), {}, "Linear has no position table"),
        (nn.Linear(2, 2), {"name": "bias", "offset": 0}, "bias of Linear is no position table"),
        (nn.Linear(2, 2), {"name": "weight"}, "say how many rows stand before position 0: load_table(model, name="),
        (nn.Linear(2, 2), {"name": "wpe"}, "Linear has no parameter 'wpe'"),
        ([[1.0, 2.0]], {}, "a list has no position table; give an id on the hub"),
        (None, {}, "a NoneType has no position table"),
        (3, {}, "a int has no position table"),
        (b"gpt2", {}, "a bytes has no position table"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_table_is_refused_in_one_line(source, options, words):
    assert words in refused(PositionTableError, source, **options)


def test_a_parameter_is_chosen_by_its_name():
    model = build("bart")
    found = load_table(model, name="decoder.embed_positions.weight")
    assert torch.equal(found.weight, model.decoder.embed_positions.weight[2:])
    words = load_table(model, name="shared.weight", offset=0)
    assert torch.equal(words.weight, model.shared.weight)


def test_a_model_without_numbers_is_refused():
    with torch.device("meta"):
        models = [nn.ModuleDict({"pos_emb": nn.Embedding(4, 2)}), build("bert")]
    for model in models:
        assert "on the meta device, which holds no numbers" in refused(PositionTableError, model)


def test_a_position_table_cannot_be_loaded_with_options():
    assert "a PositionTable is one" in refused(PositionTableError, load_table(torch.rand(3, 2)), part="text")


# Damage.


@given(st.data())
def test_no_damage_to_a_file_breaks_the_reader(tmp_path_factory, data):
    """A CheckpointError or PositionTableError, or a table of the right kind: never another error."""
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    form = data.draw(st.sampled_from(["model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"]))
    state = {"h.0.weight": torch.ones(3, 3), "wpe.weight": torch.rand(4, 2)}
    for file in folder.iterdir():
        file.unlink()
    if form == "pytorch_model.bin":
        torch.save(state, folder / form)
    else:
        save_file(state, folder / "model.safetensors")
    if form.endswith("json"):
        (folder / form).write_text(json.dumps({"weight_map": dict.fromkeys(state, "shard.safetensors")}))
        (folder / "model.safetensors").rename(folder / "shard.safetensors")
    broken = bytearray((folder / form).read_bytes())
    at = data.draw(st.integers(0, len(broken) - 1))
    broken[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=4))
    (folder / form).write_bytes(broken)
    try:
        table = load_table(folder)
    except PosembedError as error:
        assert isinstance(error, (CheckpointError, PositionTableError))
        assert "\n" not in str(error)
    else:
        assert table.weight.ndim == 2


def test_the_real_encoder_from_its_files_and_alive(encoder):
    from posembed.pretrained import installed_folder

    folder = installed_folder()
    if folder is None:
        pytest.skip("needs the real encoder's files, which are installed with its wheel")
    table, alive = load_table(folder), load_table(encoder.model)
    stored = safetensors.torch.load_file(folder / "model.safetensors")
    assert torch.equal(table.weight, stored["embeddings.position_embeddings.weight"])
    assert torch.equal(table.weight, alive.weight)
    assert alive.source == "BertModel (sentence-transformers/all-MiniLM-L6-v2)"
    assert (table.offset, tuple(table.weight.shape)) == (0, (512, 384))
    # The beginning of the file, the table, and config.json.
    assert table.bytes_read < 1.01 * table.weight.nbytes + 200_000


@pytest.mark.parametrize(("origin", "source"), [("owner/model", "BertModel (owner/model)"), ("", "BertModel")])
def test_a_live_model_is_named_by_its_class_and_its_name_on_the_hub(origin, source):
    model = build("bert")
    model.config.name_or_path = origin
    assert load_table(model).source == source
