"""Figure 14: trained models in the page, which read what a reader types, at the positions that the reader gives it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from typing import Any

import torch
import torch.nn.functional as F

from ..data import Characters
from ..errors import FigureInputError
from ..models import LanguageModel, drop_positions
from ..probing.attention_maps import own_attention
from ..public import public
from .base import InteractiveFigure, html_table, rounded
from .eight_bit import described, packed
from .eight_bit import rounded as in_eight_bits

# As long as the texts that the stored models were trained on; at most twice that far are positions.
MOST_CHARACTERS = 64
SHOWN = 5
DECIMALS = 3


class ModelsFigure(InteractiveFigure):
    """Type a text, move its words, change its positions, and see what two trained models say of it.

    The models run where the figure is shown, with weights of eight bits, a scale for each row: in a notebook they come
    from the kernel, in the built book from a script for each model, which is fetched when the figure is touched. Until
    then it shows what they say of the first text, computed here; where a page asks for it, its positions stretch once.

    Args:
        models: causal ones by name, without positions or with a learned table, ALiBi or RoPE, and masked ones. In the
            book they are those of `posembed.stored`, by its names.
        vocabulary: which character each token is.
        text: what is read at first, of at most 64 characters.
        layer: whose attention is shown at first, counted from 1.
        head: of this layer, counted from 1.

    Raises:
        FigureInputError: fewer than two models, one that cannot run in a page, a text that is empty or too long.

    Example:
        >>> from posembed.data import load_corpus
        >>> from posembed.stored import load_model
        >>> from posembed.widgets import ModelsFigure
        >>> models = {name: load_model(name) for name in ("causal-nopos", "causal-rope")}
        >>> figure = ModelsFigure(models, load_corpus().vocabulary, "the state of the unio")
        >>> figure.first["trained"]["causal-rope"]["next"][0][0]
        'n'
    """

    module = "models.js"
    parts = ("transformer.js",)
    height = (1370, 982)

    @public(FigureInputError)
    def __init__(
        self,
        models: Mapping[str, LanguageModel],
        vocabulary: Characters,
        text: str,
        *,
        layer: int = 1,
        head: int = 1,
    ) -> None:
        if len(models) < 2:
            raise FigureInputError(f"there are {len(models)} models to compare; give two or more")
        if not 1 < len(text) <= MOST_CHARACTERS:
            raise FigureInputError(
                f"the text has {len(text)} characters; give one of 2 to {MOST_CHARACTERS}, as long as the models know"
            )
        self._models, self._ids = dict(models), vocabulary.encode(text)[None]
        self._vocabulary = vocabulary
        pair = [*models][:2]
        config = models[pair[0]].transformer.config
        super().__init__(
            models=[{"name": name, **described(model)} for name, model in models.items()],
            characters=list(vocabulary.characters),
            layers=config.n_layers,
            heads=config.n_heads,
            text=text,
            left=pair[0],
            right=pair[1],
            change="trained",
            by=16,
            causal=True,
            layer=layer,
            head=head,
            at=len(text),
            first={},
        )
        self.first = {
            change: {name: self._said(models[name], stretch) for name in pair}
            for change, stretch in (("trained", 1), ("stretched", 2))
        }
        self.on_msg(self._hand_over)

    def _hand_over(self, _: Any, content: Any, __: Any) -> None:
        """Send the page a model that it asks for."""
        name = content.get("wanted")
        if name in self._models:
            self.send({"model": name, "file": packed(self._models[name])})

    def _said(self, model: LanguageModel, stretch: int) -> dict[str, Any]:
        """What a model says of the first text at these positions, with weights of eight bits as in a page."""
        # In double precision each machine rounds to the same text.
        model = in_eight_bits(model).double()
        causal, n = model.transformer.config.causal is True, self._ids.shape[1]
        # A masked model guesses what stands hidden behind the text.
        ids = self._ids if causal else F.pad(self._ids, (0, 1), value=Characters.mask_id)
        positions = stretch * torch.arange(ids.shape[1])
        with torch.no_grad():
            top = model(ids, positions)[0, -1].softmax(-1).topk(SHOWN)
            weights = own_attention(model.transformer, ids, self.layer - 1, positions)[0, self.head - 1]
        shares = (weights * 255).round().to(torch.uint8)
        return {
            "losses": [None] * causal + rounded(self._losses(model, stretch), DECIMALS),
            "next": [
                [self._vocabulary.decode([index]), round(chance, DECIMALS)]
                for index, chance in zip(top.indices.tolist(), top.values.tolist(), strict=True)
            ],
            "attention": base64.b64encode(shares.numpy().tobytes()).decode(),
            "row": n - causal,
        }

    def _losses(self, model: LanguageModel, stretch: int = 1) -> list[float]:
        """The loss of each character: of a causal model all but the first, of a masked one each hidden in turn."""
        ids = self._ids[0]
        causal, positions = model.transformer.config.causal, stretch * torch.arange(len(ids))
        given = ids[None] if causal else ids.repeat(len(ids), 1).fill_diagonal_(Characters.mask_id)
        with torch.no_grad():
            logits = model(given, positions)
        guesses, true = (logits[0, :-1], ids[1:]) if causal else (logits.diagonal().T, ids)
        return F.cross_entropy(guesses, true, reduction="none").tolist()

    def fallback_html(self) -> str:
        """Draw the loss by place of the first two models, and list what they say with other positions and without."""
        first, rows = self.first["trained"], []
        for name, said in first.items():
            without = in_eight_bits(self._models[name]).double()
            drop_positions(without.transformer)
            losses = [_known(said), _known(self.first["stretched"][name]), self._losses(without)]
            likely = ", ".join(f"“{character}” {chance:.2f}" for character, chance in said["next"][:3])
            rows.append([name, likely, *(f"{sum(each) / len(each):.2f}" for each in losses)])
        table = html_table(
            f"two trained models read “{self.text}”. Their likeliest next characters, and their loss in nats:",
            ["model", "next", "loss", "loss, positions stretched", "loss, positions taken away"],
            rows,
        )
        return _picture([_known(said) for said in first.values()], [*first]) + table


def _known(said: dict[str, Any]) -> list[float]:
    return [loss for loss in said["losses"] if loss is not None]


def _picture(losses: list[list[float]], names: list[str]) -> str:
    """A drawing of lines, one dashed, for readers without JavaScript."""
    width, height, most = 640, 150, max(map(max, losses))
    dashes, lines = ("none", "6 4"), ""
    for each, dash, name in zip(losses, dashes, names, strict=True):
        points = " ".join(
            f"{width * k / (len(each) - 1):.1f},{10 + (height - 20) * (1 - loss / most):.1f}"
            for k, loss in enumerate(each)
        )
        lines += (
            f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="2" '
            f'stroke-dasharray="{dash}"><title>{escape(name)}</title></polyline>'
        )
    said = f"Loss by place of {names[0]} (solid) and {names[1]} (dashed), up to {most:.1f} nats."
    return (
        f'<svg role="img" aria-label="{escape(said)}" viewBox="0 0 {width} {height}" style="width:100%">{lines}</svg>'
    )
