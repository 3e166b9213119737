"""What the similarities of positions say about distance: three properties, and locality; biases that violate one."""

from .._deprecation import renamed
from .perturbed_bias import perturbed_bias
from .properties import Properties, properties, properties_of_matrix

__all__ = ["Properties", "perturbed_bias", "properties", "properties_of_matrix"]

__getattr__ = renamed(__name__, {"dosed_bias": "perturbed_bias"})
