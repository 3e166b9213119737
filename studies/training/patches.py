"""What the states of an image's patches hold, layer by layer: their place, their contents, what the image shows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from posembed.data import Labelled
from posembed.layers import ablate
from posembed.layers.variance_decomposition import group_means
from posembed.probing import Ridge
from posembed.seeds import torch_generator

from .digits import CLASSES, PLACES, enlarged
from .vision import VisionTransformer, patches_of

# Sides of the test's images, in pixels: by a sixth longer than those of the training, by a half, twice as long.
LARGER = (14, 18, 24)
# Patches whose neighbours are looked for, and how many of them; components that are looked at.
QUERIES, NEIGHBOURS, COMPONENTS = 512, 10, 4
# Contents are alike where each pixel is in the same third of the grey values.
THIRD = 1 / 3


class Patches(NamedTuple):
    """The patches of some images and what is known of each.

    Attributes:
        states: of one layer after the other, "patches d_model".
        place: its running number.
        contents: the number of its group of contents.
        label: the class of its image.
        image: the number of its image.
        pixels: its grey values.
    """

    states: list[Float[Tensor, "patches d_model"]]
    place: Int[Tensor, " patches"]
    contents: Int[Tensor, " patches"]
    label: Int[Tensor, " patches"]
    image: Int[Tensor, " patches"]
    pixels: Float[Tensor, "patches pixels"]


def patch_measures(
    model: VisionTransformer, untrained: VisionTransformer, fitted: Labelled, tested: Labelled
) -> dict[str, Any]:
    """Measure what a trained model's patches hold, and how it does on larger images.

    Args:
        model: the trained model, in evaluation mode.
        untrained: the one that its training began with.
        fitted: images that probes are fitted to, each digit at `PLACES` places.
        tested: images that all is measured on, likewise.

    Returns:
        Ready for JSON. "sizes" has by the side of the images, in pixels, the share of right answers "as it is" and
        "interpolated" (`VisionTransformer.resized`); None where a learned table has no rows. "layers" and "untrained"
        have what `by_layer` finds in the two models. "ablations" has by its kind, for each state, how many more answers
        are wrong where `posembed.layers.ablate` changes what patches have of their place, and how many by its control.
    """
    once = Labelled(tested.ids[::PLACES], tested.labels[::PLACES])
    return {
        "sizes": {str(size): _accuracies(model, once, size) for size in (model.size, *LARGER)},
        "layers": by_layer(model, fitted, tested),
        "untrained": by_layer(untrained, fitted, tested),
        "ablations": _ablations(model, fitted, once),
    }


def by_layer(model: VisionTransformer, fitted: Labelled, tested: Labelled) -> dict[str, Any]:
    """Measure what the patches of test images hold in each state of a model, the embedded patches first.

    Args:
        model: in evaluation mode.
        fitted: images that probes are fitted to, each digit at `PLACES` places.
        tested: images that all is measured on, likewise.

    Returns:
        Ready for JSON, with a number for each state. "shares": of the variance between patches, adjusted as in
        `share_between`, what "place", "contents" and "class" account for; "place beyond contents" and "contents beyond
        place", what one adds to the other. "neighbours": of the nearest of each of some patches that are no empty
        ground, among those of other digits, the share with the same "place", "contents" or "class"; "chance" is that of
        any others. "components": of the first ones their "variance", and how much of each is of "place", "contents" and
        "class". "read": by ridge regression from one patch, the share of right places and classes, and the R^2 of the
        grey values; "chance" is that of the most common.
    """
    test = described(model, tested)
    one, other = (described(model, Labelled(each.ids[::PLACES], each.labels[::PLACES])) for each in (fitted, tested))
    found: dict[str, list[dict[str, Any]]] = {
        "shares": [_shares(test, state) for state in test.states],
        "components": [_components(test, state) for state in test.states],
        "neighbours": [_neighbours(other, state) for state in other.states],
        "read": [_read(one, x, other, y) for x, y in zip(one.states, other.states, strict=True)],
    }
    return {name: _columns(rows) for name, rows in found.items()} | {"chance": _chance(other)}


def share_between(states: Float[Tensor, "n d_model"], groups: Int[Tensor, " n"]) -> float:
    """The share of the variance of vectors that lies between the means of groups, adjusted for their number.

    Of n vectors in g groups drawn at random a share of (g - 1) / (n - 1) lies between the means by chance; it is taken
    off, so that random groups have 0 on average and groups of equal vectors 1 (Ezekiel's adjusted R^2).

    Args:
        states: the vectors.
        groups: a number for each.

    Example:
        >>> import torch
        >>> from studies.training.patches import share_between
        >>> share_between(torch.tensor([[1.0], [1.0], [4.0], [4.0]]), torch.tensor([0, 0, 7, 7]))
        1.0
    """
    x = states.double() - states.double().mean(0)
    names, index = groups.unique(return_inverse=True)
    means = group_means(x, index, len(names))
    # Of all columns together: what is left within groups, and what there is.
    within, whole = float(((x - means[index]) ** 2).sum()), float((x**2).sum())
    return 1 - within / whole * (len(x) - 1) / (len(x) - len(names)) if whole else float("nan")


def described(model: VisionTransformer, images: Labelled) -> Patches:
    """The patches of some images, with their states in each layer of a model."""
    pixels = patches_of(images.ids, model.patch)
    n, places = pixels.shape[:2]
    thirds = ((pixels > -THIRD).long() + (pixels > THIRD).long()).flatten(0, 1)
    with torch.inference_mode():
        parts = [model.hidden_states(some) for some in images.ids.to(next(model.parameters()).device).split(256)]
    return Patches(
        [torch.cat(layer).flatten(0, 1).float().cpu() for layer in zip(*parts, strict=True)],
        torch.arange(places).repeat(n),
        (thirds * 3 ** torch.arange(thirds.shape[1])).sum(1),
        images.labels.repeat_interleave(places),
        torch.arange(n).repeat_interleave(places),
        pixels.flatten(0, 1),
    )


def _shares(patches: Patches, states: Tensor) -> dict[str, float]:
    both = patches.place * (int(patches.contents.max()) + 1) + patches.contents
    found = {name: share_between(states, groups) for name, groups in _groups(patches).items()}
    whole = share_between(states, both)
    return found | {
        "place beyond contents": whole - found["contents"],
        "contents beyond place": whole - found["place"],
    }


def _groups(patches: Patches) -> dict[str, Tensor]:
    return {"place": patches.place, "contents": patches.contents, "class": patches.label}


def _components(patches: Patches, states: Tensor) -> dict[str, list[float]]:
    """The first principal components: how much variance each has, and what that is of."""
    x = states.double() - states.double().mean(0)
    values, vectors = torch.linalg.eigh(x.mT @ x)
    along = x @ vectors[:, -COMPONENTS:].flip(1)
    found = {"variance": (values.flip(0)[:COMPONENTS] / values.sum()).tolist()}
    for name, groups in _groups(patches).items():
        found[name] = [share_between(along[:, [n]], groups) for n in range(along.shape[1])]
    return found


def _neighbours(patches: Patches, states: Tensor) -> dict[str, float]:
    """Of the nearest of some patches, by the cosine of states less their mean: what they have in common with it."""
    x = F.normalize(states - states.mean(0), dim=1)
    chosen = _queries(patches)
    cosines = (x[chosen] @ x.mT).masked_fill(_others(patches, chosen).logical_not(), -torch.inf)
    nearest = cosines.topk(NEIGHBOURS).indices
    return {
        name: float((groups[chosen, None] == groups[nearest]).double().mean())
        for name, groups in _groups(patches).items()
    }


def _queries(patches: Patches) -> Int[Tensor, " chosen"]:
    """Patches that hold ink; of empty ground all neighbours are alike."""
    inked = (patches.pixels > -1).any(1).nonzero()[:, 0]
    return inked[torch.randperm(len(inked), generator=torch_generator(0, "queries"))[:QUERIES]]


def _others(patches: Patches, chosen: Tensor) -> Tensor:
    """Which patches are of other images than each chosen one."""
    return patches.image[chosen, None] != patches.image


def _read(fitted: Patches, x: Tensor, tested: Patches, y: Tensor) -> dict[str, float]:
    """One ridge regression, whose outputs are each place, each class and each pixel."""
    n_places = int(fitted.place.max()) + 1

    def targets(patches: Patches) -> np.ndarray:
        named = F.one_hot(patches.place, n_places), F.one_hot(patches.label, CLASSES), patches.pixels
        return torch.cat(named, 1).double().numpy()

    said = torch.from_numpy(Ridge().fit(x.double().numpy(), targets(fitted)).predict(y.double().numpy()))
    places, classes, pixels = said.split([n_places, CLASSES, said.shape[1] - n_places - CLASSES], dim=1)
    left = ((tested.pixels - pixels) ** 2).sum() / ((tested.pixels - tested.pixels.mean(0)) ** 2).sum()
    return {
        "place": float((places.argmax(1) == tested.place).double().mean()),
        "class": float((classes.argmax(1) == tested.label).double().mean()),
        "contents": 1 - float(left),
    }


def _chance(patches: Patches) -> dict[str, dict[str, float]]:
    """What neighbours have in common that are no nearer than others, and what a constant guess gets."""
    chosen = _queries(patches)
    others = _others(patches, chosen)
    common = {
        name: float(((groups[chosen, None] == groups) & others).sum() / others.sum())
        for name, groups in _groups(patches).items()
    }
    guess = {
        name: float(groups.bincount().max() / len(groups))
        for name, groups in _groups(patches).items()
        if name != "contents"
    }
    return {"neighbours": _rounded(common), "read": _rounded(guess | {"contents": 0.0})}


def _ablations(model: VisionTransformer, fitted: Labelled, tested: Labelled) -> dict[str, dict[str, list[float]]]:
    def wrong(its_model: VisionTransformer) -> Tensor:
        return (its_model(tested.ids).argmax(1) != tested.labels).float()

    found = ablate(model, fitted.ids, tested.ids, loss=wrong).values()
    return {
        kind: {"cost": [round(each.cost, 5) for each in its], "control": [round(each.control, 5) for each in its]}
        for kind, *its in ((layer[0].kind, *layer) for layer in zip(*found, strict=True))
    }


def _accuracies(model: VisionTransformer, images: Labelled, size: int) -> dict[str, float | None]:
    pixels = enlarged(images.ids, size)
    as_it_is = size == model.size or not model.has_table
    return {
        "as it is": _accuracy(model, pixels, images.labels) if as_it_is else None,
        "interpolated": _accuracy(model.resized(size), pixels, images.labels),
    }


def _accuracy(model: VisionTransformer, pixels: Tensor, labels: Tensor) -> float:
    device = next(model.parameters()).device
    with torch.inference_mode():
        answers = torch.cat([model(some.to(device)).argmax(1).cpu() for some in pixels.split(128)])
    return round(float((answers == labels).double().mean()), 6)


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """A list for each name, with a number for each layer, rounded to digits that say something."""
    return {name: [_rounded(row)[name] for row in rows] for name in rows[0]}


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [round(each, 5) for each in value] if isinstance(value, list) else round(value, 5)
        for name, value in row.items()
    }
