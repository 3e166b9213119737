# %% In code
# Holds in Picture: "The bias of 24 random queries with random vectors."
assert queries.shape == (24, 16)
# Holds in Picture: "narrow for a max_distance of 3 and wide for 8"
# Holds in Picture: "The wider limit tells more offsets apart: a row has a colour for each"
at = torch.arange(24)
for c in (3, 8):
    drawn = Shaw(16, max_distance=c, std=1.0)
    (shown,) = drawn.bias(*queries.expand(2, 1, 1, 24, 16), at, at)[0].detach()
    assert all(len(row.unique()) == 2 * c + 1 for row in shown[c : 24 - c])
    # Holds in Picture: "Left of it each row has one colour, and right of it another."
    for m, row in enumerate(shown):
        left, right = row[: max(m - c + 1, 0)], row[m + c :]
        assert len(left.unique()) == (m >= c)
        assert len(right.unique()) == (m + c < 24)
        assert not {*left.tolist()} & {*right.tolist()}

# And of models.
from transformers import SeamlessM4Tv2Config, VitsConfig, Wav2Vec2BertConfig

# Holds in When to use it: "Wav2Vec2-BERT and SeamlessM4T v2 (64 to the left, 8 to the right)"
for config in (Wav2Vec2BertConfig(), SeamlessM4Tv2Config()):
    assert config.left_max_position_embeddings == 64
    assert config.right_max_position_embeddings == 8
assert VitsConfig().window_size == 4

from posembed.encodings import Shaw

# Holds in Formula: "`max_distance`, 16 unless said otherwise"
assert Shaw(4).max_distance == 16
