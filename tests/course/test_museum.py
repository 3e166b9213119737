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
    "axis_order": "two tokens of one text get the same vector: is the table indexed by the batch axis? "
    "Take one row for each of the x.shape[1] places",
    "odd_width": "width 3 crashes: keep d_model // 2 of the cosines",
    "wrong_exponent": "the squares of columns 2i and 2i + 1 do not add up to 1: does each column have an exponent of "
    "its own? Use 2 * (column // 2) for both",
    "half_precision_angles": "rows 256 and 257 are identical: are positions or angles in torch.bfloat16? "
    "Round cosine and sine instead",
    "layout_mix_up": "a product changes by 0.85 when query and key move together: do the angles and the turned columns "
    "pair in different ways? Let both pair 2i with 2i + 1, or both i with i + d / 2",
    "cache_offset": "outputs change by 1.58 when a text comes in parts: do positions start from 0 again? "
    "Start them from the number of tokens in the cache",
    "roberta_offset": "the first token reads row 0, not 2: count from padding_idx + 1",
    "alibi_heads": "the first 8 of 12 slopes are not those of 8 heads: is one series stretched over all heads? "
    "Begin with those",
    "sdpa_alignment": "the last 1 of 6 queries, asked alone, are off by 1.26: is query 0 held against key 0? "
    "Align the last query with the last key",
    "left_padding": "padding changes the outputs of a text by up to 2.42: do positions count the padding? "
    "Count the real tokens alone, from 0",
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


def test_a_crash_of_another_kind_is_not_hidden():
    """A refusal of odd widths that a library words itself is its own message to the user."""

    def refusing(n_positions, d_model):
        raise ValueError("d_model must be even")

    with pytest.raises(ValueError, match="must be even"):
        exhibit("odd_width").check(refusing)


# Pictures: what a reader sees in the broken one, and not in the mended one.


def same_along_diagonals(image):
    return bool(torch.allclose(image[1:, 1:], image[:-1, :-1], atol=1e-4))


SEEN = {
    # Vertical stripes: all places have the same row.
    "axis_order": lambda image: bool((image == image[:1]).all()),
    # Every other row is empty.
    "odd_width": lambda image: image.isnan().all(1).tolist() == [False, True] * 6,
    # The right half stands still: no column of it moves by a tenth.
    "wrong_exponent": lambda image: float((image.amax(0) - image.amin(0))[32:].max()) < 0.1,
    # Steps: at most every second row differs from the one before.
    "half_precision_angles": lambda image: int((image[1:] != image[:-1]).any(1).sum()) <= 32,
    # No stripes along the diagonals.
    "layout_mix_up": lambda image: not same_along_diagonals(image),
    # The first four tokens are right, each later one is wrong.
    "cache_offset": lambda image: bool((image[:4] < 1e-5).all() and (image[4:].amax(1) > 0.5).all()),
    # The diagonal begins in the corner.
    "roberta_offset": lambda image: image.argmax(1).tolist() == list(range(8)),
    # Slopes fan out: the slope of head 1 is another in every row.
    "alibi_heads": lambda image: len(image[:, 0].unique()) == 16,
    # A triangle in the left corner.
    "sdpa_alignment": lambda image: (image > 0).sum(1).tolist() == [1, 2, 3, 4],
    # Only without padding in front is nothing changed.
    "left_padding": lambda image: (image.amax(1) > 0.5).tolist() == [False] + [True] * 8,
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
    assert len(mended["axis_order"].unique(dim=0)) == 32
    widths = torch.arange(2, 14)
    assert torch.equal((~mended["odd_width"].isnan()).sum(1), widths)
    assert (mended["half_precision_angles"][1:] != mended["half_precision_angles"][:-1]).any(1).all()
    assert same_along_diagonals(mended["layout_mix_up"])
    assert mended["cache_offset"].max() < 1e-5
    assert mended["roberta_offset"].argmax(1).tolist() == [2, 3, 4, 5, 6, 7, 1, 1]
    for power in (1, 2, 4, 8):  # heads keep their slope up to the next power of two
        block = mended["alibi_heads"][power - 1 : 2 * power - 1, :power]
        assert torch.equal(block, block[:1].expand_as(block))
    assert (mended["sdpa_alignment"] > 0).sum(1).tolist() == [9, 10, 11, 12]
    assert mended["left_padding"].max() < 1e-5


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
    assert len(text.splitlines()) <= 62
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
