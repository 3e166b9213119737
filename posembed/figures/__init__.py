"""Static figures in one style. Each is a matplotlib figure that carries its description for those who cannot see it."""

from .components import component_curves
from .costs import lookup_cost_curves
from .curves import curves
from .differences import token_differences
from .dot_products import dot_product_map
from .helix import helix_portrait
from .maps import similarity_maps, table_maps
from .offsets import offset_profile
from .probe_scatter import probe_scatter
from .regions import error_by_region
from .rows import row_health
from .schemes import added_maps, bias_curves, counted_map, damping_curves, frequency_curves, logit_maps, weight_maps
from .scores import seed_scores
from .spectrum import explained_variance
from .style import COLOURS, DescribedFigure, new_figure, styled
from .table_heat import table_heat

__all__ = [
    "COLOURS",
    "DescribedFigure",
    "added_maps",
    "bias_curves",
    "component_curves",
    "counted_map",
    "curves",
    "damping_curves",
    "dot_product_map",
    "error_by_region",
    "explained_variance",
    "frequency_curves",
    "helix_portrait",
    "logit_maps",
    "lookup_cost_curves",
    "new_figure",
    "offset_profile",
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
