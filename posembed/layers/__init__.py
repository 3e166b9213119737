"""Is once enough? What the layers of a model have of the positions that were added at its input, and what they use."""

from .._deprecation import renamed
from .ablation import Ablation, ablate, changed, layers_of, next_token_loss
from .linear_probe import LinearProbeResult, RetainedInput, linear_probe, retained_input
from .profile import DepthProfile, LayerProfile, depth_profile
from .variance_decomposition import LayerShares, position_shares

__all__ = [
    "Ablation",
    "DepthProfile",
    "LayerProfile",
    "LayerShares",
    "LinearProbeResult",
    "RetainedInput",
    "ablate",
    "changed",
    "depth_profile",
    "layers_of",
    "linear_probe",
    "next_token_loss",
    "position_shares",
    "retained_input",
]

__getattr__ = renamed(
    __name__,
    {
        "InputLeft": "RetainedInput",
        "Reading": "LinearProbeResult",
        "input_left": "retained_input",
        "read": "linear_probe",
    },
)
