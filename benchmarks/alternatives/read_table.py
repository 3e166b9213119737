"""Read a position table.

Who knows the file, the tensor's name and the layout reads it fastest with safetensors. Who wants the model as well has
the table with it. `load_table` is for tables of many models: it finds the name, and asks for a part where a model has
several; it leaves out the rows that stand before position 0 (RoBERTa, OPT and BART have two), and from the hub fetches
the table alone (a `pytorch_model.bin` only with `download=True`, and then whole).
"""

import torch

from posembed.pretrained import installed_folder

ABSENT = {
    "nnsight": "nothing of its own: it holds a model of transformers, whose table is read as there"
}


def given(quick):
    """The folder of all-MiniLM-L6-v2."""
    folder = installed_folder()
    if folder is None:
        raise FileNotFoundError(
            "the wheel of all-MiniLM-L6-v2 is not installed"
        )
    return (folder,)


def posembed(folder):
    """A table without the model, found by the config: rows from position 0 on, with its source."""
    from posembed import load_table

    return load_table(folder).weight


def transformers(folder):
    """The whole model, and in it the raw rows under the name that this kind of model has for them."""
    from transformers import AutoModel

    return AutoModel.from_pretrained(
        folder
    ).embeddings.position_embeddings.weight.detach()


def transformer_lens(folder):
    """The whole model with its hooks; the raw rows have one name in all kinds of models."""
    from transformer_lens.model_bridge import TransformerBridge

    return TransformerBridge.boot_transformers(
        str(folder), device="cpu"
    ).W_pos.detach()


def plain(folder):
    """The tensor of a name, by safetensors."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="pt") as file:
        return file.get_tensor("embeddings.position_embeddings.weight")


def shown(table, _):
    """Its size."""
    return f"{table.shape[0]} rows of {table.shape[1]}"


def agree(answers, _):
    """The same rows, bit for bit."""
    assert all(
        torch.equal(table, answers["posembed"]) for table in answers.values()
    )
