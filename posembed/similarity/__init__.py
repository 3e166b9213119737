"""What the similarities of positions say about distance: three properties, and locality."""

from .properties import Properties, properties, properties_of_matrix

__all__ = ["Properties", "properties", "properties_of_matrix"]
