"""Verdicts: which functions are called equivariant, invariant or neither."""

import copy
import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from small_models import IDS, build
from torch import nn
from transformers import DebertaV2Config, DebertaV2Model

from posembed import check_equivariance, with_position_table
from posembed.models import MultiHeadAttention

D_MODEL = 16
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def tokens(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def seeded(make, seed=0):
    """The same weights each time, and the global random state as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def causal_attention(x):
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


def transformer():
    layer = seeded(lambda: nn.TransformerEncoderLayer(D_MODEL, 4, 32, batch_first=True))
    return nn.TransformerEncoder(layer, 2)


def causal_transformer(x):
    return transformer().eval()(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]))


def deep_sets(x, seq_dim=1):
    """Zaheer et al. 2017, Deep Sets, equation 4, with matrices for its two numbers."""
    own, shared = (tokens(x.shape[-1], x.shape[-1], seed=seed, dtype=x.dtype) for seed in (1, 2))
    return torch.tanh(x @ own + x.mean(dim=seq_dim, keepdim=True) @ shared)


def attention_pooling(x):
    return (F.softmax(x @ tokens(D_MODEL, 1, seed=3), dim=1) * x).sum(dim=1)


def circular_convolution(x):
    kernel = tokens(D_MODEL, D_MODEL, 3, seed=4)
    return F.conv1d(F.pad(x.mT, (1, 1), mode="circular"), kernel).mT


def positions_added(x):
    return x + tokens(*x.shape[1:], seed=5)


EQUIVARIANT = {
    "relu": lambda: torch.relu,
    "identity": lambda: lambda x: x,
    "per-token MLP": lambda: seeded(lambda: nn.Sequential(nn.Linear(D_MODEL, 32), nn.GELU(), nn.Linear(32, 8))),
    "LayerNorm": lambda: nn.LayerNorm(D_MODEL),
    "per-token scores": lambda: lambda x: x.sum(dim=-1),
    "DeepSets layer": lambda: deep_sets,
    "TransformerEncoder": transformer,
    "softmax over the tokens": lambda: lambda x: x.softmax(dim=1),
    "distance to the mean": lambda: lambda x: x - x.mean(dim=1, keepdim=True),
    "ranks": lambda: lambda x: x.argsort(dim=1).argsort(dim=1),
}
INVARIANT = {
    "mean": lambda: lambda x: x.mean(dim=1),
    "max": lambda: lambda x: x.amax(dim=1),
    "attention pooling": lambda: attention_pooling,
    "constant": lambda: lambda x: torch.ones(2, 5, 3),
    "zeros": lambda: torch.zeros_like,
    "mean given to every token": lambda: lambda x: x.mean(dim=1, keepdim=True).expand_as(x),
    "as wide as the sequence is long": lambda: lambda x: x.mean(dim=1)[:, :5],
    "one number a sequence": lambda: lambda x: x.sum(dim=(1, 2)),
    "one number": lambda: lambda x: x.square().sum(),
    "sorted": lambda: lambda x: x.sort(dim=1).values,
}
NEITHER = {
    "cumsum": lambda: lambda x: x.cumsum(dim=1),
    "positions added": lambda: positions_added,
    "causal attention": lambda: causal_attention,
    "circular convolution": lambda: circular_convolution,
    "flipped": lambda: lambda x: x.flip(1),
    "shifted": lambda: lambda x: x.roll(1, dims=1),
    "first token": lambda: lambda x: x[:, 0],
    "first token for all": lambda: lambda x: x[:, :1].expand_as(x),
    "weighted by place": lambda: lambda x: torch.arange(5.0) @ x,
    "difference to the one before": lambda: lambda x: x.diff(dim=1, prepend=x[:, -1:]),
    "one number that knows the first token": lambda: lambda x: x[:, 0].sum(),
    "causal TransformerEncoder": lambda: causal_transformer,
}
KNOWN = [
    pytest.param(make, verdict, id=name)
    for verdict, functions in (("equivariant", EQUIVARIANT), ("invariant", INVARIANT), ("neither", NEITHER))
    for name, make in functions.items()
]


@pytest.mark.parametrize(("make", "verdict"), KNOWN)
def test_verdict(make, verdict):
    report = check_equivariance(make(), tokens(2, 5, D_MODEL))
    assert report.verdict == verdict
    assert (report.max_error <= report.tolerance) == (verdict != "neither")
    assert (report.counterexample is None) == (verdict != "neither")


def along(seq_dim):
    """Three functions over an axis, one for each verdict."""
    return {
        "equivariant": lambda x: x - x.mean(dim=seq_dim, keepdim=True),
        "invariant": lambda x: x.mean(dim=seq_dim),
        "neither": lambda x: x.cumsum(dim=seq_dim),
    }


@pytest.mark.parametrize("verdict", ["equivariant", "invariant", "neither"])
@pytest.mark.parametrize("seq_dim", range(-3, 3))
# With all sizes equal, an axis that is taken for another one cannot be seen by its size.
@pytest.mark.parametrize("shape", [(3, 5, 7), (5, 5, 5)], ids=str)
def test_the_sequence_may_be_on_any_axis(shape, seq_dim, verdict):
    assert check_equivariance(along(seq_dim)[verdict], tokens(*shape), seq_dim=seq_dim).verdict == verdict


def test_channels_in_front_of_the_tokens_may_change_their_number():
    x = torch.randn(2, 16, 10, generator=torch.Generator().manual_seed(0))
    for width, verdict in ((1, "equivariant"), (3, "neither")):
        assert check_equivariance(nn.Conv1d(16, 32, width, padding="same"), x, seq_dim=-1).verdict == verdict


@pytest.mark.parametrize(
    ("n_tokens", "n_permutations"),
    [(7, 1), (7, 8), (4, 1), (2, 1), (3, 1), (3, 2), (3, 8)],
)
def test_a_function_that_breaks_a_single_place_is_found_with_every_seed(n_tokens, n_permutations):
    def breaks_one_place(x, place):
        x[:, place] *= 2
        return x

    for seed, place in itertools.product(range(20), range(n_tokens)):
        options = {"n_permutations": n_permutations, "seed": seed}
        report = check_equivariance(lambda x, p=place: breaks_one_place(x, p), tokens(1, n_tokens, 2), **options)
        assert report.verdict == "neither"


@pytest.mark.parametrize(
    ("violation", "dtype"),
    [(1e-3, torch.float32), (1e-4, torch.float32), (1e-9, torch.float64), (1e-11, torch.float64)],
    ids=str,
)
@pytest.mark.parametrize("pooled", [False, True])
def test_a_small_violation_is_found_and_measured(violation, dtype, pooled):
    x = tokens(2, 5, D_MODEL, dtype=dtype)

    def slightly_wrong(x):
        if pooled:
            return x.amax(dim=1) + violation * x[:, 0]
        x[:, 2] += violation * x.abs().max()
        return x

    report = check_equivariance(slightly_wrong, x)
    assert report.verdict == "neither"
    if not pooled:
        # Of the scale, which the violation itself raises by less than its own share; plus the rounding of the sum.
        assert report.max_error == pytest.approx(violation, rel=2 * violation + 2 * torch.finfo(dtype).eps / violation)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("share", [0.5, 2.0])
def test_the_default_tolerance_is_where_the_docstring_says(dtype, share):
    """In double precision the share is exact, so one side of the border passes and the other does not."""
    documented = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}[dtype]
    x = tokens(2, 5, D_MODEL, dtype=dtype)

    def wrong_by_a_share(x):
        y = x.double()
        y[:, 2, 0] += share * documented * y.abs().max()
        return y

    report = check_equivariance(wrong_by_a_share, x)
    assert report.tolerance == documented
    assert report.verdict == ("equivariant" if share < 1 else "neither")


# Exhaustive where it is small: over two tokens the swap is a shift, over three there are five other orders.


def bag_of_words(ids):
    return F.one_hot(ids, 30).sum(dim=1).float()


@pytest.mark.parametrize(
    ("fn", "verdict"),
    [
        (lambda ids: ids, "equivariant"),
        (lambda ids: F.one_hot(ids, 30).float(), "equivariant"),
        (bag_of_words, "invariant"),
        (lambda ids: bag_of_words(ids)[:, :5], "invariant"),
        (lambda ids: ids.sum(), "invariant"),
        (lambda ids: ids.sum(dim=1), "invariant"),
        (lambda ids: ids + torch.arange(5), "neither"),
        (lambda ids: ids[:, 0], "neither"),
        (lambda ids: ids[:, 0].float(), "neither"),
    ],
    ids=["identity", "one-hot", "bag of words", "as wide as long", "sum", "sums", "positions", "first", "first float"],
)
def test_integer_ids(fn, verdict):
    report = check_equivariance(fn, torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]))
    assert report.verdict == verdict


def test_large_integers_are_compared_exactly():
    ids = 2**60 + torch.arange(0, 50, 10)[None]
    assert check_equivariance(lambda ids: ids + torch.arange(5), ids).verdict == "neither"


OTHER_OUTPUTS = {
    "bool": (lambda x: x > 0, lambda x: (x > 0).any(dim=1), lambda x: x > x[:, :1]),
    "int": (lambda x: x.argmax(-1), lambda x: x.argmax(-1).sum(dim=1), lambda x: x.argmax(dim=-1) + torch.arange(5)),
    "complex": (
        lambda x: torch.complex(x, -x),
        lambda x: torch.complex(x, -x).sum(dim=1),
        lambda x: x * torch.exp(1j * torch.arange(5.0))[:, None],
    ),
}


@pytest.mark.parametrize("kind", OTHER_OUTPUTS)
def test_outputs_that_are_not_floating_point(kind):
    verdicts = [check_equivariance(fn, tokens(2, 5, D_MODEL)).verdict for fn in OTHER_OUTPUTS[kind]]
    assert verdicts == ["equivariant", "invariant", "neither"]


def test_inputs_that_are_not_floating_point():
    bits, waves = tokens(2, 5) > 0, torch.complex(tokens(2, 5, 3), tokens(2, 5, 3, seed=1))
    assert check_equivariance(torch.logical_not, bits).verdict == "equivariant"
    assert check_equivariance(lambda x: x ^ (torch.arange(5) > 2), bits).verdict == "neither"
    assert check_equivariance(torch.conj, waves).verdict == "equivariant"
    assert check_equivariance(lambda x: x.conj().cumsum(dim=1), waves).verdict == "neither"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_real_encoder_in_every_precision(encoder, dtype):
    model = copy.deepcopy(encoder.model).to(dtype)
    ids = encoder.tokenizer("I do like coding", return_tensors="pt")["input_ids"]
    assert check_equivariance(model, ids).verdict == "neither"
    with with_position_table(model, "zeroed"):
        assert check_equivariance(model, ids).verdict == "equivariant"
        assert check_equivariance(model, model.get_input_embeddings()(ids).detach()).verdict == "equivariant"
    with with_position_table(model, "shuffled"):
        assert check_equivariance(model, ids).verdict == "neither"


class SlightlyWrong(nn.Module):
    """Less than one rounding of float16 and far more than float32 may show, handed out in float32."""

    def __init__(self, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D_MODEL, dtype=dtype))

    def forward(self, x):
        x[:, 2] += 5e-4 * x.abs().max()
        return x


@pytest.mark.parametrize(
    ("weights", "autocast", "tolerance"),
    [
        (torch.float32, False, 1e-5),
        (torch.bfloat16, False, 6e-2),
        (torch.float16, False, 1e-2),
        (torch.float32, True, 6e-2),
    ],
    ids=str,
)
def test_the_tolerance_is_that_of_the_coarsest_format_on_the_way(weights, autocast, tolerance, monkeypatch):
    monkeypatch.setattr("posembed.equivariance._second_look", lambda *given: {})  # in another format
    method = SlightlyWrong(weights).forward
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        assert check_equivariance(method, tokens(2, 5, D_MODEL)).tolerance == tolerance


# Between rounding and tolerance.


class Shifted(nn.Module):
    """Attention, and at the third place a little more of it."""

    def __init__(self, extra, width=16):
        super().__init__()
        self.weight, self.extra = nn.Parameter(tokens(width, width)), extra

    def forward(self, x):
        y = torch.softmax(x @ self.weight @ x.mT, dim=-1) @ x
        return torch.cat([y[:, :2], y[:, 2:3] * (1 + self.extra), y[:, 3:]], dim=1)


class PartsInFloat32(Shifted):
    def forward(self, x):
        return super().forward(x + (1e-3 * x.float().cos()).to(x.dtype))


X32 = tokens(2, 7, 16).float()


@pytest.mark.parametrize("kind", [Shifted, PartsInFloat32])
def test_a_small_effect_is_told_from_rounding(kind):
    """Two millionths are less than float32 is trusted with, and real."""
    model = kind(2e-6).float()
    for fn in (model, model.forward):
        report = check_equivariance(fn, X32)
        assert (report.verdict, report.counterexample.index[1]) == ("neither", 2)
        assert "in float64" in report.remark and report.remark in str(report)
    assert model.weight.dtype == torch.float32


def test_what_is_no_module_is_told_that_it_was_not_looked_at_again():
    model = Shifted(2e-6).float()
    said = "compute in float64, or give the module itself, and with along= what else it is given"
    assert said in str(check_equivariance(lambda x: model(x), X32))
    # With a tolerance of one's own there is no doubt.
    assert check_equivariance(lambda x: model(x), X32, tolerance=1e-5).remark == ""
    wide = Shifted(2e-14).double()
    assert check_equivariance(lambda x: wide(x), X32.double()).remark == ""


def disentangled(seed, **changes):
    """A DeBERTa whose only positions are those of its attention."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}
    config = DebertaV2Config(vocab_size=100, position_biased_input=False, **sizes | relative | changes)
    return seeded(lambda: DebertaV2Model(config), seed).eval()


@pytest.mark.parametrize("seed", range(4))
def test_a_mask_in_float32_keeps_no_model_from_being_decided(seed):
    """Freshly initialised, the positions move the output by millionths, and the mask of ones stays in float32."""
    ids = torch.arange(7, 31).reshape(2, 12)
    for fn in (model := disentangled(seed), model.forward):
        report = check_equivariance(fn, ids, n_permutations=2)
        assert report.verdict == "neither" and "in float64" in report.remark
    report = check_equivariance(disentangled(seed, relative_attention=False, pos_att_type=None), ids, n_permutations=2)
    assert report.verdict == "equivariant" and "may be" not in report.remark


def test_rounding_beyond_the_tolerance_is_told_from_an_effect():
    """Two hundred roundings of one operation, which a deep network may add up, are gone in float64."""

    class Rounding(Shifted):
        def forward(self, x):
            self.extra = 200 * torch.finfo(x.dtype).eps
            return super().forward(x)

    report = check_equivariance(Rounding(0.0).float(), X32)
    assert (report.verdict, report.remark) == ("equivariant", "decided in float64")
    assert check_equivariance(Shifted(200 * torch.finfo(torch.float32).eps).float(), X32).verdict == "neither"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_an_effect_below_its_rounding_is_found(dtype):
    # Less than the rounding of one operation, and enough to be rounded to it.
    effect = 0.7 * torch.finfo(dtype).eps
    report = check_equivariance(Shifted(effect).to(dtype), X32.to(dtype))
    assert (report.verdict, report.remark) == ("neither", "decided in float64")
    # Rounding alone; where a processor rounds alike in any order, nothing is left to doubt.
    report = check_equivariance(Shifted(0.0).to(dtype), X32.to(dtype))
    assert report.verdict == "equivariant" and report.remark == ("decided in float64" if report.max_error else "")


class NoFloat64(Shifted):
    def forward(self, x):
        if x.dtype == torch.float64:
            raise RuntimeError("no kernel for it")
        return super().forward(x)


def test_where_a_copy_does_not_run_the_doubt_is_said():
    report = check_equivariance(NoFloat64(2e-6).float(), X32)
    assert report.remark == "that may be rounding or a small effect; compute in float64"


# Token by token.


def test_a_model_given_its_axes_exchanged_is_called_token_by_token():
    layer = nn.TransformerEncoderLayer(16, 2, dropout=0.0, batch_first=False)
    report = check_equivariance(layer, tokens(2, 7, 16).float())
    assert report.verdict == "equivariant" and report.token_by_token
    assert "does seq_dim name the axis of the tokens?" in str(report)
    assert not check_equivariance(layer, tokens(7, 2, 16).float(), seq_dim=0).token_by_token


@pytest.mark.parametrize(
    ("fn", "alone"),
    [(torch.relu, True), (lambda x: x - x.mean(dim=1, keepdim=True), False), (lambda x: x.sort(dim=1)[0], False)],
    ids=["relu", "centred", "sorted"],
)
@pytest.mark.parametrize("n_tokens", [2, 3, 8, 40])
def test_only_what_no_other_token_reaches_is_token_by_token(fn, alone, n_tokens):
    assert check_equivariance(fn, tokens(2, n_tokens, 4)).token_by_token == alone


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_token_by_token_is_said_in_every_format_only_where_it_is_true(dtype):
    """The attention of a small fresh model moves its outputs by less than one rounding of the narrow formats."""
    model = build("bert").to(dtype)
    ids = torch.arange(7, 19)[None]
    with with_position_table(model, "zeroed"):
        for fn in (model, lambda ids: model(ids)):
            assert not check_equivariance(fn, ids).token_by_token
    alone = seeded(lambda: nn.Sequential(nn.Linear(D_MODEL, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)))
    assert check_equivariance(alone.to(dtype), tokens(3, 11, D_MODEL, dtype=dtype)).token_by_token
    # The same where the tokens do not lie in memory in their order.
    assert check_equivariance(alone, tokens(11, 3, D_MODEL, dtype=dtype).transpose(0, 1)).token_by_token


# Models of transformers.


@pytest.mark.parametrize("kind", ["gpt2", "gpt2-lm", "bert", "bert-lm", "distilbert", "roberta"])
@pytest.mark.parametrize("given", ["inputs_embeds", "input_ids"])
def test_models_of_transformers(kind, given):
    model = build(kind)
    x = IDS if given == "input_ids" else tokens(2, 5, D_MODEL)
    assert check_equivariance(model, x).verdict == "neither"
    with with_position_table(model, "zeroed"):
        # A causal mask tells the order even to a model without positions.
        wanted = "neither" if kind.startswith("gpt2") else "equivariant"
        assert check_equivariance(model, x).verdict == wanted


def moved(fn, seq_dim):
    return lambda x: fn(x.movedim(seq_dim, 1)).movedim(1, seq_dim)


SHAPES = st.tuples(st.integers(1, 3), st.integers(2, 7), st.integers(1, 5))


@given(shape=SHAPES, seq_dim=st.integers(-3, 2), seeds=st.tuples(st.integers(0, 2**31), st.integers(0, 2**31)))
def test_any_deep_sets_network_is_equivariant_until_positions_are_added(shape, seq_dim, seeds):
    x = tokens(*shape, seed=seeds[0], dtype=torch.float64).movedim(1, seq_dim)
    positions = tokens(*shape[1:], seed=seeds[1], dtype=torch.float64)
    network = lambda x: deep_sets(deep_sets(x))
    ordered = moved(lambda x: network(x) + positions, seq_dim)
    pooled = moved(lambda x: network(x).mean(dim=1, keepdim=True).expand_as(x), seq_dim)
    options = {"seq_dim": seq_dim, "seed": seeds[1]}
    assert check_equivariance(moved(network, seq_dim), x, **options).verdict == "equivariant"
    assert check_equivariance(pooled, x, **options).verdict == "invariant"
    report = check_equivariance(ordered, x, **options)
    assert report.verdict == "neither"
    assert_is_a_counterexample(ordered, x, seq_dim, report)


@pytest.mark.parametrize("name", [name for name in NEITHER if name != "one number that knows the first token"])
def test_a_counterexample_holds_when_its_permutation_is_applied_by_hand(name):
    x = tokens(2, 5, D_MODEL)
    assert_is_a_counterexample(NEITHER[name](), x, 1, check_equivariance(NEITHER[name](), x))


def assert_is_a_counterexample(fn, x, seq_dim, report):
    example = report.counterexample
    order = list(example.permutation)
    with torch.no_grad():  # torch takes another way, with other rounding, where gradients are recorded
        before, after = fn(x.clone()), fn(x.index_select(seq_dim, torch.tensor(order)))
    expected = before if report.equivariance_error is None else before.index_select(seq_dim, torch.tensor(order))
    assert example.actual == after[example.index].item()
    assert example.expected == expected[example.index].item()
    scale = max(before.abs().max().item(), after.abs().max().item())
    # Of the permutations tried another one may have the larger outputs, never smaller ones.
    assert abs(example.actual - example.expected) / scale >= report.max_error > report.tolerance


class PoolsTheLast(nn.Module):
    """Attention under a mask of any name and meaning, and of its output the last place, a word in the first text."""

    def __init__(self, mask, hides):
        super().__init__()
        self.mask, self.hides = mask, hides
        self.attention = nn.MultiheadAttention(D_MODEL, 2, batch_first=True)

    def forward(self, x, **given):
        hidden = given[self.mask] == self.hides
        return self.attention(x, x, x, key_padding_mask=hidden, need_weights=False)[0][:, -1]


@pytest.mark.parametrize(
    ("name", "hides"),
    [("attention_mask", 0), ("mask", 0), ("words", False), ("src_key_padding_mask", True), ("m", -9.0)],
)
@pytest.mark.parametrize(("lengths", "verdict"), [((6, 4), "neither"), ((4, 4), "invariant")])
def test_the_name_of_a_mask_decides_nothing(name, hides, lengths, verdict):
    """The last place holds padding in both texts, or in one."""
    seen = torch.arange(6) < torch.tensor(lengths)[:, None]
    mask = (
        torch.where(seen, 0.0, hides) if hides == -9.0 else seen if hides is False else ~seen if hides else seen.long()
    )
    x = torch.where(seen[..., None], tokens(2, 6, D_MODEL), 1.0)
    assert check_equivariance(PoolsTheLast(name, hides), x, along={name: mask}).verdict == verdict


def test_what_belongs_to_the_tokens_moves_with_them_and_padding_stays():
    """A mask that is fixed in a function hides other tokens each time: a blind encoder then seems to see the order."""
    x, mask = tokens(2, 6, D_MODEL), torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    encoder = transformer().eval()
    fixed = check_equivariance(lambda y: encoder(y, src_key_padding_mask=mask == 0), x)
    assert fixed.verdict == "neither" and not encoder.training
    for hidden in (mask == 0, torch.zeros(2, 6).masked_fill(mask == 0, -torch.inf)):
        report = check_equivariance(encoder, x, along={"src_key_padding_mask": hidden})
        assert report.verdict == "equivariant"
    moved = []
    check_equivariance(
        lambda y, attention_mask: moved.append(y) or y * attention_mask[..., None], x, along={"attention_mask": mask}
    )
    for each in moved[2:10]:  # behind the input itself, twice
        same = (each[1, :, None] == x[1]).all(-1)  # by places, what stands there now and what stood there
        assert same[:4, :4].any(1).all() and same[4:, 4:].any(1).all()
        assert not same[:4, :4].diagonal().all() and not same[4:, 4:].diagonal().any()
    alone = check_equivariance(encoder, x[1:], along={"src_key_padding_mask": torch.arange(6)[None] == 5})
    assert alone.verdict == "equivariant" and "5 of 6 places moved" in alone.remark


def test_tokens_on_the_first_axis_have_a_mask_of_one():
    x, mask = tokens(6, 8), torch.tensor([1, 1, 1, 1, 0, 0])
    report = check_equivariance(lambda x, mask: x * mask[:, None], x, seq_dim=0, along={"mask": mask})
    assert report.verdict == "equivariant"


def test_what_belongs_to_pairs_of_tokens_moves_along_both_axes():
    """A mask "batch query key" says what one "batch key" does, and the edges of a graph move with its nodes."""
    attention = seeded(lambda: MultiHeadAttention(8, 2, "nopos", causal=False)).eval()
    x, seen = tokens(2, 6, 8), torch.arange(6) < torch.tensor([[5], [6]])
    square = seen[:, None].expand(2, 6, 6)
    assert check_equivariance(attention, x, along={"attention_mask": seen}).verdict == "equivariant"
    for mask in (square, torch.ones(6, 6).tril().bool().expand(2, 6, 6)):
        report = check_equivariance(attention, x, along={"attention_mask": mask}, pairs=["attention_mask"])
        assert report.verdict == "equivariant" and "places moved" not in report.remark
    edges = tokens(2, 6, 6, seed=1).relu()
    assert check_equivariance(lambda x, edges: edges @ x, x, along={"edges": edges}, pairs=["edges"]).max_error < 1e-5
    assert check_equivariance(
        lambda x, edges: x + edges, tokens(2, 6, 6), along={"edges": edges}, pairs=()
    ).verdict == ("equivariant")


def test_a_function_is_told_of_the_mask_that_it_may_hold_fixed():
    encoder, x, hidden = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), tokens(2, 6, 8), torch.arange(6) > 3
    encoder, said = encoder.eval(), "stays where it is if fixed in the function"
    report = check_equivariance(lambda x: encoder(x, src_key_padding_mask=hidden.expand(2, 6)), x)
    assert report.verdict == "neither" and said in report.remark and report.remark in str(report)
    assert said not in str(check_equivariance(lambda x: encoder(x), x))
    assert said not in str(check_equivariance(nn.GRU(8, 8, batch_first=True), x, output=0))


def test_types_of_tokens_move_with_them():
    model, types = build("bert"), torch.tensor([[0, 0, 1, 1, 0]]).expand(len(IDS), -1)[:, : IDS.shape[1]]
    with with_position_table(model, "zeroed"):
        told = {"token_type_ids": types, "attention_mask": torch.ones_like(types)}
        assert check_equivariance(model, IDS, along=told).verdict == "equivariant"
    assert check_equivariance(model, IDS, along=told).verdict == "neither"


class Masked(Shifted):
    def forward(self, x, attention_mask):
        return super().forward(x) * attention_mask[..., None]


def test_a_module_with_its_mask_is_looked_at_again():
    """A function that only passed the mask on could not be."""
    model, mask = Masked(2e-6).float(), torch.ones(1, 7)
    assert check_equivariance(lambda x: model(x, mask), X32).verdict == "equivariant"
    report = check_equivariance(model, X32, along={"attention_mask": mask})
    assert report.verdict == "neither" and "in float64" in report.remark
