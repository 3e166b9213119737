"""Is the position readable from a table, by which probe, and against which controls?"""

from ..stats import BootstrapInterval, mean_interval
from .attention_maps import identical_word_attention
from .estimators import MLP, GradientDescent, LeastSquares, Ridge, constant_guess, permuted_labels, random_tables_like
from .intervention import Control, InterventionResult, intervene, position_subspace
from .layers import (
    LayerError,
    LayerProbeResult,
    PermutedLabels,
    middle_guess_error,
    probe_layers,
    random_guess_error,
)
from .order import OrderResult, probe_order
from .rows import SPLITS, Part, Split, split_rows
from .spectrum import Helix, Spectrum, spectrum
from .table_probe import PROBES, Baselines, Probe, ProbeResult, Region, probe_table

__all__ = [
    "MLP",
    "PROBES",
    "SPLITS",
    "Baselines",
    "BootstrapInterval",
    "Control",
    "GradientDescent",
    "Helix",
    "InterventionResult",
    "LayerError",
    "LayerProbeResult",
    "LeastSquares",
    "OrderResult",
    "Part",
    "PermutedLabels",
    "Probe",
    "ProbeResult",
    "Region",
    "Ridge",
    "Spectrum",
    "Split",
    "constant_guess",
    "identical_word_attention",
    "intervene",
    "mean_interval",
    "middle_guess_error",
    "permuted_labels",
    "position_subspace",
    "probe_layers",
    "probe_order",
    "probe_table",
    "random_guess_error",
    "random_tables_like",
    "spectrum",
    "split_rows",
]
