"""The museum of positional bugs: each check refuses the bug by its property, and accepts whatever is right."""

import ast
import difflib
import inspect
import re
import tomllib

import pytest
import torch
from exhibits import MUSEUM, NAMES, ROOT, exhibit
from museum_candidates import RIGHT, WRONG

PARTS = ["broken", "mended", "check", "picture"]


def refusal(name, candidate):
    """The message with which an exhibit's check refuses a candidate."""
    with pytest.raises(AssertionError) as caught:
        exhibit(name).check(candidate)
    return str(caught.value)


def functions(name):
    tree = ast.parse((MUSEUM / f"{name}.py").read_text(encoding="utf-8"))
    return {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}


def lines_of(name, part):
    return inspect.getsource(getattr(exhibit(name), part)).splitlines()


# What a check says of the broken version: what is wrong, measured, and what to do.
REFUSALS = {
    "heads_axis": "no product depends on positions: are they counted along the heads? Count the x.shape[1] places",
    "layout_mix_up": "a product changes by 0.85 when query and key move together: do angles and columns pair in "
    "different ways? Let both pair 2i with 2i + 1, or both i with i + d / 2",
    "wrong_exponent": "at width 32 the squares of columns 2i and 2i + 1 do not add up to 1: is c // 2 the pair of "
    "column c in the exponent?",
    "half_precision_angles": "rows 256 and 257 are identical: are positions or angles in torch.bfloat16? "
    "Round cosine and sine instead",
    "left_padding": "padding changes the outputs of a text by up to 2.42: do positions count the padding? "
    "Count the real tokens alone, from 0",
    "cache_offset": "outputs change by 2.21 when a text comes in parts: do positions start from 0 again, or is the "
    "mask aligned to the first key? Go on behind the tokens in the cache",
    "packing_leak": "a text in a pack is off by 0.77: does it see the text before it, or do positions go on counting? "
    "Let both end with a text",
    "partial_for_proportional": "a quarter of a head is off by 2.40: is it a head of its own, with pairs or speeds of "
    "its own? Take the fastest of the whole head's",
    "layer_kinds": "layer 0, sliding_attention, turns its slowest pair by 3.0e-07, not 1.8e-04: does it read the "
    "entry of its own kind?",
    "other_grid": "on (8, 8) a row of patches is no row: its places differ by 4.3: compare grids, not their sizes",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_check_refuses_the_broken_version_and_accepts_the_mended_one(name):
    assert refusal(name, exhibit(name).broken) == REFUSALS[name]
    exhibit(name).check(exhibit(name).mended)


def label(value):
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("name", "candidate", "part"), [(n, *case) for n in NAMES for case in WRONG[n]], ids=label)
def test_the_check_refuses_other_mistakes(name, candidate, part):
    """Each gets one line, and after what is wrong, what to do or to ask oneself."""
    message = refusal(name, candidate)
    assert part in message
    assert "\n" not in message and len(message) < 200
    assert re.search(r"\w: \w", message)


@pytest.mark.parametrize(("name", "candidate"), [(n, each) for n in NAMES for each in RIGHT[n]], ids=label)
def test_the_check_accepts_what_is_right_elsewhere(name, candidate):
    exhibit(name).check(candidate)


# Pictures: what a reader sees in the broken one, and not in the mended one.


def same_along_diagonals(image):
    return bool(torch.allclose(image[1:, 1:], image[:-1, :-1], atol=1e-4))


def moving(image):
    """The columns in which anything is not zero."""
    return (image.abs().amax(0) > 1e-6).nonzero().flatten().tolist()


SEEN = {
    # One number everywhere.
    "heads_axis": lambda image: float((image - image[0, 0]).abs().max()) < 1e-4,
    # No stripes along the diagonals.
    "layout_mix_up": lambda image: not same_along_diagonals(image),
    # The right half stands still: no column of it moves by a tenth.
    "wrong_exponent": lambda image: float((image.amax(0) - image.amin(0))[32:].max()) < 0.1,
    # Steps: at most every second row differs from the one before.
    "half_precision_angles": lambda image: int((image[1:] != image[:-1]).any(1).sum()) <= 32,
    # Only without padding in front is nothing changed.
    "left_padding": lambda image: (image.amax(1) > 0.5).tolist() == [False] + [True] * 8,
    # The first four tokens are right, each later one is wrong.
    "cache_offset": lambda image: bool((image[:4] < 1e-5).all() and (image[4:].amax(1) > 0.5).all()),
    # One triangle.
    "packing_leak": lambda image: torch.equal(image > 1e-4, torch.ones(12, 12).tril() > 0),
    # The first columns.
    "partial_for_proportional": lambda image: moving(image) == list(range(8)),
    # All layers are alike.
    "layer_kinds": lambda image: bool((image == image[:1]).all()),
    # A scale that goes on from row to row.
    "other_grid": lambda image: float(image[0].max()) < 0.5 < float(image[1].min()),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_shows_the_bug(name):
    module = exhibit(name)
    broken, mended = module.picture(module.broken), module.picture(module.mended)
    assert broken.shape == mended.shape
    assert broken.ndim in (1, 2) and broken.numel() <= 64 * 64
    assert SEEN[name](broken)
    assert not SEEN[name](mended)


def test_what_the_mended_pictures_show():
    mended = {name: exhibit(name).picture(exhibit(name).mended) for name in NAMES}
    assert same_along_diagonals(mended["heads_axis"]) and same_along_diagonals(mended["layout_mix_up"])
    assert (mended["half_precision_angles"][1:] != mended["half_precision_angles"][:-1]).any(1).all()
    assert mended["left_padding"].max() < 1e-5
    assert mended["cache_offset"].max() < 1e-5
    triangles = torch.block_diag(*(torch.ones(n, n).tril() for n in (5, 4, 3)))
    assert torch.equal(mended["packing_leak"] > 1e-4, triangles > 0)
    assert moving(mended["partial_for_proportional"]) == [0, 1, 2, 3, 16, 17, 18, 19]
    slow = mended["layer_kinds"][:, -1] < -5
    assert slow.nonzero().flatten().tolist() == [5, 11]
    assert (mended["other_grid"].diff(dim=1) > 0).all()


def test_padding_in_front_is_never_before_position_zero(monkeypatch):
    """A table has no row -1: `nn.Embedding` raises an IndexError."""
    museum, asked = exhibit("left_padding"), []
    sinusoids = museum.sinusoids
    monkeypatch.setattr(museum, "sinusoids", lambda positions, d: asked.append(positions) or sinusoids(positions, d))
    museum.mended(torch.ones(1, 4, 8), torch.tensor([[0, 0, 1, 1]]))
    assert asked[0].tolist() == [[0, 0, 0, 1]]


# The files as a student meets them.


def test_the_museum_has_ten_exhibits_and_the_readme_lists_each():
    assert sorted(path.stem for path in MUSEUM.glob("*.py")) == sorted(NAMES)
    assert len(NAMES) == 10
    linked = re.findall(r"\((\w+)\.py\)", (MUSEUM / "README.md").read_text(encoding="utf-8"))
    assert linked == NAMES
    assert set(WRONG) == set(RIGHT) == set(REFUSALS) == set(SEEN) == set(NAMES)
    assert all(len(cases) >= 2 for cases in WRONG.values())


@pytest.mark.parametrize("name", NAMES)
def test_broken_and_mended_have_one_signature_and_differ_in_few_lines(name):
    module = exhibit(name)
    assert inspect.signature(module.broken) == inspect.signature(module.mended)
    before, after = lines_of(name, "broken")[1:], lines_of(name, "mended")[1:]
    assert before[0].strip().startswith('"""') and before[0] == after[0]
    changes = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
    removed = sum(line.startswith("-") for line in changes)
    assert 1 <= max(removed, len(changes) - removed) <= 3


@pytest.mark.parametrize("name", NAMES)
def test_an_exhibit_is_short_and_in_order(name):
    parts = functions(name)
    assert [each for each in parts if each in PARTS] == PARTS
    assert all(each.col_offset == 0 and ast.get_docstring(each) for each in parts.values())
    assert len(lines_of(name, "broken")) < 15
    assert len(lines_of(name, "mended")) < 15
    body = parts["check"].body[1:]  # after the docstring
    assert parts["check"].end_lineno - body[0].lineno < 12
    text = (MUSEUM / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 76
    assert all(len(line) <= 80 for line in text.splitlines())
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import", "from"))}
    assert imported == {"torch"}


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_gives_symptom_hint_property_and_report(name):
    text = inspect.getdoc(exhibit(name))
    headings = re.findall(r"^(\w+): ", text, re.MULTILINE)
    assert headings == ["Symptom", "Hint", "Property", "Report"]
    report = text.split("Report: ")[1]
    assert re.match(r"[\w.-]+/[\w.-]+#\d+\b", report)
    # What is a number after # belongs to a repository that is named in full.
    assert re.findall(r"#\d+", report) == re.findall(r"(?<=\w)#\d+", report)


def test_check_and_picture_take_a_candidate_alone_and_leave_the_callers_random_numbers_alone():
    before = torch.get_rng_state()
    for name in NAMES:
        module = exhibit(name)
        for part in (module.check, module.picture):
            assert list(inspect.signature(part).parameters) == ["candidate"]
        module.check(module.mended)
        module.picture(module.mended)
    assert torch.equal(torch.get_rng_state(), before)


def test_nothing_of_the_course_is_in_the_wheel_or_can_be_imported():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"] == {"packages": ["posembed"]}
    assert not [each for each in build["sdist"]["include"] if "course" in each]
    assert not list((ROOT / "course").rglob("__init__.py"))
