"""The same guesses with a past that is longer, further off or in many copies: which of these is it that costs?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from posembed.data import Corpus, windows_in_order
from posembed.models import LanguageModel
from posembed.training import RunConfig

LENGTHS = (80, 96, 112, 128, 160, 192, 256, 384, 512)
# The lengths whose causes are told apart: 1.5, 2, 4 and 8 times that of the training.
APART = (96, 128, 256, 512)
TEXTS, GUESSED = 256, 16
# Small: what the schemes make of each query and key stays in the cache.
BATCH_TOKENS = 2**10
# What a model reads: the tokens, their positions, and which keys a query may see; None for all before it.
Read = tuple[Tensor, Tensor, Tensor | None]


@torch.no_grad()
def inspect_longer(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, Any]:
    """Measure the loss of the last 16 characters of texts, the same ones in all ways to read, in nats.

    A model of a trained length of 64 reads, with ``n`` a length:

        ``plain``: the last n characters as they stand; with 64, as many as in its training.

        ``gap``: the last 64, the first half of them as far back as that of n would stand: new offsets, no more keys.

        ``moved``: the last 64 where the last 64 of n would stand: new positions, no new offset.

        ``stack``: the last n, in blocks of 32. Each block but the last stands where the first half of 64 stands, and
        sees itself alone; the last sees them all: more keys, no new position and no new offset.

        ``repeat``: the last n, n / 64 characters to a position: more keys, no new position, but an order that is partly
        lost. ``repeat, few`` is its control, the last 64 of these at the same positions.

        ``again``: the last n, of which the first 32 are the last 32 once more: what a model could copy from there. By
        length, from that of the training on.

        ``half``: the last 32 alone, where they stand in 64.

    Returns:
        By way the loss, by length where there are several; ready for JSON.
    """
    model.eval()
    texts = windows_in_order(corpus.test, max(LENGTHS), TEXTS).long()

    trained = config.length
    found: dict[str, Any] = {"half": last_loss(model, half(texts, trained))}
    found["plain"] = {str(n): last_loss(model, plain(texts, n)) for n in (trained, *LENGTHS)}
    for name, way in WAYS.items():
        lengths = (trained, *APART) if way is again else APART
        found[name] = {str(n): last_loss(model, way(texts, trained, n)) for n in lengths}
    return found


def last_loss(model: LanguageModel, read: Read) -> float:
    """The mean loss of the last characters of what is read."""
    (ids, positions, mask), parts = read, list[Tensor]()
    for some in ids.split(max(1, BATCH_TOKENS // ids.shape[1])):
        logits = model(some[:, :-1], positions[:-1], attention_mask=mask)[:, -GUESSED:]
        parts.append(F.cross_entropy(logits.mT, some[:, -GUESSED:], reduction="none").double().mean(1))
    return round(float(torch.cat(parts).mean()), 5)


def plain(ids: Int[Tensor, "texts longest"], n: int) -> Read:
    """The last n as they stand."""
    return ids[:, -n:], torch.arange(n), None


def half(ids: Int[Tensor, "texts longest"], trained: int) -> Read:
    """The last half of the trained length alone, at its positions."""
    return ids[:, -trained // 2 :], torch.arange(trained // 2, trained), None


def gap(ids: Int[Tensor, "texts longest"], trained: int, n: int) -> Read:
    """As many as in the training, the first half further back."""
    at = torch.arange(trained)
    return ids[:, -trained:], at + (at >= trained // 2) * (n - trained), None


def moved(ids: Int[Tensor, "texts longest"], trained: int, n: int) -> Read:
    """As many as in the training, all of them further on."""
    return ids[:, -trained:], torch.arange(n - trained, n), None


def stack(ids: Int[Tensor, "texts longest"], trained: int, n: int) -> Read:
    """Blocks of half the trained length, all but the last at the same positions, where they see themselves alone."""
    size = trained // 2
    block, last = torch.arange(n - 1) // size, n // size - 1
    seen = (block[:, None] == block) | (block[:, None] == last)
    return ids[:, -n:], torch.arange(n) % size + size * (torch.arange(n) // size == last), seen[None]


def veiled(ids: Int[Tensor, "texts longest"], trained: int, n: int, hidden: Sequence[int]) -> Read:
    """A stack whose last block does not see some places of the blocks that the trained length does not have."""
    ids, positions, seen = stack(ids, trained, n)
    added = torch.arange(n - 1) < n - trained
    veil = added & torch.isin(torch.arange(n - 1) % (trained // 2), torch.tensor(hidden))
    last = torch.arange(n - 1) >= n - trained // 2
    assert seen is not None
    return ids, positions, seen & ~(last[:, None] & veil)


@torch.no_grad()
def inspect_beginnings(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, Any]:
    """Measure what a stack of four times the trained length costs without the beginnings of its added blocks.

    Returns:
        The loss as in `inspect_longer` of ``all`` the stack, and where of the added blocks the last does not see the
        ``first`` token, one in the ``middle``, any but the first (``but the first``) or any at all (``none``).
    """
    texts, trained = windows_in_order(corpus.test, max(LENGTHS), TEXTS).long(), config.length
    size = trained // 2
    hidden = {"all": [], "first": [0], "middle": [size // 2], "but the first": range(1, size), "none": range(size)}
    return {name: last_loss(model.eval(), veiled(texts, trained, 4 * trained, [*it])) for name, it in hidden.items()}


def repeat(ids: Int[Tensor, "texts longest"], trained: int, n: int) -> Read:
    """Several characters to a position."""
    return ids[:, -n:], torch.arange(n) * trained // n, None


def repeat_few(ids: Int[Tensor, "texts longest"], trained: int, n: int) -> Read:
    """As many as in the training, at the positions that they have in `repeat`."""
    return ids[:, -trained:], (torch.arange(n) * trained // n)[-trained:], None


def again(ids: Int[Tensor, "texts longest"], trained: int, n: int) -> Read:
    """The end of the text stands at its beginning too."""
    size = trained // 2
    return torch.cat([ids[:, -size:], ids[:, ids.shape[1] - n + size :]], 1), torch.arange(n), None


WAYS: dict[str, Callable[[Tensor, int, int], Read]] = {
    "gap": gap,
    "moved": moved,
    "stack": stack,
    "repeat": repeat,
    "repeat, few": repeat_few,
    "again": again,
}
