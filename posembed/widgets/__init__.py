"""Figures that move: live widgets where there is a kernel, the same module inside the page where there is none."""

from .base import InteractiveFigure
from .biases import BiasFigure
from .chart import ComparisonFigure, DepthFigure, DoseFigure, LayerErrorFigure
from .counting import CountingFigure
from .helix import HelixFigure
from .lookup import LookupFigure
from .models import ModelsFigure
from .probe import ProbeFigure
from .properties_map import PropertiesFigure
from .repairs import RepairFigure
from .shuffle import ShuffleFigure
from .sinusoids import RotationFigure, SinusoidFigure

__all__ = [
    "BiasFigure",
    "ComparisonFigure",
    "CountingFigure",
    "DepthFigure",
    "DoseFigure",
    "HelixFigure",
    "InteractiveFigure",
    "LayerErrorFigure",
    "LookupFigure",
    "ModelsFigure",
    "ProbeFigure",
    "PropertiesFigure",
    "RepairFigure",
    "RotationFigure",
    "ShuffleFigure",
    "SinusoidFigure",
]
