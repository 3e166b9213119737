"""Train one model as a config says, measure it, and give a result that can be stored."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..checks import check_kind, checked_path
from ..data import Corpus, Task, load_corpus
from ..encodings import FrozenBias, OnLayers, PerLayer, PositionScheme, Untied, scheme
from ..encodings.import_path import source_hash
from ..errors import RunError, shown
from ..inference import torch_threads
from ..models import LanguageModel, TransformerConfig
from ..similarity import perturbed_bias
from .checkpoints import kept
from .config import RunConfig, text_hash
from .inspections import inspect_model, probed_layers, steps_watched
from .loop import Training
from .machine import check_device, machine_of, seeded, versions
from .measure import loss_by_position, loss_of, parameters_of_scheme, scaled_losses
from .patches import patch_measures
from .results import RunResult
from .tasks import load_task, measure_task, task_model

# The training loss is noted as the mean over so many pieces of the run.
CURVE_POINTS = 40

OF_A_CHECKPOINT = "the path of a file, such as 'run.checkpoint'"


def train(
    config: RunConfig,
    *,
    progress: Callable[[int, float], None] | None = None,
    checkpoint: Path | str | None = None,
    start: Any = None,
) -> RunResult:
    """Train a small model on one device, on a text or on a task, and measure it on texts that it has not seen.

    AdamW with a warm-up and a cosine; gradients are cut to a norm of 1.

    Args:
        config: the run.
        progress: called after every step with the number of steps done and the loss.
        checkpoint: the path of a file that the state is written to every minute, and when the run is interrupted
            (Ctrl-C, SIGTERM, SIGHUP). If the file is there, the run goes on from it, with the same numbers as if it had
            never been stopped, bit for bit (on a GPU as far as its kernels do). By default it is written where the run
            is interrupted alone, to KEY.checkpoint in the current folder, and removed when the run is done.
        start: the model whose Transformer a task's begins with, where the config names its run.

    Returns:
        The result with the trained model. Its metrics are ``loss`` (test text, pieces of the trained length),
        ``validation_loss``, ``curve`` (training loss over the run), ``parameters`` and ``scheme_parameters`` (how
        many), ``scheme`` (the scheme's own numbers where they are few), ``tokens`` (read in training); of a causal
        model ``perplexity_per_token`` and ``perplexity_per_word`` (of the test text); with a test length
        ``loss_by_position``. With a task ``accuracy``, ``validation_accuracy`` and ``baseline``, the accuracy of a
        constant guess, and what its inspections find. Its speed is in ``speed``.

    Raises:
        RunError: no RunConfig; a progress that cannot be called, a checkpoint that is no path of a file.
        RunError: a device that is not there; a start that is missing, or that the config does not name.
        RunError: the loss became NaN or infinite.
        CheckpointError: a checkpoint that is damaged, of another version or of another run; it is left as it is.
        KeyboardInterrupt: Ctrl-C, after the step under way; its note says where the state is and how to go on.
        CorpusError: a text that cannot be read or is too short.
        EncodingInputError: a scheme that is not defined for the objective.
        TaskError: an unknown task, or a difficulty that it cannot have.
        PropertiesInputError: a dose that its property does not allow.

    Example:
        >>> from posembed import RunConfig, train
        >>> result = train(RunConfig(scheme="alibi", n_layers=1, d_model=8, n_heads=2, steps=3, batch_size=2))
        >>> result.metrics["parameters"]
        1552
    """
    if not isinstance(config, RunConfig):
        raise RunError(f"config is a {type(config).__name__}; give a RunConfig, such as RunConfig(scheme='rope')")
    check_progress(progress, "the number of steps and the loss")
    path = _checkpoint_path(checkpoint)
    began = time.perf_counter()
    check_device(config)
    if (start is None) != (config.start is None):
        raise RunError("start is a model and the config's start says which; give both, or run it with its run's grid")
    with torch_threads(config.threads), seeded(config):
        corpus = load_data(config)
        training = Training(make_model(config, corpus), config, corpus)
        if start is not None:
            training.model.transformer.load_state_dict(start.transformer.state_dict())
        with kept(training, path, lambda: _watch(training)) as keep:
            earlier = training.seconds
            training.run(lambda: _after_step(training, keep, progress))
            metrics = _measure(training.model.eval(), config, corpus)
    if training.watched:
        metrics["watched"] = training.watched
    n_tokens, seconds = config.all_steps * config.batch_size * config.length, training.seconds
    return RunResult(
        config=config,
        metrics=metrics | {"tokens": n_tokens, "curve": _means(training.losses, CURVE_POINTS)},
        versions=versions(),
        machine=machine_of(config),
        wall_seconds=time.perf_counter() - began + earlier,
        model=training.model,
        speed={"tokens_per_second": round(n_tokens / max(seconds, 1e-9), 1), "training_seconds": round(seconds, 2)},
    )


def check_progress(progress: Any, told: str) -> None:
    """Raise RunError unless it can be called with two things, or is None: before a run, and not after it."""
    try:
        if progress is not None:
            inspect.signature(progress).bind(None, None)
    except ValueError:  # some functions written in C do not tell what they take
        pass
    except TypeError:
        raise RunError(f"progress is {shown(progress)}; give a function of {told}, or None") from None


def _checkpoint_path(checkpoint: Any) -> Path | None:
    if checkpoint is None:
        return None
    path = checked_path(checkpoint, OF_A_CHECKPOINT, RunError)
    if path.is_dir():
        raise RunError(f"checkpoint is {shown(checkpoint)}; give {OF_A_CHECKPOINT}")
    return path


def _after_step(training: Training, keep: Callable[[], None], progress: Any) -> None:
    keep()
    if progress:
        progress(len(training.losses), training.losses[-1])


def _watch(training: Training) -> None:
    done = len(training.losses)
    if done in steps_watched(training.config) and str(done) not in training.watched:
        training.watched[str(done)] = probed_layers(training.model, training.config, training.corpus)


def load_data(config: RunConfig) -> Any:
    """Load the text that a run is trained on, a `Corpus`, or its `Task`.

    Raises:
        CorpusError: a text that cannot be read or is too short.
        RunError: a text that has changed since the config was made, or is gone.
        TaskError: an unknown task, or a difficulty that it cannot have.
    """
    if config.text_hash not in (None, found := text_hash(config.data)):
        name = Path(config.data).name
        if found is None:
            raise RunError(f"{name} is not there any more; put it back: what each number stands for is made from it")
        raise RunError(f"{name} is not the text that the config was made for; make the config anew")
    if config.objective == "task":
        return load_task(config)
    corpus = load_corpus(config.data, subwords=config.subwords)
    # Before the training, not after it.
    corpus.check(max(config.length, config.test_length or 0))
    return corpus


def make_model(config: RunConfig, corpus: Corpus | Task) -> Any:
    """Make the untrained model of a run.

    Args:
        config: the run.
        corpus: its text, whose vocabulary the model has, or its task.

    Returns:
        A `LanguageModel`; of a task a `SequenceClassifier`, a `SpanPredictor`, or of images a `VisionTransformer`.

    Raises:
        EncodingInputError: a scheme that is not defined for the objective.
        RunError: what is no corpus or task, or a scheme of one's own that has changed since the config was made.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.data import load_corpus
        >>> from posembed.training import make_model
        >>> make_model(RunConfig(scheme="rope"), load_corpus()).transformer.position_scheme
        RoPE(d_head=16, base=10000.0, layout='half')
    """
    check_kind("config", config, RunConfig, "a RunConfig, before the corpus", RunError)
    check_kind("corpus", corpus, Corpus | Task, "a corpus, as of load_corpus, or a task", RunError)
    if config.scheme_hash != source_hash(config.scheme):
        raise RunError(f"{config.scheme} is not the code that the config was made for; make the config anew")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        its_scheme: Any = config.scheme if config.dose is None else _dosed(config)
        if config.layers_with_positions is not None or config.cls == "untied":
            its_scheme = scheme(config.scheme, **config.sizes, options=config.scheme_options)
        if config.cls == "untied":
            its_scheme = PerLayer([Untied(its_scheme.layer(n), config.n_heads) for n in range(config.n_layers)])
        if config.layers_with_positions is not None:
            its_scheme = OnLayers(its_scheme, config.layers_with_positions, n_layers=config.n_layers)
        model_config = TransformerConfig(
            vocab_size=corpus.vocab_size,
            **config.sizes,
            scheme=its_scheme,
            scheme_options=config.scheme_options if isinstance(its_scheme, str) else {},
            dropout=config.dropout,
            scale_embeddings=config.scale_embeddings,
            weight_std=config.weight_std,
            positions_added=config.positions_added,
        )
        model = task_model(corpus, model_config, config) if isinstance(corpus, Task) else LanguageModel(model_config)
        return model.to(config.device)


def _dosed(config: RunConfig) -> PositionScheme:
    """A frozen bias that violates one property, or none; the slope of each head is half that of the one before."""
    its: Any = config.dose or {"symmetry": 0.0}
    violated, degrees = next(iter(its.items()))
    return FrozenBias(perturbed_bias(violated, degrees, length=config.length), 0.5 ** torch.arange(config.n_heads))


def _measure(model: Any, config: RunConfig, corpus: Corpus | Task) -> dict[str, Any]:
    scheme_module = model.transformer.position_scheme
    of_scheme = (*scheme_module.parameters(), *model.transformer.added_anew.parameters())
    sizes: dict[str, Any] = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "scheme_parameters": sum(parameter.numel() for parameter in of_scheme),
        "scheme": parameters_of_scheme(scheme_module),
    }
    if isinstance(corpus, Task):
        if "patches" in config.inspections:
            untrained = make_model(config, corpus).eval()
            sizes["patches"] = patch_measures(model, untrained, corpus.validation, corpus.test)
        return measure_task(model, corpus, config) | sizes
    metrics: dict[str, Any] = {
        "loss": loss_of(model, corpus.test, config),
        "validation_loss": loss_of(model, corpus.validation, config),
        **sizes,
    }
    if config.objective == "causal":
        found = corpus.perplexities(metrics["loss"])
        # A word is what stands between blanks: of a text with few it may be as long as a page.
        named = {"perplexity_per_token": round(found.per_token, 4), "perplexity_per_word": round(found.per_word, 2)}
        metrics |= {name: value for name, value in named.items() if math.isfinite(value)}
    if config.test_length is not None:
        metrics["loss_by_position"] = loss_by_position(model, corpus.test, config)
        if config.test_scalings:
            metrics["loss_by_position_scaled"] = scaled_losses(model, corpus.test, config)
    return metrics | inspect_model(model, lambda: make_model(config, corpus), config, corpus)


def _means(values: list[float], n_points: int) -> list[float]:
    pieces = torch.tensor(values).tensor_split(min(n_points, len(values)))
    return [round(float(piece.mean()), 4) for piece in pieces]
