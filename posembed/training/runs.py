"""Train one model as a config says, measure it, and give a result that can be stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data import Corpus, load_corpus, random_windows
from ..encodings import OnLayers, scheme
from ..encodings.registry import source_hash
from ..errors import RunError
from ..inference import torch_threads
from ..models import LanguageModel, TransformerConfig
from ..public import public
from .checkpoints import kept
from .config import RunConfig, text_hash
from .loop import Training
from .machine import check_device, machine_of, seeded, versions
from .measure import measure
from .objectives import OBJECTIVES, Objective
from .results import RunResult

# The training loss is noted as the mean over so many pieces of the run.
CURVE_POINTS = 40
# Settings of studies that leave the model at the start as it is without them.
OF_TRAINING_ALONE = {"short_length", "short_share", "guessed_share", "further_steps", "inspections"}


@public(RunError)
def train(
    config: RunConfig,
    *,
    progress: Callable[[int, float], Any] | None = None,
    checkpoint: Path | str | None = None,
) -> RunResult:
    """Train a small model on one device, on a text, and measure it on texts that it has not seen.

    Args:
        config: the run.
        progress: called after every step with the number of steps done and the loss.
        checkpoint: the path of a file that the state is written to every minute, and when the run is interrupted
            (Ctrl-C, SIGTERM, SIGHUP). If the file is there, the run goes on from it, with the same numbers as if it had
            never been stopped, bit for bit (on a GPU as far as its kernels do). By default it is written where the run
            is interrupted alone, to KEY.checkpoint in the current folder, and removed when the run is done.

    Returns:
        The result with the trained model. Its metrics are ``loss`` (of 131,072 tokens in pieces of the trained length,
        spread evenly over the test text, or of all where they are fewer), ``validation_loss`` (alike), ``curve``
        (training loss over the run), ``parameters`` and ``scheme_parameters`` (how many), ``scheme`` (the scheme's own
        numbers where they are few), ``tokens`` (read in training); of a causal model ``perplexity_per_token`` and
        ``perplexity_per_word`` (of the test text); with a test length ``loss_by_position``. Its speed is in ``speed``.

    Raises:
        RunError: no RunConfig, or one with settings of a study; a device that is not there.
        RunError: the loss became NaN or infinite.
        CheckpointError: a checkpoint that is damaged, of another version or of another run; it is left as it is.
        KeyboardInterrupt: Ctrl-C, after the step under way; its note says where the state is and how to go on.
        CorpusError: a text that cannot be read or is too short.
        EncodingInputError: a scheme that is not defined for the objective.

    Example:
        >>> from posembed import RunConfig, train
        >>> result = train(RunConfig(scheme="alibi", n_layers=1, d_model=8, n_heads=2, steps=3, batch_size=2))
        >>> result.metrics["parameters"]
        1552
    """
    refuse_study(config, config.study)
    check_device(config)
    began = time.perf_counter()
    with torch_threads(config.threads), seeded(config):
        corpus, objective, training = prepared(config)
        with kept(training, checkpoint, progress) as after_step:
            training.run(after_step)
            metrics = measure(training.model.eval(), corpus, objective, config)
    return result_of(training, metrics, time.perf_counter() - began)


def prepared(config: RunConfig) -> tuple[Corpus, Objective, Training]:
    """The text of a run, what is guessed of it, and the training, of which no step is taken yet."""
    corpus = load_text(config)
    objective = OBJECTIVES[config.objective](config)
    model = make_model(config, corpus)

    def draw_loss(generator: torch.Generator) -> Tensor:
        pieces = random_windows(corpus.train, config.length, config.batch_size, generator)
        return objective.loss(model, pieces, generator)

    return corpus, objective, Training(model, draw_loss, config)


def result_of(training: Training, metrics: dict[str, Any], seconds: float) -> RunResult:
    """The result of a run that is trained and measured, which took so long in this process."""
    config, n_tokens = training.config, training.n_steps * training.config.batch_size * training.config.length
    speed = {
        "tokens_per_second": round(n_tokens / max(training.seconds, 1e-9), 1),
        "training_seconds": round(training.seconds, 2),
    }
    return RunResult(
        config=config,
        metrics=metrics | {"tokens": n_tokens, "curve": _means(training.losses, CURVE_POINTS)},
        versions=versions(),
        machine=machine_of(config),
        wall_seconds=seconds + training.seconds_before,
        model=training.model,
        speed=speed,
    )


def _means(values: list[float], n_points: int) -> list[float]:
    pieces = torch.tensor(values).tensor_split(min(n_points, len(values)))
    return [round(float(piece.mean()), 4) for piece in pieces]


def refuse_study(config: RunConfig, names: Any) -> None:
    """Refuse settings that the package does not understand, which would be left out in silence."""
    if names or config.objective not in OBJECTIVES:
        said = ", ".join(sorted(names)) or f"the objective {config.objective!r}"
        raise RunError(f"{said}: settings of a study; in the repository, make study NAME=... runs it")


def load_text(config: RunConfig) -> Corpus:
    """Load the text that a run is trained on.

    Raises:
        CorpusError: a text that cannot be read or is too short.
        RunError: a text that has changed since the config was made, or is gone.
    """
    check_text(config)
    corpus = load_corpus(config.data)
    # Before the training, not after it.
    corpus.check(max(config.length, config.test_length or 0))
    return corpus


def check_text(config: RunConfig) -> None:
    """Refuse a text that is not the one that the config was made for."""
    if config.text_hash not in (None, text_hash(config.data)):
        name = Path(config.data).name
        raise RunError(f"{name} is not the text that the config was made for; put it back, or make the config anew")


@public(RunError)
def make_model(config: RunConfig, corpus: Corpus) -> LanguageModel:
    """Make the untrained model of a run.

    Args:
        config: the run.
        corpus: its text, whose vocabulary the model has.

    Raises:
        EncodingInputError: a scheme that is not defined for the objective.
        RunError: what is no corpus; settings of a study that make another model; a scheme of one's own that has changed
            since the config was made.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.data import load_corpus
        >>> from posembed.training import make_model
        >>> make_model(RunConfig(scheme="rope"), load_corpus()).transformer.position_scheme
        RoPE(d_head=16, base=10000.0, layout='half')
    """
    refuse_study(config, set(config.study) - OF_TRAINING_ALONE)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return LanguageModel(transformer_config(config, corpus.vocab_size)).to(config.device)


def transformer_config(config: RunConfig, vocab_size: int) -> TransformerConfig:
    """The sizes and the scheme of a run's model; a scheme that some layers use draws its numbers here."""
    if config.scheme_hash != source_hash(config.scheme):
        raise RunError(f"{config.scheme} is not the code that the config was made for; make the config anew")
    its_scheme: Any = config.scheme
    if config.layers_with_positions is not None:
        everywhere = scheme(config.scheme, **config.sizes, options=config.options)
        its_scheme = OnLayers(everywhere, config.layers_with_positions, n_layers=config.n_layers)
    return TransformerConfig(
        vocab_size=vocab_size,
        **config.sizes,
        scheme=its_scheme,
        scheme_options=config.options if isinstance(its_scheme, str) else {},
        dropout=config.dropout,
        scale_embeddings=config.scale_embeddings,
        weight_std=config.start_std,
    )
