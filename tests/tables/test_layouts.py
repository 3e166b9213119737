import warnings

import pytest
import torch
import transformers
from made_files import Shapes, one_line
from transformers.initialization import no_init_weights
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from posembed.errors import PositionTableError
from posembed.tables._layouts import MOST_LISTED, find_layout, patches_of
from posembed.tables._names import is_table_name, part_of, printable
from posembed.tables._offsets import KNOWN, model_type, offset_of
from posembed.tables.locate import position_rows

pytestmark = pytest.mark.bad_input


def layout(shapes, config=None, **wanted):
    return find_layout(Shapes(shapes), config, source="here", **wanted)


def refused(shapes, config=None, **wanted):
    with pytest.raises(PositionTableError) as caught:
        layout(shapes, config, **wanted)
    return one_line(caught)


# Names.


@pytest.mark.parametrize("prefix", ["", "bert.", "model.", "transformer.", "module.", "_orig_mod.", "state_dict.a.b."])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("embeddings.position_embeddings.weight", (512, 8)),
        ("embeddings.position_embeddings", (1, 197, 8)),
        ("wpe.weight", (1024, 8)),
        ("positions_embed.weight", (512, 8)),
        ("decoder.embed_positions.weight", (20, 8)),
        ("pos_embed", (1, 197, 8)),
        ("pos_emb", (1, 128, 8)),
        ("positional_embedding", (77, 8)),
        ("vision_model.embeddings.position_embedding.weight", (50, 8)),
    ],
)
def test_known_names_are_found_under_any_prefix(prefix, name, shape):
    others = {"wte.weight": (30, 8), "h.0.attn.c_attn.weight": (8, 24), "embeddings.position_ids": (1, 512)}
    found = layout({prefix + name: shape, **others}, {"model_type": "bert"})
    assert (found.entry.name, found.offset) == (prefix + name, 0)


@pytest.mark.parametrize(
    "name",
    [
        "embeddings.position_ids",
        "embeddings.token_type_embeddings.weight",
        "embeddings.word_embeddings.weight",
        "embeddings.visual_position_embeddings.weight",
        "encoder.layer.0.attention.self.distance_embedding.weight",
        "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        "encoder.layers.0.blocks.0.attention.relative_position_bias.relative_position_bias_table",
        "h.0.attn.embed_positions",
        "h.0.attn.embed_positions.weight",
        "shared_image_embedding.positional_embedding",
        "prompt_encoder.shared_embedding.positional_embedding",
        "wpe",  # with a bias beside it, a layer of one's own: decided by shape, not here
        "wpe.bias",
    ],
)
def test_other_names_are_no_tables(name):
    assert is_table_name(name) == (name == "wpe")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("wpe.weight", None),
        ("bert.embeddings.position_embeddings.weight", None),
        ("model.encoder.embed_positions.weight", "encoder"),
        ("model.decoder.embed_positions.weight", "decoder"),
        ("text_model.embeddings.position_embedding.weight", "text"),
        ("language_model.model.decoder.embed_positions.weight", "text"),
        ("vision_model.embeddings.position_embedding.weight", "vision"),
        ("visual.positional_embedding", "vision"),
        ("image_encoder.vision_model.embeddings.position_embedding.weight", "vision"),
        ("audio_tower.embed_positions.weight", "audio"),
    ],
)
def test_the_part_is_told_by_the_path(name, part):
    assert part_of(name) == part


def test_a_name_of_any_letters_is_shown_in_one_line():
    assert printable("Ω.wpe") == "Ω.wpe"
    assert printable("a\nb\x1b[31m\u202e\ud800") == r"a\nb\x1b[31m\u202e\ud800"


# Offsets.

PADDED = {"embeddings.position_embeddings.weight": (514, 8)}


@pytest.mark.parametrize(
    ("config", "offset"),
    [
        ({"model_type": "bert"}, 0),
        ({"model_type": "roberta"}, 2),
        ({"model_type": "roberta", "pad_token_id": None}, 2),
        ({"model_type": "roberta", "pad_token_id": 1}, 2),
        ({"model_type": "roberta", "pad_token_id": 0}, 1),
        ({"model_type": "roberta", "pad_token_id": 99}, 100),
        ({"model_type": "bert", "pad_token_id": 99}, 0),
        ({"model_type": "nystromformer", "pad_token_id": 99}, 2),
        # MPNetEmbeddings counts from row 2, whatever its config says.
        ({"model_type": "mpnet", "pad_token_id": 99}, 2),
        ({"architectures": ["MPNetForMaskedLM"]}, 2),
        # From before there was a model_type.
        ({"architectures": ["BertForMaskedLM"]}, 0),
        ({"architectures": ["RobertaForMaskedLM"]}, 2),
        ({"architectures": ["XLMRobertaForMaskedLM"]}, 2),
        ({"architectures": ["CamembertModel"], "pad_token_id": 3}, 4),
    ],
    ids=str,
)
def test_the_offset_follows_from_the_config(config, offset):
    assert layout(PADDED, config).offset == offset


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("encoder.embeddings.position_embeddings", 0),  # a ViT's, 1 x patches x width
        ("encoder.bert.embeddings.position_embeddings.weight", 0),
        ("decoder.roberta.embeddings.position_embeddings.weight", 6),
        ("decoder.model.decoder.embed_positions.weight", 6),
        ("qformer.embeddings.position_embeddings.weight", 0),
        ("language_model.model.decoder.embed_positions.weight", 2),
    ],
)
def test_the_settings_of_a_part_count_for_its_table(name, offset):
    config = {
        "model_type": "composed",
        "encoder": {"model_type": "bert", "pad_token_id": 9},
        "decoder": {"model_type": "roberta", "pad_token_id": 5},
        "qformer_config": {"model_type": "blip_2_qformer", "pad_token_id": 9},
        "text_config": {"model_type": "opt"},
    }
    assert layout({name: (1, 514, 8) if name.endswith("s") else (514, 8)}, config).offset == offset


def test_an_offset_that_is_given_counts_more():
    assert layout(PADDED, {"model_type": "roberta"}, offset=0).offset == 0
    assert layout(PADDED, None, offset=513).offset == 513


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, "there is no config.json"),
        ({}, "there is no config.json"),
        ({"hidden_size": 8}, "config.json has no model_type"),
        ({"model_type": "somebodys-own"}, "the model_type 'somebodys-own' is not known"),
        ({"model_type": ["bert"]}, "config.json has no model_type"),
        ({"model_type": None, "architectures": ["SomebodysModel"]}, "config.json has no model_type"),
        ({"model_type": 3, "architectures": [{}]}, "config.json has no model_type"),
        ({"architectures": "Bert"}, "config.json has no model_type"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["embeddings.position_embeddings.weight", "model.decoder.embed_positions.weight"])
def test_nothing_is_guessed_where_some_models_have_an_offset_and_some_have_none(name, config, words):
    message = refused({name: (514, 8)}, config)
    assert words in message
    assert f"load_table('here', name='{name}', offset=0)" in message


@pytest.mark.parametrize("name", ["wpe.weight", "positions_embed.weight", "pos_embed", "x.position_embedding.weight"])
def test_names_that_mean_one_layout_need_no_config(name):
    assert layout({name: (64, 8)}).offset == 0


@pytest.mark.parametrize("padding", [-1, 1.0, "1", True, [1]], ids=str)
def test_a_padding_id_that_is_no_row_is_refused(padding):
    assert "has the pad_token_id" in refused(PADDED, {"model_type": "roberta", "pad_token_id": padding})


@pytest.mark.parametrize(
    ("config", "offset"), [({"model_type": "roberta", "pad_token_id": 513}, None), (None, 514), (None, -1)]
)
def test_an_offset_beyond_the_table_is_refused(config, offset):
    assert "has 514 rows, so" in refused(PADDED, config, offset=offset)


def made(kind):
    """The model of a type in one layer, with its default sizes and no numbers; None where transformers has none."""
    try:
        config = CONFIG_MAPPING[kind]()
    except KeyError:
        return None
    if type(config) not in MODEL_MAPPING or kind == "layoutlmv2":  # which needs detectron2
        return None
    for part in [
        config,
        *(value for value in vars(config).values() if isinstance(value, transformers.PretrainedConfig)),
    ]:
        for name in ("num_hidden_layers", "n_layers", "encoder_layers", "decoder_layers", "num_layers"):
            if name in vars(part):
                setattr(part, name, 1)
    if kind == "esm":
        config.vocab_size, config.pad_token_id, config.position_embedding_type = 33, 1, "absolute"
    with no_init_weights(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.AutoModel.from_config(config)


# Models whose text part has a model_type of its own.
COMPOSED = ["altclip", "blip-2", "bridgetower", "clap", "clip", "florence2", "grounding-dino", "instructblip", "siglip"]


@pytest.mark.parametrize("kind", sorted(KNOWN | set(COMPOSED)))
def test_the_offset_is_the_one_of_the_model_of_transformers(kind):
    """From config.json alone, and from the live model's own padding row, offset or position ids."""
    model = made(kind)
    if model is None:
        # Parts of others, which cannot be made alone; types that transformers no longer has; what needs more packages.
        others = {"ernie_m", "qdqbert", "xlm-prophetnet", "layoutlmv2", "layoutxlm"}
        parts = {"eomt", "pp_formulanet", "trocr", "videomt"}
        assert kind in others | parts or kind.endswith(("_text_model", "_qformer", "_text"))
        return
    config = model.config.to_dict()
    found = [table for table in position_rows(model) if table.parameter.ndim == 2]
    assert found or kind in ("blip_2_qformer", "ibert")
    for table in found:
        assert offset_of(f"{table.name}.weight", config) == table.offset, table.name


@pytest.mark.parametrize(
    "role", ["Model", "ForMaskedLM", "ForPreTraining", "LMHeadModel", "WithLMHeadModel", "Encoder"]
)
def test_old_configs_name_every_known_type_by_a_class(role):
    for kind in KNOWN & set(CONFIG_MAPPING.keys()):
        name = CONFIG_MAPPING[kind].__name__.removesuffix("Config")
        assert model_type({"architectures": [name + role]}) == kind


# Several, none, and those of a layout that is not known.

TWO = {"model.encoder.embed_positions.weight": (20, 8), "model.decoder.embed_positions.weight": (30, 8)}
CLIP = {
    "text_model.embeddings.position_embedding.weight": (77, 8),
    "vision_model.embeddings.position_embedding.weight": (50, 8),
}
OPENAI = {
    "positional_embedding": (77, 8),
    "visual.positional_embedding": (50, 8),
    "visual.conv1.weight": (8, 3, 32, 32),
}


@pytest.mark.parametrize(
    ("shapes", "part", "name"),
    [
        (TWO, "encoder", "model.encoder.embed_positions.weight"),
        (TWO, "decoder", "model.decoder.embed_positions.weight"),
        (CLIP, "text", "text_model.embeddings.position_embedding.weight"),
        (CLIP, "vision", "vision_model.embeddings.position_embedding.weight"),
        (OPENAI, "text", "positional_embedding"),
        (OPENAI, "vision", "visual.positional_embedding"),
        ({f"module.{name}": shape for name, shape in OPENAI.items()}, "text", "module.positional_embedding"),
    ],
)
def test_the_part_chooses(shapes, part, name):
    found = layout(shapes, {"model_type": "bart"}, part=part)
    assert (found.entry.name, found.part) == (name, part)


def test_several_tables_are_listed_with_their_shapes():
    message = refused(TWO, {"model_type": "bart"})
    assert "several position tables; choose with part= or name= among" in message
    assert "model.encoder.embed_positions.weight (20 x 8), model.decoder.embed_positions.weight (30 x 8)" in message
    assert layout(TWO, {"model_type": "bart"}, name="model.decoder.embed_positions").offset == 2


def test_a_part_that_fits_none_or_two_is_refused():
    assert "part='vision' fits none of the position tables of here: model.enc" in refused(TWO, {}, part="vision")
    assert "part='coder' fits 2 of the position tables" in refused(TWO, {"model_type": "bart"}, part="coder")


def test_many_tables_are_counted_and_not_all_listed():
    message = refused({f"towers.{number}.wpe.weight": (9, 4) for number in range(100)})
    assert message.count("wpe.weight") == MOST_LISTED
    assert message.endswith(f"and {100 - MOST_LISTED} more")


def test_what_is_shared_is_one_table():
    tensors = Shapes(TWO)
    shared = tensors.entries["model.encoder.embed_positions.weight"]
    tensors.entries["model.decoder.embed_positions.weight"] = shared
    assert find_layout(tensors, {"model_type": "bart"}, source="here").entry is shared


def test_an_unknown_name_is_searched_for_and_the_call_is_shown():
    shapes = {"emb.position_embeds_layer.weight": (64, 8), "emb.words.weight": (99, 8), "pos_enc": (1, 64, 8)}
    message = refused(shapes, {"model_type": "bark"})
    assert "these may be one: emb.position_embeds_layer.weight (64 x 8), pos_enc (1 x 64 x 8)" in message
    assert "load_table('here', name='emb.position_embeds_layer.weight', offset=0)" in message
    found = layout(shapes, {"model_type": "bark"}, name="emb.position_embeds_layer.weight", offset=0)
    assert (found.offset, found.entry.shape) == (0, (64, 8))


def test_an_unknown_name_is_searched_for_by_shape():
    shapes = {"places.weight": (64, 8), "words.weight": (99, 8), "layers.0.square.weight": (64, 8), "norm": (8,)}
    message = refused(shapes, {"model_type": "own", "hidden_size": 8, "max_position_embeddings": 64})
    assert "these may be one: places.weight (64 x 8); choose" in message


def test_a_checkpoint_with_nothing_like_a_table():
    assert "none of its 1 tensors has a name or a shape like one's" in refused({"linear.weight": (4, 4)})
    assert "none of its 0 tensors" in refused({})


def test_a_name_that_is_not_there_hears_the_closest():
    message = refused({"transformer.wpe.weight": (9, 4)}, name="transformer.wpe.weigth")
    assert "holds no tensor 'transformer.wpe.weigth'; the closest are transformer.wpe.weight" in message
    assert refused({"a": (9, 4)}, name="zzzz").endswith("holds no tensor 'zzzz'")


@pytest.mark.parametrize("shape", [(4,), (2, 7, 4), (1, 1, 7, 4), (0, 4), (4, 0), ()], ids=str)
def test_a_shape_that_no_table_has(shape):
    assert "is no position table: that is a matrix" in refused({"x.weight": shape}, name="x.weight")
    assert "has no position table" in refused({"wpe.weight": shape})


@pytest.mark.parametrize(
    ("config", "names", "instead"),
    [
        ({"model_type": "llama", "rope_theta": 1e4}, ["model.layers.0.self_attn.q_proj.weight"], "RoPE"),
        ({"model_type": "own", "rope_parameters": {"rope_theta": 1e4}}, [], "RoPE"),
        ({"model_type": "gpt_neox", "rotary_pct": 0.25}, [], "RoPE"),
        ({}, ["model.layers.0.self_attn.rotary_emb.inv_freq"], "RoPE"),
        ({"text_config": {"model_type": "mistral", "rope_theta": 1e4}}, [], "RoPE"),
        ({"model_type": "roformer"}, ["encoder.embed_positions.weight"], "RoPE"),
        ({"model_type": "esm", "position_embedding_type": "rotary"}, [], "RoPE"),
        ({"model_type": "falcon"}, [], "RoPE"),
        ({"model_type": "falcon", "alibi": True, "rope_theta": 1e4}, [], "ALiBi"),
        ({"model_type": "mpt", "attn_config": {"alibi": True}}, [], "ALiBi"),
        ({"model_type": "own", "attn_config": {"alibi": True}}, [], "ALiBi"),
        ({"model_type": "bloom"}, [], "ALiBi"),
        ({"model_type": "t5"}, ["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"], "T5's kind"),
        ({}, ["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"], "T5's kind"),
        ({"model_type": "xlnet"}, ["transformer.layer.0.rel_attn.r_r_bias"], "Transformer-XL's kind"),
        ({"model_type": "transfo-xl"}, ["transformer.layers.0.dec_attn.r_r_bias"], "Transformer-XL's kind"),
        ({"model_type": "deberta-v2"}, ["encoder.rel_embeddings.weight"], "relative positions inside"),
        ({"model_type": "swin"}, ["a.relative_position_bias_table"], "a learned bias for each relative distance"),
        ({"model_type": "wav2vec2"}, ["encoder.pos_conv_embed.conv.weight"], "a convolution"),
        ({"model_type": "marian"}, [], "a sinusoid that it computes"),
        ({"model_type": "ctrl"}, [], "a sinusoid that it computes"),
        ({"model_type": "mamba"}, [], "nothing of the kind"),
    ],
    ids=str,
)
def test_a_checkpoint_without_a_table_says_what_the_model_has_instead(config, names, instead):
    message = refused(dict.fromkeys([*names, "embed.weight"], (20, 8)), config)
    assert "has no position table" in message
    assert instead in message.partition("; ")[2]


@pytest.mark.parametrize("said", ["rotary", "relative_key", "relative_key_query", "alibi"])
def test_a_table_that_the_model_does_not_add_is_not_given_as_its_table(said):
    """ESM-2's checkpoints hold a table that rotary attention made idle."""
    message = refused(PADDED, {"model_type": "esm", "position_embedding_type": said, "pad_token_id": 1})
    assert f"says position_embedding_type='{said}', so its model does not add the table" in message
    assert layout(PADDED, {"model_type": "esm", "position_embedding_type": "absolute"}).offset == 2
    by_name = layout(PADDED, {"model_type": "esm", "position_embedding_type": said}, name=next(iter(PADDED)))
    assert by_name.offset == 2


# Grids of patches.

VIT = {"embeddings.position_embeddings": (1, 197, 8), "embeddings.patch_embeddings.projection.weight": (8, 3, 16, 16)}


@pytest.mark.parametrize(
    ("rows", "config", "found"),
    [
        (197, {"image_size": 224, "patch_size": 16}, (1, (14, 14))),
        (196, {"image_size": 224, "patch_size": 16}, (0, (14, 14))),
        (198, {"image_size": 224, "patch_size": 16}, (2, (14, 14))),
        (264, {"image_size": 256, "patch_size": 16, "n_cls_tokens": 8}, (8, (16, 16))),
        (1 + 14 * 20, {"image_size": [224, 320], "patch_size": [16, 16]}, (1, (14, 20))),
        (14 * 10, {"image_size": {"height": 224, "width": 320}, "patch_size": [16, 32]}, (0, (14, 10))),
        (50, {"vision_config": {"image_size": 224, "patch_size": 32}, "image_size": 64, "patch_size": 1}, (1, (7, 7))),
        # YOLOS: 100 rows for detections stand behind the patches, so where the patches are is not known.
        (1 + 14 * 14 + 100, {"image_size": 224, "patch_size": 16}, (0, None)),
        # Without sizes, a square number of patches.
        (197, {}, (1, (14, 14))),
        (198, {}, (2, (14, 14))),
        (196, {"image_size": 0, "patch_size": 0}, (0, (14, 14))),
        (197, {"image_size": "224", "patch_size": [1, 2, 3]}, (1, (14, 14))),
        (197, {"image_size": 10**9, "patch_size": 1}, (1, (14, 14))),
        (200, {}, (0, None)),
    ],
    ids=str,
)
def test_class_tokens_and_the_grid_of_patches(rows, config, found):
    name = "vision_model." if "vision_config" in config else ""
    shapes = {name + key: shape for key, shape in VIT.items()} | {f"{name}embeddings.position_embeddings": (1, rows, 8)}
    located = layout(shapes, config)
    assert (located.n_class_tokens, located.grid) == found


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        # A text of 1024 positions is no image of 32 x 32.
        ({"wpe.weight": (1024, 8)}, "wpe.weight"),
        ({"pos_emb": (1, 1024, 8), "h.0.mlp.weight": (8, 8)}, "pos_emb"),
        ({"text_model.pos_emb.weight": (64, 8), "text_model.patch.weight": (8, 3, 4, 4)}, "text_model.pos_emb.weight"),
        # The patches of another tower.
        ({"decoder.pos_embed": (1, 196, 8), "encoder.patch_embed.proj.weight": (8, 3, 4, 4)}, "decoder.pos_embed"),
        # Patches of another width.
        ({"pos_embed": (1, 196, 8), "patch_embed.proj.weight": (9, 3, 4, 4)}, "pos_embed"),
        (OPENAI, "positional_embedding"),
    ],
)
def test_tables_of_text_have_no_grid(shapes, name):
    tensors = Shapes(shapes)
    assert patches_of(tensors, tensors.entry(name), {}) == (0, None)


def test_openais_clip():
    found = layout(OPENAI, part="vision")
    assert (found.n_class_tokens, found.grid, found.offset) == (1, (7, 7), 0)


@pytest.mark.parametrize("kind", ["vit", "deit", "dinov2", "siglip_vision_model", "clip_vision_model", "vit_mae"])
def test_the_grid_is_the_one_of_the_model_of_transformers(kind):
    model = made(kind)
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    found = layout(shapes, model.config.to_dict())
    patches = next(module for module in model.modules() if isinstance(module, torch.nn.Conv2d))
    image = torch.empty(1, 3, model.config.image_size, model.config.image_size, device="meta")
    assert found.grid == tuple(patches.to("meta")(image).shape[-2:])
    class_tokens = [name for name, _ in model.named_parameters() if name.endswith(("_token", "class_embedding"))]
    masks = [name for name in class_tokens if "mask_token" in name]
    assert found.n_class_tokens == len(class_tokens) - len(masks)
