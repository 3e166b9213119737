"""Kinds of layers: all layers read the entry of one kind.

Symptom: short prompts are answered well, and over long ones the model
    repeats itself. Whatever is moved, padded or cut, it agrees with itself.
Hint: print the speed of the slowest pair, layer by layer, beside the config.
Property: each layer turns as the config says for its kind. No identity shows
    it: compare with the formula, or with the original, on a long text.
Report: ggml-org/llama.cpp#14367; scale: ollama/ollama#13452,
    Blaizzy/mlx-vlm#1709
"""

import torch
from torch import Tensor


def frequencies(d: int, base: float = 10000.0) -> Tensor:
    """Return the angle by which each of d / 2 pairs turns in one step."""
    return base ** (-torch.arange(0, d, 2) / d)


def gemma() -> dict:
    """Return what a config like Gemma 3's says of positions, of 12 layers."""
    near = {"rope_theta": 1e4}
    far = {"rope_theta": 1e6, "rope_type": "linear", "factor": 8.0}
    kinds = 5 * ["sliding_attention"] + ["full_attention"]
    entries = {"sliding_attention": near, "full_attention": far}
    return {"layer_types": 2 * kinds, "rope_parameters": entries}


def broken(config: dict, layer: int, d_head: int) -> Tensor:
    """Return the angle by which each pair of a layer turns in one step."""
    rope = config["rope_parameters"]["full_attention"]
    return frequencies(d_head, rope["rope_theta"]) / rope.get("factor", 1.0)


def mended(config: dict, layer: int, d_head: int) -> Tensor:
    """Return the angle by which each pair of a layer turns in one step."""
    rope = config["rope_parameters"][config["layer_types"][layer]]
    return frequencies(d_head, rope["rope_theta"]) / rope.get("factor", 1.0)


def check(candidate):
    """Assert that the slowest pair of each layer turns as its kind does."""
    slowest = {"sliding_attention": 1e4 ** -(15 / 16)}
    slowest["full_attention"] = 1e6 ** -(15 / 16) / 8
    for layer, kind in enumerate(gemma()["layer_types"]):
        right, found = slowest[kind], float(candidate(gemma(), layer, 32)[-1])
        assert abs(found / right - 1) < 1e-4, (
            f"layer {layer}, {kind}, turns its slowest pair by {found:.1e}, "
            f"not {right:.1e}: does it read the entry of its own kind?"
        )


def picture(candidate):
    """Show log10 of speeds: row = layer 0 to 11, column = pair 0 to 15."""
    speeds = [candidate(gemma(), layer, 32) for layer in range(12)]
    return torch.stack(speeds).log10()
