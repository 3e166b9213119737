"""Models over any position scheme: attention, its masks and its cache, and a Transformer."""

from .attention import attend
from .cache import KeyValueCache
from .in_transformers import SchemeInModel, use_scheme
from .masks import AttentionMask, pack, positions_from_mask
from .multi_head import MultiHeadAttention
from .transformer import LanguageModel, Transformer, TransformerConfig, TransformerLayer

__all__ = [
    "AttentionMask",
    "KeyValueCache",
    "LanguageModel",
    "MultiHeadAttention",
    "SchemeInModel",
    "Transformer",
    "TransformerConfig",
    "TransformerLayer",
    "attend",
    "pack",
    "positions_from_mask",
    "use_scheme",
]
