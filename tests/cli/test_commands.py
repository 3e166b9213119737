"""What each command prints, for people and for programs, is what the package computes."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from posembed.cli._guard import in_words_of_the_shell
from posembed.probing import description_length, probe_table, spectrum
from posembed.similarity import properties
from posembed.tables import load_table

COMMANDS = ("table", "probe", "properties")


def test_table_in_json(checkpoints, data, waves):
    found = data("table", "waves")
    table, spread = load_table("waves"), spectrum(waves)
    assert found["source"] == "waves" and found["name"] == "wpe.weight" and found["file"] == "model.safetensors"
    assert found["shape"] == list(waves.shape)
    assert found["untrained_rows"] == table.untrained_rows == [40]
    assert found["bytes_read"] == table.bytes_read >= waves.numel() * 4
    norms = waves.double().norm(dim=1)
    assert found["norms"] == pytest.approx({"median": 4.0, "min": 0.0, "max": norms.max().item()})
    assert found["spectrum"]["components_for_90_percent"] == spread.n_components_for(0.9)
    assert found["spectrum"]["effective_rank"] == pytest.approx(spread.effective_rank)


def test_table_for_people(checkpoints, call, waves):
    code, printed, complained = call("table", "waves")
    assert (code, complained) == (0, "")
    for part in ("64 positions of 32 numbers", "wpe.weight of waves", "Row 40 looks untrained", "hold 90 % of the"):
        assert part in " ".join(printed.split()), part
    lines = printed.splitlines()
    picture = lines[lines.index("norm of each row, from 0") + 1]
    assert len(picture) == len(waves)
    # The row of zeros is the only one without a block.
    assert [row for row, letter in enumerate(picture) if letter == " "] == [40]


def test_probe_in_json(checkpoints, data, waves):
    found = data("probe", "waves", "--probe", "ols", "--split", "folds", "--rows", "48", "--seed", "3")
    result = probe_table(waves, probe="ols", split="folds", rows=48, seed=3)
    expected = result.to_dict() | {"source": "waves"}
    expected["description_length"] = description_length(waves, rows=48, seed=3).to_dict() | {"source": "waves"}
    assert found == expected


@pytest.mark.parametrize(("rows", "first", "n"), [("48", 0, 48), ("10:50", 10, 40), ("20:", 20, 44), (":30", 0, 30)])
def test_rows_are_those_asked_for(checkpoints, data, rows, first, n):
    found = data("probe", "waves", "--rows", rows, "--split", "all")
    assert found["positions"] == list(range(first, first + n))


def test_probe_for_people(checkpoints, call, waves):
    code, printed, complained = call("probe", "waves")
    assert (code, complained) == (0, "")
    result, flat = probe_table(waves), " ".join(printed.split())
    for name, value in (
        ("constant guess", result.baselines.constant),
        ("a random table", result.baselines.random_table),
    ):
        assert f"{name} {value:.3g}" in flat
    for part in ("this table", "permuted labels", "error by region", "description length", "does not show that"):
        assert part in flat


def test_too_few_rows_for_a_description_length_still_have_their_probe(checkpoints, data, call):
    assert data("probe", "waves", "--rows", "10")["description_length"] is None
    code, printed, _ = call("probe", "waves", "--rows", "10")
    assert code == 0 and "description length" not in printed


def test_properties_in_json(checkpoints, data, waves):
    found = data("properties", "waves", "--max-offset", "5", "--similarity", "cosine", "--rows", "40")
    expected = properties(waves, max_offset=5, similarity="cosine", rows=40)
    assert found["monotonicity"] == pytest.approx(expected.monotonicity)
    assert found["translation_invariance"] == pytest.approx(expected.translation_invariance)
    assert found["locality"] is None and math.isnan(expected.locality)


def test_properties_for_people(checkpoints, call, waves):
    code, printed, complained = call("properties", "waves", "--max-offset", "5")
    assert (code, complained) == (0, "")
    expected = properties(waves, max_offset=5)
    assert f"{expected.monotonicity:.3f}" in printed and f"{expected.translation_invariance:.3f}" in printed
    assert "says nothing about the table" in " ".join(printed.split())


def test_a_table_with_nan_is_shown_and_its_probe_refused(checkpoints, data, call):
    found = data("table", "owner/broken")
    assert (found["non_finite_rows"], found["spectrum"]) == ([3], None)
    code, printed, _ = call("table", "owner/broken")
    assert code == 0 and "Row 3: NaN or infinity" in printed
    code, printed, complained = call("probe", "owner/broken")
    assert (code, printed) == (1, "")
    assert complained.startswith("posembed: ") and "3" in complained


def test_a_table_with_infinity_is_shown(tmp_path, waves, call):
    weight = waves.clone()
    weight[9, 2] = torch.inf
    save_file({"wpe.weight": weight}, tmp_path / "infinite.safetensors")
    code, printed, complained = call("table", tmp_path / "infinite.safetensors")
    assert (code, complained) == (0, "")
    assert "Row 9: NaN or infinity" in printed
    norms = printed.splitlines()[-5]
    assert [place for place, letter in enumerate(norms) if letter == "?"] == [9]


@pytest.mark.parametrize("suffix", ["", "/model.safetensors"])
def test_a_source_can_be_a_folder_or_a_file(checkpoints, data, suffix):
    found = data("table", f"{checkpoints / 'waves'}{suffix}")
    assert found["shape"] == [64, 32]


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


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_wider_than_the_terminal(checkpoints, call, command):
    for columns in (60, 80):
        code, printed, _ = call(command, "waves", columns=columns)
        assert code == 0
        assert max(map(len, printed.splitlines())) <= columns


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_piped_has_no_control_codes(checkpoints, call, command):
    code, printed, complained = call(command, "waves")
    assert (code, complained) == (0, "")
    assert all(letter.isprintable() or letter == "\n" for letter in printed)
    assert not any(line.endswith(" ") and line.strip() for line in printed.splitlines() if "█" not in line)


def test_report(checkpoints, call, tmp_path):
    code, printed, complained = call("report", "waves", "-o", "page.html", "--label", "a wave")
    assert (code, complained) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert printed == f"page.html: 1 table, {len(page.encode()) / 1e6:.1f} MB\n"
    assert "<title>Position tables: a wave</title>" in page


def test_one_source_of_several_that_fails_is_told_by_the_exit_code_too(checkpoints, call, tmp_path):
    code, printed, complained = call("report", "waves", tmp_path / "nothing", "-o", "page.html")
    assert code == 1 and "page.html" in printed
    assert len(complained.splitlines()) == 1 and complained.startswith("posembed: ") and "nothing" in complained
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Row 40 looks untrained" in page and "This source could not be read" in page


def test_no_source_of_several_leaves_an_older_report_as_it_was(checkpoints, call, tmp_path):
    (tmp_path / "page.html").write_text("older")
    code, printed, complained = call("report", tmp_path / "a", tmp_path / "b", "-o", "page.html")
    assert (code, printed) == (1, "") and len(complained.splitlines()) == 1
    assert (tmp_path / "page.html").read_text() == "older"


def test_pictures_follow_the_numbers():
    from posembed.cli._pictures import bar, strip

    values = np.linspace(0, 1, 9).tolist()
    assert strip(values, 9, low=0, high=1) == " ▁▂▃▄▅▆▇█"
    # Of several numbers the one that matters.
    assert strip([0.0, 1.0], 1, low=0, high=1) == "█" and strip([0.0, 1.0], 1, low=0, high=1, choose=min) == " "
    assert strip([math.nan, 1.0], 2, low=0, high=1) == "?█"
    assert len(strip(list(range(1000)), 72, low=0, high=999)) == 72
    lengths = [len(bar(value, 1.0, 40)) for value in values]
    assert lengths == sorted(lengths) and lengths[0] == 0 and lengths[-1] == 40
    assert bar(5.0, 1.0, 10).endswith(">") and len(bar(5.0, 1.0, 10)) == 10
    assert bar(math.nan, 1.0, 10) == ""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("in part; call load_table(..., download=True)", "in part; say --download"),
        ("begin: load_table('a/b', name='w.pos', offset=0)", "begin: say --name 'w.pos' --offset 0"),
        ("choose with part= or name= among: a, b", "choose with --part or --name among: a, b"),
        ("rows=slice(5, 2, None) holds no rows", "--rows 5:2 holds no rows"),
        ("rows=5000 goes beyond the table", "--rows 5000 goes beyond the table"),
    ],
)
def test_advice_is_given_in_words_of_the_shell(said, shown):
    assert in_words_of_the_shell(said) == shown
