"""A table of another length: what torch does, and a checkpoint that follows."""

import pytest
import torch
import torch.nn.functional as F
from transformers import RobertaConfig, RobertaModel

from posembed.tables import find_position_rows, resize_table


def table(rows, width=3, dtype=torch.float32):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(0), dtype=dtype)


def test_a_line_repeated_and_tiled():
    rows = table(3)
    assert torch.equal(resize_table(rows, 6, how="repeat"), rows[[0, 0, 1, 1, 2, 2]])
    assert torch.equal(resize_table(rows, 7, how="tile"), rows[[0, 1, 2, 0, 1, 2, 0]])


@pytest.mark.parametrize("n", [4, 7, 40])
def test_a_line_is_interpolated_as_torch_does(n):
    rows = table(10, dtype=torch.float64)
    theirs = F.interpolate(rows.T[None], size=n, mode="linear", align_corners=False)[0].T
    torch.testing.assert_close(resize_table(rows, n, how="linear"), theirs, rtol=1e-14, atol=1e-14)
    nearest = F.interpolate(rows.T[None], size=n, mode="nearest")[0].T
    assert torch.equal(resize_table(rows, n, how="repeat"), nearest)


@pytest.mark.parametrize("how", ["repeat", "tile", "linear"])
def test_the_same_size_is_the_same_table(how):
    rows = table(12, dtype=torch.bfloat16)
    same = resize_table(rows, 12, how=how)
    assert same.dtype == rows.dtype
    torch.testing.assert_close(same, rows)


def test_a_longer_tiled_model_says_the_same_of_short_texts():
    size = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = RobertaModel(RobertaConfig(**size, max_position_embeddings=18)).eval()
    found = find_position_rows(model)
    rows = torch.cat([found.parameter[: found.offset], resize_table(found.rows, 32, how="tile")])
    longer = RobertaModel(RobertaConfig(**size, max_position_embeddings=34)).eval()
    longer.load_state_dict(model.state_dict() | {found.name + ".weight": rows})
    with torch.no_grad():
        short = torch.full((1, 16), 5)
        torch.testing.assert_close(longer(short).last_hidden_state, model(short).last_hidden_state)
        assert longer(torch.full((1, 32), 5)).last_hidden_state.shape == (1, 32, 8)
