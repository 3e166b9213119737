"""RoBERTa offset: the first token reads row 0 instead of row 2.

Symptom: pretrained RoBERTa runs and is quietly worse, its embeddings far
    from the published ones. (The other way round, a table of 512 rows in
    place of 514 stops long texts with "index out of range".)
Hint: the table has 514 rows for 512 positions. Row 0 was never trained; row
    1, whose number is padding_idx, is zero and belongs to padding.
Property: real tokens read the rows from padding_idx + 1 on, in turn, and
    padding reads row padding_idx, wherever it stands.
Report: huggingface/sentence-transformers#3879; where the 514 come from:
    facebookresearch/fairseq#1187
"""

import torch
from torch import Tensor


def broken(ids: Tensor, table: Tensor, padding_idx: int) -> Tensor:
    """Look up the row of each token's position; ids are (batch, time)."""
    rows = torch.arange(ids.shape[1]).expand_as(ids)
    return table[rows]


def mended(ids: Tensor, table: Tensor, padding_idx: int) -> Tensor:
    """Look up the row of each token's position; ids are (batch, time)."""
    real = (ids != padding_idx).long()
    rows = real.cumsum(1) * real + padding_idx
    return table[rows]


def check(candidate):
    """Assert that tokens read successive rows, from the first trained one."""
    for pad in (1, 3):
        ids = torch.tensor([[5, 6, 7, pad, pad], [pad, pad, 5, 6, 7]])
        rows = candidate(ids, torch.arange(12.0)[:, None], pad)[..., 0]
        why = f"the first token reads row {rows[0, 0]:.0f}, not {pad + 1}"
        assert rows[0, 0] == pad + 1, f"{why}: count from padding_idx + 1"
        why = "the text's tokens do not read successive rows"
        assert (rows[0, :3].diff() == 1).all(), f"{why}: count one a token"
        why = "padding in front changes the rows that a text reads"
        assert (rows[0, :3] == rows[1, 2:]).all(), f"{why}: count real tokens"
        why = f"padding reads another row than {pad}, the zero row"
        assert (rows[ids == pad] == pad).all(), f"{why}: give it padding_idx"


def picture(candidate):
    """Show what 6 tokens and 2 pads read: row = token, column = table row."""
    ids = torch.tensor([[5, 6, 7, 8, 9, 5, 1, 1]])
    return candidate(ids, torch.eye(10), 1)[0]
