import copy

import pytest
import torch
from refusals import refused
from small_models import build
from transformers import AttentionInterface

from posembed import Transformer, TransformerConfig, with_position_table
from posembed.errors import ProbeInputError
from posembed.probing.attention_maps import identical_word_attention
from posembed.similarity import properties_of_matrix

WORDS = [7, 12, 25, 9, 20]
ENCODERS = ["bert-lm", "roberta", "mpnet", "electra", "albert", "esm", "nystromformer", "distilbert", "roformer"]
DECODERS = ["gpt2-lm", "gpt", "opt", "llama", "bloom", "mpt", "gptj", "xglm", "falcon-alibi"]


def rand(seed):
    return torch.Generator().manual_seed(seed)


def attention(model, *, length=6, words=WORDS, **options):
    return identical_word_attention(model, length=length, words=words, **options)


def from_transformers(model, layer=0, length=6):
    """What the model itself hands out, word by word."""
    if model._can_set_attn_implementation():
        model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = [model(torch.full((1, length), word), output_attentions=True).attentions[layer][0] for word in WORDS]
    return torch.stack(maps).mean(0)


@pytest.mark.parametrize("kind", [*ENCODERS, *DECODERS, "xlnet"])
def test_the_map_is_the_mean_of_what_the_model_hands_out(kind):
    model = build(kind)
    found, each_head = attention(model), attention(model, heads=None)
    wanted = from_transformers(model)
    torch.testing.assert_close(each_head, wanted, rtol=0, atol=2e-7)
    torch.testing.assert_close(found, wanted.mean(0), rtol=0, atol=2e-7)


@pytest.mark.parametrize(("kind", "setting"), [("bert", "num_hidden_layers"), ("xlnet", "n_layer")])
@pytest.mark.parametrize("layer", [0, 2])
def test_each_layer_can_be_had(kind, setting, layer):
    model = build(kind, **{setting: 3})
    found = attention(model, layer=layer, heads=None)
    torch.testing.assert_close(found, from_transformers(model, layer), rtol=0, atol=2e-7)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "gpt2", "opt"])
def test_without_positions_every_key_that_is_seen_has_the_same_weight(kind):
    model, length = build(kind), 6
    with with_position_table(model, "zeroed"):
        found = attention(model, length=length)
    seen = torch.ones(length, length)
    seen = seen.tril() if kind in ("gpt2", "opt") else seen
    torch.testing.assert_close(found, seen / seen.sum(1, keepdim=True), rtol=0, atol=1e-7)
    properties = properties_of_matrix(found)
    assert properties.monotonicity == pytest.approx(0.5, abs=0.4 if kind in ("gpt2", "opt") else 0)


def test_special_words_are_not_drawn():
    """Of the 30 words, ids 1, 2 and 3 pad, begin and end."""
    model = build("roberta")
    drawn = lambda **options: identical_word_attention(model, length=3, **options)
    everything = attention(model, length=3, words=[word for word in range(30) if word not in (1, 2, 3)])
    torch.testing.assert_close(drawn(words=27), everything, rtol=0, atol=1e-7)
    several = build("gpt2", eos_token_id=[3, 4, 5])
    ours = attention(several, length=3, words=torch.tensor([0, 1, *range(6, 30)]))
    torch.testing.assert_close(identical_word_attention(several, length=3, words=26), ours, rtol=0, atol=1e-7)


def test_the_draw_follows_its_seed_and_leaves_the_global_state_alone():
    model, state = build("bert"), torch.get_rng_state()
    one, again, other = (identical_word_attention(model, length=4, words=3, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
@pytest.mark.parametrize("dtype", [torch.bfloat16], ids=str)
def test_half_precision(kind, dtype):
    model = build(kind)
    wanted, found = attention(model), attention(model.to(dtype))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, wanted, rtol=0, atol=4 * torch.finfo(dtype).eps)
    torch.testing.assert_close(found.sum(1), torch.ones(6), rtol=0, atol=1e-6)


# The model stays as it was.


def snapshot(model):
    modes = [module.training for module in model.modules()]
    # Those of transformers itself stay, and do nothing unless asked.
    names = [hook.__module__ for module in model.modules() for hook in module._forward_hooks.values()]
    hooks = [name for name in names if not name.startswith("transformers.")]
    return modes, hooks, model.config._attn_implementation, copy.deepcopy(model.state_dict())


def assert_same(before, after):
    assert before[:3] == after[:3]
    assert all(torch.equal(before[3][name], after[3][name]) for name in before[3])


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_modes_hooks_weights_and_the_attention_function_are_put_back(implementation):
    model = build("bert", hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5).train()
    model.encoder.layer[0].eval()
    model.set_attn_implementation(implementation)
    before = snapshot(model)
    found = attention(model)
    assert_same(before, snapshot(model))
    torch.testing.assert_close(found, attention(model.eval()), rtol=0, atol=0)
    assert not found.requires_grad


def test_an_attention_function_of_ones_own_is_not_replaced():
    """It keeps no weights, and what the eager function would compute in its place would be another model's."""

    def own(module, query, key, value, attention_mask, **kwargs):
        return value.transpose(1, 2), None

    AttentionInterface.register("of_ones_own", own)
    model = build("bert")
    model.set_attn_implementation("of_ones_own")
    assert "gives attention weights of 0 layers" in refused(ProbeInputError, attention, model)
    assert model.config._attn_implementation == "of_ones_own"


# posembed's own models.

SCHEMES = ["nopos", "sinusoidal", "learned", "rope", "alibi", "t5", "shaw", "kerple", "fire", "cope", "xpos"]
SCHEMES += ["forgetting", "scaled_logits"]


def own_model(scheme, causal=True, n_layers=2, norm="pre", kind=Transformer):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = {"vocab_size": 30, "d_model": 16, "n_heads": 2, "n_positions": 20, "n_layers": n_layers}
        model = kind(TransformerConfig(scheme=scheme, causal=causal, norm=norm, **sizes))
        for parameter in model.parameters():
            parameter.data = torch.randn(parameter.shape, generator=rand(parameter.numel())) / 4
    return model


def by_hand(model, layer, length=6):
    """The logits of each word, with the scheme's bias added as a whole matrix."""
    total, at = 0, torch.arange(length)
    for word in WORDS:
        states = model.hidden_states(torch.full((1, length), word))
        block = model.layers[layer]
        x = block.attention_norm(states[layer]) if block.pre_norm else states[layer]
        part = block.attention
        q, k = (each(x).view(1, length, 2, 8).transpose(1, 2) for each in (part.query, part.key))
        q, k = part.position_scheme.rotate(q, at), part.position_scheme.rotate_keys(k, at)
        seen = torch.ones(length, length, dtype=torch.bool).tril() if part.causal else torch.ones(length, length).bool()
        extra = {"visible": seen} if part.position_scheme.reads_mask else {}
        extra |= {"gates": part.position_scheme.gates(x)} if part.position_scheme.gated else {}
        bias = part.position_scheme.bias(q, k, at, at, **extra)
        scale = 8**-0.5 if part.logit_scale is None else part.logit_scale
        logits = (q @ k.mT * scale + (0 if bias is None else bias)).masked_fill(~seen, -torch.inf)
        total = total + logits.softmax(-1)[0].detach() / len(WORDS)
    return total


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("layer", [0, 1])
def test_posembeds_own_models_with_any_scheme(scheme, layer):
    model = own_model(scheme)
    torch.testing.assert_close(attention(model, layer=layer, heads=None), by_hand(model, layer), rtol=0, atol=2e-6)
