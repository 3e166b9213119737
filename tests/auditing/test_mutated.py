"""Faults put into models of transformers, where a port would have them, are found; their scripts show them."""

import re

import pytest
import torch
from port import VOCABULARY, Port
from right_models import right

from posembed import audit
from posembed.encodings import ALiBi
from posembed.models import use_scheme


def without_offset(model):
    """RoBERTa whose positions begin at row 0."""
    embeddings = model.roberta.embeddings
    embeddings.create_position_ids_from_input_ids = lambda ids, padding_idx, past=0: torch.arange(
        ids.shape[1]
    ).expand_as(ids)
    embeddings.create_position_ids_from_inputs_embeds = embeddings.create_position_ids_from_input_ids


def in_bfloat16(model):
    """Llama whose angles are computed in bfloat16."""
    rotary = model.model.rotary_emb
    made = rotary.forward

    def forward(x, position_ids):
        cosine, _ = made(x, position_ids)
        angles = (position_ids[..., None].bfloat16() * rotary.inv_freq.bfloat16()).double()
        angles = torch.cat([angles, angles], -1)
        return angles.cos().to(cosine.dtype), angles.sin().to(cosine.dtype)

    rotary.forward = forward


def by_heads(model):
    """Llama whose queries and keys turn by the number of their head."""
    rotary = model.model.rotary_emb
    made = rotary.forward

    def forward(x, position_ids):
        return made(x, torch.zeros_like(position_ids))

    rotary.forward = forward


def wrapped(model):
    """GPT-2 whose table begins again at its end."""
    table = model.transformer.wpe
    table.forward = lambda positions: torch.nn.functional.embedding(positions % len(table.weight), table.weight)


def without_mask_behind_a_cache(model):
    """A model that reads the padding mask of a whole text, and not that of a piece behind others."""
    name = "decoder_attention_mask" if model.config.is_encoder_decoder else "attention_mask"

    def dropped(model, args, given):
        return args, given | ({name: None} if given.get("past_key_values") is not None else {})

    model.register_forward_pre_hook(dropped, with_kwargs=True)


class TestMutations:
    def found(self, name, mutate, **changes):
        model = right(name, **changes)
        assert audit(model).passed
        mutate(model)
        return {each.check: each for each in audit(model).broken}

    @pytest.mark.parametrize(
        "name",
        ["GPT2LMHeadModel", "LlamaForCausalLM", "BartForConditionalGeneration", "T5ForConditionalGeneration"],
    )
    def test_a_mask_that_is_dropped_behind_a_cache(self, name):
        found = self.found(name, without_mask_behind_a_cache)
        assert {*found} == {"in pieces with a cache"}
        assert "mask dropped" in found["in pieces with a cache"].kind

    def test_an_offset_that_is_ignored(self):
        found = self.found("RobertaForMaskedLM", without_offset)
        assert "offset of the table is ignored" in found["offset of the table"].kind

    def test_angles_in_bfloat16(self):
        found = self.found("LlamaForCausalLM", in_bfloat16)
        assert "bfloat16" in found["half precision far out"].kind
        assert "bfloat16" in found["shifted positions"].kind

    def test_heads_and_sequence_exchanged(self):
        found = self.found("LlamaForCausalLM", by_heads)
        assert "heads and sequence exchanged" in found["order is seen"].kind

    def test_a_table_that_wraps(self):
        found = self.found("GPT2LMHeadModel", wrapped)
        assert {*found} == {"past the last position"}
        assert "wraps" in found["past the last position"].kind


SCRIPTS = [
    ({"fault": "cache off by one"}, {"causal": True}),
    ({"fault": "mask dropped with a cache"}, {"causal": True}),
    ({"fault": "packing leaks"}, {"causal": True}),
    ({"fault": "padding is seen", "scheme": "table", "causal": False}, {}),
    ({"fault": "two layouts"}, {"causal": True, "relative": True}),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """What a script saves stays there."""
    monkeypatch.chdir(tmp_path)


def printed(script, model, capsys):
    """What a script prints of this model."""
    code = re.sub(r"^model = .*$|torch.set_grad_enabled.*", "", script, flags=re.MULTILINE)
    with torch.no_grad():
        exec(compile(code, "script", "exec"), {"model": model})
    return float(re.search(r"tensor\(([\d.e+-]+)", capsys.readouterr().out).group(1))


@pytest.mark.parametrize(("made", "settings"), SCRIPTS)
def test_a_script_shows_the_fault_without_this_package(made, settings, capsys):
    model = Port(**made)
    broken = audit(model, vocab_size=VOCABULARY, **settings).broken
    assert broken
    for each in broken:
        assert "posembed" not in each.script
        assert len(each.script.splitlines()) < 12
        assert printed(each.script, model, capsys) > 1e-3


def test_a_script_of_a_transformers_model_runs(capsys):
    model = right("RobertaForMaskedLM").eval()
    without_offset(model)
    # Left padding with no positions is what RoBERTa promises, and this one breaks.
    scripts = [each.script for each in audit(model).broken if each.script]
    assert scripts
    for script in scripts:
        assert "from transformers import RobertaForMaskedLM" in script
        assert printed(script, model.double(), capsys) > 1e-3


@pytest.mark.parametrize("scheme", ["rope", ALiBi(4)], ids=str)
def test_a_script_loads_a_scheme_that_was_put_in(scheme, capsys, tmp_path, monkeypatch):
    model = right("GPT2LMHeadModel").eval()
    model.config._name_or_path = "gpt2"  # which has no scheme
    use_scheme(model, scheme)
    model.transformer.h[0].attn.scaling *= 2  # as no file says
    (found,) = audit(model).broken
    assert found.check == "saved and loaded" and "model = ...  # the GPT2LMHeadModel" in found.script
    assert len(found.script.splitlines()) < 12
    monkeypatch.chdir(tmp_path)
    assert printed(found.script, model.double(), capsys) > 1e-3


class TestSaturatedAttention:
    """Attention that gives all its weight to one key passes over others that it may see: no edge is seen then."""

    def edge(self, model, **settings):
        with torch.no_grad():
            for name, each in model.named_parameters():
                if "q_proj" in name or "k_proj" in name or "mix" in name:
                    each *= 30
        (found,) = [each for each in audit(model, **settings).checks if each.check == "edge of the window"]
        return found

    def test_the_right_window_is_not_called_broken(self):
        found = self.edge(right("MistralForCausalLM"))
        assert found.verdict == "not decided", found
        assert "saturated" in found.reason

    def test_another_window_is_not_called_right(self):
        model = Port("window off by one", window=6)
        found = self.edge(model, vocab_size=VOCABULARY, causal=True, window=6, n_layers=2)
        assert found.verdict in ("not decided", "broken"), found
