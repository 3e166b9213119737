"""What the heads of a causal model look at, by offset, and what is lost without one of them, or two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, combinations
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from posembed.data import Corpus, windows_in_order
from posembed.models import LanguageModel, attend
from posembed.models.attention import rotated
from posembed.probing import probe_layers
from posembed.training import RunConfig
from posembed.training.objectives import Objective

from .marks import Marked, marked

# Queries and guesses from here on, which have as many tokens before them in every text.
FROM = 16
# Offsets whose attention is told: to the token itself, to the one before, and so on.
OFFSETS = 9
TEXTS = 256
PROBE_TEXTS, PROBE_STEPS = (1024, 256), 2000


@torch.no_grad()
def inspect_heads(
    model: LanguageModel,
    untrained: Callable[[], LanguageModel],
    config: RunConfig,
    corpus: Corpus,
    objective: Objective,
) -> dict[str, Any]:
    """Inspect a trained causal model, ready for JSON.

    Returns:
        ``late``: the loss of the characters that have 16 and more before them, on the test text.

        ``probe``, ``probe untrained``: by layer how far off a network reads positions (the mark has one too).

        ``probe of one character``: the same on texts that repeat one character, fitted to others.

        ``attention``: by layer and head the mean share of each of the offsets 0 to 8, and ``first``, that of the first
        token, the mark where there is one; ``evenly``, what even attention gives it.

        ``swap``: what it costs the last guess that the two tokens before it change places.

        ``without``: by layer and head, with its output at its mean, the loss ``late`` and the cost ``swap``; and the
        ``pair`` of heads without which ``swap`` is least on the validation text, with both numbers on the test text.

        ``first alike``: the loss ``late`` where the first state after the first layer is that of another text's token.
    """
    chosen_on, test = (windows_in_order(text, config.length, TEXTS) for text in (corpus.validation, corpus.test))
    found: dict[str, Any] = {"late": late(model, test, objective), "swap": swap(model, test, objective)}
    found |= attention(model, read(test, objective))
    means = mean_outputs(model, read(chosen_on, objective))
    every = [[(layer, head) for head in range(config.n_heads)] for layer in range(config.n_layers)]

    def without(heads: Sequence[tuple[int, int]], texts: Tensor) -> dict[str, float]:
        with silenced(model, heads, means):
            return {"late": late(model, texts, objective), "swap": swap(model, texts, objective)}

    found["without"] = [[without([head], test) for head in of_layer] for of_layer in every]
    alone = sorted(chain(*every), key=lambda head: without([head], chosen_on)["swap"])[:6]
    pair = min(combinations(alone, 2), key=lambda two: without(two, chosen_on)["swap"])
    found["pair"] = {"heads": [list(head) for head in pair], **without(pair, test)}
    found["first alike"] = _first_alike(model, test, objective)
    with torch.enable_grad():
        return found | _probes(model, untrained(), config, corpus, objective)


def read(ids: Int[Tensor, "texts length"], objective: Objective) -> Int[Tensor, "texts read"]:
    """What the model reads of some texts."""
    return (marked(ids) if isinstance(objective, Marked) else ids)[:, :-1]


def late(model: LanguageModel, ids: Int[Tensor, "texts length"], objective: Objective) -> float:
    """The mean loss of the characters from the sixteenth on."""
    return round(float(objective.losses(model, ids, torch.Generator())[:, FROM:].detach().double().mean()), 6)


def swap(model: LanguageModel, ids: Int[Tensor, "texts length"], objective: Objective) -> float:
    """The rise of the last loss where the two tokens before the last one change places."""
    swapped = ids.clone()
    swapped[:, [-3, -2]] = ids[:, [-2, -3]]
    before, after = (objective.losses(model, each, torch.Generator())[:, -1].double() for each in (ids, swapped))
    return round(float((after - before).detach().mean()), 6)


def attention(model: LanguageModel, ids: Int[Tensor, "texts read"]) -> dict[str, Any]:
    """The mean shares of attention by offset, and of the first token, by layer and head."""
    shares, first = [], []
    for weights in _weights(model, ids):
        mean = weights[:, FROM:].double()
        rows = torch.arange(FROM, weights.shape[-1])
        shares.append(torch.stack([mean[:, rows - FROM, rows - k].mean(1) for k in range(OFFSETS)], 1))
        first.append(mean[:, :, 0].mean(1))
    evenly = float((1 / torch.arange(FROM + 1, ids.shape[1] + 1).double()).mean())
    told = {"attention": torch.stack(shares), "first": torch.stack(first)}
    return {name: value.float().tolist() for name, value in told.items()} | {"evenly": evenly}


def _weights(model: LanguageModel, ids: Tensor) -> list[Float[Tensor, "heads query key"]]:
    """The mean weights of each layer over some texts."""
    found: list[Tensor] = []

    def catch(module: Any, given: tuple[Tensor, ...]) -> None:
        x = given[0]
        positions = torch.arange(x.shape[1])
        q, k = (module._heads(x, each) for each in (module.query, module.key))
        q, k = rotated(module.position_scheme, q, k, positions, positions)
        every = torch.eye(x.shape[1]).expand(*k.shape[:2], -1, -1)
        options = {"scheme": module.position_scheme, "positions": positions, "key_positions": positions}
        found.append(attend(q, k, every, causal=True, **options).mean(0))

    with hooked((layer.attention, catch) for layer in model.transformer.layers):
        model(ids)
    return found


def mean_outputs(model: LanguageModel, ids: Int[Tensor, "texts read"]) -> list[Float[Tensor, " d_model"]]:
    """By layer the mean of what its heads give side by side, over texts and positions."""
    found: list[Tensor] = []

    def catch(_: Any, given: tuple[Tensor, ...]) -> None:
        found.append(given[0].mean((0, 1)))

    with hooked((layer.attention.output, catch) for layer in model.transformer.layers):
        model(ids)
    return found


@contextmanager
def hooked(hooks: Iterable[tuple[nn.Module, Callable[..., Any]]]) -> Iterator[None]:
    """Call each module's hook with what goes into it, inside the block."""
    handles = [module.register_forward_pre_hook(hook) for module, hook in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def silenced(model: LanguageModel, heads: Sequence[tuple[int, int]], means: Sequence[Tensor]) -> Iterator[None]:
    """Inside the block some heads, each a layer and a number, give their mean everywhere."""

    def silencing(layer: int) -> Callable[..., tuple[Tensor]]:
        def change(module: Any, given: tuple[Tensor]) -> tuple[Tensor]:
            x = given[0].clone()
            width = model.transformer.layers[layer].attention.d_head
            for place, head in heads:
                if place == layer:
                    at = slice(head * width, (head + 1) * width)
                    x[..., at] = means[layer][at]
            return (x,)

        return change

    layers = model.transformer.layers
    with hooked((layers[n].attention.output, silencing(n)) for n in {layer for layer, _ in heads}):
        yield


def _first_alike(model: LanguageModel, ids: Tensor, objective: Objective) -> float:
    """The loss where nothing of the first layer's attention tells the first token from one in the middle of a text."""
    caught: list[Tensor] = []
    first = model.transformer.layers[0]

    def exchange(module: Any, given: Any, output: Tensor) -> Tensor:
        caught.append(output)
        changed = output.clone()
        changed[:, 0] = output[:, output.shape[1] // 2].roll(1, 0)
        return changed

    hook = first.register_forward_hook(exchange)
    try:
        return late(model, ids, objective)
    finally:
        hook.remove()


def _probes(
    model: LanguageModel, untrained: LanguageModel, config: RunConfig, corpus: Corpus, objective: Objective
) -> dict[str, list[float]]:
    texts, test = (
        read(windows_in_order(text, config.length, n), objective)
        for text, n in zip((corpus.validation, corpus.test), PROBE_TEXTS, strict=True)
    )
    each = torch.arange(2, len(corpus.vocabulary))
    one = read(each[:, None].expand(-1, config.length), objective)
    options = {"steps": PROBE_STEPS, "control": False, "seed": config.seed}

    def errors(of: LanguageModel, fitted: Tensor, tested: Tensor) -> list[float]:
        found = probe_layers(of.eval(), fitted, test_ids=tested, **options)
        return [float(f"{layer.mae:.5g}") for layer in found.layers]

    return {
        "probe": errors(model, texts, test),
        "probe untrained": errors(untrained, texts, test),
        "probe of one character": errors(model, one[::2], one[1::2]),
    }
