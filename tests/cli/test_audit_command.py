"""`posembed audit` says what `posembed.audit` finds, and its exit code is 1 where something is broken."""

import json

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from posembed import audit
from posembed.auditing.models import load_model
from posembed.encodings import ALiBi
from posembed.models import use_scheme
from posembed.pretrained import quiet


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("models") / "tiny"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = {"vocab_size": 60, "n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2, "initializer_range": 0.3}
        GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=2, eos_token_id=3)).save_pretrained(where)
    return where


def test_the_command_says_what_the_function_finds(folder, data):
    found = data("audit", folder)
    assert (found["model"], found["passed"]) == ("GPT2LMHeadModel", True)
    assert found["checks"] == json.loads(json.dumps(audit(load_model(str(folder))).to_dict()["checks"]))


def test_for_people(folder, call):
    code, printed, complained = call("audit", folder, columns=120)
    assert (code, complained) == (0, "")
    lines = printed.splitlines()
    assert lines[0].startswith("GPT2LMHeadModel: 0 broken")
    assert any(line.startswith("in pieces with a cache") and "holds" in line for line in lines)


def test_a_broken_model_ends_with_1(folder, call, monkeypatch):
    forward = torch.nn.Embedding.forward

    def wrapped(self, ids):
        return forward(self, ids % len(self.weight))

    monkeypatch.setattr(torch.nn.Embedding, "forward", wrapped)
    code, printed, _ = call("audit", folder, columns=120)
    assert code == 1
    assert "table wraps" in printed
    assert "# past the last position\nimport torch" in printed


@pytest.mark.parametrize("scheme", ["alibi", ALiBi(2)], ids=str)
def test_a_model_that_was_saved_with_a_scheme(folder, data, call, tmp_path, scheme):
    model = load_model(str(folder))
    use_scheme(model, scheme)
    with quiet():
        model.save_pretrained(tmp_path)
    if isinstance(scheme, str):
        told = {each["check"]: each["verdict"] for each in data("audit", tmp_path)["checks"]}
        assert told["saved and loaded"] == "holds" and told["rows of the table"] == "does not apply"
    else:
        assert "give it again, as scheme=" in call("audit", tmp_path)[2]


def test_what_is_not_there_is_said_in_a_line(call, tmp_path):
    code, printed, complained = call("audit", tmp_path / "nothing")
    assert (code, printed) == (1, "")
    assert "cannot be loaded" in complained
    assert complained.count("\n") == 1


def test_code_of_its_own_is_not_run(call, tmp_path):
    config = {"model_type": "gpt2", "architectures": ["Mine"], "auto_map": {"AutoModel": "mine.Mine"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    code, _, complained = call("audit", tmp_path)
    assert code == 1
    assert "brings code of its own, which is not run" in complained
