"""What was added to the embeddings is looked for in the table that the model reads, or not at all."""

import pytest
import torch
import transformers
from refusals import refused

from posembed import probe_layers
from posembed.errors import ProbeInputError
from posembed.layers import depth_profile
from posembed.models import use_scheme
from posembed.probing import identical_word_attention, intervene

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.fixture(autouse=True)
def _drawn_alike():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def left(model, inputs, **options):
    return depth_profile(model.eval(), inputs, ablations=False, **options).layers[0].left


def seeing():
    config = transformers.Dinov2Config(image_size=16, patch_size=4, mlp_ratio=1, **SIZES)
    model = transformers.Dinov2Model(config)
    model.embeddings.position_embeddings.data.normal_()
    return model


def of_text_and_images():
    vision = {**SIZES, "image_size": 16, "patch_size": 4, "model_type": "clip_vision_model"}
    text = {**SIZES, "vocab_size": 40, "model_type": "llama"}
    config = transformers.LlavaConfig(text_config=text, vision_config=vision, image_token_index=39)
    return transformers.LlavaModel(config).eval()


def texts(length=8):
    return torch.randint(5, 30, (60, length))


def test_rows_are_those_of_the_patches_or_none():
    model = seeing()
    assert abs(left(model, torch.randn(40, 3, 16, 16), skip=1).coefficient - 1) < 0.1
    # A smaller image gets rows between these, and a table that is larger says nothing of which.
    assert left(model, torch.randn(40, 3, 8, 8), skip=1) is None


def test_the_table_of_images_is_not_that_of_text():
    model = of_text_and_images()
    assert left(model, texts()) is None
    # It has 17 rows, which no text is too long for.
    assert len(probe_layers(model, texts(20), layers=[0]).layers) == 1
    assert identical_word_attention(model.language_model, length=20, words=2).shape == (20, 20)
    said = refused(ProbeInputError, intervene, model, [texts()], n_components=2)
    assert "is not looked into for these batches" in said


def test_embeddings_that_are_widened_have_no_rows_of_their_width():
    config = transformers.AlbertConfig(vocab_size=40, embedding_size=12, max_position_embeddings=32, **SIZES)
    assert left(transformers.AlbertModel(config), texts()) is None


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rope"])
def test_a_scheme_that_was_put_in_says_what_it_adds(name):
    model = transformers.Qwen2Model(transformers.Qwen2Config(vocab_size=40, num_key_value_heads=2, **SIZES))
    use_scheme(model, name, options={"learned": {"std": 1.0}} if name == "learned" else None)
    found = left(model, texts())
    assert found is None if name == "rope" else abs(found.coefficient - 1) < 0.1
