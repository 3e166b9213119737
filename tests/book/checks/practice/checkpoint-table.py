# %% Rows and positions
from transformers import (
    BartConfig,
    BartModel,
    BertConfig,
    BertForPreTraining,
    OPTConfig,
    OPTModel,
)

# Holds in The position table of a checkpoint: "A checkpoint of BERT has 440 MB, and its {term}`position table` 1.6"
with torch.device("meta"):  # sizes alone, no numbers
    bert = BertForPreTraining(BertConfig())
weights = sum(parameter.nbytes for parameter in bert.parameters())
rows = bert.bert.embeddings.position_embeddings.weight
assert round(weights / 1e6) == 440 and round(rows.nbytes / 1e6, 1) == 1.6

# Holds: "The stored rows need not begin at position 0."
# Holds: "`load_table` knows from the model type how many rows stand before"
# Holds: "If row 0 of such a table is taken for position 0, every position is"
stored = roberta.embeddings.position_embeddings.weight
assert torch.equal(small.weight, stored[2:])

# %% What to remember
# Holds: "`load_table` gives the rows of real positions, row $p$ for position"
tiny = {"vocab_size": 50, "d_model": 16, "max_position_embeddings": 32}
one_head = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
layers = {"encoder_layers": 1, "decoder_layers": 1}
bart = BartModel(BartConfig(**tiny, **one_head, **layers, pad_token_id=1))
one = {"num_attention_heads": 1, "num_hidden_layers": 1, "ffn_dim": 16}
opt = OPTModel(OPTConfig(**tiny, **one, hidden_size=16, word_embed_proj_dim=16))
for found in (load_table(bart, part="encoder"), load_table(opt)):
    assert found.offset == 2 and found.n_positions == 32

# %% Rows that were never trained
# Holds: "Such a row is like no other and not long: its largest cosine with"
lengths = damaged.norm(dim=1)
directions = damaged / lengths[:, None]
cosines = (directions @ directions.T).fill_diagonal_(-1)
drawn, others = (
    [17, 200, 511],
    [p for p in range(512) if p not in (17, 200, 511)],
)
random = torch.nn.functional.normalize(torch.randn(512, 384), dim=1)
by_chance = (random @ random.T).fill_diagonal_(-1).amax(dim=1)
assert cosines[drawn].amax() < by_chance.max()
assert cosines[others].amax(dim=1).min() > by_chance.max()
assert lengths[drawn].max() < lengths[others].median()

# %% Can the position be read?
# Holds: "They are needed because a row has so many numbers: least squares"
permuted = table.weight[torch.randperm(512)]
fitted = probe_table(load_table(permuted), probe="ols", split="even-odd")
assert fitted.train_mae < 1e-6 < 128 < fitted.test_mae
# Holds: "`half` trains on the first half of the positions and tests on the"
assert beyond.train_positions.tolist() == list(range(256))
assert beyond.positions.tolist() == list(range(256, 512))
# Holds: "Predicted against true position, trained on the first half."
above = beyond.predictions - beyond.positions
# Holds: "Every point lies below the diagonal, and on the whole lower the"
assert (above < 0).all() and beyond.train_mae < 5
by_quarter = [above[start : start + 64].mean() for start in range(0, 256, 64)]
assert by_quarter == sorted(by_quarter, reverse=True)
# Holds in What to remember: "A probe's score says something beside its controls and with its"
assert result.test_mae < result.baselines.constant / 5
assert beyond.test_mae > 5 * result.test_mae

# %% Three properties
# Holds: "The dot products of a table's rows form a symmetric matrix whatever"
for any_table in (torch.randn(64, 16), damaged, torch.arange(40.0).view(8, 5)):
    assert abs(properties(any_table).symmetry - 1) < 1e-6

# %% Exercises
# Holds: "The probe does about as well as a constant guess, some 128 positions"
assert abs(guess.test_mae - 128) < 8 and abs(guess.baselines.constant - 128) < 1
assert abs(properties(shuffled, max_offset=50).monotonicity - 0.5) < 0.05

# Holds: "Without it every row is taken for a position two too high."
assert torch.equal(load_table(raw).weight[2:], right.weight)
# Holds: "The two rows in front count as positions too, and RoBERTa adds"
text = torch.tensor([[0, 5, 6, 7, 2, 1, 1]])  # the last two are padding
roberta(text).last_hidden_state.pow(3).sum().backward()
gradient = roberta.embeddings.position_embeddings.weight.grad
used = gradient.ne(0).any(dim=1).nonzero().flatten().tolist()
assert used == [2, 3, 4, 5, 6]

# %% A table for longer texts
# Holds: "A table ends with the last position that it was trained for."
# Holds: "The encoder has 512 rows; we keep the first 256, make 512 of them,"
assert len(truth) == 512 and {len(rows) for rows in made.values()} == {512}
# Holds: "`tile` begins the table anew where it ends, `repeat` lets each row serve"
assert torch.equal(made["tile"], truth[:256].repeat(2, 1))
assert torch.equal(made["repeat"], truth[:256].repeat_interleave(2, 0))
steps = made["linear"].diff(dim=0).norm(dim=1)
assert steps.max() < truth[:256].diff(dim=0).norm(dim=1).max()
# Holds: "Tile is at 1 up to 255, then swings between minus 0.4 and 0.3."
# Holds: "No way finds the rows that were cut off, and stretched, the table has lost"
tiled = found["tile"]
assert (tiled[:256] - 1).abs().max() < 1e-4 and tiled[256:].min() > -0.5 and tiled[256:].max() < 0.4
assert all(each[256:].mean().abs() < 0.1 and each[256:].max() < 0.8 for each in found.values())
# Holds: "Repeat and linear, one curve, begin at 0.6 and swing between minus 0.5 and 0.5"
in_steps = {how: each.unflatten(0, (32, 16)).mean(1) for how, each in found.items()}
for how in ("repeat", "linear"):
    assert abs(in_steps[how][0] - 0.6) < 0.05 and in_steps[how][2:].abs().max() < 0.5
assert (in_steps["repeat"] - in_steps["linear"]).abs().max() < 0.02
# Holds: "Two curves over 512 positions, means of 16."
assert in_steps["tile"][16:].min() > -0.4 and in_steps["tile"][16:].max() < 0.3
# Holds: "Four texts of 512 tokens are read with each table, and each token's output"
assert batch["input_ids"].shape == (4, 512) and batch["attention_mask"].all()
means = {how: (float(each[:, :256].mean()), float(each[:, 256:].mean())) for how, each in kept.items()}
# Holds: "In the first half tile lies above them, at about 0.92 against 0.89."
# Holds: "Tiled, the first half is nearer the truth, and what follows is further from"
# Holds: "From 256 on it is the lowest, at about 0.8 against 0.83, and near the end they"
assert means["tile"][0] > max(means["repeat"][0], means["linear"][0]) + 0.02
assert means["tile"][1] < min(means["repeat"][1], means["linear"][1]) - 0.01
for how, (first, second) in {"tile": (0.92, 0.8), "repeat": (0.89, 0.83), "linear": (0.89, 0.83)}.items():
    assert abs(means[how][0] - first) < 0.015 and abs(means[how][1] - second) < 0.015
# Holds: "Over a whole text the three are equally far from the truth, so choose"
whole = [float(each.mean()) for each in kept.values()]
assert max(whole) - min(whole) < 0.01
# Holds: "none of them."
# Holds: "it leaves the rows that there were, and a text of up to 256 tokens has the"
short = outputs(truth, 256)
assert torch.allclose(outputs(made["tile"], 256), short, atol=1e-5)
for how in ("repeat", "linear"):
    assert torch.cosine_similarity(outputs(made[how], 256), short, dim=-1).mean() < 0.95
# Holds: "Behind them each way puts rows that are not those of their positions."
nearest = torch.nn.functional.normalize(made["tile"][256:], dim=1) @ torch.nn.functional.normalize(truth, dim=1).T
assert (nearest.argmax(dim=1) < 256).all()
