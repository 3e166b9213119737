"""The chapters on probes and properties where a hub answers: other tables, the same conclusions.

Each conclusion is held by a check, so a chapter that runs to its end with its checks has come to it. The hub is on this
machine and serves small checkpoints in the layouts of BERT, RoBERTa and GPT-2: with the encoder's table, and with
tables that were trained for chapter 7.
"""

import os
from pathlib import Path

import pytest
import torch
from hub_server import HubServer
from nbclient import NotebookClient
from small_models import build
from tool import load

from posembed import load_study, load_table
from posembed.stored import load_tables
from posembed.tables import find_position_rows

PROBING = Path(__file__).resolve().parents[2] / "book" / "probing"


def library_of(encoder):
    """For each name the kind of model, its sizes and its table. Two rows of RoBERTa's stand before position 0."""
    real = load_table(encoder.model).weight
    by_arm, tables = load_study("trained-tables").by_arm, load_tables("trained-tables")
    few, long = (tables[by_arm[arm][0].config.key] for arm in ("causal, long, few guesses", "causal, long"))
    return {
        "bert-base-cased": ("bert", {"hidden_size": real.shape[1], "max_position_embeddings": len(real)}, real),
        "roberta-base": ("roberta", {"hidden_size": few.shape[1], "max_position_embeddings": len(few) + 2}, few),
        "gpt2": ("gpt2", {"n_embd": long.shape[1], "n_positions": len(long)}, long),
    }


@pytest.fixture(scope="module")
def library(encoder, tmp_path_factory):
    folders = {}
    for name, (kind, sizes, table) in library_of(encoder).items():
        folders[name] = tmp_path_factory.mktemp(name)
        model = build(kind, **sizes)
        with torch.no_grad():
            find_position_rows(model).rows[:] = table
        model.save_pretrained(folders[name])
    server = HubServer(folders)
    server.start()
    yield server
    server.stop()


def printed(notebook):
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.text for output in outputs if output.output_type == "stream")


@pytest.mark.slow
@pytest.mark.parametrize("chapter", ["position-tables", "trained-tables", "three-properties"])
def test_a_chapter_comes_to_its_conclusions_with_a_hub(chapter, library, tmp_path):
    notebook = load("chapters").with_checks(PROBING / f"{chapter}.ipynb")
    caches = {"HF_HOME": str(tmp_path), "POSEMBED_CACHE": str(tmp_path), "HF_ENDPOINT": library.address}
    hidden = ("HF_HUB_OFFLINE", "POSEMBED_CHECKPOINTS", "HF_HUB_CACHE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden} | caches | {"NO_COLOR": "1"}
    offline = printed(notebook)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}})
    client.execute(env=environment)
    for name in ("bert-base-cased", "roberta-base"):
        assert name in printed(notebook) and name not in offline
    asked = {asked.path for asked in library.asked if asked.status == 200 or asked.status == 206}
    assert all(any(f"/{name}/" in path for path in asked) for name, _ in library.folders)
