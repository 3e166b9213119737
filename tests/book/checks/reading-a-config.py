# %% Reading a config
from importlib import import_module
from importlib.metadata import version

# Holds: "Here are five that the configuration classes of transformers 5.23 have"
assert version("transformers").startswith("5.23") and len(TYPES) == 5
# Holds: "It turns queries and keys by the angles that the model's own code would"
for name, rope, config in (("gpt_oss", "gpt-oss", gpt_oss), ("llama4", "Llama 4", llama)):
    module = import_module(f"transformers.models.{name}.modeling_{name}")
    kind = next(each for each in dir(module) if each.endswith("RotaryEmbedding"))
    theirs = getattr(module, kind)(config).inv_freq.double()
    assert torch.allclose(turning[rope].frequencies, theirs, rtol=1e-5, atol=0)
# Holds: "All four curves begin at 6.3."
# Holds: "Base 10,000 ends near fifty thousand, Llama 4 at two million, gpt-oss at"
ends = {name: wavelengths(rope)[[0, -1]].tolist() for name, rope in drawn.items()}
assert all(abs(first - 6.283) < 0.01 for first, _ in ends.values())
last = [ends[name][1] for name in ("base 10,000 (three models)", "Llama 4", "gpt-oss")]
assert 4e4 < last[0] < 5.5e4 and 1.8e6 < last[1] < 2.2e6 and 1.9e7 < last[2] < 2.2e7
steps = wavelengths(turning["gpt-oss"]).log().diff()
assert steps[13:18].mean() > 1.5 * max(steps[:9].mean(), steps[19:].mean())
# Holds: "Gemma 4's layers of the whole text stop short of a quarter, near 130."
there = wavelengths(turning["Gemma 4, whole text"])
assert there.isfinite().tolist() == [True] * 8 + [False] * 24 and 120 < there[7] < 140
# Holds: "Gemma 4's windows, DeepSeek-V3 and Qwen 3.5 share one curve; where a"
same = [wavelengths(turning[name]) for name in ("Gemma 4, windows", "DeepSeek-V3", "Qwen 3.5")]
assert torch.allclose(same[0], same[1]) and torch.allclose(same[0], same[2])

# %% Gemma 4: two kinds of layers
from posembed import PosembedError

said = gemma.rope_parameters
assert gemma.layer_types[:6] == ["sliding_attention"] * 5 + ["full_attention"] and gemma.sliding_window == 512
assert said["sliding_attention"] == {"rope_type": "default", "rope_theta": 10000.0}
assert said["full_attention"] == {
    "rope_type": "proportional",
    "partial_rotary_factor": 0.25,
    "rope_theta": 1000000.0,
}
# Holds: "Which rotation a layer has is a matter of its number, so `from_config`"
assert turning["Gemma 4, windows"].base != turning["Gemma 4, whole text"].base
# Holds: "a *partial* rotation of a quarter, as in Qwen 3.5 below, makes a smaller head"
smaller = turning["Qwen 3.5"]
assert smaller.width == 64 and torch.allclose(smaller.frequencies, RoPE(64).frequencies, atol=0)
assert len(wide.frequencies) == 256 and standing == 192

# %% gpt-oss: YaRN
said = gpt_oss.rope_parameters
assert (said["rope_theta"], said["factor"], said["original_max_position_embeddings"]) == (150000.0, 32.0, 4096)
assert (said["beta_fast"], said["beta_slow"], said["truncate"]) == (32.0, 1.0, False)
assert gpt_oss.max_position_embeddings == 131072 == 32 * 4096
plain = RoPE(64, base=150000.0).frequencies
slowed, turns = plain / turning["gpt-oss"].frequencies, plain * 4096 / (2 * math.pi)
assert torch.allclose(slowed[turns > 32], torch.ones(1).double())
assert torch.allclose(slowed[turns < 1], torch.tensor(32.0).double())
assert ((slowed > 1.001) & (slowed < 31.99))[(turns < 31) & (turns > 1.1)].all()
# Holds: "YaRN also multiplies queries and keys, here each by 1.35: logits grow by"
assert round(yarn.attention_factor, 2) == 1.35 and round(yarn.attention_factor**2, 1) == 1.8
# Holds: "No field says so unless it is changed (`attention_factor`, `mscale`); in a"
assert not {"attention_factor", "mscale", "mscale_all_dim"} & set(said)
x = torch.randn(1, 64)
assert torch.isclose(turning["gpt-oss"].rotate(x, torch.tensor([9])).norm() / x.norm(), torch.tensor(1.3466), rtol=1e-3)

# %% Llama 4: layers without positions
assert llama.no_rope_layers[:8] == [1, 1, 1, 0, 1, 1, 1, 0]
kinds = ["chunked_attention" if turns else "full_attention" for turns in llama.no_rope_layers]
assert llama.layer_types == kinds and llama.rope_parameters["rope_theta"] == 500000.0
assert llama.attn_temperature_tuning and (llama.floor_scale, llama.attn_scale) == (8192, 0.1)
# Holds: "Llama 4's code pairs neighbours (`interleaved`), that of Llama 3 in"
assert turning["Llama 4"].layout == "interleaved" and RoPE.from_config(AutoConfig.for_model("llama")).layout == "half"
assert not any("rope" in name and "interleave" in name for name in llama.to_dict())

# %% DeepSeek-V3: a key of its own for positions
assert (deepseek.qk_nope_head_dim, deepseek.qk_rope_head_dim, deepseek.rope_interleave) == (128, 64, True)
assert deepseek.rope_parameters["rope_theta"] == 10000.0
# Holds: "`from_config` gives the rotation of the 64 columns; the other 128 of a query"
one = turning["DeepSeek-V3"]
assert (one.d_head, one.layout) == (64, "interleaved") and deepseek.qk_head_dim == 64 + 128

# %% Qwen 3.5: a quarter of each fourth layer
assert qwen.layer_types[:4] == ["linear_attention"] * 3 + ["full_attention"]
assert (qwen.head_dim, qwen.rope_parameters["partial_rotary_factor"]) == (256, 0.25)
assert qwen.rope_parameters["rope_theta"] == 10000.0

# %% Where fields mislead
# Holds: "A layer that does not turn is refused, so that nobody takes base 10,000 for"
# Holds: "So are a config that says one thing twice and not the same, sections that do"
sections = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [1, 2, 2]}
for refused in (
    lambda: RoPE.from_config(llama, 3),
    lambda: RoPE.from_config(qwen, 0),
    lambda: RoPE.from_config(twice),
    lambda: RoPE.from_config({"model_type": "qwen2_vl_text", "rope_parameters": sections}),
    lambda: RoPE(64, scaling={"rope_type": "dynamic", "factor": 2.0}),
):
    try:
        refused()
    except PosembedError:
        continue
    raise AssertionError("taken")
