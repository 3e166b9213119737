"""Models with weights of eight bits, in one short text that the figures' JavaScript unpacks and runs."""

from __future__ import annotations

import copy
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..encodings import Learned, RoPE
from ..errors import FigureInputError
from ..models import LanguageModel, Transformer

SCHEMES = {"NoPos": "nopos", "Learned": "learned", "ALiBi": "alibi", "RoPE": "rope"}
# Rows of a learned table that go with it: as many as the figures ask for.
N_POSITIONS = 128
STEPS = 127
# What JavaScript cannot have in a string as it stands, and the character that some editors end a text at.
BARRED = {0, *map(ord, '\n\r"\\')}
# A layer's parts by their names in the package, and by those that the JavaScript has for them.
NAMES = {
    r"position_scheme\.weight": "position",
    r"layers\.(\d+)\.feed_forward\.0": r"\1.in",
    r"layers\.(\d+)\.feed_forward\.2": r"\1.out",
    r"layers\.(\d+)\.(?:attention\.)?": r"\1.",
    r"words\.weight": "words",
    r"\.weight$": "",
}


def rounded(model: LanguageModel) -> LanguageModel:
    """A copy of a model in which each row of weights is whole numbers up to 127 times a scale in half precision."""
    model = copy.deepcopy(model).eval()
    for weight in model.parameters():
        numbers, scales = eight_bits(weight.detach())
        weight.data = torch.from_numpy(numbers * scales.astype(np.float32)).reshape(weight.shape)
    return model


def eight_bits(weight: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers, "rows columns", and the scale of each row, "rows 1"; a vector is one row."""
    rows = np.atleast_2d(weight.float().numpy())
    scales = (np.abs(rows).max(1, keepdims=True) / STEPS).astype(np.float16)
    # Not below the smallest number of full precision, nor zero.
    scales = np.maximum(scales, np.finfo(np.float16).smallest_normal)
    return np.clip(np.round(rows / scales.astype(np.float32)), -STEPS, STEPS).astype(np.int8), scales


def packed(model: LanguageModel) -> list[Any]:
    """What the JavaScript unpacks: the sizes of a model, and its weights as a text.

    The text has seven bits a character: base64 would be a sixth longer.
    """
    tensors = dict(_tensors(model.transformer))
    pairs = [eight_bits(each) for each in tensors.values()]
    content = b"".join(each.tobytes() for part in zip(*pairs, strict=True) for each in part)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_HUFFMAN_ONLY)
    config = model.transformer.config
    about = {
        **described(model),
        "heads": config.n_heads,
        "layers": config.n_layers,
        "tensors": [[name, *each.shape] for name, (each, _) in zip(tensors, pairs, strict=True)],
    }
    return [about, seven_bits(deflate.compress(content) + deflate.flush())]


def described(model: LanguageModel) -> dict[str, Any]:
    """A model's scheme and whether a token sees only those before it.

    Raises:
        FigureInputError: a model that the JavaScript does not have: another scheme or norm; a learned
            table of fewer rows than a page asks for.
    """
    config, scheme = model.transformer.config, model.transformer.position_scheme
    plain = isinstance(config.causal, bool) and not config.scale_embeddings and config.positions_added == "input"
    rotates = isinstance(scheme, RoPE)
    turned = not rotates or (scheme.base, scheme.layout, scheme.width) == (10000, "half", scheme.d_head)
    if type(scheme).__name__ not in SCHEMES or not (config.norm == "pre" and plain and turned):
        raise FigureInputError(
            f"a model with {type(scheme).__name__} and these settings cannot run in a page; it runs pre-norm models "
            f"with {', '.join(SCHEMES.values())} as `RunConfig` has them"
        )
    if isinstance(scheme, Learned) and len(scheme.weight) < N_POSITIONS:
        raise FigureInputError(
            f"a learned table has {len(scheme.weight)} rows, and the page asks for {N_POSITIONS}; train the model with "
            f"test_length={N_POSITIONS}"
        )
    return {"scheme": SCHEMES[type(scheme).__name__], "causal": config.causal}


def script(name: str, model: LanguageModel) -> str:
    """A script that puts a packed model where the figures of its page look for it, by its name."""
    about, text = packed(model)
    return f'(globalThis.posembedModels ??= {{}})[{json.dumps(name)}] = [{json.dumps(about)}, "{text}"];\n'


def seven_bits(content: bytes) -> str:
    """A text of one character for each seven bits; what a string cannot hold stands 128 further on."""
    bits = np.unpackbits(np.frombuffer(content, np.uint8))
    sevens = np.pad(bits, (0, -len(bits) % 7)).reshape(-1, 7) @ (1 << np.arange(7)[::-1])
    return "".join(chr(each + 128 * (each in BARRED)) for each in sevens.tolist())


def _tensors(model: Transformer) -> Iterator[tuple[str, Tensor]]:
    """Each matrix and vector under its short name; a norm's scale and shift are two rows of one."""
    parameters = {name: each.detach() for name, each in model.named_parameters()}
    for name, weight in parameters.items():
        short = name
        for pattern, its in NAMES.items():
            short = re.sub(pattern, its, short)
        if "norm" in name:
            if name.endswith("weight"):
                yield short, torch.stack([weight, parameters[name.removesuffix("weight") + "bias"]])
        else:
            yield short, weight[:N_POSITIONS] if short == "position" else weight
