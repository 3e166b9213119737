"""What is asked of a trained model beyond its loss: how well its layers know positions, and how much it needs them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from posembed.data import Corpus, windows_in_order
from posembed.errors import RunError
from posembed.layers import LayerProfile, depth_profile
from posembed.mechanisms import shuffled_prefix
from posembed.models import LanguageModel, drop_positions
from posembed.probing import probe_layers
from posembed.training import RunConfig, text_losses
from posembed.training.measure import loss_by_position, loss_of
from posembed.training.objectives import Objective

from .far import inspect_far
from .heads import inspect_heads
from .learned_positions import POSITIONS, learned_positions
from .settings import read_length, setting

# The probes are fitted to so many tokens of the validation text, and tested on so many of the test text.
FITTED, TESTED = 2**16, 2**14
PROBE_STEPS = 2000
# The shares of a run's steps after which its layers are watched.
WATCHED = (1 / 32, 1 / 8, 1 / 2)
# Texts whose last token is guessed with its prefix shuffled.
PREFIXES = 256
# How many tokens before the last one the inspection "prefix" leaves in place, the second time.
KEPT = 8
# Texts that what layers hold of positions is fitted to, and those that it is measured on.
DEPTH_FITTED, DEPTH_TESTED = 512, 256


def inspect_model(
    model: LanguageModel,
    untrained: Callable[[], LanguageModel],
    config: RunConfig,
    corpus: Corpus,
    objective: Objective,
) -> dict[str, Any]:
    """Inspect a trained model as its config says.

    Args:
        model: the trained model, in evaluation mode.
        untrained: makes the model that the training began with.
        config: of its run.
        corpus: its text.
        objective: what it guesses.

    Returns:
        For each name of its inspections what was found, ready for JSON.

        ``"layers"``: how far off a two-layer network reads each token's position from each layer (`probe_layers`).

        ``"untrained"``: the same for the model before its training.

        ``"watched"`` is not among them: it is found on the way, see `steps_watched`.

        ``"prefix"``: the loss of the last token, with those before it in order and shuffled (`shuffled_prefix`): all of
        them, and all but the last eight.

        ``"dropped"``: the loss, and that by position, when the positions are taken away without any further training.

        ``"positions"``: what attention makes of positions (`learned_positions`).

        ``"far"``: the loss past the trained length, asked in three ways (`inspect_far`).

        ``"heads"``: what its heads look at, and what is lost without them (`inspect_heads`).

        ``"depth"``: what each layer holds of positions, in the trained model and before (`depth_profile`).
    """
    by_name: dict[str, Callable[[], dict[str, Any]]] = {
        "layers": lambda: probed_layers(model, config, corpus),
        "untrained": lambda: probed_layers(untrained().eval(), config, corpus),
        "prefix": lambda: _prefix(model, config, corpus),
        "dropped": lambda: _dropped(model, config, corpus, objective),
        "positions": lambda: learned_positions(model, min(config.length, POSITIONS)),
        "depth": lambda: _by_depth(model, untrained().eval(), config, corpus, objective),
        "far": lambda: inspect_far(model, config, corpus),
        "heads": lambda: inspect_heads(model, untrained, config, corpus, objective),
    }
    asked = setting(config, "inspections")
    if unknown := set(asked) - {*by_name, "watched"}:
        raise RunError(f"there are no inspections {', '.join(sorted(unknown))} of texts")
    return {name: measured() for name, measured in by_name.items() if name in asked}


def _texts(text: Tensor, n_tokens: int, length: int) -> Int[Tensor, "texts length"]:
    return windows_in_order(text, length, max(2, n_tokens // length))


def steps_watched(config: RunConfig) -> tuple[int, ...]:
    """After how many steps the layers of a run are probed on the way; after none where that is not asked for."""
    if "watched" not in setting(config, "inspections"):
        return ()
    return tuple(sorted({round(share * config.steps) for share in WATCHED} - {0}))


def probed_layers(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, Any]:
    """How far off a two-layer network reads each token's position from each layer, ready for JSON."""
    found = probe_layers(
        model,
        _texts(corpus.validation, FITTED, config.length),
        test_ids=_texts(corpus.test, TESTED, config.length),
        steps=PROBE_STEPS,
        control=False,
        seed=config.seed,
    )
    # A column for each number of a layer, with digits that say something.
    columns = ("mae", "median_mae", "train_mae", "accuracy")
    return {name: [float(f"{getattr(layer, name):.5g}") for layer in found.layers] for name in columns} | {
        "by_position": [[round(value, 3) for value in layer.by_position] for layer in found.layers],
        "random_guess": found.random_guess,
        "middle_guess": found.middle_guess,
        "example_predictions": found.example_predictions.tolist(),
    }


def _prefix(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, Any]:
    texts = _texts(corpus.test, PREFIXES * config.length, config.length)
    whole = shuffled_prefix(model, texts, seed=config.seed)
    kept = shuffled_prefix(model, texts, keep=KEPT, seed=config.seed)
    found = {"intact": whole.intact, "shuffled": whole.shuffled, f"shuffled but for the last {KEPT}": kept.shuffled}
    return {name: round(loss, 5) for name, loss in found.items()}


def _dropped(model: LanguageModel, config: RunConfig, corpus: Corpus, objective: Objective) -> dict[str, Any]:
    without = copy.deepcopy(model)
    drop_positions(without.transformer)
    return {
        "loss": loss_of(without, corpus.test, objective, read_length(config)),
        "loss_by_position": loss_by_position(without, corpus.test, objective, config.test_length or config.length),
    }


def _by_depth(
    model: LanguageModel, untrained: LanguageModel, config: RunConfig, corpus: Corpus, objective: Objective
) -> dict[str, Any]:
    """By "trained" and "untrained" a column for each number of a layer; the untrained model is not run with changes."""
    fitted, tested = (
        windows_in_order(text, config.length, n)
        for text, n in ((corpus.validation, DEPTH_FITTED), (corpus.test, DEPTH_TESTED))
    )

    def loss(its_model: LanguageModel) -> Tensor:
        parts = text_losses(its_model, corpus.test, objective, config.length, len(tested) * config.length)
        return torch.cat([*parts]).nanmean(dim=1)

    found = {}
    for name, each in (("trained", model), ("untrained", untrained)):
        profile = depth_profile(
            each,
            fitted,
            test_ids=tested,
            ablations=each is model,
            n_tested=len(tested),
            loss=loss,
            seed=config.seed,
        )
        rows = [_numbers(layer) for layer in profile.layers]
        found[name] = {column: [float(f"{row[column]:.5g}") for row in rows] for column in rows[0]}
    return found


def _numbers(layer: LayerProfile) -> dict[str, float]:
    shares, left = layer.shares, layer.left
    numbers = {"total": shares.total, "position": shares.position, "token": shares.token or 0.0}
    for name, reading in (("position", layer.position), ("token", layer.token), ("before", layer.before)):
        if reading is not None:
            numbers |= {f"read {name}": reading.accuracy, f"read {name}, permuted": reading.permuted_labels}
            numbers[f"read {name}, chance"] = reading.chance
    if left is not None:
        numbers |= {"left, r2": left.r2, "left, coefficient": left.coefficient, "left, cosine": left.cosine}
    for each in layer.ablations:
        numbers |= {each.kind: each.cost, f"{each.kind}, control": each.control}
        if each.n_directions is not None:
            numbers["directions"] = each.n_directions
    return numbers
