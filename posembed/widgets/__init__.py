"""Figures that move: live widgets where there is a kernel, the same module inside the page where there is none."""

from .base import InteractiveFigure
from .lookup import LookupFigure
from .shuffle import ShuffleFigure

__all__ = ["InteractiveFigure", "LookupFigure", "ShuffleFigure"]
