"""Each number of the cheat sheet, computed."""

import importlib
import math

import pytest
import torch
import transformers
from prose import BOOK

from posembed import load_table, scheme, sinusoidal

PAGE = (BOOK / "cheat-sheet.md").read_text(encoding="utf-8")
SIZES = {"vocab_size": 40, "num_hidden_layers": 1, "num_attention_heads": 2, "pad_token_id": 1}
NARROW = SIZES | {"hidden_size": 8, "intermediate_size": 8, "max_position_embeddings": 34}
BART = {
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}
CONFIGS = {
    "BERT": ("Bert", NARROW),
    "GPT-2": ("GPT2", {"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 40}),
    "ELECTRA": ("Electra", NARROW),
    "DistilBERT": ("DistilBert", {"dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 8, "vocab_size": 40}),
    "RoBERTa": ("Roberta", NARROW),
    "XLM-R": ("XLMRoberta", NARROW),
    "CamemBERT": ("Camembert", NARROW),
    "MPNet": ("MPNet", NARROW),
    "BART": ("Bart", BART | {"vocab_size": 40, "max_position_embeddings": 32}),
    "OPT": ("OPT", NARROW | {"ffn_dim": 8, "word_embed_proj_dim": 8}),
}


def row(first):
    """The other cells of the line that begins with this one."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def model_of(name):
    kind, settings = CONFIGS[name]
    return getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**settings))


def test_slopes():
    eight = ", ".join(f"1/{1 / slope:.0f}" for slope in scheme("alibi", n_heads=8).slopes.tolist())
    assert row("ALiBi's slopes, 8 heads") == [eight]
    twelve = scheme("alibi", n_heads=12).slopes
    assert torch.equal(twelve[:8], scheme("alibi", n_heads=8).slopes)
    assert row("ALiBi's slopes, 12 heads")[0].endswith(", ".join(f"{slope:.4f}" for slope in twelve[8:].tolist()))


@pytest.mark.parametrize(("causal", "first"), [(True, 16), (False, 8)])
def test_buckets(causal, first):
    bucket = scheme("t5", n_heads=2, causal=causal).bucket(-torch.arange(200)).tolist()
    begins = ", ".join(str(bucket.index(number)) for number in range(first, 2 * first))
    said = row(f"T5, {'causal' if causal else 'both ways'}: where buckets {first} to {2 * first - 1} begin")[0]
    assert said.split(";")[0] == begins
    assert bucket[:first] == list(range(first))


def test_the_buckets_of_the_future():
    bucket = scheme("t5", n_heads=2, causal=False).bucket
    ahead = torch.arange(1, 200)
    assert torch.equal(bucket(ahead), bucket(-ahead) + 16)
    assert 16 not in bucket(torch.arange(-300, 300))


def test_wavelengths_and_the_logarithmic_law():
    said = row("wavelengths of sinusoids")[0]
    narrow, wide = (f"{2 * math.pi * 10000 ** (1 - 2 / width):,.0f}" for width in (64, 768))
    assert said.endswith(f": {narrow} positions at 64, {wide} at 768")
    table = sinusoidal(65, 768).double()
    products = (table @ table[0])[2:] / 384
    law = 1 - (torch.arange(2, 65).double().log() + 0.577) / math.log(10000)
    assert "$1 - (\\ln k + 0.577) / \\ln 10000$" in PAGE
    assert (products - law).abs().max() < 0.05


@pytest.mark.parametrize("name", CONFIGS)
def test_the_row_of_position_0(name):
    zero, two, _ = row("the row of position 0")[0].split(";")
    offset = load_table(model_of(name), **{"part": "decoder"} if name == "BART" else {}).offset
    assert name in (zero if offset == 0 else two)
    assert (zero if offset == 0 else two).strip().startswith(f"{offset} in ")


def test_each_model_named_for_its_first_row_is_looked_at():
    zero, two, _ = row("the row of position 0")[0].split(";")
    named = [name for part in (zero, two) for name in part.split(" in ")[1].split(", ")]
    assert sorted(named) == sorted(CONFIGS)


def test_the_class_token_of_images_has_row_0():
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    of_images = sizes | {"image_size": 8, "patch_size": 4}
    vit = transformers.ViTModel(transformers.ViTConfig(**of_images))
    clip = transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**of_images))
    for model, rows in ((vit, "embeddings.position_embeddings"), (clip, "embeddings.position_embedding")):
        with torch.no_grad():
            shown = [value for name, value in model.named_parameters() if rows in name]
            assert shown[0].numel() == 5 * 8  # four patches and one more
            before = model.embeddings(torch.zeros(1, 3, 8, 8))
            shown[0].view(5, 8)[0] += 1
            changed = (model.embeddings(torch.zeros(1, 3, 8, 8)) - before).abs().amax(-1)[0]
        assert changed.nonzero().flatten().tolist() == [0]


ROTATED = {"interleaved": ("rotate_every_two", "rotate_half"), "half": ("rotate_half",)}
MODULES = {
    "GPT-J": "gptj", "Cohere": "cohere", "GPT-NeoX": "gpt_neox", "Llama": "llama", "Mistral": "mistral",
    "Qwen2": "qwen2", "Gemma": "gemma",
}  # fmt: skip


@pytest.mark.parametrize(("layout", "partner"), [("interleaved", 1), ("half", 4)])
def test_layouts(layout, partner):
    for name in row(layout)[1].split(", "):
        module = importlib.import_module(f"transformers.models.{MODULES[name]}.modeling_{MODULES[name]}")
        turn = next(getattr(module, each) for each in ROTATED[layout] if hasattr(module, each))
        turned = turn(torch.eye(8)[:1].view(1, 1, 1, 8)).flatten()
        assert turned.nonzero().flatten().tolist() == [partner], name


def test_shapes():
    q, positions = torch.zeros(2, 4, 5, 8), torch.arange(5)
    assert scheme("rope", d_model=32, n_heads=4).rotate(q, positions).shape == q.shape
    shaw = scheme("shaw", d_model=32, n_heads=4).layer(0)
    assert shaw.bias(q, q, positions, positions).shape == (2, 4, 5, 5)
    assert scheme("sinusoidal", d_model=32).add(torch.zeros(2, 5, 32), positions.expand(2, 5)).shape == (2, 5, 32)
