# %% Try it: shuffle the words
# The same of the figure.
from posembed import check_equivariance

layer, bottom = encoder.model.encoder.layer[0], encoder.model.embeddings
spoken = encoder.tokenizer("I do like coding", return_tensors="pt").input_ids
bare = bottom.word_embeddings(spoken[:, 1:-1]).detach()
placed = bottom.position_embeddings.weight[1:5].detach()


def shown(x):
    x = bottom.LayerNorm(x + bottom.token_type_embeddings.weight[0])
    return layer.attention.output.dense(layer.attention.self(x)[0])


# Holds: "Move a word: its squares travel with it and stay as they were."
assert check_equivariance(shown, bare).verdict == "equivariant"
# Holds: "Add positions and move it again: now the outputs change."
there = check_equivariance(lambda x: shown(x + placed), bare)
assert there.verdict == "neither"

# Holds: "all twelve heads"
# Holds: "a BERT encoder of six layers"
assert (model.config.num_attention_heads, model.config.num_hidden_layers) == (12, 6)

# %% Two sentences, the same words
# Holds: "`[0, 2, 1, 3, 4, 5]` says: position 1 now holds what stood at 2"
# By definition: "Both sentences consist of the same"
# By definition: "We count {term}`positions <position>` from 0."
assert swap == [0, 2, 1, 3, 4, 5]
assert tokens[1] == [tokens[0][old] for old in swap]
assert tokens[1][1] == tokens[0][2] and tokens[1][2] == tokens[0][1]

# %% Self-attention does not see the order
seen = []
# Holds: "`check_equivariance` tries eight random orders (fewer for two or"
counted = check_equivariance(lambda x: seen.append(x) or self_attention(x, *weights), x)
assert counted.n_permutations == 8
in_order = x.sort(dim=1).values
orders = [given for given in seen if given.sort(dim=1).values.equal(in_order)]
assert sum(not torch.equal(given, x) for given in orders) == 8
for n, tried in ((2, 1), (3, 5), (4, 8)):
    short = check_equivariance(lambda x: x, x[:, :n])
    assert short.n_permutations == tried

# Holds: "It returns a verdict and the largest error it saw, as a share of"
small, large = (check_equivariance(lambda x, size=size: size * x.cumsum(dim=1), x) for size in (1, 100))
assert abs(small.max_error - large.max_error) < 1e-12

seen.clear()
reported = check_equivariance(lambda x: seen.append(x) or x.cumsum(dim=1), x).max_error
at = [torch.cdist(given[0], x[0]).argmin(dim=1) for given in seen]  # the orders
sums = x.cumsum(dim=1)
off = [(g.cumsum(1) - sums[:, o]).abs().max() for g, o in zip(seen, at, strict=True)]
most = max(given.cumsum(dim=1).abs().max() for given in seen)
assert abs(float(max(off) / most) - reported) < 1e-6

# %% Pooled outputs are the same for every order
# Holds in The whole encoder does not see it either: "Of the first two the checker adds *token by token*: no output"
for name, part in parts.items():
    alone = name in ("feed-forward", "LayerNorm")
    assert check_equivariance(part, x).token_by_token == alone

twice = torch.cat([x, x], dim=1)
# Holds: "Since softmax gives shares, a mean shows only the proportions"
for name in ("mean", "maximum"):
    once_and_twice = [poolings[name](stack.eval()(text)) for text in (x, twice)]
    assert torch.allclose(*once_and_twice, rtol=0, atol=1e-12)
stack.train()


# On the real encoder, its table zeroed.
def outputs(text):
    given = tokenizer(text, return_tensors="pt").input_ids
    with posembed.with_position_table(model, "zeroed"):
        return model(given).last_hidden_state.detach()[0]


def apart(one, other):
    return (one - other).abs().max() / one.abs().max() > 1e-2


# So each token, a mean, and not the sequence.
here, there = outputs("I do like coding"), outputs("Do I like coding")
assert not apart(here, there[swap])
assert not apart(here.mean(dim=0), there.mean(dim=0))
assert apart(here, there)


def means_differ(one, other):
    return apart(outputs(one).mean(dim=0), outputs(other).mean(dim=0))


# Holds: "They hold the same tokens equally often, so their means are equal."
assert not means_differ("good not bad", "bad not good")
# Holds: "The second text holds *not* twice and *good* once: other"
# Holds: "It would be so for sets of words. How often a word occurs beside the"
assert means_differ("not good", "not not good")

# %% Positions break it, on a real encoder
# Holds: "BERT adds a row of its position table to each word vector: row 0 to"
bottom, n_tokens = model.embeddings, ids.shape[1]
rows = bottom.position_embeddings.weight[:n_tokens]
added = word_vectors + rows + bottom.token_type_embeddings.weight[0]
expected = bottom(ids[:1])
assert torch.allclose(bottom.LayerNorm(added), expected, rtol=0, atol=1e-6)

# Holds: "With the position table intact or shuffled every token changes by"
# Holds: "With the rows zeroed nothing but rounding is left; shuffled rows tell"
for table in ("intact", "shuffled"):
    assert 0.02 < changes[table].min() < 0.1
    assert 0.2 < changes[table].max() < 0.3
assert changes["zeroed"].max() < 2e-6

# Holds: "Where the answer is *neither*, it keeps a counterexample"
assert intact.counterexample is not None
assert zeroed.counterexample is None

# Holds: "Right. Adding the same row to every token treats each token by"
# Holds: "It has changed in both sentences alike: a token brings the same"
# Holds: "`[CLS]` stands at position 0 in both sentences, and sees the same"
generator = torch.Generator().manual_seed(0)
table = bottom.position_embeddings.weight
same = table[5].expand(len(table), -1)
with with_position_table(model, same):
    assert check_equivariance(model, word_vectors).verdict == "equivariant"
assert token_change(same).max() < 1e-5

# Holds in What to remember: "Adding position rows breaks this; it takes little more than that"
different = 0.02 * torch.randn(table.shape, generator=generator)
with with_position_table(model, different):
    assert check_equivariance(model, word_vectors).verdict == "neither"

# Holds: "With this shuffled table they differ by 0.22"
assert abs(changes["shuffled"].max() - 0.22) < 0.005
# Holds: "A table whose row 1 is all ones, row 2 all twos, and so on would"
numbers = torch.arange(1.0, len(table) + 1)[:, None] - 1
with with_position_table(model, numbers.expand_as(table)):
    assert check_equivariance(model, word_vectors).verdict == "equivariant"

# Holds in Permutation equivariance: "two orders of the same words differ by rounding alone"
# Holds: "the outputs differ by about a quarter of the largest one"
assert all(0.2 < changes[table].max() < 0.3 for table in ("intact", "shuffled"))

# %% A causal mask breaks it too
from itertools import permutations

# Holds: "In the first layer the token at position 0 has seen itself alone, and"
first, second = x8[:, [0, 1]], x8[:, [1, 0]]
alone = causal_layer(first[:, :1])[:, 0]
assert torch.allclose(causal_layer(first)[:, 0], alone, rtol=0, atol=1e-12)
assert not torch.allclose(causal_layer(first)[:, 1], causal_layer(second)[:, 0])

# Holds: "We exchange the first two of eight tokens and look at each token's"
assert exchange == [1, 0, *range(2, 8)] and len(one) == len(two) == 8
# Holds: "After one causal layer only the two exchanged tokens change, the"
# Holds: "After one layer, tokens 2 to 7 have the outputs they had, up to"
# Holds: "One layer leaves the other six as they were; after the second every"
assert (one[:2] > 1e-2).all() and (one[2:] < 1e-12).all()
assert (two > 1e-4).all()

# For the causal mask only the identity: all 720 orders of six tokens.
mask = torch.zeros(6, 6).masked_fill(torch.ones(6, 6).triu(1) > 0, -torch.inf)
kept = [list(order) for order in permutations(range(6)) if torch.equal(mask[list(order)][:, list(order)], mask)]
assert kept == [list(range(6))]

# Holds: "The first token sees one token, the second sees two"
assert (mask == 0).sum(dim=1).tolist() == [1, 2, 3, 4, 5, 6]

# Holds: "A **padding mask** hides certain *tokens* from all others"
# Holds in What to remember: "A padding mask moves with its tokens and breaks nothing"
assert torch.allclose(after, before[:, swapped]) and not torch.allclose(
    scaled_dot_product_attention(*3 * [x[:, swapped]], real), before[:, swapped]
)
# Holds: "In **cross-attention**, where one sequence asks another, outputs move"
assert torch.allclose(again, crossed)
assert torch.allclose(scaled_dot_product_attention(asking[:, [2, 0, 1]], x, x), crossed[:, [2, 0, 1]])

# Holds: "Seen, yes, but attention takes a weighted mean of the values, and"
# Holds: "The second layer starts from the outputs of the first, and those"
# Holds: "Right. A mean of equal vectors does not tell how many there were."
same_token = x8[:, :1].expand(1, 8, 16)
after_layer = causal_layer(same_token)[0]
assert (after_layer - after_layer[0]).abs().max() < 1e-12
after_layers = two_causal_layers(same_token)[0]
assert (after_layers - after_layers[0]).abs().max() < 1e-12

# Holds in What to remember: "A causal mask breaks it without any positions: one layer knows at most"
# Holds: "One layer can know *which* tokens came before and in which proportions"
# Holds: "Three letters show what one layer sees."
assert check_equivariance(two_causal_layers, x8).verdict == "neither"
assert (aab - aba).abs().max() < 1e-12 < (aab - abb).abs().max()
# Holds in Permutation equivariance: "a theorem about every stack of self-attention"
# Holds in What to remember: "Without a mask, self-attention, the feed-forward network, LayerNorm and every stack"
for part in [lambda x: self_attention(x, *weights), *parts.values()]:
    assert check_equivariance(part, x).verdict == "equivariant"
# Holds in What to remember: "What is pooled from them by a mean, a sum or a maximum is invariant."
for pool in (torch.mean, torch.sum, torch.amax):
    pooled = check_equivariance(stack, x, output=lambda y, f=pool: f(y, dim=1))
    assert pooled.verdict == "invariant"

# %% Exercises
# Holds: "The checker said *neither* because it also moved the first token away"
moved = check_equivariance(stack, x, output=lambda y: y[:, 0])
assert moved.counterexample.permutation[0] != 0

# Of all orders of six tokens, these keep every distance.
distances = (torch.arange(6)[:, None] - torch.arange(6)).abs()
kept = [
    list(order) for order in permutations(range(6)) if torch.equal(distances[list(order)][:, list(order)], distances)
]
assert kept == [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]]

# What the exercise says of other orders: eight tried, and one exchange.
draw = torch.Generator().manual_seed(0)
for order in (exchange, *(torch.randperm(8, generator=draw) for _ in range(8))):
    changed = biased(x8[:, order]) - biased(x8)[:, order]
    assert changed.abs().max() / biased(x8).abs().max() > 0.2

# Of all orders of six tokens, a convolution survives the six shifts.
x6 = x8[:, :6]
kept = [
    order
    for order in map(list, permutations(range(6)))
    if (convolve(x6[:, order]) - convolve(x6)[:, order]).abs().max() < 1e-12
]
assert kept == sorted((torch.arange(6).roll(k)).tolist() for k in range(6))
