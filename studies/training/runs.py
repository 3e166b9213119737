"""Train one model of a study: as `posembed.train` does, with the settings that only studies have."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posembed.data import Corpus, Task, load_corpus, random_windows
from posembed.encodings import FrozenBias, OnLayers, PerLayer, PositionScheme, scheme
from posembed.inference import torch_threads
from posembed.models import LanguageModel, TransformerConfig, drop_positions
from posembed.similarity import perturbed_bias
from posembed.training import Causal, Masked, RunConfig, RunResult, Training, learning_rate_factor
from posembed.training.checkpoints import kept
from posembed.training.machine import check_device, seeded
from posembed.training.measure import loss_of, measure, measure_sizes
from posembed.training.objectives import Objective
from posembed.training.runs import check_text, load_text, result_of, transformer_config
from posembed.training.weights import with_weights

from . import questions
from .cls import MaskedBehindCLS
from .drawn import Drawn
from .guesses import SomeGuessed
from .inspections import inspect_model, probed_layers, steps_watched
from .marks import Marked
from .patches import patch_measures
from .settings import check_settings, n_steps, read_length, setting
from .subwords import subword_corpus
from .tasks import load_task, measure_task, task_loss, task_model
from .untied import Untied


def train(
    config: RunConfig,
    *,
    folder: Path | None = None,
    progress: Callable[[int, float], Any] | None = None,
    checkpoint: Path | str | None = None,
) -> RunResult:
    """Train a model on a text or a task and measure it.

    Args:
        config: the run.
        folder: of the results, where the weights are that it begins with.
        progress: as for `posembed.train`.
        checkpoint: likewise.

    Returns:
        The result with the trained model. Beside the metrics of `posembed.train` it has what the inspections find, and
        of a task what `measure_task` does.
    """
    check_settings(config)
    check_device(config)
    began = time.perf_counter()
    with torch_threads(config.threads), seeded(config):
        data = load_data(config)
        model = make_model(config, data)
        if setting(config, "start") is not None:
            start = read_model(RunConfig.from_dict(setting(config, "start")), folder or Path())
            model.transformer.load_state_dict(start.transformer.state_dict())
        training = StudyTraining(model, data, config)
        with kept(training, checkpoint, progress) as after_step:
            training.run(after_step)
            model.eval()
            metrics = _of_task(model, data, config) if isinstance(data, Task) else _of_text(model, data, config)
    if training.watched:
        metrics["watched"] = training.watched
    if training.losses_at:
        metrics["losses_at"] = training.losses_at
    return result_of(training, metrics, time.perf_counter() - began)


class StudyTraining(Training):
    """A run that may go on after its steps, lose its positions then, and be looked at on the way.

    Attributes:
        watched: what was found on the way, by the number of steps done; ready for JSON.
        losses_at: the validation loss on the way, by the number of steps done.
    """

    def __init__(self, model: nn.Module, data: Corpus | Task, config: RunConfig):
        super().__init__(model, self._task_loss if isinstance(data, Task) else self._text_loss, config)
        self.data: Any = data
        self.objective, self.n_steps, self.watched = objective_of(config), n_steps(config), dict[str, Any]()
        self.losses_at = dict[str, float]()

    def step(self) -> float:
        if setting(self.config, "drops_positions") and len(self.losses) == self.config.steps:
            drop_positions(self.model.transformer)
        return super().step()

    def rate_factor(self, step: int) -> float:
        return rate_factor(step, self.config)

    def run(self, after_step: Callable[[], None] = lambda: None) -> None:
        self.watch()

        def then_watched() -> None:
            after_step()
            self.watch()

        super().run(then_watched)

    def watch(self) -> None:
        """Probe the layers, and measure the validation loss, if this is after one of the steps for that."""
        done = len(self.losses)
        if done in steps_watched(self.config) and str(done) not in self.watched:
            self.watched[str(done)] = probed_layers(self.model, self.config, self.data)
        if done in _steps_measured(self.config) and str(done) not in self.losses_at:
            validation, length = self.data.validation, read_length(self.config)
            self.losses_at[str(done)] = loss_of(self.model.eval(), validation, self.objective, length)

    def state(self) -> dict[str, Any]:
        return super().state() | {"watched": json.dumps(self.watched), "losses_at": json.dumps(self.losses_at)}

    def restore(self, state: dict[str, Any]) -> None:
        if setting(self.config, "drops_positions") and len(state["losses"]) > self.config.steps:
            drop_positions(self.model.transformer)
        super().restore(state)
        self.watched, self.losses_at = json.loads(state["watched"]), json.loads(state["losses_at"])

    def _task_loss(self, generator: torch.Generator) -> Tensor:
        texts = self.data.draw(self.config.batch_size, generator)
        if self.data.name == questions.NAME:
            return questions.answer_losses(self.model, texts.ids).mean()
        return task_loss(self.model, texts, self.data, self.config, generator)

    def _text_loss(self, generator: torch.Generator) -> Tensor:
        config, short = self.config, setting(self.config, "short_length")
        length, n_pieces = read_length(config), config.batch_size
        if short is not None and len(self.losses) < round(setting(config, "short_share") * config.steps):
            length, n_pieces = short, config.batch_size * (config.length // short)
        pieces = random_windows(self.data.train, length, n_pieces, generator)
        if setting(config, "compiled"):
            return compiled_loss(self.model, pieces.to(config.device))
        return self.objective.loss(self.model, pieces, generator)


def compiled_loss(model: LanguageModel, ids: Tensor) -> Tensor:
    """The loss of `Causal`, by a step that is compiled once for all models of one shape."""
    return _compiled()(model, ids[:, :-1], ids[:, 1:])


@cache
def _compiled() -> Callable[..., Tensor]:
    def loss(model: LanguageModel, seen: Tensor, wanted: Tensor) -> Tensor:
        return F.cross_entropy(model(seen).flatten(0, 1), wanted.flatten())

    return torch.compile(loss, dynamic=False)


@cache
def _steps_measured(config: RunConfig) -> frozenset[int]:
    """After how many steps the validation loss is measured."""
    parts = setting(config, "losses_at") or 0
    return frozenset(round(config.steps * part / parts) for part in range(1, parts + 1))


def rate_factor(step: int, config: RunConfig) -> float:
    """The share of the learning rate at a step; in further steps it rises and falls anew."""
    if step < config.steps:
        return learning_rate_factor(step, config)
    return learning_rate_factor(step - config.steps, _further(config))


@cache
def _further(config: RunConfig) -> RunConfig:
    return replace(config, steps=setting(config, "further_steps"))


def objective_of(config: RunConfig) -> Objective:
    """What a model of a text guesses."""
    if config.objective == "causal":
        if setting(config, "mark"):
            return Marked()
        if setting(config, "drawn_positions"):
            return Drawn(setting(config, "drawn_positions"))
        share = setting(config, "guessed_share")
        return Causal() if share is None else SomeGuessed(share)
    cls, rate = setting(config, "cls"), config.masking_rate or 0.0
    return Masked(rate) if cls is None else MaskedBehindCLS(rate, moved=cls == "moved")


def load_data(config: RunConfig) -> Corpus | Task:
    """Load the text that a run is trained on, or its task."""
    check_text(config)
    if config.objective == "task" or setting(config, "task") == questions.NAME:
        return load_task(config)
    if setting(config, "subwords") is None:
        return _text(config) if config.text_hash else load_text(config)
    corpus = subword_corpus(config.data, setting(config, "subwords"))
    corpus.check(max(config.length, config.test_length or 0))
    return corpus


def _text(config: RunConfig) -> Corpus:
    """A text file that many runs read, which takes seconds."""
    corpus = _read_once(config.data, config.text_hash)
    corpus.check(max(config.length, config.test_length or 0))
    return corpus


@lru_cache(maxsize=1)
def _read_once(data: str, _: str | None) -> Corpus:
    return load_corpus(data)


def make_model(config: RunConfig, data: Corpus | Task) -> Any:
    """Make the untrained model of a run.

    Returns:
        A `LanguageModel`, for questions too; of another task a `SequenceClassifier`, a `SpanPredictor`, or of images a
        `VisionTransformer`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        body = _body(config, data.vocab_size)
        model = task_model(data, body, config) if isinstance(data, Task) else LanguageModel(body)
        return model.to(config.device)


def _body(config: RunConfig, vocab_size: int) -> TransformerConfig:
    body = transformer_config(config, vocab_size)
    # The rows of a table are those of the model that it begins with.
    longest = max(body.n_positions, (setting(config, "start") or {}).get("length", 0))
    body = replace(body, n_positions=longest, positions_added=setting(config, "positions_added"))
    if setting(config, "dose") is not None:
        return replace(body, scheme=_dosed(config))
    if setting(config, "cls") == "untied":
        return replace(body, scheme=_untied(config, longest), scheme_options={})
    return body


def _dosed(config: RunConfig) -> PositionScheme:
    """A frozen bias that violates one property, or none; the slope of each head is half that of the one before."""
    violated, degrees = next(iter((setting(config, "dose") or {"symmetry": 0.0}).items()))
    return FrozenBias(perturbed_bias(violated, degrees, length=config.length), 0.5 ** torch.arange(config.n_heads))


def _untied(config: RunConfig, n_positions: int) -> PositionScheme:
    shared = scheme(config.scheme, **{**config.sizes, "n_positions": n_positions}, options=config.scheme_options)
    untied = PerLayer([Untied(shared.layer(n), config.n_heads) for n in range(config.n_layers)])
    layers = config.layers_with_positions
    return untied if layers is None else OnLayers(untied, layers, n_layers=config.n_layers)


def read_model(config: RunConfig, folder: Path) -> Any:
    """Make the trained model of a run, on the CPU and in evaluation mode."""
    on_cpu = replace(config, device="cpu")
    model = make_model(on_cpu, load_data(on_cpu))
    if setting(config, "drops_positions"):
        drop_positions(model.transformer)
    return with_weights(model, config, folder)


def _of_text(model: LanguageModel, corpus: Corpus, config: RunConfig) -> dict[str, Any]:
    metrics = measure(model, corpus, objective_of(config), replace(config, length=read_length(config)))
    return metrics | inspect_model(model, lambda: make_model(config, corpus), config, corpus, objective_of(config))


def _of_task(model: Any, task: Task, config: RunConfig) -> dict[str, Any]:
    if task.name == questions.NAME:
        return questions.measure_questions(model, task, config) | measure_sizes(model)
    metrics = measure_task(model, task, config) | measure_sizes(model)
    if "patches" in setting(config, "inspections"):
        untrained = make_model(config, task).eval()
        metrics["patches"] = patch_measures(model, untrained, task.validation, task.test)
    return metrics
