"""Corpora as files of tokens, which are mapped and not read, so that they may be larger than the memory.

A folder holds one corpus: its vocabulary, the tokens of each part, and about.json, which tells what they are. It is
made under another name and renamed when it is whole. What is damaged, or of an older format, is made anew; what is of a
newer one is an error and left as it is.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CorpusError, PosembedError
from ._pieces import cut
from ._texts import PARTS, Texts
from .byte_pairs import BytePairs
from .characters import Characters

FORMAT = 1
# Characters that are encoded at a time.
ENCODED = 2**19
# After so many seconds, a week, what was not made whole is left from a process that was killed.
FORGOTTEN = 7 * 24 * 3600
Vocabulary = Characters | BytePairs
VOCABULARIES: dict[str, Callable[[str], Vocabulary]] = {"characters": Characters.from_json, "bpe": BytePairs}
# Little-endian on every machine.
DTYPES: dict[str, Any] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}


@dataclass(frozen=True)
class TokenFiles:
    """A corpus on the disk.

    Attributes:
        vocabulary: of the tokens.
        parts: the tokens of each part, mapped.
        n_words: of each part.
    """

    vocabulary: Vocabulary
    parts: Mapping[str, np.memmap]
    n_words: Mapping[str, int]


def token_files(texts: Texts, tokens: str, vocab_size: int | None, make: Callable[[], Vocabulary]) -> TokenFiles:
    """Find a corpus in the cache, or make it and keep it there.

    Args:
        texts: what it is made from.
        tokens: "characters" or "bpe".
        vocab_size: asked of the vocabulary.
        make: makes the vocabulary, where it is not there.

    Raises:
        CorpusError: what is there is of a newer format, or the folder cannot be used.
    """
    fingerprint = texts.fingerprint()
    key = hashlib.sha256(json.dumps([fingerprint, tokens, vocab_size]).encode()).hexdigest()[:16]
    with _explained():
        folder = corpora_folder() / key
        found = read(folder)
        if found is None:
            about = {"posembed": version("posembed"), "source": texts.name, "fingerprint": fingerprint}
            write(folder, texts, tokens, make(), about)
            found = read(folder)
    if found is None:
        raise CorpusError(f"what was written to {folder} does not come back; check the disk")
    return found


def corpora_folder() -> Path:
    """Where corpora are kept: beside the tables, in POSEMBED_CACHE or in posembed's part of the user's cache."""
    from ..tables.hub import cache_folder

    return cache_folder().parent / "corpora"


def read(folder: Path) -> TokenFiles | None:
    """Map what `write` wrote; None where nothing is there, or what is there is damaged or of an older format."""
    try:
        about = json.loads((folder / "about.json").read_bytes())
        newer = about["format"] > FORMAT
        known = about["format"] == FORMAT
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    if newer:
        raise CorpusError(f"{folder} was written by a newer version of posembed; upgrade it, or move the folder away")
    try:
        return _read(folder, about) if known else None
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _read(folder: Path, about: Mapping[str, Any]) -> TokenFiles:
    content = (folder / "vocabulary.json").read_bytes()
    if hashlib.sha256(content).hexdigest() != about["vocabulary_sha256"]:
        raise ValueError("damaged")
    vocabulary = VOCABULARIES[about["tokens"]](content.decode())
    parts = {part: _mapped(folder / f"{part}.bin", about["parts"][part]) for part in PARTS}
    return TokenFiles(vocabulary, parts, {part: int(about["parts"][part]["n_words"]) for part in PARTS})


def _mapped(path: Path, about: Mapping[str, Any]) -> np.memmap:
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != about["sha256"]:
            raise ValueError("damaged")
    return np.memmap(path, dtype=DTYPES[about["dtype"]], mode="r", shape=(about["n_tokens"],))


def write(folder: Path, texts: Texts, tokens: str, vocabulary: Vocabulary, about: Mapping[str, Any]) -> None:
    """Write a corpus: the whole of it or nothing.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    _sweep(folder.parent)
    growing = folder.with_name(f".{uuid.uuid4().hex}.part")
    growing.mkdir(parents=True)
    try:
        content = vocabulary.to_json().encode()
        (growing / "vocabulary.json").write_bytes(content)
        told = {
            "format": FORMAT,
            **about,
            "tokens": tokens,
            "vocab_size": len(vocabulary),
            "vocabulary_sha256": hashlib.sha256(content).hexdigest(),
            "parts": {part: _write_part(growing / f"{part}.bin", texts.pieces(part), vocabulary) for part in PARTS},
        }
        (growing / "about.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
        _rename(growing, folder)
    finally:
        shutil.rmtree(growing, ignore_errors=True)


def _write_part(path: Path, pieces: Iterator[str], vocabulary: Vocabulary) -> dict[str, Any]:
    """Encode a part, a piece at a time, and tell what was written."""
    dtype = "uint16" if len(vocabulary) <= 2**16 else "uint32"
    digest, n_tokens, n_words = hashlib.sha256(), 0, 0
    with path.open("wb") as file:
        for piece in cut(pieces, ENCODED):
            ids = vocabulary.encode(piece).numpy().astype(DTYPES[dtype])
            file.write(ids.data)
            digest.update(ids.data)
            n_tokens, n_words = n_tokens + len(ids), n_words + len(piece.split())
    return {"dtype": dtype, "n_tokens": n_tokens, "n_words": n_words, "sha256": digest.hexdigest()}


def _rename(growing: Path, folder: Path) -> None:
    try:
        growing.rename(folder)
    except OSError:
        # Another process was faster, or something damaged stands in the way.
        if not folder.exists():
            raise
        if read(folder) is None:
            folder.rename(folder.with_name(f".{uuid.uuid4().hex}.part"))
            growing.rename(folder)


def _sweep(folder: Path) -> None:
    for left in folder.glob(".*.part"):
        if time.time() - left.lstat().st_mtime > FORGOTTEN:
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _explained() -> Iterator[None]:
    """Errors of the disk in one line."""
    try:
        yield
    except PosembedError:
        raise
    except (OSError, RuntimeError) as error:  # a read-only or full disk, a user without a home
        reason = getattr(error, "strerror", None) or error
        raise CorpusError(
            f"the tokens cannot be kept ({reason}); free some space, or let POSEMBED_CACHE name another folder"
        ) from error
