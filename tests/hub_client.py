"""The hub's client in the tests' own process: with empty caches, and without waiting."""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import huggingface_hub
import pytest
from hub_server import TOKEN, HubServer
from huggingface_hub import constants


def ask(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client take a server for the hub, as HF_ENDPOINT would."""
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@contextmanager
def new_reader(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[list[float]]:
    """Be somebody with empty caches in ``folder`` and no checkpoints; yield the seconds that were not waited."""
    waits: list[float] = []
    monkeypatch.setenv("POSEMBED_CACHE", str(folder / "cache"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("POSEMBED_CHECKPOINTS", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", False)
    # Each new client reads all certificates of the web, which takes longer than a test; here nothing is encrypted.
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
    monkeypatch.setattr(time, "sleep", waits.append)
    huggingface_hub.close_session()
    yield waits
    huggingface_hub.close_session()
