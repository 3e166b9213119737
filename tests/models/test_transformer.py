"""The Transformer against GPT-2 and BERT of transformers with the same weights, and against itself."""

import copy

import pytest
import torch
from refusals import refused

from posembed import PositionScheme, Transformer, TransformerConfig, scheme, schemes
from posembed.errors import EncodingInputError
from posembed.models import KeyValueCache, positions_from_mask

VOCAB, WIDTH, HEADS, LAYERS, LENGTH = 50, 32, 4, 2, 16
SIZES = {"vocab_size": VOCAB, "n_layers": LAYERS, "d_model": WIDTH, "n_heads": HEADS, "n_positions": LENGTH}


@pytest.mark.parametrize("name", [*schemes(), "learned+t5"])
def test_every_scheme_grows_with_a_cache_and_ignores_padding(name):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(scheme=name, **SIZES)).eval()
    ids = torch.randint(VOCAB, (1, 9))
    whole = model(ids)
    caches = [KeyValueCache() for _ in range(LAYERS)]
    parts = torch.cat([model(part, caches=caches) for part in ids.split([4, 1, 3, 1], dim=1)], dim=1)
    assert torch.allclose(parts, whole, atol=2e-5)
    mask = torch.tensor([[0, 0, 0] + [1] * 9])
    padded = model(torch.cat([ids[:, :3], ids], 1), positions_from_mask(mask), attention_mask=mask)
    assert torch.allclose(padded[:, 3:], whole, atol=2e-5)


@pytest.mark.parametrize("name", schemes())
def test_every_scheme_runs_where_there_is_no_memory(name):
    with torch.device("meta"):
        model = Transformer(TransformerConfig(scheme=name, **SIZES))
        assert model(torch.zeros(2, 9, dtype=torch.long)).shape == (2, 9, WIDTH)


@pytest.mark.parametrize("name", ["learned", "rope", "t5", "forgetting"])
def test_a_model_whose_causality_follows_positions_reads_a_shuffled_text(name):
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "d_model": 16, "n_heads": 2, "n_positions": 12, "scheme": name}
    straight = Transformer(TransformerConfig(**sizes)).double().eval()
    mixed = Transformer(TransformerConfig(**sizes, causal="positions")).double().eval()
    mixed.load_state_dict(straight.state_dict())
    ids, order = torch.arange(12)[None] % 7, torch.tensor([0, 1, 2, 9, 10, 11, 3, 4, 5, 6, 7, 8])
    torch.testing.assert_close(mixed(ids[:, order], order), straight(ids)[:, order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", schemes())
def test_every_scheme_has_gradients_of_each_text(name):
    """By torch.func, in which no number can be looked at; beside one text after the other."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(scheme=name, **SIZES)).eval()
    weights, ids = {each: it.detach() for each, it in model.named_parameters()}, torch.randint(VOCAB, (3, 9))

    def loss(weights, text):
        return torch.func.functional_call(model, weights, (text[None],)).square().mean()

    together = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, ids)
    for number, text in enumerate(ids):
        for each, alone in torch.func.grad(loss)(weights, text).items():
            assert torch.allclose(together[each][number], alone, atol=1e-5 * float(alone.abs().max()) + 1e-7), each


def test_scaled_embeddings_start_with_entries_of_size_one():
    config = TransformerConfig(scheme="nopos", scale_embeddings=True, vocab_size=2000, d_model=64)
    embedded = Transformer(config).eval().embed(torch.arange(2000)[None], torch.arange(2000))
    assert abs(embedded.std() - 1) < 0.02


@pytest.mark.parametrize("name", ["learned", "rope"])
def test_positions_are_added_to_given_embeddings_as_to_words(name):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(scheme=name, **SIZES)).eval()
    ids = torch.randint(VOCAB, (2, 9))
    assert torch.equal(model(model.words(ids)), model(ids))
    assert torch.equal(model(model.words(ids).double()), model(ids))  # a format that holds the other exactly
    caches = [KeyValueCache() for _ in range(LAYERS)]
    parts = torch.cat([model(model.words(part), caches=caches) for part in ids.split([4, 5], dim=1)], dim=1)
    assert torch.allclose(parts, model(ids), atol=2e-5)


def test_given_embeddings_are_not_scaled():
    model = Transformer(TransformerConfig(scheme="nopos", scale_embeddings=True, **SIZES)).eval()
    given = torch.randn(2, 9, WIDTH)
    assert torch.equal(model.hidden_states(given)[0], given)


class Drops(PositionScheme):
    def add(self, x, positions):
        return x[:, 1:]


class Forgets(PositionScheme):
    def rotate(self, x, positions):
        x.mul(2)


class Widens(PositionScheme):
    def rotate_keys(self, x, positions):
        return x.double()


class WidensLess(PositionScheme):
    widens = 2

    def rotate(self, x, positions):
        return x


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            Drops(),
            f"Drops.add makes (2, 8, {WIDTH}), torch.float32, of (2, 9, {WIDTH}), torch.float32; it must keep both",
        ),
        (Forgets(), "Forgets.rotate makes a NoneType of (2, "),
        (Widens(), "Widens.rotate_keys makes (2, "),
        (WidensLess(), "torch.float32; it must keep both, but 2 times as wide"),
    ],
)
def test_what_is_wrong_with_a_scheme_of_ones_own_is_named(own, message):
    ids = torch.ones(2, 9, dtype=torch.long)
    assert message in refused(EncodingInputError, lambda: Transformer(TransformerConfig(scheme=own, **SIZES))(ids))


def test_the_weights_start_as_gpt2s():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=500, n_layers=8, d_model=128, scheme="nopos"))
    layer = model.layers[3]
    assert layer.attention.query.weight.std().item() == pytest.approx(0.02, rel=0.03)
    # One of 16 summands: each part of each layer adds to the sum.
    assert layer.attention.output.weight.std().item() == pytest.approx(0.02 / 4, rel=0.03)
    assert layer.feed_forward[2].weight.std().item() == pytest.approx(0.02 / 4, rel=0.03)
    assert all(not module.bias.any() for module in (layer.attention.query, layer.feed_forward[0]))


def test_a_schemes_own_start_is_left_alone():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(scheme="fire", **SIZES))
    torch.manual_seed(0)
    torch.nn.Embedding(VOCAB, WIDTH)
    alone = scheme("fire", d_model=WIDTH, n_heads=HEADS, n_layers=LAYERS, causal=True)
    assert all(torch.equal(a, b) for a, b in zip(model.position_scheme.parameters(), alone.parameters(), strict=True))


def test_dropout_acts_in_training_only():
    model = Transformer(TransformerConfig(scheme="nopos", dropout=0.5, **SIZES))
    ids = torch.arange(8)[None]
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


@pytest.mark.parametrize("name", ["learned", "t5", "fire"])
def test_parameters_lent_for_one_call_are_given_back(name):
    """PyTorch leaves them in a module that has several names."""
    model = Transformer(TransformerConfig(20, n_layers=2, d_model=16, n_heads=2, scheme=name, n_positions=8)).eval()
    own, ids = dict(model.named_parameters()), torch.arange(6)[None]
    lent = {key: each.detach() + 0.1 for key, each in own.items()}
    before = model(ids)
    other = torch.func.functional_call(model, lent, (ids,))
    assert not torch.allclose(other, before) and torch.equal(model(ids), before)
    assert all(each is own[key] for key, each in model.named_parameters())
    copied = copy.deepcopy(model)
    for index, layer in enumerate(copied.layers):
        assert layer.attention.position_scheme is copied.position_scheme.layer(index)
    assert [key for key in model.state_dict() if "scheme" in key] == [key for key in own if "scheme" in key]
