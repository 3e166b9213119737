"""Biases that violate one property by a dose."""

import itertools

import pytest
import torch

from posembed import TransformerConfig
from posembed.encodings import FrozenBias
from posembed.models import Transformer
from posembed.similarity import perturbed_bias, properties_of_matrix

PROPERTIES = ("monotonicity", "translation_invariance", "symmetry")
DOSES = (0, 12, 24, 36, 48)


@pytest.mark.parametrize("length", [32, 31, 9])
@pytest.mark.parametrize("violated", PROPERTIES)
def test_a_dose_moves_one_property_and_leaves_the_others(violated, length):
    measured = [properties_of_matrix(perturbed_bias(violated, degrees, length=length)) for degrees in DOSES]
    for other in set(PROPERTIES) - {violated}:
        # Monotonicity compares entries, and is exact; the other two are sums of squares in float64.
        assert [getattr(each, other) for each in measured] == pytest.approx([1.0] * len(DOSES), abs=1e-12)
    moved = [getattr(each, violated) for each in measured]
    assert moved[0] == 1 and all(first > second for first, second in itertools.pairwise(moved))


@pytest.mark.parametrize("violated", PROPERTIES)
def test_a_dose_is_an_angle_between_what_a_softmax_sees_and_no_other_strength(violated):
    rows = [perturbed_bias(violated, degrees) for degrees in DOSES]
    seen = [(each - each.mean(1, keepdim=True)).flatten() for each in rows]
    cosines = torch.stack([torch.cosine_similarity(each, seen[0], dim=0) for each in seen])
    # The arc cosine of what is nearly 1 loses half of its digits.
    assert cosines.clamp(max=1).acos().rad2deg().tolist() == pytest.approx(DOSES, abs=1e-5)
    assert [each.norm().item() for each in seen] == pytest.approx([seen[0].norm().item()] * len(DOSES), rel=1e-12)


@pytest.mark.parametrize("violated", PROPERTIES)
def test_every_length_has_its_doses(violated):
    """At many lengths the largest violation is the opposite of the undosed bias, but for a rounding."""
    for length in range(3, 40):
        assert torch.equal(perturbed_bias(violated, 0, length=length), perturbed_bias("symmetry", 0, length=length))
        assert perturbed_bias(violated, 10, length=length).isfinite().all()


def test_undosed_it_is_minus_the_distance():
    at = torch.arange(32.0, dtype=torch.float64)
    for violated in PROPERTIES:
        assert torch.equal(perturbed_bias(violated, 0), -(at - at[:, None]).abs())


def test_what_each_dose_does():
    rising, drifting, one_sided = (perturbed_bias(violated, 36) for violated in PROPERTIES)
    assert rising[0].argmin() not in (0, 31) and torch.equal(rising, rising.T)
    steps = -drifting.diagonal(1)
    assert (steps.diff() > 0).all()
    assert one_sided[10, 13] < one_sided[13, 10] < 0


def frozen(violated="symmetry", degrees=0):
    return FrozenBias(perturbed_bias(violated, degrees), 0.5 ** torch.arange(4))


def states(scheme, ids):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=9, n_layers=2, d_model=16, n_heads=4, scheme=scheme, causal=False))
    return model.double()(ids)


def test_a_model_without_a_direction_gives_a_mirrored_text_mirrored_states():
    """So what pools them cannot tell a text from its mirror image: why texts of made tasks begin with a token."""
    ids = torch.randint(9, (2, 32), generator=torch.Generator().manual_seed(0))
    for scheme in (frozen(), frozen("monotonicity", 48)):
        assert torch.allclose(states(scheme, ids).flip(1), states(scheme, ids.flip(1)), atol=1e-12)
    for violated in PROPERTIES[1:]:
        scheme = frozen(violated, 12)
        assert not torch.allclose(states(scheme, ids).flip(1), states(scheme, ids.flip(1)), atol=1e-3)


def test_a_frozen_bias_is_no_parameter_and_takes_positions_of_each_text():
    scheme, q = frozen(), torch.zeros(2, 4, 3, 8)
    assert not list(scheme.parameters()) and not scheme.state_dict()
    shifted = torch.stack([torch.arange(3), torch.arange(3) + 5])
    assert torch.equal(scheme.bias(q, q, shifted, shifted)[1], scheme.bias(q, q, shifted[1], shifted[1]))
    assert scheme.bias(q, q, shifted[0], shifted[0])[2, 0].tolist() == [-0.0, -0.25, -0.5]


@pytest.mark.parametrize("violated", PROPERTIES)
def test_what_a_model_is_given_has_the_same_properties_in_every_head(violated):
    """Slopes are powers of two, which change no digit; single precision keeps what is equal equal, and no two tie."""
    for degrees in DOSES[1:]:
        given = properties_of_matrix(perturbed_bias(violated, degrees))
        for head in frozen(violated, degrees).biases:
            found = properties_of_matrix(head)
            assert found.monotonicity == given.monotonicity
            assert found.translation_invariance == pytest.approx(given.translation_invariance, abs=1e-6)
            assert found.symmetry == pytest.approx(given.symmetry, abs=1e-6)
