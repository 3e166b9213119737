"""Compile and export attention with every scheme, in a process of its own: the shape checks of pytest stand in the way.

Prints, as JSON, the largest difference from running it as it is, for each case.
"""

import json
import logging
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from models.reference import CASES, D_MODEL, N_HEADS, made

from posembed.models import MultiHeadAttention

LENGTH = 12


def differences(name, causal):
    torch.manual_seed(0)
    layer = MultiHeadAttention(D_MODEL, N_HEADS, made(name, causal), causal=causal).double().eval()
    x, positions = torch.randn(2, LENGTH, D_MODEL, dtype=torch.float64), torch.arange(LENGTH)
    expected, gradient = run(layer, x, positions)
    compiled, compiled_gradient = run(torch.compile(layer, backend="aot_eager", fullgraph=True), x, positions)
    exported = torch.export.export(layer, (x, positions)).module()(x, positions)
    torch._dynamo.reset()
    return {
        "compiled": float((compiled - expected).abs().max()),
        "gradient": float((compiled_gradient - gradient).abs().max()),
        "exported": float((exported - expected).abs().max()),
    }


def run(layer, x, positions):
    """Output, and the gradient of the sum of its squares for x."""
    x = x.clone().requires_grad_()
    out = layer(x, positions)
    return out.detach(), torch.autograd.grad(out.square().sum(), x)[0]


def main():
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    print(
        json.dumps(
            {f"{name}, {'causal' if causal else 'bidirectional'}": differences(name, causal) for name, causal in CASES}
        )
    )


if __name__ == "__main__":
    main()
