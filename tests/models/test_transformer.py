"""The Transformer against GPT-2 and BERT of transformers with the same weights, and against itself."""

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

from posembed import Transformer, TransformerConfig, scheme, schemes
from posembed.errors import EncodingInputError, ModelInputError
from posembed.models import KeyValueCache, LanguageModel, positions_from_mask

VOCAB, WIDTH, HEADS, LAYERS, LENGTH = 50, 32, 4, 2, 16
SIZES = {"vocab_size": VOCAB, "n_layers": LAYERS, "d_model": WIDTH, "n_heads": HEADS, "n_positions": LENGTH}


def perturbed(model):
    """Numbers that differ from each other, biases and norms included, so that no two can be exchanged unnoticed."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def copy_linear(ours, weight, bias):
    with torch.no_grad():
        ours.weight.copy_(weight)
        ours.bias.copy_(bias)


def copy_gpt2(theirs, ours):
    body = ours.transformer
    with torch.no_grad():
        body.words.weight.copy_(theirs.transformer.wte.weight)
        body.position_scheme.weight.copy_(theirs.transformer.wpe.weight)
    for layer, block in zip(body.layers, theirs.transformer.h, strict=True):
        for mine, its in ((layer.attention_norm, block.ln_1), (layer.feed_forward_norm, block.ln_2)):
            copy_linear(mine, its.weight, its.bias)
        weights = block.attn.c_attn.weight.T.split(WIDTH)
        names = ("query", "key", "value")
        for name, weight, bias in zip(names, weights, block.attn.c_attn.bias.split(WIDTH), strict=True):
            copy_linear(getattr(layer.attention, name), weight, bias)
        copy_linear(layer.attention.output, block.attn.c_proj.weight.T, block.attn.c_proj.bias)
        copy_linear(layer.feed_forward[0], block.mlp.c_fc.weight.T, block.mlp.c_fc.bias)
        copy_linear(layer.feed_forward[2], block.mlp.c_proj.weight.T, block.mlp.c_proj.bias)
    copy_linear(body.norm, theirs.transformer.ln_f.weight, theirs.transformer.ln_f.bias)


def test_pre_norm_is_gpt2():
    sizes = {"vocab_size": VOCAB, "n_layer": LAYERS, "n_embd": WIDTH, "n_head": HEADS, "n_positions": LENGTH}
    theirs = perturbed(GPT2LMHeadModel(GPT2Config(**sizes)))
    ours = LanguageModel(TransformerConfig(scheme="learned", activation="gelu_tanh", **SIZES)).eval()
    copy_gpt2(theirs, ours)
    ids = torch.arange(24).view(2, 12)
    expected = theirs(ids, output_hidden_states=True)
    assert torch.allclose(ours(ids), expected.logits, atol=1e-5)
    states = ours.transformer.hidden_states(ids)
    assert len(states) == len(expected.hidden_states) == LAYERS + 1
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(states, expected.hidden_states, strict=True))


def copy_bert(theirs, ours):
    embeddings = theirs.embeddings
    with torch.no_grad():
        # The type of the first sentence is added to every token.
        ours.words.weight.copy_(embeddings.word_embeddings.weight + embeddings.token_type_embeddings.weight[0])
        ours.position_scheme.weight.copy_(embeddings.position_embeddings.weight)
    copy_linear(ours.norm, embeddings.LayerNorm.weight, embeddings.LayerNorm.bias)
    for layer, block in zip(ours.layers, theirs.encoder.layer, strict=True):
        pairs = {name: getattr(block.attention.self, name) for name in ("query", "key", "value")}
        pairs["output"] = block.attention.output.dense
        for name, its in pairs.items():
            copy_linear(getattr(layer.attention, name), its.weight, its.bias)
        copy_linear(
            layer.attention_norm, block.attention.output.LayerNorm.weight, block.attention.output.LayerNorm.bias
        )
        copy_linear(layer.feed_forward[0], block.intermediate.dense.weight, block.intermediate.dense.bias)
        copy_linear(layer.feed_forward[2], block.output.dense.weight, block.output.dense.bias)
        copy_linear(layer.feed_forward_norm, block.output.LayerNorm.weight, block.output.LayerNorm.bias)


def test_post_norm_is_bert():
    sizes = {"vocab_size": VOCAB, "num_hidden_layers": LAYERS, "hidden_size": WIDTH, "num_attention_heads": HEADS}
    config = BertConfig(**sizes, intermediate_size=4 * WIDTH, max_position_embeddings=LENGTH)
    theirs = perturbed(BertModel(config, add_pooling_layer=False))
    ours = Transformer(
        TransformerConfig(scheme="learned", norm="post", causal=False, norm_epsilon=1e-12, **SIZES)
    ).eval()
    copy_bert(theirs, ours)
    ids, mask = torch.arange(24).view(2, 12), torch.ones(2, 12, dtype=torch.long)
    mask[1, 9:] = 0
    expected = theirs(ids, attention_mask=mask, output_hidden_states=True).hidden_states
    states = ours.hidden_states(ids, attention_mask=mask)
    real = mask.bool()
    assert all(torch.allclose(a[real], b[real], atol=1e-5) for a, b in zip(states, expected, strict=True))


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


def test_a_causal_model_does_not_see_what_comes():
    model = Transformer(TransformerConfig(scheme="rope", **SIZES)).eval()
    ids = torch.arange(8)[None]
    other = ids.clone()
    other[0, 5:] = 40
    assert torch.equal(model(ids)[:, :5], model(other)[:, :5])
    assert not torch.allclose(model(ids)[:, 5:], model(other)[:, 5:], atol=1e-3)


def test_scaled_embeddings_start_with_entries_of_size_one():
    config = TransformerConfig(scheme="nopos", scale_embeddings=True, vocab_size=2000, d_model=64)
    embedded = Transformer(config).eval().embed(torch.arange(2000)[None], torch.arange(2000))
    assert abs(embedded.std() - 1) < 0.02


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


def test_gradients_reach_every_parameter():
    model = LanguageModel(TransformerConfig(scheme="learned+shaw", norm="post", dropout=0.1, **SIZES))
    model(torch.arange(LENGTH)[None]).square().sum().backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert without == []


def test_dropout_acts_in_training_only():
    model = Transformer(TransformerConfig(scheme="nopos", dropout=0.5, **SIZES))
    ids = torch.arange(8)[None]
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_layers": 0}, ModelInputError, "n_layers is 0; it must be a whole number of at least 1"),
        ({"d_ff": -1}, ModelInputError, "d_ff is -1"),
        ({"n_heads": 2.0}, ModelInputError, "n_heads is 2.0"),
        ({"vocab_size": True}, ModelInputError, "vocab_size is True"),
        ({"norm": "rms"}, ModelInputError, "norm is 'rms'; choose among pre, post"),
        ({"activation": "swish"}, ModelInputError, "activation is 'swish'; choose among gelu, gelu_tanh, relu"),
        ({"dropout": 1.0}, ModelInputError, "dropout is 1.0; it must be at least 0 and below 1"),
        ({"weight_std": -0.1}, ModelInputError, "weight_std is -0.1; it must be a finite number of at least 0"),
        ({"weight_std": float("nan")}, ModelInputError, "weight_std is nan; it must be a finite number"),
        ({"weight_std": True}, ModelInputError, "weight_std is True"),
        ({"n_heads": 5}, EncodingInputError, "5 heads do not divide"),
        ({"scheme": "alby"}, EncodingInputError, "did you mean 'alibi'"),
        ({"scheme": "learned", "n_positions": None}, EncodingInputError, "learned needs n_positions="),
        ({"scheme": "xpos", "causal": False}, EncodingInputError, "xpos is not defined for a bidirectional model"),
        ({"scheme_options": {"rope": {}}}, EncodingInputError, "there are options for 'rope'"),
    ],
)
def test_a_config_that_cannot_be_meant_is_an_error(options, error, message):
    with pytest.raises(error, match=message):
        Transformer(TransformerConfig(**(SIZES | options)))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[1, 2]], "ids are list; they must be integers of shape"),
        (torch.tensor([1, 2]), "ids are torch.int64 of (2,)"),
        (torch.ones(1, 3), "ids are torch.float32 of (1, 3)"),
        (torch.zeros(1, 0, dtype=torch.long), "ids are torch.int64 of (1, 0)"),
        (torch.tensor([[0, VOCAB]]), f"id {VOCAB} is outside the vocabulary of {VOCAB} tokens"),
        (torch.tensor([[0, -1]]), "id -1 is outside the vocabulary"),
    ],
)
def test_ids_that_are_no_tokens_are_an_error(ids, message):
    with pytest.raises(ModelInputError) as caught:
        Transformer(TransformerConfig(**SIZES))(ids)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
