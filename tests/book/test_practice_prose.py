"""What pages of practice and the glossary say of the tests and of a number."""

import ast
import re

import pytest
import torch
from prose import BOOK, said

from posembed import schemes
from posembed.similarity import properties_of_matrix

TESTS = BOOK.parent / "tests"
LISTS = {"models/reference.py", "encodings/small_schemes.py"}


def decorators(path, function):
    """What a test is run for, as text."""
    found = [node for node in ast.parse((TESTS / path).read_text(encoding="utf-8")).body if _is(node, function)]
    return " ".join(ast.unparse(each) for each in found[0].decorator_list)


def _is(node, function):
    return isinstance(node, ast.FunctionDef) and node.name == function


def test_a_new_scheme_is_named_in_two_files_of_the_tests():
    said(
        "practice/own-scheme",
        "The package's tests ask for more, such as grouped queries, compilation and `float16`; a new scheme's name in "
        "two files of the test folder, `tests/models/reference.py` and `tests/encodings/small_schemes.py`, puts it "
        "through them once `scheme` knows it.",
    )
    contributing = " ".join((BOOK.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert (
        "its name in `tests/models/reference.py` and in `tests/encodings/small_schemes.py`, after which it has to pass "
        "everything there"
    ) in contributing
    # These two name them all; that of the registry says what `schemes` gives.
    named = {}
    for folder in ("models", "encodings"):
        for path in (TESTS / folder).glob("*.py"):
            text = path.read_text(encoding="utf-8")
            named[f"{folder}/{path.name}"] = {name for name in schemes() if f'"{name}"' in text}
    assert {path for path, names in named.items() if names == set(schemes())} == LISTS | {"encodings/test_registry.py"}
    # What the sentence names runs over these lists.
    assert "CASES" in decorators("models/test_attention.py", "test_it_is_the_formula")
    assert re.search(r'"n_kv_heads": 2', (TESTS / "models/test_attention.py").read_text(encoding="utf-8"))
    assert "every_kind" in decorators("encodings/test_every_scheme.py", "test_compiled_a_scheme_does_the_same")
    formats = decorators("encodings/test_every_scheme.py", "test_embeddings_queries_and_keys_keep_their_format")
    assert "every_kind" in formats and "torch.float16" in formats


def test_locality_is_what_the_glossary_says():
    sentence = (
        "Of an attention map: the sum of a query's weights, each halved with each step of distance, averaged over the "
        "queries."
    )
    assert f"locality\n  {sentence}\n" in (BOOK / "glossary.md").read_text(encoding="utf-8")
    weights = torch.randn(7, 7, generator=torch.Generator().manual_seed(0)).double().softmax(1).tolist()
    sums = [sum(w / 2 ** abs(i - j) for j, w in enumerate(row)) for i, row in enumerate(weights)]
    assert properties_of_matrix(torch.tensor(weights, dtype=torch.float64)).locality == pytest.approx(
        sum(sums) / 7, rel=1e-12
    )


def test_ray_is_used_as_the_page_says():
    """What it does is held in tests/training: with the answers of Ray by test_grid.py, with Ray itself in
    test_interruptions.py."""
    page = " ".join((BOOK / "practice" / "many-runs.md").read_text(encoding="utf-8").split())
    assert (
        "Without `RAY_ADDRESS`, Ray is started on this machine alone, beside a cluster if there is one, and stopped "
        "after the grid; only a Ray that your program has started itself, with `ray.init`, is used and kept."
    ) in page
    held = {
        "training/test_grid.py": "test_ray_joins_the_cluster_that_is_named_and_keeps_one_that_is_up",
        "training/test_interruptions.py": "test_without_an_address_ray_is_started_beside_a_cluster_of_this_machine",
    }
    for path, function in held.items():
        assert any(_is(node, function) for node in ast.parse((TESTS / path).read_text(encoding="utf-8")).body)
