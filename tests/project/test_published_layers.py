"""The command that measures published models by layer, against a hub on this machine."""

import json

import pytest
from hub_client import ask, new_reader
from hub_server import HubServer
from small_models import build
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tool import TOOLS, load
from transformers import PreTrainedTokenizerFast

WORDS = ["?", "the", "of", "and", "to", "in", "a"]


@pytest.fixture
def tool(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(TOOLS)  # as where it is run as a script
    found = load("layers")
    for name, small in {"N_FITTED": 24, "N_TESTED": 8, "LENGTH": 12, "RESULTS": tmp_path / "results"}.items():
        monkeypatch.setattr(found, name, small)
    return found


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with a small GPT-2 and its tokenizer, and a small vision Transformer; it refuses until it is started."""
    build("gpt2").save_pretrained(tmp_path / "gpt2")
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="?"))
    tokenizer.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path / "gpt2")
    build("vit").save_pretrained(tmp_path / "vit")
    server = HubServer({"gpt2": tmp_path / "gpt2", "google/vit-base-patch16-224": tmp_path / "vit"})
    ask(server, monkeypatch)
    monkeypatch.chdir(tmp_path)
    with new_reader(monkeypatch, tmp_path):
        yield server
    server.stop()


def test_both_models_are_measured_and_stored(tool, hub):
    hub.start()
    tool.main([])
    found = {path.stem: json.loads(path.read_text()) for path in (tool.RESULTS / "layers").iterdir()}
    assert sorted(found) == ["google--vit-base-patch16-224", "gpt2"]
    text, image = found["gpt2"], found["google--vit-base-patch16-224"]
    # Four patches, without [CLS].
    assert (text["length"], image["length"]) == (12, 4)
    for each in (text, image):
        assert len(each["layers"]) == 2 and (each["n_train"], each["n_test"]) == (24, 8)
        # What enters the first layer has a row added for each position, and nothing else that tells it.
        assert each["layers"][0]["left"]["coefficient"] == pytest.approx(1, abs=0.1)
        assert all(len(layer["ablations"]) == 4 for layer in each["layers"])
    assert text["layers"][0]["before"] is not None and image["layers"][0]["before"] is None


def test_without_the_hub_or_the_model_it_is_one_line(tool, hub):
    with pytest.raises(SystemExit, match="^layers: the hub cannot be reached: .+$"):
        tool.main([])
    hub.start()
    with pytest.raises(SystemExit, match="^layers: someone/else: "):
        tool.main(["someone/else"])
    assert not (tool.RESULTS / "layers").exists()
