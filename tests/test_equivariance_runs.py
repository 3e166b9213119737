"""How the function is called: what it may do to the check, what the check may do to it, and what it is given."""

import contextlib
import copy
import itertools
from collections import UserDict
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from refusals import refused
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from posembed import check_equivariance
from posembed.equivariance import Counterexample
from posembed.errors import NonDeterministicError


def tokens(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


X = tokens(2, 5, 8)


class Recorder:
    """The identity, which keeps what it was given."""

    def __init__(self):
        self.seen = []

    def __call__(self, x):
        # Copies of one token ask whether any other matters; they are no order of x.
        if not torch.equal(x, x.narrow(1, 0, 1).expand(x.shape)):
            self.seen.append(x.clone())
        return x

    def others(self, x):
        return [seen for seen in self.seen if not torch.equal(seen, x)]


# What the function may do to the check.


@pytest.mark.parametrize(("fn", "verdict"), [(torch.relu_, "equivariant"), (lambda x: x.cumsum_(1), "neither")])
def test_a_function_may_write_into_its_input(fn, verdict):
    x = X.clone()
    assert check_equivariance(fn, x).verdict == verdict
    assert torch.equal(x, X)


@pytest.mark.parametrize(
    ("inner", "verdict"),
    [(torch.relu, "equivariant"), (lambda x: x.cumsum(dim=1), "neither")],
    ids=["relu", "cumsum"],
)
# In double precision nothing is converted, and so nothing copied by the way.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_function_may_return_the_same_buffer_each_time(inner, verdict, dtype):
    """Compared by reference, a buffer always equals itself and every function would be invariant."""
    x = X.to(dtype)
    buffer = torch.empty_like(x)
    assert check_equivariance(lambda x: buffer.copy_(inner(x)), x).verdict == verdict


def counting(fn):
    """A function of x and of the number of the call."""
    calls = itertools.count(1)
    return lambda x: fn(x, next(calls))


STATES = {
    "a counter": lambda: counting(lambda x, call: x + call),
    "a counter from the third call on": lambda: counting(lambda x, call: x + call * (call > 2)),
    "a slow drift": lambda: counting(lambda x, call: x + 1e-3 * call),
    "a drift from the third call on": lambda: counting(lambda x, call: x + 1e-3 * max(0, call - 2)),
    "dropout": lambda: lambda x: F.dropout(x, 0.5),
    "noise": lambda: lambda x: x + 0.01 * torch.randn_like(x),
    "another shape each time": lambda: counting(lambda x, call: x.repeat(1, 1, call)),
    "dropout in a module hidden in a lambda": lambda: lambda x: nn.Dropout(0.5)(x),
}


@pytest.mark.parametrize("name", STATES)
def test_a_function_that_is_not_one_is_an_error_and_never_a_verdict(name):
    refused(NonDeterministicError, check_equivariance, STATES[name](), X)


def test_a_shape_that_depends_on_the_order_is_an_error():
    assert "must not depend on the order" in refused(
        NonDeterministicError, check_equivariance, lambda x: x[..., : 3 if torch.equal(x, X) else 4], X
    )


# What the check may do to the function.


class Net(nn.Module):
    """Submodules in different modes, and what the forward pass saw of them."""

    def __init__(self, fails=False):
        super().__init__()
        self.first, self.second = nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 8))
        self.fails, self.modes, self.gradients = fails, set(), set()

    def forward(self, x):
        self.modes.add(tuple(module.training for module in self.modules()))
        self.gradients.add(torch.is_grad_enabled())
        if self.fails:
            raise RuntimeError("mine")
        return self.second(self.first(x))

    def encode(self, x):
        return self(x)


def modes(module):
    return {name: part.training for name, part in module.named_modules()}


MODES = {
    "all training": lambda net: net.train(),
    "all in eval mode": lambda net: net.eval(),
    "one part frozen": lambda net: net.train().second.eval(),
    "only a leaf training": lambda net: net.eval().second[0].train(),
}


@pytest.mark.parametrize("call", ["module", "bound method"])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", MODES)
def test_dropout_is_off_in_the_check_and_every_submodule_gets_its_mode_back(name, fails, call):
    net = Net(fails)
    MODES[name](net)
    before = modes(net)
    with pytest.raises(RuntimeError, match="mine") if fails else contextlib.nullcontext():
        assert check_equivariance(net if call == "module" else net.encode, X).verdict == "equivariant"
    assert net.modes == {(False,) * len(before)} and net.gradients == {False}
    assert modes(net) == before
    assert torch.is_grad_enabled()


# Which tensor is meant.


@dataclass
class Outputs:
    scores: Tensor
    total: Tensor


NAMED = {
    "dict": lambda x: {"scores": x.relu(), "total": x.sum(dim=1)},
    "mapping": lambda x: UserDict(scores=x.relu(), total=x.sum(dim=1)),
    "dataclass": lambda x: Outputs(x.relu(), x.sum(dim=1)),
    "namespace": lambda x: SimpleNamespace(scores=x.relu(), total=x.sum(dim=1)),
}


@pytest.mark.parametrize("kind", NAMED)
def test_an_output_chosen_by_name(kind):
    assert check_equivariance(NAMED[kind], X, output="scores").verdict == "equivariant"
    assert check_equivariance(NAMED[kind], X, output="total").verdict == "invariant"


@pytest.mark.parametrize("kind", [tuple, list])
def test_an_output_chosen_by_index(kind):
    fn = lambda x: kind((x.relu(), x.sum(dim=1)))
    verdicts = {k: check_equivariance(fn, X, output=k).verdict for k in (0, 1, -1)}
    assert verdicts == {0: "equivariant", 1: "invariant", -1: "invariant"}


@pytest.mark.parametrize("kind", [dict, BaseModelOutput])
def test_a_models_usual_output_needs_no_name(kind):
    assert check_equivariance(lambda x: kind(last_hidden_state=x.relu()), X).verdict == "equivariant"
    states = lambda x: kind(last_hidden_state=x.relu(), attentions=x.cumsum(dim=1))
    assert check_equivariance(states, X).verdict == "equivariant"
    assert check_equivariance(states, X, output="attentions").verdict == "neither"


# The orders that are tried.


@pytest.mark.parametrize(("n_tokens", "n_orders"), [(2, 1), (3, 5)])
@pytest.mark.parametrize("n_permutations", [5, 8, 1000])
def test_a_short_sequence_has_each_other_order_tried_once(n_tokens, n_orders, n_permutations):
    x, fn = tokens(1, n_tokens, 2), Recorder()
    report = check_equivariance(fn, x, n_permutations=n_permutations)
    tried = [tuple(seen.flatten().tolist()) for seen in fn.others(x)]
    assert report.n_permutations == len(tried) == len(set(tried)) == n_orders


@pytest.mark.parametrize(
    "ids", [[0, 1], [0, 0, 1], [0, 0, 0, 1], [0, 1, 0, 1, 0], [0] * 9 + [1], list(range(12)), [0] * 40 + [1]], ids=str
)
@pytest.mark.parametrize("n_permutations", [1, 3, 8])
def test_no_order_that_leaves_x_as_it_is_counts_as_tried(ids, n_permutations):
    x = torch.tensor([ids])
    for seed in range(10):
        fn = Recorder()
        report = check_equivariance(fn, x, n_permutations=n_permutations, seed=seed)
        # Of three tokens all five orders are tried.
        assert 1 <= report.n_permutations == len(fn.others(x)) <= max(n_permutations, 5 if len(ids) == 3 else 1)
        assert all(sorted(seen.flatten().tolist()) == sorted(ids) for seen in fn.seen)


def test_the_same_order_for_every_row_and_whole_tokens_are_moved():
    x, fn = tokens(3, 6, 4), Recorder()
    check_equivariance(fn, x)
    for seen in fn.seen:
        order = [int((x[0] == token).all(dim=-1).nonzero()) for token in seen[0]]
        assert torch.equal(seen, x[:, order])


def test_the_orders_follow_the_seed():
    x = tokens(1, 12, 4)
    runs = {}
    for seed in (0, 1, 2):
        recorders = [Recorder(), Recorder()]
        reports = [check_equivariance(fn, x, seed=seed) for fn in recorders]
        assert reports[0] == reports[1]
        assert all(torch.equal(a, b) for a, b in zip(recorders[0].seen, recorders[1].seen, strict=True))
        runs[seed] = torch.cat(recorders[0].seen)
    assert not torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[1], runs[2])


# What is reported.


def test_both_errors_are_reported():
    report = check_equivariance(torch.relu, X)
    assert (report.max_error, report.equivariance_error) == (0.0, 0.0)
    assert report.invariance_error > 0.1
    pooled = check_equivariance(lambda x: x.amax(dim=1), X)
    assert (pooled.max_error, pooled.equivariance_error, pooled.invariance_error) == (0.0, None, 0.0)
    ordered = check_equivariance(lambda x: x.cumsum(dim=1), X)
    assert ordered.max_error == ordered.equivariance_error > ordered.tolerance
    first = check_equivariance(lambda x: x[:, 0], X)
    assert first.equivariance_error is None
    assert first.max_error == first.invariance_error > first.tolerance


def test_the_worst_entry_is_named():
    """Two tokens, one swap: 1 and 5 become 5 and 1, and the second place counts double."""
    report = check_equivariance(lambda x: x * torch.tensor([1.0, 2.0])[:, None], torch.tensor([[[1.0], [5.0]]]))
    assert report.counterexample == Counterexample((1, 0), (0, 0, 0), 10.0, 5.0)
    assert report.max_error == 0.5
    assert str(report) == (
        "neither: error 5.0e-01 of the output's scale over 1 permutations; "
        "permutation [1, 0]: output[0, 0, 0] is 5, expected 10, 5 apart; "
        "what belongs to tokens, such as a mask, stays where it is if fixed in the function; give it in along="
    )


def test_what_a_function_names_is_in_eval_mode_too_and_learns_nothing():
    """Batch norm in training mode would take the tokens of the check into its statistics, for good."""
    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Flatten(0, 1), nn.BatchNorm1d(8)).train()
    before = copy.deepcopy(net.state_dict())
    report = check_equivariance(lambda x: net(x).unflatten(0, (2, -1)), X)
    assert report.verdict == "equivariant" and all(modes(net).values())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_the_tolerance_is_that_of_a_model_that_a_function_names():
    net = nn.TransformerEncoderLayer(8, 2, batch_first=True, device="cpu").bfloat16()
    assert check_equivariance(lambda x: net(x.bfloat16()).float(), X).tolerance == 6e-2
