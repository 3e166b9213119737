"""What a run is: a frozen set of numbers that determines its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import torch

from ..checks import check_choice
from ..encodings import scheme
from ..encodings.import_path import source_hash
from ..errors import RunError, shown
from ..models.transformer import POSITIONS_ADDED

# What may change without changing any number of a result.
_NOT_HASHED = ("preset",)


@dataclass(frozen=True)
class RunConfig:
    """One training run. With the same config on the same machine it gives the same numbers.

    Attributes:
        scheme: a name for `posembed.scheme`, or of one's own the import path of its class, "module:Class".
        scheme_options: more arguments for the schemes, by their names.
        objective: "causal", the next token; "masked", the hidden ones, with a model that sees both sides; or "task",
            what a task asks, with such a model too.
        masking_rate: the share of hidden tokens, where the objective is "masked".
        data: the text: "sotu", or the path of a text file (see `posembed.data.load_corpus`).
        length: of the training pieces, in tokens.
        short_length: of the pieces of the first steps, as BERT was trained; None for pieces of one length. A step reads
            as many tokens as any other, in more pieces.
        short_share: the share of the steps, from the first one on, that have such pieces.
        guessed_share: of a causal model: the share of the tokens that it is trained to guess, drawn anew for each
            piece; a masked model guesses the hidden ones alone. None for all.
        n_layers: the number of layers.
        d_model: the width.
        n_heads: the number of heads of each layer.
        scale_embeddings: whether word vectors are multiplied by sqrt(d_model).
        batch_size: pieces a step.
        steps: of AdamW.
        learning_rate: the highest, after the warm-up; it falls as a cosine, to a tenth.
        warmup: steps in which it rises from zero.
        weight_decay: of matrices in linear layers.
        seed: of the weights and the batches.
        test_length: of further pieces, mostly longer, in groups of 16 positions, in which the loss is measured too;
            None for not.
        test_scalings: scalings of RoPE to be tried at that length, without any training: "linear", "ntk", "yarn",
            "llama3".
        threads: of torch. The sum of many numbers depends on how it is split, so it belongs to the config.
        device: where the run takes place; on a GPU ("cuda") the training multiplies matrices in bfloat16.
        preset: a name for a set of runs; it is stored and changes nothing.
        dropout: of the embeddings, the attention weights and each part's output, in training.
        layers_with_positions: the layers, counted from 0, whose attention uses the scheme; the others see no positions
            but rows that the scheme adds to the embeddings, which reach all layers. None for all.
        further_steps: of AdamW, after the others; the learning rate rises and falls anew. None for none.
        drops_positions: whether the model loses its positions before the further steps, and has none from then on.
        weight_std: the standard deviation of the weights at the start: those of linear layers, and word vectors that
            are not scaled.
        inspections: what else is measured after the training, by names of `posembed.training.inspections`.
        task: where the objective is "task": a made one (see `posembed.data.synthetic_task`), or a real one (see
            `posembed.training.tasks.load_task`).
        difficulty: of the task; by default the usual one.
        subwords: how many subwords the text is made of, and those of real tasks, at least one for each character; None
            for characters.
        start: of a task: the settings of the run whose Transformer it begins with, those that are not the defaults (see
            `told`); None for one that has learned nothing.
        cls: whether each text begins with [CLS], as BERT's do, which then stands for it where it is classified:
            "tied", a token at position 0 like any other; "untied", to which all attend by a number of its own;
            "moved", at a position that is drawn for each text. Of subwords; None for texts as they are.
        dose: a frozen bias in place of a scheme: the property that it violates, and by how many degrees (see
            `posembed.similarity.perturbed_bias`); ``{}`` for one that violates none. None for none.
        positions_added: where rows that the scheme adds to embeddings are added: "input", once; "every layer", the same
            rows again; "layers anew", each layer its own (see `posembed.TransformerConfig`).
        text_hash: of the file that `data` names, taken when the config is made, so that a changed text is another run.
            None where there is no such file.
        scheme_hash: the same for the file of a scheme of one's own. What that file imports is not seen.

    Raises:
        RunError: a number out of its range, an unknown objective or scaling; what cannot be stored as JSON.
        EncodingInputError: a scheme that cannot be made for the model, or one of one's own that cannot be imported.

    Example:
        >>> from posembed import RunConfig
        >>> RunConfig(scheme="rope", seed=1).key == RunConfig(scheme="rope", seed=1, preset="smoke").key
        True
    """

    scheme: str = "nopos"
    scheme_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    objective: Literal["causal", "masked", "task"] = "causal"
    masking_rate: float | None = None
    data: str = "sotu"
    length: int = 64
    short_length: int | None = None
    short_share: float | None = None
    guessed_share: float | None = None
    n_layers: int = 4
    d_model: int = 64
    n_heads: int = 4
    scale_embeddings: bool = True
    batch_size: int = 32
    steps: int = 2000
    learning_rate: float = 3e-3
    warmup: int = 100
    weight_decay: float = 0.1
    seed: int = 0
    test_length: int | None = None
    test_scalings: tuple[str, ...] = ()
    threads: int = 1
    device: str = "cpu"
    preset: str = ""
    dropout: float = 0.0
    layers_with_positions: tuple[int, ...] | None = None
    further_steps: int | None = None
    drops_positions: bool = False
    weight_std: float = 0.02
    inspections: tuple[str, ...] = ()
    task: str | None = None
    difficulty: int | None = None
    subwords: int | None = None
    start: Mapping[str, Any] | None = None
    cls: Literal["tied", "untied", "moved"] | None = None
    dose: Mapping[str, float] | None = None
    positions_added: Literal["input", "every layer", "layers anew"] = "input"
    text_hash: str | None = None
    scheme_hash: str | None = None

    def __post_init__(self) -> None:
        self._check_storable()
        here = self.scheme_hash is None
        if here:
            object.__setattr__(self, "scheme_hash", source_hash(self.scheme))
        if self.text_hash is None:
            object.__setattr__(self, "text_hash", text_hash(self.data))
        for names, holds, wanted in NUMBERS:
            for name in names.split():
                # What None says by default it may say.
                if getattr(self, name) is not None or getattr(RunConfig, name) is not None:
                    _check(name, getattr(self, name), holds, wanted)
                    _check(name, getattr(self, name), lambda value: value <= LARGEST, f"{LARGEST} or less")
        if self.objective not in ("causal", "masked", "task"):
            raise RunError(f"objective is {shown(self.objective)}; choose among causal, masked, task")
        if (self.objective == "masked") != (self.masking_rate is not None):
            raise RunError(
                f"masking_rate is {shown(self.masking_rate)} with the objective {shown(self.objective)}; "
                "a masked model needs one, a causal model has none"
            )
        if self.guessed_share is not None and self.objective != "causal":
            raise RunError("guessed_share is for causal models; a masked one has its masking_rate")
        _check_names("test_scalings", "scaling", self.test_scalings, SCALING_NAMES)
        _check_names("inspections", "inspection", self.inspections, INSPECTION_NAMES)
        self._check_task()
        self._check_lengths()
        self._check_positions()
        if self.test_scalings and (self.scheme != "rope" or self.test_length is None):
            raise RunError("test_scalings need scheme='rope' and a test_length; leave them out otherwise")
        if "prefix" in self.inspections and (self.objective != "causal" or self.length < 3 + KEPT):
            raise RunError(
                f"the inspection 'prefix' is of causal models with a length of at least {3 + KEPT}; leave it out"
            )
        if here:
            # What is wrong with it is best said now; what it draws belongs to nobody.
            with torch.random.fork_rng(devices=[]):
                scheme(self.scheme, **self.sizes, options=self.scheme_options)

    def _check_storable(self) -> None:
        """Refuse what a file cannot hold; mappings become what will be read back."""
        if not isinstance(self.scheme, str):
            kind = self.scheme if isinstance(self.scheme, type) else type(self.scheme)
            module = "mine" if kind.__module__ == "__main__" else kind.__module__
            raise RunError(
                f"scheme is an object, {kind.__name__}, which cannot be stored; give a name of posembed.schemes(), or "
                f"write the class into a file and give its import path, scheme='{module}:{kind.__qualname__}'"
            )
        for name, value in vars(self).items():
            try:
                stored = json.loads(json.dumps(value))
            except (TypeError, ValueError) as error:
                raise RunError(
                    f"{name} cannot be stored ({error}); give numbers, texts, lists and mappings of them"
                ) from None
            if isinstance(value, dict):
                object.__setattr__(self, name, stored)

    def _check_task(self) -> None:
        if (self.objective == "task") != (self.task is not None):
            said = f"task is {shown(self.task)} with the objective {shown(self.objective)}"
            raise RunError(f"{said}; give both, or neither")
        for name in ("difficulty", "start"):
            if self.task is None and getattr(self, name) is not None:
                raise RunError(f"{name} is that of a task; leave it out otherwise")
        if self.cls is not None:
            check_choice("cls", self.cls, ("tied", "untied", "moved"), RunError)
            if self.objective == "causal" or self.subwords is None:
                raise RunError(f"cls is {self.cls!r}, which is for subwords and objective='masked'; leave it out")
        texts = [name for name in ("short_length", "test_length", "further_steps") if getattr(self, name) is not None]
        if self.task is not None and (texts or self.inspections not in ((), ("patches",))):
            raise RunError(f"{(*texts, 'inspections')[0]} is for texts, not for tasks; leave it out")
        if "patches" in self.inspections and self.task != "digits":
            raise RunError("the inspection 'patches' is of images, task='digits'; leave it out otherwise")
        dosed = isinstance(self.dose, Mapping) and len(self.dose) <= 1 and self.scheme == "nopos"
        if self.dose is not None and not dosed:
            raise RunError("a dose is one property and its degrees, in place of a scheme; leave the scheme out")

    def _check_lengths(self) -> None:
        # A causal model guesses one token from one at least.
        least = 2 if self.objective == "causal" else 1
        _check("length", self.length, lambda n: n >= least, f"at least {least} for a {self.objective} model")
        if (self.short_length is None) != (self.short_share is None):
            raise RunError("short_length and short_share belong together; give both or none")
        if self.short_length is not None:
            wanted = f"a whole number from {least} to below the length, {self.length}, that divides it"
            _check(
                "short_length", self.short_length, lambda n: least <= n < self.length and not self.length % n, wanted
            )

    def _check_positions(self) -> None:
        layers = self.layers_with_positions
        if layers is not None:
            wanted = f"a tuple of different layers from 0 to {self.n_layers - 1}, such as (0, 2), in rising order"
            whole = isinstance(layers, tuple) and all(type(index) is int for index in layers)
            if not whole or list(layers) != sorted({*layers} & {*range(self.n_layers)}):
                raise RunError(f"layers_with_positions is {shown(layers)}; it must be {wanted}")
        if self.positions_added not in POSITIONS_ADDED:
            places = ", ".join(POSITIONS_ADDED)
            raise RunError(f"positions_added is {shown(self.positions_added)}; choose among {places}")
        if self.drops_positions and self.further_steps is None:
            raise RunError("drops_positions needs further_steps, the training without positions; give a number")

    @property
    def sizes(self) -> dict[str, Any]:
        """What `posembed.scheme` is told of the model."""
        # A table has rows for every position that the model will be asked about, trained or not.
        longest = max(self.length, self.test_length or 0, (self.start or {}).get("length", 0))
        sizes = {name: getattr(self, name) for name in ("d_model", "n_heads", "n_layers")}
        return {**sizes, "n_positions": longest, "causal": self.objective == "causal"}

    @property
    def all_steps(self) -> int:
        """Of the optimizer, with the further ones."""
        return self.steps + (self.further_steps or 0)

    @property
    def read_length(self) -> int:
        """Of the pieces that are cut from a text: [CLS] takes one place."""
        return self.length - (self.cls is not None)

    @property
    def told(self) -> dict[str, Any]:
        """The settings that change numbers and are not the defaults; `from_dict` makes the config of them."""
        default = _defaults()
        return {
            name: value for name, value in self.to_dict().items() if name not in _NOT_HASHED and value != default[name]
        }

    @cached_property
    def key(self) -> str:
        """A short name that two configs share only if every number that matters is the same.

        Only what differs from the defaults enters, so a setting that is added later leaves stored results their names.
        """
        return hashlib.sha256(json.dumps(self.told, sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return what a JSON file holds."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Make the config that `to_dict` was called on, here or in an earlier version.

        Raises:
            RunError: no mapping; a setting of a newer version, or one that this version has no more and that was not
                left alone.
        """
        if not isinstance(values, Mapping):
            raise RunError(f"values are {shown(values)}; give a mapping, such as to_dict() returns")
        values = dict(values)
        for name, default in RETIRED.items():
            if (value := values.pop(name, default)) != default:
                raise RunError(f"{name} is {shown(value)}; posembed has no {name} any more, an earlier version does")
        unknown = sorted(set(values) - {each.name for each in fields(cls)})
        if unknown:
            raise RunError(f"this version of posembed has no setting {unknown[0]!r}; upgrade it")
        # JSON has lists alone.
        tuples = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        # Nothing is imported because a file says so.
        config = cls(**{**values, **tuples, "scheme_hash": ""})
        # What is stored keeps its key, whatever has become of its text.
        object.__setattr__(config, "text_hash", values.get("text_hash"))
        object.__setattr__(config, "scheme_hash", values.get("scheme_hash"))
        return config


def text_hash(data: Any) -> str | None:
    """The hash of a text file, by which a run knows its text again; None where there is no such file."""
    path = Path(data) if isinstance(data, str) and data != RunConfig.data else None
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path is not None and path.is_file() else None


SCALING_NAMES = ("linear", "ntk", "yarn", "llama3")
INSPECTION_NAMES = ("layers", "untrained", "watched", "prefix", "dropped", "positions", "depth", "patches")
# How many tokens before the last one the inspection "prefix" leaves in place, the second time.
KEPT = 8
# Settings that earlier versions had and wrote down, with the only value that a stored result has.
RETIRED = {
    "d_ff": None,
    "optimizer": "adamw",
    "betas": [0.9, 0.98],
    "largest_gradient": 1.0,
    "lowest_rate": 0.1,
    "precision": "float32",
    "compile": False,
    "tokens": "characters",
    "vocab_size": None,
    "accumulate": 1,
}


@cache
def _defaults() -> dict[str, Any]:
    return RunConfig().to_dict()


def _check(name: str, value: Any, holds: Callable[[Any], Any], wanted: str) -> None:
    if not holds(value):
        raise RunError(f"{name} is {shown(value)}; it must be {wanted}")


def _check_names(name: str, one: str, given: Any, known: tuple[str, ...]) -> None:
    if not isinstance(given, tuple):
        raise RunError(f"{name} are {shown(given)}; they must be a tuple of names")
    unknown = [each for each in given if each not in known]
    if unknown:
        raise RunError(f"there is no {one} {unknown[0]!r}; choose among {', '.join(known)}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(value < float("inf"))


# Larger ones are slips of the hand.
LARGEST = 10**12

# Settings that are numbers, what must hold for them, and how that is said.
NUMBERS: tuple[tuple[str, Callable[[Any], Any], str], ...] = (
    (
        "length n_layers d_model n_heads batch_size steps threads short_length test_length further_steps subwords",
        lambda value: _whole(value) and value >= 1,
        "a whole number of at least 1",
    ),
    ("warmup seed", lambda value: _whole(value) and value >= 0, "a whole number of at least 0"),
    ("learning_rate weight_std", lambda value: _number(value) and value > 0, "a positive number"),
    ("weight_decay", lambda value: _number(value) and value >= 0, "a number of at least 0"),
    ("dropout", lambda value: _number(value) and 0 <= value < 1, "a number of at least 0 and below 1"),
    (
        "masking_rate short_share guessed_share",
        lambda value: _number(value) and 0 < value < 1,
        "a number between 0 and 1",
    ),
    ("scale_embeddings drops_positions", lambda value: type(value) is bool, "True or False"),
)
