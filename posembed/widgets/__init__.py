"""Figures that move: live widgets where there is a kernel, the same module inside the page where there is none."""

from .base import InteractiveFigure
from .biases import BiasFigure
from .comparison import ComparisonFigure
from .counting import CountingFigure
from .doses import DoseFigure
from .layers import DepthFigure, LayerErrorFigure
from .lookup import LookupFigure
from .models import ModelsFigure
from .probe import ProbeFigure
from .properties_map import PropertiesFigure
from .repairs import RepairFigure
from .rotation import RotationFigure
from .shuffle import ShuffleFigure
from .sinusoids import SinusoidFigure

__all__ = [
    "BiasFigure",
    "ComparisonFigure",
    "CountingFigure",
    "DepthFigure",
    "DoseFigure",
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
