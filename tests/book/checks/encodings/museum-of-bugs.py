# %% Exhibit 1: The clock that stands still
their_properties = {check}  # each exhibit's property
seen, right = picture(broken), picture(mended)
# Holds: "Heat map of products in a single colour."
# Holds: "Broken, all are the same: no position is seen."
assert (seen - seen[0, 0]).abs().max() < 1e-5 and seen[0, 0].abs() > 0.1
# Holds: "Straight stripes along the diagonals, one colour for each offset."
# Holds: "Mended, each diagonal has one colour: the offset alone decides."
assert (right[1:, 1:] - right[:-1, :-1]).abs().max() < 1e-4 < right.std()
# Holds: "So the first head was not turned, the second by one step"
x = numbers(2, 5, 3, 16)
turned = broken(x)
for head in range(3):
    assert torch.allclose(turned[:, :, head], turn(x[:, :, head], head * frequencies(16)), atol=1e-5)
# Holds: "Query and key turn together, which leaves their product as it was."
assert torch.allclose(turned[0, 1, 2] @ turned[0, 4, 2], x[0, 1, 2] @ x[0, 4, 2], atol=1e-4)
# "The same in a table": a batch of three, rows along its first axis.
rows = torch.arange(512)[:, None] * frequencies(16)
added = torch.zeros(3, 8, 8) + rows[: torch.zeros(3, 8, 8).shape[0], None]
assert torch.equal(added, rows[:3, None].expand(3, 8, 8)) and len(added[1].unique(dim=0)) == 1

# %% Exhibit 2: Two halves that do not match
their_properties.add(check)
seen, right = picture(broken), picture(mended)
# Holds: "Heat map of products over the positions of query and key."
# Holds: "Broken, follow a diagonal: at one offset the product changes."
# Holds: "Along the diagonals the colour changes: blobs in place of stripes."
assert (seen[1:, 1:] - seen[:-1, :-1]).abs().max() > 0.5
# Holds: "Straight stripes along the diagonals"
# Holds: "Mended, each diagonal has one colour."
assert (right[1:, 1:] - right[:-1, :-1]).abs().max() < 1e-4 < right.std()
# Holds in Room 1: The wrong axis or pair: "One property catches both exhibits."
assert caught(check, broken) != caught(check, mended) == "passes"
# Holds: "The two columns of a pair turn with different speeds, so what comes out is no rotation of pairs."
x = numbers(1, 32, 1, 16)
lengths = [each(x).unflatten(-1, (8, 2)).norm(dim=-1) for each in (broken, mended)]
pairs = x.unflatten(-1, (8, 2)).norm(dim=-1)
assert (lengths[0] - pairs).abs().max() > 0.1 > 1e-4 > (lengths[1] - pairs).abs().max()

# %% Exhibit 3: Half a table
their_properties.add(check)
seen, right = picture(broken), picture(mended)
# Holds in A museum of positional bugs: "Heat maps of two tables of 64 positions and 64 columns."
# Holds in A museum of positional bugs: "One of them is wrong, and exhibit 3 says which."
# Holds in A museum of positional bugs: "Both come from code that runs."
drawn_first = [torch.where(even, each.sin(), each.cos()) for each in made.values()]
assert torch.allclose(drawn_first[0], seen, atol=1e-4) and torch.allclose(drawn_first[1], right, atol=1e-4)
moved, moves = (image.amax(0) - image.amin(0) for image in (seen, right))
# Holds: "Heat map of a table of 64 positions and 64 columns"
# Holds: "Broken, the waves die out early: the right half stands nearly still."
assert moved[32:].max() < 0.1 < moved[:16].min()
# Holds: "The waves reach twice as far to the right"
# Holds: "Mended, about twice as many columns move."
last = [int((each > 0.1).nonzero().max()) for each in (moved, moves)]
assert last == [22, 44]
# Holds: "The code let it count columns: the exponents grow twice as fast"
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


# "Odd widths": sines and cosines made apart, and two repairs of the crash.
def made_apart(n_positions, d_model, cut=False):
    angles = torch.arange(n_positions)[:, None] * frequencies(d_model)
    table = torch.zeros(n_positions, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : d_model // 2 if cut else None]
    return table


try:
    made_apart(64, 29)
except RuntimeError as refusal:
    crash = str(refusal)
assert "(14) must match the existing size (15)" in crash
# Holds: "The last cosine has to go."
assert torch.allclose(made_apart(64, 29, cut=True), mended(64, 29), atol=1e-4)


# Holds: "To round the width up runs as well, and changes the exponents of all pairs but the first."
def rounded_up(n_positions, d_model):
    return mended(n_positions, d_model + d_model % 2)[:, :d_model]


wrong = (rounded_up(64, 7) - mended(64, 7)).abs().amax(0) > 1e-3
assert wrong.tolist() == [False, False, True, True, True, True, True]
assert "at width 31 pair 1 has exponent" in caught(check, rounded_up)

from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.whisper.modeling_whisper import sinusoids as whisper_sinusoids

# Holds: "M2M100's and Whisper's exponents go to 1 itself, which is right for their weights."
m2m100 = M2M100SinusoidalPositionalEmbedding.get_embedding(100, 64)
for theirs in (m2m100, whisper_sinusoids(100, 64)):
    sines, cosines = theirs.double().split(32, dim=1)
    exponents = -torch.atan2(sines[1], cosines[1]).log10() / 4
    assert torch.allclose(exponents, torch.arange(32).double() / 31, atol=1e-3)

# %% Exhibit 4: Twins
their_properties.add(check)
# What is seen, and what is rounded.
steps, waves = ((image[1:] != image[:-1]).any(1) for image in map(picture, (broken, mended)))
# Holds: "Heat map of 64 positions. The rows come in blocks of equal rows"
# Holds: "Broken, look at the stairs: neighbouring positions share a row."
assert steps.sum() <= 32
# Holds: "The stairs have become waves"
# Holds: "Mended, the stairs are gone: each row differs from the one before."
assert waves.all()
# Holds: "Print `torch.tensor(257).bfloat16()`."
assert torch.tensor(257).bfloat16() == 256
# Holds: "Neighbouring rows differ, and a row in half precision is within 0.01"
# Holds in What to remember: "Compute angles in full precision and round"
assert caught(check, broken) != caught(check, mended) == "passes"
# Holds in Exercises: "Exhibits 3 and 4 refuse it only because they expect the angles to begin"
assert "0.96" in caught(check, lambda p, d, dtype: mended(p + 1, d, dtype))

# The same in float16, of a head of width 32 and 2,048 positions.
exact = torch.arange(2048)[:, None].double() * 1e4 ** (-torch.arange(16) / 16)
cosines = broken(torch.arange(2048), 32, torch.float16)[:, :16].double()
off = (cosines - exact.cos()).abs()
# Holds: "A user computes rotary positions in float16"
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
# Holds: "float16 has them whole up to 2,048, but rounds speeds and angles, these from 512 on to halves and from"
assert torch.tensor(1500.3).half() == 1500
assert torch.arange(2049).half().unique().numel() == 2049 and torch.tensor(600.3).half() == 600.5
assert torch.tensor(257.0).bfloat16() == 256 and torch.tensor(514.0).bfloat16() == 512

# %% Exhibit 5: A text and its twin in a batch
their_properties.add(check)
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
assert (counted - alone).abs().max() > 0.1 > 1e-4 > (right - alone).abs().max()
# Holds: "Our code leaves GPT-2's causal mask out."
one, other = torch.eye(4, 16)[None], torch.eye(4, 16)[None, [0, 1, 2, 2]]
whole = torch.ones(1, 4, dtype=torch.long)
first_of = [mended(each, whole)[0, 0] for each in (one, other)]
assert (first_of[0] - first_of[1]).abs().max() > 0.01
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

# "RoBERTa begins elsewhere": of 514 rows its tokens read 2 to 513, and its padding row 1.
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

ids_of = RobertaEmbeddings.create_position_ids_from_input_ids
assert torch.equal(ids_of(torch.full((1, 512), 5), 1)[0], torch.arange(2, 514))
assert ids_of(torch.tensor([[5, 6, 1, 1]]), 1).tolist() == [[2, 3, 1, 1]]
# Holds: "A library counted them from 0, so all read two rows too early"
assert (ids_of(torch.full((1, 512), 5), 1)[0] - torch.arange(512)).unique().tolist() == [2]

# %% Exhibit 6: Always at the beginning
their_properties.add(check)
seen = picture(broken)
# Holds: "The error when a text comes in four parts"
# Holds: "Heat map with 8 rows, one for each token. The first four"
# Holds: "Broken, only the first part is right."
assert seen[:4].max() < 1e-5 and seen[4:].amax(1).min() > 0.5
# Holds: "Mended, all parts are."
assert picture(mended).max() < 1e-5
# Holds in What to remember: "Positions are counted in real tokens of one text"
assert caught(check, broken) != caught(check, mended) == "passes"


# Holds: "With one of the two lines mended the property still refuses the code"
# Holds: "Here two lines are wrong."
def half_mended(x, cache, of):
    past = sum(map(len, cache)) if of == "positions" else 0
    cache.append(x + sinusoids(torch.arange(len(x)) + past, x.shape[1]))
    q, k = cache[-1], torch.cat(cache)
    seen = torch.ones(len(q), len(k)).tril(len(k) - len(q) if of == "mask" else 0) > 0
    return F.scaled_dot_product_attention(q, k, k, attn_mask=seen)


for half in ("positions", "mask"):
    assert caught(check, lambda x, cache, half=half: half_mended(x, cache, half)) != "passes"

from torch.nn.attention.bias import causal_lower_right

# Holds: "Where there are fewer queries than keys, `is_causal=True` holds the first query against the first key"
# Holds: "The queries are the last ones, so it belongs at the bottom right"
q, k = torch.zeros(1, 1, 4, 12), torch.zeros(1, 1, 12, 12)
v, attention = torch.eye(12)[None, None], F.scaled_dot_product_attention
top_left = attention(q, k, v, is_causal=True)[0, 0] > 0
assert torch.equal(top_left, torch.ones(4, 12).tril() > 0)
lower = attention(q, k, v, causal_lower_right(4, 12))[0, 0] > 0
assert torch.equal(lower, torch.ones(4, 12).tril(8) > 0)

# %% Exhibit 7: Neighbours in a pack
their_properties.add(check)
seen, right = (picture(each) > 1e-4 for each in (broken, mended))
# Holds: "Grid with 12 rows and 12 columns; all cells on and below the diagonal are coloured."
# Holds: "Broken, one triangle: later texts see earlier ones."
assert torch.equal(seen, torch.ones(12, 12).tril() > 0)
# Holds: "Three smaller triangles along the diagonal, of 5, 4 and 3 tokens; all else is blank."
# Holds: "Mended, three triangles: each text sees itself alone."
assert torch.equal(right, torch.block_diag(*(torch.ones(n, n).tril() for n in (5, 4, 3))) > 0)
# Holds: "A text in a pack gives what it gives alone."
assert caught(check, broken) != caught(check, mended) == "passes"


# Holds: "**Positions that go on counting** behind a right mask give a text other rows of a table."
def goes_on(x, text):
    seen = (text[:, None] == text).tril()
    return attend(x + sinusoids(torch.arange(len(x)), x.shape[1]), seen)


assert caught(check, goes_on) != "passes"


# Holds: "With RoPE, which knows offsets alone, they do no harm."
def rotated(x, text, start):
    positions = torch.arange(len(x)) if start is None else torch.cat([torch.arange(n) for n in text.bincount()])
    q = turn(x, positions[:, None] * frequencies(x.shape[1]))
    logits = (q @ q.T).masked_fill(~(text[:, None] == text).tril(), -torch.inf)
    return logits.softmax(-1) @ x


x, text = numbers(12, 16), torch.tensor(5 * [0] + 4 * [1] + 3 * [2])
assert torch.allclose(rotated(x, text, None), rotated(x, text, 0), atol=1e-4)

# %% Exhibit 8: The other quarter
their_properties.add(check)
still = [(picture(each).abs().amax(0) < 1e-6) for each in (broken, mended)]
# Holds: "Heat map of 32 positions and 32 columns; only the left quarter is coloured."
# Holds: "Broken, the first eight columns change."
# Holds: "What a quarter of a head of 32 columns does to ones, position by position."
assert (~still[0]).nonzero().flatten().tolist() == list(range(8))
# Holds: "Two strips of four columns are coloured, one at the left side, one from the middle on."
# Holds: "Mended, columns 0 to 3 and 16 to 19 do: the four fastest pairs of the whole head."
assert (~still[1]).nonzero().flatten().tolist() == [0, 1, 2, 3, 16, 17, 18, 19]
assert (frequencies(32).diff() < 0).all()
# Holds: "Of proportional RoPE: what turns in a part of a head turns as in the whole head"
# By definition: "(Partial RoPE should fail this.)"
assert caught(check, broken) != caught(check, mended) == "passes"

from transformers import Gemma4TextConfig

from posembed.encodings import RoPE, alibi_slopes

# Holds: "This code has the speeds of the second and the pairs of the first."
x, at = numbers(64, 32), torch.arange(64)
assert torch.allclose(RoPE(32, fraction=0.25, pairs="proportional").rotate(x, at), mended(x, 0.25), atol=1e-4)
partial = RoPE(32, fraction=0.25)
slower = partial.frequencies / frequencies(32)[:4]
assert slower[0] == 1 and slower[1:].max() < 0.5
pairs_of_the_first = turn(x[:, :8], at[:, None] * frequencies(32)[:4])
assert torch.allclose(broken(x, 0.25)[:, :8], pairs_of_the_first, atol=1e-5)
# Holds: "In some layers of Gemma 4 a quarter of each head turns, in a way that its config calls `proportional`."
full = Gemma4TextConfig().rope_parameters["full_attention"]
assert (full["rope_type"], full["partial_rotary_factor"]) == ("proportional", 0.25)
# "A number of heads": for 12 the slopes of 8, then every second one of 16; not one series.
slopes = alibi_slopes(12)
assert torch.allclose(slopes, torch.cat([alibi_slopes(8), alibi_slopes(16)[:8:2]]))
assert (slopes - 2.0 ** (-8 * torch.arange(1, 13) / 12)).abs().max() > 0.5

# By definition in Room 4: The wrong reading: "The code is right, but for another model's weights."

# %% Exhibit 9: One layer in six
their_properties.add(check)
seen, right = picture(broken), picture(mended)
# Holds: "Heat map with 12 equal rows, one for each layer, that fall from left to right."
# Holds: "Broken, all layers are alike."
assert torch.equal(seen, seen[:1].expand(12, 16)) and (seen.diff(dim=1) < 0).all()
# Holds: "Ten rows fall less far; the sixth and the twelfth are as before."
# Holds: "Mended, two of twelve are slower than the rest."
faster = (right > seen).all(1)
assert (~faster).nonzero().flatten().tolist() == [5, 11] and torch.equal(right[~faster], seen[~faster])
# Holds: "The slowest pair of each layer turns as the config says for its kind."
# Holds: "So this property needs the right numbers."
assert caught(check, broken) != caught(check, mended) == "passes"

from transformers import Gemma3TextConfig

# Holds: "Of six layers of Gemma 3 five see a window of near tokens and one sees all"
config = Gemma3TextConfig(head_dim=32, num_hidden_layers=12)
assert config.layer_types == gemma()["layer_types"]
config.rope_parameters["full_attention"] |= {"rope_type": "linear", "factor": 8.0}
for layer in range(12):
    ours = RoPE.from_config(config, layer).frequencies
    assert torch.allclose(ours, mended(config.to_dict(), layer, 32).to(ours), rtol=1e-4)
    assert torch.allclose(ours, mended(gemma(), layer, 32).to(ours), rtol=1e-4)
# Holds: "Offsets, padding, parts and packs are as they should be: each layer agrees with itself."
x = numbers(12, 32)
near, far = (turn(x, (torch.arange(12) + move)[:, None] * broken(gemma(), 0, 32)) for move in (0, 9))
assert torch.allclose(near @ near.T, far @ far.T, atol=1e-3)

# %% Exhibit 10: Places of another grid
their_properties.add(check)
seen, right = picture(broken), picture(mended)
# Holds: "Grid with 8 rows and 8 columns. Rows are faint and strong in turn"
# Holds: "Broken, one row of patches goes to the middle of the image, and the next goes on from there."
assert torch.allclose(seen.flatten(), torch.linspace(0, 1, 16).repeat(4), atol=1e-6)
assert seen[0::2].max() < 0.5 < seen[1::2].min()
# Holds: "All rows are the same and go from faint to strong."
# Holds: "Mended, every row goes from side to side."
assert (right - right[:1]).abs().max() < 1e-6 and (right.diff(dim=1) > 0).all()
assert right[:, 0].max() < 0.05 and right[:, -1].min() > 0.95
# Holds: "A table that tells how far down and how far across each patch stands"
assert caught(check, broken) != caught(check, mended) == "passes"
# Holds: "A model of images is given another grid of patches, here 8 by 8 for 4 by 16."
# Holds: "Both grids have 64 patches, so the table is kept."
# Holds: "How many patches are 4 by 16, and how many are 8 by 8?"
rows = numbers(64, 3)
assert broken(rows, (4, 16), (8, 8)) is rows and mended(rows, (4, 16), (8, 8)) is not rows
# "A factor in place of a size": 60 of 61.
assert F.interpolate(torch.zeros(1, 1, 14, 14), scale_factor=61 / 14).shape[-1] == 60


# %% The properties on one page
# One test of RoPE, a cache and a mask.
from posembed import scheme


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


x = numbers(8, 16)
alone = attend_in_parts(x, 0, [8], None)
off = {
    bug: float((attend_in_parts(x, 3, [7, 1, 3], bug) - alone).abs().max())
    for bug in (None, "cache", "mask", "padding")
}
# Holds: "Feed a left-padded text in parts, and compare"
assert off.pop(None) < 1e-5 and min(off.values()) > 0.05
# By definition: "Compare the loss with a published number."
# By definition in What to remember: "What weights were trained with is the definition"
# Each `judge` ran the broken code: a crash would have stopped the page.
# Holds in What to remember: "Positional bugs need not crash: of these ten, which we chose, none does."
# Holds in A museum of positional bugs: "None of these ten bugs crashes"
assert len({*reports}) >= 10
# Exhibits 3, 4 and 9 are held against exponents, exact rows and the config's numbers; exhibit 2 has that of exhibit 1.
# Holds in A museum of positional bugs: "A property of a few lines catches each."
assert len(their_properties) == 9
numbers_that_are_right = {"pair 1 has exponent", "are identical", "turns its slowest pair by"}
assert all(any(part in report for report in reports) for part in numbers_that_are_right)
# By definition in A museum of positional bugs: "a query together with its key, a text behind padding, in parts, in a"
# By definition in A museum of positional bugs: "One of a room shows its kind."
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
at = torch.arange(32)[:, None, None]
turned = [turn(each, at * frequencies(16))[0, :, 0] for each in (q, k)]
assert torch.allclose(products, turned[0] @ turned[1].T, atol=1e-4)
# Holds: "In a learned table that was trained from row 0 the same line"
rows = (torch.arange(8) + 1).tolist()  # of a table of 8
assert 0 not in rows and rows[-1] == 8
# Holds: "yours should move the first vector below by 0.33 of its length with pairs as in exhibit 1"
first = numbers(1, 32, 1, 16)
moved = (from_one(first) - first)[0, 0].norm() / first[0, 0].norm()
assert round(float(moved), 2) == 0.33
in_halves = first.unflatten(-1, (8, 2)).mT.flatten(-2)  # neighbours where halves were
moved = (from_one(in_halves) - in_halves)[0, 0].norm() / first[0, 0].norm()
assert round(float(moved), 2) == 0.3
