"""One module for whole, padded, packed and growing texts, with any scheme."""

import pytest
import torch
from models.reference import BIDIRECTIONAL, CASES, D_MODEL, N_HEADS, NAMES, made
from peers import attention_torch
from refusals import refused
from torch import nn

from posembed import check_equivariance
from posembed.encodings import scheme
from posembed.errors import EncodingInputError
from posembed.models import KeyValueCache, MultiHeadAttention, pack, positions_from_mask

# Sums of a few hundred products in float64, of numbers around one.
EXACT = {"rtol": 0, "atol": 1e-12}
LENGTH = 12


def attention(name, causal, **options):
    """A layer with its own numbers, in float64."""
    one = made(name, causal)
    torch.manual_seed(1)
    return MultiHeadAttention(D_MODEL, N_HEADS, one, causal=causal, **options).double().eval()


def embedded(layer, x, positions):
    """What a model does before its first layer."""
    return layer.position_scheme.add(x, positions)


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunks", [[1] * LENGTH, [LENGTH], [5, 1, 1, 5], [1, 11]], ids=str)
@pytest.mark.parametrize("given_positions", [True, False])
def test_cached_decoding_is_the_full_forward(name, chunks, given_positions):
    layer, positions, cache = attention(name, True), torch.arange(LENGTH), KeyValueCache()
    x = embedded(layer, drawn(2, LENGTH, D_MODEL), positions)
    steps, start = [], 0
    with torch.no_grad():
        for size in chunks:
            at = positions[start : start + size] if given_positions else None
            steps.append(layer(x[:, start : start + size], at, cache=cache))
            start += size
        torch.testing.assert_close(torch.cat(steps, 1), layer(x, positions), **EXACT)
    assert len(cache) == LENGTH


@pytest.mark.parametrize(("name", "causal"), CASES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_text_is_an_unpadded_one(name, causal, side):
    layer, lengths = attention(name, causal), [12, 7, 1]
    mask = torch.zeros(3, 12, dtype=torch.long)
    for row, length in enumerate(lengths):
        mask[row, slice(12 - length, None) if side == "left" else slice(length)] = 1
    x, positions = drawn(3, 12, D_MODEL), positions_from_mask(mask)
    padded = layer(embedded(layer, x, positions), positions, attention_mask=mask)
    for row, length in enumerate(lengths):
        alone, at = x[row : row + 1, mask[row].bool()], torch.arange(length)
        expected = layer(embedded(layer, alone, at), at)
        torch.testing.assert_close(padded[row : row + 1, mask[row].bool()], expected, **EXACT)


@pytest.mark.parametrize("name", NAMES)
def test_a_left_padded_text_grows_with_a_cache(name):
    layer, cache = attention(name, True), KeyValueCache()
    mask = torch.ones(2, LENGTH, dtype=torch.bool)
    mask[0, :5] = False
    x, positions = drawn(2, LENGTH, D_MODEL), positions_from_mask(mask)
    x = embedded(layer, x, positions)
    steps = [
        layer(x[:, a:b], positions[:, a:b], attention_mask=mask[:, :b], cache=cache)
        for a, b in [(0, 8), (8, 9), (9, 12)]
    ]
    full = layer(x, positions, attention_mask=mask)
    torch.testing.assert_close(torch.cat(steps, 1)[mask], full[mask], **EXACT)


@pytest.mark.parametrize(("name", "causal"), CASES)
def test_packed_texts_are_separate_ones(name, causal):
    layer, lengths = attention(name, causal), [5, 1, 6]
    segments = torch.tensor([[0] * 5 + [1] + [2] * 6, [0] * 12])
    positions, mask = pack(segments)
    x = drawn(2, 12, D_MODEL)
    packed = layer(embedded(layer, x, positions), positions, attention_mask=mask)
    for part, together in zip(x[0].split(lengths), packed[0].split(lengths), strict=True):
        at = torch.arange(len(part))
        torch.testing.assert_close(together[None], layer(embedded(layer, part[None], at), at), **EXACT)
    at = torch.arange(12)
    torch.testing.assert_close(packed[1:], layer(embedded(layer, x[1:], at), at), **EXACT)


# Two ranks that share a text, each with an early and a late part of it.
ZIG_ZAG = torch.tensor([0, 1, 2, 9, 10, 11, 3, 4, 5, 6, 7, 8])


@pytest.mark.parametrize("name", NAMES)
def test_where_causality_follows_positions_tokens_may_stand_in_any_order(name):
    """Also in rows of their own orders, behind padding, in pieces with a cache, and two texts in one row."""
    layer, positions = attention(name, True), torch.arange(LENGTH)
    x = embedded(layer, drawn(2, LENGTH, D_MODEL), positions)
    expected, order = layer(x, positions), ZIG_ZAG
    layer.causal = "positions"
    torch.testing.assert_close(layer(x, positions), expected, **EXACT)
    torch.testing.assert_close(layer(x[:, order], order), expected[:, order], **EXACT)
    each = torch.stack([order, torch.randperm(LENGTH, generator=torch.Generator().manual_seed(0))])
    rows = torch.arange(2)[:, None]
    torch.testing.assert_close(layer(x[rows, each], each), expected[rows, each], **EXACT)
    cache, pieces = KeyValueCache(), ZIG_ZAG.sort().values.split([3, 4, 5])
    mixed = [piece.flip(0) for piece in pieces]  # what comes later is later in the text
    steps = torch.cat([layer(x[:, piece], piece, cache=cache) for piece in mixed], 1)
    torch.testing.assert_close(steps, expected[:, torch.cat(mixed)], **EXACT)
    segments = torch.tensor([0] * 5 + [1] * 7)
    at, mask = pack(segments[None])
    layer.causal = True
    packed, layer.causal = layer(x[:1], at, attention_mask=mask), "positions"
    mixed = layer(x[:1, order], at[:, order], attention_mask=mask[..., order, :][..., order])
    torch.testing.assert_close(mixed, packed[:, order], **EXACT)


# Absolute are what is added to the embeddings, FIRE's normaliser, the number of keys that logits are scaled with, and
# what CoPE reads of a query that was turned.
ABSOLUTE = {"learned", "fire", "scaled_logits", "cope+rope"}


@pytest.mark.parametrize("name", [name for name in NAMES if not ABSOLUTE & {name, *name.split("+")}])
@pytest.mark.parametrize("shift", [1, 1000])
def test_a_relative_scheme_sees_no_shift(name, shift):
    """Of those that add to the embeddings nothing is added here."""
    layer, x, positions = attention(name, True), drawn(1, LENGTH, D_MODEL), torch.arange(LENGTH)
    # An angle of 1,000 radians leaves float64 three digits fewer.
    torch.testing.assert_close(layer(x, positions + shift), layer(x, positions), rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", BIDIRECTIONAL)
def test_only_without_positions_is_it_equivariant(name):
    layer, positions = attention(name, False), torch.arange(LENGTH)
    x = drawn(1, LENGTH, D_MODEL)
    verdict = check_equivariance(lambda x: layer(embedded(layer, x, positions), positions), x).verdict
    assert verdict == ("equivariant" if name == "nopos" else "neither")


@pytest.mark.slow
def test_compiled_and_exported_it_gives_the_same_numbers_and_gradients(cases_of):
    found = cases_of("compiled")
    assert len(found) == len(CASES)
    for case, differences in found.items():
        for how, difference in differences.items():
            assert difference < 1e-12, f"{case}, {how}: {difference}"


def test_dropout_acts_in_training_only():
    layer, x = attention("rope", True, dropout=0.5), drawn(1, LENGTH, D_MODEL)
    assert torch.equal(layer(x), layer(x))
    layer.train()
    assert not torch.equal(layer(x), layer(x))


def test_positions_on_several_axes():
    one = scheme("rope", d_model=D_MODEL, n_heads=N_HEADS, options={"rope": {"axes": (4, 4)}})
    layer = MultiHeadAttention(D_MODEL, N_HEADS, one, causal=True).double()
    x, cache = drawn(2, LENGTH, D_MODEL), KeyValueCache()
    grid = torch.cartesian_prod(torch.arange(3), torch.arange(4))
    steps = [layer(x[:, a:b], grid[a:b], cache=cache) for a, b in [(0, 7), (7, 8), (8, 12)]]
    torch.testing.assert_close(torch.cat(steps, 1), layer(x, grid), **EXACT)
    # Moving the whole grid changes nothing; exchanging its axes does.
    torch.testing.assert_close(layer(x, grid + torch.tensor([10, 20])), layer(x, grid), **EXACT)
    assert not torch.allclose(layer(x, grid.flip(-1)), layer(x, grid))
    assert "the last axis must be 2, one for each coordinate" in refused(EncodingInputError, layer, x)


def test_an_empty_text_stays_empty():
    for name in ("rope", "t5", "shaw", "cope", "nopos"):
        assert tuple(attention(name, True)(drawn(2, 0, D_MODEL)).shape) == (2, 0, D_MODEL)


def test_a_causal_model_without_positions_is_not_blind_to_order():
    layer = attention("nopos", True)
    assert check_equivariance(layer, drawn(1, LENGTH, D_MODEL)).verdict == "neither"


@pytest.mark.parametrize("causal", [True, False])
def test_without_positions_it_is_torchs_own(causal):
    layer, x = attention("nopos", causal), drawn(2, LENGTH, D_MODEL)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, dtype=torch.float64) if causal else None
    torch.testing.assert_close(layer(x), attention_torch(layer)(x, x, x, attn_mask=mask)[0], **EXACT)
