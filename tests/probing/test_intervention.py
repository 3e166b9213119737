import json
import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from small_models import IDS, TABLES, build
from torch import nn

from posembed import Transformer, TransformerConfig, check_equivariance
from posembed.errors import PositionTableError, ProbeInputError
from posembed.models import LanguageModel
from posembed.probing.intervention import Control, intervene, position_subspace, with_position_subspace
from posembed.tables import find_position_rows

# One for each kind of offset, of the shape of a table and of a part.
KINDS = [table for table in TABLES if table.kind in ("bert", "gpt2", "roberta", "opt", "vit", "clip", "bart")]


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthonormal(k, width, seed=0):
    return torch.linalg.qr(random(width, k, seed=seed)).Q.T


def rows_of(model, part=None):
    return find_position_rows(model, part=part).rows.detach().clone()


def bits(model):
    return {name: each.detach().reshape(-1).view(torch.uint8).clone() for name, each in model.state_dict().items()}


def same_bits(before, model):
    after = bits(model)
    return all(torch.equal(before[name], after[name]) for name in before)


def spread_out(model, part=None, seed=0):
    """Give a small model a table that varies along every direction, as those of small_models do little."""
    found = find_position_rows(model, part=part)
    with torch.no_grad():
        found.rows.copy_(random(*found.rows.shape, seed=seed))
    return model


# The subspace.


def test_the_subspace_is_that_of_the_largest_variance():
    basis = orthonormal(3, 12)
    table = random(40, 3) @ torch.diag(torch.tensor([9.0, 4.0, 1.0], dtype=torch.float64)) @ basis + random(12, seed=1)
    for k in (1, 2, 3):
        found = position_subspace(table, n_components=k)
        torch.testing.assert_close(found @ found.T, torch.eye(k, dtype=torch.float64), rtol=0, atol=1e-12)
        centred = table - table.mean(dim=0)
        torch.testing.assert_close((centred @ found.T).square().sum(0), torch.linalg.svdvals(centred)[:k] ** 2)
    torch.testing.assert_close(found.T @ found, basis.T @ basis, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("share", "wanted"), [(0.5, 1), (0.79, 1), (0.81, 2), (0.94, 2), (0.96, 3), (0.9999, 3)])
def test_a_share_of_the_variance_takes_as_many_components_as_it_needs(share, wanted):
    """Singular values whose squares are 80, 15 and 5 hundredths of their sum."""
    scores = torch.linalg.qr(random(30, 4) - random(30, 4).mean(0)).Q
    scores = scores - scores.mean(0)
    scores = torch.linalg.qr(scores).Q[:, :3]
    table = scores * torch.tensor([80.0, 15.0, 5.0], dtype=torch.float64).sqrt() @ orthonormal(3, 9)
    assert len(position_subspace(table, n_components=share)) == wanted


def test_the_mean_row_and_the_scale_make_no_difference():
    table = random(20, 6)
    wanted = position_subspace(table, n_components=2)
    for changed in (table + 1000, 1e150 * table, 1e-150 * table):
        found = position_subspace(changed, n_components=2)
        torch.testing.assert_close(found.T @ found, wanted.T @ wanted, rtol=0, atol=1e-9)


def test_the_rows_can_be_chosen():
    table = random(20, 6)
    table[15] = 1e6
    found, wanted = position_subspace(table, n_components=2, rows=15), position_subspace(table[:15], n_components=2)
    torch.testing.assert_close(found, wanted)


# In a model.


@pytest.mark.parametrize("table", KINDS, ids=str)
def test_erased_rows_have_the_mean_inside_and_stay_as_they_are_outside(table):
    model = spread_out(build(table.kind), table.part)
    before, state = rows_of(model, table.part).double(), bits(model)
    basis = position_subspace(before, n_components=2)
    with with_position_subspace(model, basis, part=table.part) as inside:
        assert inside is model
        found = rows_of(model, table.part).double()
        others = [name for name in state if name != f"{table.name}.weight" and not name.endswith(table.name)]
        assert all(torch.equal(state[name], bits(model)[name]) for name in others)
    assert same_bits(state, model)
    torch.testing.assert_close(found @ basis.T, (before.mean(0) @ basis.T).expand(len(found), 2), rtol=0, atol=1e-5)
    outside = torch.eye(before.shape[1], dtype=torch.float64) - basis.T @ basis
    torch.testing.assert_close(found @ outside, before @ outside, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["roberta", "opt"])
def test_rows_before_position_0_are_neither_looked_at_nor_touched(kind):
    model = spread_out(build(kind))
    found = find_position_rows(model)
    with torch.no_grad():
        found.parameter[: found.offset] = 1e4
    with with_position_subspace(model, position_subspace(found.rows.detach(), n_components=1), erase=True):
        assert (found.parameter[: found.offset] == 1e4).all()
        assert found.rows.abs().max() < 100


@pytest.mark.parametrize("shift", [1, -1, 3, -19])
def test_shifted_rows_have_the_coordinates_of_others_and_stay_as_they_are_outside(shift):
    model = spread_out(build("bert"))
    before = rows_of(model).double()
    basis = position_subspace(before, n_components=3)
    with with_position_subspace(model, basis, shift=shift):
        found = rows_of(model).double()
    outside = torch.eye(before.shape[1], dtype=torch.float64) - basis.T @ basis
    torch.testing.assert_close(found @ outside, before @ outside, rtol=0, atol=1e-5)
    for position, row in enumerate(found):
        taken = min(max(position + shift, 0), len(before) - 1)
        torch.testing.assert_close(basis @ row, basis @ before[taken], rtol=0, atol=1e-5)


def test_without_all_directions_of_its_table_a_model_does_not_see_the_order():
    model, x = spread_out(build("bert")), torch.randn(1, 6, 16)
    whole = position_subspace(rows_of(model), n_components=16)
    assert check_equivariance(model, x).verdict == "neither"
    with with_position_subspace(model, whole):
        assert check_equivariance(model, x).verdict == "equivariant"


def test_an_error_inside_the_block_puts_the_table_back():
    model = spread_out(build("gpt2"))
    before = bits(model)
    with pytest.raises(ZeroDivisionError), with_position_subspace(model, orthonormal(2, 16)):
        raise ZeroDivisionError
    assert same_bits(before, model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_other_formats(dtype):
    model = spread_out(build("bert")).to(dtype)
    before, basis = rows_of(model).double(), orthonormal(2, 16)
    with with_position_subspace(model, basis.to(torch.float32)):
        found = rows_of(model)
    assert found.dtype == dtype
    torch.testing.assert_close(
        found.double() @ basis.T,
        (before.mean(0) @ basis.T).expand(20, 2),
        rtol=0,
        atol=16 * torch.finfo(dtype).eps + 1e-6,
    )


# A model whose positions are known to live in two of its directions, and which reads them there and nowhere else.


class Order(nn.Module):
    """Says of any two tokens which comes first, by their coordinate along one direction of the table."""

    def __init__(self, n_positions=24, width=32):
        super().__init__()
        self.basis = orthonormal(2, width)
        at = torch.arange(n_positions, dtype=torch.float64)
        noise = 0.2 * random(n_positions, width, seed=1)
        noise -= noise @ self.basis.T @ self.basis
        self.wpe = nn.Embedding(n_positions, width)
        self.words = nn.Embedding(9, width)
        with torch.no_grad():
            self.wpe.weight.copy_(torch.stack([at, 6 * (at / 4).sin()], 1) @ self.basis + noise + random(width, seed=2))
            words = random(9, width, seed=3)
            self.words.weight.copy_(words - words @ self.basis.T @ self.basis)

    def forward(self, input_ids, labels=None):
        states = self.words(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        along = states.double() @ self.basis[0]
        logits = along[..., None, :] - along[..., :, None]  # of "i before j"
        loss = None if labels is None else F.binary_cross_entropy_with_logits(logits, labels.double())
        return SimpleNamespace(logits=logits, loss=loss, last_hidden_state=states)


def sequences(n=24):
    ids = torch.randint(9, (3, n), generator=torch.Generator().manual_seed(0))
    at = torch.arange(n)
    before = (at[:, None] < at).double()
    return ids, before.expand(3, n, n)


def wrong_orders(model, ids):
    """The share of pairs in the wrong order; half a pair where it cannot tell."""
    n = ids.shape[1]
    logits = model(ids).logits[:, *torch.triu_indices(n, n, 1)]
    # Equal up to float32.
    return float((logits < -1e-4).double().mean() + (logits.abs() <= 1e-4).double().mean() / 2)


def test_the_known_subspace_is_found():
    model = Order()
    found = position_subspace(rows_of(model), n_components=2)
    cosines = torch.linalg.svdvals(found @ model.basis.T)
    assert cosines.min() > 0.99


def test_erasing_the_subspace_destroys_the_order_and_a_random_one_does_not():
    model, (ids, _) = Order(), sequences()
    found = intervene(model, [ids], n_components=2, measure=wrong_orders)
    assert found.measure == "wrong_orders" and found.n_components == 2
    assert found.intact == 0
    assert found.changed == pytest.approx(0.5, abs=0.1)
    assert found.control.high < 0.02 and found.control_same_size.high < 0.1


def test_erasing_the_exact_subspace_leaves_nothing_of_the_order():
    model, (ids, _) = Order(), sequences()
    with with_position_subspace(model, model.basis, erase=True), torch.no_grad():
        assert wrong_orders(model, ids) == 0.5


def test_shifting_keeps_the_order_and_moves_the_positions():
    """Only pairs that both stand at the end, where all shifted rows have the last row's coordinates, become ties."""
    model, (ids, _) = Order(), sequences()
    with with_position_subspace(model, model.basis, shift=3), torch.no_grad():
        shifted = wrong_orders(model, ids)
        moved = model(ids).last_hidden_state.double() @ model.basis[0]
    n = ids.shape[1]
    assert shifted == pytest.approx(math.comb(4, 2) / 2 / math.comb(n, 2))
    still = model(ids).last_hidden_state.detach().double() @ model.basis[0]
    torch.testing.assert_close(moved[:, : n - 3], still[:, 3:], rtol=0, atol=1e-4)


def test_the_loss_is_the_models_own_where_there_are_labels():
    model, (ids, labels) = Order(), sequences()
    batches = [{"input_ids": ids, "labels": labels}]
    found = intervene(model, batches, n_components=2, n_draws=3)
    assert found.measure == "loss"
    with torch.no_grad():
        assert found.intact == pytest.approx(float(model(ids, labels).loss), rel=1e-12)
        with with_position_subspace(model, position_subspace(rows_of(model), n_components=2)):
            assert found.changed == pytest.approx(float(model(ids, labels).loss), rel=1e-6)
    assert found.changed > 2 * found.control.high
    assert found.difference == found.changed - found.intact


def test_the_control_of_the_same_size_moves_each_row_as_far():
    model, seen = Order(), []
    before = rows_of(model).double()
    intervene(model, [sequences()[0]], n_components=2, n_draws=3, measure=lambda m, _: seen.append(rows_of(m)) or 0.0)
    intact, changed, *controls = [rows.double() - before for rows in seen]
    assert not intact.any() and len(controls) == 6
    for same_size in controls[3:]:
        torch.testing.assert_close(same_size.norm(dim=1), changed.norm(dim=1), rtol=1e-4, atol=1e-4)
        assert not torch.allclose(same_size, changed, atol=0.1)
    for random_subspace in controls[:3]:
        assert torch.linalg.matrix_rank(random_subspace, rtol=1e-4) == 2
        # Inside what the rows span.
        _, _, span = torch.linalg.svd(before - before.mean(0), full_matrices=False)
        inside = span[:23].T @ span[:23]
        torch.testing.assert_close(random_subspace @ inside, random_subspace, rtol=0, atol=1e-4)


def test_a_real_encoder_no_longer_tells_orders_apart(encoder):
    """Sixteen of 384 directions hold 98 hundredths of its table's variance."""
    model, tokenizer = encoder
    pairs = [("the dog bit the man", "the man bit the dog"), ("only he saw her", "he saw only her")]

    def sensitivity(model, pair):
        states = model(**tokenizer(list(pair), return_tensors="pt")).last_hidden_state.mean(dim=1)
        return 1 - float(F.cosine_similarity(*states, dim=0))

    before = bits(model)
    found = intervene(model, pairs, n_components=16, measure=sensitivity, n_draws=4)
    assert found.changed < 0.3 * found.intact
    assert min(found.control.low, found.control_same_size.low) > 0.6 * found.intact
    assert same_bits(before, model)


# Models of transformers.


def batches_of(kind, labels=False):
    ids = torch.randint(5, 30, (2, 12), generator=torch.Generator().manual_seed(1))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return [batch | {"labels": ids} if labels else batch]


@pytest.mark.parametrize("kind", ["bert", "gpt2", "roberta", "opt", "distilbert", "bert-lm", "gpt2-lm"])
@pytest.mark.parametrize("change", ["erase", "shift"])
def test_the_last_hidden_state_changes_and_the_model_does_not(kind, change):
    model = spread_out(build(kind)).train()
    before = bits(model)
    found = intervene(model, batches_of(kind), n_components=3, kind=change, shift=2, n_draws=2)
    assert found.measure == "relative change of the last hidden state"
    assert found.intact == 0 and found.changed > 0.01 and found.control.low > 0
    assert (found.kind, found.shift) == (change, 2 if change == "shift" else None)
    assert same_bits(before, model) and all(module.training for module in model.modules())


@pytest.mark.parametrize("kind", ["bert-lm", "gpt2-lm"])
def test_language_models_lose_in_nats(kind):
    model = spread_out(build(kind))
    found = intervene(model, batches_of(kind, labels=True), n_components=16, n_draws=1)
    with torch.no_grad():
        (batch,) = batches_of(kind, labels=True)
        assert found.intact == pytest.approx(float(model(**batch).loss), rel=1e-6)
    assert found.measure == "loss" and found.changed != found.intact and found.variance == pytest.approx(1)


@pytest.mark.parametrize("kind", [Transformer, LanguageModel])
def test_posembeds_own_models(kind):
    model = spread_out(kind(TransformerConfig(vocab_size=30, d_model=16, n_heads=2, scheme="learned", n_positions=20)))
    before = bits(model)
    found = intervene(model, [IDS], n_components=3, n_draws=2)
    body = model.transformer if kind is LanguageModel else model
    with torch.no_grad():
        old = body(IDS)
        with with_position_subspace(model, position_subspace(rows_of(model), n_components=3)):
            new = body(IDS)
    assert found.changed == pytest.approx(float(((new - old).norm(dim=-1) / old.norm(dim=-1)).mean()), rel=1e-5)
    assert same_bits(before, model)


def test_a_batch_counts_by_its_labels():
    """Two batches with 3 and 9 labels are worth one batch with 12."""
    model = spread_out(build("bert-lm"))
    (batch,) = batches_of("bert-lm", labels=True)
    labels = batch["labels"].clone()
    labels[0, 3:], labels[1, 9:] = -100, -100
    whole = [batch | {"labels": labels}]
    parts = [{name: each[i : i + 1] for name, each in whole[0].items()} for i in range(2)]
    none = [batch | {"labels": torch.full_like(labels, -100)}]
    one, two, three = (intervene(model, each, n_components=2, n_draws=1) for each in (whole, parts, [*parts, *none]))
    assert (two.intact, two.changed) == pytest.approx((one.intact, one.changed), rel=1e-6)
    assert (three.intact, three.changed) == (two.intact, two.changed)


def test_padding_is_no_token():
    model = spread_out(build("bert"))
    (batch,) = batches_of("bert")
    padded = {name: F.pad(each, (0, 4)) for name, each in batch.items()}
    one, other = (intervene(model, [each], n_components=2, n_draws=1) for each in (batch, padded))
    assert other.changed == pytest.approx(one.changed, rel=1e-5)


def test_one_part_of_a_model_with_two_tables():
    model = spread_out(spread_out(build("bart"), "encoder"), "decoder")
    batch = {"input_ids": IDS, "decoder_input_ids": IDS[:, :3]}
    found = {part: intervene(model, [batch], n_components=2, n_draws=1, part=part) for part in ("encoder", "decoder")}
    assert found["encoder"].changed != found["decoder"].changed
    with pytest.raises(PositionTableError, match="part="):
        intervene(model, [batch], n_components=2)


def test_the_draws_follow_the_seed_and_leave_the_global_state_alone():
    model, state = spread_out(build("bert")), torch.get_rng_state()
    run = lambda seed: intervene(model, iter(batches_of("bert")), n_components=2, n_draws=3, seed=seed)
    one, again, other = run(0), run(0), run(1)
    assert one == again and one.changed == other.changed and one.control != other.control
    assert torch.equal(torch.get_rng_state(), state)
    assert len(set(one.control.values)) == 3


def test_an_error_of_the_measure_puts_all_back():
    model = spread_out(build("bert")).train()
    before, calls = bits(model), []

    def breaks(model, batch):
        calls.append(model.training)
        return 1.0 / (2 - len(calls))

    with pytest.raises(ZeroDivisionError):
        intervene(model, batches_of("bert"), n_components=2, measure=breaks)
    assert calls == [False, False] and model.training and same_bits(before, model)


def test_the_result_is_json_and_text():
    found = intervene(spread_out(build("bert")), batches_of("bert"), n_components=2, n_draws=2)
    as_json = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert as_json["control"]["values"] == list(found.control.values)
    assert as_json["difference"] == found.difference and as_json["shift"] is None
    lines = str(found).splitlines()
    assert len(lines) == 3 and lines[0].startswith("erase 2 components, ") and "in 2 draws" in lines[1]


def test_a_control_sums_up_its_draws():
    assert Control.of([3.0, 1.0, 2.0]) == Control(2.0, 1.0, 3.0, (3.0, 1.0, 2.0))


# What is refused.


def one_line(caught):
    message = str(caught.value)
    assert message and "\n" not in message
    return message


@pytest.mark.bad_input
@pytest.mark.parametrize("n_components", [0, 17, -1, 1.0, 0.0, 1.5, True, "3", None, math.nan], ids=repr)
def test_components_that_are_not_there_are_refused(n_components):
    for call in (
        lambda: position_subspace(random(20, 16), n_components=n_components),
        lambda: intervene(spread_out(build("bert")), batches_of("bert"), n_components=n_components),
    ):
        with pytest.raises(ProbeInputError, match="from 1 to 16") as caught:
            call()
        assert repr(n_components) in one_line(caught)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "table", [torch.zeros(5, 3), torch.full((5, 3), 0.1), random(1, 3).expand(300, 3)], ids=["0", "0.1", "any"]
)
def test_rows_that_are_all_alike_are_refused(table):
    with pytest.raises(ProbeInputError, match="all alike") as caught:
        position_subspace(table)
    one_line(caught)


@pytest.mark.bad_input
def test_a_damaged_table_is_refused():
    model = spread_out(build("bert"))
    with torch.no_grad():
        find_position_rows(model).rows[3, 0] = torch.nan
    for call in (
        lambda: position_subspace(rows_of(model)),
        lambda: intervene(model, batches_of("bert")),
        lambda: with_position_subspace(model, orthonormal(2, 16)).__enter__(),
    ):
        with pytest.raises(ProbeInputError, match="row 3 of") as caught:
            call()
        one_line(caught)


BAD_SUBSPACES = {
    "too wide": (orthonormal(2, 17), "(n_components, 16)"),
    "a vector": (orthonormal(1, 16)[0], "(n_components, 16)"),
    "no direction": (torch.zeros(0, 16), "(n_components, 16)"),
    "not of length one": (2 * orthonormal(2, 16), "orthonormal"),
    "not at right angles": (torch.ones(2, 16) / 4, "orthonormal"),
    "NaN": (torch.full((2, 16), torch.nan), "orthonormal"),
}


@pytest.mark.bad_input
@pytest.mark.parametrize("name", BAD_SUBSPACES)
def test_a_subspace_that_does_not_fit_is_refused(name):
    subspace, piece = BAD_SUBSPACES[name]
    model = build("bert")
    before = bits(model)
    with pytest.raises(ProbeInputError) as caught, with_position_subspace(model, subspace):
        pytest.fail("the block must not be entered")
    assert piece in one_line(caught) and same_bits(before, model)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"erase": True, "shift": 1}, "erase=True with shift=1"),
        ({"erase": False}, "erase=False with shift=None"),
        ({"shift": 0}, "shift is 0"),
        ({"shift": 20}, "shift is 20"),
        ({"shift": -20}, "shift is -20"),
        ({"shift": 1.5}, "shift is 1.5"),
        ({"shift": True}, "shift is True"),
    ],
    ids=str,
)
def test_what_asks_for_nothing_or_for_both_is_refused(options, piece):
    with pytest.raises(ProbeInputError) as caught, with_position_subspace(build("bert"), orthonormal(2, 16), **options):
        pytest.fail("the block must not be entered")
    assert piece in one_line(caught)


BAD = {
    "no batches": ("bert", [], {}, "the number of batches is 0"),
    "an unknown kind": ("bert", batches_of("bert"), {"kind": "zero"}, "kind is 'zero'"),
    "no shift": ("bert", batches_of("bert"), {"kind": "shift", "shift": 0}, "shift is 0"),
    "no draws": ("bert", batches_of("bert"), {"n_draws": 0}, "n_draws is 0"),
    "a bad seed": ("bert", batches_of("bert"), {"seed": -1}, "seed is -1"),
    "labels for a model without a loss": ("bert", batches_of("bert", True), {}, "BertModel takes no labels"),
    "labels for some": ("bert-lm", batches_of("bert") + batches_of("bert", True), {}, "1 of 2 batches have labels"),
}


@pytest.mark.bad_input
@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_refused(name):
    kind, batches, options, piece = BAD[name]
    model = spread_out(build(kind)).train()
    before = bits(model)
    with pytest.raises(ProbeInputError) as caught:
        intervene(model, batches, **{"n_components": 2} | options)
    assert piece in one_line(caught) and same_bits(before, model) and model.training


@pytest.mark.bad_input
def test_labels_that_are_all_left_out_are_refused():
    (batch,) = batches_of("bert-lm", labels=True)
    with pytest.raises(ProbeInputError, match="the loss of the model as it is comes out as nan") as caught:
        intervene(build("bert-lm"), [batch | {"labels": torch.full_like(batch["labels"], -100)}], n_components=2)
    one_line(caught)


@pytest.mark.bad_input
def test_a_model_without_a_table_is_refused():
    with pytest.raises(PositionTableError, match="RoPE"):
        intervene(build("llama"), batches_of("llama"))


@pytest.mark.bad_input
def test_a_model_that_returns_no_states_needs_a_measure():
    class Silent(Order):
        def forward(self, input_ids):
            return {"nothing": 0}

    with pytest.raises(ProbeInputError, match="give measure=") as caught:
        intervene(Silent(), [IDS])
    one_line(caught)
