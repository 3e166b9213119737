import warnings
from dataclasses import replace
from functools import partial

import pytest
import torch
import transformers
from made_files import shapes_of
from refusals import refused
from transformers.initialization import no_init_weights
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posembed.errors import LISTED, PositionTableError
from posembed.similarity import properties
from posembed.tables import load_table
from posembed.tables.layouts import (
    find_entry,
    is_table_name,
    part_of,
    patches_of,
    rows_before,
)
from posembed.tables.live import open_model
from posembed.tables.rules import AFTER_PADDING, NO_ROWS, TWO_ROWS

pytestmark = pytest.mark.bad_input


def found(shapes, config=None, **wanted):
    return find_entry(shapes_of(shapes, config), **wanted)


def offset(shapes, config=None, **wanted):
    return rows_before(shapes_of(shapes, config), found(shapes, config, **wanted))


def patches(shapes, config=None):
    return patches_of(shapes_of(shapes, config), found(shapes, config))


no_offset = partial(refused, PositionTableError, offset)


# Names.

NAMES = {
    "embeddings.position_embeddings.weight": (512, 8),
    "embeddings.position_embeddings": (1, 197, 8),
    "wpe.weight": (1024, 8),
    "positions_embed.weight": (512, 8),
    "decoder.embed_positions.weight": (20, 8),
    "pos_embed": (1, 197, 8),
    "pos_emb": (1, 128, 8),
    "positional_embedding": (77, 8),
    "vision_model.embeddings.position_embedding.weight": (50, 8),
}


@pytest.mark.parametrize("name", NAMES)
def test_known_names_are_found_under_any_prefix(name):
    others = {"wte.weight": (30, 8), "h.0.attn.c_attn.weight": (8, 24), "embeddings.position_ids": (1, 512)}
    for prefix in ("", "model.", "_orig_mod.module."):
        shapes = {prefix + name: NAMES[name], **others}
        assert found(shapes).name == prefix + name
        assert offset(shapes, {"model_type": "bert"}) == 0


def test_other_names_are_no_tables():
    others = [
        "embeddings.position_ids",
        "embeddings.token_type_embeddings.weight",
        "embeddings.visual_position_embeddings.weight",
        "encoder.layer.0.attention.self.distance_embedding.weight",
        "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        "h.0.attn.embed_positions.weight",
        "shared_image_embedding.positional_embedding",
        "prompt_encoder.shared_embedding.positional_embedding",
        "wpe.bias",
    ]
    assert [name for name in others if is_table_name(name)] == []


PARTS = {
    "bert.embeddings.position_embeddings.weight": None,
    "model.encoder.embed_positions.weight": "encoder",
    "model.decoder.embed_positions.weight": "decoder",
    "language_model.model.decoder.embed_positions.weight": "text",
    "image_encoder.vision_model.embeddings.position_embedding.weight": "vision",
    "visual.positional_embedding": "vision",
    "audio_tower.embed_positions.weight": "audio",
}


def test_the_part_is_told_by_the_path():
    assert {name: part_of(name) for name in PARTS} == PARTS


# Offsets.

PADDED = {"embeddings.position_embeddings.weight": (514, 8)}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "bert", "pad_token_id": 99}, 0),
        ({"model_type": "roberta"}, 2),
        ({"model_type": "roberta", "pad_token_id": 0}, 1),
        ({"model_type": "roberta", "pad_token_id": 99}, 100),
        # MPNetEmbeddings counts from row 2, whatever its config says.
        ({"model_type": "mpnet", "pad_token_id": 99}, 2),
    ],
    ids=str,
)
def test_the_offset_follows_from_the_config(config, expected):
    assert offset(PADDED, config) == expected


COMPOSED = {
    "model_type": "composed",
    "encoder": {"model_type": "bert", "pad_token_id": 9},
    "decoder": {"model_type": "roberta", "pad_token_id": 5},
    "qformer_config": {"model_type": "blip_2_qformer", "pad_token_id": 9},
    "text_config": {"model_type": "opt"},
}
OF_PARTS = {
    "encoder.embeddings.position_embeddings": 0,  # a ViT's, 1 x patches x width
    "encoder.bert.embeddings.position_embeddings.weight": 0,
    "decoder.roberta.embeddings.position_embeddings.weight": 6,
    "decoder.model.decoder.embed_positions.weight": 6,
    "qformer.embeddings.position_embeddings.weight": 0,
    "language_model.model.decoder.embed_positions.weight": 2,
}


def test_the_settings_of_a_part_count_for_its_table():
    shapes = {name: (1, 20, 8) if "weight" not in name else (20, 8) for name in OF_PARTS}
    assert {name: offset(shapes, COMPOSED, name=name) for name in OF_PARTS} == OF_PARTS


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, "there is no config.json"),
        ({"hidden_size": 8}, "config.json has no model_type"),
        ({"model_type": "somebodys-own"}, "the model_type 'somebodys-own' is not known"),
    ],
    ids=str,
)
def test_nothing_is_guessed_where_some_models_have_an_offset_and_some_have_none(config, words):
    message = no_offset(PADDED, config)
    assert words in message
    assert "load_table(..., name='embeddings.position_embeddings.weight', offset=0)" in message


SHIFTED = ("embeddings.position_embeddings", "wpe.weight", "emb.when")


@pytest.mark.parametrize("kind", ["roberta", "opt"])
@pytest.mark.parametrize("name", SHIFTED)
def test_row_0_is_not_taken_for_position_0_under_a_name_that_a_shifted_model_does_not_use(kind, name):
    shapes = {name: (514, 8)}
    message = no_offset(shapes, {"model_type": kind}, name=name)
    assert f"load_table(..., name={name!r}, offset=2)" in message
    assert offset(shapes, {"model_type": "bert"}, name=name) == 0
    image = {"model_type": kind, "vision_config": {"model_type": "vit"}}
    assert offset({f"vision_model.{name}": (514, 8)}, image, name=f"vision_model.{name}") == 0


def made(kind):
    """The model of a type in one layer, with its default sizes and no numbers."""
    config = CONFIG_MAPPING[kind]()
    parts = [value for value in vars(config).values() if isinstance(value, transformers.PretrainedConfig)]
    for part in [config, *parts]:
        for name in ("num_hidden_layers", "n_layers", "encoder_layers", "decoder_layers", "num_layers"):
            if name in vars(part):
                setattr(part, name, 1)
    if kind == "esm":
        config.vocab_size, config.pad_token_id, config.position_embedding_type = 33, 1, "absolute"
    with no_init_weights(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.AutoModel.from_config(config)


# One of each family; florence2 and clip have a text part with a model_type of its own.
FAMILIES = ["bart", "florence2", "clip", "luke", "lilt", "mpnet", "lxmert", "esm"]
PARTED = ["altclip", "blip-2", "bridgetower", "clap", "grounding-dino", "instructblip", "siglip"]
# Parts of others, which cannot be made alone; types that transformers no longer has; what needs more packages.
NOT_MADE = {
    *("align_text_model", "altclip_text_model", "blip_text_model", "bridgetower_text_model", "chinese_clip_text_model"),
    *("clap_text_model", "flava_text_model", "instructblip_qformer", "instructblipvideo_qformer"),
    *("eomt", "pp_formulanet", "pp_formulanet_text", "trocr", "videomt"),
    *("ernie_m", "qdqbert", "xlm-prophetnet", "layoutlmv2", "layoutxlm"),
}
OTHERS = sorted(({*AFTER_PADDING} | TWO_ROWS | NO_ROWS | {*PARTED}) - NOT_MADE - set(FAMILIES))


@pytest.mark.parametrize("kind", [*FAMILIES, *(pytest.param(kind, marks=pytest.mark.slow) for kind in OTHERS)])
def test_the_offset_is_the_one_of_the_model_of_transformers(kind):
    """From config.json alone, and from the live model's own padding row, offset or position ids."""
    model = made(kind)
    weights = open_model(model)
    tables = {id(model.get_parameter(name)): name for name in weights.names if is_table_name(name)}
    tables = [weights[name] for name in tables.values() if len(weights[name].shape) == 2]
    assert tables or kind in ("blip_2_qformer", "ibert")
    for entry in tables:
        assert rows_before(weights, replace(entry, before=None)) == rows_before(weights, entry), entry.name


# Several, none, and those of a layout that is not known.

TWO = {"model.encoder.embed_positions.weight": (20, 8), "model.decoder.embed_positions.weight": (30, 8)}


def test_the_part_chooses():
    assert found(TWO, part="decoder").name == "model.decoder.embed_positions.weight"


MANY = {f"towers.{number}.wpe.weight": (9, 4) for number in range(100)}
UNKNOWN = {"emb.position_embeds_layer.weight": (64, 8), "emb.words.weight": (99, 8), "pos_enc": (1, 64, 8)}


@pytest.mark.parametrize(
    ("shapes", "wanted", "words"),
    [
        (
            TWO,
            {},
            "has 2 position tables; choose with part= or name= among: model.encoder.embed_positions.weight (20 x 8)",
        ),
        (
            {"pos_embed": (1, 17, 8), "embeddings.position_embeddings.weight": (66, 8)},
            {},
            "has 2 position tables; choose with name= among: pos_embed (1 x 17 x 8)",
        ),
        (TWO, {"part": "vision"}, "part='vision' fits none of the position tables of here: model.enc"),
        (TWO, {"part": "coder"}, "has 2 position tables that part='coder' fits"),
        (MANY, {}, f" and {100 - LISTED} more"),
        (
            UNKNOWN,
            {"config": {"model_type": "bark"}},
            "one: emb.position_embeds_layer.weight (64 x 8), pos_enc (1 x 64 x 8)",
        ),
        (UNKNOWN, {}, "load_table(..., name='emb.position_embeds_layer.weight', offset=0)"),
        ({"linear.weight": (4, 4)}, {}, "1 tensors has a name like one's: linear.weight (4 x 4); if one"),
        ({f"w{n}": (n, 4) for n in range(20)}, {}, "w6 (6 x 4), w7 (7 x 4) and 12 more; if one"),
        (
            {"transformer.wpe.weight": (9, 4)},
            {"name": "transformer.wpe.weigth"},
            "holds no tensor 'transformer.wpe.weigth'; the closest are transformer.wpe.weight",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_singles_out_no_table_is_told_what_there_is(shapes, wanted, words):
    message = no_offset(shapes, **wanted)
    assert words in message
    assert (message.count("wpe.weight") == LISTED) == (shapes is MANY)


def test_a_name_chooses():
    assert offset(TWO, {"model_type": "bart"}, name="model.decoder.embed_positions") == 2
    assert offset(UNKNOWN, {}, name="emb.position_embeds_layer.weight") == 0
    assert no_offset({"a": (9, 4)}, name="zzzz").endswith("holds no tensor 'zzzz'; it holds a (9 x 4)")


@pytest.mark.parametrize("shape", [(4,), (2, 7, 4), (1, 1, 7, 4), (0, 4)], ids=str)
def test_a_shape_that_no_table_has(shape):
    assert "is no position table: that is a matrix" in no_offset({"x.weight": shape}, name="x.weight")
    assert "wpe.weight (" in (message := no_offset({"wpe.weight": shape, "layers.0.attn.rel_pos_h": (7, 4)}))
    assert "is no position table: that is a matrix" in message


INSTEAD = [
    ({"model_type": "llama", "rope_theta": 1e4}, ["model.layers.0.self_attn.q_proj.weight"], "RoPE"),
    ({}, ["model.layers.0.self_attn.rotary_emb.inv_freq"], "RoPE"),
    ({"text_config": {"model_type": "mistral", "rope_parameters": {"rope_theta": 1e4}}}, [], "RoPE"),
    ({"model_type": "roformer"}, ["encoder.embed_positions.weight"], "RoPE"),
    ({"model_type": "esm", "position_embedding_type": "rotary"}, [], "RoPE"),
    ({"model_type": "falcon"}, [], "RoPE"),
    ({"model_type": "falcon", "alibi": True, "rope_theta": 1e4}, [], "ALiBi"),
    ({"model_type": "own", "attn_config": {"alibi": True}}, [], "ALiBi"),
    ({"model_type": "bloom"}, [], "ALiBi"),
    ({"model_type": "t5"}, ["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"], "T5's kind"),
    ({"model_type": "xlnet"}, ["transformer.layer.0.rel_attn.r_r_bias"], "Transformer-XL's kind"),
    ({"model_type": "deberta-v2"}, ["encoder.rel_embeddings.weight"], "relative positions inside"),
    ({"model_type": "swin"}, ["a.relative_position_bias_table"], "a learned bias for each relative distance"),
    ({"model_type": "wav2vec2"}, ["encoder.pos_conv_embed.conv.weight"], "a convolution"),
    ({"model_type": "marian"}, [], "a sinusoid that it computes"),
    ({"model_type": "rwkv"}, [], "nothing of the kind"),
    ({"model_type": "jamba"}, ["layers.0.mamba.A_log"], "nothing of the kind"),
    # Settings that the model does not use.
    ({"model_type": "zamba2", "rope_theta": 1e4, "use_mem_rope": False}, ["layers.0.A_log"], "nothing of the kind"),
    ({"model_type": "zamba2", "rope_theta": 1e4, "use_mem_rope": True}, ["layers.0.A_log"], "RoPE"),
    (
        {"model_type": "granitemoehybrid", "rope_theta": 1e4, "position_embedding_type": None},
        ["layers.0.A_log"],
        "nothing of the kind",
    ),
    (
        {"model_type": "wav2vec2-conformer", "position_embeddings_type": "relative"},
        ["encoder.pos_conv_embed.conv.weight", "encoder.embed_positions.pe"],
        "relative positions inside",
    ),
    ({"model_type": "wav2vec2-conformer", "position_embeddings_type": "rotary"}, [], "RoPE"),
    ({"model_type": "swinv2"}, ["a.self.continuous_position_bias_mlp.0.weight"], "Swin v2's kind"),
    ({"model_type": "reformer"}, ["embeddings.position_embeddings.weights.0"], "factors of a table"),
]


@pytest.mark.parametrize(("config", "names", "instead"), INSTEAD, ids=str)
def test_a_checkpoint_without_a_table_says_what_the_model_has_instead(config, names, instead):
    message = no_offset(dict.fromkeys([*names, "embed.weight"], (20, 8)), config)
    assert "has no position table" in message and instead in message.partition("; ")[2]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("canine", "char_embeddings.char_position_embeddings.weight"),
        ("decision_transformer", "embed_timestep.weight"),
        ("reformer", "embeddings.position_embeddings.embedding.weight"),
    ],
)
def test_a_table_that_a_type_calls_otherwise_and_what_is_none_there(kind, name):
    others = {"encoder.wpe.weight": (64, 8), "embeddings.word_embeddings.weight": (99, 8)}
    assert found({name: (20, 8), **others}, config={"model_type": kind}).name == name
    assert "has no position table: none of its 2 " in no_offset(others, {"model_type": kind})


def test_a_table_that_the_model_does_not_add_is_not_given_as_its_table():
    """ESM-2's checkpoints hold a table that rotary attention made idle."""
    esm = {"model_type": "esm", "pad_token_id": 1}
    message = no_offset(PADDED, esm | {"position_embedding_type": "rotary"})
    assert "says position_embedding_type='rotary', so its model does not add the table" in message
    assert offset(PADDED, esm | {"position_embedding_type": "absolute"}) == 2
    assert offset(PADDED, esm | {"position_embedding_type": "rotary"}, name=next(iter(PADDED))) == 2


# Grids of patches.

SIZES = {"image_size": 224, "patch_size": 16}
AST = {"model_type": "audio-spectrogram-transformer", "patch_size": 16, "frequency_stride": 10}


@pytest.mark.parametrize(
    ("rows", "config", "expected"),
    [
        (197, SIZES, (1, (14, 14))),
        (196, SIZES, (0, (14, 14))),
        (198, SIZES, (2, (14, 14))),
        (14 * 10, {"image_size": {"height": 224, "width": 320}, "patch_size": [16, 32]}, (0, (14, 10))),
        (50, {"vision_config": {"image_size": 224, "patch_size": 32}, "image_size": 64, "patch_size": 1}, (1, (7, 7))),
        # YOLOS: 100 rows for detections stand behind the patches, so where the patches are is not known.
        (1 + 14 * 14 + 100, SIZES, (0, None)),
        # Without sizes, a square number of patches.
        (197, {}, (1, (14, 14))),
        (198, {}, (2, (14, 14))),
        (200, {}, (0, None)),
        # Sounds, whose patches overlap.
        (2 + 12 * 101, AST | {"time_stride": 10, "num_mel_bins": 128, "max_length": 1024}, (2, (12, 101))),
        # What a config says of films is not read, and nothing is guessed of them, nor where sizes are missing.
        (10, AST, (0, None)),
        (1 + 14 * 14, {"image_size": 224, "num_frames": 32, "tubelet_size": [2, 16, 16]}, (0, None)),
    ],
    ids=str,
)
def test_class_tokens_and_the_grid_of_patches(rows, config, expected):
    name = f"{'vision_model.' if 'vision_config' in config else ''}embeddings."
    shapes = {f"{name}position_embeddings": (1, rows, 8), f"{name}patch_embeddings.projection.weight": (8, 3, 16, 16)}
    assert patches(shapes, config) == expected


@pytest.mark.parametrize(
    ("table", "rows", "tokens", "expected"),
    [
        # A ViT's 1 + 4 x 6 is no 5 x 5, and DeiT's 2 + 2 x 7 no 4 x 4.
        ("position_embeddings", 25, ["cls_token"], (1, None)),
        ("position_embeddings", 16, ["cls_token", "distillation_token"], (2, None)),
        ("position_embedding.weight", 50, ["class_embedding"], (1, (7, 7))),
        # Registers have no rows.
        ("position_embeddings", 17, ["cls_token", "register_tokens"], (1, (4, 4))),
        # timm's table may leave out the class token's row, as EoMT's does.
        ("pos_embed", 16, ["cls_token", "reg_token"], (0, (4, 4))),
        ("pos_embed", 17, ["cls_token"], (1, (4, 4))),
        ("position_embeddings.weight", 16, ["cls_token", "register_tokens"], (0, (4, 4))),
        # Another part's.
        ("position_embeddings", 16, ["other.cls_token"], (0, (4, 4))),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["", "vit.embeddings."])
def test_without_a_config_class_tokens_beside_the_table_are_left_out_of_the_square(path, table, rows, tokens, expected):
    beside = {f"{path}{token}": (1, 1, 8) for token in tokens}
    assert patches({f"{path}{table}": (rows, 8), f"{path}patch.weight": (8, 3, 4, 4)} | beside) == expected


def test_a_square_of_patches_is_guessed_aloud_and_not_where_a_module_says_its_grid():
    module = torch.nn.Module()
    module.patch_embed = torch.nn.Conv2d(3, 24, 8, 8)
    module.cls_token, module.pos_embed = (torch.nn.Parameter(torch.zeros(1, n, 24)) for n in (1, 36))
    with pytest.warns(RuntimeWarning, match="guessed: 0 class tokens, 6 x 6 patches"):
        assert load_table(module).grid == (6, 6)
    module.patch_embed.grid_size = (5, 7)
    found = load_table(module)
    assert (found.grid, found.n_class_tokens) == ((5, 7), 1)


@pytest.mark.parametrize(
    "shapes",
    [
        # A text of 1024 positions is no image of 32 x 32.
        {"wpe.weight": (1024, 8), "h.0.mlp.weight": (8, 8)},
        {"text_model.pos_emb.weight": (64, 8), "text_model.patch.weight": (8, 3, 4, 4)},
        # The patches of another tower, and of another width.
        {"decoder.pos_embed": (1, 196, 8), "encoder.patch_embed.proj.weight": (8, 3, 4, 4)},
        {"pos_embed": (1, 196, 8), "patch_embed.proj.weight": (9, 3, 4, 4)},
    ],
    ids=str,
)
def test_tables_of_text_have_no_grid(shapes):
    assert patches(shapes) == (0, None)


@pytest.mark.parametrize("kind", ["deit", "siglip_vision_model"])
def test_the_grid_is_the_one_of_the_model_of_transformers(kind):
    model = made(kind)
    weights = open_model(model)
    cut = next(module for module in model.modules() if isinstance(module, torch.nn.Conv2d))
    image = torch.empty(1, 3, model.config.image_size, model.config.image_size, device="meta")
    n_class_tokens, grid = patches_of(weights, find_entry(weights))
    assert grid == tuple(cut.to("meta")(image).shape[-2:])
    assert n_class_tokens == {"deit": 2, "siglip_vision_model": 0}[kind]


def test_sounds_have_the_grid_of_the_model_of_transformers_live_and_in_a_folder(tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = transformers.ASTModel(transformers.ASTConfig(**sizes, num_mel_bins=32, max_length=96))
    model.save_pretrained(tmp_path)
    for table in map(load_table, (model, tmp_path)):
        assert (table.n_class_tokens, table.grid) == (2, model.embeddings.get_shape(model.config)) == (2, (2, 9))


VIT = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
OBLONG = {"pos_embed": torch.zeros(1, 99, 8), "patch_embed.proj.weight": torch.zeros(8, 3, 4, 4)}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        # Rows of detections stand behind the patches, which no grid says.
        (lambda: transformers.YolosModel(transformers.YolosConfig(**VIT, image_size=[64, 96])), (1, None)),
        (lambda: transformers.VivitModel(transformers.VivitConfig(**VIT, image_size=32, num_frames=4)), (1, None)),
        # Cut before the model, so a matrix; its rows are a square that is stretched over each image.
        (
            lambda: transformers.Siglip2VisionModel(transformers.Siglip2VisionConfig(**VIT, num_patches=64)),
            (0, (8, 8)),
        ),
        # timm's of 14 x 7 patches, of which a state dict says nothing.
        (lambda: OBLONG, (0, None)),
    ],
    ids=["yolos", "vivit", "siglip2", "timm"],
)
def test_patches_are_never_read_as_a_text_in_silence(make, expected):
    table = load_table(make())
    assert table.patches and (table.n_class_tokens, table.grid) == expected
    said = "grid of 8 x 8 patches, read as one line" if table.grid else "patches in a grid that is not known, read as"
    with pytest.warns(RuntimeWarning, match=said):
        properties(table)


def test_a_grid_that_no_file_says_can_be_said():
    table = replace(load_table(OBLONG), grid=(14, 7), n_class_tokens=1)
    assert table.line.startswith("1 of class tokens, then a grid of 14 x 7 patches")
