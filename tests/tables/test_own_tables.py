"""Tables of one's own: a buffer as in PyTorch's tutorial, a name that nobody knows, a file of numpy."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from refusals import refused
from small_models import build
from torch import nn

from posembed import sinusoidal, with_position_table
from posembed.errors import CheckpointError, CheckpointNotFoundError, PositionTableError
from posembed.probing import intervene
from posembed.tables import find_position_rows, load_table

WAVES = sinusoidal(12, 6)
SHAPES = {"positions first": (12, 1, 6), "batch first": (1, 12, 6), "a matrix": (12, 6)}


class Tutorial(nn.Module):
    """A buffer called pe, which is added, as in PyTorch's tutorial; and a table under a name of its own."""

    def __init__(self, shape=(12, 1, 6)):
        super().__init__()
        self.positions = nn.Module()
        self.positions.register_buffer("pe", WAVES.clone().reshape(shape))
        self.clock = nn.Parameter(torch.ones(12, 6))

    def forward(self, x):
        return x + self.positions.pe.reshape(12, 6)[: len(x)] + self.clock[: len(x)]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_buffer_is_read_and_replaced_whichever_axis_stands_for_the_batch(shape, tmp_path):
    model = Tutorial(shape)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    for source in (model, tmp_path / "model.pt"):
        table = load_table(source)
        assert table.name == "positions.pe" and torch.equal(table.weight, WAVES)
    with with_position_table(model, "zeroed"):
        assert torch.equal(model(torch.zeros(3, 6)), torch.ones(3, 6))
    assert torch.equal(model.positions.pe.reshape(12, 6), WAVES)


def test_a_table_with_a_name_of_its_own_is_chosen_by_it():
    model = Tutorial()
    assert torch.equal(load_table(model, name="clock").weight, torch.ones(12, 6))
    assert find_position_rows(model, name="clock").parameter is model.clock
    with with_position_table(model, "zeroed", name="clock"):
        assert torch.equal(model(torch.zeros(3, 6)), WAVES[:3])
    assert torch.equal(model.clock, torch.ones(12, 6))


class Lookup(nn.Module):
    """Words of 6 numbers, and a table of 12 positions that lies one way or the other."""

    def __init__(self, shape, name="embedding"):
        super().__init__()
        self.add_module(name, nn.Embedding(20, 6))
        self.register_buffer("pe", WAVES.T.clone().reshape(shape))


TURNED = {"[0].T": (1, 6, 12), "[:, 0].T": (6, 1, 12), ".T": (6, 12)}


@pytest.mark.bad_input
@pytest.mark.parametrize("turned", TURNED)
def test_a_table_with_a_column_for_each_position_is_not_taken_for_one_of_rows(turned, tmp_path):
    torch.save(Lookup(TURNED[turned]).state_dict(), tmp_path / "model.pt")
    model = Lookup(TURNED[turned], "whatever")
    for source in (model, tmp_path / "model.pt"):
        for name in (None, "pe"):
            message = refused(PositionTableError, load_table, source, name=name)
            assert "lies transposed" in message and "vectors are 6 wide" in message
    assert "lies transposed" in refused(PositionTableError, with_position_table(model, "zeroed").__enter__)
    assert torch.equal(load_table(eval(f"model.pe{turned}")).weight, WAVES)


def test_as_many_positions_as_the_vectors_are_wide_are_read_where_a_width_is_known():
    model = Lookup((6, 12))
    model.wide = nn.Embedding(3, 12)
    assert load_table(model).weight.shape == (6, 12)
    assert load_table(build("albert", max_position_embeddings=16)).weight.shape == (16, 8)


@pytest.mark.bad_input
def test_a_buffer_of_ctrl_is_chosen_in_the_call_that_was_made():
    sizes = {"vocab_size": 9, "n_positions": 12, "n_embd": 8, "dff": 8, "n_layer": 1, "n_head": 2}
    model = transformers.CTRLModel(transformers.CTRLConfig(**sizes))
    message = refused(PositionTableError, with_position_table(model, "zeroed").__enter__)
    assert message.endswith("choose: name='pos_encoding'") and "no table" not in message
    with with_position_table(model, "zeroed", name="pos_encoding"):
        assert not model.pos_encoding.any()
    batches = [torch.tensor([[1, 2, 3, 4]])]
    assert refused(PositionTableError, intervene, model, batches).endswith("choose: name='pos_encoding'")
    assert intervene(model, batches, name="pos_encoding", n_draws=2).changed > 0


def test_a_file_of_numpy_is_read_exactly(tmp_path):
    for kind in (">f8", "<f4", "<f2"):
        np.save(tmp_path / "mine.npy", WAVES.numpy().astype(kind))
        table = load_table(str(tmp_path / "mine.npy"), offset=2)
        assert torch.equal(table.weight.double(), torch.from_numpy(WAVES.numpy().astype(kind).astype("f8"))[2:])
        assert table.file == "mine.npy" and table.bytes_read >= (tmp_path / "mine.npy").stat().st_size


@pytest.mark.bad_input
def test_a_file_of_numpy_that_is_no_table_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save("whole.npy", np.arange(6).reshape(2, 3))
    np.save("flat.npy", np.zeros(5))
    np.save("good.npy", np.zeros((40, 8)))
    Path("cut.npy").write_bytes(Path("good.npy").read_bytes()[:200])
    for name, said in {
        "objects": "cannot be read",
        "whole": "int64 numbers",
        "flat": "no position table",
        "cut": "cannot be read",
    }.items():
        assert said in refused((CheckpointError, PositionTableError), load_table, f"{name}.npy"), name
    assert "neither a file or folder here" in refused(CheckpointNotFoundError, load_table, "goad.npy")
