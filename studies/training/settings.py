"""Settings of a study's runs: those of `posembed.RunConfig`, and those that only a study's code understands."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from posembed.errors import RunError, shown
from posembed.training import RunConfig
from posembed.training.config import OF_STUDIES

# The defaults of the first studies, which is start A; a study says what it has in place of them.
FIRST = RunConfig.from_dict({})
CORE = {each.name for each in fields(RunConfig)}
SETTINGS = {
    "short_length": "of the pieces of the first steps, as BERT was trained; a step reads as many tokens as any other",
    "short_share": "the share of the steps, from the first one on, that have such pieces",
    "guessed_share": "the share of the tokens that a causal model is trained to guess, drawn anew for each piece",
    "further_steps": "of AdamW, after the others; the learning rate rises and falls anew",
    "drops_positions": "whether the model loses its positions before the further steps, and has none from then on",
    "inspections": "what else is measured after the training, by names of `studies.training.inspections`",
    "task": "where the objective is task: a made one, or a real one (see `studies.training.tasks.load_task`)",
    "difficulty": "of the task; by default the usual one",
    "subwords": "how many subwords the text is made of, and those of real tasks",
    "start": "of a task: the settings (`told`) of the run whose Transformer it begins with",
    "cls": "each text begins with [CLS]: tied, at position 0; untied, to which all attend by a number of its own; "
    "moved, at a position that is drawn for each text",
    "dose": "a frozen bias in place of a scheme: the property that it violates and by how many degrees; {} for none",
    "mark": "whether the texts of a causal model begin with a token that no text holds",
    "compiled": "whether a causal model's step is compiled, for a GPU",
    "losses_at": "in how many equal parts of a run its validation loss is measured, at the end of each",
    "drawn_positions": "from how many the positions of a causal model are drawn in training",
    "positions_added": "where rows are added to embeddings: input; every layer, the same rows; layers anew",
}


def run_of(**settings: Any) -> RunConfig:
    """The config of a run with settings of either kind."""
    return changed(FIRST, **settings)


def changed(config: RunConfig, **settings: Any) -> RunConfig:
    """The config with other settings of either kind."""
    core = {name: value for name, value in settings.items() if name in CORE}
    more = {name: value for name, value in settings.items() if name not in CORE}
    return replace(config, **core, study={**config.study, **more})


def setting(config: RunConfig, name: str) -> Any:
    """The setting of a study, by default what says nothing."""
    return config.study.get(name, OF_STUDIES.get(name))


def n_steps(config: RunConfig) -> int:
    """Of the optimizer, with the further ones."""
    return config.steps + (setting(config, "further_steps") or 0)


def read_length(config: RunConfig) -> int:
    """Of the pieces that are cut from a text: [CLS] takes one place."""
    return config.length - (setting(config, "cls") is not None)


def check_settings(config: RunConfig) -> None:
    """Refuse a setting that would be left out in silence."""
    if unknown := [name for name in config.study if name not in SETTINGS]:
        raise RunError(f"there is no setting {shown(unknown[0])}; choose among {', '.join(SETTINGS)}")
