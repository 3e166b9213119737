# %% Exhibit 1: The clock that stands still
seen, right = picture(broken), picture(mended)
# Holds: "Heat map with 32 rows, one for each token"
# Holds: "Broken, stripes from top to bottom: each token gets the same."
assert torch.equal(seen, seen[:1].expand(32, 32))
# Holds: "Waves that run down the rows"
# Holds: "Mended, no two of them get the same row."
assert len(right.unique(dim=0)) == 32
# Holds: "Its first axis is the batch, so the table was read along the batch"
added = broken(torch.zeros(3, 8, 16))
assert torch.equal(added, table(512, 16)[:3, None].expand(3, 8, 16))
# Holds: "The same damage."
# Holds: "It would be right."
assert not torch.nn.TransformerEncoderLayer(16, 2).self_attn.batch_first
time_first = broken(torch.zeros(8, 3, 16))
assert torch.equal(time_first, table(512, 16)[:8, None].expand(8, 3, 16))

# %% Exhibit 2: Seven columns
# What is seen, and how it crashes.
empty = picture(broken).isnan()
# Holds: "Grid with one row for each width from 2 to 13"
# Holds: "Broken, only even widths come back."
assert empty.all(1).tolist() == [False, True] * 6
# Holds: "Every width is filled, and each row is as wide"
wide = (~picture(mended).isnan()).sum(1)
# Holds: "Mended, odd widths come back too, and none is cut short."
assert wide.tolist() == list(range(2, 14))
# Holds: "At every width each column changes with the position"
assert caught(check, broken) != caught(check, mended) == "passes"
# Exercise "A bug that moves nothing": angles from 1.
assert caught(check, lambda n, d: mended(n + 1, d)[1:]) != "passes"
try:
    broken(64, 29)
except RuntimeError as refusal:
    # Holds: "Someone sets the width to 29"
    assert "(14) must match the existing size (15)" in str(refusal)


# The same of the two other mends.
def rounded_up(n_positions, d_model):
    return mended(n_positions, d_model + d_model % 2)[:, :d_model]


def one_column_zero(n_positions, d_model):
    last = torch.arange(d_model) == d_model - d_model % 2
    return mended(n_positions, d_model).masked_fill(last, 0.0)


# Holds: "An odd width has one more sine than cosines"
assert mended(8, 7)[0].tolist() == [0, 1, 0, 1, 0, 1, 0]
assert torch.equal(rounded_up(64, 7)[:, :2], mended(64, 7)[:, :2])
assert "exponent" in caught(check, rounded_up)
assert "constant" in caught(check, one_column_zero)

# %% Exhibit 3: Half a table
seen, right = picture(broken), picture(mended)
# Holds in A museum of positional bugs: "Heat maps of two tables of 64 positions and 64 columns."
# Holds in A museum of positional bugs: "One of them is wrong, and exhibit 3 says which."
# Holds in A museum of positional bugs: "Both come from code that runs."
drawn_first = [torch.where(even, each.sin(), each.cos()) for each in made.values()]
assert torch.allclose(drawn_first[0], seen, atol=1e-4) and torch.allclose(drawn_first[1], right, atol=1e-4)
moved, moves = (image.amax(0) - image.amin(0) for image in (seen, right))
# Holds: "Heat map of a table of 64 positions and 64 columns"
assert moved[32:].max() < 0.1 < moved[:16].min()
# Holds: "The waves reach twice as far to the right"
last = [int((each > 0.1).nonzero().max()) for each in (moved, moves)]
assert last == [22, 44]
# Holds: "The code let it count columns, so each column got an exponent"
exponents = -seen[1, 0::2].asin().log10() / 4
assert torch.allclose(exponents[1:], 2 * torch.arange(2, 64, 2) / 64, atol=0.01)
assert (seen[:, 0::2] ** 2 + seen[:, 1::2] ** 2 - 1).abs().max() > 0.5
# Holds: "Columns $2i$ and $2i + 1$ are a point on the unit circle"
assert caught(check, broken) != caught(check, mended) == "passes"
assert caught(check, lambda n, d: mended(n + 1, d)[1:]) != "passes"
# Holds: "No: what counts is the score."
assert (seen - right).abs().max() > 1
# Holds: "Yes, though a mild one."
assert len(seen.unique(dim=0)) == 64

# The same of the captions.
# Holds: "Broken, the waves die out early: the right half stands nearly still."
assert moved[32:].max() < 0.1
# Holds: "Mended, about twice as many columns move."
assert last == [22, 44]

from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.whisper.modeling_whisper import sinusoids as whisper_sinusoids

# Holds: "M2M100's and Whisper's exponents go to 1 itself, which is right for their weights."
m2m100 = M2M100SinusoidalPositionalEmbedding.get_embedding(100, 64)
for theirs in (m2m100, whisper_sinusoids(100, 64)):
    sines, cosines = theirs.double().split(32, dim=1)
    exponents = -torch.atan2(sines[1], cosines[1]).log10() / 4
    assert torch.allclose(exponents, torch.arange(32).double() / 31, atol=1e-3)

# %% Exhibit 4: Twins
# What is seen, and what is rounded.
steps, waves = ((image[1:] != image[:-1]).any(1) for image in map(picture, (broken, mended)))
# Holds: "Heat map of 64 positions. The rows come in blocks of equal rows"
assert steps.sum() <= 32
# Holds: "The stairs have become waves"
assert waves.all()
# Holds: "Print `torch.tensor(257).bfloat16()`."
assert torch.tensor(257).bfloat16() == 256
# Holds: "Neighbouring rows differ, and a row in half precision is within 0.01"
# Holds in What to remember: "Compute angles in full precision and round"
# Holds in Exercises: "Exhibits 2 to 4 refuse it only because they expect the angles to begin"
assert "0.96" in caught(check, lambda p, d, dtype: mended(p + 1, d, dtype))
assert caught(check, broken) != caught(check, mended) == "passes"

# The same of the captions.
# Holds: "Broken, look at the stairs: neighbouring positions share a row."
assert steps.sum() <= 32
# Holds: "Mended, the stairs are gone: each row differs from the one before."
assert waves.all()

# The same in float16, of a head of width 32 and 2,048 positions.
exact = torch.arange(2048)[:, None].double() * 1e4 ** (-torch.arange(16) / 16)
cosines = broken(torch.arange(2048), 32, torch.float16)[:, :16].double()
off = (cosines - exact.cos()).abs()
# Holds: "A user computes {term}`rotary` positions in float16"
assert round(float(off.max()), 2) == 0.78


# The same of what is rounded, each alone.
def rounding(part):
    def candidate(positions, d_head, dtype):
        f = 10000.0 ** (-torch.arange(0, d_head, 2) / d_head)
        to = dict.fromkeys(("positions", "f", "angles"), torch.float32)
        to[part] = dtype
        angles = positions.to(to["positions"]).float()[:, None]
        angles = (angles * f.to(to["f"]).float()).to(to["angles"]).float()
        return torch.cat([angles.cos(), angles.sin()], -1).to(dtype)

    return candidate


parts = ("positions", "f", "angles")
# Holds: "bfloat16 keeps 8 significant bits"
assert torch.arange(256, 513).bfloat16().unique().numel() == 129
assert torch.arange(512, 1025).bfloat16().unique().numel() == 129
assert "caught" in max(caught(check, rounding(p)) for p in parts)
twins = rounding("angles")(torch.arange(4096), 32, torch.float16)
assert (twins[1:] != twins[:-1]).any(1).all()

# Holds: "from 256 on it has no odd numbers, from 512 to 1,024 only every fourth"
assert torch.tensor(257.0).bfloat16() == 256 and torch.tensor(514.0).bfloat16() == 512

# %% Exhibit 5: Two halves that do not match
seen, right = picture(broken), picture(mended)
# Holds: "Heat map of products over the positions of query and key"
# Holds: "Broken, follow a diagonal: at one offset the product changes."
assert (seen[1:, 1:] - seen[:-1, :-1]).abs().max() > 0.5
# Holds: "Straight stripes along the diagonals"
# Holds: "Mended, each diagonal has one colour: the offset alone decides."
assert (right[1:, 1:] - right[:-1, :-1]).abs().max() < 1e-4

# %% Exhibit 6: Always at the beginning
seen = picture(broken)
# Holds: "The error when a text comes in four parts"
# Holds: "Heat map with 8 rows, one for each token. The first four"
# Holds: "Broken, only the first part is right."
assert seen[:4].max() < 1e-5 and seen[4:].amax(1).min() > 0.5
# Holds: "Mended, all parts are."
assert picture(mended).max() < 1e-5

# %% Exhibit 7: Two rows too many
# Which rows are read.
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

# Holds: "Grid with 8 rows for tokens and 10 columns for table rows"
# Holds: "Broken, the count begins at row 0 and includes the pads."
assert picture(broken).argmax(1).tolist() == list(range(8))
# Holds: "Six tokens read rows 2 to 7, and the two pads read row 1."
# Holds: "Counting from 0, all tokens read two rows too early"
# Holds: "Mended, real tokens begin at row 2, and both pads share row 1."
assert picture(mended).argmax(1).tolist() == [2, 3, 4, 5, 6, 7, 1, 1]
# Holds: "With `padding_idx` 1, row 0 is never read."
text = torch.full((1, 512), 5)
read = mended(text, torch.arange(514), 1)
assert (int(read.min()), int(read.max())) == (2, 513)
# Holds: "RoBERTa's table has 514 rows for texts of 512 tokens."
ids_of = RobertaEmbeddings.create_position_ids_from_input_ids
assert torch.equal(ids_of(text, 1)[0], torch.arange(2, 514))
# Holds: "Real tokens read the rows from `padding_idx + 1` on"
# Holds in What to remember: "Positions are counted in real tokens"
assert caught(check, broken) != caught(check, mended) == "passes"

# %% Exhibit 8: Twelve heads
seen, right = picture(broken), picture(mended)
# Holds: "Triangle of coloured cells, one row for each number of heads"
assert all(seen[n - 1, :n].diff().std() < 1e-4 for n in range(4, 17))
# Holds: "Rows between powers of two begin like the power below"
# Holds: "$n$ heads have the slopes of the largest power of two"
assert torch.equal(right[11, :8], right[7, :8])
assert torch.equal(right[11, 8:12], right[15, :8:2])
# Holds: "With 8 or 16 heads all is well."
assert all(torch.equal(broken(n), mended(n)) for n in (8, 16))
# Holds: "With 3, 5, 6, 7 or 12 heads a library made other slopes"
assert not any(broken(n).allclose(mended(n)) for n in (3, 5, 6, 7, 12))
# Holds: "And a reader who prints what"
assert (mended(12).diff() > 0).nonzero().tolist() == [[7]]

# The same of the captions.
# Holds: "Broken, every row falls evenly to the same last slope."
assert all(seen[n - 1, :n].diff().std() < 1e-4 for n in range(4, 17))
assert seen.diagonal().eq(-8).all()
# Holds: "Mended, with 9 to 15 heads the first eight keep the slopes of eight heads."
assert all(right[n - 1, :8].equal(right[7, :8]) for n in range(9, 16))

# %% Exhibit 9: Only the first word
from torch.nn.attention.bias import causal_lower_right

# Holds: "Grid with 4 rows for queries and 12 columns for keys"
# Holds: "Where there are fewer queries than keys"
assert (picture(broken) > 0).sum(1).tolist() == [1, 2, 3, 4]
right = picture(mended)
# Holds: "The four queries see 9, 10, 11 and 12 keys"
assert (right > 0).sum(1).tolist() == [9, 10, 11, 12]
assert torch.allclose(right.amax(1), 1 / torch.arange(9.0, 13))
q, k, v = torch.arange(288.0).square().sin().view(3, 1, 2, 6, 8)
# Training does not show it: as many queries as keys, and a mask.
assert torch.allclose(broken(q, k, v), mended(q, k, v), atol=1e-6)
attention = F.scaled_dot_product_attention
assert not torch.allclose(broken(q, k, v), attention(q, k, v))
lower = attention(q[:, :, 4:], k, v, causal_lower_right(2, 6))
assert torch.allclose(mended(q[:, :, 4:], k, v), lower, atol=1e-6)

# The same of the captions.
seen, right = (picture(each) > 0 for each in (broken, mended))
# Holds: "Broken, query 8 sees one key of its nine."
assert (int(seen[0].sum()), int(right[0].sum())) == (1, 9)
# Holds: "Mended, each query sees its own key and all before it."
assert torch.equal(right, torch.ones(4, 12).tril(8) > 0)

# %% Exhibit 10: A text and its twin in a batch
# Holds: "Heat map with one row for each number of pads, 0 to 8"
assert (picture(broken).amax(1) > 0.5).tolist() == [False] + [True] * 8
# Holds: "The mask hides the padding from attention"
# Holds: "Broken, one pad already moves every token."
assert picture(broken)[1:].min() > 0.1
# Holds: "Mended, none moves any."
assert picture(mended).max() < 1e-4
mask = torch.tensor([[0, 0, 0, 1, 1]])
last = broken(torch.zeros(1, 4, 16), mask[:, :4])[0, 3]
assert torch.equal(last, sinusoids(torch.tensor(3), 16))
count = mask.cumsum(1) - 1
# Holds: "The count alone would put pads in front at position -1"
assert count.tolist() == [[-1, -1, -1, 0, 1]]
table_of_eight, raised = torch.nn.Embedding(8, 4), False
try:
    table_of_eight(count)
except IndexError:
    raised = True
assert raised and table_of_eight(count.clamp(min=0)).shape == (1, 5, 4)
assert torch.arange(8)[count].tolist() == [[7, 7, 7, 0, 1]]

# The same in a small GPT-2 of random weights, with its causal mask.
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

ends = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0)
config = GPT2Config(vocab_size=9, n_embd=16, n_layer=2, n_head=2, **ends)
torch.manual_seed(0)
gpt2, ids = GPT2Model(config).eval(), torch.tensor([[0, 0, 0, 5, 6]])
with torch.no_grad():
    alone = gpt2(ids[:, 3:])[0]
    counted = gpt2(ids, attention_mask=mask)[0][:, 3:]
    at = count.clamp(min=0)
    right = gpt2(ids, attention_mask=mask, position_ids=at)[0][:, 3:]
# Holds: "A plain call of the model does not: its caller has to pass `position_ids`."
# Holds: "Our code leaves GPT-2's causal mask out"
one, other = torch.eye(4, 16)[None], torch.eye(4, 16)[None, [0, 1, 2, 2]]
whole = torch.ones(1, 4, dtype=torch.long)
first_of = [mended(each, whole)[0, 0] for each in (one, other)]
assert (first_of[0] - first_of[1]).abs().max() > 0.01
assert (counted - alone).abs().max() > 0.1 > 1e-4 > (right - alone).abs().max()
# `generate()` of that library counts from the mask.
writes = GPT2LMHeadModel(config).eval()
asked = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False, "output_logits": True}
padded, bare = (
    torch.stack(writes.generate(i, attention_mask=m, return_dict_in_generate=True, **asked).logits)
    for i, m in ((ids, mask), (ids[:, 3:], mask[:, 3:]))
)
assert (padded - bare).abs().max() < 1e-4
with torch.no_grad():
    plain = writes(ids, attention_mask=mask).logits[:, -1]
assert (plain - bare[0]).abs().max() > 1e-3

# The same of schemes.
from posembed import scheme

q = torch.randn(1, 2, 6, 8, generator=torch.manual_seed(0))
at, sizes = torch.arange(6), {"d_model": 16, "n_heads": 2, "causal": True}
rope, alibi = scheme("rope", **sizes), scheme("alibi", **sizes)
near, far = (rope.rotate(q, p) @ rope.rotate(q, p).mT for p in (at, at + 3))
# Holds: "For RoPE and ALiBi."
assert torch.allclose(near, far, atol=1e-4)
assert torch.equal(alibi.bias(q, q, at, at), alibi.bias(q, q, at + 3, at + 3))
# Holds: "For a learned table."
learned = scheme("learned", **sizes, n_positions=16)
x = torch.zeros(1, 6, 16)
assert not torch.equal(learned.add(x, at), learned.add(x, at + 3))


# %% The properties on one page
# One test of RoPE, a cache and a mask.
def attend_in_parts(x, pads, sizes, bug):
    rope, keys, values, out = scheme("rope", d_model=16, n_heads=1), [], [], []
    tokens = torch.cat([torch.ones(pads, 16), x])
    for part in tokens.split(sizes):
        old = sum(map(len, keys))
        at = torch.arange(len(part)) + (0 if bug == "cache" else old)
        turned = rope.rotate(part[None, None], at)[0, 0]
        keys, values = [*keys, turned], [*values, part]
        logits = turned @ torch.cat(keys).T / 4
        seen = torch.ones_like(logits).tril(0 if bug == "mask" else old) > 0
        if bug != "padding":
            seen[:, :pads] = False
        out.append(logits.where(seen, -1e9).softmax(1) @ torch.cat(values))
    return torch.cat(out)[pads:]


x = torch.arange(128.0).square().sin().view(8, 16)
alone = attend_in_parts(x, 0, [8], None)
off = {
    bug: float((attend_in_parts(x, 3, [7, 1, 3], bug) - alone).abs().max())
    for bug in (None, "cache", "mask", "padding")
}
# Holds: "Feed a left-padded text in parts, and compare"
assert off.pop(None) < 1e-5 and min(off.values()) > 0.05
# By definition: "Compare the loss with a published number."
# By definition in What to remember: "What weights were trained with is the definition"
# Holds in What to remember: "Positional bugs need not crash: of these ten, which we chose, one"
first = {each for each in reports if "crash" in each}
assert first == {"width 3 crashes: keep d_model // 2 of the cosines"}
# Holds in A museum of positional bugs: "A property of a few lines catches each; half of these need no right answer"
# Exhibits 2, 3, 4, 7 and 8 are held against exponents, rows, slopes.
assert len({*reports} - {None}) >= 10
# Holds in A museum of positional bugs: "Of these ten bugs, all reported by users of real libraries"
# By definition in A museum of positional bugs: "a text in its batch, behind padding, in parts"
# By definition in A museum of positional bugs: "In a hurry, visit exhibits 1, 6, 9 and 10: any code with a batch"
# By definition in What to remember: "Many properties need no right answer to compare with."

# %% And your own model?
# By definition: "{func}`posembed.audit <posembed.auditing.audit>` asks the same of a whole model, on random tokens"
# Holds: "Here is a small Llama whose positions are scaled by four in a line that no config tells of"
# Holds: "Saved and loaded, the model has its former angles again, and nothing says so."
again = LlamaForCausalLM(llama.config)
again.load_state_dict(llama.state_dict())
assert torch.allclose(again.model.rotary_emb.inv_freq, 4 * llama.model.rotary_emb.inv_freq)
assert [each.check for each in posembed.audit(llama).broken] == ["saved and loaded"]
# By definition: "An audit finds what contradicts itself, not a number that is wrong everywhere alike."

# %% Exercises
# Holds: "Query and key turn by the same angle too much, so their products are"
right = from_one(q.expand(32, 16), at - 1) @ from_one(k.expand(32, 16), at - 1).T
assert torch.allclose(products, right, atol=1e-4)
# Holds: "In a learned table that was trained from row 0 the same line"
# Holds: "Exhibits 2 to 4 refuse it only because they expect the angles to begin"
rows = (torch.arange(8) + 1).tolist()  # of a table of 8
assert 0 not in rows and rows[-1] == 8


# How far position 0 moves, checked.
def moved_by(x, start):
    shifted = from_one(x, torch.full((len(x),), start))
    return (shifted - x).norm(dim=1) / x.norm(dim=1)


# Holds: "yours should move the first vector below by 0.43 of its length"
some = torch.randn(10_000, 16, generator=torch.manual_seed(1))
assert abs(moved_by(some, 0).mean() - 1 / 3) < 0.01
first = torch.randn(32, 16, generator=torch.manual_seed(0))[:1]
in_halves = first.view(2, 8).T.reshape(1, 16)  # the same pairs side by side
assert round(float(moved_by(first, 0)), 2) == 0.43
assert round(float(moved_by(in_halves, 0)), 2) == 0.34
