"""Against the real hub, where it answers; everywhere else the tests say that it did not."""

import urllib.error
import urllib.request

import pytest

from posembed import pretrained

pytestmark = pytest.mark.hub
ADDRESS = f"https://huggingface.co/{pretrained.HUB_NAME}/resolve/main/config.json"


@pytest.fixture(scope="session", autouse=True)
def hub():
    try:
        urllib.request.urlopen(urllib.request.Request(ADDRESS, method="HEAD"), timeout=10).close()
    except (urllib.error.URLError, TimeoutError, OSError):
        pytest.skip("the Hugging Face hub does not answer; these tests run where it does")


def test_the_hubs_encoder_is_the_installed_one(encoder, monkeypatch):
    monkeypatch.setattr(pretrained, "installed_folder", lambda: None)
    model, tokenizer = pretrained.load_encoder()
    mine, theirs = encoder.model.state_dict(), model.state_dict()
    assert mine.keys() == theirs.keys()
    assert [name for name in mine if not mine[name].equal(theirs[name])] == []
    sentence = "I do like coding"
    assert tokenizer(sentence)["input_ids"] == encoder.tokenizer(sentence)["input_ids"]
