"""Train one model as a config says, measure it, and give a result that can be stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ...data import Corpus
from ...encodings import OnLayers, scheme
from ...models import LanguageModel, TransformerConfig
from ..config import RunConfig
from ..files.checkpoints import Checkpoint
from ..result import RunResult
from .batches import batch_loss
from .inspections import inspect_model, probed_layers, steps_watched
from .loop import Training
from .machine import check_device, machine_of, seeded, torch_threads, versions
from .measure import loss_by_position, loss_of, parameters_of_scheme, scaled_losses
from .optimizer import learning_rate_factor
from .speed import speed_of, tokens_of
from .team import ALONE, Team
from .text import corpus_of

__all__ = ["RunResult", "batch_loss", "learning_rate_factor", "make_model", "torch_threads", "train"]

# The training loss is noted as the mean over so many pieces of the run.
CURVE_POINTS = 40


def train(
    config: RunConfig,
    *,
    progress: Callable[[int, float], None] | None = None,
    checkpoint: Checkpoint | Path | str | None = None,
    team: Team = ALONE,
) -> RunResult:
    """Train a language model and measure it on texts that it has not seen.

    AdamW with a warm-up and a cosine; gradients are cut to a largest norm.

    Args:
        config: the run.
        progress: called after every step with the number of steps done and the loss.
        checkpoint: a `Checkpoint`, or the path of one that is written every five minutes. If the file is there, the
            run goes on from it, with the same numbers as if it had never been stopped.
        team: the processes that share the run, where torchrun has started several (see
            `posembed.experiments.training.ddp`).

    Returns:
        The result with the trained model. Its metrics are ``loss`` (test text, pieces of the trained length),
        ``validation_loss``, ``curve`` (training loss over the run), ``parameters`` and ``scheme_parameters`` (how
        many), ``scheme`` (the scheme's own numbers where they are few), ``tokens`` (read in training); of a causal
        model ``perplexity_per_token`` and ``perplexity_per_word`` (of the test text); with a test length
        ``loss_by_position``. Its speed is in ``speed``.

    Raises:
        RunError: a device that is not there.
        RunError: the loss became NaN or infinite.
        CheckpointError: a checkpoint that is damaged, of a newer format or of another run; it is left as it is.
        CorpusError: a text that cannot be read or is too short.
        EncodingInputError: a scheme that is not defined for the objective.

    Example:
        >>> from posembed import RunConfig, train
        >>> result = train(RunConfig(scheme="alibi", n_layers=1, d_model=8, n_heads=2, steps=3, batch_size=2))
        >>> result.metrics["parameters"]
        1552
    """
    start = time.perf_counter()
    check_device(config)
    kept = Checkpoint(Path(checkpoint)) if isinstance(checkpoint, str | Path) else checkpoint
    with torch_threads(config.threads), seeded(config, team.rank):
        corpus = corpus_of(config)
        training = Training(make_model(config, corpus), config, corpus, team)
        earlier = training.seconds if kept is not None and kept.resume(training) else 0.0
        watched = steps_watched(config)
        training.run(lambda: _after_step(training, watched, kept, progress))
        metrics = _measure(training.model.eval(), config, corpus)
        metrics |= inspect_model(training.model, lambda: make_model(config, corpus), config, corpus)
        if watched:
            metrics["watched"] = training.watched
    return RunResult(
        config=config,
        metrics=metrics | {"tokens": tokens_of(config), "curve": _means(training.losses, CURVE_POINTS)},
        versions=versions(),
        machine=machine_of(config) + (f", {team.size} processes" if team.size > 1 else ""),
        wall_seconds=time.perf_counter() - start + earlier,
        model=training.model,
        speed=speed_of(config, len(corpus.vocabulary), training.seconds, machine_of(config), team.size),
    )


def _after_step(training: Training, watched: tuple[int, ...], kept: Checkpoint | None, progress: Any) -> None:
    if len(training.losses) in watched:
        training.watched[str(len(training.losses))] = probed_layers(training.model, training.config, training.corpus)
    if kept is not None:
        kept.keep(training)
    if progress:
        progress(len(training.losses), training.losses[-1])


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
                d_ff=config.d_ff,
                scheme=_scheme(config),
                scheme_options=config.scheme_options if config.layers_with_positions is None else {},
                n_positions=_n_positions(config),
                causal=config.objective == "causal",
                dropout=config.dropout,
                scale_embeddings=config.scale_embeddings,
                weight_std=config.weight_std,
            )
        ).to(config.device)


def _scheme(config: RunConfig) -> str | OnLayers:
    """The scheme, or its name where all layers have it."""
    if config.layers_with_positions is None:
        return config.scheme
    made = scheme(
        config.scheme,
        d_model=config.d_model,
        n_heads=config.n_heads,
        n_layers=config.n_layers,
        n_positions=_n_positions(config),
        causal=config.objective == "causal",
        options=config.scheme_options,
    )
    return OnLayers(made, config.layers_with_positions, n_layers=config.n_layers)


def _n_positions(config: RunConfig) -> int:
    """A table has rows for every position that the model will be asked about, trained or not."""
    return max(config.length, config.test_length or 0)


def _measure(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, Any]:
    scheme_module = model.transformer.position_scheme
    metrics: dict[str, Any] = {
        "loss": loss_of(model, corpus.test, config),
        "validation_loss": loss_of(model, corpus.validation, config),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "scheme_parameters": sum(parameter.numel() for parameter in scheme_module.parameters()),
        "scheme": parameters_of_scheme(scheme_module),
    }
    if config.objective == "causal":
        found = corpus.perplexities(metrics["loss"])
        metrics |= {"perplexity_per_token": round(found.per_token, 4), "perplexity_per_word": round(found.per_word, 2)}
    if config.test_length is not None:
        metrics["loss_by_position"] = loss_by_position(model, corpus.test, config)
        if config.test_scalings:
            metrics["loss_by_position_scaled"] = scaled_losses(model, corpus.test, config)
    return metrics


def _means(values: list[float], n_points: int) -> list[float]:
    pieces = torch.tensor(values).tensor_split(min(n_points, len(values)))
    return [round(float(piece.mean()), 4) for piece in pieces]
