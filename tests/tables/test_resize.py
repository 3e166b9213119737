"""A table for other lengths and grids: what torch and ViT do, rows that stay, checkpoints that follow."""

import pytest
import torch
import torch.nn.functional as F
from transformers import RobertaConfig, RobertaModel, ViTConfig, ViTModel

from posembed.tables import find_position_rows, resize_table


def table(rows, width=3, dtype=torch.float32):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(0), dtype=dtype)


def test_a_line_repeated_and_tiled():
    rows = table(3)
    assert torch.equal(resize_table(rows, 6, how="repeat"), rows[[0, 0, 1, 1, 2, 2]])
    assert torch.equal(resize_table(rows, 7, how="tile"), rows[[0, 1, 2, 0, 1, 2, 0]])
    assert torch.equal(resize_table(rows, 5, how="tile", prefix=1), rows[[0, 1, 2, 1, 2]])


def test_a_grid_repeated_and_tiled_on_each_axis():
    """Of 1 by 2 patches, a and b, and a class token in front."""
    rows = table(3)
    grids = {"old_grid": (1, 2), "new_grid": (2, 4), "prefix": 1}
    assert torch.equal(resize_table(rows, 9, how="repeat", **grids), rows[[0, 1, 1, 2, 2, 1, 1, 2, 2]])
    assert torch.equal(resize_table(rows, 9, how="tile", **grids), rows[[0, 1, 2, 1, 2, 1, 2, 1, 2]])


@pytest.mark.parametrize("n", [4, 7, 40])
def test_a_line_is_interpolated_as_torch_does(n):
    rows = table(10, dtype=torch.float64)
    theirs = F.interpolate(rows.T[None], size=n, mode="linear", align_corners=False)[0].T
    torch.testing.assert_close(resize_table(rows, n, how="linear"), theirs, rtol=1e-14, atol=1e-14)
    nearest = F.interpolate(rows.T[None], size=n, mode="nearest")[0].T
    assert torch.equal(resize_table(rows, n, how="repeat"), nearest)


@pytest.mark.parametrize(("how", "mode"), [("linear", "bilinear"), ("bicubic", "bicubic")])
def test_a_grid_that_is_not_square_is_interpolated_as_torch_does(how, mode):
    rows = table(2 * 8 + 2, dtype=torch.float64)
    image = rows[2:].reshape(2, 8, 3).permute(2, 0, 1)[None]
    theirs = F.interpolate(image, size=(5, 4), mode=mode, align_corners=False)[0].permute(1, 2, 0).reshape(20, 3)
    ours = resize_table(rows, 22, how=how, old_grid=(2, 8), new_grid=(5, 4), prefix=2)
    torch.testing.assert_close(ours[2:], theirs, rtol=1e-14, atol=1e-14)
    assert torch.equal(ours[:2], rows[:2])


@pytest.mark.parametrize("how", ["repeat", "tile", "linear", "bicubic"])
def test_the_same_size_is_the_same_table(how):
    rows = table(12, dtype=torch.bfloat16)
    same = resize_table(rows, 12, how=how, old_grid=(3, 4), new_grid=(3, 4))
    assert same.dtype == rows.dtype
    torch.testing.assert_close(same, rows)


def test_a_vit_of_larger_images_is_what_the_model_interpolates_itself():
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    small = ViTConfig(**size, image_size=224, patch_size=16)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ViTModel(small).eval()
        images = torch.randn(1, 3, 384, 384)
        model.embeddings.position_embeddings.data = torch.randn(1, 197, 8)
    found = find_position_rows(model)
    rows = resize_table(found.rows, 577, how="bicubic", old_grid=(14, 14), new_grid=(24, 24), prefix=1)
    large = ViTModel(ViTConfig(**size, image_size=384, patch_size=16)).eval()
    large.load_state_dict(model.state_dict() | {found.name: rows[None]})
    with torch.no_grad():
        theirs = model(images, interpolate_pos_encoding=True).last_hidden_state
        torch.testing.assert_close(large(images).last_hidden_state, theirs, rtol=0, atol=1e-5)


def test_rows_before_position_0_stay_and_a_longer_tiled_model_says_the_same_of_short_texts():
    size = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = RobertaModel(RobertaConfig(**size, max_position_embeddings=18)).eval()
    found = find_position_rows(model)
    rows = resize_table(found.parameter.detach(), 34, how="tile", prefix=found.offset)
    longer = RobertaModel(RobertaConfig(**size, max_position_embeddings=34)).eval()
    longer.load_state_dict(model.state_dict() | {found.name + ".weight": rows})
    with torch.no_grad():
        short = torch.full((1, 16), 5)
        torch.testing.assert_close(longer(short).last_hidden_state, model(short).last_hidden_state)
        assert longer(torch.full((1, 32), 5)).last_hidden_state.shape == (1, 32, 8)
