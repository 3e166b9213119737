"""Measure the position tables of published checkpoints through the Hugging Face hub, and store what is new.

A study is written to `results/tables/`, and from there into the package, where none is stored yet or where the rows
are others than those that the stored one was measured on. What the hub does not give stays as it is stored. The
workflow `tables` runs this every week and proposes what has changed.

Usage: python tools/studies.py [NAME ...]    by default the checkpoints that the chapters ask for
"""

import sys

from posembed.errors import PosembedError
from posembed.stored import read_studies, table_studies, write_study
from posembed.tables.hub import why_unreachable
from results import RESULTS, STORED, TABLES, store_tables

NAMES = (
    "bert-base-cased",
    "roberta-base",
    "gpt2",
    "openai/whisper-base, decoder",
    "openai/whisper-tiny.en, decoder",
    "sentence-transformers/all-MiniLM-L6-v2",
    "sentence-transformers/all-mpnet-base-v2",
)


def measure(names=NAMES, results=RESULTS, stored=STORED):
    """Store the studies of tables that are new, and yield of each name what became of it."""
    before, found = read_studies(results / TABLES), table_studies(names)
    for name in names:
        if name not in found or found[name].stored:
            yield name, "not to be had from the hub, left as it is"
        elif name in before and before[name].sha256 == found[name].sha256:
            yield name, "the rows are those that the stored study was measured on"
        else:
            write_study(found[name], results / TABLES)
            yield name, f"measured anew, revision {found[name].revision}"
    store_tables(results, stored)


def main(names):
    if reason := why_unreachable():
        sys.exit(f"studies: the hub cannot be reached: {reason}")
    try:
        for name, outcome in measure(names or NAMES):
            print(f"studies: {name}: {outcome}")
    except PosembedError as error:
        sys.exit(f"studies: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
