"""What position tables are called, and which part of a model one belongs to."""

from __future__ import annotations

import re

# What models call an absolute position table.
TABLE_NAMES = frozenset(
    {
        "embed_positions",  # BART, OPT, Whisper
        "pos_emb",
        "pos_embed",  # timm
        "position_embedding",  # CLIP
        "position_embedding_table",
        "position_embeddings",  # BERT, RoBERTa, ViT
        "positional_embedding",  # OpenAI's CLIP and Whisper
        "positions_embed",  # GPT
        "wpe",  # GPT-2
    }
)
# Parts of paths under which those names mean something else: GPT-J's angles, SAM's random frequencies.
_NO_TABLES = ("attn.embed_positions", "shared_image_embedding.", "shared_embedding.")

# Other names that may be a table's, for a list to choose from.
_LIKELY = re.compile(r"pos(ition(al|s)?)?_?(emb|enc|table)|wpe")
_UNLIKELY = re.compile(r"rel(ative)?_|relative|bias|rotary|_ids|proj|post_")

# The parts of models, and the words in a tensor's path that stand for each.
_PARTS = {
    "text": {"text", "language"},
    "vision": {"vision", "visual", "image", "video"},
    "audio": {"audio", "speech"},
    "encoder": {"encoder"},
    "decoder": {"decoder"},
}


def is_table_name(name: str) -> bool:
    """Whether a tensor or parameter of this name is a position table, if its shape is one's."""
    return stem(name).rpartition(".")[2] in TABLE_NAMES and not any(part in f"{name}." for part in _NO_TABLES)


def is_likely_name(name: str) -> bool:
    """Whether a tensor of this name may be a position table of a layout that is not known."""
    return bool(_LIKELY.search(name.lower())) and not _UNLIKELY.search(name.lower())


def stem(name: str) -> str:
    """The name without the ".weight" that nn.Embedding adds."""
    return name.removesuffix(".weight")


def printable(name: str) -> str:
    """A name in one line, whatever is in it."""
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")


def part_of(name: str) -> str | None:
    """The part of the model that a path names: "text", "vision", "audio", "encoder", "decoder" or None."""
    words = {word for component in name.split(".")[:-1] for word in component.split("_")}
    return next((part for part, its_words in _PARTS.items() if words & its_words), None)


def is_of_part(name: str, part: str) -> bool:
    """Whether the part stands in the name, or is another word for what does."""
    return part in name or part == part_of(name)
