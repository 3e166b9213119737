"""Models over any position scheme: attention, its masks and its cache, and a Transformer with its heads."""

from .attention import attend
from .heads import SequenceClassifier
from .in_transformers import SchemeInModel, use_scheme
from .masks import AttentionMask, pack, positions_from_mask
from .multi_head import KeyValueCache, MultiHeadAttention
from .transformer import LanguageModel, Transformer, TransformerConfig, TransformerLayer, drop_positions
from .transformers_saved import load_with_scheme

__all__ = [
    "AttentionMask",
    "KeyValueCache",
    "LanguageModel",
    "MultiHeadAttention",
    "SchemeInModel",
    "SequenceClassifier",
    "Transformer",
    "TransformerConfig",
    "TransformerLayer",
    "attend",
    "drop_positions",
    "load_with_scheme",
    "pack",
    "positions_from_mask",
    "use_scheme",
]
