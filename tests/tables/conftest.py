"""A hub on this machine for the tests of tables that are read from one, and checkpoints to put there."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hub_client import new_reader
from hub_server import REPO, HubServer
from huggingface_hub import constants
from safetensors.torch import save_file
from small_models import build

import posembed.tables

# A table of 131 kB in a file of ten times as much: who reads more than the table is found out.
N_POSITIONS, D_MODEL, N_WORDS = 512, 64, 20_000
SIZES = {
    "bert": {"hidden_size": D_MODEL, "max_position_embeddings": N_POSITIONS},
    "roberta": {"hidden_size": D_MODEL, "max_position_embeddings": N_POSITIONS},
    "gpt2": {"n_embd": D_MODEL, "n_positions": N_POSITIONS},
    "gpt2-lm": {"n_embd": D_MODEL, "n_positions": N_POSITIONS},
}
# Tensors beside the model's own; a file keeps its tensors in the order of their names.
OTHERS = {
    "long header": {f"{'x' * 30}.{number}": torch.zeros(1) for number in range(1500)},
    "table far behind": {"a": torch.zeros(100_000)},
}


@dataclass(frozen=True)
class Checkpoint:
    """A folder as `save_pretrained` leaves it, and the table that is to be found there."""

    folder: Path
    weight: torch.Tensor

    @property
    def budget(self) -> float:
        """The bytes that may be moved for the table."""
        return 1.01 * self.weight.nbytes + 200_000


@dataclass
class Hub:
    """The server of a checkpoint, and what the client did."""

    server: HubServer
    checkpoint: Checkpoint
    cache: Path
    waits: list[float]

    def load(self, **options):
        return posembed.tables.load_table(REPO, **options)

    def kept(self) -> list[Path]:
        """Whatever stands in posembed's cache."""
        return [path for path in self.cache.rglob("*") if path.is_file()]

    def asked_ranges(self, name: str) -> list[str | None]:
        return [asked.range for asked in self.server.asked if asked.path.endswith(name)]


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Make a checkpoint of a kind, in a format, once."""
    made = {}

    def make(kind: str = "bert", form: str = "safetensors") -> Checkpoint:
        if (kind, form) not in made:
            made[kind, form] = _saved(kind, form, tmp_path_factory.mktemp(f"{kind}-{form}"))
        return made[kind, form]

    return make


def _saved(kind, form, folder):
    model = build(kind, vocab_size=N_WORDS, **SIZES[kind])
    found = posembed.tables.find_position_rows(model)
    model.save_pretrained(folder, max_shard_size="1MB" if form.startswith("sharded") else "5GB")
    if form.endswith("bin"):
        _as_bin(folder)
    if form in OTHERS:
        save_file(model.state_dict() | OTHERS[form], folder / "model.safetensors", metadata={"format": "pt"})
    return Checkpoint(folder, found.rows.detach().clone())


def _as_bin(folder):
    """As transformers saved before safetensors: the same shards, each a zip of torch's."""
    from safetensors.torch import load_file

    for file in folder.glob("*.safetensors"):
        name = file.name.replace("model", "pytorch_model").replace(".safetensors", ".bin")
        torch.save(load_file(file), folder / name)
        file.unlink()
    for index in folder.glob("*.index.json"):
        text = index.read_text("utf-8").replace("model-", "pytorch_model-").replace(".safetensors", ".bin")
        (folder / "pytorch_model.bin.index.json").write_text(text, "utf-8")
        index.unlink()


@pytest.fixture
def point_at(monkeypatch):
    """What HF_ENDPOINT does when huggingface_hub is imported."""

    def point(address):
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    return point


@pytest.fixture
def serve(tmp_path, monkeypatch, point_at):
    """Serve a checkpoint: as a hub that the client believes to be the hub, or as the storage that one redirects to."""
    servers = []

    def start(checkpoint: Checkpoint, *, as_hub: bool = True, started: bool = True) -> Hub:
        server = HubServer(checkpoint.folder, REPO)
        servers.append(server)
        if started:
            server.start()
        if as_hub:
            point_at(server.address)
        return Hub(server, checkpoint, tmp_path / "cache", waits)

    with new_reader(monkeypatch, tmp_path) as waits:
        yield start
    for server in servers:
        server.stop()


@pytest.fixture
def impatient(monkeypatch):
    """For servers that stall: as long as a loaded machine may take, not as long as a user would wait."""
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.8)


@pytest.fixture
def hub(serve, checkpoints):
    return serve(checkpoints())
