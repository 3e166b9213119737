"""What a run is: a frozen set of numbers that determines its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from ..errors import RunError

# What may change without changing any number of a result.
_NOT_HASHED = ("preset",)


@dataclass(frozen=True)
class RunConfig:
    """One training run. With the same config on the same machine it gives the same numbers.

    Attributes:
        scheme: a name for `posembed.scheme`.
        scheme_options: more arguments for the schemes, by their names.
        objective: "causal", the next token; or "masked", the hidden ones, with a model that sees both sides.
        masking_rate: the share of hidden tokens, where the objective is "masked".
        data: the text, by a name that `posembed.data.load_corpus` reads: "sotu", "wikitext-103", a path, a dataset.
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
        steps: of the optimizer.
        learning_rate: the highest, after the warm-up; it falls as a cosine, to a tenth or the lowest rate.
        warmup: steps in which it rises from zero.
        weight_decay: of matrices in linear layers.
        seed: of the weights and the batches.
        test_length: the loss is also measured at each position of longer pieces, up to this one; None for not.
        test_scalings: scalings of RoPE to be tried at that length, without any training: "linear", "ntk", "yarn",
            "llama3".
        threads: of torch. The sum of many numbers depends on how it is split, so it belongs to the config.
        device: where the run takes place.
        preset: a name for a set of runs; it is stored and changes nothing.
        d_ff: the width between the two layers of the feed-forward network; None for four times d_model.
        dropout: of the embeddings, the attention weights and each part's output, in training.
        optimizer: "adamw"; or "nag", gradient descent with Nesterov's momentum.
        betas: of AdamW; "nag" takes the first one for its momentum.
        largest_gradient: the norm that a step's gradient is cut to.
        lowest_rate: where the cosine ends, as a share of the learning rate.
        precision: "float32"; or "bfloat16", in which a training step multiplies its matrices (autocast). Weights, the
            optimizer and everything measured stay float32.
        compile: whether torch.compile makes one program of the training step, which pays on a GPU.
        tokens: what the text is made of: "characters", or "bpe", byte pairs that are trained on it.
        vocab_size: the number of byte pairs; None for 4096.
        accumulate: in how many parts a step's pieces are taken, one after the other; their gradients are added. Memory
            falls with it; the result stays the same but for rounding (and for dropout).
        layers_with_positions: the layers, counted from 0, whose attention uses the scheme; the others see no positions,
            as in models that interleave both kinds. None for all.
        further_steps: of the optimizer, after the others; the learning rate rises and falls anew. None for none.
        drops_positions: whether the model loses its positions before the further steps, and has none from then on.
        weight_std: the standard deviation of the weights at the start: those of linear layers, and word vectors that
            are not scaled.
        inspections: what else is measured after the training, by names of `posembed.experiments.training.inspections`.

    Raises:
        RunError: a number out of its range, an unknown objective or scaling.

    Example:
        >>> from posembed import RunConfig
        >>> RunConfig(scheme="rope", seed=1).key == RunConfig(scheme="rope", seed=1, preset="smoke").key
        True
    """

    scheme: str = "nopos"
    scheme_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    objective: Literal["causal", "masked"] = "causal"
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
    d_ff: int | None = None
    dropout: float = 0.0
    optimizer: Literal["adamw", "nag"] = "adamw"
    betas: tuple[float, float] = (0.9, 0.98)
    largest_gradient: float = 1.0
    lowest_rate: float = 0.1
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    tokens: Literal["characters", "bpe"] = "characters"
    vocab_size: int | None = None
    accumulate: int = 1
    layers_with_positions: tuple[int, ...] | None = None
    further_steps: int | None = None
    drops_positions: bool = False
    weight_std: float = 0.02
    inspections: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole = ("length", "n_layers", "d_model", "n_heads", "batch_size", "steps", "threads", "accumulate")
        given = tuple(
            name for name in ("test_length", "d_ff", "vocab_size", "further_steps") if getattr(self, name) is not None
        )
        for name in (*whole, *given):
            _check(name, getattr(self, name), int, "a whole number of at least 1", lambda value: value >= 1)
        for name in ("warmup", "seed"):
            _check(name, getattr(self, name), int, "a whole number of at least 0", lambda value: value >= 0)
        positive = "a positive number"
        _check("learning_rate", self.learning_rate, int | float, positive, lambda value: 0 < value < float("inf"))
        _check("weight_decay", self.weight_decay, int | float, "a number of at least 0", lambda value: value >= 0)
        _check("weight_std", self.weight_std, int | float, positive, lambda value: 0 < value < float("inf"))
        self._check_text()
        self._check_objective()
        self._check_short()
        self._check_optimizer()
        self._check_speed()
        self._check_positions()
        _check_names("test_scalings", "scaling", self.test_scalings, SCALING_NAMES)
        _check_names("inspections", "inspection", self.inspections, INSPECTION_NAMES)
        if "prefix" in self.inspections and (self.objective != "causal" or self.length < 3 + KEPT):
            raise RunError(
                f"the inspection 'prefix' is of causal models with a length of at least {3 + KEPT}; leave it out"
            )
        if self.test_scalings and (self.scheme != "rope" or self.test_length is None):
            raise RunError("test_scalings need scheme='rope' and a test_length; leave them out otherwise")

    def _check_text(self) -> None:
        if self.length < 2 and self.objective == "causal":
            raise RunError("length is 1; a causal model needs at least 2 characters, one to guess from one")
        if self.tokens not in TOKENS:
            raise RunError(f"tokens is {self.tokens!r}; choose among {', '.join(TOKENS)}")
        if self.vocab_size is not None and self.tokens != "bpe":
            raise RunError("vocab_size is for tokens='bpe'; characters are as many as the text has")

    def _check_objective(self) -> None:
        if self.objective not in ("causal", "masked"):
            raise RunError(f"objective is {self.objective!r}; choose among causal, masked")
        if (self.objective == "masked") != (self.masking_rate is not None):
            raise RunError(
                f"masking_rate is {self.masking_rate!r} with the objective {self.objective!r}; "
                "a masked model needs one, a causal model has none"
            )
        if self.guessed_share is not None and self.objective != "causal":
            raise RunError("guessed_share is for causal models; a masked one has its masking_rate")
        for name in ("masking_rate", "guessed_share"):
            _check_share(name, getattr(self, name))

    def _check_short(self) -> None:
        if (self.short_length is None) != (self.short_share is None):
            raise RunError("short_length and short_share belong together; give both or none")
        _check_share("short_share", self.short_share)
        if self.short_length is None:
            return
        least = 2 if self.objective == "causal" else 1
        wanted = f"a whole number from {least} to below the length, {self.length}, that divides it"
        _check("short_length", self.short_length, int, wanted, lambda value: least <= value < self.length)
        if self.length % self.short_length:
            raise RunError(f"short_length is {self.short_length}; it must be {wanted}")

    def _check_optimizer(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise RunError(f"optimizer is {self.optimizer!r}; choose among {', '.join(OPTIMIZERS)}")
        if not isinstance(self.betas, tuple) or len(self.betas) != 2:
            raise RunError(f"betas are {self.betas!r}; they must be two numbers, such as (0.9, 0.98)")
        below_one = "a number of at least 0 and below 1"
        for name, value in (("dropout", self.dropout), *(("each of betas", beta) for beta in self.betas)):
            _check(name, value, int | float, below_one, lambda each: 0 <= each < 1)
        positive, up_to_one = "a positive number", "a number of at least 0 and at most 1"
        _check("largest_gradient", self.largest_gradient, int | float, positive, lambda norm: 0 < norm < float("inf"))
        _check("lowest_rate", self.lowest_rate, int | float, up_to_one, lambda share: 0 <= share <= 1)

    def _check_speed(self) -> None:
        if self.precision not in PRECISIONS:
            raise RunError(f"precision is {self.precision!r}; choose among {', '.join(PRECISIONS)}")
        if not isinstance(self.compile, bool):
            raise RunError(f"compile is {self.compile!r}; it must be True or False")
        if self.batch_size % self.accumulate:
            raise RunError(f"accumulate is {self.accumulate}; it must divide the batch_size, {self.batch_size}")

    def _check_positions(self) -> None:
        layers = self.layers_with_positions
        if layers is not None:
            wanted = f"a tuple of different layers from 0 to {self.n_layers - 1}, such as (0, 2), in rising order"
            whole = isinstance(layers, tuple) and all(type(index) is int for index in layers)
            if not whole or list(layers) != sorted({*layers} & {*range(self.n_layers)}):
                raise RunError(f"layers_with_positions is {layers!r}; it must be {wanted}")
        if not isinstance(self.drops_positions, bool):
            raise RunError(f"drops_positions is {self.drops_positions!r}; it must be True or False")
        if self.drops_positions and self.further_steps is None:
            raise RunError("drops_positions needs further_steps, the training without positions; give a number")

    @property
    def all_steps(self) -> int:
        """Of the optimizer, with the further ones."""
        return self.steps + (self.further_steps or 0)

    @property
    def key(self) -> str:
        """A short name that two configs share only if every number that matters is the same.

        Only what differs from the defaults enters, so a setting that is added later leaves stored results their names.
        """
        default = RunConfig().to_dict()
        told = {
            name: value for name, value in self.to_dict().items() if name not in _NOT_HASHED and value != default[name]
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return what a JSON file holds."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Make the config that `to_dict` was called on."""
        unknown = sorted(set(values) - {each.name for each in fields(cls)})
        if unknown:
            raise RunError(f"this version of posembed has no setting {unknown[0]!r}; upgrade it")
        # JSON has lists alone.
        tuples = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **tuples})


SCALING_NAMES = ("linear", "ntk", "yarn", "llama3")
INSPECTION_NAMES = ("layers", "untrained", "watched", "prefix", "dropped")
# How many tokens before the last one the inspection "prefix" leaves in place, the second time.
KEPT = 8
TOKENS = ("characters", "bpe")
OPTIMIZERS = ("adamw", "nag")
PRECISIONS = ("float32", "bfloat16")


def _check_names(name: str, one: str, given: Any, known: tuple[str, ...]) -> None:
    if not isinstance(given, tuple):
        raise RunError(f"{name} are {given!r}; they must be a tuple of names")
    unknown = [each for each in given if each not in known]
    if unknown:
        raise RunError(f"there is no {one} {unknown[0]!r}; choose among {', '.join(known)}")


def _check_share(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1):
        raise RunError(f"{name} is {value!r}; it must lie between 0 and 1")


def _check(name: str, value: Any, kind: Any, wanted: str, holds: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
        raise RunError(f"{name} is {value!r}; it must be {wanted}")
