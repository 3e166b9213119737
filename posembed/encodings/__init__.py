"""Position schemes: what tells a model where its tokens stand, one scheme a file, all behind one interface."""

from .alibi import ALiBi, alibi_slopes
from .composed import Composed, OnLayers, PerLayer
from .cope import CoPE
from .fire import FIRE
from .forgetting import Forgetting
from .frozen import FrozenBias
from .interface import PositionScheme
from .kerple import KERPLE
from .learnable_sinusoids import LearnableSinusoidal
from .learned import Learned
from .nopos import NoPos
from .pope import PoPE
from .registry import Sizes, scheme, schemes
from .rope import RoPE, convert_rope_layout
from .rope_scaling import LinearScaling, Llama3Scaling, LongRoPEScaling, NTKScaling, YaRNScaling
from .scaled_logits import ScaledLogits
from .shaw import Shaw
from .sinusoids import Sinusoidal, convert_layout, sinusoidal
from .t5 import T5
from .xpos import XPos

__all__ = [
    "FIRE",
    "KERPLE",
    "T5",
    "ALiBi",
    "CoPE",
    "Composed",
    "Forgetting",
    "FrozenBias",
    "LearnableSinusoidal",
    "Learned",
    "LinearScaling",
    "Llama3Scaling",
    "LongRoPEScaling",
    "NTKScaling",
    "NoPos",
    "OnLayers",
    "PerLayer",
    "PoPE",
    "PositionScheme",
    "RoPE",
    "ScaledLogits",
    "Shaw",
    "Sinusoidal",
    "Sizes",
    "XPos",
    "YaRNScaling",
    "alibi_slopes",
    "convert_layout",
    "convert_rope_layout",
    "scheme",
    "schemes",
    "sinusoidal",
]
