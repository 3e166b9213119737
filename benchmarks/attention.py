"""Attention with positions: the bare function against PyTorch's, a whole layer against those of other libraries."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from torch import Tensor

from . import functions, layers
from .case import Candidate, Case, with_gradient, without_gradient
from .goals import no_more_memory, no_slower
from .setting import Function, Layer, Setting

LENGTH, QUICK_LENGTH = 2048, 40
# Sums of at most 2048 products in float32. Peers that take the angles of rope in float32 are as far off as those.
FLOAT32, ANGLES = 2e-5, 1e-3
# The gradient of a number of a table adds up those of all its pairs.
SUMMED = 2e-4

FUNCTIONS = [*itertools.product(("alibi", "t5", "shaw"), (True, False))]
LAYERS = [("rope", True), *FUNCTIONS]


def cases(quick: bool) -> list[Case]:
    """The function and the layer with each scheme, forward alone and with the backward pass."""
    length = QUICK_LENGTH if quick else LENGTH
    n_heads, d_head = (2, 8) if quick else (8, 64)
    made = []
    for what, pairs in (("layer", LAYERS), ("function", FUNCTIONS)):
        for (scheme, causal), training in itertools.product(pairs, (False, True)):
            setting = Setting(scheme, causal, training, length, n_heads, d_head, quick)
            made.append(_layer_case(setting) if what == "layer" else _function_case(setting))
    return made


def _name(what: str, setting: Setting) -> str:
    objective = "causal" if setting.causal else "bidirectional"
    return f"{what}, {setting.scheme}, {objective}, {'forward+backward' if setting.training else 'forward'}"


def _function_case(setting: Setting) -> Case:
    return Case(
        "attention",
        _name("function", setting),
        partial(Function.drawn, setting),
        [_function(setting, *each) for each in functions.candidates(setting)],
        lambda given: _function_reference(setting, given),
        SUMMED if setting.training else FLOAT32,
        [no_slower(), no_more_memory()],
    )


def _layer_case(setting: Setting) -> Case:
    return Case(
        "attention",
        _name("layer", setting),
        partial(Layer.drawn, setting),
        [_layer(setting, *each) for each in layers.candidates(setting)],
        lambda given: _layer_reference(setting, given),
        ANGLES if setting.scheme == "rope" else FLOAT32,
        [no_slower(), no_more_memory()],
    )


def _function(setting: Setting, name: str, build: Callable[..., Callable[[], Tensor]], note: str) -> Candidate:
    def make(given: Function) -> Callable[[], Any]:
        if not setting.training:
            return without_gradient(build(setting, given))
        given = given.wanting_gradients()
        return with_gradient(build(setting, given), given.wanted, given.upstream)

    return Candidate(name, make, note)


def _layer(setting: Setting, name: str, build: Callable[..., tuple[Callable, list]], note: str) -> Candidate:
    def make(given: Layer) -> Callable[[], Any]:
        x = given.x.detach().requires_grad_(setting.training)
        call, parameters = build(setting, given)
        if not setting.training:
            return without_gradient(lambda: call(x))
        return with_gradient(lambda: call(x), [x, *parameters], given.upstream)

    # The output and the gradient of the input; parameters have other forms in each library.
    return Candidate(name, make, note, (lambda found: found[:2]) if setting.training else (lambda found: found))


def _function_reference(setting: Setting, given: Function) -> Any:
    answers = _function_answers(Setting(setting.scheme, setting.causal, True, *setting.sizes))
    return answers if setting.training else answers[0]


@cache
def _function_answers(setting: Setting) -> tuple[Tensor, ...]:
    """In float64: the output and the gradients of all that is given; the same for both cases of a setting."""
    given = Function.drawn(setting).double().wanting_gradients()
    return with_gradient(lambda: functions.formula(setting, given), given.wanted, given.upstream)()


def _layer_reference(setting: Setting, given: Layer) -> Any:
    answers = _layer_answers(Setting(setting.scheme, setting.causal, True, *setting.sizes))
    return answers if setting.training else answers[0]


@cache
def _layer_answers(setting: Setting) -> tuple[Tensor, ...]:
    given = Layer.drawn(setting).double()
    x = given.x.requires_grad_()
    return with_gradient(lambda: layers.formula(setting, given, x), [x], given.upstream)()
