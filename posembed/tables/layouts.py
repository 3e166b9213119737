"""The tensors of a checkpoint or a model by their names, which of them is the position table, and what its rows are.

What is known of models is data, in `rules`; here it is applied to names, shapes and the config.
"""

from __future__ import annotations

import difflib
import math
import re
import warnings
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import LISTED, CheckpointError, PositionTableError, listed, shown
from . import rules

# What a tensor is called that was saved by itself.
ALONE = "the tensor"


@dataclass(frozen=True)
class Entry:
    """A tensor that was not read yet.

    Attributes:
        name: in the file or the model.
        shape: its sizes.
        kind: what its numbers are: "float32", "bfloat16", "int8".
        place: where its numbers stand: the same for tensors that are one and the same.
        read: returns it, in the kind in which it is stored.
        file: the file's name, None for what is in memory.
        before: returns how many rows stand before position 0, where a live model says so itself.
        shown: what a live model calls the module that looks it up, where one does.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    place: Hashable
    read: Callable[[], Tensor]
    file: str | None = None
    before: Callable[[], int] | None = None
    shown: str = ""

    @property
    def matrix(self) -> tuple[int, ...]:
        """Its sizes without the one that only stands for the batch: 1 x positions x width, or positions x 1 x width."""
        batch = self.shape.index(1) if len(self.shape) == 3 and 1 in self.shape[:2] else None
        return tuple(size for place, size in enumerate(self.shape) if place != batch)

    @property
    def is_table(self) -> bool:
        """Whether its shape is positions x width, perhaps with a 1 for the batch, and not empty."""
        return min(self.shape, default=0) > 0 and len(self.matrix) == 2


@dataclass
class Weights:
    """The tensors of a checkpoint or of a model by their names; of shards, each is opened when it is needed.

    Attributes:
        source: what errors call the checkpoint or the model.
        config: config.json, or a live model's settings; empty where there are none.
        seen: the tensors of which the shape is known.
        shards: the file of each tensor, where there are several.
        opened: gives the tensors of such a file.
        schemes: the names of those that are tables whatever they are called.
        widths: those of the vectors that a module looks up.
        call: how errors say that one is chosen.
    """

    source: str
    config: Mapping[str, Any]
    seen: dict[str, Entry]
    shards: Mapping[str, str] = field(default_factory=dict)
    opened: Callable[[str], dict[str, Entry]] | None = None
    schemes: Collection[str] = (ALONE,)
    widths: Collection[int] = ()
    call: str = "load_table(..., name={!r}, offset=0)"

    @property
    def names(self) -> Collection[str]:
        """Every tensor's name."""
        return self.shards.keys() or self.seen.keys()

    def __getitem__(self, name: str) -> Entry:
        if name not in self.seen and self.opened is not None:
            self.seen |= self.opened(self.shards[name])
        if name not in self.seen:
            raise CheckpointError(f"{name!r} should be in {self.shards[name]}, which lacks it")
        return self.seen[name]


def tensor_entry(name: str, tensor: Tensor, place: Hashable = None, **more: Any) -> Entry:
    """What is in memory already, or is mapped to it."""
    place = place or (tensor.data_ptr(), tensor.stride())
    return Entry(name, tuple(tensor.shape), kind_of(tensor.dtype), place, lambda: tensor, **more)


def tensor_of(array: np.ndarray) -> Tensor:
    """The same numbers in this machine's byte order, of which torch knows no other; what is masked is no number."""
    return torch.from_numpy(np.array(np.ma.filled(array, np.nan), array.dtype.newbyteorder("=")))


def kind_of(dtype: torch.dtype) -> str:
    """The name of a dtype: "float32"."""
    return str(dtype).removeprefix("torch.")


def find_entry(weights: Weights, part: str | None = None, name: str | None = None) -> Entry:
    """Find the one position table of a checkpoint or a model.

    Raises:
        PositionTableError: none, several of which `part` or `name` singles out none, a shape that no table has.
    """
    entry = _found(weights, part) if name is None else _named(weights, name)
    if not entry.is_table:
        raise PositionTableError(
            f"{_shown(entry)} in {weights.source} is no position table: that is a matrix, one row for each position, "
            "or 1 x positions x width, or positions x 1 x width, and not empty"
        )
    _check_not_transposed(weights, entry)
    return entry


def rows_before(weights: Weights, entry: Entry) -> int:
    """How many rows stand before position 0: a live model says it itself, else its type in the config does.

    Raises:
        PositionTableError: nothing tells.
    """
    if entry.before is not None:
        return entry.before()
    if any(other in entry.name for other in rules.OTHERS_WITHOUT):
        return 0
    if not (entry.name.endswith(".weight") and _last(entry.name) in rules.AMBIGUOUS):
        _check_not_shifted(weights, entry)
        return 0
    for settings in settings_for(entry.name, weights.config):
        kind, padding = settings.get("model_type"), settings.get("pad_token_id")
        if kind in rules.TWO_ROWS or kind in rules.NO_ROWS:
            return 2 if kind in rules.TWO_ROWS else 0
        if kind in rules.AFTER_PADDING:
            return 1 + (rules.AFTER_PADDING[kind] if padding is None else padding)
    kind = weights.config.get("model_type")
    known = f"the model_type {kind!r} is not known" if kind else "config.json has no model_type"
    raise PositionTableError(
        f"{_shown(entry)} in {weights.source} is a position table, but not every model of this layout begins at row 0 "
        f"and {known if weights.config else 'there is no config.json that says which this is'}; say how many rows "
        f"stand before position 0 (2 in RoBERTa's kind, 0 in BERT's): {weights.call.format(entry.name)}"
    )


def patches_of(weights: Weights, entry: Entry) -> tuple[int, tuple[int, int] | None]:
    """How many class tokens a table of image patches has, and the grid of the patches; (0, None) for other tables.

    A config tells it by the sizes of images, or of sounds, and patches, or by the number of patches in a square
    (Siglip 2). Where there is none, as in timm's checkpoints, a square is guessed beside what cuts patches, behind the
    rows of the class tokens that stand there; the grid is None where what is left is no square number.
    """
    if part_of(entry.name) == "text":
        return 0, None
    settings, rows = settings_for(entry.name, weights.config)[0], entry.matrix[0]
    image, patch = (_sides(settings.get(name)) for name in ("image_size", "patch_size"))
    # AST: of frequencies and times, and cut into patches that overlap.
    image = image or _sides([settings.get(name) for name in ("num_mel_bins", "max_length")])
    step = _sides([settings.get(name) for name in ("frequency_stride", "time_stride")]) or patch
    of_config = [(whole - cut) // by + 1 for whole, cut, by in zip(image, patch, step, strict=False)]
    cut = cut_into_patches(weights, entry)
    square = cut in (2, 4) and (not settings or "num_patches" in settings)
    known = _class_tokens(weights, entry) if cut else 0
    # None, [CLS], and DeiT's token for distillation.
    for n_class_tokens in (known,) if known and not settings else (0, 1, 2):
        side = math.isqrt(max(0, rows - n_class_tokens)) if square else 0
        grid = (of_config[0], of_config[1]) if of_config else (side, side)
        if grid > (1, 1) and math.prod(grid) + n_class_tokens == rows:
            if not (of_config or settings):
                warnings.warn(
                    f"the grid of {weights.source} is guessed: {n_class_tokens} class tokens, {side} x {side} patches; "
                    "say dataclasses.replace(table, grid=, n_class_tokens=) where it is another",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return n_class_tokens, grid
    return known, None


def others_of(weights: Weights, entry: Entry) -> str:
    """What else may be a position table by its name, besides one that was chosen; "" where nothing is."""
    here = entry.file, entry.place
    found = {name: weights.seen.get(name) for name in _likely(weights)}
    # Shards that are not open stay so.
    others = (name for name, it in found.items() if it is None or (it.is_table and (it.file, it.place) != here))
    return ", ".join(islice(others, LISTED))


def part_of(name: str) -> str | None:
    """The part of the model that a path names: "text", "vision", "audio", "encoder", "decoder" or None."""
    words = {word for component in name.split(".")[:-1] for word in component.split("_")}
    return next((part for part, its_words in rules.PARTS.items() if words & its_words), None)


def is_table_name(name: str, kind: str | None = None) -> bool:
    """Whether a tensor or parameter of this name is a position table in a model of this type, if its shape is one's."""
    if kind in rules.OWN_NAMES:
        return _last(name) == rules.OWN_NAMES[kind]
    return _last(name) in rules.TABLE_NAMES and not any(part in f"{name}." for part in rules.NO_TABLES)


def stem(name: str) -> str:
    """The name without the ".weight" that nn.Embedding adds."""
    return name.removesuffix(".weight")


def settings_for(name: str, config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The settings that apply to a tensor, the closest first: those of its part (``text_config``), then the whole's."""
    path = name.split(".")
    parts = {key.removesuffix("_config"): value for key, value in config.items() if isinstance(value, dict)}
    for depth, component in enumerate(path[:-1], start=1):
        for part, value in parts.items():
            # "text" is for "language_model" too.
            if part == component or part_of(f"{part}.") == part_of(f"{component}.") is not None:
                return [*settings_for(".".join(path[depth:]), value), config]
    return [config]


def _last(name: str) -> str:
    return stem(name).rpartition(".")[2]


def _likely(weights: Weights) -> list[str]:
    """The tensors that may be position tables by their names, where the layout of such a model is not known."""
    if weights.config.get("model_type") in rules.OWN_NAMES:
        return []
    lower = {name: name.lower() for name in weights.names}
    return [name for name, it in lower.items() if rules.LIKELY.search(it) and not rules.UNLIKELY.search(it)]


def _named(weights: Weights, name: str) -> Entry:
    for exact in (name, f"{name}.weight"):
        if exact in weights.names:
            return weights[exact]
    close = ", ".join(difflib.get_close_matches(name, weights.names, n=3))
    others = f"the closest are {close}" if close else f"it holds {_first(weights)}"
    raise PositionTableError(f"{weights.source} holds no tensor {shown(name)}; {others}")


def _found(weights: Weights, part: str | None) -> Entry:
    kind, source = weights.config.get("model_type"), weights.source
    names = [name for name in weights.names if is_table_name(name, kind) or name in weights.schemes]
    # What use_scheme wrote there; the model's own table is silent then.
    if isinstance(put_in := weights.config.get("position_scheme"), Mapping):
        names = _of_scheme(weights, names, put_in.get("name"))
    fitting = [name for name in names if part is None or part in name or part == part_of(name)]
    entries = [entry for entry in map(weights.__getitem__, fitting) if entry.is_table]
    # What two parts of a model share is one table.
    entries = list({(entry.file, entry.place): entry for entry in reversed(entries)}.values())[::-1]
    added = [entry for entry in entries if _left_out_by(entry, weights.config) is None]
    if len(added) == 1:
        return added[0]
    if added:
        fits = "" if part is None else f" that part={part!r} fits"
        how = "part= or name=" if part is None and any(part_of(entry.name) for entry in added) else "name="
        raise PositionTableError(
            f"{source} has {len(added)} position tables{fits}; choose with {how} among: {listed([*map(_shown, added)])}"
        )
    if entries:
        raise PositionTableError(
            f"{source} says position_embedding_type={_left_out_by(entries[0], weights.config)!r}, so its model does "
            f"not add the table {_shown(entries[0])} that it holds; to take it all the same: "
            f"{weights.call.format(entries[0].name)}"
        )
    if names and part is not None:
        raise PositionTableError(f"part={part!r} fits none of the position tables of {source}: {listed(names)}")
    if names:
        return weights[names[0]]  # of another shape, as SAM's: rows x columns x width
    raise _none(weights)


def _of_scheme(weights: Weights, silent: list[str], scheme: str | None) -> list[str]:
    """The tables of a scheme that was put into a model, in place of those that the model has of its own."""
    parts = (scheme or "").split("+")
    at = [f"parts.{number}." for number in range(len(parts))] if len(parts) > 1 else [""]
    learned = {f"position_scheme.{it}weight" for it, kind in zip(at, parts, strict=True) if kind == "learned"}
    if names := [name for name in weights.names if name in {*weights.schemes, *learned}]:
        return names
    former = f"; what is silent meanwhile, name= reads: {silent[0]}" if silent else ""
    raise PositionTableError(
        f"the positions of {weights.source} come from the scheme that was put in, "
        f"{'an object' if scheme is None else repr(scheme)}, of which no position table is known{former}"
    )


def _none(weights: Weights) -> PositionTableError:
    """The error for a checkpoint without a known table: what it has instead, and what may be one all the same."""
    what = _instead_by_config(weights.config)
    if what is None:
        what = next((it for word, it in rules.BY_NAME.items() if any(word in name for name in weights.names)), None)
    entries = [entry for entry in map(weights.__getitem__, _likely(weights)[: 2 * LISTED]) if entry.is_table]
    if entries:
        # A sinusoid that is held as a tensor is a table like any other.
        has = f"; it has {what}" if what and what != rules.SINUSOID else ""
        return PositionTableError(
            f"{weights.source} has no position table under a name that is known{has}; these may be one: "
            f"{listed([*map(_shown, entries)])}; choose: {weights.call.format(entries[0].name)}"
        )
    if what:
        return PositionTableError(f"{weights.source} has no position table; it has {what}")
    return PositionTableError(
        f"{weights.source} has no position table: none of its {len(weights.names)} tensors has a name like one's: "
        f"{_first(weights)}; if one of them is: {weights.call.format('...')}"
    )


def _instead_by_config(config: Mapping[str, Any]) -> str | None:
    """What a model's config says that it has in place of a table; None where it says nothing.

    The settings of a part (``text_config``) count where the whole has none.
    """
    # ALiBi first: Falcon has settings for rotary embeddings even where it says alibi.
    attention = config.get("attn_config")
    if config.get("alibi") is True or (isinstance(attention, dict) and attention.get("alibi") is True):
        return rules.ALIBI
    for what, kinds in rules.BY_TYPE.items():
        if config.get("model_type") in kinds:
            return what
    said = config.get("position_embedding_type", config.get("position_embeddings_type", ""))
    if str(said).startswith("relative"):
        return rules.RELATIVE
    # Zamba2 and Granite's hybrids have settings for rotary embeddings that they do not use.
    unused = said is None or config.get("use_mem_rope") is False
    if said in ("rotary", "rope") or (not unused and any(config.get(key) for key in rules.ROTARY_SETTINGS)):
        return rules.ROPE
    parts = (value for value in config.values() if isinstance(value, dict) and "model_type" in value)
    return next(filter(None, map(_instead_by_config, parts)), None)


def _check_not_transposed(weights: Weights, entry: Entry) -> None:
    """Refuse a table with a column for each position: one as wide as no vector of the model, with as many rows."""
    n_rows, width = entry.matrix
    said = [settings.get(name) for settings in settings_for(entry.name, weights.config) for name in rules.WIDTHS]
    seen = weights.seen.items()
    words = [other.shape[-1] for name, other in seen if len(other.shape) == 2 and rules.WORDS.search(name)]
    widths = [*said, *words, *weights.widths]
    # What an nn.Embedding looks up has a row for each position.
    if entry.name.endswith(".weight") or width in widths or n_rows not in widths:
        return
    raise PositionTableError(
        f"{_shown(entry)} in {weights.source} lies transposed, with a column for each position: the model's vectors "
        f"are {n_rows} wide; give load_table the tensor itself with its axes exchanged, one row for each position"
    )


def _check_not_shifted(weights: Weights, entry: Entry) -> None:
    """Refuse to take row 0 for position 0 where the model counts from a later one, under a name that is not its own."""
    settings = settings_for(entry.name, weights.config)
    kind = next((its["model_type"] for its in settings if its.get("model_type")), None)
    of_scheme = entry.name in weights.schemes or "position_scheme" in entry.name.split(".")
    if kind not in {*rules.TWO_ROWS, *rules.AFTER_PADDING} or of_scheme or cut_into_patches(weights, entry):
        return
    if part_of(entry.name) not in ("vision", "audio"):
        raise PositionTableError(
            f"{_shown(entry)} in {weights.source} is not where the model_type {kind!r} keeps its table, and in that "
            "one rows stand before position 0; say how many do here (2 in RoBERTa's kind, 0 if none): "
            f"{weights.call.format(entry.name).replace('offset=0', 'offset=2')}"
        )


def _left_out_by(entry: Entry, config: Mapping[str, Any]) -> str | None:
    """The setting that keeps a model from adding this table; None where it adds it."""
    if _last(entry.name) != "position_embeddings":
        return None
    said = settings_for(entry.name, config)[0].get("position_embedding_type")
    return said if isinstance(said, str) and said in rules.NOT_ADDED else None


def _sides(size: Any) -> tuple[int, ...]:
    """Height and width, from the ways in which configs give them; none where there are no two."""
    sides = size.values() if isinstance(size, dict) else size if isinstance(size, list) else [size, size]
    return tuple(sides) if len(sides) == 2 and all(sides) else ()


def _class_tokens(weights: Weights, entry: Entry) -> int:
    """How many class tokens, each with a row of the table, stand beside it for certain."""
    if entry.name.endswith(rules.PERHAPS_WITHOUT_CLASS):
        return 0
    beside = stem(entry.name).removesuffix(_last(entry.name))
    return sum(f"{beside}{token}" in weights.names for token in rules.CLASS_TOKENS)


def cut_into_patches(weights: Weights, entry: Entry) -> int:
    """How many axes has what cuts images, or videos, into patches of this width, beside the table; 0 where nothing."""
    beside = stem(entry.name).rpartition(".")[0]
    return next(
        (
            len(other.shape)
            for name, other in weights.seen.items()
            if name.startswith(beside) and other.shape[:1] == entry.shape[-1:] and part_of(entry.name) != "text"
            # A convolution, or of patches that were cut before (Siglip 2) a matrix.
            if (len(other.shape) > 3 and ("patch" in name or "conv1" in name))
            or (len(other.shape) == 2 and "patch_embed" in name)
        ),
        0,
    )


def _first(weights: Weights) -> str:
    """The first tensors, and how many more there are; biases and norms, which are no tables, last."""
    ordered = sorted(weights.names, key=lambda name: bool(re.search(r"bias|norm|ln_", name)))
    # Of the others nothing is read.
    return listed([*(_shown(weights[name]) for name in ordered[:LISTED]), *ordered[LISTED:]])


def _shown(entry: Entry) -> str:
    return f"{entry.name} ({' x '.join(map(str, entry.shape))})"
