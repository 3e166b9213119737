"""Models over any position scheme: attention, its masks and its cache."""

from .attention import attend
from .cache import KeyValueCache
from .in_transformers import SchemeInModel, use_scheme
from .masks import AttentionMask, pack, positions_from_mask
from .multi_head import MultiHeadAttention

__all__ = [
    "AttentionMask",
    "KeyValueCache",
    "MultiHeadAttention",
    "SchemeInModel",
    "attend",
    "pack",
    "positions_from_mask",
    "use_scheme",
]
