"""What holds for every position scheme: formats, devices, copies, compilers, batches, orders, and bad positions."""

import copy
import io
import pickle
import shutil

import pytest
import torch
from small_schemes import (
    ADDING,
    BIASING,
    D_HEAD,
    KINDS,
    N_POSITIONS,
    ROTATING,
    acts,
    assert_same,
    bias,
    build,
    tokens,
    vectors,
)
from torch import nn

from posembed import scheme, schemes
from posembed.encodings import RoPE
from posembed.errors import EncodingInputError

every_kind = pytest.mark.parametrize("kind", KINDS)
# A few float32 operations on numbers of up to about ten, in another order.
ORDER = {"atol": 1e-5}


def test_every_name_is_among_the_kinds():
    assert {name for name, _, _ in KINDS.values()} == set(schemes())
    assert set(ADDING) | set(ROTATING) | set(BIASING) == set(KINDS) - {"nopos"}


# Copies.


def saved_and_loaded(made):
    file = io.BytesIO()
    torch.save(made, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@every_kind
@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made)), saved_and_loaded],
    ids=["copy", "pickle", "save"],
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
def test_a_state_is_all_that_a_scheme_has_learned(kind):
    made, other, positions = build(kind, seed=1), build(kind, seed=2), torch.arange(7)
    other.load_state_dict(made.state_dict(), strict=True)
    assert_same(acts(other, *tokens(), positions), acts(made, *tokens(), positions))
    assert set(made.state_dict()) == {name for name, _ in made.named_parameters()}


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


@pytest.mark.parametrize("kind", ADDING + ROTATING + ["kerple", "fire", "cope"])
def test_a_float64_model_computes_in_float64(kind):
    given, positions = tokens(dtype=torch.float64), torch.arange(7) + 2
    made = build(kind).double()
    for parameter in made.parameters():  # which were float32 numbers
        parameter.data += vectors(parameter.numel(), dtype=torch.float64).view_as(parameter) * 1e-3
    done = acts(made, *given, positions)
    for place, before in zip(("add", "rotate", "rotate_keys", "bias"), (*given, None), strict=True):
        result = done.get(place)
        if result is not None and result is not before:
            assert result.dtype == torch.float64
            # Rounded to float32 anywhere, a number would be less than half a unit away from one of float32's.
            changed = result if before is None else (result - before)[result != before]
            assert (changed.float().double() != changed).double().mean() > 0.7


NEAR_A_MILLION = torch.arange(999_936, 1_000_000)


@pytest.mark.parametrize("kind", [kind for kind in ADDING if kind != "learned"])  # its rows have a test of their own
@pytest.mark.parametrize("autocast", [False, True], ids=["cast", "autocast"])
def test_far_neighbours_add_different_rows_in_bfloat16(kind, autocast):
    made = build(kind, d_model=64)
    made = made if autocast else made.to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        rows = made.add(torch.zeros(64, 64, dtype=torch.bfloat16), NEAR_A_MILLION)
    assert rows.dtype == torch.bfloat16 and len(rows.unique(dim=0)) == 64


@pytest.mark.parametrize("kind", ROTATING)
@pytest.mark.parametrize("autocast", [False, True], ids=["cast", "autocast"])
def test_far_neighbours_are_turned_differently_in_bfloat16(kind, autocast):
    more = {"origin": 999_000} if kind.startswith("xpos") else {}
    made = build(kind, d_model=64, n_heads=1, more=more)
    made = made if autocast else made.to(torch.bfloat16)
    token = vectors(64).bfloat16().expand(64, 64)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        for act in (made.rotate, made.rotate_keys):
            turned = act(token, NEAR_A_MILLION)
            assert turned.dtype == torch.bfloat16 and len(turned.unique(dim=0)) == 64


# Where the bias depends on the offset alone.
BY_OFFSET = [kind for kind in BIASING if not kind.startswith(("fire", "cope"))]


@pytest.mark.parametrize("kind", BY_OFFSET)
@pytest.mark.parametrize("autocast", [False, True], ids=["cast", "autocast"])
def test_the_bias_is_the_same_at_a_million_in_bfloat16(kind, autocast):
    made = build(kind)
    made = made if autocast else made.to(torch.bfloat16)
    q, k = vectors(1, 2, 1, D_HEAD).bfloat16(), vectors(1, 2, 9, D_HEAD).bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        near, far = (bias(made, q, k, at + torch.tensor([8]), at + torch.arange(9)) for at in (992, 999_992))
    assert torch.equal(near, far)
    if kind not in ("shaw, clipped soon", "t5, bidirectional"):  # they put some of these offsets together
        # Two heads, because in bfloat16 two products of a query may agree by chance.
        assert far.flatten(0, -2).unique(dim=1).shape[1] == 9


@pytest.mark.parametrize("autocast", [False, True], ids=["cast", "autocast"])
def test_fire_tells_the_nearest_keys_of_a_far_query_apart_in_bfloat16(autocast):
    made = build("fire")
    made = made if autocast else made.to(torch.bfloat16)
    q, k = vectors(1, 2, 1, D_HEAD).bfloat16(), vectors(1, 2, 9, D_HEAD).bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        far = made.bias(q, k, torch.tensor([1_000_000]), 999_992 + torch.arange(9))
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


@pytest.fixture
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@every_kind
def test_float64_as_the_default_format(kind, float64_by_default):
    reference = build(kind).float()
    made = build(kind, seed=1).float()
    made.load_state_dict(reference.state_dict())
    torch.set_default_dtype(torch.float32)
    expected = acts(reference, *tokens(), torch.arange(7))
    torch.set_default_dtype(torch.float64)
    assert_same(acts(made, *tokens(), torch.arange(7)), expected, **ORDER)
    in_float64 = acts(build(kind), *tokens(dtype=torch.float64), torch.arange(7))
    assert all(result.dtype == torch.float64 for place, result in in_float64.items() if place != "bias")


@every_kind
def test_another_default_device_does_not_matter_to_a_scheme_that_is_there(kind):
    made, (x, q, k), positions = build(kind), tokens(), torch.arange(7)
    expected = acts(made, x, q, k, positions)
    again = build(kind)  # so that nothing is remembered
    with torch.device("meta"):
        assert_same(acts(again, x, q, k, positions), expected)


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
NEAR, ELSEWHERE = torch.arange(7), torch.tensor([0, 5, 60, 2, 2, 33, 1])


@as_a_user
@every_kind
def test_torch_compile(kind):
    torch._dynamo.reset()
    module, vectors_given = Everything(build(kind)), tokens()
    # One graph: nothing is asked of a tensor's values. Other positions must not meet those that were compiled.
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    for positions in (NEAR, ELSEWHERE):
        assert_same(compiled(*vectors_given, positions), module(*vectors_given, positions), **ORDER)


@as_a_user
@every_kind
def test_torch_export(kind):
    module, vectors_given = Everything(build(kind)), tokens()
    exported = torch.export.export(module, (*vectors_given, NEAR)).module()
    for positions in (NEAR, ELSEWHERE):
        assert_same(exported(*vectors_given, positions), module(*vectors_given, positions), **ORDER)


@as_a_user
@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="inductor needs a C++ compiler")
def test_inductor():
    torch._dynamo.reset()
    many = "sinusoidal+rope+t5+alibi+fire"
    made = scheme(many, d_model=16, n_heads=2, n_positions=N_POSITIONS, causal=True)
    module, vectors_given = Everything(made), tokens()
    compiled = torch.compile(module, fullgraph=True)
    for positions in (NEAR, ELSEWHERE):
        assert_same(compiled(*vectors_given, positions), module(*vectors_given, positions), **ORDER)


@as_a_user
@pytest.mark.parametrize("kind", ["learned", "learnable_sinusoidal", "rope", "rope, interleaved", "shaw", "t5", "fire"])
def test_gradients_through_torch_compile(kind):
    torch._dynamo.reset()
    results = []
    for compiled in (False, True):
        module = Everything(build(kind))
        x, q, k = (each.requires_grad_() for each in tokens())
        call = torch.compile(module, backend="aot_eager") if compiled else module
        sum(result.square().sum() for result in call(x, q, k, ELSEWHERE).values()).backward()
        results.append([each.grad for each in (x, q, k, *module.parameters())])
    for eager, other in zip(*results, strict=True):
        if eager is None:  # a key that a scheme does not look at
            assert other is None
        else:
            torch.testing.assert_close(other, eager, rtol=1e-4, atol=1e-4)  # sums of a hundred squares


# Shapes.


@every_kind
def test_one_position(kind):
    made, (x, q, k) = build(kind), tokens()
    positions = torch.arange(7) + 3
    done = acts(made, x, q, k, positions)
    for token in (0, 6):
        alone = acts(made, x[:, [token]], q[:, :, [token]], k[:, :, [token]], positions[[token]])
        for place in ("add", "rotate", "rotate_keys"):
            torch.testing.assert_close(alone[place][..., 0, :], done[place][..., token, :], rtol=0, atol=1e-6)
    if "bias" in done:
        one = bias(made, q[:, :, [6]], k, positions[[6]], positions)
        torch.testing.assert_close(one[..., 0, :], done["bias"][..., 6, :], rtol=0, atol=1e-5)


@every_kind
def test_no_position(kind):
    x, q, k = tokens(0)
    none, positions = torch.arange(0), torch.arange(5)
    done = acts(build(kind), x, q, k, none)
    assert (done["add"].shape, done["rotate"].shape, done["rotate_keys"].shape) == (x.shape, q.shape, k.shape)
    if "bias" in done:
        assert done["bias"].shape[-3:] == (2, 0, 0)
        keys = vectors(2, 2, 5, D_HEAD)
        assert bias(build(kind), q, keys, none, positions).shape[-3:] == (2, 0, 5)


@every_kind
def test_a_single_head(kind):
    x, q, k = tokens(n_heads=1)
    done = acts(build(kind, n_heads=1), x, q, k, torch.arange(7))
    assert done["rotate"].shape == (2, 1, 7, 16)
    if "bias" in done:
        assert done["bias"].shape in {(1, 7, 7), (2, 1, 7, 7)}


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
@pytest.mark.parametrize("batch", [2, 3])
def test_batches_of_positions_are_their_rows_also_with_more_axes(kind, batch):
    made = build(kind)
    act, width = (made.add, 16) if kind in ADDING else (made.rotate, D_HEAD)
    x, positions = vectors(batch, 2, 5, width), torch.arange(5) + torch.arange(batch)[:, None] * 7
    together = act(x, positions)
    for row in range(batch):
        torch.testing.assert_close(together[row], act(x[row], positions[row]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ADDING + ROTATING)
def test_tokens_without_a_batch(kind):
    made = build(kind)
    act, width = (made.add, 16) if kind in ADDING else (made.rotate, D_HEAD)
    x, positions = vectors(5, width), torch.arange(5) + 9
    assert torch.equal(act(x, positions), act(x[None], positions)[0])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "cope"])  # which goes by the order of the keys
def test_tokens_that_take_their_positions_along_may_stand_in_any_order(kind):
    made, (x, q, k), positions = build(kind), tokens(), torch.tensor([0, 1, 2, 30, 31, 7, 50])
    order = torch.tensor([4, 0, 6, 2, 1, 5, 3])
    straight = acts(made, x, q, k, positions)
    mixed = acts(made, x[:, order], q[:, :, order], k[:, :, order], positions[order])
    expected = {place: result[..., order, :] for place, result in straight.items()}
    if "bias" in expected:
        expected["bias"] = expected["bias"][..., order]
    assert_same(mixed, expected, atol=1e-6)


@pytest.mark.parametrize("kind", BIASING)
def test_keys_and_queries_may_have_different_numbers_and_places(kind):
    made, (_, q, k), positions = build(kind), tokens(), torch.arange(7) + 3
    whole, last = bias(made, q, k, positions, positions), bias(made, q[:, :, 4:], k, positions[4:], positions)
    torch.testing.assert_close(last, whole[..., 4:, :], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", BIASING)
def test_grouped_keys_make_no_difference(kind):
    _, q, k = tokens()
    positions, made = torch.arange(7), build(kind)
    grouped = bias(made, q, k[:, :1], positions, positions)
    assert torch.equal(grouped, bias(made, q, k[:, :1].expand(-1, 2, -1, -1), positions, positions))


@pytest.mark.parametrize("kind", BY_OFFSET)
def test_the_bias_of_offsets_is_the_bias(kind):
    made, (_, q, k), positions = build(kind), tokens(), torch.arange(7)
    by_offset = made.bias_by_offset(torch.arange(-6, 7))
    if kind.startswith("shaw"):  # it wants the query too
        assert by_offset is None
        return
    index = positions - positions[:, None] + 6
    assert torch.equal(bias(made, q, k, positions, positions), by_offset[:, index])


# Integers.

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64]


@every_kind
def test_positions_of_every_integer_format(kind):
    positions = torch.tensor([3, 60, 0, 2, 2, 33, 1])
    expected = acts(build(kind), *tokens(), positions)
    for dtype in INTEGERS:
        made = build(kind)
        for _ in range(2):
            assert_same(acts(made, *tokens(), positions.to(dtype)), expected)


# Positions that are none.


BAD_POSITIONS = {
    "a list": ([0, 1, 2, 3, 4, 5, 6], "are a list; give a tensor, such as torch.arange(seq)"),
    "a range": (range(7), "are a range; give a tensor"),
    "nothing": (None, "are a NoneType; give a tensor"),
    "floats": (torch.arange(7.0), "are torch.float32; they must be integers, such as torch.arange(seq)"),
    "halves": (torch.arange(7).half(), "are torch.float16; they must be integers"),
    "a mask": (torch.ones(7, dtype=torch.bool), "are torch.bool; they must be integers"),
    "complex": (torch.arange(7).to(torch.complex64), "are torch.complex64; they must be integers"),
    "a number": (torch.tensor(3), "have shape ()"),
    "too few": (torch.arange(6), "have shape (6,)"),
    "one": (torch.arange(1), "have shape (1,)"),
    "too many": (torch.arange(8), "have shape (8,)"),
    "another batch": (torch.arange(21).reshape(3, 7), "have shape (3, 7)"),
    "too few in a batch": (torch.arange(12).reshape(2, 6), "have shape (2, 6)"),
    "batch and sequence exchanged": (torch.arange(14).reshape(7, 2), "have shape (7, 2)"),
    "a column": (torch.arange(7)[:, None], "have shape (7, 1)"),
    "one for each head": (torch.arange(28).reshape(2, 2, 7), "have shape (2, 2, 7)"),
}


def uses(kind):
    """Each way in which positions enter a scheme, with the name they have there."""
    made, (x, q, k), good = build(kind), tokens(), torch.arange(7)
    if kind in ADDING:
        return {"positions": [lambda bad: made.add(x, bad)]}
    if kind in ROTATING:
        return {"positions": [lambda bad: made.rotate(q, bad), lambda bad: made.rotate_keys(k, bad)]}
    return {
        "positions": [lambda bad: bias(made, q, k, bad, good)],
        "key_positions": [lambda bad: bias(made, q, k, good, bad)],
    }


# CoPE does not look at positions.
@pytest.mark.bad_input
@pytest.mark.parametrize("kind", ADDING + ROTATING + [kind for kind in BIASING if kind != "cope"])
@pytest.mark.parametrize(("bad", "message"), BAD_POSITIONS.values(), ids=BAD_POSITIONS)
def test_bad_positions_have_a_named_error_in_one_line(kind, bad, message):
    for name, ways in uses(kind).items():
        for way in ways:
            with pytest.raises(EncodingInputError) as error:
                way(bad)
            assert f"{name} {message}" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", ADDING + ROTATING)
def test_an_error_says_which_positions_would_do(kind):
    made = build(kind)
    act, width = (made.add, 16) if kind in ADDING else (made.rotate, D_HEAD)
    with pytest.raises(EncodingInputError, match=r"must be \[7\] or (\[1, 7\] or \[2, 7\]|\[2, 7\] or \[1, 7\])$"):
        act(vectors(2, 7, width), torch.arange(6))
    with pytest.raises(EncodingInputError, match=r"and the tokens \(7, \d+\); positions must be \[7\]$"):
        act(vectors(7, width), torch.arange(14).reshape(2, 7))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (torch.arange(7), "have shape (7,); the last axis must be 2, one for each coordinate"),
        (torch.arange(21).reshape(7, 3), "have shape (7, 3); the last axis must be 2"),
        (torch.tensor(1), "have shape (); the last axis must be 2"),
        (torch.arange(12).reshape(6, 2), "have shape (6,), and the tokens (2, 2, 7, 8)"),
        (torch.arange(42).reshape(3, 7, 2), "have shape (3, 7)"),
        (torch.arange(14.0).reshape(7, 2), "are torch.float32; they must be integers"),
        ([[0, 1]] * 7, "are a list; give a tensor"),
    ],
    ids=str,
)
def test_bad_positions_on_several_axes(bad, message):
    with pytest.raises(EncodingInputError) as error:
        RoPE(8, axes=[4, 4]).rotate(vectors(2, 2, 7, 8), bad)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", ADDING + ROTATING + [kind for kind in BIASING if kind.startswith(("shaw", "cope"))])
def test_a_wrong_width_has_a_named_error(kind):
    made, positions, wide = build(kind), torch.arange(7), vectors(2, 2, 7, 6)
    ways = [lambda: made.rotate(wide, positions), lambda: made.rotate_keys(wide, positions)]
    if kind in ADDING:
        ways = [lambda: made.add(wide[:, 0], positions)]
    elif kind in BIASING:
        ways = [lambda: bias(made, wide, wide, positions, positions)]
    for way in ways:
        with pytest.raises(
            EncodingInputError, match="(x is|heads are) 6 wide(, but this scheme was made for| and the table)"
        ):
            way()
