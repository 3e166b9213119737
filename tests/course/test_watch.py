"""What a question forbids is seen, however it is called; what it does not forbid costs nothing."""

import contextlib
import functools
import itertools
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tool import TOOLS, load
from torch import nn

watch = load("watch", TOOLS.parent / "course" / "grading")
WITHOUT = {
    question["name"]: question["without"]
    for question in load("course").questions_of(TOOLS.parent / "course" / "order-and-lookup")
}
X, IDS = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)), torch.tensor([[1, 0], [2, 2]])


def used(question, answer):
    with watch.Watch(WITHOUT[question]) as seen:
        answer()
    return seen.used


def gradient():
    table = torch.zeros(5, 8, requires_grad=True)
    return torch.autograd.grad((table[IDS] ** 2).sum(), table)


def by_engine():
    table = torch.zeros(5, 8, requires_grad=True)
    out = table[IDS]
    engine = torch.autograd.graph._engine_run_backward
    return engine((out,), (torch.ones_like(out),), False, False, (table,), False, accumulate_grad=False)


def goes_round():
    before = sys.getprofile()
    sys.setprofile(None)
    F.one_hot(IDS)
    sys.setprofile(before)


def in_a_thread(answer, *given):
    with ThreadPoolExecutor(1) as pool:
        return list(pool.map(answer, *given))


FORBIDDEN = {
    "sdpa": ("q4", lambda: F.scaled_dot_product_attention(X, X, X), "scaled_dot_product_attention()"),
    "sdpa by map": (
        "q4",
        lambda: list(map(F.scaled_dot_product_attention, [X], [X], [X])),
        "scaled_dot_product_attention()",
    ),
    "sdpa by its inner name": (
        "q4",
        lambda: torch.ops.aten.scaled_dot_product_attention(X, X, X),
        "scaled_dot_product_attention()",
    ),
    "sdpa by its kernel": (
        "q4",
        lambda: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[X[:, None]] * 3),
        "_scaled_dot_product_flash_attention_for_cpu()",
    ),
    "a layer": ("q4", lambda: nn.MultiheadAttention(8, 1)(X, X, X), "multi_head_attention_forward()"),
    "one_hot by another name": ("q5", functools.partial(F.one_hot, IDS), "one_hot()"),
    "one_hot in a thread": ("q5", lambda: in_a_thread(lambda ids: F.one_hot(ids), [IDS]), "one_hot()"),
    "without the watch": ("q5", goes_round, "setprofile()"),
    "autograd": ("q6", gradient, "grad()"),
    "the gradient of a function": ("q6", lambda: torch.func.grad(lambda x: x.sum())(X), "grad()"),
    "autograd by its engine": ("q6", by_engine, "_engine_run_backward()"),
    "an operator's gradient": (
        "q6",
        lambda: torch.ops.aten.embedding_backward(X[0], IDS.new_zeros(5), 5, -1, False, False),
        "embedding_backward()",
    ),
    "an embedding": ("q6", lambda: nn.Embedding(5, 8)(IDS), "torch.nn.modules.sparse"),
}
ALLOWED = {
    "a print": lambda: str(X),
    "no gradients": lambda: torch.no_grad()(lambda: X @ X.mT)(),
    "einsum": lambda: torch.einsum("btd,bsd->bts", X, X),
    "softmax": lambda: (F.softmax(X, dim=-1), X.softmax(-1)),
    "a softmax as a layer": lambda: nn.Softmax(dim=-1)(X),
    "scatter": lambda: torch.zeros(5).index_put((IDS,), torch.ones(2, 2), accumulate=True),
    "vmap": lambda: torch.vmap(lambda x: x @ x.mT)(X),
    "threads": lambda: in_a_thread(torch.matmul, X, X.mT),
    "a copy": lambda: X.clone().detach(),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_is_forbidden_is_seen(what):
    question, answer, name = FORBIDDEN[what]
    assert name in used(question, answer)


@pytest.mark.parametrize("what", ALLOWED)
def test_what_is_allowed_costs_nothing(what):
    assert [used(question, ALLOWED[what]) for question in ("q2", "q4", "q5", "q6")] == [[]] * 4


def test_what_is_compiled_runs_as_it_is_written():
    sandbox = load("sandbox", TOOLS.parent / "course" / "grading")
    library = types.SimpleNamespace(jit=types.SimpleNamespace())
    sandbox.run_as_written(library)
    assert library.jit.trace(goes_round, (X,)) is library.jit.script(goes_round) is goes_round
    assert library.compile(goes_round) is library.compile(mode="default")(goes_round) is goes_round


def test_what_is_computed_when_an_answer_is_read_is_seen_too():
    class Later:
        def tolist(self):
            return F.one_hot(IDS).tolist()

    sandbox, wire = (load(name, TOOLS.parent / "course" / "grading") for name in ("sandbox", "wire"))
    request = {"call": "f", "args": wire.encode(()), "kwargs": wire.encode({}), "without": ["one_hot()"], "seconds": 60}
    assert sandbox.called({"f": Later}, request)["used"] == ["one_hot()"]


def test_pytorch_is_seen_where_numpy_alone_is_asked_and_an_array_that_is_sent_is_none_of_it():
    wire, x = load("wire", TOOLS.parent / "course" / "grading"), np.arange(6.0).reshape(2, 3)
    for answer, seen in ((lambda: torch.linalg.pinv(torch.tensor(x)), ["torch"]), (lambda: np.linalg.pinv(x).T, [])):
        with watch.Watch(["torch"]) as noted:
            sent = wire.encode(np.asarray(answer()))
        assert noted.used == seen
        assert wire.decode(sent, None) == pytest.approx(np.linalg.pinv(x) if seen else np.linalg.pinv(x).T)


@pytest.mark.parametrize("kind", ["quint8", "complex64", "float8_e5m2"])
def test_numbers_that_are_no_real_ones_are_refused_before_anything_is_computed_with_them(kind):
    wire = load("wire", TOOLS.parent / "course" / "grading")
    with pytest.raises(TypeError, match=f"numbers of the type {kind} cannot be graded"):
        wire.decode({"tensor": "AAAAAAAAAAA=", "dtype": kind, "shape": [8 // getattr(torch, kind).itemsize]}, None)


def test_true_and_false_in_turn_seldom_tell_two_functions_apart():
    checking, right = load("checking", TOOLS.parent / "course" / "grading"), 0
    candidates = {name: f"def candidate(x): return {name}" for name in ("yes", "no")}
    for n in range(200):
        turns = itertools.cycle([True, False])
        with contextlib.suppress(AssertionError):
            said = checking.said_of(lambda _, turns=turns: next(turns), candidates, {"__drawn__": str(n)})
            right += said == {"yes": True, "no": False}
    assert right < 20


def test_an_expression_that_is_a_number_is_taken_as_one():
    wire, sympy = load("wire", TOOLS.parent / "course" / "grading"), pytest.importorskip("sympy")
    assert wire.decode(wire.encode(2 * sympy.pi * sympy.sqrt(2)), None) == pytest.approx(8.885765876)
    assert wire.decode(wire.encode({"x": sympy.Rational(5, 4)}), None) == {"x": 1.25}
    with pytest.raises(TypeError):
        wire.encode(2 * sympy.Symbol("x"))


def test_names_in_an_array_and_entries_that_no_question_asks_for_cost_nothing():
    wire = load("wire", TOOLS.parent / "course" / "grading")

    def sent(value):
        return wire.decode(wire.encode(value), None)

    assert sent(np.array(["nopos", "rope"])) == ["nopos", "rope"]
    assert sent({"p": 0.25, "found": object(), "each": [1, object()]}) == {"p": 0.25, "found": None, "each": None}
    with pytest.raises(TypeError, match="a value of the type object cannot be graded"):
        sent(object())
