"""How a causal model without positions comes by them: the mechanisms, each as code that can be run and checked."""

from ..probing.attention_maps import repeated_word_attention
from .attention_outputs import VarianceLaw, attention_variance
from .counting import CountingSteps, CountingTransformer
from .shuffled_prefix import ShuffledPrefix, shuffled_prefix

__all__ = [
    "CountingSteps",
    "CountingTransformer",
    "ShuffledPrefix",
    "VarianceLaw",
    "attention_variance",
    "repeated_word_attention",
    "shuffled_prefix",
]
