"""Write what `results/` holds into the package, from where readers load it.

The runs of a study become one file, its trained tables another; studies of published tables stay one file each. A few
trained models of the NoPos study go with them, each with its card: their weights are those that ship already, or are
taken from the folder of a grid that kept them.

Usage: python tools/results.py [FOLDER WITH THE WEIGHTS OF THE NOPOS STUDY]
"""

import sys
from pathlib import Path

from posembed.errors import RunError
from posembed.stored import MODELS, read_studies, write_study
from posembed.stored.studies import BUNDLE
from posembed.stored.trained import MODEL_FOLDER, bundle_tables
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
    paths = [file_of(config, source, "safetensors") for config in configs.values()]
    written = {write_whole(target / path.name, path.read_bytes()) for path in paths}
    for path in set(target.glob("*.safetensors")) - written:
        path.unlink()
    cards = "\n".join(model_card(name, runs) for name in MODELS)
    write_whole(target / "README.md", cards.encode())


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
