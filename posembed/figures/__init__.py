"""Static figures in one style. Each is a matplotlib figure that carries its description for those who cannot see it."""

from .curves import curves, token_differences
from .looks import COLOURS, DIVERGING, LOOKS, SEQUENTIAL, Look, look_of
from .maps import similarity_maps, table_heat, table_maps
from .schemes import added_maps, bias_curves, counted_map, damping_curves, frequency_curves, logit_maps, weight_maps
from .scores import forest_plot, seed_scores
from .style import DescribedFigure, new_figure, styled
from .tables import explained_variance, helix_portrait, probe_scatter, row_health

__all__ = [
    "COLOURS",
    "DIVERGING",
    "LOOKS",
    "SEQUENTIAL",
    "DescribedFigure",
    "Look",
    "added_maps",
    "bias_curves",
    "counted_map",
    "curves",
    "damping_curves",
    "explained_variance",
    "forest_plot",
    "frequency_curves",
    "helix_portrait",
    "logit_maps",
    "look_of",
    "new_figure",
    "probe_scatter",
    "row_health",
    "seed_scores",
    "similarity_maps",
    "styled",
    "table_heat",
    "table_maps",
    "token_differences",
    "weight_maps",
]
