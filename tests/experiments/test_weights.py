"""Trained tables as files: beside the results of their runs, and in the package."""

import sys

import numpy as np
import pytest
import torch

from posembed import RunConfig
from posembed.errors import RunError
from posembed.experiments import bundle_tables, load_tables, read_results, read_tables, write_table


@pytest.fixture
def table():
    return torch.randn(12, 8, generator=torch.Generator().manual_seed(0))


def test_a_table_comes_back_in_half_precision(tmp_path, table):
    path = write_table(torch.nn.Parameter(table), RunConfig(seed=3), tmp_path)
    assert path.name == f"{RunConfig(seed=3).key}.npy"
    (back,) = read_tables(tmp_path).values()
    assert back.dtype == torch.float32
    assert torch.equal(back, table.half().float())
    # Eleven digits of two: the error is at most half of the last.
    assert ((back - table).abs() <= table.abs() * 2.0**-11).all()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_tables_are_read_by_the_keys_of_their_configs(tmp_path, table):
    configs = [RunConfig(seed=seed) for seed in (1, 2)]
    for config in configs:
        write_table(table * config.seed, config, tmp_path)
    (tmp_path / ".half-written.tmp").write_text("half a tab")
    (tmp_path / "notes.txt").write_text("of mine")
    tables = read_tables(tmp_path)
    assert set(tables) == {config.key for config in configs}
    assert torch.equal(tables[configs[1].key], (table * 2).half().float())
    assert read_results(tmp_path) == []


def test_a_failed_write_leaves_nothing_and_keeps_what_was_there(tmp_path, table, monkeypatch):
    path = write_table(table, RunConfig(), tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        write_table(table * 2, RunConfig(), tmp_path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


class Trap:
    """What unpickling it would run."""

    def __reduce__(self):
        return print, ("a table has run code",)


def pickled(path):
    np.save(path, np.array([Trap()], dtype=object), allow_pickle=True)


def saved(path, save, array):
    with path.open("wb") as file:
        save(file, array)


DAMAGED = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "cut in its header": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no table"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "pickled": pickled,
    "a zip": lambda path: path.write_bytes(b"PK\x03\x04" + bytes(60)),
    "several arrays": lambda path: saved(path, np.savez, np.eye(3)),
    "words": lambda path: saved(path, np.save, np.array(["a", "b"])),
    "one row": lambda path: saved(path, np.save, np.ones(8)),
    "NaN": lambda path: saved(path, np.save, np.full((3, 8), np.nan)),
}


@pytest.mark.bad_input
@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_is_no_table_is_an_error(tmp_path, table, damage, capsys):
    path = write_table(table, RunConfig(), tmp_path)
    damage(path)
    with pytest.raises(RunError) as caught:
        read_tables(tmp_path)
    assert str(caught.value) == f"{path.name} is no table of finite numbers; move it away and run its config again"
    assert capsys.readouterr().out == ""
    assert path.exists()


def test_a_bundle_comes_back_and_does_not_depend_on_the_order(tmp_path, table, monkeypatch):
    # The package has a name of its own for the module.
    monkeypatch.setattr(sys.modules["posembed.experiments.files.weights"], "files", lambda _: tmp_path)
    (tmp_path / "stored").mkdir()
    content = bundle_tables({"b": table, "a": 2 * table})
    assert content == bundle_tables({"a": 2 * table, "b": table})
    (tmp_path / "stored" / "mine.safetensors").write_bytes(content)
    back = load_tables("mine")
    assert set(back) == {"a", "b"}
    assert torch.equal(back["a"], (2 * table).half().float())


@pytest.mark.bad_input
def test_an_unknown_study_has_no_tables():
    with pytest.raises(RunError) as caught:
        load_tables("nothing")
    assert str(caught.value) == "there are no stored tables of a study 'nothing'; there are those of trained-tables"
