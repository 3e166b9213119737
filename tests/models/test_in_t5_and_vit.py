"""A scheme in T5's encoder, in place of its bias, and in ViT, in place of the rows of its patches."""

import copy

import pytest
import torch
from models.in_transformers_models import difference, tokens
from refusals import refused
from transformers import (
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
    T5ForTokenClassification,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

from posembed.encodings import T5, Learned
from posembed.errors import EncodingInputError, ModelInputError
from posembed.models import load_with_scheme, use_scheme

CLOSE = 1e-5
SIZES = {"vocab_size": 50, "d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 4}
IMAGES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
BIAS = "block.0.layer.0.SelfAttention.relative_attention_bias"


@pytest.fixture(autouse=True)
def _without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def t5(kind=T5EncoderModel):
    """One whose bias is so large that it matters, with the bias's numbers."""
    model = kind(T5Config(**SIZES)).eval()
    bias = model.base_model.encoder.get_submodule(BIAS).weight
    return model, bias.normal_().clone()


def vit(kind=ViTModel, **changes):
    """One whose rows are so large that they matter, with the rows of its positions."""
    model = kind(ViTConfig(**IMAGES | {"image_size": 16, "patch_size": 4, "initializer_range": 0.2} | changes)).eval()
    return model, model.base_model.embeddings.position_embeddings.normal_()[0].clone()


@pytest.mark.parametrize("kind", [T5EncoderModel, T5ForTokenClassification])
@pytest.mark.parametrize("padded", [False, True])
def test_t5s_own_bias_as_a_scheme_gives_its_own_numbers(kind, padded):
    (model, bias), ids = t5(kind), tokens(length=40)
    given = {"attention_mask": (torch.arange(40) < torch.tensor([[30], [40]])).long()} if padded else {}
    expected = model(ids, **given)[0]
    with use_scheme(model, T5(4, causal=False, table=bias)):
        assert difference(model(ids, **given)[0], expected) < CLOSE
        assert difference(model(ids, output_attentions=True, **given)[0], expected) < CLOSE
    assert torch.equal(model(ids, **given)[0], expected)
    with use_scheme(model, "nopos"):
        blind = model(ids).last_hidden_state if kind is T5EncoderModel else model(ids).logits
        assert difference(blind, model(ids.flip(1))[0].flip(1)) < CLOSE
        assert difference(blind, expected) > 0.01


def test_t5s_two_stacks_are_refused_and_it_has_no_longest_text():
    two = T5ForConditionalGeneration(T5Config(**SIZES))
    assert "has two stacks, which would need a scheme each" in refused(ModelInputError, use_scheme, two, "alibi")
    for stack in (two.encoder, two.decoder):
        assert refused(ModelInputError, use_scheme, stack, "alibi").endswith("such as T5EncoderModel")
    said = refused(EncodingInputError, use_scheme, t5()[0], "learned")
    assert said.startswith("learned needs n_positions=")
    assert said.endswith("and the model has no longest text; give a scheme that is made")


@pytest.mark.parametrize("kind", [ViTModel, ViTForImageClassification])
def test_vits_own_rows_as_a_scheme_give_its_own_numbers(kind):
    (model, rows), pixels = vit(kind), torch.randn(2, 3, 16, 16)
    expected = model(pixels)[0]
    with use_scheme(model, Learned(table=rows)):
        assert difference(model(pixels)[0], expected) < CLOSE
        assert difference(model(pixels, output_attentions=True)[0], expected) < CLOSE
    assert torch.equal(model(pixels)[0], expected)


def test_without_positions_vit_is_blind_to_the_order_of_its_patches():
    (model, _), pixels = vit(), torch.randn(1, 3, 16, 16)
    turned = pixels.unflatten(3, (4, 4)).flip(3).flatten(3)  # its columns of patches, backwards
    columns = torch.arange(16).view(4, 4).flip(1).flatten() + 1
    assert difference(model(turned)[0][:, columns], model(pixels)[0][:, 1:]) > 0.01
    with use_scheme(model, "nopos"):
        assert difference(model(turned)[0][:, columns], model(pixels)[0][:, 1:]) < CLOSE


@pytest.mark.parametrize("name", ["alibi", "learned", "rope"])
def test_vit_takes_and_keeps_a_scheme_by_its_name(name, tmp_path):
    (model, _), pixels = vit(ViTForImageClassification), torch.randn(2, 3, 16, 16)
    before = model(pixels).logits
    with use_scheme(model, name):
        expected = model(pixels).logits
        assert difference(expected, before) > 1e-4
        assert torch.equal(copy.deepcopy(model)(pixels).logits, expected)
        model.save_pretrained(tmp_path)
    again = load_with_scheme(tmp_path)
    assert difference(again.model(pixels).logits, expected) < CLOSE
    again.remove()
    assert difference(again.model(pixels).logits, before) < CLOSE


def test_a_larger_image_has_more_positions_and_the_own_rows_are_not_trained():
    (model, _), wide = vit(), torch.randn(1, 3, 16, 24)
    with use_scheme(model, "alibi"):
        assert model(wide, interpolate_pos_encoding=True).last_hidden_state.shape == (1, 25, 32)
        silent = [name for name, each in model.named_parameters() if not each.requires_grad]
        assert silent == ["embeddings.position_embeddings"]
    assert all(each.requires_grad for each in model.parameters())
