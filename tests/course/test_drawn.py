"""What is drawn for a course is so: pieces have the faults that they are said to have, and no others; functions too."""

import json
import math
import re

import jupytext
import pytest
import torch
import torch.nn.functional as F
from tool import TOOLS, load

from posembed import scheme
from posembed.encodings import alibi_slopes

COURSE = TOOLS.parent / "course"
MUSEUM = COURSE / "unlabelled-museum"
FORMS = load("data", MUSEUM).FORMS
CELLS = [cell.source for cell in jupytext.read(MUSEUM / "master.md").cells if cell.cell_type == "code"]
CASES = [(letter, number) for letter, forms in FORMS.items() for number in range(len(forms))]


def piece(letter, number):
    """A piece in one of its forms."""
    names = {"torch": torch, "F": F, "math": math}
    exec(next(cell for cell in CELLS if "def turn(" in cell), names)
    cell = next(cell for cell in CELLS if f"def piece_{letter}(" in cell)
    places = {name: code for forms in FORMS.values() for name, code in forms[0][0].items()} | FORMS[letter][number][0]
    exec(load("course").filled(cell, places), names)
    return names[f"piece_{letter}"]


def passes(letter, candidate, folder):
    """Whether a function passes the hidden checks of a mended piece, beside faults that were found."""
    faults = {"a": {}, "c": {"layout": []}}
    (folder / "truth.json").write_text(json.dumps({"faults": {letter: {} for letter in "abcdefghij"} | faults}))
    names = {}
    for path in (COURSE / "grading" / "checking.py", MUSEUM / "shared.py"):
        exec(path.read_text(encoding="utf-8"), names)
    given = {"env": {"__folder__": str(folder), "found_c": {"layout": "layouts"}}, f"mended_{letter}": candidate}
    checks = [cell for cell in CELLS if re.search(rf"hidden: true.*def test_mended_{letter}", cell, re.DOTALL)]
    assert checks
    for cell in checks:
        name, parameters = re.search(r"def (test_\w+)\(([^)]*)\)", cell).groups()
        exec(cell, names)
        try:
            names[name](*(given[each] for each in parameters.split(", ")))
        except AssertionError:
            return False
    return True


@pytest.mark.parametrize(("letter", "number"), CASES)
def test_a_form_without_faults_is_right_and_one_with_faults_is_not(letter, number, tmp_path):
    assert passes(letter, piece(letter, number), tmp_path) == (not FORMS[letter][number][1])


@pytest.mark.parametrize(("letter", "number"), CASES)
def test_faults_and_properties_stand_in_the_lists(letter, number):
    lists = {}
    exec(next(cell for cell in CELLS if cell.startswith("FAULTS")), lists)
    for fault, (properties, hint) in FORMS[letter][number][1].items():
        assert fault in lists["FAULTS"] and set(properties) <= set(lists["PROPERTIES"]) and hint


def differs(slopes, n):
    return (slopes - alibi_slopes(n)).abs().max() > 1e-6


def test_what_is_asked_on_paper_of_the_pieces_is_so():
    for number, (places, _) in enumerate(FORMS["d"]):
        made = ((piece("d", number)(n, 2)[:, 0, 1].double(), n) for n in range(1, 40))
        assert next((n for slopes, n in made if differs(slopes, n)), "none") == places["fewest_d"]
    at = torch.arange(1, 1001)
    right = scheme("t5", n_heads=1, causal=False).bucket(-at)
    for number, (places, _) in enumerate(FORMS["h"]):
        others = at[piece("h", number)(-at) != right].tolist()
        assert (others[0] if others else "none") == places["nearest_h"]
    for number, (places, _) in enumerate(FORMS["j"]):
        out = piece("j", number)(torch.randn(1, 64).bfloat16().expand(4096, 64), torch.arange(4096))
        same = (out[1:] == out[:-1]).all(dim=1).nonzero()
        assert (int(same[0]) + 1 if len(same) else "none") == places["twin_j"]


def test_every_course_has_pieces_without_a_fault_and_with_one():
    drawn = load("draws", COURSE).Draws
    truths = [load("data", MUSEUM).make(drawn(MUSEUM.name, seed))[1] for seed in range(30)]
    assert all(2 <= sum(not each for each in truth["faults"].values()) <= 4 for truth in truths)
    assert len({json.dumps(truth["faults"]) for truth in truths}) > 25


def test_functions_of_the_first_question_are_equivariant_or_not():
    data = load("data", COURSE / "order-and-lookup")
    x = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    for function in (*data.EQUIVARIANT, *data.NOT):
        f = eval(f"lambda x: {function}", {"torch": torch, "F": F})
        alike = torch.allclose(f(x[:, order]), f(x)[:, order], atol=1e-5)
        assert alike == (function in data.EQUIVARIANT), function
