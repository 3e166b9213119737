"""Static figures in one style. Each is a matplotlib figure that carries its description for those who cannot see it."""

from .costs import lookup_cost_curves
from .curves import curves
from .differences import token_differences
from .maps import similarity_maps, table_maps
from .schemes import added_maps, bias_curves, counted_map, damping_curves, frequency_curves, logit_maps, weight_maps
from .scores import seed_scores
from .style import COLOURS, DescribedFigure, new_figure, styled

__all__ = [
    "COLOURS",
    "DescribedFigure",
    "added_maps",
    "bias_curves",
    "counted_map",
    "curves",
    "damping_curves",
    "frequency_curves",
    "logit_maps",
    "lookup_cost_curves",
    "new_figure",
    "seed_scores",
    "similarity_maps",
    "styled",
    "table_maps",
    "token_differences",
    "weight_maps",
]
