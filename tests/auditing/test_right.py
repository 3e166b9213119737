"""Models that are right have nothing broken, and what is by design is called so."""

import pytest
import torch
from right_models import MODELS, right
from small_models import bits

import posembed
from posembed import Transformer, TransformerConfig, audit
from posembed.encodings import ALiBi
from posembed.models import use_scheme

FEWEST = {"T5ForConditionalGeneration": 14, "BartForConditionalGeneration": 18, "BloomForCausalLM": 7}


def verdicts(report, part=""):
    return {each.check: each.verdict for each in report.checks if each.part == part}


@pytest.fixture(scope="module")
def reports():
    return {name: audit(right(name)) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_broken(reports, name):
    report = reports[name]
    assert report.passed, str(report)
    assert report.count("not decided") == 0, str(report)
    assert report.count("holds") >= FEWEST.get(name, 12), str(report)


@pytest.mark.parametrize(
    ("name", "part"), [("BartForConditionalGeneration", "decoder"), ("T5ForConditionalGeneration", "encoder")]
)
def test_a_part_that_was_taken_out_is_a_model_of_its_own(name, part):
    report = audit(getattr(right(name), f"get_{part}")())
    assert report.passed and report.count("holds") >= 6, str(report)


def test_what_is_by_design_does_not_apply(reports):
    gpt2, bart = verdicts(reports["GPT2LMHeadModel"]), verdicts(reports["BartForConditionalGeneration"], "decoder")
    assert gpt2["shifted positions"] == gpt2["padding in front"] == "does not apply"
    assert gpt2["padding in front, positions given"] == "holds"
    assert bart["padding in front"] == bart["positions given"] == "does not apply"
    assert bart["in pieces with a cache"] == "holds"


def test_relative_models_may_be_shifted_and_padded_in_front(reports):
    for name in ("LlamaForCausalLM", "MistralForCausalLM", "GPTNeoXForCausalLM"):
        found = verdicts(reports[name])
        assert found["shifted positions"] == found["padding in front"] == "holds"
    assert verdicts(reports["T5ForConditionalGeneration"], "encoder")["padding in front"] == "holds"


def test_windows_offsets_and_tables_are_seen(reports):
    assert verdicts(reports["MistralForCausalLM"])["edge of the window"] == "holds"
    for name in ("OPTForCausalLM", "RobertaForMaskedLM", "GPT2LMHeadModel"):
        found = verdicts(reports[name])
        assert found["offset of the table"] == found["rows of the table"] == "holds"
        assert found["past the last position"] == "holds"
    assert "reads row 2" in next(
        each.reason for each in reports["RobertaForMaskedLM"].checks if each.check == "offset of the table"
    )


# Of a scheme that is defined for causal models alone there is no other.
BOTH_WAYS = sorted({*posembed.schemes()} - {"xpos", "fire", "cope", "forgetting", "scaled_logits"})


@pytest.mark.parametrize(
    ("scheme", "causal"), [*((name, True) for name in posembed.schemes()), *((name, False) for name in BOTH_WAYS)]
)
def test_ours_have_nothing_broken(scheme, causal):
    config = TransformerConfig(50, n_layers=2, n_positions=64, scheme=scheme, causal=causal, weight_std=0.3)
    report = audit(Transformer(config))
    assert report.passed, str(report)
    assert report.count("holds") >= 4


@pytest.mark.parametrize("scheme", ["t5", ALiBi(4)], ids=str)
def test_a_scheme_that_was_put_in_is_saved_with_the_model_and_loaded(scheme):
    model = right("GPT2LMHeadModel")
    use_scheme(model, scheme)
    assert verdicts(audit(model))["saved and loaded"] == "holds"


@pytest.mark.parametrize(("scheme", "order"), [("sinusoidal", "holds"), ("nopos", "does not apply")])
def test_a_scheme_that_was_put_in_is_not_that_of_the_config(scheme, order):
    model = right("LlamaForCausalLM")
    use_scheme(model, scheme)
    report = audit(model)
    assert report.passed and verdicts(report)["order is seen"] == order, str(report)


def test_a_bias_by_distance_alone_sees_order():
    """Read backwards, a text gives what it gives, backwards."""
    model = Transformer(TransformerConfig(50, n_layers=2, scheme="alibi", causal=False, weight_std=0.3))
    report = audit(lambda ids: model(ids), vocab_size=50)
    assert report.passed and verdicts(report)["order is seen"] == "holds", str(report)


def test_the_model_is_left_as_it_was():
    model = right("GPT2LMHeadModel").train()
    model.transformer.h[0].eval()
    modes, before, state = [each.training for each in model.modules()], bits(model), torch.get_rng_state()
    audit(model)
    assert [each.training for each in model.modules()] == modes
    assert bits(model) == before
    assert torch.equal(torch.get_rng_state(), state)
    assert {each.dtype for each in model.parameters()} == {torch.float32}
    assert all(each.requires_grad and each.grad is None for each in model.parameters())


def test_the_same_seed_gives_the_same_report():
    model = right("BertForMaskedLM")
    assert audit(model, seed=3).to_dict() == audit(model, seed=3).to_dict()
    assert audit(model, seed=4).passed


def test_rounded_angles_are_found():
    """`.bfloat16()` rounds a buffer of frequencies, which loading in bfloat16 does not."""
    report = audit(right("LlamaForCausalLM").bfloat16())
    assert [each.check for each in report.broken] == ["saved and loaded"], str(report)
    assert "rounded by .bfloat16()" in report.broken[0].kind
    assert audit(right("GPT2LMHeadModel").bfloat16()).passed


@pytest.mark.parametrize(("scheme", "verdict"), [("rope", "not decided"), ("nopos", "does not apply")])
def test_positions_that_are_taken_and_change_nothing(scheme, verdict):
    """By a model made without positions this is meant; of another nobody but its author knows."""
    model = Transformer(TransformerConfig(50, n_layers=2, scheme=scheme, weight_std=0.3))
    deaf = model if scheme == "nopos" else lambda ids, positions=None: model(ids)
    assert verdicts(audit(deaf, vocab_size=None if scheme == "nopos" else 50))["positions given"] == verdict
