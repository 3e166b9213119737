"""Position encodings: rows, rotations and biases that tell a model where its tokens stand."""

from .sinusoids import convert_layout, sinusoidal

__all__ = ["convert_layout", "sinusoidal"]
