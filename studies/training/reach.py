"""What attention would do past the trained length, said from a model and texts no longer than those of its training.

A longer text is made up of a short one: its last query and its keys are those of one text, some keys several times, and
the scheme, as it was trained, puts them as far back as they would stand.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from posembed.data import Corpus, windows_in_order
from posembed.encodings import (
    FIRE,
    KERPLE,
    T5,
    ALiBi,
    CoPE,
    Forgetting,
    LearnableSinusoidal,
    Learned,
    PoPE,
    PositionScheme,
    RoPE,
    Sinusoidal,
)
from posembed.encodings.angles import frequencies
from posembed.models import LanguageModel, attend
from posembed.models.attention import rotated
from posembed.training import Causal, RunConfig

from .heads import hooked, late, mean_outputs, silenced
from .longer import LENGTHS

TEXTS = 128
# The first tokens of a text, which have few before them, stand at its beginning alone.
BEGINNING = 16


@torch.no_grad()
def inspect_reach(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, Any]:
    """Say what the last query would attend to in longer texts, and what each head is worth, ready for JSON.

    Returns:
        ``worth``: by layer and head what is lost at the trained length where the head gives its mean everywhere, in
        nats, at least 0. By length, from that of the training on, by layer and head: ``new``, the attention on what no
        training touched (`novelty`); ``far``, that on keys further back than any in training; ``entropy`` of the
        attention, in nats. For rivals of the formula: ``back``, by layer and head the attention at the trained length
        on keys at least half of it back; ``unfinished``, the share of the pairs of RoPE, xPos and sinusoids that have
        not gone round within it.
    """
    model.eval()
    texts = windows_in_order(corpus.validation, config.length, TEXTS).long()
    layers = queries_and_keys(model, texts[:, :-1])
    added = untouched_rows(model.transformer.position_scheme, config.length - 1)
    found: dict[str, Any] = {
        "worth": worth_of_heads(model, texts, config.n_heads),
        "back": [],
        "unfinished": unfinished(model, config),
    }
    near = torch.arange(config.length - 1) >= config.length // 2 - 1
    for layer in layers:
        weights = attention_of(*layer, torch.arange(config.length - 1))[..., ~near]
        found["back"].append([round(each, 5) for each in weights.sum(-1).mean(0).tolist()])
    for n in (config.length, *LENGTHS):
        at, by_head = torch.arange(n - 1), []
        for layer in layers:
            weights = attention_of(*layer, at)
            new = weights * torch.maximum(novelty(*layer, at), added(n - 2))
            far, entropy = weights[..., at < n - config.length], -torch.xlogy(weights, weights)
            by_head.append(torch.stack([each.sum(-1).mean(0) for each in (new, far, entropy)]))
        columns = zip(("new", "far", "entropy"), torch.stack(by_head, 1).tolist(), strict=True)
        found[str(n)] = {name: [[round(each, 5) for each in row] for row in rows] for name, rows in columns}
    return found


def worth_of_heads(model: LanguageModel, texts: Int[Tensor, "texts length"], n_heads: int) -> list[list[float]]:
    """By layer and head what is lost without what it tells one text, or place, from another."""
    means, whole = mean_outputs(model, texts[:, :-1]), late(model, texts, Causal())
    found = []
    for layer in range(len(model.transformer.layers)):
        row = []
        for head in range(n_heads):
            with silenced(model, [(layer, head)], means):
                row.append(round(max(0.0, late(model, texts, Causal()) - whole), 5))
        found.append(row)
    return found


def queries_and_keys(
    model: LanguageModel, ids: Int[Tensor, "texts seq"]
) -> list[tuple[PositionScheme, Tensor, Tensor, Tensor | None]]:
    """By layer its scheme, the last query and all keys, before anything turns them, and the gates of the keys."""
    found: list[Any] = []

    def catch(module: Any, given: tuple[Tensor, ...]) -> None:
        q, k = (module._heads(given[0], each) for each in (module.query, module.key))
        found.append((module.position_scheme, q[:, :, -1:], k, module.position_scheme.gates(given[0])))

    layers: Any = model.transformer.layers
    with hooked((layer.attention, catch) for layer in layers):
        model(ids)
    return found


def longer(n_trained: int, n: int) -> Int[Tensor, " n"]:
    """Which token of a text of ``n_trained`` stands at each of n places.

    Its beginning, then those behind it again and again, for these are what a last query has furthest back, then the
    text from there on.
    """
    extra = BEGINNING + torch.arange(n - n_trained) % BEGINNING
    return torch.cat([torch.arange(BEGINNING), extra, torch.arange(BEGINNING, n_trained)])


def attention_of(
    scheme: PositionScheme,
    q: Float[Tensor, "texts heads 1 d"],
    k: Float[Tensor, "texts heads seq d"],
    gates: Float[Tensor, "texts heads seq"] | None,
    at: Tensor,
) -> Float[Tensor, "texts heads n"]:
    """The weights of the last query in a longer text, at positions ``at``."""
    which = longer(k.shape[2], len(at))
    k, gates = k[:, :, which], None if gates is None else gates[..., which]
    q, k = rotated(scheme, q, k, at[-1:], at)
    every = torch.eye(len(at)).expand(*k.shape[:2], -1, -1)
    where: Any = {"positions": at[-1:], "key_positions": at, "gates": gates}
    return attend(q, k, every, causal=True, scheme=scheme, **where)[:, :, 0]


def untouched_rows(scheme: PositionScheme, n_trained: int) -> Any:
    """A function of a position: which share of what is added there no training touched."""
    if isinstance(scheme, Learned):
        return lambda position: torch.tensor(float(position >= n_trained))
    if isinstance(scheme, Sinusoidal | LearnableSinusoidal):
        return lambda position: outside_arc(torch.tensor([position]), speeds(scheme), n_trained).mean()
    return lambda position: torch.tensor(0.0)


def unfinished(model: LanguageModel, config: RunConfig) -> float:
    """The share of pairs that have not gone round within the trained length."""
    scheme = model.transformer.position_scheme.layer(0)
    if not isinstance(scheme, RoPE | PoPE | Sinusoidal | LearnableSinusoidal):
        return 0.0
    turns = speeds(scheme).abs() * (config.length - 2) / (2 * torch.pi)
    return round(float(((turns > 0) & (turns < 1)).double().mean()), 5)


def speeds(scheme: Any) -> Float[Tensor, " pairs"]:
    """The angle of each pair at position 1."""
    if isinstance(scheme, Sinusoidal):
        return frequencies(scheme.d_model, scheme.base)
    return torch.as_tensor(scheme.frequencies).detach()


def outside_arc(
    offsets: Int[Tensor, " offsets"], speed: Float[Tensor, " pairs"], n_trained: int
) -> Float[Tensor, "offsets pairs"]:
    """One where the angle of an offset is none that the offsets 0 to ``n_trained`` - 1 pass through, else zero."""
    turn, speed = 2 * torch.pi, speed.double().abs()
    angle = (offsets[:, None].abs() * speed).remainder(turn)
    return (angle > speed * (n_trained - 1) + 1e-9).float()


def novelty(
    scheme: PositionScheme,
    q: Float[Tensor, "texts heads 1 d"],
    k: Float[Tensor, "texts heads seq d"],
    gates: Float[Tensor, "texts heads seq"] | None,
    at: Tensor,
) -> Float[Tensor, "#texts #heads n"]:
    """By key which share of what the scheme makes of its offset, 0 to 1, no training touched.

    A bucket that no offset had; a bias below, or an input of FIRE's network above, all of the training; a count of CoPE
    above all of the training; of RoPE, xPos and PoPE the pairs at an angle outside the arc of the training, each by its
    share of the products of the norms of queries and keys; of the forgetting Transformer a product of gates below all
    of the training. Shaw's vectors are shared from an offset on that training had.
    """
    n_trained, offsets = k.shape[2], at - at[-1]
    trained = -torch.arange(n_trained)
    if isinstance(scheme, T5):
        return (~torch.isin(scheme.bucket(offsets), scheme.bucket(trained))).float()[None, None]
    if isinstance(scheme, ALiBi | KERPLE):
        least = scheme.bias_by_offset(trained).amin(1, keepdim=True)
        return (scheme.bias_by_offset(offsets) < least).float()[None]
    if isinstance(scheme, FIRE):
        reach = float((scheme.multiplier * scheme.start).abs())
        share = scheme._psi(-offsets.float()) / scheme._psi(torch.tensor(max(float(at[-1]), reach)))
        most = scheme._psi(-trained.float()) / scheme._psi((-trained.float()).clamp(min=reach))
        return (share > most.max() + 1e-6).float()[None, None]
    if isinstance(scheme, CoPE):
        visible = torch.ones(1, n_trained, dtype=torch.bool)
        most = scheme.counted(q, k, visible).amax((0, 3), keepdim=True)
        keys = k[:, :, longer(n_trained, len(at))]
        return (scheme.counted(q, keys, torch.ones(1, len(at), dtype=torch.bool)) > most).float()[:, :, 0]
    if isinstance(scheme, Forgetting) and gates is not None:
        least = gates[..., 1:].sum(-1).amin(0)[:, None]
        after = gates[..., longer(n_trained, len(at))].flip(-1).cumsum(-1).flip(-1)
        return (F.pad(after[..., 1:], (0, 1)) < least - 1e-6).float()
    if isinstance(scheme, RoPE | PoPE):
        size = F.softplus if isinstance(scheme, PoPE) else lambda x: norms(x, scheme)
        share = size(q)[:, :, 0] * size(k).mean(2)
        share = (share / share.sum(-1, keepdim=True)).mean(0)
        return (share @ outside_arc(offsets, scheme.frequencies, n_trained).T)[None]
    return torch.zeros(1, 1, len(at))


def norms(x: Float[Tensor, "*batch d_head"], scheme: RoPE) -> Float[Tensor, "*batch pairs"]:
    """The length of each pair of columns that turns."""
    turning = x[..., : scheme.width]
    pairs = (
        turning.unflatten(-1, (2, -1)).transpose(-1, -2) if scheme.layout == "half" else turning.unflatten(-1, (-1, 2))
    )
    return pairs.norm(dim=-1)
