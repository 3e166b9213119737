"""The results that chapters show: studies, trained tables and models, probes of published tables, a paper's numbers."""

from .published import PUBLISHED_PERPLEXITY, PUBLISHED_PROBE, PUBLISHED_SCHEMES, published_probe
from .results import load_results, summary
from .studies import (
    MODELS,
    Study,
    load_model,
    load_plan,
    load_runs,
    load_study,
    load_tables,
    run_of_model,
    study_names,
)
from .table_record import CONTROLS, Products, SplitScore, TableStudy, read_studies, stored_studies, write_study
from .table_study import study_table, table_studies

__all__ = [
    "CONTROLS",
    "MODELS",
    "PUBLISHED_PERPLEXITY",
    "PUBLISHED_PROBE",
    "PUBLISHED_SCHEMES",
    "Products",
    "SplitScore",
    "Study",
    "TableStudy",
    "load_model",
    "load_plan",
    "load_results",
    "load_runs",
    "load_study",
    "load_tables",
    "published_probe",
    "read_studies",
    "run_of_model",
    "stored_studies",
    "study_names",
    "study_table",
    "summary",
    "table_studies",
    "write_study",
]
