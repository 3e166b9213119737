"""Is once enough? What the layers of a model have of the positions that were added at its input, and what they use."""

from .ablation import Ablation, ablate, changed, layers_of, next_token_loss
from .linear_probe import Reading, read
from .profile import DepthProfile, LayerProfile, depth_profile
from .retained_input import InputLeft, input_left
from .variance_decomposition import LayerShares, position_shares

__all__ = [
    "Ablation",
    "DepthProfile",
    "InputLeft",
    "LayerProfile",
    "LayerShares",
    "Reading",
    "ablate",
    "changed",
    "depth_profile",
    "input_left",
    "layers_of",
    "next_token_loss",
    "position_shares",
    "read",
]
