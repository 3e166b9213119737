"""Refused by runs, by grids of them, and by what is stored of them."""

from pathlib import Path

import torch

from posembed import RunConfig, RunResult, run_grid, train
from posembed.data import load_corpus
from posembed.errors import CorpusError, RunError
from posembed.training import (
    make_model,
    missing,
    read_model,
    read_result,
    read_results,
    run_and_store,
    write_model,
    write_result,
    write_table,
)

TINY = RunConfig(n_layers=1, d_model=8, n_heads=2, length=16, batch_size=2, steps=2, warmup=1)
HERE = Path("no-such-folder")
MASKED = {"objective": "masked", "masking_rate": 0.15}


def config(**settings):
    return lambda: RunConfig(**settings)


def grid(configs=(), **options):
    return lambda: run_grid(configs, **{"engine": "serial", "out": HERE} | options)


RUN = {
    "no deviation": (config(weight_std=0), "weight_std is 0; it must be a positive number"),
    "an endless rate": (config(learning_rate=float("inf")), "learning_rate is inf; it must be a positive number"),
    "a rate that is no number": (config(learning_rate=float("nan")), "learning_rate is nan"),
    "a rate in words": (config(learning_rate="fast"), "learning_rate is 'fast'; it must be a positive number"),
    "a list of layers": (
        config(layers_with_positions=[0]),
        "layers_with_positions is [0]; give a tuple of int, or None",
    ),
    "a layer that is not there": (
        config(layers_with_positions=(0, 4)),
        "layers_with_positions is (0, 4); it must be a tuple of different layers from 0 to 3",
    ),
    "layers that fall": (config(layers_with_positions=(1, 0)), "in rising order"),
    "a number for yes": (config(scale_embeddings=1), "scale_embeddings is 1; give True or False"),
    "no steps": (config(steps=0), "steps is 0; it must be a whole number of at least 1"),
    "half a step": (config(steps=1.5), "steps is 1.5"),
    "yes for a number": (config(batch_size=True), "batch_size is True"),
    "a seed that torch does not take": (config(seed=-1), "seed is -1; it must be a whole number from 0 to 2^32 - 1"),
    "a decay below zero": (config(weight_decay=-1), "weight_decay is -1; it must be a finite number of at least 0"),
    "more than all": (config(dropout=1.5), "dropout is 1.5; it must be a number from 0 to 1"),
    "an unknown objective": (config(objective="next"), "objective is 'next'; choose among causal, masked, task"),
    "a masked model that hides nothing": (
        config(objective="masked"),
        "masking_rate is None with the objective 'masked'; a masked model needs one, a causal model has none",
    ),
    "a causal model that hides": (config(masking_rate=0.15), "a masked model needs one, a causal model has none"),
    "nothing to guess from": (config(length=1), "length is 1; a causal model guesses one token from one at least"),
    "no test length": (config(test_length=0), "test_length is 0; it must be a whole number of at least 1, or None"),
    "a name for names": (config(test_scalings="ntk"), "test_scalings is 'ntk'; give a tuple"),
    "an unknown scaling": (
        config(scheme="rope", test_length=128, test_scalings=("xyz",)),
        "there is no scaling 'xyz'; choose among linear, ntk, yarn, llama3",
    ),
    "a scaling of what does not turn": (
        config(scheme="alibi", test_length=128, test_scalings=("ntk",)),
        "test_scalings need scheme='rope' and a test_length",
    ),
    "a scaling without a length": (config(scheme="rope", test_scalings=("ntk",)), "scheme='rope' and a test_length"),
    "options that are a list": (config(scheme="rope", scheme_options=[1]), "scheme_options is [1]; give a Mapping"),
    "values that are none": (lambda: RunConfig.from_dict(None), "values is None; give a Mapping"),
    "a setting of a later version": (
        lambda: RunConfig.from_dict({"flux": 1}),
        "this version of posembed has no setting 'flux'; upgrade it",
    ),
    "a setting of an earlier version": (
        lambda: RunConfig.from_dict({"optimizer": "nag"}),
        "optimizer is 'nag'; posembed has no optimizer any more, an earlier version does",
    ),
    "settings that only a study understands": (
        lambda: train(RunConfig(study={"inspections": ["layers"], "cls": "tied"}, **MASKED)),
        "cls, inspections: settings of a study; in the repository, make study NAME=... runs it",
    ),
    "an objective that only studies have": (
        lambda: train(RunConfig(objective="task")),
        "the objective 'task': settings of a study",
    ),
    "a model that only a study makes": (
        lambda: make_model(RunConfig(study={"dose": {}, "inspections": ["layers"]}), load_corpus()),
        "dose: settings of a study",
    ),
    "settings that are none": (lambda: train({"scheme": "rope"}), "config is {'scheme': 'rope'}; give a RunConfig"),
    "a progress that cannot be called": (lambda: train(TINY, progress=3), "progress is 3; give a"),
    "a corpus that is none": (lambda: make_model(RunConfig(), "sotu"), "corpus is 'sotu'; give a Corpus"),
}
MANY = {
    "an unknown engine": (grid(engine="spark"), "engine is 'spark'; choose among serial, joblib, ray"),
    "no workers": (grid(n_workers=0), "n_workers is 0; it must be a whole number from 1 on, or -1 for all cores"),
    "half a worker": (grid(n_workers=1.5), "n_workers is 1.5; give a whole number"),
    "less than no GPU": (grid(gpus=-0.5), "gpus is -0.5; it must be a finite number of at least 0"),
    "tables of a scheme that has none": (
        grid([RunConfig(scheme="rope")], save_tables=True),
        "save_tables is for the scheme 'learned'; 'rope' has no table",
    ),
    "one config": (grid(TINY), "give an Iterable"),
    "no folder": (grid([TINY], out=None), "out is None; give a Path, or give a text"),
    "settings among the configs": (
        grid(each for each in [TINY, {"scheme": "rope"}]),
        "{'scheme': 'rope'} among the configs is no RunConfig; give a list of RunConfig",
    ),
    "words for yes": (grid([TINY], save_models="yes"), "save_models is 'yes'; give True or False"),
    "one that is no config": (lambda: run_and_store("rope", HERE), "config is 'rope'; give a RunConfig"),
    "what is missing of no configs": (lambda: missing(3, HERE), "configs is 3; give an Iterable"),
}
STORED = {
    "a result that is none": (lambda: write_result({}, HERE), "result is {}; give a RunResult"),
    "a folder that is a number": (lambda: write_result(RunResult(TINY, {}, {}, "", 0.0), 3), "folder is 3; give a"),
    "a table that is a list": (lambda: write_table([1.0], TINY, HERE), "weight is [1.0]; give a tensor"),
    "a table of one row": (lambda: write_table(torch.ones(3), TINY, HERE), "weight is "),
    "a model that is none": (lambda: write_model("gpt2", TINY, HERE), "model is 'gpt2'; give a Module"),
    "a config in place of a folder": (lambda: read_model(HERE, TINY), "config is "),
    "a result that is not there": (lambda: read_result("none.json"), "none.json cannot be read (No such file"),
    "results that are not there": (lambda: read_results(HERE), "there is no folder 'no-such-folder'; give the folder"),
}
CASES = {name: (RunError, *case) for name, case in (RUN | MANY | STORED).items()}
CASES["a masked model that hides all"] = (
    CorpusError,
    lambda: train(RunConfig(**MASKED | {"masking_rate": 1.0}, n_layers=1, d_model=8, n_heads=2)),
    "the masking rate is 1.0; it must lie between 0 and 1",
)
