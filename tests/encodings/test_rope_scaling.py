"""Scaled RoPE: limits, order, published formulas, and transformers' frequencies."""

import math

import peers
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import LinearScaling, Llama3Scaling, LongRoPEScaling, NTKScaling, RoPE, YaRNScaling
from posembed.encodings.rope_scaling import said_by

factors = st.floats(1.0, 64.0)
widths = st.integers(1, 64).map(lambda half: 2 * half)
bases = st.sampled_from([10000.0, 500000.0])


def plain(width, base):
    return torch.tensor([base ** (-2 * i / width) for i in range(width // 2)], dtype=torch.float64)


@given(factor=factors, width=widths, base=bases)
def test_linear_divides_every_position(factor, width, base):
    torch.testing.assert_close(
        LinearScaling(factor=factor).frequencies(width, base), plain(width, base) / factor, rtol=1e-13, atol=0
    )
    assert LinearScaling(factor=factor).attention_factor == 1.0


@given(factor=factors, width=widths, base=bases)
def test_ntk_is_rope_of_a_larger_base_and_keeps_a_single_pair(factor, width, base):
    expected = plain(width, base if width == 2 else base * factor ** (width / (width - 2)))
    torch.testing.assert_close(NTKScaling(factor=factor).frequencies(width, base), expected, rtol=1e-13, atol=0)
    assert NTKScaling(factor=factor).attention_factor == 1.0


def test_yarn_multiplies_queries_and_keys():
    scaling = YaRNScaling(factor=math.e**2, original_max_position_embeddings=64)
    assert scaling.attention_factor == pytest.approx(1.2, rel=1e-15)
    x = vectors(3, 8)
    zero = torch.zeros(3, dtype=torch.int64)
    torch.testing.assert_close(RoPE(8, scaling=scaling).rotate(x, zero), 1.2 * x, rtol=1e-6, atol=0)
    torch.testing.assert_close(RoPE(8, scaling=scaling).rotate_keys(x, zero), 1.2 * x, rtol=1e-6, atol=0)
    given = YaRNScaling(factor=4.0, original_max_position_embeddings=64, attention=0.5)
    assert given.attention_factor == 0.5
    assert torch.equal(RoPE(8, scaling=given).rotate(x, zero), 0.5 * x)


@given(factor=factors, width=widths, base=bases)
def test_llama3_by_wavelengths(factor, width, base):
    """The released code, which compares wavelengths and interpolates between 1/factor and 1."""
    trained, low, high = 8192, 1.0, 4.0
    expected = []
    for frequency in plain(width, base).tolist():
        wavelength = 2 * math.pi / frequency
        if wavelength < trained / high:
            expected.append(frequency)
        elif wavelength > trained / low:
            expected.append(frequency / factor)
        else:
            smooth = (trained / wavelength - low) / (high - low)
            expected.append((1 - smooth) * frequency / factor + smooth * frequency)
    scaled = Llama3Scaling(factor=factor, original_max_position_embeddings=trained).frequencies(width, base)
    assert scaled.tolist() == pytest.approx(expected, rel=1e-12, abs=0)


# transformers computes in float32: a frequency is off by a few units of its last place, more where a ramp cancels.
FLOAT32 = {"rtol": 16 * 2.0**-23, "atol": 0}


@pytest.mark.parametrize("options", [{}, {"beta_fast": 16.0, "beta_slow": 2.0}, {"attention_factor": 0.7}], ids=str)
# The ramp ends before the first pair for a short training, and behind the last for a base that turns each often.
@pytest.mark.parametrize(("trained", "base"), [(512, 10000.0), (64, 10000.0), (8192, 500.0), (1024, 10.0)])
@pytest.mark.parametrize("truncate", [True, False])
def test_yarns_options_are_those_of_transformers(options, trained, base, truncate):
    given = {"factor": 8.0, "original_max_position_embeddings": trained, "truncate": truncate, **options}
    theirs, attention = peers.rope_parameters_transformers("yarn", 32, base, **given)
    scaling = said_by({"rope_type": "yarn", **given})[0]
    torch.testing.assert_close(scaling.frequencies(32, base), theirs.double(), **FLOAT32)
    assert scaling.attention_factor == pytest.approx(attention, rel=1e-12)


def test_scalings_in_the_form_of_transformers():
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "attention_factor": 0.9}
    assert said_by(yarn)[0] == YaRNScaling(factor=4.0, original_max_position_embeddings=64, attention=0.9)
    assert said_by({"rope_type": "linear", "factor": 2.0})[0] == LinearScaling(factor=2.0)
    assert said_by({"type": "linear", "factor": 2.0})[0] == LinearScaling(factor=2.0)  # as older configs have it
    assert said_by({"rope_type": "ntk", "factor": 2.0})[0] == NTKScaling(factor=2.0)
    llama = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192, "high_freq_factor": 8.0}
    assert said_by(llama)[0] == Llama3Scaling(factor=8.0, original_max_position_embeddings=8192, high_freq_factor=8.0)
    assert said_by({"rope_type": "default"}) == said_by(None) == (None,) * 4
    ready = LinearScaling(factor=2.0)
    assert said_by(ready)[0] is ready
    assert yarn["attention_factor"] == 0.9  # a caller's mapping is left alone
    x, positions = vectors(2, 5, 8), torch.arange(5)
    assert torch.equal(
        RoPE(8, scaling=yarn).rotate(x, positions), RoPE(8, scaling=said_by(yarn)[0]).rotate(x, positions)
    )


LISTS = [1.0 + pair for pair in range(4)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"axes": 2},
        {"scaling": {"rope_type": "proportional", "partial_rotary_factor": 0.5}},
        {"scaling": LinearScaling(4.0)},
        {"scaling": NTKScaling(4.0)},
        {"scaling": YaRNScaling(factor=4.0, original_max_position_embeddings=64)},
        {"scaling": Llama3Scaling(factor=4.0, original_max_position_embeddings=64)},
        {"scaling": LongRoPEScaling(4.0, 64, short_factor=LISTS, long_factor=LISTS, length=256)},
    ],
    ids=str,
)
def test_keys_of_a_cache_move_on_by_being_turned_once_more(options):
    """As where the first 40 tokens were dropped; the factor of yarn and longrope is in the keys already."""
    rope = RoPE(8, **options)
    x = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    at = torch.arange(50, 56)
    at, by = (at, torch.full((6,), -40)) if rope.n_axes is None else (at[:, None].repeat(1, 2), torch.full((6, 2), -40))
    moved = rope.rotate(rope.rotate(x, at), by)
    factor = 1.0 if rope.scaling is None else rope.scaling.attention_factor
    assert (factor != 1) == isinstance(rope.scaling, YaRNScaling | LongRoPEScaling)
    torch.testing.assert_close(moved / factor, rope.rotate(x, at - 40), rtol=0, atol=1e-12)
