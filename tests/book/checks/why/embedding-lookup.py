# %% Try it: look up, then learn
# The same of the figure.
import torch
import torch.nn.functional as F

from posembed.widgets.lookup import BATCH, WORDS

eight = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
# Holds: "Pick a word: the product is its row."
assert torch.equal(torch.eye(8) @ eight, eight)
# Holds: "Take steps: the rows of dog and ran, which the batch lacks, never"
assert {WORDS[i] for i in range(8) if i not in BATCH} == {"dog", "ran"}
used = eight.clone().requires_grad_()
F.embedding(torch.tensor(BATCH), used).square().sum().backward()
assert used.grad.any(dim=1).tolist() == [i in BATCH for i in range(8)]

# %% Why a layer of its own
# Holds: "For 512 ids and a table of 32,768 rows the one-hot matrix takes 67 MB a batch"
# Holds: "With the 512 rows of a position table the matrix is a megabyte"
assert round(4 * 512 * 32768 / 1e6) == 67 and round(4 * 512 * 512 / 1e6) == 1

# %% Which rows learn
# One step for ids 3 and 5 of eight rows.
import warnings


def rows_moved(make, ids=(3, 5), steps=1, fill=None, **options):
    torch.manual_seed(0)
    layer = nn.Embedding(8, 4, **options)
    if fill is not None:
        nn.init.constant_(layer.weight, fill)
    start = layer.weight.detach().clone()
    optimizer = make(layer.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        layer(torch.tensor(ids)).pow(2).sum().backward()
        with warnings.catch_warnings(action="ignore"):
            optimizer.step()
    return (layer.weight != start).any(dim=1).nonzero().flatten().tolist()


# Holds: "**the row of a position past the longest text in the training data"
optim, three_tokens = torch.optim, (0, 1, 2)
assert rows_moved(optim.SGD, three_tokens, steps=9) == [0, 1, 2]
# Holds: "In a fresh table it starts at zero, the lookup gives it no gradient,"
# By definition: "`padding_idx=0` names a row for {term}`padding`."
assert not nn.Embedding(8, 4, padding_idx=0).weight[0].any()
assert rows_moved(optim.SGD, three_tokens, padding_idx=0) == [1, 2]
decayed = rows_moved(optim.AdamW, three_tokens, padding_idx=0, fill=1.0)
assert 0 in decayed


# A text of three tokens, padded to five.
def rows_reached(masked, left=False, pooled=None):
    torch.manual_seed(0)
    table = nn.Embedding(8, 4)
    x = torch.randn(5, 4) + table(torch.arange(5))
    place = torch.arange(5)
    padding = place < 2 if left else place >= 3
    hidden = padding if masked else padding & False
    weights = (x @ x.T).masked_fill(hidden, -torch.inf).softmax(dim=-1)
    outputs = (weights @ x)[~hidden if pooled is None else pooled]
    outputs.mean(dim=0).square().sum().backward()
    return rows_with_gradient(table)


# Holds: "That holds as long as each text counts from its own first token"
# Holds in What to remember: "Rows of positions past the longest training text never get one, as"
assert rows_reached(masked=True) == [0, 1, 2]
assert rows_reached(masked=False) == [0, 1, 2, 3, 4]
# A mean over all places reads what stands at padded ones.
assert rows_reached(masked=True, pooled=slice(None)) == [0, 1, 2, 3, 4]
# Padding in front, and positions counted by place.
assert rows_reached(masked=True, left=True) == [2, 3, 4]

assert rows_with_gradient(gradient_of_batch(padding_idx=0)) == [3, 7, 12]
filled = nn.Embedding.from_pretrained(torch.ones(2, 3), padding_idx=0)
assert filled.weight[0].all()  # not a fresh table
sparse = gradient_of_batch(sparse=True).weight.grad
# Holds: "`sparse=True` stores one row for each lookup, here eight for four"
assert sparse._nnz() == 8 and sparse.coalesce()._nnz() == 4
# Holds: "That saves memory for large tables; for a position table, in which"
for_positions = {}
for option in (False, True):
    layer = nn.Embedding(512, 64, sparse=option)
    layer(torch.arange(512).expand(32, 512)).sum().backward()
    for_positions[option] = gradient_bytes(layer)
assert for_positions[True] > 30 * for_positions[False]

# The same of word tables that also make the logits.
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
)

# Holds: "A word table that also makes the logits, as in BERT and GPT-2, gets"
# Holds: "Their position tables have no such second use."
ends = {"bos_token_id": 0, "eos_token_id": 0}
bert = BertForMaskedLM(BertConfig(vocab_size=50, num_hidden_layers=1))
gpt = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_layer=1, **ends))
tables = (bert.bert.embeddings.position_embeddings, gpt.transformer.wpe)
for lm, table in zip((bert, gpt), tables, strict=True):
    lm(torch.tensor([[5, 6]])).logits.logsumexp(dim=-1).sum().backward()
    assert rows_with_gradient(lm.get_input_embeddings()) == list(range(50))
    assert rows_with_gradient(table) == [0, 1]


# On 8 rows of which 3 are used.
# Holds: "The layer does not know that 300 comes after 127. No row learns from"
# Holds: "Right. It has never had a gradient, so there is no momentum either"
def momentum(parameters, lr):
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9)


assert rows_moved(momentum, (0, 1, 2), steps=9) == [0, 1, 2]


# Holds: "A row goes to zero when weight decay shrinks it, and there is none"
def with_decay(parameters, lr):
    return torch.optim.SGD(parameters, lr=lr, weight_decay=0.1)


assert rows_moved(with_decay, (0, 1, 2), steps=9) == list(range(8))
# By definition in Try it: look up, then learn: "Then switch `padding_idx=0` on, start again, and repeat."

# %% nn.Embedding or nn.Parameter?
# By definition: "Packed batches put several texts into one row, and each"
packed = torch.cat([torch.arange(3), torch.arange(2)])
assert torch.equal(as_embedding(packed)[3:], as_parameter[:2])
assert torch.equal(as_embedding(packed), as_parameter[packed])
grads = [
    torch.autograd.grad(rows.square().sum(), table)[0]
    for rows, table in (
        (as_embedding(packed), as_embedding.weight),
        (as_parameter[packed], as_parameter),
    )
]
assert torch.equal(*grads)

# The same of what is near.
# Holds: "To the layer, 3 is no closer to 4 than to 400; whatever order the"
# A step of training at position 3 moves row 3, and row 4 no more than row 400.
layer = nn.Embedding(512, 8)
before = layer.weight.detach().clone()
layer(torch.tensor([3])).square().sum().backward()
torch.optim.SGD(layer.parameters(), lr=0.1).step()
by_row = (layer.weight.detach() - before).abs().sum(dim=1)
assert by_row.nonzero().flatten().tolist() == [3]

# On the encoder of chapter 1.
import posembed


def third_token(n_padding, position_ids):
    text, padding = tokenizer("I do like coding").input_ids, [0] * n_padding
    given = torch.tensor([padding + text])
    mask = torch.tensor([[0] * n_padding + [1] * len(text)])
    out = model(given, attention_mask=mask, position_ids=position_ids)
    return out.last_hidden_state.detach()[0, n_padding + 2]


model, tokenizer = posembed.load_encoder()
alone = third_token(0, torch.arange(6)[None])
# Holds: "Right. The same text then gets the same rows, whatever stands beside"
counted = third_token(2, torch.tensor([[0, 0, 0, 1, 2, 3, 4, 5]]))
assert (counted - alone).abs().max() < 1e-5
# Holds: "Then the text is given other rows than without padding, and its"
# Holds: "The mask keeps attention from the padding. Which rows the text's own"
assert (third_token(2, torch.arange(8)[None]) - alone).abs().max() > 0.05

from transformers import GPT2Model, ViTConfig, ViTModel

# Holds: "In the transformers library BERT and GPT-2"
gpt2 = GPT2Model(GPT2Config(n_layer=1, n_embd=8, n_head=1))
small = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1}
vit = ViTModel(ViTConfig(num_hidden_layers=1, **small))
assert type(model.embeddings.position_embeddings) is nn.Embedding
assert type(gpt2.wpe) is nn.Embedding
assert type(vit.embeddings.position_embeddings) is nn.Parameter


# %% Before and after training
def similarity(table, offset):
    first, second = table[: 60 - offset], table[offset:60]
    return F.cosine_similarity(first, second).mean()


assert all(abs(similarity(before, offset)) < 0.2 for offset in (1, 2, 3))
assert all(similarity(after, offset) > 0.5 for offset in (1, 2, 3))
assert similarity(after, 10) < 0.2  # far beyond the reach of the game

# Holds: "Positions 60 to 63 are left out of the game."
assert max(first.max(), near.max(), other.max()) < 60
# Holds: "Cosine similarity of every two rows of the table. Before training"
assert max(abs(similarity(before, offset)) for offset in range(1, 40)) < 0.2
# Holds: "Rows up to three places apart have become alike; the last four, left"
assert min(similarity(after, offset) for offset in (1, 2, 3)) > 0.5
assert torch.equal(after[60:], before[60:])

# %% Where a table starts
# Holds: "`nn.Embedding` draws from a normal distribution with standard"
assert abs(default.weight.mean()) < 0.01
assert abs(default.weight.std() - 1) < 0.01

word_length, position_length = (table.weight.norm(dim=1).mean() for table in (bert_like, default))
total = (bert_like.weight + default.weight).detach()
to_word = F.cosine_similarity(total, bert_like.weight).mean()
to_position = F.cosine_similarity(total, default.weight).mean()
# Holds: "It is the other way round: the word row is the short one of the two."
assert word_length < position_length / 10
# Holds: "Right. A length of 0.4 is added to one of 19.6."
assert (round(word_length.item(), 1), round(position_length.item(), 1)) == (
    0.4,
    19.6,
)
assert to_position > 0.99 and to_word < 0.1

# Holds: "The lengths are as the standard deviations, 0.02 to 1."
assert abs(word_length / position_length - 0.02) < 0.001

# Holds: "In the transformers library BERT draws with 0.02."
assert BertConfig().initializer_range == 0.02
drawn = bert.bert.embeddings.position_embeddings.weight
assert abs(drawn.std() - 0.02) < 0.001

matrix_of_ones = torch.ones(2, 3)
assert not nn.Embedding.from_pretrained(matrix_of_ones).weight.requires_grad
thawed = nn.Embedding.from_pretrained(matrix_of_ones, freeze=False)
assert thawed.weight.requires_grad and torch.equal(thawed.weight, matrix_of_ones)
clipped = nn.Embedding(4, 16, max_norm=1.0).eval()
untouched = clipped.weight.detach().clone()
clipped(torch.tensor([1, 2]))
# By definition: "The option `max_norm` shortens rows in the table itself while it reads"
# By definition: "A table of positions is better off without."
assert (clipped.weight != untouched).any(dim=1).nonzero().flatten().tolist() == [1, 2]

# %% BERT adds three tables
# Holds: "A matrix that reads them side by side is one for each, and adds what these give"
# By definition: "After a sum both have one matrix, $W(x + p)$, and no vector is longer than before."
# By definition: "Training can give words and positions directions of their own; nothing makes it."
both, one_word, one_position = torch.randn(8, 5).double(), torch.randn(4).double(), torch.randn(4).double()
assert torch.allclose(torch.cat([one_word, one_position]) @ both, one_word @ both[:4] + one_position @ both[4:])
with torch.no_grad():
    # Holds: "rescales each token's vector as a whole, so scaling all three rows alike changes nothing"
    alike = parts.LayerNorm(7 * (word + position + segment))
    assert torch.allclose(alike, by_hand, rtol=0, atol=1e-5)
    # Holds: "What counts is how long the three rows are beside each other."
    longer_beside = parts.LayerNorm(word + 7 * position + segment)
    assert (longer_beside - by_hand).abs().max() > 1

# Holds: "its row is several times longer than the next ones"
# By definition: "It always carries `[CLS]`; whether that is why was not tested."
lengths = position.norm(dim=1)
assert lengths[0] > 4 * lengths[1:].max()
# Holds: "Half of this small model is its word table. Its positions are one parameter in a hundred"
shares = [getattr(parts, f"{kind}_embeddings").weight.numel() / total for kind in ("word", "position")]
assert [round(100 * share) for share in shares] == [52, 1]

# %% Exercises
# Holds: "The gradient that arrives at each looked-up number is 1."
# Holds: "Row 3 occurs twice, so its gradient is 2 everywhere; row 5 gets 1,"
assert layer.weight.grad[[3, 5, 6], 0].tolist() == [2, 1, 0]


def step_of(make):
    start = layer.weight.detach().clone()
    make(layer.parameters(), lr=0.01).step()
    return (layer.weight.detach() - start).abs()[[3, 5]]


# Holds: "In a step of plain gradient descent row 3 moves twice as far as row"
plain = step_of(torch.optim.SGD)
assert torch.allclose(plain[0], 2 * plain[1], atol=1e-6)
# Holds: "Adam divides by the size of the gradient, and in its first step both"
assert (step_of(torch.optim.Adam) - 0.01).abs().max() < 1e-5

# Holds in Which rows learn: "We train a table for 20 steps. Some rows are in every batch"
# Holds in Which rows learn: "Momentum goes on moving a row after the step"
# Holds in Which rows learn: "`AdamW` shrinks all rows by its default"
# Holds in What to remember: "Momentum moves a row after its last gradient, and AdamW's weight decay"
import inspect

assert inspect.signature(moved_by_last_step).parameters["steps"].default == 20
used, once, unused = slice(0, 4), 4, slice(5, 8)
for name in optimizers:
    moved = moved_by_last_step(name)
    assert (moved[used] > 0).all()
    assert (moved[once] > 0) == (name in ("momentum", "Adam", "AdamW"))
    assert moved[unused].any() == (name == "AdamW")

# Holds: "After about 6,931 steps, $\ln 2$ divided by a ten-thousandth."
assert abs((1 - 1e-4) ** 6931 - 0.5) < 1e-4
# Holds: "AdamW's decay shrinks such a row and keeps its random direction"
assert cosine > 0.9999 and abs(row.norm() / drawn.norm() - 0.5) < 1e-3
# Holds: "In bfloat16 a ten-thousandth is less than rounding, and the row stays."
narrow = torch.randn(100).bfloat16()
assert torch.equal(narrow * (1 - 1e-4), narrow)

# Holds: "Position 512 is the 513th and has no row: an `IndexError`."
assert model.embeddings.position_embeddings.num_embeddings == 512
# Holds: "The whole encoder, given a text of 513 tokens, stops with a"
try:
    model(torch.full((1, 513), 7))
    raise AssertionError("the encoder reads a text of 513 tokens")
except RuntimeError as error:
    assert "513" in str(error)
assert model.embeddings.position_ids.max() == 511
# Holds: "Zeros leave the word vector as it is, the last row repeated gives all"
assert torch.equal(longer(torch.tensor(512)), longer(torch.tensor(511)))

# Holds: "The encoder has 512 position rows"
assert model.config.max_position_embeddings == 512

# %% What to remember
# Holds: "`nn.Embedding` is a table; a lookup is a row of it, equal to a"
some = torch.tensor([7, 3, 7])
assert torch.equal(one_hot_lookup(longer.weight, some), longer(some))
# Holds: "A lookup gives a gradient to the rows that were looked up and to no"
assert rows_with_gradient(gradient_of_batch()) == [0, 3, 7, 12]
assert moved_by_last_step("AdamW")[unused].all()
# Holds: "For positions 0, 1, 2, ... a slice of a parameter does the same."
first_five = torch.arange(5)
assert torch.equal(as_parameter[:5], as_embedding(first_five))
assert torch.equal(added[0, 2:], as_parameter[:3])
# Holds: "The layer knows no order among its rows. What order there is,"
assert by_row.nonzero().flatten().tolist() == [3]
assert similarity(after, 1) - similarity(before, 1) > 0.4
