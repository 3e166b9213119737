"""Figure 1: the outputs of a real attention layer under every order of four words."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import FigureInputError
from ..pretrained import Encoder
from .base import InteractiveFigure, html_table, rounded

# Of the layer's 384 output channels the first sixteen are drawn: enough to recognise a vector by eye.
N_CHANNELS = 16
# Four decimals: finer than any colour shows, and the same text on every machine.
DECIMALS = 4


class ShuffleFigure(InteractiveFigure):
    """Shuffle the words by dragging; the outputs of the encoder's first attention layer move with them.

    With positions switched on, the position rows 1, 2, ... of the encoder are added, as they are behind [CLS].

    Args:
        encoder: what `load_encoder` returns, or any BERT model with its tokenizer.
        sentence: three to six words, each a single token.

    Raises:
        FigureInputError: another number of words, or a word that the tokenizer splits.

    Example:
        >>> from posembed import load_encoder
        >>> from posembed.widgets import ShuffleFigure
        >>> ShuffleFigure(load_encoder(), "I do like coding").words
        ['I', 'do', 'like', 'coding']
    """

    module = "shuffle.js"
    height = (461, 354)

    def __init__(self, encoder: Encoder, sentence: str) -> None:
        words = sentence.split()
        if not 3 <= len(words) <= 6:
            raise FigureInputError(f"the figure shows three to six words, but {sentence!r} has {len(words)}")
        layer = _layer_tables(encoder.model, _ids(encoder, words))
        super().__init__(words=words, layer=layer, order=list(range(len(words))), positions=False, causal=False)

    def fallback_html(self) -> str:
        """Say in a table what moving the words shows."""
        return html_table(
            "shuffle the words of a sentence. What it shows:",
            ["", "each word's output", "the mean of all outputs"],
            [
                ["no positions, words shuffled", "moves with its word, unchanged", "unchanged"],
                ["positions added, words shuffled", "changes", "changes"],
                ["causal mask, words shuffled", "changes where the words before it are no longer the same", "changes"],
            ],
        )


def _ids(encoder: Encoder, words: list[str]) -> Tensor:
    ids = [encoder.tokenizer.encode(word, add_special_tokens=False) for word in words]
    unfit = [
        word for word, own in zip(words, ids, strict=True) if len(own) != 1 or own == [encoder.tokenizer.unk_token_id]
    ]
    if unfit:
        raise FigureInputError(f"no single token stands for {', '.join(unfit)}; use words that the tokenizer has whole")
    return torch.tensor(ids).flatten()


def _layer_tables(model: Any, ids: Tensor) -> dict[str, Any]:
    """Tabulate a BERT model's first self-attention over all inputs that an order of the words can give it.

    Args:
        model: a BERT model.
        ids: "words", the token of each word.

    Returns:
        ``logits`` (heads, rows, rows), ``values`` (heads, rows, N_CHANNELS), each head's values behind the output
        matrix, and ``bias`` (N_CHANNELS). Row w is the bare word w, row n + w n + p the word w at place p.
    """
    attention = model.encoder.layer[0].attention
    with torch.no_grad():
        inputs = _layer_inputs(model.embeddings, ids)
        query, key, value = (
            _heads(_affine(inputs, getattr(attention.self, name)), attention.self.num_attention_heads)
            for name in ("query", "key", "value")
        )
        logits = query @ key.mT / query.shape[-1] ** 0.5
        output = attention.output.dense
        # The output matrix acts on the heads side by side: its columns are split among them.
        mixing = output.weight.double()[:N_CHANNELS].reshape(N_CHANNELS, *value.shape[::2]).permute(1, 2, 0)
        tables = {"logits": logits, "values": value @ mixing, "bias": output.bias.double()[:N_CHANNELS]}
    return {name: rounded(table.tolist(), DECIMALS) for name, table in tables.items()}


def _layer_inputs(embeddings: Any, ids: Tensor) -> Tensor:
    """What enters the first layer for each word, bare and then at each place behind [CLS].

    In double precision, so that the decimals that are kept are the same on every machine.
    """
    bare = embeddings.word_embeddings(ids).double() + embeddings.token_type_embeddings.weight[0].double()
    placed = bare[:, None] + embeddings.position_embeddings.weight[1 : len(ids) + 1].double()
    norm = embeddings.LayerNorm
    rows = torch.cat([bare, placed.flatten(0, 1)])
    return F.layer_norm(rows, norm.normalized_shape, norm.weight.double(), norm.bias.double(), norm.eps)


def _affine(inputs: Tensor, layer: Any) -> Tensor:
    return inputs @ layer.weight.double().T + layer.bias.double()


def _heads(rows: Tensor, n_heads: int) -> Tensor:
    return rows.unflatten(-1, (n_heads, -1)).transpose(0, 1)
