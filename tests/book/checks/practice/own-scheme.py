# %% A scheme in twenty lines
import posembed
from posembed import scheme, schemes

# Holds: "Suppose that attention should fall with the root of the distance,"
past, future = torch.tensor([-4, -1]), torch.tensor([1, 4])
assert (root.bias_by_offset(past).flip(-1) < root.bias_by_offset(future)).all()
# Holds: "The token itself, in the middle, gets zero; at the same distance"
assert not root.bias_by_offset(torch.tensor([0])).any()


class Noting(RootDistance):
    asked = ()

    def bias_by_offset(self, offsets):
        self.asked = (*self.asked, len(offsets))
        return super().bias_by_offset(offsets)


# Holds: "Its {term}`bias` depends on the offset alone, and the positions"
# Holds in What to remember: "Where only the offset matters and positions follow one another,"
noting = Noting(4)
MultiHeadAttention(32, 4, noting, causal=False)(x)
assert noting.asked == (11,)

# The table's third and fourth line: who acts on the logits, and who by offset.
kinds = {}
for name in schemes():
    kind = type(scheme(name, d_model=32, n_heads=4, n_positions=8, causal=True))
    for method in ("add", "rotate", "bias", "bias_by_offset"):
        if getattr(kind, method) is not getattr(PositionScheme, method):
            kinds.setdefault(method, set()).add(name)
assert kinds == {
    "add": {"sinusoidal", "learned", "learnable_sinusoidal"},
    "rotate": {"rope", "xpos", "pope", "scaled_logits"},
    "bias": {"shaw", "fire", "cope", "forgetting"},
    "bias_by_offset": {"t5", "alibi", "kerple"},
}


# %% Does the model see the order now?
# Every scheme of the package, in attention.
def in_attention(name, causal=True):
    torch.manual_seed(0)
    sizes = {"d_model": 32, "n_heads": 4, "n_positions": 2048, "n_layers": 1}
    made = scheme(name, **sizes, causal=causal)
    for parameter in made.parameters():  # some start at zero
        nn.init.normal_(parameter, std=0.5)
    model = MultiHeadAttention(32, 4, made.layer(0), causal=causal).eval()

    def run(x, positions, **options):
        return model(made.add(x, positions), positions, **options)

    return run


def same(one, other):
    return torch.allclose(one, other, atol=1e-5)


# Holds: "The third: a text that grows token by token, with a cache, has the"
# Holds: "The package's own schemes all pass the last two, and the second"
shifted = set()
for name in schemes():
    run, cache = in_attention(name), KeyValueCache()
    whole = run(x, positions)
    steps = [run(x[:, [i]], positions[[i]], cache=cache) for i in range(6)]
    assert same(torch.cat(steps, 1), whole), name
    inside = run(x, positions_from_mask(mask), attention_mask=mask)[:, 2:]
    assert same(inside, run(x[:, 2:], positions[:4])), name
    if not same(run(x, positions + 1000), whole):
        shifted.add(name)

# By definition in What to remember: "Shift, permutation, cache and padding are four checks"
# Holds: "The first is not for every one: sinusoidal and learned rows mark"
assert shifted == {"sinusoidal", "learned", "learnable_sinusoidal", "fire", "scaled_logits"}

one_way = set()
for name in schemes():
    try:
        run = in_attention(name, causal=False)
    except posembed.PosembedError:
        one_way.add(name)
    else:
        whole = run(x, positions)
        assert same(run(x[:, order], positions[order]), whole[:, order]), name
assert one_way == {"xpos", "fire", "cope", "forgetting", "scaled_logits"}

# %% A plane, and a gate
# All four checks, and the sum itself.
# Holds: "Its bias falls with the straight distance between two patches."
asked = torch.tensor([[0, 0], [3, 4]])
fallen = PlaneDistance(4).bias(None, None, asked, asked)
assert torch.allclose(fallen[:, 0, 1], -5 * torch.linspace(0.2, 1, 4))
turned = torch.randperm(12, generator=torch.Generator().manual_seed(0))
same_image = plane(image[:, turned], patches[turned])
assert torch.allclose(same_image, plane(image, patches)[:, turned], atol=1e-6)
assert torch.allclose(gated(x, positions + 1000), gated(x), atol=1e-6)
# Holds: "The bias is the sum of the logarithms of the gates from behind the key up"
# Holds: "A gate is read off the token itself: `gates(x)` gets what enters the layer's"
forgetting, key = Forgetting(32, 4), torch.randn(1, 4, 6, 8)
read = forgetting.gates(x)
bias = forgetting.bias(key, key, positions, positions, gates=read)
assert torch.allclose(bias[..., 5, 2], read[..., 3:6].sum(-1), atol=1e-5)
assert torch.allclose(read, torch.sigmoid(forgetting.gate(x)).log().mT, atol=1e-5)
assert not bias.diagonal(dim1=-2, dim2=-1).any()
# Holds: "Here it is in the fewest lines; the package's own,"
theirs = scheme("forgetting", d_model=32, n_heads=4)
theirs.gate.load_state_dict(forgetting.gate.state_dict())
layer = MultiHeadAttention(32, 4, theirs, causal=True).eval()
layer.load_state_dict({**gated.state_dict(), **{f"position_scheme.{k}": v for k, v in theirs.state_dict().items()}})
own = MultiHeadAttention(32, 4, forgetting, causal=True).eval()
own.load_state_dict({**gated.state_dict(), **{f"position_scheme.{k}": v for k, v in forgetting.state_dict().items()}})
assert torch.allclose(layer(x), own(x), atol=1e-6)
holes = torch.tensor([[1, 0, 1, 1, 0, 1]])
kept = holes[0].bool()
assert torch.allclose(layer(x, attention_mask=holes)[:, kept], layer(x[:, kept]), atol=1e-6)
assert not torch.allclose(own(x, attention_mask=holes)[:, kept], own(x[:, kept]), atol=1e-3)


# What `bias` is given, in a text longer than a block of queries.
class Seen(Forgetting):
    given = ()

    def bias(self, q, k, positions, key_positions, gates):
        self.given = (*self.given, (q.shape[2], k.shape[2]))
        assert gates.shape[-1] == k.shape[2]
        assert torch.equal(positions, key_positions[-q.shape[2] :])
        return super().bias(q, k, positions, key_positions, gates)


# Holds: "What `bias` is given decides how it is written: a *block* of the"
seen = Seen(32, 4)
long = torch.randn(1, 600, 32)
whole = MultiHeadAttention(32, 4, seen, causal=True).eval()
cache = KeyValueCache()
whole(long, cache=cache)
assert seen.given == ((256, 256), (256, 512), (88, 600))
whole(long[:, :1], cache=cache)
assert seen.given[-1] == (1, 601)
# Holds: "Attention keeps these beside the keys, in a cache too."
# Holds: "The queries are the last of these keys."
# By definition: "Two schemes that need more than offsets in a line."

# %% What else a scheme may say
try:
    MultiHeadAttention(32, 4, "fire", causal=False)
except posembed.PosembedError as error:
    assert "not defined for a bidirectional model" in str(error)
else:
    raise AssertionError("fire enters a bidirectional model")

# %% Exercises
# Holds: "One angle returns to where it began after"
assert round(2 * torch.pi / 0.1) == 63
nearly_alike = (score(0, 63 + 5) - score(0, 5)).abs()
elsewhere = (score(0, 31 + 5) - score(0, 5)).abs()
assert nearly_alike < 0.05 * elsewhere
# In a padded batch each text has positions of its own.
rows, two = torch.randn(2, 1, 4, 8), torch.tensor([[0, 0, 1, 2], [0, 1, 2, 3]])
turned = one_angle.rotate(rows, two)  # "batch heads seq d_head"
assert torch.allclose(turned[0], one_angle.rotate(rows[0], two[0]))
# The window stays right when tokens and positions are shuffled.
moved = windowed(x[:, order], positions[order])
assert torch.allclose(moved, windowed(x)[:, order], atol=1e-6)
# By definition in What to remember: "A scheme adds to the embeddings, rotates queries and keys,"
