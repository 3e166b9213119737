"""Write what `results/` holds into the package, from where readers load it.

The runs of a study become one file, its trained tables another; studies of published tables stay one file each. A few
trained models of the NoPos study go with them, each with its card: their weights are those that ship already, or are
taken from the folder of a grid that kept them.

Usage: python tools/results.py [FOLDER WITH THE WEIGHTS OF THE NOPOS STUDY]
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load, save

from posembed.errors import RunError
from posembed.stored import MODELS, read_studies, write_study
from posembed.stored.studies import BUNDLE, MODEL_FOLDER, TRAINED_AGAIN, bundle_tables
from posembed.training import read_model, read_results, read_tables
from posembed.training.results import file_of, write_whole

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
STORED = ROOT / "posembed" / "stored"
sys.path.insert(0, str(ROOT))

from studies.bundles import SHIPPED, bundle_of  # noqa: E402
from studies.model_cards import model_card, run_of_model  # noqa: E402

TABLES = "tables"


def store_runs(study, results=RESULTS, stored=STORED):
    """Write a study and its tables."""
    folder = results / study
    keys, tables = [run.config.key for run in read_results(folder)], read_tables(folder)
    if lost := [key for key in keys if tables and key not in tables]:
        raise RunError(f"the table {lost[0]}.npy is missing in {folder.name}; run its config again")
    write_whole(stored / f"{study}{BUNDLE}", bundle_of(study, folder))
    if tables:
        # A table without its result is one of a run that was stopped between the two.
        write_whole(stored / f"{study}.safetensors", bundle_tables({key: tables[key] for key in keys}))


def store_tables(results=RESULTS, stored=STORED):
    """Write the studies of published tables, and take away those that are no longer in the results."""
    studies = read_studies(results / TABLES)
    written = {write_study(study, stored / TABLES) for study in studies.values()}
    for path in set((stored / TABLES).glob("*.json")) - written:
        path.unlink()


def store_models(folder=None, results=RESULTS, stored=STORED):
    """Write the models that ship: the weights from a folder, those that ship already by default, and their cards."""
    runs, target = read_results(results / "nopos"), stored / MODEL_FOLDER
    source = target if folder is None else Path(folder)
    configs = {name: run_of_model(name, runs).config for name in MODELS}
    # All must be whole before the first is written.
    for name, config in configs.items():
        try:
            read_model(config, source)
        except RunError as error:
            raise RunError(f"the model {name} in {source.name}: {error}") from None
    contents = {name: file_of(config, source, "safetensors").read_bytes() for name, config in configs.items()}
    contents |= {name: halved(contents[name]) for name in TRAINED_AGAIN}
    written = {write_whole(file_of(configs[name], target, "safetensors"), each) for name, each in contents.items()}
    for path in set(target.glob("*.safetensors")) - written:
        path.unlink()
    cards = "\n".join(model_card(name, runs) for name in MODELS)
    write_whole(target / "README.md", cards.encode())


def halved(content):
    """A file of weights in half precision; one that is stays as it is, for the order of its header is drawn anew."""
    weights = load(content)
    if {weight.dtype for weight in weights.values()} == {torch.float16}:
        return content
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return save({name: weight.half() for name, weight in weights.items()}, metadata=header["__metadata__"])


def main(weights=None):
    try:
        for study in SHIPPED:
            store_runs(study)
        store_tables()
        store_models(weights)
    except RunError as error:
        sys.exit(f"results: {error}")
    for path in sorted(each for each in STORED.rglob("*.*") if not each.suffix.startswith(".py")):
        print(f"results: {path.relative_to(ROOT)}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:2])
