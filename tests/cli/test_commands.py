"""What ``table``, ``probe`` and ``properties`` print, for people and for programs, is what the package computes."""

import numpy as np
import pytest
import torch
from small_models import build

from posembed.cli.output import facts, show
from posembed.probing import probe_table, spectrum
from posembed.similarity import properties
from posembed.tables import load_table

COMMANDS = ("table", "probe", "properties")


def test_table_in_json(checkpoints, data, waves):
    found = data("table", "waves")
    table, spread = load_table("waves"), spectrum(waves)
    assert (found["source"], found["name"], found["file"]) == ("waves", "wpe.weight", "model.safetensors")
    assert (found["shape"], found["offset"], found["stored_dtype"]) == ([64, 32], 0, "float32")
    assert (found["untrained_rows"], found["non_finite_rows"]) == ([40], [])
    assert data("table", checkpoints / "waves" / "model.safetensors")["shape"] == [64, 32]
    assert found["bytes_read"] == table.bytes_read >= waves.numel() * 4
    # The waves have the norm 4, but for the row of zeros.
    assert found["norms"] == pytest.approx({"median": 4.0, "min": 0.0, "max": 4.0}, rel=1e-6)
    # Without what is as long as the table.
    assert found["spectrum"] == spread.to_dict() | {"components": None, "positions": None, "source": "waves"}


def test_table_for_people(checkpoints, call, waves):
    code, printed, complained = call("table", "waves")
    assert (code, complained) == (0, "")
    flat = " ".join(printed.split())
    for part in (
        "table wpe.weight of waves",
        "64 positions x 32, stored as float32",
        "norms median 4, from 0 to 4",
        "untrained rows 40",
        "hold 90 % of the variance",
    ):
        assert part in flat, part


def test_probe_in_json(checkpoints, data, waves):
    found = data("probe", "waves", "--probe", "ols", "--split", "folds", "--rows", "48", "--seed", "3")
    result = probe_table(waves, probe="ols", split="folds", rows=48, seed=3)
    assert found == result.to_dict() | {"source": "waves"}


@pytest.mark.parametrize(("rows", "first", "n"), [("48", 0, 48), ("10:50", 10, 40), ("20:", 20, 44), (":30", 0, 30)])
def test_rows_are_those_asked_for(checkpoints, data, rows, first, n):
    found = data("probe", "waves", "--rows", rows, "--split", "all")
    assert found["positions"] == list(range(first, first + n))


def test_probe_for_people(checkpoints, call, waves):
    code, printed, complained = call("probe", "waves")
    assert (code, complained) == (0, "")
    result, flat = probe_table(waves), " ".join(printed.split())
    for part in (
        f"this table {result.test_mae:.4g} (95 % interval {result.interval})",
        f"constant guess {result.baselines.constant:.4g}",
        f"permuted labels {result.baselines.permuted_labels:.4g}",
        f"a random table {result.baselines.random_table:.4g}",
        f"0 to 7 {result.by_region[0].mae:.3g}",
        "not that the model computes",
    ):
        assert part in flat, part


def test_properties(checkpoints, data, call, waves):
    found = data("properties", "waves", "--max-offset", "5", "--similarity", "cosine", "--rows", "40")
    expected = properties(waves, max_offset=5, similarity="cosine", rows=40).to_dict()
    assert found == {"source": "waves", "similarity": "cosine", "max_offset": 5} | expected
    assert found["locality"] is None
    code, printed, complained = call("properties", "waves", "--max-offset", "5")
    assert (code, complained) == (0, "")
    expected = properties(waves, max_offset=5)
    assert f"monotonicity            {expected.monotonicity:.3g}: of two rows" in printed
    assert f"translation invariance  {expected.translation_invariance:.3g}: the share" in printed
    assert "says nothing about the table" in " ".join(printed.split())


def test_a_table_with_nan_is_shown_and_its_probe_refused(checkpoints, data, call):
    found = data("table", "owner/broken")
    assert (found["non_finite_rows"], found["spectrum"]) == ([3], None)
    code, printed, _ = call("table", "owner/broken")
    assert code == 0 and "NaN or infinity  rows 3" in printed and "no spectrum" in printed
    np.save("nothing.npy", np.full((4, 2), np.nan))
    code, printed, _ = call("table", "nothing.npy")
    assert code == 0 and "NaN or infinity  rows 0, 1, 2, 3" in printed and "median" not in printed
    code, printed, complained = call("probe", "owner/broken")
    assert (code, printed) == (1, "")
    assert complained.startswith("posembed: ") and "3" in complained and "rows=" in complained


def test_how_the_table_is_found_is_passed_on(checkpoints, monkeypatch, call):
    asked = []

    def load(source, **options):
        asked.append((source, options))
        return load_table(torch.zeros(20, 4))

    monkeypatch.setattr("posembed.tables.load_table", load)
    words = ["--part", "decoder", "--revision", "main", "--name", "pos", "--offset", "2", "--download", "--refresh"]
    expected = {"part": "decoder", "revision": "main", "name": "pos", "offset": 2, "download": True, "refresh": True}
    for command in COMMANDS:
        assert call(command, "some/where", *words)[0] == 0
    assert asked == [("some/where", expected)] * 3


@pytest.mark.parametrize("columns", [40, 80])
def test_what_is_piped_has_no_control_codes_and_is_no_wider_than_the_terminal(checkpoints, call, columns):
    for command in COMMANDS:
        code, printed, complained = call(command, "waves", columns=columns)
        assert (code, complained) == (0, "")
        assert all(letter.isprintable() or letter == "\n" for letter in printed)
        assert max(map(len, printed.splitlines())) <= columns


def test_lists_and_tables_for_people(capsys):
    show(facts({"one": "[red]1[/red]", "none": None, "three": "3"}))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["one    [red]1[/red]", "three  3"]


def test_a_control_far_beyond_the_table_is_explained(call, tmp_path):
    np.save(tmp_path / "rows.npy", np.linspace(0.0, 1.0, 80)[:, None] ** np.arange(16))
    code, printed, _ = call("probe", tmp_path / "rows.npy", "--probe", "ols", "--split", "half", columns=200)
    assert code == 0 and printed.splitlines()[-1].startswith("a control lies far beyond the 80 positions")


def test_a_table_of_patches_says_that_it_is_read_as_a_line(call, tmp_path):
    build("vit").save_pretrained(tmp_path)
    code, printed, complained = call("properties", tmp_path)
    assert code == 0 and "monotonicity" in printed
    assert "posembed: warning: the rows of " in complained and "read as one line" in complained
    assert "then a grid of 2 x 2 patches" in " ".join(call("table", tmp_path)[1].split())
