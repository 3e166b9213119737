"""Refused by attention, by models and by their parts."""

import torch

from posembed import PositionScheme, Transformer, TransformerConfig, scheme
from posembed.encodings import T5, ALiBi, PerLayer
from posembed.errors import EncodingInputError, ModelInputError
from posembed.models import (
    AttentionMask,
    KeyValueCache,
    MultiHeadAttention,
    SequenceClassifier,
    attend,
    drop_positions,
    pack,
    positions_from_mask,
)

SIZES = {"vocab_size": 9, "n_layers": 2, "d_model": 8, "n_heads": 2}
ENCODER = TransformerConfig(**SIZES, causal=False)
IDS, Q, AT = torch.arange(10).view(2, 5) % 9, torch.zeros(2, 4, 5, 8), torch.arange(5)


def _in_pieces(model):
    caches = [KeyValueCache() for _ in range(2)]
    for piece in IDS.split(2, dim=1):
        model(piece, caches=caches)


class Given(PositionScheme, forwards=True):
    """A scheme of somebody else's, with a bias of some shape, of a part of a larger tensor."""

    def __init__(self, shape, by_offset=False, dtype=torch.float32):
        super().__init__()
        self.given, self.by_offset = torch.zeros(10, *shape, dtype=dtype)[0], by_offset

    def bias(self, *_):
        return self.given

    def bias_by_offset(self, _):
        return self.given if self.by_offset else None


def attended(**changes):
    given = {"q": Q, "k": Q, "v": Q, "scheme": ALiBi(4), "positions": AT, "key_positions": AT, "causal": True}
    return lambda: attend(**given | changes)


def layer(*sizes, **options):
    return lambda: MultiHeadAttention(*sizes, **{"causal": True} | options)


def model(ids=IDS, **options):
    return lambda: Transformer(TransformerConfig(**SIZES | options))(ids)


INPUT = {
    # Attention.
    "causality by something else": (attended(causal="order"), "causal is 'order'; give True or False"),
    "gates of some of the keys": (
        attended(gates=torch.zeros(2, 4, 4)),
        "there are gates of 4 tokens and 5 keys",
    ),
    "key heads that query heads cannot share": (
        attended(k=Q[:, :3], v=Q[:, :3]),
        "query heads that share those",
    ),
    "a value for another number of keys": (attended(v=Q[:, :, :1]), "with a value for each key"),
    "keys of another batch": (attended(k=Q[:1], v=Q[:1]), "of one batch and width"),
    "queries without heads": (attended(q=Q[0]), "give (batch, heads, seq, d_head), of one batch"),
    "more queries than keys": (attended(k=Q[:, :, :3], v=Q[:, :, :3]), "5 queries and 3 keys"),
    "a word for True": (attended(causal="no"), "causal is 'no'; give True or False"),
    "a scale of 0": (attended(scale=0.0), "scale is 0.0; give a finite number that is not 0"),
    "a mask of another kind": (
        attended(attention_mask=torch.ones(2, 5)),
        "attention_mask is torch.float32 with numbers of another kind",
    ),
    "a mask of other numbers": (
        attended(attention_mask=torch.full((2, 5), 2)),
        "attention_mask is torch.int64 with numbers",
    ),
    "a mask of other keys": (attended(attention_mask=torch.ones(2, 4).bool()), "attention_mask has shape (2, 4)"),
    "a mask of other texts": (attended(attention_mask=torch.ones(3, 5).bool()), "is for a batch of 3"),
    "a bias of other heads": (
        attended(scheme=ALiBi(3)),
        "bias of shape (3, 5), torch.float32, but here it must be numbers, (4, 5)",
    ),
    "a table of other heads": (
        attended(scheme=T5(3, causal=True)),
        "bias of shape (3, 5), torch.float32, but here it must be numbers, (4, 5)",
    ),
    "a bias without heads": (attended(scheme=Given((5, 5))), "must be numbers, (4, 5, 5): heads, queries, keys"),
    "a bias of other keys": (attended(scheme=Given((4, 5, 4))), "bias of shape (4, 5, 4), torch.float32, but"),
    "a bias of other texts": (attended(scheme=Given((3, 4, 5, 5))), "bias of shape (3, 4, 5, 5), torch.float32, but"),
    # Added, True would be 1.
    "a mask for a bias": (attended(scheme=Given((4, 5, 5), dtype=torch.bool)), "(4, 5, 5), torch.bool, but here it"),
    "a mask for a bias of offsets": (
        attended(scheme=Given((4, 5), True, torch.bool)),
        "(4, 5), torch.bool, but here it",
    ),
    # Read past its end, it would be whatever stands there in memory.
    "a bias of too few offsets": (
        attended(scheme=Given((4, 3), by_offset=True)),
        "bias of shape (4, 3), torch.float32, but",
    ),
    "keys behind the queries of a causal mask": (lambda: AttentionMask(3, 2, causal=True), "3 queries and 2 keys"),
    "a text that stands apart": (lambda: pack(torch.tensor([[0, 1, 0]])), "the tokens of a text stand apart"),
    "one cache for all layers": (
        lambda: Transformer(TransformerConfig(**SIZES))(IDS, caches=[KeyValueCache()] * 2),
        "give 2 caches, one of its own for each layer",
    ),
    "a text in pieces read both ways": (lambda: _in_pieces(Transformer(ENCODER)), "a bidirectional model reads a text"),
    "a mask that counts": (lambda: positions_from_mask(torch.tensor([[2, 2]])), "1 for tokens and 0 for padding"),
    # Layers and models.
    "an objective in words": (layer(32, 4, causal=None), "causal is None; give True or False"),
    "a size of 0": (lambda: TransformerConfig(9, n_layers=0), "n_layers is 0; it must be a whole number of at least 1"),
    "an unknown norm": (lambda: TransformerConfig(9, norm="rms"), "norm is 'rms'; choose among pre, post"),
    "a negative deviation": (lambda: TransformerConfig(9, weight_std=-0.1), "weight_std is -0.1"),
    "a config of another kind": (lambda: Transformer({"vocab_size": 9}), "give a TransformerConfig"),
    "ids that are not whole": (model(torch.ones(1, 3)), "ids are torch.float32 of (1, 3)"),
    "an id outside the vocabulary": (model(IDS + 1), "id 9 is outside the vocabulary of 9 tokens"),
    "embeddings of another width": (model(torch.ones(1, 3, 7)), "or embeddings, (batch, seq, 8)"),
    "rows that no scheme adds": (model(scheme="rope", positions_added="every layer"), "rope adds no rows"),
    "rows that cannot be had anew": (
        model(scheme="learned+t5", n_positions=5, positions_added="layers anew"),
        "learned+t5 is not one scheme that learns rows",
    ),
    "positions that cannot be dropped": (lambda: drop_positions(None), "model is None; give a Transformer"),
    "a first token that sees no other": (
        lambda: SequenceClassifier(TransformerConfig(**SIZES), 2, pooling="first"),
        "the first token of a causal model sees no other",
    ),
    "a mask of pairs where padding is meant": (
        lambda: SequenceClassifier(ENCODER, 2)(IDS, attention_mask=torch.ones(2, 5, 5).bool()),
        "here it must mark padding, in the shape of the ids",
    ),
    "a sequence of padding alone": (
        lambda: SequenceClassifier(ENCODER, 2)(IDS, attention_mask=(IDS > 4).long()),
        "attention_mask leaves nothing of a sequence",
    ),
}
POSITIONS = {
    "causality by positions without any": (
        attended(causal="positions", positions=None),
        "causality follows positions; pass positions and key_positions",
    ),
    "coordinates that nobody gave": (
        lambda: MultiHeadAttention(
            8, 2, scheme("rope", d_model=8, n_heads=2, options={"rope": {"axes": 2}}), causal=True
        )(torch.zeros(1, 5, 8)),
        "positions have shape (5,); the last axis must be 2, one for each coordinate",
    ),
    "a bias without positions": (attended(positions=None), "ALiBi has a bias; pass positions and key_positions"),
    "positions of other queries": (attended(positions=AT[:4]), "positions have shape (4,)"),
    "positions of other keys": (attended(key_positions=torch.arange(7)), "key_positions have shape (7,)"),
    "a name for a scheme": (attended(scheme="rope"), "'rope' is no scheme; give a PositionScheme that is made"),
    "heads that do not divide the width": (layer(30, 4), "d_model is 30, which 4 heads do not divide"),
    "a scheme of the other objective": (layer(32, 4, "xpos", causal=False), "xpos is not defined for a bidirectional"),
    "layers that the model does not have": (
        model(scheme=PerLayer([scheme("nopos")] * 3)),
        "the scheme was made for 3 layers, and the model has 2",
    ),
    "no length for a table": (model(scheme="learned"), "learned needs n_positions="),
}
CASES = {name: (ModelInputError, *case) for name, case in INPUT.items()}
CASES |= {name: (EncodingInputError, *case) for name, case in POSITIONS.items()}
