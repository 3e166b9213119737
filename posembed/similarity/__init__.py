"""What the similarities of positions say about distance: three properties, and locality; biases that violate one."""

from .doses import dosed_bias
from .properties import Properties, properties, properties_of_matrix

__all__ = ["Properties", "dosed_bias", "properties", "properties_of_matrix"]
