"""Which tensor of a checkpoint is its position table, and what its rows are: from names, shapes and config.json."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from ..errors import PositionTableError, shown
from ._formats import Entry, Tensors
from ._names import (
    SINUSOID,
    instead_by_config,
    instead_by_name,
    is_likely_name,
    is_of_part,
    is_table_name,
    model_type,
    offset_of,
    part_of,
    printable,
    settings_for,
    stem,
)

# How many candidates an error lists, and how many names are compared with a misspelt one, which takes time.
MOST_LISTED, MOST_COMPARED = 8, 2000
# How many tensors may be called as a table is: each is compared with all names.
MOST_TABLES = 100
# A table that the model holds and does not add: ESM-2 and old BERTs with relative keys.
_NOT_ADDED = frozenset({"alibi", "relative_key", "relative_key_query", "rope", "rotary"})

# What configs call the width of a model's vectors, and files its word vectors.
_WIDTHS = ("hidden_size", "d_model", "n_embd", "embed_dim", "embedding_size", "emb_dim", "dim", "word_embed_proj_dim")
_WORDS = re.compile(r"word|tok|wte|emb(ed(ding)?s?)?\.weight$")


def find_entry(
    tensors: Tensors, config: Mapping[str, Any], *, source: str, part: str | None = None, name: str | None = None
) -> Entry:
    """Find the one position table of a checkpoint or a model.

    Raises:
        PositionTableError: none, several of which `part` or `name` singles out none, a shape that no table has.
    """
    entry = _named(tensors, name, source) if name is not None else _found(tensors, config, part, source)
    if 0 in entry.shape:
        raise PositionTableError(f"{_shown(entry)} in {source} is empty; give a table with rows and columns")
    if not _is_table(entry):
        raise PositionTableError(
            f"{_shown(entry)} in {source} is no position table: that is a matrix, one row for each position, or 1 x "
            "positions x width, or positions x 1 x width"
        )
    _check_not_transposed(tensors, entry, config, source)
    return entry


def _check_not_transposed(tensors: Tensors, entry: Entry, config: Mapping[str, Any], source: str) -> None:
    """Refuse a table with a column for each position: one as wide as no vector of the model, with as many rows."""
    n_rows, width = entry.matrix
    said = [settings.get(name) for settings in settings_for(entry.name, config) for name in _WIDTHS]
    words = [other.shape[-1] for name, other in tensors.seen.items() if len(other.shape) == 2 and _WORDS.search(name)]
    widths = [*filter(lambda each: type(each) is int, said), *words, *tensors.widths]
    # What an nn.Embedding looks up has a row for each position.
    if entry.name.endswith(".weight") or width in widths or n_rows not in widths:
        return
    turned = ".T" if len(entry.shape) == 2 else "[0].T" if entry.shape[0] == 1 else "[:, 0].T"
    it = f"weights[{entry.name!r:.150}]" if entry.file else f"model.{printable(entry.name):.150}"
    raise PositionTableError(
        f"{_shown(entry)} in {source} lies transposed, with a column for each position: the model's vectors are "
        f"{n_rows} wide; read it with load_table({it}{turned}), or to exchange it store it with a row for each position"
    )


def stored_offset(entry: Entry, config: Mapping[str, Any], source: str) -> int:
    """How many rows of a checkpoint's table stand before position 0.

    Raises:
        PositionTableError: nothing tells.
    """
    if (offset := offset_of(entry.name, config)) is not None:
        return offset
    kind = model_type(config)
    known = f"the model_type {kind!r:.50} is not known" if kind else "config.json has no model_type"
    raise PositionTableError(
        f"{_shown(entry)} in {source} is a position table, but not every model of this layout begins at row 0 and "
        f"{known if config else 'there is no config.json that says which this is'}; say how many rows stand before "
        f"position 0 (2 in RoBERTa's kind, 0 in BERT's): {Tensors.call.format(entry.name)}"
    )


def _named(tensors: Tensors, name: str, source: str) -> Entry:
    for exact in (name, f"{name}.weight"):
        if exact in tensors.names:
            return tensors[exact]
    compared = list(islice(tensors.names, MOST_COMPARED))
    close = ", ".join(map(printable, difflib.get_close_matches(name, compared, n=3)))
    others = f"the closest are {close}" if close else f"it holds {_first(tensors)}"
    raise PositionTableError(f"{source} holds no tensor {shown(name)}; {others}")


def _found(tensors: Tensors, config: Mapping[str, Any], part: str | None, source: str) -> Entry:
    kind = model_type(config)
    names = [name for name in tensors.names if is_table_name(name, kind) or name in tensors.schemes]
    # What use_scheme wrote there; the model's own table is silent then.
    if isinstance(put_in := config.get("position_scheme"), Mapping):
        names = _of_scheme(tensors, names, put_in.get("name"), source)
    if len(names) > MOST_TABLES:
        shown = ", ".join(f"{printable(name):.80}" for name in names[:MOST_LISTED])
        raise PositionTableError(f"{source} has {len(names):,} position tables; choose with name= among: {shown}, ...")
    fitting = [name for name in names if part is None or is_of_part(name, part) or part == part_in(tensors, name)]
    entries = [entry for entry in map(tensors.__getitem__, fitting) if _is_table(entry)]
    # What two parts of a model share is one table.
    entries = list({(entry.file, entry.place): entry for entry in reversed(entries)}.values())[::-1]
    added = [entry for entry in entries if _left_out_by(entry, config) is None]
    if len(added) == 1:
        return added[0]
    if added:
        parts = "part= or " if any(part_in(tensors, entry.name) for entry in added) else ""
        fits = f"has several position tables; choose with {parts}name= among"
        if part is not None:
            fits = f"has {len(added)} position tables that part={part!r} fits; choose with name= among"
        raise PositionTableError(f"{source} {fits}: {_listed(added)}")
    if entries:
        raise PositionTableError(
            f"{source} says position_embedding_type={_left_out_by(entries[0], config)!r}, so its model does not add "
            f"the table {_shown(entries[0])} that it holds; to take it all the same: {_call(tensors, entries[0].name)}"
        )
    if names and part is not None:
        shown = ", ".join(f"{printable(name):.150}" for name in names[:MOST_LISTED])
        raise PositionTableError(f"part={part!r} fits none of the position tables of {source}: {shown}")
    if names:
        return tensors[names[0]]  # of another shape, as SAM's: rows x columns x width
    raise _none(tensors, config, source)


def _of_scheme(tensors: Tensors, silent: list[str], scheme: Any, source: str) -> list[str]:
    """The tables of a scheme that was put into a model, in place of those that the model has of its own."""
    parts = str(scheme).split("+")
    at = (
        ["position_scheme.weight"]
        if len(parts) == 1
        else [f"position_scheme.parts.{n}.weight" for n in range(len(parts))]
    )
    known = {*tensors.schemes, *(name for name, kind in zip(at, parts, strict=True) if kind == "learned")}
    if names := [name for name in tensors.names if name in known]:
        return names
    former = "".join(
        f"; the table that is silent meanwhile: load_table(..., name={name!r:.150})" for name in silent[:1]
    )
    said = "an object" if scheme is None else f"{shown(scheme)}"
    raise PositionTableError(
        f"the positions of {source} come from the scheme that was put in, {said}, of which no position table is known"
        + former
    )


def _none(tensors: Tensors, config: Mapping[str, Any], source: str) -> PositionTableError:
    """The error for a checkpoint without a known table: what it has instead, and what may be one all the same."""
    what = instead_by_config(config) or instead_by_name(tensors.names)
    # A sinusoid that is held as a tensor is a table like any other.
    has = f"; it has {what}" if what and what != SINUSOID else ""
    rows = ", and say how many rows stand before position 0" if "offset=" in tensors.call else ""
    kind = model_type(config)
    likely = islice((name for name in tensors.names if is_likely_name(name, kind)), 2 * MOST_LISTED)
    entries = [entry for entry in map(tensors.__getitem__, likely) if _is_table(entry)]
    if entries:
        return PositionTableError(
            f"{source} has no position table under a name that is known{has}; these may be one: {_listed(entries)}; "
            f"choose{rows}: {_call(tensors, entries[0].name)}"
        )
    if what:
        return PositionTableError(f"{source} has no position table; it has {what}")
    if not tensors.names:
        return PositionTableError(
            f"{source} has no position table: it holds no ordinary tensor of numbers under a name; give another, or "
            "save the tensor itself"
        )
    return PositionTableError(
        f"{source} has no position table: none of its {len(tensors.names)} tensors has a name like one's: "
        f"{_first(tensors)}; if one of them is: {_call(tensors, '...')}"
    )


def _is_table(entry: Entry) -> bool:
    """Whether its shape is positions x width, perhaps with a 1 for the batch, and not empty."""
    return min(entry.shape, default=0) > 0 and len(entry.matrix) == 2


def _left_out_by(entry: Entry, config: Mapping[str, Any]) -> str | None:
    """The setting that keeps a model from adding this table; None where it adds it."""
    if stem(entry.name).rpartition(".")[2] != "position_embeddings":
        return None
    said = settings_for(entry.name, config)[0].get("position_embedding_type")
    return said if isinstance(said, str) and said in _NOT_ADDED else None


def part_in(tensors: Tensors, name: str) -> str | None:
    """The part of the model that a table belongs to, by its name and by what stands beside it."""
    part = part_of(name)
    if part is None and stem(name).endswith("positional_embedding"):
        # OpenAI's CLIP: the text's table stands beside a tower called visual.
        beside = name.removesuffix("positional_embedding") + "visual."
        return "text" if any(other.startswith(beside) for other in tensors.names) else None
    return part


def patches_of(tensors: Tensors, entry: Entry, config: Mapping[str, Any]) -> tuple[int, tuple[int, int] | None]:
    """How many class tokens a table of image patches has, and the grid of the patches; (0, None) for other tables."""
    part, rows = part_in(tensors, entry.name), entry.matrix[0]
    if part == "text":
        return 0, None
    settings = settings_for(entry.name, config)[0]
    grid = _grid_of_image(settings)
    n_class_tokens = rows - math.prod(grid) if grid else -1
    usual = [0, 1, 2, settings.get("n_cls_tokens")]  # none, [CLS], and the token for distillation of DeiT and AST
    if grid and n_class_tokens >= 0 and n_class_tokens in usual:
        return n_class_tokens, grid if len(grid) == 2 else None
    if (part == "vision" and settings.get("num_patches") == rows) or _has_patches(tensors, entry):
        distilled = any(name.rpartition(".")[2] in ("dist_token", "distillation_token") for name in tensors.names)
        for n_class_tokens in (2,) if distilled else (0, 1, 2):
            side = math.isqrt(max(0, rows - n_class_tokens))
            if side > 1 and side**2 == rows - n_class_tokens:
                return n_class_tokens, (side, side)
    return 0, None


def others_of(tensors: Tensors, entry: Entry, config: Mapping[str, Any]) -> str:
    """What else may be a position table by its name, besides one that was chosen; "" where nothing is."""
    kind, here = model_type(config), (entry.file, entry.place)
    found = {name: tensors.seen.get(name) for name in tensors.names if is_likely_name(name, kind)}
    # Shards that are not open stay so.
    others = (name for name, it in found.items() if it is None or (_is_table(it) and (it.file, it.place) != here))
    return ", ".join(map(printable, islice(others, MOST_LISTED)))


def _grid_of_image(settings: Mapping[str, Any]) -> Any:
    """How many patches there are along each axis of an image, or of a film, whose times come first; None if unknown."""
    whole, patch, tubelet = (settings.get(name) for name in ("image_size", "patch_size", "tubelet_size"))
    whole, patch = _sizes(whole), _sizes(patch)
    if isinstance(tubelet, list):
        whole, patch = _sizes([settings.get("num_frames"), *whole]), _sizes(tubelet)
    step = patch
    if "frequency_stride" in settings:  # AST's sounds: bands and times, in patches that overlap
        whole = _sizes([settings.get("num_mel_bins"), settings.get("max_length")])
        step = _sizes([settings.get("frequency_stride"), settings.get("time_stride")])
    grid = tuple((size - width) // apart + 1 for size, width, apart in zip(whole, patch, step, strict=False))
    return grid if len(whole) == len(patch) == len(step) and min(grid, default=0) > 0 else None


def _sizes(size: Any) -> tuple[int, ...]:
    """Height and width, and time before them where it is given, from the ways in which configs give them."""
    if isinstance(size, dict):
        size = [size.get("height"), size.get("width")]
    sizes = tuple(size) if isinstance(size, list) else (size, size)
    return sizes if len(sizes) in (2, 3) and all(type(each) is int and each > 0 for each in sizes) else ()


def _has_patches(tensors: Tensors, entry: Entry) -> bool:
    """Whether a convolution that cuts images into patches of this width stands beside the table."""
    beside = stem(entry.name).rpartition(".")[0]
    return any(
        len(other.shape) == 4 and other.shape[0] == entry.shape[-1] and ("patch" in name or "conv1" in name)
        for name, other in tensors.seen.items()
        if name.startswith(beside)
    )


def _listed(entries: list[Entry]) -> str:
    more = len(entries) - MOST_LISTED
    return ", ".join(map(_shown, entries[:MOST_LISTED])) + (f" and {more} more" if more > 0 else "")


def _first(tensors: Tensors) -> str:
    """The first tensors, and how many more there are: matrices, which may be tables, before all else."""

    def rank(name: str) -> int:
        # Of shards that are not open the name has to tell.
        entry = tensors.seen.get(name)
        axes = len(entry.matrix) if entry else 1 if re.search(r"bias|norm|ln_", name) else 2
        return {2: 0, 1: 2, 0: 2}.get(axes, 1)

    more = len(tensors.names) - MOST_LISTED
    shown = ", ".join(_shown(tensors[name]) for name in sorted(tensors.names, key=rank)[:MOST_LISTED])
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _shown(entry: Entry) -> str:
    return f"{printable(entry.name):.150} ({' x '.join(map(str, entry.shape))})"


def _call(tensors: Tensors, name: str) -> str:
    return tensors.call.format(name)
