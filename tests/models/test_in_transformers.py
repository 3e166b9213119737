"""A scheme in a model of transformers takes the place of its own positions, and nothing else of the model changes."""

import contextlib
import copy
import functools
import inspect
import warnings

import pytest
import torch
import transformers
from models.in_transformers_models import (
    D_HEAD,
    ENCODERS,
    LENGTH,
    N_HEADS,
    N_LAYERS,
    build,
    build_class,
    difference,
    generated,
    left_padded,
    own_positions,
    tokens,
)
from models.reference import ONE_WAY, Nearness
from refusals import refused
from small_models import build as small_model
from torch import nn
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, StaticCache

from posembed import PositionScheme, schemes, with_position_table
from posembed.encodings import T5, ALiBi, NoPos, OnLayers, PerLayer, RoPE, scheme
from posembed.errors import EncodingInputError, ModelInputError
from posembed.models import load_with_scheme, pack, use_scheme
from posembed.models.transformers_families import FAMILIES, MARK, NAME, Family
from posembed.tables import find_position_rows

# Shares of the largest logit: float32 sums of a few hundred products, in another order.
CLOSE = 1e-5
CAUSAL = ["gpt2", "llama"]
BART_SIZES = {"layers": 1, "attention_heads": N_HEADS, "ffn_dim": 32}
# T5 and ViT, whose calls differ, have a file of their own.
KINDS = [kind for kind in FAMILIES if kind not in ("t5", "vit")]
DECODERS = [kind for kind in KINDS if kind not in ENCODERS]
# Forgetting reads the tokens that enter attention, which models of transformers do not hand on.
WITHOUT_GATES = [name for name in schemes() if name != "forgetting"]
NAMES = [*WITHOUT_GATES, "learned+t5", "rope+alibi", "scaled_logits+t5", "user"]
BIDIRECTIONAL = [name for name in NAMES if not ONE_WAY & set(name.split("+"))]


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def made(name, causal=True):
    """A scheme with parameters drawn anew, so large that they matter."""
    torch.manual_seed(2)
    sizes = {"d_model": N_HEADS * D_HEAD, "n_heads": N_HEADS, "n_layers": N_LAYERS, "n_positions": LENGTH}
    one = Nearness(N_HEADS) if name == "user" else scheme(name, **sizes, causal=causal)
    for parameter in one.parameters():
        parameter.data = torch.rand_like(parameter) + 0.1
    return one


def whole_mask(n, causal):
    """What a text may see, "1 1 query key". Given in full, it also replaces a sliding window."""
    everything = torch.ones(1, 1, n, n, dtype=torch.bool)
    return everything.tril() if causal else everything


# Whatever the call gives besides the ids, and whether some of its rows are padding.
CALLS = {
    "ids": {},
    "padding": {"attention_mask": torch.tensor([[0, 0, 0, 1, 1, 1, 1], [1] * 7])},
    "positions": {"position_ids": torch.arange(5, 12)[None]},
    "positions of each text": {"position_ids": torch.stack([torch.arange(3, 10), torch.arange(7)])},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_its_own_positions_as_a_scheme_give_the_logits_of_the_model(kind, call):
    model, given = build(kind), CALLS[call]
    real = given.get("attention_mask", torch.ones(2, 7)).bool()
    ids = tokens().masked_fill(~real, model.config.pad_token_id)
    inputs = [{"input_ids": ids}, {"inputs_embeds": model.get_input_embeddings()(ids)}]
    own = dict(given)
    if "position_ids" in given and FAMILIES[kind].counted_by == "ids":
        own["position_ids"] = given["position_ids"] + model.config.pad_token_id + 1  # where RoBERTa itself begins
    expected = [model(**each, **own).logits for each in inputs]
    with use_scheme(model, own_positions(model)):
        for each, wanted in zip(inputs, expected, strict=True):
            assert difference(model(**each, **given).logits[real], wanted[real]) < CLOSE


@pytest.mark.parametrize("kind", KINDS)
def test_without_positions_a_model_that_sees_everything_is_blind_to_order(kind):
    """So nothing of the model's own positions is left."""
    model, ids, order = build(kind), tokens(), torch.tensor([3, 0, 6, 2, 5, 1, 4])
    given = {"attention_mask": whole_mask(7, causal=False), "position_ids": torch.arange(1, 8)[None]}
    before = model(ids, **given).logits
    assert difference(model(ids[:, order], **given).logits, before[:, order]) > 0.01
    with use_scheme(model, "nopos"):
        blind = model(ids, **given).logits
        assert difference(model(ids[:, order], **given).logits, blind[:, order]) < CLOSE
        assert difference(blind, before) > 0.01


NARROW = {"albert": {"embedding_size": 16}, "electra": {"embedding_size": 16}, "opt": {"word_embed_proj_dim": 16}}


@pytest.mark.parametrize("kind", NARROW)
def test_narrow_embeddings_take_what_acts_in_attention(kind):
    model, ids, order = build(kind, **NARROW[kind]), tokens(), torch.tensor([3, 0, 6, 2, 5, 1, 4])
    given = {"attention_mask": whole_mask(7, causal=False), "position_ids": torch.arange(1, 8)[None]}
    with use_scheme(model, "nopos"):
        blind = model(ids, **given).logits
        assert difference(model(ids[:, order], **given).logits, blind[:, order]) < CLOSE
    for name in ("rope", "t5"):
        with use_scheme(model, name) as installed:
            for parameter in installed.scheme.parameters():
                parameter.uniform_(-2, 2)
            assert difference(model(ids, **given).logits, blind) > 0.01


@pytest.mark.parametrize("kind", NARROW)
def test_embeddings_that_are_widened_take_rows_as_wide_as_their_own(kind):
    """Their own rows by the name of a scheme are their own positions: OPT adds them behind what widens."""
    model, ids = build(kind, **NARROW[kind]), tokens()
    own, rows = model(ids).logits, find_position_rows(model).rows.detach()
    with use_scheme(model, "learned", options={"learned": {"table": rows}}):
        assert difference(model(ids).logits, own) < CLOSE
    with use_scheme(model, "sinusoidal+shaw"):
        assert difference(model(ids).logits, own) > 0.01
    assert torch.equal(model(ids).logits, own)


def test_layers_that_are_one_have_one_part_of_a_scheme():
    with use_scheme(build("albert", num_hidden_groups=1), "shaw") as installed:
        assert len(installed.scheme.layers) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["alibi", "t5", "kerple", "user"])
def test_a_bias_is_what_transformers_itself_adds_as_a_mask(kind, name):
    """The other side runs the model as it is, its own positions off by other means."""
    model, ids, causal = build(kind), tokens(), kind not in ENCODERS
    one, mask, at = made(name, causal), whole_mask(7, causal), torch.arange(7)
    with use_scheme(model, one):
        found = model(ids, attention_mask=mask).logits
    heads = torch.zeros(1, N_HEADS, 7, D_HEAD)
    bias = one.bias(heads, heads, at, at)
    added = bias.masked_fill(~mask, torch.finfo(bias.dtype).min).expand(2, -1, -1, -1)
    rotary = FAMILIES[kind].own == "rotary_emb"
    with contextlib.nullcontext() if rotary else with_position_table(model, "zeroed"):
        expected = model(ids, attention_mask=added, position_ids=(0 * at if rotary else at)[None]).logits
    assert difference(found, expected) < CLOSE


@pytest.mark.parametrize("kind", CAUSAL)
@pytest.mark.parametrize("name", NAMES)
def test_generation_with_a_cache_is_the_full_forward(kind, name):
    model, ids = build(kind), tokens(1)
    padded, mask = left_padded(ids)
    plain = model(ids).logits
    with use_scheme(model, made(name)):
        assert difference(model(ids).logits, plain) > 1e-3 or (kind, name) == ("llama", "rope")
        for cache in (None, "static"):
            how = {"cache_implementation": cache, "output_logits": True, "return_dict_in_generate": True}
            out = generated(model, ids, **how)
            steps, full = torch.stack(out.logits, 1), model(out.sequences[:, :-1]).logits[:, 6:]
            assert difference(steps, full) < CLOSE
            out_padded = generated(model, padded, attention_mask=mask, **how)
            assert difference(torch.stack(out_padded.logits, 1), full) < CLOSE
    assert torch.equal(model(ids).logits, plain)


# How to generate, beyond one token after another.
MODES = {
    "beams": {"num_beams": 3},
    "beams, static cache": {"num_beams": 2, "cache_implementation": "static"},
    "no cache": {"use_cache": False},
    "guesses from the text": {"prompt_lookup_num_tokens": 3},
    "prompt in chunks": {"prefill_chunk_size": 3},
    "samples of beams": {"num_beams": 3, "do_sample": True, "num_return_sequences": 2},
}


# A static cache with a sliding window is refused.
GENERATORS = [
    (kind, mode)
    for kind in (*CAUSAL, "mistral", "opt")
    for mode in MODES
    if kind != "mistral" or "cache_implementation" not in MODES[mode]
]


@pytest.mark.parametrize(("kind", "mode"), GENERATORS)
def test_every_way_to_generate_gives_what_the_model_gave(kind, mode):
    model, ids, how = build(kind), tokens(), dict(MODES[mode])
    if "prompt_lookup_num_tokens" in how:
        ids = ids[:1]  # all it takes
    else:
        how["attention_mask"] = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [1] * 7])
    torch.manual_seed(5)
    expected = generated(model, ids, **how)
    with use_scheme(model, own_positions(model)):
        torch.manual_seed(5)
        assert torch.equal(generated(model, ids, **how), expected)


CACHES = {
    "made by the model": lambda config: None,
    "dynamic": lambda config: DynamicCache(),
    "dynamic of the config": lambda config: DynamicCache(config=config),
    "static": lambda config: StaticCache(config=config, max_cache_len=12),
}
NO_WINDOW = {"mistral": {"sliding_window": None}, "gemma3_text": {"layer_types": ["full_attention"] * N_LAYERS}}


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("return_dict", [True, False])
def test_a_cache_knows_the_positions_of_its_keys(kind, cache, return_dict):
    model, ids = build(kind, **NO_WINDOW.get(kind, {})), tokens(2, 9)
    positions = torch.tensor([[3, 4, 5, 6, 7, 8, 9, 10, 11], [0, 1, 2, 7, 8, 9, 10, 11, 12]])
    mask = torch.ones_like(ids)
    with use_scheme(model, made("t5")):
        full = model(ids, position_ids=positions, attention_mask=mask).logits
        past = CACHES[cache](model.config)
        for start, stop in ((0, 4), (4, 5), (5, 9)):
            given = {"position_ids": positions[:, start:stop], "attention_mask": mask[:, :stop]}
            out = model(ids[:, start:stop], past_key_values=past, use_cache=True, return_dict=return_dict, **given)
            logits, past = (out.logits, out.past_key_values) if return_dict else out[:2]
            assert difference(logits, full[:, start:stop]) < CLOSE
            past = copy.deepcopy(past)


def test_a_cache_may_be_repeated_chosen_from_and_cropped():
    model, start, ends = build("llama"), tokens(1, 9), tokens(3, 4, 8)
    with use_scheme(model, made("shaw")):
        cache = DynamicCache(config=model.config)
        model(start, past_key_values=cache)
        cache.batch_repeat_interleave(3)
        full = model(torch.cat([start.expand(3, -1), ends], 1)).logits[:, 9:]
        assert difference(model(ends, past_key_values=cache).logits, full) < CLOSE
        cache.batch_select_indices(torch.tensor([2, 0]))
        cache.crop(-4)
        assert difference(model(ends[[2, 0]], past_key_values=cache).logits, full[[2, 0]]) < CLOSE


@pytest.mark.parametrize("kind", KINDS)
def test_positions_may_be_further_than_its_own_table_goes(kind):
    model, ids = build(kind), tokens(1, LENGTH + 10)
    with use_scheme(model, ALiBi(N_HEADS)):
        near = model(ids, attention_mask=torch.ones_like(ids)).logits
        far = model(ids, attention_mask=torch.ones_like(ids), position_ids=torch.arange(len(ids[0]))[None] + 10**6)
        assert difference(far.logits, near) < CLOSE


@pytest.mark.parametrize("change", [{"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True}], ids=str)
def test_logits_are_scaled_as_the_model_asks(change):
    model, ids = build("gpt2", **change), tokens()
    expected = model(ids).logits
    with use_scheme(model, own_positions(model)):
        for weights in (False, True):
            assert difference(model(ids, output_attentions=weights).logits, expected) < CLOSE


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "opt"])
def test_attention_weights_on_demand_change_nothing(kind):
    model, (ids, mask) = build(kind), left_padded(tokens(), 2)
    causal = kind != "bert"
    for name in NAMES if causal else BIDIRECTIONAL:
        with use_scheme(model, made(name, causal)):
            out = model(ids, attention_mask=mask, output_attentions=True)
            plain = model(ids, attention_mask=mask)
        assert not plain.get("attentions")
        assert difference(out.logits[:, 2:], plain.logits[:, 2:]) < CLOSE, name
        assert len(out.attentions) == N_LAYERS
        for weights in out.attentions:
            assert tuple(weights.shape) == (2, N_HEADS, 9, 9)
            assert torch.allclose(weights.sum(-1), torch.ones(()))
            assert weights[:, :, 2:, :2].abs().max() == 0
            assert not causal or weights.triu(1)[:, :, 2:].abs().max() == 0


@pytest.mark.parametrize("kind", CAUSAL)
def test_a_mask_of_floats_is_the_same_as_one_of_truth_values(kind):
    model, ids, mask = build(kind), tokens(), whole_mask(7, causal=True)
    numbers = torch.zeros(1, 1, 7, 7).masked_fill(~mask, torch.finfo(torch.float32).min)
    for name in NAMES:
        with use_scheme(model, made(name)):
            expected = model(ids).logits
            for given in (mask, numbers, mask.long()):
                found = model(ids, attention_mask=given.expand(2, -1, -1, -1)).logits
                assert difference(found, expected) < CLOSE, name


def test_a_decoder_may_look_both_ways():
    model, ids = build("llama"), tokens()
    changed = ids.clone()
    changed[:, -1] = 4
    with use_scheme(model, ALiBi(N_HEADS)):
        assert difference(model(changed).logits[:, 0], model(ids).logits[:, 0]) == 0
        assert difference(model(changed, is_causal=False).logits[:, 0], model(ids, is_causal=False).logits[:, 0]) > 1e-3
    model = build("llama", is_causal=False)
    with use_scheme(model, "t5") as installed:
        assert not installed.scheme.causal
        assert difference(model(changed).logits[:, 0], model(ids).logits[:, 0]) > 1e-3


def without_dropout(kind):
    model = build(kind, **({"dropout": 0.0} if kind == "opt" else {}))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model.train()


def gradients(model, ids):
    with torch.enable_grad():
        model.zero_grad()
        model(ids, labels=ids).loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "opt"])
@pytest.mark.parametrize("name", ["learned+t5", "shaw"])
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.filterwarnings("ignore:.gradient_checkpointing:FutureWarning")
def test_checkpointed_layers_have_the_same_gradients(kind, name, reentrant):
    model, ids = without_dropout(kind), tokens()
    with use_scheme(model, made(name, kind != "bert")):
        expected = gradients(model, ids)
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        found = gradients(model, ids)
    assert found.keys() == expected.keys()
    largest = max(each.abs().max() for each in expected.values())
    for each in expected:
        assert (found[each] - expected[each]).abs().max() < CLOSE * largest, each


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "opt"])
def test_training_changes_the_scheme_and_not_the_table_that_it_replaces(kind):
    model, ids = without_dropout(kind), tokens()
    own = model.base_model.get_submodule(f"{FAMILIES[kind].body}.{FAMILIES[kind].own}".strip("."))
    one, table = made("learned+t5", kind != "bert"), copy.deepcopy(own.state_dict())
    before = copy.deepcopy(one.state_dict())
    with use_scheme(model, one):
        assert not any(parameter.requires_grad for parameter in own.parameters())
        trained = gradients(model, ids)
        assert {f"position_scheme.{each}" for each in before} <= trained.keys()
        torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1).step()
    assert not any(torch.equal(one.state_dict()[each], before[each]) for each in before)
    assert all(torch.equal(own.state_dict()[each], table[each]) for each in table)
    assert all(parameter.requires_grad for parameter in own.parameters())


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_a_scheme_is_saved_and_copied_with_its_model(kind, tmp_path):
    model, ids, keys = build(kind), tokens(), set(build(kind).state_dict())
    one = made("shaw", kind != "bert")
    with use_scheme(model, one):
        assert set(model.state_dict()) - keys == {MARK, *(f"position_scheme.{name}" for name in one.state_dict())}
        expected = model(ids).logits
        twin = copy.deepcopy(model)
        assert torch.equal(twin(ids).logits, expected)
        torch.save(model, tmp_path / "model.pt")
    assert torch.equal(torch.load(tmp_path / "model.pt", weights_only=False)(ids).logits, expected)
    for parameter in twin.position_scheme.parameters():
        parameter.zero_()
    assert not torch.equal(twin(ids).logits, expected)


def test_models_that_were_made_from_one_config_say_each_its_own_scheme(tmp_path):
    config = GPT2Config(vocab_size=30, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    names = ("alibi", "nopos", "sinusoidal")
    installed = {name: use_scheme(GPT2LMHeadModel(config), name) for name in names}
    assert not hasattr(config, "position_scheme")
    for name, each in installed.items():
        assert each.model.config.position_scheme["name"] == name
        assert all(module.config is each.model.config for module in each.model.modules() if hasattr(module, "config"))
    installed["nopos"].remove()
    installed["alibi"].model.save_pretrained(tmp_path)
    assert isinstance(load_with_scheme(tmp_path).scheme, ALiBi)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_removal_leaves_no_trace(implementation):
    for kind in ("gpt2", "llama", "bert", "opt"):
        model, ids = build(kind), tokens()
        model.set_attn_implementation(implementation)
        before, state = model(ids).logits, copy.deepcopy(model.state_dict())
        hooks = [(len(m._forward_pre_hooks), len(m._forward_hooks), set(m.__dict__)) for m in model.modules()]
        installed = use_scheme(model, "t5")
        model(ids)
        installed.remove()
        installed.remove()
        with pytest.raises(ZeroDivisionError), use_scheme(model, "alibi"):
            raise ZeroDivisionError
        assert torch.equal(model(ids).logits, before)
        assert model.config._attn_implementation == implementation
        assert [(len(m._forward_pre_hooks), len(m._forward_hooks), set(m.__dict__)) for m in model.modules()] == hooks
        assert {name: value.tolist() for name, value in model.state_dict().items()} == {
            name: value.tolist() for name, value in state.items()
        }


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_cross_attention_has_no_positions(kind):
    more = {"is_decoder": True} if kind == "bert" else {}
    name = {"gpt2": "GPT2LMHeadModel", "bert": "BertLMHeadModel"}[kind]
    model, ids = build_class(name, kind, add_cross_attention=True, **more), tokens()
    memory = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(3))

    def run():
        full = model(ids, encoder_hidden_states=memory).logits
        past = model(ids[:, :4], encoder_hidden_states=memory, use_cache=True).past_key_values
        return full, model(ids[:, 4:], encoder_hidden_states=memory, past_key_values=past).logits

    expected = run()
    with use_scheme(model, own_positions(model)):
        for found, wanted in zip(run(), expected, strict=True):
            assert difference(found, wanted) < CLOSE
    with use_scheme(model, made("rope+alibi")):
        full, continued = run()
        assert difference(continued, full[:, 4:]) < CLOSE


def test_cross_attention_that_only_its_name_tells_has_no_positions(monkeypatch):
    """A family of one's own: BART's decoder attends to its encoder by the class that it attends to itself with."""
    monkeypatch.setitem(FAMILIES, "bart", Family("embed_positions"))
    sizes = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in BART_SIZES.items()}
    model, ids = build_class("BartModel", "bart", d_model=32, **sizes).decoder, tokens()
    memory = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(3))
    with use_scheme(model, "rope+alibi"):
        full = model(ids, encoder_hidden_states=memory).last_hidden_state
        past = model(ids[:, :4], encoder_hidden_states=memory, use_cache=True).past_key_values
        rest = model(ids[:, 4:], encoder_hidden_states=memory, past_key_values=past).last_hidden_state
        assert difference(rest, full[:, 4:]) < CLOSE
        assert difference(model(ids, encoder_hidden_states=memory.flip(1)).last_hidden_state, full) < CLOSE


@pytest.mark.parametrize("kind", KINDS)
def test_packed_texts_do_not_see_each_other(kind):
    """With the mask of `pack`, as its docstring says, and whether or not a cache is made meanwhile."""
    model, ids = build(kind), tokens(1, 7)
    texts = ids[:, :4], ids[:, 4:]
    with use_scheme(model, ALiBi(N_HEADS)):
        causal = kind not in ENCODERS
        positions, mask = pack(torch.tensor([[0] * 4 + [1] * 3]), causal=causal)
        for how in ({}, {"use_cache": False}) if causal else ({},):
            packed = model(ids, position_ids=positions, attention_mask=mask, **how).logits
            alone = [model(text, attention_mask=torch.ones_like(text)).logits for text in texts]
            assert difference(packed, torch.cat(alone, 1)) < CLOSE
        # GPT-2 would read it as a mask of padding.
        said = refused(ModelInputError, model, ids, position_ids=positions, attention_mask=mask[:, 0])
        assert said == "attention_mask has three axes, and transformers wants four; give mask[:, None]"


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
@pytest.mark.parametrize("how", ["eager", "sdpa"])
def test_the_mask_of_packed_texts_means_the_same_to_a_model_without_a_scheme(kind, how):
    """True and False are added as 1 and 0 by "eager", and GPT-2 reads three axes as padding: wrong without a word."""
    model, ids, causal = build(kind), tokens(1, 7), kind not in ENCODERS
    model.set_attn_implementation(how)
    positions, mask = pack(torch.tensor([[0] * 4 + [1] * 3]), causal=causal)
    alone = torch.cat([model(ids[:, :4]).logits, model(ids[:, 4:]).logits], 1)
    assert difference(model(ids, position_ids=positions, attention_mask=mask).logits, alone) < CLOSE
    model.bfloat16()
    alone = torch.cat([model(ids[:, :4]).logits, model(ids[:, 4:]).logits], 1)
    packed = model(ids, position_ids=positions, attention_mask=mask.to(model.dtype)).logits
    assert difference(packed, alone) < 0.05  # roundings of bfloat16; texts that see each other are off by 0.1 and more


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_one_row_of_positions_is_for_all_texts(kind):
    model, ids = build(kind), tokens()
    with use_scheme(model, ALiBi(N_HEADS)):
        found = model(ids, position_ids=torch.arange(7) + 3).logits
        assert torch.equal(found, model(ids, position_ids=(torch.arange(7) + 3).expand(2, -1)).logits)
        said = refused(ModelInputError, model, ids, position_ids=torch.zeros(3, 2, 7, dtype=torch.long))
        assert said == "position_ids have shape (3, 2, 7); a scheme takes (batch, seq)"


# A family and what its config says otherwise: each kind of rotation of today's models once.
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 10}
LISTS = {"short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [2.0] * 4, "original_max_position_embeddings": 40}
ROTATIONS = [(kind, {}) for kind, family in FAMILIES.items() if family.own == "rotary_emb"] + [
    ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    ("llama", {"rope_parameters": YARN | {"mscale": 1.0, "mscale_all_dim": 0.5}}),
    ("gpt_neox", {"rotary_pct": 0.5}),
    ("smollm3", {"no_rope_layers": [0, 1]}),
]


@pytest.mark.filterwarnings("ignore:'rope' is here")
@pytest.mark.parametrize(("kind", "change"), ROTATIONS, ids=str)
def test_rope_by_its_name_is_the_models_own_rotation(kind, change):
    model, ids = build(kind, **change), tokens(length=20)
    own = model(ids).logits
    with use_scheme(model, "rope"):
        assert difference(model(ids).logits, own) < CLOSE
    with use_scheme(model, "alibi+rope"):
        assert difference(model(ids).logits, own) > 100 * CLOSE
    with use_scheme(model, RoPE(D_HEAD, base=3.0)):
        assert difference(model(ids).logits, own) > 100 * CLOSE


@pytest.mark.parametrize("kind", ["phi3", "qwen3"])
def test_a_rotation_that_hangs_on_the_length_is_given_for_one(kind):
    """By its name it would have the angles of short texts: off by the half of the logits, and nothing said so."""
    said = {"phi3": {"rope_type": "longrope", "factor": 2.0, **LISTS}, "qwen3": {"rope_type": "dynamic", "factor": 2.0}}
    model = build(kind, rope_parameters={"rope_theta": 1e4} | said[kind])
    assert "depend on how long a text is" in refused(ModelInputError, use_scheme, model, "rope+alibi")
    length = model.config.max_position_embeddings + 10
    ids = tokens(length=length)
    own = model(ids).logits
    with use_scheme(model, RoPE.from_config(model.config, length=length)):
        assert difference(model(ids).logits, own) < CLOSE


def test_a_rope_by_its_name_says_that_it_is_the_models_own():
    model = build("llama", rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    with pytest.warns(UserWarning, match="the model's own rotation, .*'rope_theta': 500000.0"):
        use_scheme(model, "alibi+rope").remove()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        use_scheme(model, RoPE(D_HEAD)).remove()
        use_scheme(model, "alibi").remove()
        use_scheme(build("llama"), "rope").remove()


@pytest.mark.bad_input
def test_options_of_the_models_own_rotation_are_refused():
    said = refused(ModelInputError, use_scheme, build("gpt_neox"), "rope", options={"rope": {"base": 5e5}})
    assert said == "'rope' is here the model's own rotation, without options; give another as an object"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_in_half_precision_padding_gives_no_nan(kind, dtype):
    model, (ids, mask) = build(kind), left_padded(tokens())
    with use_scheme(model, ALiBi(N_HEADS)):
        model.to(dtype)
        for weights in (False, True):
            out = model(ids, attention_mask=mask, output_attentions=weights)
            assert out.logits.dtype == dtype and out.logits.isfinite().all()


class Spy(PositionScheme):
    """Remembers the queries that it is shown."""

    def bias(self, q, k, positions, key_positions):
        self.q = q
        return torch.zeros(q.shape[1], q.shape[2], k.shape[2])


def test_a_scheme_reads_queries_as_they_were_projected():
    """OPT divides them by the root of the head width first."""
    model, spy, ids = build("opt", num_hidden_layers=1), Spy(), tokens()
    with use_scheme(model, spy):
        hidden = model(ids, output_hidden_states=True).hidden_states[0]
    layer = model.model.decoder.layers[0]
    projected = layer.self_attn.q_proj(layer.self_attn_layer_norm(hidden))
    assert difference(spy.q, projected.unflatten(-1, (N_HEADS, D_HEAD)).transpose(1, 2)) < CLOSE


def test_a_name_is_made_for_the_sizes_of_the_model():
    with use_scheme(build("gpt2"), "learned+t5", options={"t5": {"max_distance": 64}}) as installed:
        learned, t5 = installed.scheme.parts
        assert tuple(learned.weight.shape) == (LENGTH, 32)
        assert (t5.n_heads, t5.causal, t5.max_distance) == (N_HEADS, True, 64)
    with use_scheme(build("roberta").bfloat16(), "learned+t5") as installed:
        learned, t5 = installed.scheme.parts
        assert tuple(learned.weight.shape) == (LENGTH - 1, 32) and not t5.causal
        assert learned.weight.dtype == torch.bfloat16
    with use_scheme(build("llama"), "shaw") as installed:
        assert len(installed.scheme.layers) == N_LAYERS
        assert installed.model.position_scheme is installed.scheme


@pytest.mark.slow
def test_compiled_it_gives_the_same_numbers(cases_of):
    found = cases_of("in_transformers_compiled")
    assert len(found) == 5
    assert all(each < CLOSE for each in found.values()), found


class Fixed(transformers.GPT2Model):
    """As models whose attention is written into them."""

    @classmethod
    def _can_set_attn_implementation(cls):
        return False


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("model", "given", "error", "message"),
    [
        (lambda: build_class("Gemma2Model", "gemma2"), "rope", ModelInputError, "it caps the logits, which is no part"),
        (lambda: build_class("GPTJModel", "gptj"), "rope", ModelInputError, "its attention is code of its own; use a"),
        (
            lambda: build_class("BloomModel", "bloom"),
            "rope",
            ModelInputError,
            "its attention is code of its own; use a",
        ),
        (lambda: build_class("CohereModel", "cohere"), "rope", ModelInputError, "nobody has tested where it keeps its"),
        (lambda: small_model("clip"), "rope", ModelInputError, "give one part of a model of several"),
        (
            lambda: build_class("EsmModel", "esm", position_embedding_type="rotary", pad_token_id=1, mask_token_id=4),
            "rope",
            ModelInputError,
            "it scales its words by the share of hidden ones",
        ),
        (lambda: build_class("MambaModel", "mamba"), "alibi", ModelInputError, "it has no attention, and reads its"),
        (lambda: build_class("FNetModel", "fnet"), "alibi", ModelInputError, "it has no attention, and mixes its"),
        (lambda: build_class("StableLmModel", "stablelm"), "t5", ModelInputError, "its layers hand nothing on to att"),
        (lambda: build_class("RwkvModel", "rwkv"), "alibi", ModelInputError, "it has no attention, and reads its"),
        (lambda: nn.Linear(2, 2), "alibi", ModelInputError, "Linear cannot take a scheme"),
        (lambda: "gpt2", "alibi", ModelInputError, "str cannot take a scheme"),
        (
            lambda: Fixed(build("gpt2").config),
            "alibi",
            ModelInputError,
            "Fixed has attention that cannot be exchanged",
        ),
        (lambda: build("gpt2"), RoPE(8, axes=(4, 4)), ModelInputError, "several coordinates"),
        (lambda: build("gpt2"), "alibbi", EncodingInputError, "did you mean 'alibi'"),
        (lambda: nn.DataParallel(build("gpt2")), "alibi", ModelInputError, "DataParallel cannot take a scheme"),
        (lambda: build("gpt2"), 3, EncodingInputError, "name is 3; give a text"),
        (lambda: build("gpt2"), None, EncodingInputError, "name is None; give a text, or give a PositionScheme"),
        (lambda: build("gpt2"), RoPE, EncodingInputError, "RoPE'>; give a text, or give a PositionScheme"),
        (lambda: build("bert"), "xpos", EncodingInputError, "xpos is not defined for a bidirectional model"),
        (
            lambda: build("bert"),
            T5(N_HEADS, causal=True),
            EncodingInputError,
            "T5 is not defined for a bidirectional model",
        ),
        (
            lambda: build("gpt2"),
            scheme("shaw", d_model=32, n_heads=4, n_layers=1),
            EncodingInputError,
            "for 1 layers, and the model has 2",
        ),
        (lambda: build("gpt2"), PerLayer([NoPos()] * 3), EncodingInputError, "for 3 layers, and the model has 2"),
        (
            lambda: build("gpt2"),
            OnLayers(NoPos(), [0], n_layers=3),
            EncodingInputError,
            "for 3 layers, and the model has 2",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_put_together(model, given, error, message):
    model = model()
    state = dict(vars(model)) if isinstance(model, nn.Module) else None
    before = getattr(getattr(model, "config", None), "_attn_implementation", None)
    assert message in refused(error, use_scheme, model, given)
    assert state is None or vars(model) == state
    assert getattr(getattr(model, "config", None), "_attn_implementation", None) == before != NAME


@pytest.mark.bad_input
def test_an_untested_model_is_tried_as_the_error_says(monkeypatch):
    """With the model's own rotation as a scheme the numbers stay: its own positions are silent, the scheme acts."""
    model, ids = build_class("CohereModel", "cohere").eval(), torch.arange(5)[None]
    own = model(ids).last_hidden_state
    said = refused(ModelInputError, use_scheme, model, "rope")
    assert (
        "name the module that makes them, FAMILIES['cohere'] = Family('its.path'), both from posembed.models.tr" in said
    )
    monkeypatch.setitem(FAMILIES, "cohere", Family("rotary_emb"))
    d_head = model.config.hidden_size // model.config.num_attention_heads
    base = model.config.rope_parameters["rope_theta"]
    with use_scheme(model, RoPE(d_head, base=base, layout="interleaved")):
        assert difference(model(ids).last_hidden_state, own) < CLOSE
    with use_scheme(model, "nopos"):
        assert difference(model(ids).last_hidden_state, own) > 100 * CLOSE


def test_a_model_whose_forward_another_library_has_wrapped_takes_a_scheme():
    model, ids = build("gpt2").base_model, torch.arange(5)[None]
    with use_scheme(model, "alibi"):
        expected = model(ids).last_hidden_state
    own = model.forward

    def wrapped(self, *args, **kwargs):
        return own(*args, **kwargs)

    model.forward = functools.partial(wrapped, model)
    model.forward.__signature__ = inspect.signature(wrapped)
    with use_scheme(model, "alibi"):
        assert torch.equal(model(ids).last_hidden_state, expected)


def test_one_scheme_at_a_time():
    model, ids = build("gpt2"), tokens()
    with use_scheme(model, "alibi"):
        for again in (model, model.transformer):
            assert "has a position scheme already" in refused(ModelInputError, use_scheme, again, "t5")
        assert "call the whole model" in refused(ModelInputError, model.transformer.h[0], torch.zeros(1, 3, 32))
        model.set_attn_implementation("sdpa")
        assert "changed under its scheme" in refused(ModelInputError, model, ids)


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["softcap", "s_aux", "position_bias", "cache"])
def test_attention_that_no_scheme_has_a_place_for(name):
    model = build("llama")
    with use_scheme(model, "alibi"), pytest.raises(ModelInputError, match=f"LlamaAttention asks for {name}="):
        model(tokens(), **{name: 30.0})


@pytest.mark.bad_input
def test_caches_that_do_not_work():
    model, ids = build("mistral"), tokens()
    filled, offloaded, plain = DynamicCache(), DynamicCache(), DynamicCache()
    model(ids, past_key_values=filled)
    offloaded.offloading = True
    with use_scheme(model, "alibi"):
        assert "filled without this scheme" in refused(ModelInputError, model, ids, past_key_values=filled)
        assert "offloaded" in refused(ModelInputError, model, ids, past_key_values=offloaded)
        assert "sliding window" in refused(
            ModelInputError, model, ids, past_key_values=StaticCache(config=model.config, max_cache_len=12)
        )
        model(ids, past_key_values=plain)


@pytest.mark.bad_input
def test_families_of_ones_own_that_cannot_be_are_told_so(monkeypatch):
    monkeypatch.setitem(FAMILIES, "fnet", Family("embeddings.position_embeddings"))
    monkeypatch.setitem(FAMILIES, "stablelm", Family("rotary_emb"))
    assert "has no attention that can be" in refused(
        ModelInputError, use_scheme, build_class("FNetModel", "fnet"), "t5"
    )
    model = build_class("StableLmModel", "stablelm")
    with use_scheme(model, "alibi"):
        assert "hand nothing on to attention" in refused(ModelInputError, model, tokens())


def test_a_scheme_that_reads_the_tokens_is_refused():
    said = "the scheme reads the tokens that enter attention"
    for one in (
        "forgetting",
        "rope+forgetting",
        OnLayers(scheme("forgetting", d_model=32, n_heads=4), [0], n_layers=2),
    ):
        assert said in refused(ModelInputError, use_scheme, build("gpt2"), one)


@pytest.mark.parametrize("name", WITHOUT_GATES)
def test_a_name_does_for_heads_that_are_no_part_of_the_width(name):
    model = build("qwen3", head_dim=16)
    ids = torch.randint(3, model.config.vocab_size, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = model(ids).logits
    with use_scheme(model, name) as installed, torch.no_grad():
        assert getattr(installed.scheme, "d_head", 16) == 16
        there = model(ids).logits
    assert there.isfinite().all() and (name == "rope") == torch.allclose(there, before, atol=1e-4)
