"""What holds for every position scheme: formats, devices, copies, compilers, batches, orders, and bad positions."""

import copy
import pickle

import pytest
import torch
from small_schemes import (
    ADDING,
    BIASING,
    D_HEAD,
    KINDS,
    ROTATING,
    SCALING,
    acts,
    assert_same,
    bias,
    build,
    tokens,
    vectors,
)
from torch import nn

from posembed import schemes

every_kind = pytest.mark.parametrize("kind", KINDS)
# A few float32 operations on numbers of up to about ten, in another order.
ORDER = {"atol": 1e-5}


def test_every_name_is_among_the_kinds():
    assert {name for name, _, _ in KINDS.values()} == set(schemes())
    assert set(ADDING) | set(ROTATING) | set(BIASING) | set(SCALING) == set(KINDS) - {"nopos"}


# Copies.


@every_kind
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))], ids=["copy", "pickle"]
)
def test_a_copy_does_the_same_and_stands_alone(kind, copied):
    made, (x, q, k), positions = build(kind), tokens(), torch.arange(7) + 2
    expected = acts(made, x, q, k, positions)  # before, so that there is something to remember
    twin = copied(made)
    assert repr(twin) == repr(made) and twin.objectives == made.objectives
    assert_same(acts(twin, x, q, k, positions), expected)
    for parameter in twin.parameters():
        parameter.data.zero_()
    assert_same(acts(made, x, q, k, positions), expected)


@every_kind
def test_all_that_is_learned_and_all_that_is_given_is_trained(kind):
    made, given = build(kind), [each.requires_grad_() for each in tokens()]
    done = acts(made, *given, torch.arange(7))
    # Not their squares, whose sum no turn changes.
    sum(result.pow(3).sum() for result in done.values()).backward()
    for each in [*made.parameters(), *given]:
        assert each.grad.isfinite().all() and each.grad.any()


# Formats.


@every_kind
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_embeddings_queries_and_keys_keep_their_format(kind, dtype):
    x, q, k = tokens(dtype=dtype)
    positions = torch.arange(7) + 5
    done = acts(build(kind), x, q, k, positions)
    assert {done[place].dtype for place in ("add", "rotate", "rotate_keys")} == {dtype}
    exact = acts(build(kind), x.double(), q.double(), k.double(), positions)
    for place in ("add", "rotate", "rotate_keys"):
        # Half a unit for the last rounding; before it float32, for numbers of up to about ten.
        before = 1e-14 if dtype == torch.float64 else 4e-6
        unit = torch.finfo(dtype).eps
        torch.testing.assert_close(done[place].double(), exact[place], rtol=unit / 2, atol=before)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal, tensor2tensor", "alibi", *ROTATING])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_cast_rounds_nothing_that_is_derived(kind, dtype):
    """And so the module does for float32 vectors what it did before, bit for bit."""
    (x, q, k), positions = tokens(), torch.arange(7) + 3_000
    assert_same(acts(build(kind).to(dtype), x, q, k, positions), acts(build(kind), x, q, k, positions))


@pytest.fixture(params=["cast", "autocast"])
def in_bfloat16(request):
    """Make a scheme part of a bfloat16 model: by a cast, or by the way the test is run."""
    with torch.autocast("cpu", torch.bfloat16, enabled=request.param == "autocast"):
        yield lambda made: made if request.param == "autocast" else made.to(torch.bfloat16)


NEAR_A_MILLION = torch.arange(999_936, 1_000_000)


@pytest.mark.parametrize("kind", [kind for kind in ADDING if kind != "learned"])  # its rows have a test of their own
def test_far_neighbours_add_different_rows_in_bfloat16(kind, in_bfloat16):
    made = in_bfloat16(build(kind, d_model=64))
    rows = made.add(torch.zeros(64, 64, dtype=torch.bfloat16), NEAR_A_MILLION)
    assert rows.dtype == torch.bfloat16 and len(rows.unique(dim=0)) == 64


@pytest.mark.parametrize("kind", ROTATING)
def test_far_neighbours_are_turned_differently_in_bfloat16(kind, in_bfloat16):
    more = {"origin": 999_000} if kind.startswith("xpos") else {}
    made = in_bfloat16(build(kind, d_model=64, n_heads=1, more=more))
    for act in (made.rotate, made.rotate_keys):
        turned = act(vectors(64).bfloat16().expand(1, 64, 64), NEAR_A_MILLION)
        assert turned.dtype == torch.bfloat16 and len(turned[0].unique(dim=0)) == 64


# Where the bias depends on the offset alone.
BY_OFFSET = [kind for kind in BIASING if not kind.startswith(("fire", "cope", "forgetting"))]


@pytest.mark.parametrize("kind", BY_OFFSET)
def test_the_bias_is_the_same_at_a_million_in_bfloat16(kind, in_bfloat16):
    made = in_bfloat16(build(kind))
    q, k = vectors(1, 2, 1, D_HEAD).bfloat16(), vectors(1, 2, 9, D_HEAD).bfloat16()
    near, far = (bias(made, q, k, at + torch.tensor([8]), at + torch.arange(9)) for at in (992, 999_992))
    assert torch.equal(near, far)
    if kind not in ("shaw, clipped soon", "t5, bidirectional"):  # they put some of these offsets together
        # Two heads, because in bfloat16 two products of a query may agree by chance.
        assert far.flatten(0, -2).unique(dim=1).shape[1] == 9


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith(("shaw", "cope"))])
def test_autocast_changes_nothing(kind):
    """But for Shaw's and CoPE's product of queries with vectors, which is as exact as that of queries and keys."""
    made, (x, q, k), positions = build(kind), tokens(), torch.arange(7) + 40
    expected = acts(made, x, q, k, positions)
    with torch.autocast("cpu", torch.bfloat16):
        cast = acts(made, x, q, k, positions)
    assert_same(cast, expected)


# Other defaults.


@every_kind
@pytest.mark.parametrize("moved", [False, True], ids=["made there", "moved there"])
def test_a_scheme_without_memory_gets_its_derived_numbers_back(kind, moved):
    if moved:
        made = build(kind).to("meta")
    else:
        with torch.device("meta"):
            made = build(kind)
    assert {tensor.device.type for tensor in [*made.parameters(), *made.buffers()]} <= {"meta"}
    made.to_empty(device="cpu")
    made.load_state_dict(build(kind).state_dict())
    assert_same(acts(made, *tokens(), torch.arange(7)), acts(build(kind), *tokens(), torch.arange(7)))


# Compilers.


class Everything(nn.Module):
    """All that a scheme does, as one module."""

    def __init__(self, made):
        super().__init__()
        self.made = made

    def forward(self, x, q, k, positions):
        return acts(self.made, x, q, k, positions)


# Without the hook of jaxtyping, whose wrappers compilers cannot look into.
as_a_user = pytest.mark.bad_input
NEAR, ELSEWHERE = torch.arange(8), torch.tensor([0, 5, 60, 2, 2, 33, 1, 7])


# One graph for any length: nothing is asked of a tensor's values.
SEQ = torch.export.Dim("seq", min=2, max=64)
OF_ANY_LENGTH = ({1: SEQ}, {2: SEQ}, {2: SEQ}, {0: SEQ})
COMPILERS = {
    "compile": lambda module, given: torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True),
    "export": lambda module, given: torch.export.export(module, given, dynamic_shapes=OF_ANY_LENGTH).module(),
}


@as_a_user
@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("compiler", COMPILERS)
def test_compiled_a_scheme_does_the_same(kind, compiler):
    torch._dynamo.reset()
    module, vectors_given = Everything(build(kind)), tokens(8)
    compiled = COMPILERS[compiler](module, (*vectors_given, NEAR))
    # Other positions must not meet those that were compiled, nor the tokens of a longer text their number.
    longer = (*tokens(20), torch.arange(20) + 3)
    for given in ((*vectors_given, NEAR), (*vectors_given, ELSEWHERE), longer):
        assert_same(compiled(*given), module(*given), **ORDER)


# Shapes.


@every_kind
def test_no_position(kind):
    x, q, k = tokens(0)
    none, positions = torch.arange(0), torch.arange(5)
    done = acts(build(kind), x, q, k, none)
    wide = (*q.shape[:-1], q.shape[-1] * build(kind).widens)
    assert (done["add"].shape, done["rotate"].shape, done["rotate_keys"].shape) == (x.shape, wide, wide)
    if "bias" in done:
        assert done["bias"].shape[-3:] == (2, 0, 0)
        keys = vectors(2, 2, 5, D_HEAD)
        assert bias(build(kind), q, keys, none, positions).shape[-3:] == (2, 0, 5)


@every_kind
def test_batches_of_positions_are_their_rows(kind):
    made, (x, q, k) = build(kind), tokens()
    positions = torch.stack([torch.arange(7), torch.tensor([9, 2, 60, 3, 3, 0, 11])])
    together = acts(made, x, q, k, positions)
    for row in range(2):
        here = slice(row, row + 1)
        alone = acts(made, x[here], q[here], k[here], positions[row])
        one = acts(made, x[here], q[here], k[here], positions[here])
        for place, result in together.items():
            # Without a batch of positions a bias that knows only of them has no batch.
            expected = alone[place] if alone[place].ndim == result.ndim else alone[place][None]
            torch.testing.assert_close(result[here], expected, rtol=0, atol=1e-6)
            torch.testing.assert_close(result[here], one[place], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ADDING + ROTATING)
@pytest.mark.parametrize("axes", [(1,), (2, 2), (3, 2)], ids=str)
def test_batches_of_positions_are_their_rows_also_with_more_axes_or_none(kind, axes):
    made = build(kind)
    # Keys, for queries have as many heads as some schemes were made for.
    act, width = (made.add, 16) if kind in ADDING else (made.rotate_keys, D_HEAD)
    x, positions = vectors(*axes, 5, width), torch.arange(5) + torch.arange(axes[0])[:, None] * 7
    together = act(x, positions)
    for row in range(axes[0]):
        torch.testing.assert_close(together[row], act(x[row], positions[row]), rtol=0, atol=1e-6)  # in other steps


# But for those that go by the order of the keys.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("cope", "forgetting")])
def test_tokens_that_take_their_positions_along_may_stand_in_any_order(kind):
    made, (x, q, k), positions = build(kind), tokens(), torch.tensor([0, 1, 2, 30, 31, 7, 50])
    order = torch.tensor([4, 0, 6, 2, 1, 5, 3])
    straight = acts(made, x, q, k, positions)
    mixed = acts(made, x[:, order], q[:, :, order], k[:, :, order], positions[order])
    expected = {place: result[..., order, :] for place, result in straight.items()}
    if "bias" in expected:
        expected["bias"] = expected["bias"][..., order]
    assert_same(mixed, expected, atol=1e-6)


# Integers.

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64]


@every_kind
def test_positions_of_every_integer_format(kind):
    positions = torch.tensor([3, 60, 0, 2, 2, 33, 1])
    expected = acts(build(kind), *tokens(), positions)
    for dtype in INTEGERS:
        assert_same(acts(build(kind), *tokens(), positions.to(dtype)), expected)
