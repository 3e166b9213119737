"""A rotation read from a config: frequencies and factors of transformers, its layers, its pairs."""

import importlib

import pytest
import torch
import transformers
from refusals import refused
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from posembed.encodings import NTKScaling, RoPE
from posembed.errors import EncodingInputError

WIDTH, LONGEST = 32, 4096
SIZES = {
    "hidden_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "head_dim": WIDTH,
    "max_position_embeddings": LONGEST,
    "pad_token_id": 0,
}
LISTS = {"short_factor": [1.0 + i / 16 for i in range(16)], "long_factor": [1.0 + i for i in range(16)]}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 512}
LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONGROPE = {"rope_type": "longrope", "original_max_position_embeddings": 1024, **LISTS}
KINDS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "yarn": YARN,
    "yarn, its options": YARN | {"beta_fast": 16.0, "beta_slow": 2.0, "truncate": False, "attention_factor": 0.7},
    "yarn, mscale": YARN | {"mscale": 1.0, "mscale_all_dim": 0.707},
    "yarn, one mscale": YARN | {"mscale": 0.5},
    "yarn, no factor": YARN | {"factor": None},
    "yarn, half of the head": YARN | {"partial_rotary_factor": 0.5},
    "longrope": LONGROPE,
    "longrope, its options": LONGROPE | {"factor": 32.0, "attention_factor": 1.5},
    "llama3": LLAMA3 | {"factor": 8.0, "original_max_position_embeddings": 512},
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.25},
    "proportional, scaled": {"rope_type": "proportional", "partial_rotary_factor": 0.7, "factor": 8.0},
}


def llama(parameters, base=500000.0):
    return AutoConfig.for_model("llama", **SIZES, rope_parameters={"rope_theta": base, **parameters})


@pytest.mark.parametrize("length", [None, 1024, 5000, 20000])
@pytest.mark.parametrize("parameters", KINDS.values(), ids=KINDS)
def test_frequencies_and_factor_are_those_of_transformers(parameters, length):
    config = llama(parameters)
    theirs, factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, torch.device("cpu"), seq_len=length)
    read = RoPE.from_config(config, length=length)
    torch.testing.assert_close(read.frequencies, theirs.double(), rtol=1e-6, atol=1e-9)
    assert read.scaling.attention_factor == pytest.approx(factor, rel=1e-6)
    given = {name: value for name, value in config.rope_parameters.items() if value is not None}
    if parameters["rope_type"] == "dynamic":  # a base for each length
        given = given | {"rope_type": "ntk", "factor": 4.0 * max(length or 0, LONGEST) / LONGEST - 3.0}
    if parameters["rope_type"] in ("yarn", "longrope"):
        given = {"factor": LONGEST / given["original_max_position_embeddings"]} | given
    if parameters["rope_type"] == "longrope":
        given["length"] = length or 1
    ours = RoPE(WIDTH, scaling=given)
    # Theirs are float32 throughout.
    torch.testing.assert_close(ours.frequencies, theirs.double(), rtol=1e-6 if length is None else 4e-6, atol=1e-9)
    assert ours.scaling.attention_factor == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("parameters", [YARN, LLAMA3 | {"factor": 8.0, "original_max_position_embeddings": 512}])
def test_scaling_takes_whole_rope_parameters(parameters):
    whole = RoPE(WIDTH, scaling={**parameters, "rope_theta": 5e5, "partial_rotary_factor": 0.5})
    parts = RoPE(WIDTH, scaling=parameters, base=5e5, fraction=0.5)
    assert (whole.base, whole.width) == (5e5, 16) and torch.equal(whole.frequencies, parts.frequencies)


def test_a_base_in_a_scaling_that_scales_nothing_is_the_base():
    assert RoPE(8, scaling={"rope_type": "default", "rope_theta": 5e5}).base == 5e5
    assert RoPE(8, scaling={"rope_theta": 5e5}, base=5e5).base == 5e5
    assert RoPE(8, scaling=NTKScaling(2.0)).base == 10000.0


def test_older_fields_and_todays_are_one():
    size = {"model_type": "llama", **SIZES}
    today = RoPE.from_config(size | {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5}})
    older = RoPE.from_config(size | {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}})
    assert today.base == older.base == 5e5 and torch.equal(today.frequencies, older.frequencies)
    neox = {"model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 2, "rotary_pct": 0.25}
    neox = RoPE.from_config(neox | {"rotary_emb_base": 2e4})
    assert (neox.d_head, neox.width, neox.base) == (32, 8, 2e4)


# How many of 32 columns turn by the model's own code, where its config says half of them.
SHARES = {"gemma": 32, "llama": 32, "mimo_v2_flash": 10, "mistral": 32, "qwen3": 32, "stablelm": 16}


@pytest.mark.parametrize("kind", SHARES)
def test_the_share_that_turns_is_that_of_the_models_code(kind):
    """Most models turn the whole head, whatever a partial_rotary_factor in their config says."""
    config = AutoConfig.for_model(kind, **SIZES, partial_rotary_factor=0.5)
    ours = RoPE.from_config(config, 0)
    assert (ours.d_head, ours.width) == (WIDTH, SHARES[kind])
    module = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    rotary = next(each for name, each in vars(module).items() if name.endswith("RotaryEmbedding"))(config)
    theirs = next(value for name, value in rotary.named_buffers() if name.endswith("inv_freq"))
    torch.testing.assert_close(ours.frequencies, theirs.double(), rtol=1e-6, atol=0)


@pytest.mark.bad_input
def test_a_mapping_is_left_as_it_was():
    """Two configs that share what is inside of them are two."""
    scaling = {"rope_type": "linear", "factor": 2.0}
    sizes = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "rope_scaling": scaling}
    RoPE.from_config(sizes | {"rope_theta": 5e5})
    assert scaling == {"rope_type": "linear", "factor": 2.0}
    assert RoPE.from_config(sizes).base == 10000.0


def test_a_config_that_transformers_cannot_read_is_refused_in_one_line():
    su = {"type": "su", "short_factor": [1.0] * 48, "long_factor": [1.0] * 48}
    said = refused(EncodingInputError, RoPE.from_config, {"model_type": "phi3", "rope_scaling": su})
    assert "'original_max_position_embeddings'" in said and "such as 'longrope' for 'su'" in said


def test_the_bases_go_by_the_layer():
    gemma = AutoConfig.for_model("gemma3_text", num_hidden_layers=6)
    assert [RoPE.from_config(gemma, layer).base for layer in range(6)] == [1e4] * 5 + [1e6]
    whole = AutoConfig.for_model("gemma3", text_config={"num_hidden_layers": 6})
    assert RoPE.from_config(whole, 5).base == 1e6


def test_heads_of_other_widths_and_proportional_pairs_in_gemma_4():
    config = AutoConfig.for_model("gemma4_text")
    theirs = importlib.import_module("transformers.models.gemma4.modeling_gemma4").Gemma4TextRotaryEmbedding(config)
    for layer, kind in ((0, "sliding_attention"), (5, "full_attention")):
        assert config.layer_types[layer] == kind
        expected = theirs.get_buffer(f"{kind}_inv_freq").double()
        torch.testing.assert_close(RoPE.from_config(config, layer).frequencies, expected, rtol=1e-6, atol=1e-9)


# The class that makes cos and sin, the module that it is from; both families of pairs.
FAMILIES = {
    "cohere": "Cohere",
    "cohere2": "Cohere2",
    "ernie4_5": "Ernie4_5",
    "ernie4_5_moe": "Ernie4_5_Moe",
    "glm": "Glm",
    "glm4": "Glm4",
    "gpt_neox": "GPTNeoX",
    "gpt_oss": "GptOss",
    "helium": "Helium",
    "llama": "Llama",
    "ministral3": "Ministral3",
    "moonshine": "Moonshine",
    "openai_privacy_filter": "OpenAIPrivacyFilter",
    "phi3": "Phi3",
    "qwen3": "Qwen3",
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_it_turns_as_the_models_own_code_does(kind):
    module = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    config = AutoConfig.for_model(kind, **SIZES)
    x = torch.randn(1, 2, 9, WIDTH, generator=torch.Generator().manual_seed(0))
    positions = torch.arange(9)[None] * 7
    cos, sin = getattr(module, f"{FAMILIES[kind]}RotaryEmbedding")(config)(x, positions)
    theirs, _ = module.apply_rotary_pos_emb(x, x, cos, sin)
    ours = RoPE.from_config(config, 0).rotate(x, positions)
    # Their angles are float32, off by 1e-7 of 56.
    torch.testing.assert_close(ours, theirs, rtol=0, atol=5e-5)


def test_a_model_that_can_do_without_its_rotation_rotates_where_its_config_says_so():
    layers = {"num_hidden_layers": 2, "layer_types": ["mamba", "attention"]}
    granite = AutoConfig.for_model("granitemoehybrid", position_embedding_type="rope", **layers)
    assert RoPE.from_config(granite, 1).frequencies[0] == pytest.approx(1)
    assert RoPE.from_config(AutoConfig.for_model("falcon"), 0).frequencies[0] == pytest.approx(1)
    assert RoPE.from_config(AutoConfig.for_model("zamba2", use_mem_rope=True), 6).frequencies[0] == pytest.approx(1)


def test_dense_layers_of_full_attention_turn_where_the_code_forces_them_to():
    config = AutoConfig.for_model("cohere2_moe", first_k_dense_replace=2)
    turning = [each == "dense" for each in config.mlp_layer_types]
    assert sum(turning) == 2 and config.layer_types[0] == "full_attention"
    assert RoPE.from_config(config, 0).frequencies[0] == pytest.approx(1)
    last = len(turning) - 1 - config.layer_types[::-1].index("full_attention")
    assert "does not turn" in refused(EncodingInputError, RoPE.from_config, config, last)


@pytest.mark.parametrize("kind", ["DeepseekV3", "DeepseekV32", "GlmMoeDsa", "LongcatFlash", "Mistral4"])
def test_products_are_those_of_code_that_puts_the_columns_in_another_order(kind):
    config = getattr(transformers, f"{kind}Config")()
    module = importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))
    ours = RoPE.from_config(config)
    q, k = torch.randn(2, 1, 2, 9, ours.d_head, generator=torch.Generator().manual_seed(0))
    at = torch.arange(9) * 7
    cos, sin = getattr(module, f"{kind}RotaryEmbedding")(config)(q, at[None])
    theirs = module.apply_rotary_pos_emb_interleave(q, k, cos, sin)
    products = ours.rotate(q, at) @ ours.rotate(k, at).mT
    torch.testing.assert_close(products, theirs[0] @ theirs[1].mT, rtol=0, atol=5e-3)
    assert ours.layout == "interleaved"


def test_proportional_pairs_keep_the_heads_frequencies_and_the_others_stand_still():
    """Not what a fraction of the first columns is: that restarts the ladder of frequencies in a smaller head."""
    x, positions = torch.randn(3, 16, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 5, 900])
    whole, some = RoPE(16), RoPE(16, fraction=0.25, pairs="proportional")
    turned, still = [0, 1, 8, 9], [2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15]
    torch.testing.assert_close(some.rotate(x, positions)[:, turned], whole.rotate(x, positions)[:, turned])
    assert torch.equal(some.rotate(x, positions)[:, still], x[:, still])
    assert torch.equal(RoPE(16, pairs="proportional").frequencies, whole.frequencies)
    first = RoPE(16, fraction=0.25).frequencies
    assert first.shape == (2,) and not torch.allclose(first, some.frequencies[:2])


MROPES = {
    "qwen2_vl": ("Qwen2VLRotaryEmbedding", [4, 6, 6]),
    "qwen2_5_vl": ("Qwen2_5_VLRotaryEmbedding", [4, 6, 6]),
    "qwen3_vl": ("Qwen3VLTextRotaryEmbedding", [6, 5, 5]),
    "glm4v": ("Glm4vTextRotaryEmbedding", [4, 6, 6]),
}


@pytest.mark.parametrize("kind", MROPES)
def test_mrope_turns_by_three_axes_as_the_models_own_code_does(kind):
    module = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    name, sections = MROPES[kind]
    parameters = {"rope_type": "default", "rope_theta": 5e5, "mrope_section": sections}
    config = AutoConfig.for_model(f"{kind}_text", **SIZES, rope_parameters=parameters)
    drawn = torch.Generator().manual_seed(0)
    x, positions = torch.randn(1, 2, 9, WIDTH, generator=drawn), torch.randint(0, 60, (1, 9, 3), generator=drawn)
    cos, sin = getattr(module, name)(config)(x, positions.permute(2, 0, 1))
    theirs, _ = module.apply_rotary_pos_emb(x, x, cos, sin)
    ours = RoPE.from_config(config)
    torch.testing.assert_close(ours.rotate(x, positions), theirs, rtol=0, atol=5e-5)
    # Of three equal coordinates it is the rotation of one.
    text = torch.arange(9)[:, None].expand(9, 3)
    torch.testing.assert_close(
        ours.rotate(x, text), RoPE(WIDTH, base=5e5, layout=ours.layout).rotate(x, text[:, 0]), rtol=0, atol=1e-6
    )
