"""A page for every scheme, all of one shape; what its table says is what the package says."""

import ast
import math
import re

import pytest
import torch
from prose import BOOK, cells, prose, source

import posembed.figures.schemes as drawings
from posembed import scheme, schemes
from posembed.encodings import PositionScheme
from posembed.encodings.registry import SCHEMES, _option_names
from posembed.errors import EncodingInputError

ROOT = BOOK.parent
SECTIONS = ["Formula", "Picture", "When to use it", "In code", "Tests that hold it", "Sources"]
ROWS = [
    "acts on",
    "parameters for width 768, 12 heads, 12 layers, 512 positions",
    "shared by layers",
    "defined for",
    "positions beyond the trained ones",
    "options of `scheme`",
]
SIZES = {"d_model": 768, "n_heads": 12, "n_layers": 12, "n_positions": 512}
PLACES = {"add": "the embeddings", "rotate": "queries and keys", "bias": "the attention logits"}


def file_of(name):
    return name.replace("_", "-")


def page_of(name):
    return f"schemes/{file_of(name)}"


@pytest.fixture(params=schemes())
def name(request):
    return request.param


def section(name, heading):
    """The cells of a section, without its heading."""
    found, inside = [], False
    for cell in cells(page_of(name)):
        if cell["cell_type"] == "code":
            found += [("code", source(cell), cell)] if inside else []
            continue
        for part in re.split(r"^(?=## )", source(cell), flags=re.MULTILINE):
            inside = part.startswith(f"## {heading}\n") if part.startswith("## ") else inside
            found += [("markdown", part.removeprefix(f"## {heading}\n").strip(), cell)] if inside else []
    return found


def text(name, heading):
    return "\n\n".join(body for kind, body, _ in section(name, heading) if kind == "markdown")


def table(name):
    """The table under the title, each row by its first column."""
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", prose(page_of(name)), re.MULTILINE)
    return dict(rows[2:])


def made(name, **options):
    causal = SCHEMES[name].objectives == {"causal"} or name == "t5"
    return scheme(name, **SIZES, **{"causal": causal, **options})


def test_there_is_a_page_for_every_scheme_and_no_other():
    assert {path.stem for path in (BOOK / "schemes").glob("*.ipynb")} == {file_of(name) for name in schemes()}


def test_every_page_has_the_same_sections(name):
    assert re.findall(r"^## (.+)$", prose(page_of(name)), re.MULTILINE) == SECTIONS
    assert re.match(rf"\(scheme-{file_of(name)}\)=\n# .+\n\n[\w\[]", prose(page_of(name)))
    assert list(table(name)) == ROWS


def test_it_acts_where_the_scheme_acts(name):
    kind = SCHEMES[name]
    acts = {"add": kind.add is not PositionScheme.add, "rotate": kind.rotate is not PositionScheme.rotate}
    acts["bias"] = made(name).layer(0).biased
    places = " and ".join(PLACES[each] for each in PLACES if acts[each]) or "nothing"
    keys = torch.randn(1, 12, 3, 64)
    if acts["rotate"] and torch.equal(made(name).layer(0).rotate_keys(keys, torch.arange(3)), keys):
        places = places.replace(" and keys", "")
    assert table(name)["acts on"] == places


def test_the_parameters_are_those_of_the_scheme(name):
    *factors, total = (int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", table(name)[ROWS[1]]))
    assert total == sum(parameter.numel() for parameter in made(name).parameters())
    if "·" in table(name)[ROWS[1]]:
        assert math.prod(factors) == total


def test_layers_share_what_they_share(name):
    one = made(name)
    assert table(name)["shared by layers"].startswith("yes" if one.layer(0) is one.layer(1) else "no")
    assert ("nothing to learn" in table(name)["shared by layers"]) <= (not list(one.parameters()))


def test_the_objectives_are_those_it_can_be_made_for(name):
    possible = []
    for causal in (True, False):
        try:
            possible += ["causal" if made(name, causal=causal) and causal else "bidirectional"]
        except EncodingInputError:
            continue
    assert re.match(r"[\w ]+? models", table(name)["defined for"]).group() == f"{' and '.join(possible)} models"


def test_the_options_are_those_it_takes(name):
    row = table(name)[ROWS[-1]]
    assert re.findall(r"`(\w+)`", row) == _option_names(name)
    assert _option_names(name) or row == "none"


def test_one_picture_from_the_figures_of_schemes(name):
    (figure,) = [(code, cell) for kind, code, cell in section(name, "Picture") if kind == "code"]
    calls = [node for node in ast.walk(ast.parse(figure[0])) if isinstance(node, ast.Call)]
    drawn = [call.func.id for call in calls if isinstance(call.func, ast.Name) and hasattr(drawings, call.func.id)]
    assert len([each for each in drawn if re.search(r"_(maps?|curves)$", each)]) == 1
    assert "hide-input" in figure[1]["metadata"]["tags"]
    ((picture, *others),) = [list(output["data"]) for output in figure[1]["outputs"]]
    assert picture == "image/png" and set(others) <= {"image/svg+xml", "text/plain"}


def test_it_is_made_and_used_in_code(name):
    code = "\n".join(body for kind, body, _ in section(name, "In code") if kind == "code")
    assert re.search(rf'scheme\(\s*"{name}"', code)
    assert "MultiHeadAttention(" in code
    assert "assert " in code


def test_the_tests_it_names_exist(name):
    lines = re.findall(r"^- (.*)$", text(name, "Tests that hold it"), re.MULTILINE)
    named = [re.match(r"`(tests/[\w/]+\.py)::(test_\w+)`: \S", line) for line in lines]
    assert all(named) and len(named) >= 4
    for path, function in (match.groups() for match in named):
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert function in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)], path


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        (
            "sinusoidal",
            "encodings/test_sinusoidal_scheme.py::test_far_and_negative_positions_are_exact`: up to a million, to "
            "either side.",
            ["position=st.integers(-10 ** 6, 10 ** 6)", "abs=5e-09"],
        ),
        (
            "learnable_sinusoidal",
            "encodings/test_every_scheme.py::test_far_neighbours_add_different_rows_in_bfloat16`: at the start, "
            "neighbours near a million do not fall together.",
            [
                "kind in ADDING if kind != 'learned'",
                "build(kind, d_model=64)",
                "NEAR_A_MILLION",
                "unique(dim=0)) == 64",
            ],
        ),
        (
            "alibi",
            "encodings/test_alibi.py::test_the_slopes_are_the_authors`: for 1 to 130 heads.",
            ["parametrize('n_heads', range(1, 131))", "authors_slopes(n_heads)"],
        ),
        (
            "learned",
            "encodings/test_learned.py::test_positions_without_a_row`: refused, in one line that says why.",
            ["refused(PositionOutOfRangeError", "has no row in a learned table", "-1"],
        ),
        (
            "nopos",
            "models/test_multi_head.py::test_only_without_positions_is_it_equivariant`: without positions it is, with "
            "every other scheme that may look both ways it is not.",
            ["parametrize('name', BIDIRECTIONAL)", "'equivariant' if name == 'nopos' else 'neither'"],
        ),
        (
            "rope",
            "encodings/test_rope.py::test_it_is_exact_in_float32_also_at_a_million`: angles are taken in float64, "
            "whatever the model's format.",
            ["[torch.float32, torch.float16, torch.bfloat16]", "1000000", "rotate(x.double(), positions)"],
        ),
        (
            "t5",
            "encodings/test_t5.py::test_the_first_bucket_of_the_future_stays_empty_in_a_bidirectional_model`: bucket "
            "16 of 32; the token itself has bucket 0, the next one 17, as in T5.",
            ["16 not in", "== [0, 17]"],
        ),
        (
            "t5",
            "models/test_flex.py::test_every_hook_and_mask_is_the_formula`: the same through the hook of "
            "FlexAttention, uncompiled.",
            ["cases_of('flexed')"],
        ),
    ],
)
def test_what_a_page_says_of_a_test(name, line, words):
    assert f"- `tests/{line}" in text(name, "Tests that hold it").split("\n")
    path, function = re.match(r"([\w/.]+)::(\w+)", line).groups()
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    (found,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    assert [word for word in words if word not in ast.unparse(found)] == []


def test_flex_attention_is_not_compiled_where_the_page_of_t5_says_so():
    run = (ROOT / "tests" / "models" / "flexed.py").read_text(encoding="utf-8")
    assert "compiled=False" in run and "cuda" not in run and '"t5"' in run


def test_the_libraries_are_those_of_the_comparison(name):
    page = (BOOK / "conformance.md").read_text(encoding="utf-8")
    (compared,) = re.findall(r"^## Comparison by comparison$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    peers = set(re.findall(rf"^\| {name} \| ([\w-]+) .*: ", compared, re.MULTILINE))
    last = text(name, "Tests that hold it").rsplit("\n\n", 1)[-1]
    assert "[comparison](../conformance.md)" in last
    libraries = ["torch", "transformers", "x-transformers", "rotary-embedding-torch"]
    assert {each for each in libraries if re.search(rf"(?<![\w-]){each}(?![\w-])", last)} == peers
    assert bool(peers) != ("None of the libraries" in last)


def test_every_source_is_in_the_list(name):
    known = re.findall(r"^@\w+\{([^,]+),$", (BOOK / "references.bib").read_text(encoding="utf-8"), re.MULTILINE)
    cited = re.findall(r"\{cite:[pt]\}`([^`]+)`", prose(page_of(name)))
    assert {key.strip() for keys in cited for key in keys.split(",")} <= set(known)
    assert "{cite:" in text(name, "Sources")
    assert re.search(r"\]\(chapter-\w+\)", text(name, "Sources"))


def test_a_page_is_read_in_two_minutes(name):
    """At 300 words a minute, without the names of tests and the formulas."""
    words = re.sub(r"\$\$?[^$]+\$\$?|`tests/[^`]+`", "", prose(page_of(name)))
    assert len(words.split()) < 600


def test_three_to_six_points_say_when_to_use_it(name):
    points = text(name, "When to use it").split("\n")
    assert 3 <= len(points) <= 6
    assert all(point.startswith("- ") for point in points)


MUSEUM = {
    "sinusoidal": {1: "axis", 3: "exponent", 4: "half precision"},
    "learned": {5: "RoBERTa", 10: "grid"},
    "shaw": {6: "cache"},
    "t5": {6: "cache"},
    "alibi": {8: "power of two", 6: "cache"},
    "rope": {1: "heads", 2: "layout", 4: "half precision", 6: "cached", 8: "part", 9: "speeds"},
}


@pytest.mark.parametrize("name", MUSEUM)
def test_the_exhibits_are_those_of_the_museum(name):
    points = text(name, "When to use it")
    assert "[the museum](chapter-museum)" in points
    numbered = re.findall(r"exhibit (\d+)|\((\d+)\)", points)
    assert {int(one or other) for one, other in numbered} == set(MUSEUM[name])
    rooms = prose("encodings/museum-of-bugs")
    for number, word in MUSEUM[name].items():
        room = re.search(rf"^### Exhibit {number}: .*?(?=^##)", rooms, re.MULTILINE | re.DOTALL).group()
        assert word in room and word in points
