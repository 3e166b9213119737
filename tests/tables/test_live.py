from functools import partial

import pytest
import torch
from refusals import refused
from small_models import IDS, TABLES, build
from torch import nn
from transformers import LxmertConfig, LxmertModel

from posembed.errors import PositionTableError
from posembed.tables import find_position_rows

no_table = partial(refused, PositionTableError, find_position_rows)


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


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_the_model_reads_row_offset_plus_p_for_position_p(table):
    model, n_tokens = build(table.kind), table.lengths[0]
    found = find_position_rows(model, part=table.part)
    assert (found.name, found.offset, len(found.rows)) == (table.name, table.offset, table.n_positions)
    read = rows_that_change_the_output(model, found.parameter, table.run, n_tokens)
    assert read == [found.offset + position for position in range(n_tokens or table.n_positions)]
    # A view of the model's own memory.
    assert any(found.parameter is parameter for parameter in model.parameters())
    matrix = found.parameter[0] if found.parameter.ndim == 3 else found.parameter
    assert found.rows.data_ptr() == matrix[found.offset].data_ptr()


def test_a_table_in_a_module_of_ones_own_is_found_once():
    shared = nn.Embedding(7, 4)
    decoder = nn.ModuleDict({"pos_emb": shared, "rotary": nn.Linear(2, 2)})
    found = find_position_rows(nn.ModuleDict({"encoder": nn.ModuleDict({"pos_emb": shared}), "decoder": decoder}))
    assert (found.name, found.offset, found.parameter) == ("encoder.pos_emb", 0, shared.weight)


def test_lxmert_reads_its_padding_row_for_position_0():
    """The table's padding_idx is 0, and its positions begin there all the same."""
    config = LxmertConfig(vocab_size=30, hidden_size=16, num_attention_heads=2, intermediate_size=16)
    model = LxmertModel(config).eval()
    found = find_position_rows(model)
    run = lambda model, n_tokens: model.embeddings(IDS[:, :n_tokens], torch.zeros(1, n_tokens, dtype=torch.long))
    assert rows_that_change_the_output(model, found.parameter[:9], run, 3) == [0, 1, 2]
    assert (found.name, found.offset) == ("embeddings.position_embeddings", 0)


@pytest.mark.parametrize("padding", [1, 3])
@pytest.mark.parametrize("kind", ["m2m100", "xglm"])
def test_a_sinusoid_that_is_kept_is_named_with_the_row_of_position_0(kind, padding):
    model = build(kind, pad_token_id=padding)
    model = model.encoder if kind == "m2m100" else model
    found = find_position_rows(model, name="embed_positions.weights")
    run = lambda model, n_tokens: model(IDS[:, :n_tokens]).last_hidden_state
    read = rows_that_change_the_output(model, found.parameter[:9], run, 3)
    assert read == [found.offset, found.offset + 1, found.offset + 2]


def test_the_offset_is_the_tables_own_or_where_the_owners_positions_begin():
    table = nn.Embedding(9, 4, padding_idx=1)
    table.offset = 3
    assert find_position_rows(nn.ModuleDict({"pos_emb": table})).offset == 3
    model = nn.ModuleDict({"pos_emb": nn.Embedding(9, 4)})
    model.position_ids = torch.arange(2, 9)[None]
    assert find_position_rows(model).offset == 2


INSTEAD = {
    "t5": "T5's kind",
    "llama": "RoPE",
    "roformer": "RoPE",
    "gptj": "RoPE",
    "xlnet": "Transformer-XL's kind",
    "bloom": "ALiBi",
    "falcon-alibi": "ALiBi",
    "falcon": "RoPE",
    "mpt": "ALiBi",
    "m2m100": "a sinusoid that it computes",
    "xglm": "a sinusoid that it computes",
}


@pytest.mark.parametrize("kind", INSTEAD)
def test_a_model_without_a_table_says_what_it_has_instead(kind):
    assert INSTEAD[kind] in no_table(build(kind)).partition(" has no position table; it has ")[2]
