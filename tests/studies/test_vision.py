"""A Transformer that reads images: what its patches are, which positions they have, and images of another size."""

import pytest
import torch
import torch.nn.functional as F
from refusals import refused

from posembed import TransformerConfig, sinusoidal
from posembed.errors import EncodingInputError, ModelInputError
from studies.training.vision import VisionTransformer, patches_of

AXES = {"sinusoidal": {"axes": 2}, "rope": {"axes": (8, 8)}}


def vision(scheme="nopos", *, size=12, patch=2, **options):
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=1, causal=False, scheme=scheme, scheme_options=options, n_layers=2, weight_std=0.2
    )
    return VisionTransformer(config, 10, size=size, patch=patch).eval()


def pictures(size=12, n=3):
    return torch.rand(n, size, size, generator=torch.Generator().manual_seed(1)) * 2 - 1


def rearranged(images, order, patch=2):
    """The same images with their patches in another order."""
    side = images.shape[1]
    patches = patches_of(images, patch)[:, order]
    return F.fold(patches.mT, (side, side), patch, stride=patch)[:, 0]


def test_patches_are_put_together_again():
    images = pictures()
    assert torch.equal(rearranged(images, torch.arange(36)), images)
    assert torch.equal(patches_of(images, 2)[:, 7], images[:, 2:4, 2:4].flatten(1))


@torch.inference_mode()
def test_without_positions_the_patches_are_a_bag_and_with_them_they_are_not():
    order = torch.randperm(36, generator=torch.Generator().manual_seed(2))
    images = pictures()
    moved = rearranged(images, order)
    model = vision()
    assert torch.allclose(model(images), model(moved), atol=1e-4)
    for scheme, options in (("learned", {"learned": {"std": 1.0}}), ("sinusoidal", AXES), ("rope", AXES), ("rope", {})):
        given = {name: each for name, each in options.items() if name == scheme}
        model = vision(scheme, **given)
        assert not torch.allclose(model(images), model(moved), atol=1e-3), scheme


def test_positions_are_rows_and_columns_where_a_scheme_has_two_axes():
    model = vision("sinusoidal", sinusoidal={"axes": 2})
    at = model.positions(2, 3)
    assert at.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    added = model.transformer.position_scheme.add(torch.zeros(1, 6, 64), at)[0]
    table = sinusoidal(3, 32)
    assert torch.allclose(added, torch.cat([table[at[:, 0]], table[at[:, 1]]], 1), atol=1e-6)
    assert vision().positions(2, 3).tolist() == [0, 1, 2, 3, 4, 5]


def test_the_states_begin_with_the_embedded_patches_and_end_in_the_classes():
    model, images = vision("learned"), pictures()
    states = model.hidden_states(images)
    assert [tuple(each.shape) for each in states] == [(3, 36, 64)] * 3
    rows = model.transformer.position_scheme.weight
    assert torch.allclose(states[0], model.patches(patches_of(images, 2)) + rows, atol=1e-5)
    assert torch.allclose(model(images), model.classes(states[-1].mean(1)))


def test_a_larger_model_interpolates_a_table_on_its_grid():
    small = vision("learned", learned={"std": 1.0})
    large = small.resized(24)
    rows = small.transformer.position_scheme.weight.detach()
    wanted = F.interpolate(rows.T.view(1, 64, 6, 6), size=(12, 12), mode="bicubic")[0].flatten(1).T
    assert torch.allclose(large.transformer.position_scheme.weight, wanted, atol=1e-6)
    assert large(pictures(24)).shape == (3, 10)
    # The model that it was made from stays as it was.
    assert small.size == 12 and torch.equal(small.transformer.position_scheme.weight, rows)


@pytest.mark.parametrize("scheme", AXES)
@torch.inference_mode()
def test_a_larger_model_has_every_second_patch_where_a_trained_one_is(scheme):
    small = vision(scheme, **{scheme: AXES[scheme]})
    large = small.resized(24)
    even = 2 * small.positions(6, 6)
    x = torch.randn(1, 4, 36, 16) if scheme == "rope" else torch.randn(1, 36, 64)
    one, other = small.transformer.position_scheme, large.transformer.position_scheme
    made = (lambda its, at: its.rotate(x, at)) if scheme == "rope" else (lambda its, at: its.add(x, at))
    assert torch.allclose(made(one, small.positions(6, 6)), made(other, even), atol=1e-5)
    assert not torch.allclose(made(one, even), made(other, even), atol=1e-2)


def test_other_schemes_stay_as_they_are_in_a_larger_model():
    small = vision("rope")
    large = small.resized(24)
    images = pictures(24)
    assert torch.equal(small(images), large(images))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("13 x 13 pixels are not divided by patches of 2 x 2", lambda: vision()(pictures(13))),
        ("12 x 12 pixels are not divided by patches of 5 x 5", lambda: vision(patch=5)),
        ("call resized(size), which interpolates", lambda: vision("learned")(pictures(24))),
        ("13 x 13 pixels are not divided", lambda: vision("learned").resized(13)),
        ("(batch, height, width)", lambda: vision()(torch.zeros(2, 3, 12, 12))),
        ("images are torch.int64", lambda: vision()(torch.zeros(2, 12, 12, dtype=torch.long))),
        ("images are list", lambda: vision()([[0.0]])),
        ("causal=False", lambda: VisionTransformer(TransformerConfig(1), 10, size=12, patch=2)),
    ],
)
def test_what_is_refused(message, call):
    assert message in refused(ModelInputError, call)


@pytest.mark.bad_input
def test_a_scheme_of_three_axes_is_refused():
    model = vision("rope", rope={"axes": (4, 4, 8)})
    assert "one for each coordinate" in refused(EncodingInputError, lambda: model(pictures()))
