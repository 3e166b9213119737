from collections import Counter

import pytest
import torch
from small_models import TABLES, build
from torch import nn

from posembed import with_position_table
from posembed.errors import PositionTableError
from posembed.tables import find_position_rows

table = pytest.mark.parametrize("table", TABLES, ids=str)
# Enough to see that a shuffle is drawn from its seed, and that none of them is the identity by chance.
SEEDS = range(30)


def bits(tensor):
    """The bytes, because 0.0 == -0.0 and NaN != NaN."""
    return tensor.detach().reshape(-1).view(torch.uint8).clone()


def state_bits(model):
    return {name: bits(value) for name, value in model.state_dict().items()}


def same(before, after):
    return before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


def matrix_of(found):
    return found.parameter.detach()[0] if found.parameter.ndim == 3 else found.parameter.detach()


def replacement(rows, seed=1):
    return torch.randn(rows.shape, generator=torch.Generator().manual_seed(seed))


@table
def test_inside_the_block_the_positions_have_the_new_rows(table):
    model = build(table.kind)
    rows = find_position_rows(model, part=table.part).rows
    old, new = rows.detach().clone(), replacement(rows)
    with with_position_table(model, "zeroed", part=table.part):
        assert torch.equal(rows, torch.zeros_like(rows))
    with with_position_table(model, new, part=table.part):
        assert torch.equal(rows, new)
    with with_position_table(model, "shuffled", part=table.part):
        assert Counter(map(tuple, rows.tolist())) == Counter(map(tuple, old.tolist()))
        assert not torch.equal(rows, old)


@table
@pytest.mark.parametrize("new", ["zeroed", "shuffled", "tensor"])
def test_nothing_else_is_touched_and_all_is_put_back_bit_for_bit(table, new):
    model = build(table.kind)
    found = find_position_rows(model, part=table.part)
    with torch.no_grad():
        # A negative zero and a number below the normal range, which arithmetic on the rows could lose.
        found.rows[0, :2] = torch.tensor([-0.0, 1e-42])
    before = state_bits(model)
    front = matrix_of(found)[: found.offset].clone()
    with with_position_table(model, replacement(found.rows) if new == "tensor" else new, part=table.part):
        inside = state_bits(model)
        assert torch.equal(matrix_of(found)[: found.offset], front)
    assert [name for name in before if not torch.equal(before[name], inside[name])] == [
        name for name, value in model.state_dict().items() if value.data_ptr() == found.parameter.data_ptr()
    ]
    assert same(before, state_bits(model))


@table
def test_the_output_changes_inside_the_block_and_not_after_it(table):
    model = build(table.kind)
    n_tokens = table.lengths[-1]
    with torch.no_grad():
        before = table.run(model, n_tokens)
        with with_position_table(model, "zeroed", part=table.part):
            assert not torch.equal(table.run(model, n_tokens), before)
        assert torch.equal(table.run(model, n_tokens), before)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_an_error_inside_the_block_passes_through_and_the_table_is_put_back(error):
    model = build("bert")
    before = state_bits(model)
    with pytest.raises(error, match="mine"), with_position_table(model, "zeroed"):
        raise error("mine")
    assert same(before, state_bits(model))


def test_blocks_can_be_nested():
    model = build("roberta")
    rows, before = find_position_rows(model).rows, state_bits(model)
    with with_position_table(model, "shuffled", seed=3):
        outer = rows.detach().clone()
        with with_position_table(model, "zeroed"):
            assert not rows.any()
        assert torch.equal(rows, outer)
    assert same(before, state_bits(model))


def test_the_two_tables_of_a_model_can_be_changed_together():
    model = build("bart")
    before = state_bits(model)
    with with_position_table(model, "zeroed", part="encoder"), with_position_table(model, "zeroed", part="decoder"):
        assert not any(find_position_rows(model, part=part).rows.any() for part in ("encoder", "decoder"))
    assert same(before, state_bits(model))


def test_the_model_itself_is_yielded():
    model = build("bert")
    with with_position_table(model, "zeroed") as given:
        assert given is model


def test_an_update_inside_the_block_is_undone_with_the_table():
    model = build("bert")
    found, before = find_position_rows(model), state_bits(model)
    with with_position_table(model, "zeroed"), torch.no_grad():
        found.rows.add_(1.0)
    assert same(before, state_bits(model))


def test_the_parameter_stays_the_same_object_that_an_optimizer_holds():
    model = build("bert")
    parameter = find_position_rows(model).parameter
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    memory = parameter.data_ptr()
    with with_position_table(model, "shuffled"):
        assert find_position_rows(model).parameter is parameter
        assert parameter.data_ptr() == memory
    before = parameter.detach().clone()
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert torch.equal(find_position_rows(model).parameter, before - 1.0)


@pytest.mark.parametrize("requires_grad", [True, False])
def test_requires_grad_and_the_gradient_are_left_alone(requires_grad):
    model = build("bert")
    parameter = find_position_rows(model).parameter.requires_grad_(requires_grad)
    parameter.grad = torch.ones_like(parameter)
    with with_position_table(model, "zeroed"):
        assert parameter.requires_grad is requires_grad
    assert parameter.requires_grad is requires_grad
    assert parameter.grad is not None
    assert bool((parameter.grad == 1).all())


@pytest.mark.parametrize("kind", ["bert", "vit"])
def test_a_backward_pass_may_cross_the_borders_of_the_block(kind):
    """Writing the table in place must not spoil a graph that was made before."""
    table = next(table for table in TABLES if table.kind == kind)
    model = build(kind)
    parameter = find_position_rows(model).parameter
    table.run(model, table.lengths[-1]).square().sum().backward()
    wanted, parameter.grad = parameter.grad, None
    loss = table.run(model, table.lengths[-1]).square().sum()
    with with_position_table(model, "zeroed"):
        loss.backward()
    assert torch.equal(parameter.grad, wanted)


def test_training_reaches_the_replaced_rows():
    model = build("bert")
    parameter = find_position_rows(model).parameter
    with with_position_table(model, "zeroed"):
        model(torch.tensor([[7, 8, 9]]))[0].square().sum().backward()
    assert parameter.grad[:3].any(dim=1).all()
    assert not parameter.grad[3:].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("of_table", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_new_table_is_cast_to_the_models_format(dtype, of_table):
    model = build("roberta").to(dtype)
    rows, before = find_position_rows(model).rows, state_bits(model)
    new = replacement(rows).to(of_table)
    with with_position_table(model, new):
        assert rows.dtype == dtype
        assert torch.equal(rows, new.to(dtype))
    assert same(before, state_bits(model))


def test_the_given_table_is_not_tied_to_the_model():
    model = build("bert")
    rows = find_position_rows(model).rows
    new = replacement(rows).requires_grad_()
    kept = new.detach().clone()
    with with_position_table(model, new):
        with torch.no_grad():
            rows.zero_()
        assert torch.equal(new.detach(), kept)
    assert new.grad is None
    assert new.requires_grad


def test_the_models_own_rows_can_be_given_in_another_order():
    model = build("bert")
    rows, before = find_position_rows(model).rows, state_bits(model)
    wanted = rows.detach().flip(0).clone()
    with with_position_table(model, rows.detach().flip(0)):
        assert torch.equal(rows, wanted)
    assert same(before, state_bits(model))


def small_table(n_rows):
    module = nn.Module()
    module.pos_emb = nn.Embedding(n_rows, 1, _weight=torch.arange(float(n_rows))[:, None])
    return module


def shuffled(n_rows, seed):
    module = small_table(n_rows)
    with with_position_table(module, "shuffled", seed=seed):
        return module.pos_emb.weight.flatten().tolist()


@pytest.mark.parametrize("n_rows", [2, 3, 10])
def test_a_shuffle_is_never_the_identity(n_rows):
    """With two rows every other draw is the identity, so thirty seeds would meet it."""
    orders = [shuffled(n_rows, seed) for seed in SEEDS]
    assert all(sorted(order) == list(range(n_rows)) for order in orders)
    assert list(range(n_rows)) not in orders


def test_a_shuffle_follows_its_seed_and_leaves_the_global_state_alone():
    state = torch.get_rng_state()
    orders = [shuffled(10, seed) for seed in SEEDS]
    assert orders == [shuffled(10, seed) for seed in SEEDS]
    assert len(set(map(tuple, orders))) == len(SEEDS)
    assert torch.equal(torch.get_rng_state(), state)


def test_seed_zero_is_the_default():
    module = small_table(10)
    with with_position_table(module, "shuffled"):
        assert module.pos_emb.weight.flatten().tolist() == shuffled(10, 0)


ROWS = (18, 16)
BAD_TABLES = {
    "one row short": (torch.zeros(17, 16), ["(17, 16)", "(18, 16)", "without the 2 rows before position 0"]),
    "with the rows before position 0": (torch.zeros(20, 16), ["(20, 16)", "(18, 16)", "without the 2 rows"]),
    "too wide": (torch.zeros(18, 17), ["(18, 17)", "(18, 16)"]),
    "transposed": (torch.zeros(16, 18), ["(16, 18)", "(18, 16)"]),
    "one row for all": (torch.zeros(1, 16), ["(1, 16)", "(18, 16)"]),
    "a vector": (torch.zeros(16), ["(16,)", "(18, 16)"]),
    "three axes": (torch.zeros(1, 18, 16), ["(1, 18, 16)", "(18, 16)"]),
    "NaN": (torch.zeros(ROWS).index_fill(0, torch.tensor([3]), torch.nan), ["NaN or infinity"]),
    "infinity": (torch.zeros(ROWS).index_fill(0, torch.tensor([3]), -torch.inf), ["NaN or infinity"]),
    "an unknown word": ("zero", ["'zero'", "'zeroed'", "'shuffled'", "tensor"]),
}


@pytest.mark.bad_input
@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_table_that_does_not_fit_is_an_error_and_changes_nothing(name):
    new, pieces = BAD_TABLES[name]
    model = build("roberta")
    before = state_bits(model)
    with pytest.raises(PositionTableError) as caught, with_position_table(model, new):
        pytest.fail("the block must not be entered")
    message = str(caught.value)
    assert "\n" not in message
    assert [piece for piece in pieces if piece not in message] == []
    assert same(before, state_bits(model))


def test_a_message_speaks_of_rows_before_position_0_only_where_there_are_some():
    with pytest.raises(PositionTableError) as caught, with_position_table(build("bert"), torch.zeros(3, 16)):
        pytest.fail("the block must not be entered")
    assert "before position 0" not in str(caught.value)


def test_a_table_beyond_the_models_format_is_an_error():
    model = build("bert").to(torch.float16)
    new = torch.full(find_position_rows(model).rows.shape, 1e6)
    with pytest.raises(PositionTableError, match=r"too large for torch\.float16"), with_position_table(model, new):
        pytest.fail("the block must not be entered")


@pytest.mark.parametrize("part", [None, "vision"])
def test_an_error_about_the_part_comes_before_anything_is_written(part):
    model = build("bart")
    before = state_bits(model)
    block = with_position_table(model, "zeroed", part=part)
    with pytest.raises(PositionTableError, match="encoder.embed_positions"), block:
        pytest.fail("the block must not be entered")
    assert same(before, state_bits(model))
