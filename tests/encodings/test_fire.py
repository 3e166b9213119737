"""FIRE against the authors' formula in a plain module, and what its normaliser keeps."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors
from torch import nn

from posembed.encodings import FIRE

positions_of = st.lists(st.integers(0, 3000), min_size=1, max_size=6)


class Plain(nn.Module):
    """Equation by equation; keys ahead count as if they were as far behind."""

    def __init__(self, fire):
        super().__init__()
        self.mlp, self.c, self.length = fire.mlp, fire.log_scale, fire.multiplier * fire.start

    def forward(self, positions, key_positions):
        psi = lambda x: torch.log(abs(self.c) * x + 1)
        distance = (positions[:, None] - key_positions).abs().double()
        reach = torch.maximum(abs(self.length), positions.double())[:, None]
        return self.mlp((psi(distance) / (psi(reach) + 1e-6))[..., None]).permute(2, 0, 1)


def made(seed=0, **options):
    torch.manual_seed(seed)
    return FIRE(2, **options)


def heads(n):
    return vectors(1, 2, n, 2)


@given(
    positions=positions_of,
    key_positions=positions_of,
    threshold=st.floats(1.0, 1000.0),
    log_scale=st.floats(0.01, 10.0),
    multiplier=st.floats(-3.0, 3.0),
)
def test_it_is_the_formula(positions, key_positions, threshold, log_scale, multiplier):
    fire = made(width=8, threshold=threshold, log_scale=log_scale).double()
    fire.multiplier.data.fill_(multiplier)
    fire.log_scale.data *= math.copysign(1, multiplier)  # signs of c and L do not matter
    positions, key_positions = torch.tensor(positions), torch.tensor(key_positions)
    expected = Plain(fire)(positions, key_positions)
    # log(x + 1) as it is written is off by 1e-16, where it stands beside 1e-6 alone.
    for kind, tolerance in [(fire, 3e-10), (made(width=8, threshold=threshold).float(), 2e-6)]:
        kind.load_state_dict(fire.state_dict())
        bias = kind.bias(heads(len(positions)), heads(len(key_positions)), positions, key_positions)
        # Up to 8 hidden units of about one, in each format; near a threshold of zero shares are as large as 1e6.
        scale = max(1.0, expected.abs().max().item())
        torch.testing.assert_close(bias.double(), expected, rtol=0, atol=tolerance * scale)


def test_it_starts_where_asked():
    fire = FIRE(2, width=6, threshold=64.0, log_scale=0.3)
    assert [tuple(p.shape) for p in fire.mlp.parameters()] == [(6, 1), (6,), (2, 6), (2,)]
    assert fire.log_scale.item() == pytest.approx(0.3) and fire.multiplier.item() * fire.start == 64.0
    assert FIRE(2).mlp[0].out_features == 32 and FIRE(2).start == 512


def test_far_neighbours_are_told_apart_in_a_bfloat16_model_and_under_autocast():
    fire, positions = made().to(torch.bfloat16), torch.tensor([1_000_000])
    exact = made()
    exact.load_state_dict({name: value.float() for name, value in fire.state_dict().items()})
    for key_positions in (torch.arange(999_993, 1_000_001), torch.arange(500_000, 500_064)):
        n_keys = len(key_positions)
        q, k = heads(1).bfloat16(), heads(n_keys).bfloat16()
        expected = exact.bias(heads(1), heads(n_keys), positions, key_positions)
        bias = fire.bias(q, k, positions, key_positions)
        # Sums of 32 products; the same, or other by the order of the sum.
        torch.testing.assert_close(bias, expected, rtol=0, atol=1e-6)
        with torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(fire.bias(q, k, positions, key_positions), expected, rtol=0, atol=1e-6)


def share_of(position, key_position, **options):
    """What the network reads: with weights and units of one it hands it on."""
    fire = FIRE(1, width=1, **options)
    for parameter, value in zip(fire.mlp.parameters(), (1.0, 0.0, 1.0, 0.0), strict=True):
        parameter.data.fill_(value)
    one = torch.zeros(1, 1, 1, 2)
    return fire.bias(one, one, torch.tensor([position]), torch.tensor([key_position])).item()


@given(position=st.integers(0, 10**6), back=st.integers(0, 10**6))
def test_what_the_network_reads_is_between_zero_and_one(position, back):
    share = share_of(position, max(position - back, 0))
    assert 0 <= share <= 1


@pytest.mark.parametrize("position", [513, 10_000, 1_000_000])
def test_the_first_token_is_at_share_one_of_any_far_query(position):
    assert share_of(position, 0) == pytest.approx(1.0, abs=1e-6)
    assert share_of(position, position) == 0.0


def test_below_the_threshold_shares_depend_on_the_distance_alone():
    assert share_of(100, 90) == share_of(500, 490) == share_of(10, 0)
    assert share_of(10_000, 9_990) < share_of(600, 590) < share_of(500, 490)
    psi = lambda x: math.log(0.1 * x + 1)
    assert share_of(100, 90) == pytest.approx(psi(10) / psi(512), rel=1e-6)
    assert share_of(100, 90, threshold=50.0, log_scale=2.0) == pytest.approx(math.log(21) / math.log(201), rel=1e-6)
