"""Static figures in one style. Each is a matplotlib figure that carries its description for those who cannot see it."""

from .costs import lookup_cost_curves
from .differences import token_differences
from .maps import similarity_maps, table_maps
from .style import COLOURS, DescribedFigure, new_figure, styled

__all__ = [
    "COLOURS",
    "DescribedFigure",
    "lookup_cost_curves",
    "new_figure",
    "similarity_maps",
    "styled",
    "table_maps",
    "token_differences",
]
