"""A model of transformers that is saved with a scheme comes back with it, or is refused: never with other positions."""

import json
import logging
from functools import partial

import pytest
import torch
import transformers
from models.in_transformers_models import build, tokens
from models.reference import ONE_WAY, Nearness
from refusals import refused
from safetensors.torch import load_file, save_file

import posembed.models
from posembed import load_table, schemes
from posembed import with_position_table as with_table
from posembed.encodings import ALiBi, LinearScaling, NoPos, OnLayers, RoPE
from posembed.errors import CheckpointError, ModelInputError, PositionTableError
from posembed.models import load_with_scheme, use_scheme
from posembed.models.transformers_families import MARK


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


def saved(folder, kind, scheme, **options):
    """Save a model with a scheme whose parameters are drawn anew; return what it says."""
    model = build(kind)
    for parameter in use_scheme(model, scheme, **options).scheme.parameters():
        parameter.data = torch.rand_like(parameter) + 0.1
    model.save_pretrained(folder)
    return model(tokens()).logits


# Forgetting is refused in models of transformers.
DECODERS = [name for name in schemes() if name != "forgetting"]
ENCODERS = [name for name in DECODERS if name not in ONE_WAY]


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [
        *(("gpt2", each) for each in [*DECODERS, "learned+t5"]),
        *(("bert", each) for each in ENCODERS),
        *(("llama", each) for each in ["fire", "rope", "rope+alibi"]),
    ],
)
def test_the_scheme_comes_back_with_its_weights(tmp_path, kind, scheme):
    expected = saved(tmp_path, kind, scheme)
    back = load_with_scheme(tmp_path)
    assert torch.equal(back.model(tokens()).logits, expected)
    assert type(back.model) is type(build(kind)) and back.model.config.position_scheme["name"] == scheme
    back.remove()
    assert not {"position_scheme", "attn_implementation"} & set(vars(back.model.config))
    back.model(tokens())


def test_options_and_objects(tmp_path):
    options = {"rope": {"base": 50.0, "fraction": 0.5}}
    expected = saved(tmp_path / "named", "gpt2", "rope", options=options)
    assert json.loads((tmp_path / "named" / "config.json").read_text())["position_scheme"]["options"] == options
    assert torch.equal(load_with_scheme(tmp_path / "named").model(tokens()).logits, expected)
    expected = saved(tmp_path / "object", "gpt2", Nearness(4))
    assert torch.equal(load_with_scheme(tmp_path / "object", Nearness(4)).model(tokens()).logits, expected)
    said = f"the scheme of {tmp_path / 'object'} is {str(Nearness(4))!r}; give it again, as scheme=: no config holds an"
    assert refused(ModelInputError, load_with_scheme, tmp_path / "object").startswith(said)


def test_another_head_and_another_precision(tmp_path):
    saved(tmp_path / "head", "bert", "t5")
    wanted = load_with_scheme(tmp_path / "head").model
    base = load_with_scheme(tmp_path / "head", kind=transformers.BertModel, dtype=torch.bfloat16).model
    assert base.dtype == base.position_scheme.weight.dtype == torch.bfloat16
    base = load_with_scheme(tmp_path / "head", kind=transformers.BertModel).model
    assert torch.equal(base(tokens()).last_hidden_state, wanted.bert(tokens()).last_hidden_state)
    base.save_pretrained(tmp_path / "base")
    head = load_with_scheme(tmp_path / "base", kind=transformers.BertForSequenceClassification).model
    assert torch.equal(head.bert(tokens()).last_hidden_state, base(tokens()).last_hidden_state)


def test_transformers_alone_does_not_make_a_model_with_its_former_positions(tmp_path):
    saved(tmp_path, "gpt2", "alibi")
    model = transformers.GPT2LMHeadModel.from_pretrained(tmp_path)
    said = "the model was saved with a scheme; load it with posembed.models.load_with_scheme"
    assert refused(ModelInputError, model, tokens()) == said


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_with_another_attention_transformers_says_what_to_do_instead(tmp_path, kind, caplog, monkeypatch):
    """The scheme has no weights of its own, so nothing else would be amiss; and ours loads without a word."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    saved(tmp_path, kind, "alibi")
    load_with_scheme(tmp_path)
    assert MARK not in caplog.text
    model = type(build(kind)).from_pretrained(tmp_path, attn_implementation="sdpa")
    assert model(tokens()).logits.isfinite().all() and MARK in caplog.text
    assert MARK == "load_this_with_posembed_models_load_with_scheme" and callable(posembed.models.load_with_scheme)


def retold(folder, change):
    """Change what the config says."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


@pytest.mark.bad_input
def test_what_does_not_belong_together_is_refused(tmp_path):
    saved(tmp_path / "mine", "gpt2", "shaw")
    build("gpt2").save_pretrained(tmp_path / "plain")
    folder, plain = tmp_path / "mine", tmp_path / "plain"
    said = f"{plain} was saved without a scheme; load it with from_pretrained, then use_scheme"
    assert refused(ModelInputError, load_with_scheme, plain) == said
    build("gpt2").from_pretrained(folder, attn_implementation="sdpa").save_pretrained(tmp_path / "again")
    assert "names the scheme 'shaw', but its model was" in refused(
        ModelInputError, load_with_scheme, tmp_path / "again"
    )
    said = f"the scheme of {folder} is 'shaw', not 't5'; give the same one"
    assert refused(ModelInputError, load_with_scheme, folder, "t5") == said
    said = refused(ModelInputError, load_with_scheme, folder, kind=transformers.AutoModelForCausalLM)
    assert said.endswith("give the class of a model, such as kind=GPT2LMHeadModel")
    retold(folder, {"position_scheme": {"name": "os:Shaw"}})
    said = refused(ModelInputError, load_with_scheme, folder)
    assert said.endswith(
        "'os:Shaw'; give it again, as scheme=: no config holds an object, and nothing is "
        "imported because a file says so"
    )
    said = "has other weights than the model and its scheme (position_scheme."
    shorter = {"name": "shaw", "options": {"shaw": {"max_distance": 3}}}
    for told, *given in (({"name": "kerple"},), (shorter,), ({"name": None, "made": str(RoPE(8))}, RoPE(8))):
        retold(folder, {"position_scheme": told})
        assert said in refused(CheckpointError, load_with_scheme, folder, *given)
    retold(folder, {"position_scheme": {"name": "shaw"}})
    weights = load_file(folder / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if "position_scheme" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert said in refused(CheckpointError, load_with_scheme, folder)


def test_the_table_of_a_model_with_a_scheme_is_that_of_the_scheme(tmp_path):
    for scheme, name in (("learned", "position_scheme.weight"), ("t5+learned", "position_scheme.parts.1.weight")):
        for kind in ("gpt2", "llama", "opt"):
            model = build(kind)
            rows = use_scheme(model, scheme).scheme.get_parameter(name.removeprefix("position_scheme."))
            model.save_pretrained(tmp_path / scheme / kind)
            for source in (model, tmp_path / scheme / kind):
                found = load_table(source)
                assert found.name == name and torch.equal(found.weight, rows)


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", ["roberta", "llama"])
def test_where_the_scheme_has_no_table_the_silent_one_is_not_taken_for_it(tmp_path, kind):
    for scheme, said in (("t5", "'t5'"), (RoPE(4), "an object")):
        model = build(kind)
        with use_scheme(model, scheme):
            model.save_pretrained(tmp_path)
            calls = partial(load_table, model), partial(load_table, tmp_path), with_table(model, "zeroed").__enter__
            for call in calls:
                message = refused(PositionTableError, call)
                assert f"come from the scheme that was put in, {said}, of which no position table" in message
                assert "RoPE" not in message and ("silent meanwhile" in message) == (kind == "roberta")
    if kind == "roberta":
        own = load_table(model)
        assert torch.equal(load_table(tmp_path, name=own.name + ".weight").weight, own.weight)


DYNAMIC = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "max_position_embeddings": 16}
DYNAMIC |= {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (RoPE(8, base=500.0), RoPE(8)),
        (RoPE(8, base=500.0), NoPos()),
        (RoPE(8, fraction=0.5), RoPE(8)),
        (RoPE(8, fraction=0.5, pairs="proportional"), RoPE(8, fraction=0.5)),
        (RoPE.from_config(DYNAMIC, length=64), RoPE.from_config(DYNAMIC)),
        (OnLayers(ALiBi(4), [0], n_layers=2), OnLayers(ALiBi(4), [1], n_layers=2)),
    ],
    ids=["base", "none", "fraction", "pairs", "length", "layers"],
)
def test_an_object_with_another_option_is_refused(tmp_path, one, other):
    expected = saved(tmp_path, "llama", one)
    assert "give the same one" in refused(ModelInputError, load_with_scheme, tmp_path, other)
    assert torch.equal(load_with_scheme(tmp_path, one).model(tokens()).logits, expected)


def test_options_that_no_config_holds_are_asked_for_as_an_object(tmp_path):
    options = {"rope": {"scaling": LinearScaling(4.0)}}
    saved(tmp_path, "gpt2", "rope", options=options)
    for scheme in (None, "rope"):
        assert "scaling=LinearScaling(factor=4.0)" in refused(ModelInputError, load_with_scheme, tmp_path, scheme)
    assert load_with_scheme(tmp_path, RoPE(8, scaling=LinearScaling(4.0))).scheme.scaling.factor == 4
