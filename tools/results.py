"""Write what `results/` holds into the package, from where readers load it.

The runs of a study become one file, its trained tables another; studies of published tables stay one file each. A few
trained models of the NoPos study go with them, each with its card: their weights are those that ship already, or are
taken from the folder of a grid that kept them.

Usage: python tools/results.py [FOLDER WITH THE WEIGHTS OF THE NOPOS STUDY]
"""

import gzip
import json
import sys
from pathlib import Path

from posembed.errors import RunError
from posembed.training import read_model, read_results, read_studies, read_tables, write_study
from posembed.training.nopos import MODELS, model_card, run_of_model
from posembed.training.nopos.models import MODEL_FOLDER
from posembed.training.results import BUNDLE, file_of, write_whole
from posembed.training.weights import bundle_tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
STORED = ROOT / "posembed" / "stored"

STUDIES = ("depth", "encodings", "nopos", "nopos-large", "smoke", "starts", "tasks", "trained-tables")
TABLES = "tables"


def runs_of(folder):
    """The file of a study's runs, and that of their trained tables; None where they have none."""
    # In the order of their files' names, which are their keys.
    keys, tables = [result.config.key for result in read_results(folder)], read_tables(folder)
    # As they stand in their files, one line a run: a setting that has been retired since is not lost.
    runs = [json.loads((folder / f"{key}.json").read_text(encoding="utf-8")) for key in keys]
    bundle = "[\n" + ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs) + "\n]\n"
    if not tables:
        return bundle.encode(), None
    # A table without its result is one of a run that was stopped between the two.
    if lost := [key for key in keys if key not in tables]:
        raise RunError(f"the table {lost[0]}.npy is missing in {folder.name}; run its config again")
    return bundle.encode(), bundle_tables({key: tables[key] for key in keys})


def store_runs(study, results=RESULTS, stored=STORED):
    """Write the runs of a study and their tables."""
    runs, tables = runs_of(results / study)
    # Without a date: the same runs are the same file.
    write_whole(stored / f"{study}{BUNDLE}", gzip.compress(runs, mtime=0))
    if tables is not None:
        write_whole(stored / f"{study}.safetensors", tables)


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
    paths = [file_of(config, source, "safetensors") for config in configs.values()]
    written = {write_whole(target / path.name, path.read_bytes()) for path in paths}
    for path in set(target.glob("*.safetensors")) - written:
        path.unlink()
    cards = "\n".join(model_card(name, runs) for name in MODELS)
    write_whole(target / "README.md", cards.encode())


def main(weights=None):
    try:
        for study in STUDIES:
            store_runs(study)
        store_tables()
        store_models(weights)
    except RunError as error:
        sys.exit(f"results: {error}")
    for path in sorted(STORED.rglob("*.*")):
        print(f"results: {path.relative_to(ROOT)}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:2])
