"""Small images of written digits on a larger ground, and the task of naming them."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from sklearn.datasets import load_digits
from torch import Tensor

from posembed.data import Labelled, Task
from posembed.errors import TaskError
from posembed.seeds import torch_generator

# Of a digit's side, in pixels; its grey values are 0 to 16.
SIDE, LEVELS = 8, 16
CLASSES = 10
# Of 1797 digits so many are for validation, and as many for the test; each of them is shown at so many places.
HELD_OUT, PLACES = 300, 4


def images(size: int = SIDE) -> dict[str, Labelled]:
    """Load scikit-learn's digits, each on a square ground of its own at a place that is drawn.

    They are the test part of the "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak 1998), 1797 images of
    8 x 8 pixels, which come inside scikit-learn; nothing is downloaded.

    Args:
        size: of the ground's side, in pixels. Where it is larger than a digit, the place of the digit is drawn among
            all that there are, once for a digit of "train", four times for one of the other parts.

    Returns:
        By part, "train", "validation" and "test", grey values "images height width" from -1 (ground) to 1 (ink), and
        the digits 0 to 9. Which digit is in which part, and where it stands, is the same each time.

    Raises:
        TaskError: a ground that is smaller than a digit.

    Example:
        >>> from studies.training.digits import images
        >>> digits = images(12)["test"]
        >>> digits.ids.shape, digits.labels[:3].tolist()
        (torch.Size([1200, 12, 12]), [2, 2, 2])
    """
    _check_size(size)
    found = {}
    for part, digits in _digits().items():
        copies = 1 if part == "train" or size == SIDE else PLACES
        copied = digits.at(torch.arange(len(digits.labels)).repeat_interleave(copies))
        found[part] = Labelled(_placed(copied.ids, size, torch_generator(0, f"places, {part}")), copied.labels)
    return found


def image_task(size: int) -> Task:
    """Make the task of naming digits on a ground: `images`, but that in training each place is drawn anew.

    Args:
        size: as for `images`.

    Raises:
        TaskError: as for `images`.

    Example:
        >>> import torch
        >>> from studies.training.digits import image_task
        >>> image_task(12).draw(2, torch.Generator().manual_seed(0)).ids.shape
        torch.Size([2, 12, 12])
    """
    parts = images(size)
    train = _digits()["train"]

    def draw(n: int, generator: torch.Generator) -> Labelled:
        chosen = train.at(torch.randint(len(train.labels), (n,), generator=generator))
        return Labelled(_placed(chosen.ids, size, generator), chosen.labels)

    # No token is read; one is the least that a vocabulary can have.
    return Task("digits", 1, CLASSES, draw, parts["validation"], parts["test"])


def enlarged(pixels: Float[Tensor, "images height width"], size: int) -> Float[Tensor, "images size size"]:
    """Give the same images with more pixels, by bilinear interpolation between the centres of pixels.

    Args:
        pixels: square images.
        size: of their new side.

    Raises:
        TaskError: images that are not square, or a side that is shorter than theirs.

    Example:
        >>> import torch
        >>> from studies.training.digits import enlarged
        >>> enlarged(torch.tensor([[[0.0, 1.0], [0.0, 1.0]]]), 4)[0, 0]
        tensor([0.0000, 0.2500, 0.7500, 1.0000])
    """
    if pixels.ndim != 3 or pixels.shape[1] != pixels.shape[2]:
        raise TaskError(f"pixels are of shape {tuple(pixels.shape)}; they must be (images, side, side)")
    if size < pixels.shape[1]:
        raise TaskError(f"size is {size}, and the images have a side of {pixels.shape[1]}; make them no smaller")
    return F.interpolate(pixels[:, None], size=(size, size), mode="bilinear", align_corners=False)[:, 0]


@cache
def _digits() -> dict[str, Labelled]:
    """The digits themselves, by part."""
    loaded = load_digits()
    pixels = torch.tensor(loaded.images, dtype=torch.float32) * (2 / LEVELS) - 1
    labels = torch.tensor(loaded.target)
    order = torch.randperm(len(labels), generator=torch_generator(0, "digits"))
    validation, test, train = order.split([HELD_OUT, HELD_OUT, len(order) - 2 * HELD_OUT])
    parts = {"train": train, "validation": validation, "test": test}
    return {part: Labelled(pixels[index], labels[index]) for part, index in parts.items()}


def _placed(
    pixels: Float[Tensor, "images side side"], size: int, generator: torch.Generator
) -> Float[Tensor, "images size size"]:
    """Each image at a drawn place of a ground."""
    n, side = pixels.shape[:2]
    corners = torch.randint(size - side + 1, (2, n, 1), generator=generator)
    rows, columns = corners + torch.arange(side)
    ground = torch.full((n, size, size), -1.0)
    ground[torch.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]] = pixels
    return ground


def _check_size(size: int) -> None:
    if size < SIDE:
        raise TaskError(f"size is {size}, and a digit has {SIDE} x {SIDE} pixels; give a ground of at least {SIDE}")
