import pytest
import torch
from small_models import IDS, TABLES, build
from torch import nn
from transformers import LxmertConfig, LxmertModel

from posembed.encodings import Learned
from posembed.errors import PositionTableError
from posembed.tables import find_position_rows

table = pytest.mark.parametrize("table", TABLES, ids=str)


@table
def test_the_table_and_its_real_positions_are_found(table):
    found = find_position_rows(build(table.kind), part=table.part)
    assert (found.name, found.offset, len(found.rows)) == (table.name, table.offset, table.n_positions)


def rows_that_change_the_output(model, parameter, run, n_tokens):
    """The rows that the model reads for this input, found by disturbing one at a time."""
    matrix = parameter.detach()[0] if parameter.ndim == 3 else parameter.detach()
    noise = torch.randn(matrix.shape[1], generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before, rows = run(model, n_tokens), []
        for number, row in enumerate(matrix):
            kept = row.clone()
            row += noise
            if not torch.equal(run(model, n_tokens), before):
                rows.append(number)
            row.copy_(kept)
    return rows


@pytest.mark.parametrize(("table", "n_tokens"), [pytest.param(t, n, id=f"{t}-{n}") for t in TABLES for n in t.lengths])
def test_the_model_reads_row_offset_plus_p_for_position_p(table, n_tokens):
    model = build(table.kind)
    found = find_position_rows(model, part=table.part)
    read = rows_that_change_the_output(model, found.parameter, table.run, n_tokens)
    positions = range(table.n_positions if n_tokens is None else n_tokens)
    assert read == [found.offset + position for position in positions]


@table
def test_rows_are_the_models_own_memory(table):
    model = build(table.kind)
    found = find_position_rows(model, part=table.part)
    assert any(found.parameter is parameter for parameter in model.parameters())
    with torch.no_grad():
        found.rows[0] = 7.0
    matrix = found.parameter[0] if found.parameter.ndim == 3 else found.parameter
    assert bool((matrix[found.offset] == 7.0).all())


def holder(**attributes):
    module = nn.Module()
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


def test_a_table_in_a_module_of_ones_own_is_found():
    module = nn.ModuleDict({"stem": holder(pos_emb=nn.Embedding(7, 4)), "head": nn.Linear(4, 4)})
    found = find_position_rows(module)
    assert (found.name, found.offset, tuple(found.rows.shape)) == ("stem.pos_emb", 0, (7, 4))


def test_a_table_that_two_parts_share_is_one_table():
    shared = nn.Embedding(7, 4)
    model = nn.ModuleDict({"encoder": holder(pos_emb=shared), "decoder": holder(pos_emb=shared)})
    assert find_position_rows(model).parameter is shared.weight


def test_lxmert_reads_its_padding_row_for_position_0():
    """The table's padding_idx is 0, and its positions begin there all the same."""
    config = LxmertConfig(vocab_size=30, hidden_size=16, num_attention_heads=2, intermediate_size=16)
    model = LxmertModel(config).eval()
    found = find_position_rows(model)
    run = lambda model, n_tokens: model.embeddings(IDS[:, :n_tokens], torch.zeros(1, n_tokens, dtype=torch.long))
    assert rows_that_change_the_output(model, found.parameter[:9], run, 3) == [0, 1, 2]
    assert (found.name, found.offset) == ("embeddings.position_embeddings", 0)


def test_a_learned_scheme_of_this_package_is_a_table_itself():
    learned = Learned(8, 4)
    assert find_position_rows(learned).parameter is learned.weight
    found = find_position_rows(nn.ModuleDict({"words": nn.Embedding(9, 4), "positions": learned}))
    assert (found.name, found.offset, found.parameter is learned.weight) == ("positions.weight", 0, True)


def test_sams_random_frequencies_are_no_table():
    model = holder(shared_image_embedding=holder(positional_embedding=nn.Parameter(torch.zeros(2, 8))))
    with pytest.raises(PositionTableError, match="has no position table"):
        find_position_rows(model)


def test_a_model_without_numbers_says_so_where_they_are_needed():
    with torch.device("meta"):
        model = build("bert")
    with pytest.raises(PositionTableError) as caught:
        find_position_rows(model)
    assert "is on the meta device, which holds no numbers" in one_line(caught)


@pytest.mark.parametrize("shape", [(4,), (2, 7, 4), (1, 1, 7, 4)], ids=str)
def test_a_parameter_of_another_shape_is_no_table(shape):
    with pytest.raises(PositionTableError, match="has no position table"):
        find_position_rows(holder(pos_embed=nn.Parameter(torch.zeros(shape))))


@pytest.mark.parametrize("pattern", ["attn.relative_attention_bias", "rotary"])
def test_a_table_comes_before_what_else_a_model_has(pattern):
    """A model with both a table and relative positions has a table."""
    model = nn.Module()
    model.pos_emb = nn.Embedding(7, 4)
    model.add_module(pattern.replace(".", "_"), nn.Linear(2, 2))
    assert find_position_rows(model).name == "pos_emb"


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("t5", "T5's kind"),
        ("llama", "RoPE"),
        ("roformer", "RoPE"),
        ("gptj", "RoPE"),
        ("xlnet", "Transformer-XL's kind"),
        ("bloom", "ALiBi"),
        ("falcon-alibi", "ALiBi"),
        ("falcon", "RoPE"),
        ("mpt", "ALiBi"),
        ("m2m100", "a sinusoid that it computes"),
        ("xglm", "a sinusoid that it computes"),
    ],
)
def test_a_model_without_a_table_says_what_it_has_instead(kind, instead):
    model = build(kind)
    with pytest.raises(PositionTableError) as caught:
        find_position_rows(model)
    assert one_line(caught).startswith(f"{type(model).__name__} has no position table; ")
    assert instead in str(caught.value)


def one_line(caught):
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_module_with_nothing_of_the_kind_hears_which_names_were_looked_for():
    with pytest.raises(PositionTableError) as caught:
        find_position_rows(nn.Linear(2, 2))
    assert "position_embeddings" in one_line(caught)
    assert "wpe" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "part", "pieces"),
    [
        ("bart", None, ["several", "part=", "encoder.embed_positions", "decoder.embed_positions"]),
        ("clip", None, ["several", "part=", "text_model", "vision_model"]),
        ("bart", "vision", ["part='vision'", "fits 0", "encoder.embed_positions"]),
        ("bart", "coder", ["part='coder'", "fits 2", "decoder.embed_positions"]),
        ("bert", "decoder", ["part='decoder'", "fits 0", "embeddings.position_embeddings"]),
    ],
)
def test_a_part_that_singles_out_no_table_is_an_error_that_lists_them(kind, part, pieces):
    with pytest.raises(PositionTableError) as caught:
        find_position_rows(build(kind), part=part)
    message = one_line(caught)
    assert [piece for piece in pieces if piece not in message] == []
