"""How a causal model without positions comes by them: the mechanisms, each as code that can be run and checked."""

from .counting import CountingSteps, CountingTransformer
from .repeated_word import repeated_word_attention
from .running_mean import VarianceLaw, attention_variance
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
