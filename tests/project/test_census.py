"""The census makes tiny models of a type and stores what the audit finds, or why there is nothing."""

import importlib.util
import json

import pytest
from tool import ROOT

SPEC = importlib.util.spec_from_file_location("census", ROOT / "tools" / "census.py")
census = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(census)
STORED = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(census.FOLDER.glob("*.json"))]


def test_a_type_is_audited_in_this_process():
    result = census.quietly("gpt_neox")
    assert (result["type"], result["class"]) == ("gpt_neox", "GPTNeoXForCausalLM")
    verdicts = {each["check"]: each["verdict"] for each in result["checks"]}
    assert verdicts["shifted positions"] == verdicts["in pieces with a cache"] == "holds"
    assert "broken" not in verdicts.values()


def test_what_cannot_be_audited_says_why():
    assert "takes no ids of words" in census.quietly("vit")["not_audited"]


def test_every_stored_result_says_what_it_is_of():
    assert len(STORED) > 300
    for result in STORED:
        assert {"type"} < {*result}
        assert sum(name in result for name in ("checks", "not_made", "not_audited")) == 1
        assert "/" + "work" not in json.dumps(result)


@pytest.mark.parametrize(
    "name", ["gpt2", "llama", "bert", "electra", "t5", "bart", "mistral", "opt", "bloom", "gemma3_text"]
)
def test_well_known_models_have_nothing_broken(name):
    (result,) = [each for each in STORED if each["type"] == name]
    assert [each["check"] for each in result["checks"] if each["verdict"] == "broken"] == []
