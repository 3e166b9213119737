"""What a run is: a frozen set of settings that determines its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ..encodings import scheme
from ..encodings.registry import source_hash
from ..errors import RunError, shown
from ..public import Count, NotNegative, Positive, Seed, Share, Whole, check_fields, public


@dataclass(frozen=True)
class RunConfig:
    """One training run. With the same config on the same machine it gives the same numbers.

    Attributes:
        scheme: a name for `posembed.scheme`, or of one's own the import path of its class, "module:Class".
        scheme_options: more arguments for the schemes, by their names.
        objective: "causal", the next token, or "masked", the hidden ones, with a model that sees both sides; "task" is
            that of studies.
        masking_rate: the share of hidden tokens, where the objective is "masked".
        data: the text: "sotu", or the path of a text file (see `posembed.data.load_corpus`).
        length: of the training pieces, in tokens.
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
        weight_std: the standard deviation of the weights at the start: those of linear layers, and word vectors that
            are not scaled. None for 1 / sqrt(d_model), which a learned table then has too: start B of the book, in
            which narrow models learn best.
        text_hash: of the file that `data` names, taken when the config is made, so that a changed text is another run.
            None where there is no such file.
        scheme_hash: the same for the file of a scheme of one's own. What that file imports is not seen.
        study: more settings, that only the code of a study understands (the folder `studies` of the repository).

    Raises:
        RunError: a setting of another kind or out of its range; what cannot be stored as JSON.
        EncodingInputError: a scheme that cannot be made for the model, or one of one's own that cannot be imported.

    Example:
        >>> from posembed import RunConfig
        >>> RunConfig(scheme="rope", seed=1).key == RunConfig(scheme="rope", seed=1, preset="smoke").key
        True
    """

    scheme: str = "nopos"
    scheme_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    objective: Literal["causal", "masked", "task"] = "causal"
    masking_rate: Share | None = None
    data: str = "sotu"
    length: Count = 64
    n_layers: Count = 4
    d_model: Count = 64
    n_heads: Count = 4
    scale_embeddings: bool = False
    batch_size: Count = 32
    steps: Count = 2000
    learning_rate: Positive = 1e-2
    warmup: Whole = 100
    weight_decay: NotNegative = 0.1
    seed: Seed = 0
    test_length: Count | None = None
    test_scalings: tuple[str, ...] = ()
    threads: Count = 1
    device: str = "cpu"
    preset: str = ""
    dropout: Share = 0.0
    layers_with_positions: tuple[int, ...] | None = None
    weight_std: Positive | None = None
    text_hash: str | None = None
    scheme_hash: str | None = None
    study: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # As a loop over numpy's numbers gives them.
        for name, value in vars(self).items():
            object.__setattr__(self, name, value.item() if isinstance(value, np.generic) else value)
        self._check_storable()
        check_fields(self, RunError)
        said = {
            name: value for name, value in self.study.items() if name not in OF_STUDIES or value != OF_STUDIES[name]
        }
        object.__setattr__(self, "study", said)
        is_new = self.scheme_hash is None
        if is_new:
            object.__setattr__(self, "scheme_hash", source_hash(self.scheme))
        if self.text_hash is None:
            object.__setattr__(self, "text_hash", text_hash(self.data))
        if (self.objective == "masked") != (self.masking_rate is not None):
            raise RunError(
                f"masking_rate is {shown(self.masking_rate)} with the objective {shown(self.objective)}; "
                "a masked model needs one, a causal model has none"
            )
        if self.objective == "causal" and self.length < 2:
            raise RunError("length is 1; a causal model guesses one token from one at least, so give 2 or more")
        if unknown := [each for each in self.test_scalings if each not in SCALING_NAMES]:
            raise RunError(f"there is no scaling {shown(unknown[0])}; choose among {', '.join(SCALING_NAMES)}")
        if self.test_scalings and (self.scheme != "rope" or self.test_length is None):
            raise RunError("test_scalings need scheme='rope' and a test_length; leave them out otherwise")
        layers = self.layers_with_positions
        if layers is not None and list(layers) != sorted({*layers} & {*range(self.n_layers)}):
            wanted = f"different layers from 0 to {self.n_layers - 1}, such as (0, 2), in rising order"
            raise RunError(f"layers_with_positions is {shown(layers)}; it must be a tuple of {wanted}")
        if is_new:
            # What is wrong with it is best said now; what it draws belongs to nobody.
            with torch.random.fork_rng(devices=[]):
                scheme(self.scheme, **self.sizes, options=self.options)

    def _check_storable(self) -> None:
        """Refuse what a file cannot hold; mappings become what will be read back."""
        if not isinstance(self.scheme, str):
            kind = self.scheme if isinstance(self.scheme, type) else type(self.scheme)
            module = "mine" if kind.__module__ == "__main__" else kind.__module__
            raise RunError(
                f"scheme is an object, {kind.__name__}, which cannot be stored; give a name of posembed.schemes(), or "
                f"write the class into a file and give its import path, scheme='{module}:{kind.__qualname__}'"
            )
        for name in ("scheme_options", "study"):
            object.__setattr__(self, name, json.loads(json.dumps(getattr(self, name))))

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def sizes(self) -> dict[str, Any]:
        """What `posembed.scheme` is told of the model."""
        sizes = {name: getattr(self, name) for name in ("d_model", "n_heads", "n_layers")}
        # A table has rows for every position that the model will be asked about, trained or not.
        longest = max(self.length, self.test_length or 0)
        return {**sizes, "n_positions": longest, "causal": self.objective == "causal"}

    @property
    def start_std(self) -> float:
        """The standard deviation of the weights at the start."""
        return self.d_model**-0.5 if self.weight_std is None else self.weight_std

    @property
    def options(self) -> dict[str, Any]:
        """What `posembed.scheme` is told of the schemes: `scheme_options`, and the deviation of a learned table."""
        told = {name: dict(options) for name, options in self.scheme_options.items()}
        if self.weight_std is None and "learned" in self.scheme.split("+"):
            told["learned"] = {"std": self.start_std, **told.get("learned", {})}
        return told

    @property
    def told(self) -> dict[str, Any]:
        """The settings that change numbers and are not the first defaults; `from_dict` makes the config of them."""
        default, settings = _defaults(), self.to_dict()
        more = settings.pop("study")
        differ = {name: value for name, value in settings.items() if value != default[name]}
        return {name: value for name, value in {**differ, **more}.items() if name != "preset"}

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
    @public(RunError)
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Make the config that `to_dict` was called on, here or in an earlier version, whose defaults were others.

        Raises:
            RunError: a setting of a newer version, or one that this version has no more and that was not
                left alone.
        """
        values = {**FIRST_DEFAULTS, **values}
        for name, default in RETIRED.items():
            if (value := values.pop(name, default)) != default:
                raise RunError(f"{name} is {shown(value)}; posembed has no {name} any more, an earlier version does")
        # Those of a study stood beside the others once.
        more = {name: values.pop(name) for name in OF_STUDIES if name in values}
        values["study"] = {**more, **values.get("study", {})}
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


def text_hash(data: str) -> str | None:
    """The hash of a text file, by which a run knows its text again; None where there is no such file."""
    path = None if data == RunConfig.data else Path(data)
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path is not None and path.is_file() else None


SCALING_NAMES = ("linear", "ntk", "yarn", "llama3")
# Settings of studies that stored results have beside the others, with the value that says nothing. A run whose study
# leaves one alone is the run that it was before there was such a setting, and keeps its key.
OF_STUDIES: dict[str, Any] = {
    "short_length": None,
    "short_share": None,
    "guessed_share": None,
    "further_steps": None,
    "drops_positions": False,
    "inspections": [],
    "task": None,
    "difficulty": None,
    "subwords": None,
    "start": None,
    "cls": None,
    "dose": None,
    "positions_added": "input",
}
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


# Defaults that were others when the first results were stored; their keys, and what their files leave out, go by these.
FIRST_DEFAULTS: dict[str, Any] = {"scale_embeddings": True, "learning_rate": 3e-3, "weight_std": 0.02}


@cache
def _defaults() -> dict[str, Any]:
    return {**RunConfig().to_dict(), **FIRST_DEFAULTS}
