from collections import Counter

import numpy as np
import pytest
import torch
from refusals import refused
from small_models import TABLES, bits, build
from torch import nn

from posembed import with_position_table
from posembed.errors import PositionTableError
from posembed.tables import find_position_rows


def replacement(rows):
    return torch.randn(rows.shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_inside_the_block_the_positions_have_the_new_rows_and_afterwards_all_is_as_before(table):
    model, n_tokens = build(table.kind), table.lengths[-1]
    found = find_position_rows(model, part=table.part)
    rows, matrix = found.rows, found.parameter.detach().reshape(-1, found.parameter.shape[-1])
    with torch.no_grad():
        # A negative zero and a number below the normal range, which arithmetic on the rows could lose.
        rows[0, :2] = torch.tensor([-0.0, 1e-42])
        before, output = bits(model), table.run(model, n_tokens)
    old, front, new = rows.detach().clone(), matrix[: found.offset].clone(), replacement(rows)
    with with_position_table(model, "zeroed", part=table.part), torch.no_grad():
        assert torch.equal(rows, torch.zeros_like(rows))
        assert not torch.equal(table.run(model, n_tokens), output)
    with with_position_table(model, "shuffled", part=table.part):
        assert Counter(map(tuple, rows.tolist())) == Counter(map(tuple, old.tolist()))
        assert not torch.equal(rows, old)
    with with_position_table(model, new, part=table.part):
        assert torch.equal(rows, new) and torch.equal(matrix[: found.offset], front)
        changed = [name for name, value in bits(model).items() if value != before[name]]
        same = [name for name, value in model.state_dict().items() if value.data_ptr() == found.parameter.data_ptr()]
        assert changed == same
    assert bits(model) == before
    with torch.no_grad():
        assert torch.equal(table.run(model, n_tokens), output)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_an_error_inside_the_block_passes_through_and_the_table_is_put_back(error):
    model = build("bert")
    before = bits(model)
    with pytest.raises(error, match="mine"), with_position_table(model, "zeroed") as given, torch.no_grad():
        assert given is model
        find_position_rows(model).rows.add_(1.0)
        raise error("mine")
    assert bits(model) == before


def test_blocks_can_be_nested_and_the_two_tables_of_a_model_changed_together():
    model = build("bart")
    encoder, decoder = (find_position_rows(model, part=part).rows for part in ("encoder", "decoder"))
    before = bits(model)
    with with_position_table(model, "shuffled", part="encoder"):
        outer = encoder.detach().clone()
        with with_position_table(model, "zeroed", part="encoder"), with_position_table(model, "zeroed", part="decoder"):
            assert not encoder.any() and not decoder.any()
        assert torch.equal(encoder, outer) and decoder.any()
    assert bits(model) == before


@pytest.mark.parametrize("requires_grad", [True, False])
def test_the_parameter_its_memory_and_its_gradient_stay_the_same(requires_grad):
    model = build("bert")
    parameter = find_position_rows(model).parameter.requires_grad_(requires_grad)
    parameter.grad, memory = torch.ones_like(parameter), parameter.data_ptr()
    with with_position_table(model, "shuffled"):
        assert find_position_rows(model).parameter is parameter
        assert (parameter.data_ptr(), parameter.requires_grad) == (memory, requires_grad)
    assert parameter.requires_grad is requires_grad
    assert bool((parameter.grad == 1).all())


@pytest.mark.parametrize("kind", ["bert", "vit"])
def test_a_backward_pass_may_cross_the_borders_of_the_block(kind):
    """Writing the table in place must not spoil a graph that was made before."""
    table, model = next(table for table in TABLES if table.kind == kind), build(kind)
    parameter = find_position_rows(model).parameter
    table.run(model, table.lengths[-1]).square().sum().backward()
    wanted, parameter.grad = parameter.grad, None
    loss = table.run(model, table.lengths[-1]).square().sum()
    with with_position_table(model, "zeroed"):
        loss.backward()
    assert torch.equal(parameter.grad, wanted)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("of_table", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_new_table_is_cast_to_the_models_format_and_not_tied_to_it(dtype, of_table):
    model = build("roberta").to(dtype)
    rows, before = find_position_rows(model).rows, bits(model)
    new = replacement(rows).to(of_table).requires_grad_()
    kept = new.detach().clone()
    with with_position_table(model, new), torch.no_grad():
        assert rows.dtype == dtype
        assert torch.equal(rows, new.to(dtype))
        rows.zero_()
    assert torch.equal(new, kept) and new.grad is None and new.requires_grad
    assert bits(model) == before


def shuffled(n_rows, **options):
    table = nn.Embedding(n_rows, 1, _weight=torch.arange(float(n_rows))[:, None])
    with with_position_table(nn.ModuleDict({"pos_emb": table}), "shuffled", **options):
        return table.weight.flatten().tolist()


@pytest.mark.parametrize("n_rows", [2, 10])
def test_a_shuffle_follows_its_seed_and_is_never_the_identity(n_rows):
    """With two rows every other draw is the identity, so thirty seeds would meet it."""
    state = torch.get_rng_state()
    orders = [shuffled(n_rows, seed=seed) for seed in range(30)]
    assert all(sorted(order) == list(range(n_rows)) for order in orders)
    assert list(range(n_rows)) not in orders
    assert orders == [shuffled(n_rows, seed=seed) for seed in range(30)] and orders[0] == shuffled(n_rows)
    assert len(set(map(tuple, orders))) == (1 if n_rows == 2 else 30)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_table_that_does_not_fit_is_an_error_and_changes_nothing():
    model = build("roberta").half()
    before, words = bits(model), "needs (18, 16) (without the 2 rows before position 0)"
    assert words in refused(PositionTableError, with_position_table(model, torch.zeros(20, 16)).__enter__)
    assert bits(model) == before


def test_a_model_made_in_inference_mode_is_changed_and_gets_its_rows_back():
    with torch.inference_mode():
        model = build("bert")
        before = find_position_rows(model).rows.clone()
    with with_position_table(model, "zeroed"):
        assert not find_position_rows(model).rows.any()
    assert torch.equal(find_position_rows(model).rows, before)


def test_a_parameter_that_was_exchanged_inside_the_block_gets_its_rows_back():
    model = build("bert")
    before = find_position_rows(model).rows.detach().clone()
    with with_position_table(model, "zeroed"):
        table = model.embeddings.position_embeddings
        table.weight = nn.Parameter(table.weight.detach().half())
    assert torch.equal(find_position_rows(model).rows, before.half())


def test_an_array_of_numpy_is_a_table_too():
    model = build("bert")
    rows = find_position_rows(model).rows
    with with_position_table(model, np.ones(tuple(rows.shape))):
        assert bool((rows == 1).all())
