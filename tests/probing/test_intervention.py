"""What erasing the positions of a table does to a model, and to its controls."""

import pytest
import torch
import torch.nn.functional as F
from refusals import refused
from small_models import IDS, bits, build
from torch import nn

from posembed import Transformer, TransformerConfig, with_position_table
from posembed.errors import PositionTableError
from posembed.models import LanguageModel
from posembed.probing import intervene, position_subspace
from posembed.tables import find_position_rows


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthonormal(k, width, seed=0):
    return torch.linalg.qr(random(width, k, seed=seed)).Q.T


def rows_of(model, part=None):
    return find_position_rows(model, part=part).rows.detach().clone()


def spread_out(model, part=None, seed=0):
    """Give a small model a table that varies along every direction, as those of small_models do little."""
    found = find_position_rows(model, part=part)
    with torch.no_grad():
        found.rows.copy_(random(*found.rows.shape, seed=seed))
    return model


def batch_of():
    ids = torch.randint(5, 30, (2, 12), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


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
    scores = random(30, 4)
    scores = torch.linalg.qr(scores - scores.mean(0)).Q[:, :3]
    table = scores * torch.tensor([80.0, 15.0, 5.0], dtype=torch.float64).sqrt() @ orthonormal(3, 9)
    assert len(position_subspace(table, n_components=share)) == wanted


def test_the_rows_can_be_chosen_and_their_mean_makes_no_difference():
    table = random(20, 6)
    table[15] = 1e6
    found, wanted = position_subspace(table + 3, n_components=2, rows=15), position_subspace(table[:15], n_components=2)
    torch.testing.assert_close(found.T @ found, wanted.T @ wanted)


# A model of which each state is a word and a position, and which remembers its tables.


class Sum(nn.Module):
    def __init__(self, n_positions=24, width=32):
        super().__init__()
        self.wpe, self.words, self.seen = nn.Embedding(n_positions, width), nn.Embedding(9, width), []
        with torch.no_grad():
            basis, at = orthonormal(2, width), torch.arange(n_positions, dtype=torch.float64)
            self.wpe.weight.copy_(torch.stack([at, 6 * (at / 4).sin()], 1) @ basis + 0.2 * random(n_positions, width))
            self.words.weight.copy_(random(9, width, seed=3))

    def forward(self, input_ids):
        self.seen.append(self.wpe.weight.detach().double().clone())
        return self.words(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))


def test_the_table_is_changed_as_the_fields_say():
    model, ids = Sum(), torch.randint(9, (3, 24), generator=torch.Generator().manual_seed(0))
    before, old = rows_of(model).double(), model(ids).detach().double()
    model.seen.clear()
    found = intervene(model, [ids[:1], ids[1:]], n_components=2, n_draws=3)
    intact, changed, *controls = [rows - before for rows in model.seen[::2]]
    centred = before - before.mean(0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    basis = directions[:2]
    assert not intact.any() and len(controls) == 6
    torch.testing.assert_close(changed, -centred @ basis.T @ basis, rtol=0, atol=1e-5)
    assert (found.n_components, found.variance) == (2, pytest.approx(float((sizes[:2] ** 2).sum() / (sizes**2).sum())))
    for same_size in controls[3:]:
        torch.testing.assert_close(same_size.norm(dim=1), changed.norm(dim=1), rtol=1e-4, atol=1e-4)
        assert not torch.allclose(same_size, changed, atol=0.1)
    for erased in controls[:3]:
        # A projection of the centred rows onto two directions inside what they span.
        assert torch.linalg.matrix_rank(erased, rtol=1e-4) == 2
        inside = directions[:23].T @ directions[:23]
        torch.testing.assert_close(erased @ inside, erased, rtol=0, atol=1e-4)
        torch.testing.assert_close((centred + erased).mul(erased).sum(), torch.zeros(()).double(), rtol=0, atol=1e-3)
    relative = [(each.norm(dim=1) / old.norm(dim=2)).mean().item() for each in (changed, *controls)]
    assert found.changed == pytest.approx(relative[0], rel=1e-5)
    assert found.control.values == pytest.approx(relative[1:4], rel=1e-5)
    assert found.control_same_size.values == pytest.approx(relative[4:], rel=1e-5)


# Models of transformers and our own.


@pytest.mark.parametrize("kind", ["bert", "gpt2-lm", "roberta", "opt"])
def test_the_last_hidden_state_changes_and_the_model_does_not(kind):
    model = spread_out(build(kind)).train()
    before = bits(model)
    found = intervene(model, [batch_of()], n_components=3, n_draws=2)
    assert found.changed > 0.01 and found.control.low > 0
    assert bits(model) == before and all(module.training for module in model.modules())


@pytest.mark.parametrize("kind", [Transformer, LanguageModel])
def test_posembeds_own_models(kind):
    model = spread_out(kind(TransformerConfig(vocab_size=30, d_model=16, n_heads=2, scheme="learned", n_positions=20)))
    before, rows = bits(model), rows_of(model).double()
    found = intervene(model, [IDS], n_components=3, n_draws=2)
    body, basis = model.transformer if kind is LanguageModel else model, position_subspace(rows, n_components=3)
    with torch.no_grad():
        old = body(IDS)
        with with_position_table(model, rows - (rows - rows.mean(0)) @ basis.T @ basis):
            new = body(IDS)
    assert found.changed == pytest.approx(float(((new - old).norm(dim=-1) / old.norm(dim=-1)).mean()), rel=1e-5)
    assert bits(model) == before


def test_padding_is_no_token():
    model, batch = spread_out(build("bert")), batch_of()
    padded = {name: F.pad(each, (0, 4)) for name, each in batch.items()}
    one, other = (intervene(model, [each], n_components=2, n_draws=1) for each in (batch, padded))
    assert other.changed == pytest.approx(one.changed, rel=1e-5)


def test_one_part_of_a_model_with_two_tables():
    model = spread_out(spread_out(build("bart"), "encoder"), "decoder")
    batch = {"input_ids": IDS, "decoder_input_ids": IDS[:, :3]}
    found = {part: intervene(model, [batch], n_components=2, n_draws=1, part=part) for part in ("encoder", "decoder")}
    assert found["encoder"].changed != found["decoder"].changed
    # The mask of the encoder's tokens is not of the decoder's.
    masked = batch | {"attention_mask": torch.ones_like(IDS), "decoder_attention_mask": torch.tensor([[1, 1, 0]])}
    fewer = intervene(model, [masked], n_components=2, n_draws=1, part="decoder")
    assert fewer.changed != pytest.approx(found["decoder"].changed, rel=1e-3)
    assert "part=" in refused(PositionTableError, intervene, model, [batch], n_components=2)


def test_the_draws_follow_the_seed_and_leave_the_global_state_alone():
    model, state = spread_out(build("bert")), torch.get_rng_state()
    run = lambda seed: intervene(model, iter([batch_of()]), n_components=2, n_draws=3, seed=seed)
    one, again, other = run(0), run(0), run(1)
    assert one == again and one.changed == other.changed and one.control != other.control
    assert torch.equal(torch.get_rng_state(), state)
    assert len(set(one.control.values)) == 3
